"""What every exact inference method offers to learning, scoring and queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from lurking.kernels.program import Program
from lurking.models.layout import Layout
from lurking.types import FloatArray, IntArray


class Engine(ABC):
    """Exact expectations for one structure and one set of unique rows ("patterns").

    Table rows (node, parent configuration) that never touch an unobserved variable have constant counts, taken once;
    the others are *active*, and only they take part in the iterations.

    Every engine is made by ``Engine(layout, codes, weights, prune, wanted=())``: codes (u, nodes) with −1 where
    unobserved, one weight per pattern, whether to leave out what has no observed descendant, and nodes to keep even so.

    Attributes
    ----------
    layout : the flat layout of potentials and statistics.
    complete_counts : (P,) counts of the family instances without an unobserved variable.
    active : (Q,) flat positions of the active table rows.
    program : the compiled E-step over the active positions, or None when the engine has no compiled form and the
        climb calls `expect_active` from Python.
    """

    layout: Layout
    complete_counts: FloatArray
    active: IntArray
    program: Program | None

    @property
    def is_convex(self) -> bool:
        """True if log_z is convex in the potentials, so that B(φ) is a bound and plain steps never lower it.

        It is where every cell is affine in them, as cells of tables are.
        """
        return True

    @property
    def cost(self) -> float:
        """About how many multiplications one E-step takes."""
        program = self.program
        return 0.0 if program is None else float(program.slots.size * int(program.states.max(initial=1)))

    @abstractmethod
    def expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return the counts of the active positions (Q,) and their share of log_z, given their potentials (Q,)."""

    @abstractmethod
    def pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return ln Σ_s exp Σ_j φ_j of every pattern, (u,)."""

    @abstractmethod
    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return the posterior of one node's states in every pattern, (u, r); NaN rows where the node is pruned."""

    @abstractmethod
    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the expected counts of every pattern on its own, (u, P)."""

    @cached_property
    def inactive(self) -> IntArray:
        """Flat positions outside `active`."""
        mask = np.ones(self.layout.size, bool)
        mask[self.active] = False
        return np.flatnonzero(mask)

    def expect(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z): log_z = Σ_i w_i ln Σ_{s_i} exp Σ_j φ_j and N = ∂ log_z/∂φ, both over all positions."""
        counts = self.complete_counts.copy()
        counts[self.active], log_z = self.expect_active(potentials[self.active])
        fixed = self.inactive[counts[self.inactive] != 0.0]
        return counts, log_z + float(counts[fixed] @ potentials[fixed])
