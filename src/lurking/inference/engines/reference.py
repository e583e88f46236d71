"""An engine made of the brute-force reference kernel: slow, obvious, and a drop-in for any other engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from lurking.inference.engines.base import Engine
from lurking.inference.engines.completions import cells_of, value_column
from lurking.inference.engines.components import Splitter
from lurking.inference.engines.rows import Rows
from lurking.kernels.reference.enumeration import expect
from lurking.models.families.table import TableFamily
from lurking.models.layout import Layout
from lurking.types import BoolArray, FloatArray, IntArray


class ReferenceEngine(Engine):
    """Every row is enumerated from scratch; for tests and tiny problems.

    Every position is active, unless nothing that matters is unobserved: then all counts are constant.
    """

    supports_families = True

    def __init__(self, layout: Layout, rows: Rows, prune: bool, wanted: Sequence[int] = ()) -> None:
        super().__init__(layout, rows, prune, wanted)
        codes, self.codes = rows.codes, rows.codes.astype(np.int64)
        self.complete_counts = np.zeros(layout.size)
        self.active = np.arange(layout.size)
        splitter = Splitter(layout, prune, wanted)
        self.kept = np.ones(codes.shape, bool)
        for i, row in enumerate(codes):
            keep = splitter.kept(sum(1 << j for j, code in enumerate(row) if code < 0))
            self.kept[i] = [bool(keep >> j & 1) for j in range(codes.shape[1])]
        for j in range(codes.shape[1]):
            if value_column(layout, j) is not None:  # a missing value has no part in its row
                self.kept[:, j] &= self.codes[:, j] >= 0
        if self.is_convex and not np.any(self.kept & (self.codes < 0)):
            self.complete_counts, _ = self._expect_active(np.zeros(layout.size))
            self.active = np.empty(0, np.int64)

    def _expect_rows(
        self, rows: slice, weights: FloatArray, potentials: FloatArray, layout: Layout | None = None
    ) -> tuple[FloatArray, float]:
        of = layout or self.layout
        codes, kept = self.codes[rows], self.kept[rows]
        if not of.are_tables:
            return _expect_families(of, codes, self.rows.values[rows], kept, weights, potentials)
        return expect(of.cardinalities, of.parents, of.offsets, codes, kept, weights, potentials)

    def _expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z) over all positions, or over none when nothing is active."""
        if not self.active.size:
            return np.empty(0), 0.0
        return self._expect_rows(slice(None), self.rows.weights, potentials)

    def _pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return ln z of every pattern, one row at a time."""
        one = np.ones(1)
        return np.asarray([self._expect_rows(slice(i, i + 1), one, potentials)[1] for i in range(len(self.rows))])

    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the expected counts of every pattern, one row at a time."""
        return self._statistics(potentials, self.layout)

    def _statistics(self, potentials: FloatArray, layout: Layout) -> FloatArray:
        one = np.ones(1)
        rows = [self._expect_rows(slice(i, i + 1), one, potentials, layout)[0] for i in range(len(self.rows))]
        return np.asarray(rows).reshape(len(self.rows), layout.size)

    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return the posterior of one node: its family's counts summed over parent configurations."""
        # Tied families have a table of their own here, so that only this node is counted in it.
        layout = self.layout.untied
        if not layout.are_tables:
            return self._mixed_marginals(potentials, node)
        begin, width = layout.offsets[node], layout.cardinalities[node]
        statistics = self._statistics(self.layout.apart(potentials), layout)
        family = statistics[:, begin : begin + width * layout.configurations[node]]
        marginals = family.reshape(len(self.rows), layout.configurations[node], width).sum(axis=1)
        marginals[~self.kept[:, node]] = np.nan
        return np.asarray(marginals, np.float64)

    def _mixed_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return the posterior of one node of any family: the masses of its states."""
        result = np.zeros((len(self.rows), self.layout.cardinalities[node]))
        for i, (row, own, keep) in enumerate(zip(self.codes, self.rows.values, self.kept, strict=True)):
            made, scores, _ = _joint(self.layout, row, own, keep, potentials)
            masses = np.exp(scores - scores.max())
            np.add.at(result[i], [completed[node] for completed in made], masses / masses.sum())
        result[~self.kept[:, node]] = np.nan
        return result


def _joint(
    layout: Layout, row: IntArray, own: FloatArray, keep: BoolArray, potentials: FloatArray
) -> tuple[list[IntArray], FloatArray, FloatArray]:
    """Return the completions of a row (S of them), their scores (S,) and the gradients of these (S, P)."""
    free = [j for j in range(len(row)) if keep[j] and row[j] < 0]
    made, scores, gradients = [], [], []
    for states in itertools.product(*(range(layout.cardinalities[j]) for j in free)):
        completed = np.maximum(row, 0)
        completed[free] = states
        score, gradient = 0.0, np.zeros(layout.size)
        for j in np.flatnonzero(keep):
            column = value_column(layout, int(j))
            cells = cells_of(layout, int(j), completed[None, :], np.asarray([0.0 if column is None else own[column]]))
            family = layout.families.get(layout.nodes[j]) or TableFamily(layout.cardinalities[j])
            at = slice(layout.offsets[j], layout.offsets[j] + math.prod(layout.shapes[j]))
            score += float(family.cells(potentials[at], cells)[0])
            gradient[at] += family.statistics(potentials[at], cells, np.ones(1))
        made.append(completed)
        scores.append(score)
        gradients.append(gradient)
    return made, np.asarray(scores), np.asarray(gradients)


def _expect_families(
    layout: Layout, codes: IntArray, values: FloatArray, kept: BoolArray, weights: FloatArray, potentials: FloatArray
) -> tuple[FloatArray, float]:
    """Return (N, log_z) of nodes of any family: every row, every joint state, every node, one at a time."""
    counts, log_z = np.zeros(layout.size), 0.0
    for row, own, keep, weight in zip(codes, values, kept, weights, strict=True):
        if weight == 0.0:
            continue
        _, scores, gradients = _joint(layout, row, own, keep, potentials)
        top = float(scores.max())
        if top == -math.inf:
            return np.zeros(layout.size), -math.inf
        masses = np.exp(scores - top)
        log_z += weight * (top + math.log(masses.sum()))
        counts += weight * (masses / masses.sum()) @ gradients
    return counts, log_z
