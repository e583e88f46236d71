"""What every exact inference method offers to learning, scoring and queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np

from lurking.errors import EngineError
from lurking.inference.engines.components import kept_nodes
from lurking.inference.engines.pieces import Piece
from lurking.inference.engines.rows import Rows
from lurking.kernels.program import Program
from lurking.models.layout import Layout
from lurking.runtime.progress import Progress
from lurking.types import FloatArray, IntArray


class Engine(ABC):
    """Exact expectations for one structure and one set of unique rows ("patterns").

    Table rows (node, parent configuration) that never touch an unobserved variable have constant counts, taken once;
    the others are *active*, and only they take part in the iterations.

    Every engine is made by ``Engine(layout, rows, prune, wanted=())``: the rows, whether to leave out what has no
    observed descendant, and nodes to keep even so. A subclass sets `complete_counts` and `active` and implements
    `_expect_active`, `_pattern_log_z`, `pattern_marginals` and `pattern_statistics`; what else callers ask has a
    default. `tests/engine_checks.py` has what an engine must keep.

    Attributes
    ----------
    layout : the flat layout of potentials and statistics.
    rows, prune, wanted : what the engine was made for.
    complete_counts : (P,) counts of the family instances without an unobserved variable.
    active : (Q,) flat positions of the active table rows; none if nothing that matters is unobserved.
    program : the compiled E-step over the active positions, or None when the engine has no compiled form and the
        climb calls `expect_active` from Python.
    """

    complete_counts: FloatArray
    active: IntArray
    program: Program | None = None
    supports_families: ClassVar[bool] = False
    """True if nodes may have another family than the table."""

    def __init__(self, layout: Layout, rows: Rows, prune: bool, wanted: Sequence[int] = ()) -> None:
        self.layout, self.rows, self.prune, self.wanted = layout, rows, prune, tuple(wanted)

    @abstractmethod
    def _expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return the counts of the active positions (Q,) and their share of log_z, given their potentials (Q,)."""

    @abstractmethod
    def _pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return ln Σ_s exp Σ_j φ_j of every pattern, (u,), without its base measure."""

    @abstractmethod
    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return the posterior of one node's states in every pattern, (u, r); NaN rows where the node is pruned."""

    @abstractmethod
    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the expected counts of every pattern on its own, (u, P)."""

    def _log_z_active(self, points: FloatArray) -> FloatArray:
        """Return the share of log_z of the active positions, (m,), at each of m points (m, Q); here one by one."""
        return np.asarray([self.expect_active(point)[1] for point in points], np.float64)

    @property
    def is_convex(self) -> bool:
        """True if log_z is convex in the potentials, so that B(φ) is a bound and plain steps never lower it.

        It is where every cell is affine in them, as cells of tables are.
        """
        return all(family.is_affine for family in self.layout.families.values())

    @property
    def cost(self) -> float:
        """About how many multiplications one E-step takes."""
        program = self.program
        return 0.0 if program is None else float(program.slots.size * int(program.states.max(initial=1)))

    @property
    def pieces(self) -> list[Piece] | None:
        """The compiled rows by program, without the constant counts; None when rows are not compiled.

        Rows in blocks and the curvature of single rows work on them. Without them a table cannot be worked on in
        blocks, and curvature comes from `covariance`.
        """
        return None

    @property
    def is_in_blocks(self) -> bool:
        """True if the rows are worked on block by block and are not kept: there are no pattern_* answers then."""
        return False

    @cached_property
    def log_base(self) -> float:
        """Σ_i w_i ln h(y_i), the share of the base measure in log_z."""
        return self.rows.total_log_base

    @cached_property
    def inactive(self) -> IntArray:
        """Flat positions outside `active`."""
        mask = np.ones(self.layout.size, bool)
        mask[self.active] = False
        return np.flatnonzero(mask)

    @cached_property
    def _fixed(self) -> IntArray:
        """Inactive positions that count something; another one may have a potential of −∞."""
        inactive = self.inactive
        return np.asarray(inactive[self.complete_counts[inactive] != 0.0])

    def watch(self, progress: Progress, workers: int | None) -> None:  # noqa: B027 - nothing to do is the default
        """Report long E-steps to `progress` and work on `workers` threads; an engine on one thread ignores both."""

    def expect(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z) over all positions, (P,) and a number.

        log_z = Σ_i w_i [ln h(y_i) + ln Σ_{s_i} exp Σ_j φ_j] and N = ∂ log_z/∂φ.
        """
        counts = self.complete_counts.copy()
        counts[self.active], log_z = self.expect_active(potentials[self.active])
        fixed = self._fixed
        log_z += float(counts[fixed] @ potentials[fixed])
        return counts, log_z + self.log_base if self.log_base else log_z

    def expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return the counts of the active positions (Q,) and their share of log_z, given their potentials (Q,)."""
        counts, log_z = self._expect_active(potentials)
        self.check(potentials, counts, log_z)
        return counts, log_z

    def log_z(self, points: FloatArray) -> FloatArray:
        """Return log_z at each of m points (m, P): what `expect` gives one by one, in one call, (m,)."""
        result = self._log_z_active(np.take(points, self.active, axis=1))
        if np.shape(result) != (len(points),):
            raise EngineError(
                f"{self.name} returned log_z of shape {np.shape(result)} for {len(points)} points; it must return one "
                "number for each"
            )
        for point, value in zip(points, result, strict=True) if np.isnan(result).any() else ():
            self._check_number(point[self.active], float(value))
        if self._fixed.size:
            # The same products in the same order as one by one, so that rounding is the same.
            result = result + np.vecdot(np.take(points, self._fixed, axis=1), self.complete_counts[self._fixed])
        return result + self.log_base if self.log_base else result

    def pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return ln h(y) + ln Σ_s exp Σ_j φ_j of every pattern, (u,)."""
        result = self._pattern_log_z(potentials)
        return result + self.rows.log_base if self.rows.has_base else result

    def covariance(self, potentials: FloatArray) -> FloatArray:
        """Return Σ_i w_i Cov_i[n] over the active positions, (Q, Q), given their potentials (Q,).

        It is ∂²log_z/∂φ². Where rows are compiled, `lurking.inference.curvature` has it from `pieces`; this is the
        definition, every joint state of every row in turn.
        """
        from lurking.kernels.reference.curvature import covariance

        if not self.layout.are_tables:
            raise EngineError(f"{self.name} has the curvature of tables only")
        layout, rows, whole = self.layout, self.rows, np.zeros(self.layout.size)
        whole[self.active] = potentials
        kept = kept_nodes(layout, rows.codes, self.prune, self.wanted)
        codes = rows.codes.astype(np.int64)
        result = covariance(layout.cardinalities, layout.parents, layout.offsets, codes, kept, rows.weights, whole)
        return result[np.ix_(self.active, self.active)]

    @property
    def name(self) -> str:
        """The name of the exact method, for messages."""
        return type(self).__name__

    def check(self, potentials: FloatArray, counts: FloatArray, log_z: float) -> None:
        """Raise `EngineError` unless an E-step at active potentials (Q,) gave one count for each and a number."""
        if getattr(counts, "shape", None) != self.active.shape:
            raise EngineError(
                f"{self.name} returned counts of shape {np.shape(counts)} for {len(self.active)} active positions; it "
                "must return one count for each"
            )
        if log_z != log_z:
            self._check_number(potentials, log_z)

    def checked_program(self) -> Program | None:
        """Return `program`; raise `EngineError` unless it has one potential for each active position."""
        program = self.program
        if program is not None and len(program.counts) != len(self.active):
            raise EngineError(
                f"{self.name} compiled a program of {len(program.counts)} potentials for {len(self.active)} active "
                "positions; it must have one for each"
            )
        return program

    def _check_number(self, potentials: FloatArray, log_z: float) -> None:
        """Raise `EngineError` if log_z is NaN although no potential is NaN or +∞."""
        if np.isnan(log_z) and np.all(potentials < np.inf):
            raise EngineError(
                f"{self.name} returned NaN as log_z; it must return a number, or -inf if the potentials give some row "
                "probability 0"
            )


Make: TypeAlias = Callable[[Layout, Rows, bool], Engine]
"""How an engine is made: from a layout, rows, and whether to prune."""
