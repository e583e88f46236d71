"""An engine made of the brute-force reference kernel: slow, obvious, and a drop-in for any other engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lurking.inference.engines.base import Engine
from lurking.inference.engines.components import Splitter
from lurking.inference.engines.rows import Rows
from lurking.kernels.reference.enumeration import expect
from lurking.models.layout import Layout
from lurking.types import FloatArray


class ReferenceEngine(Engine):
    """Every row is enumerated from scratch; for tests and tiny problems.

    Every position is active, unless nothing that matters is unobserved: then all counts are constant.
    """

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
        if not np.any(self.kept & (self.codes < 0)):
            self.complete_counts, _ = self._expect_active(np.zeros(layout.size))
            self.active = np.empty(0, np.int64)

    def _expect_rows(
        self, rows: slice, weights: FloatArray, potentials: FloatArray, layout: Layout | None = None
    ) -> tuple[FloatArray, float]:
        of = layout or self.layout
        codes, kept = self.codes[rows], self.kept[rows]
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
        begin, width = layout.offsets[node], layout.cardinalities[node]
        statistics = self._statistics(self.layout.apart(potentials), layout)
        family = statistics[:, begin : begin + width * layout.configurations[node]]
        marginals = family.reshape(len(self.rows), layout.configurations[node], width).sum(axis=1)
        marginals[~self.kept[:, node]] = np.nan
        return np.asarray(marginals, np.float64)
