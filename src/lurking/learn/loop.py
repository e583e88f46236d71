"""The one loop behind EM and VBEM: trace, status, stopping, squared extrapolation with a monotone safeguard.

Engines with a compiled program run the whole climb in one kernel call; for any other engine the same loop runs here,
and it is the reference that the kernel is tested against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from lurking.errors import OptionError, PriorError, UnknownNameError
from lurking.expfam.blocks import Blocks
from lurking.inference.engines.base import Engine
from lurking.kernels.batch import Climbs
from lurking.kernels.program import ClimbResult, Outcome, Rule
from lurking.learn.damped import climb_damped
from lurking.learn.python_loop import climb_in_python
from lurking.runtime.checks import check_whole, is_number
from lurking.runtime.executor import StopFlag
from lurking.types import FloatArray, IntArray

OPTIMIZERS = ("em", "lbfgs", "cg")
METHODS = {"vb": Rule.VB, "map": Rule.MAP, "map-probability": Rule.MAP_PROBABILITY, "ml": Rule.ML}


MOST_ITERATIONS = 10**8  # the trace is held in memory


class Status(Enum):
    """Why a loop ended, as a value with a sentence."""

    CONVERGED = "converged: the last plain step gained less than tol per row"
    MAX_ITER = "stopped at max_iter before the gain fell below tol; raise max_iter or tol"
    SADDLE = "the start is a saddle: hidden states are identical and nothing tells them apart; start elsewhere"
    INTERRUPTED = "interrupted by the user: the best so far, or the estimate from the finished chains of a sampler"
    IMPOSSIBLE = "the start gives probability 0 to some row of the data"
    BUDGET = "the budget was spent before the target was reached"
    CLOSED_FORM = "closed form: nothing that matters is unobserved"
    SAMPLED = "sampled: the standard error asked for was reached and the diagnostics agree"
    UNTRUSTED = "the diagnostics disagree: the value may be far off and has no standard error; raise the budget"
    SINGULAR = "the curvature has directions that are flat, fall or end at a boundary; they are left out of the value"
    INAPPLICABLE = "the approximation does not apply: no log evidence of these data can have this value"
    LOCAL_OPTIMUM = "no single move raises the score, from any of the starts"
    OPTIMUM = "no structure has a higher score: all of them were considered"
    TIME_LIMIT = "stopped at the time limit; the best structure found by then"

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        return self.value


STATUS_OF = {
    Outcome.CONVERGED: Status.CONVERGED,
    Outcome.MAX_ITER: Status.MAX_ITER,
    Outcome.INTERRUPTED: Status.INTERRUPTED,
    Outcome.IMPOSSIBLE: Status.IMPOSSIBLE,
}


@dataclass(frozen=True)
class ClimbOptions:
    """How long a climb goes on.

    max_iter : E-steps at most, rejected extrapolations included.
    tol : stop when a plain step gains less than tol · max(n, 1); 0 runs all `max_iter`.
    accelerate : squared extrapolation (Varadhan & Roland 2008), accepted only when the objective does not fall.
    optimizer : "em"; or "lbfgs" or "cg", which finish the climb by gradient ascent (`lurking.learn.ascent`).
    """

    max_iter: int = 1000
    tol: float = 1e-8
    accelerate: bool = True
    optimizer: str = "em"

    def __post_init__(self) -> None:
        check_whole("max_iter", self.max_iter, 1)
        if self.max_iter > MOST_ITERATIONS:
            raise OptionError(f"max_iter is {self.max_iter}; it must be at most {MOST_ITERATIONS}")
        if not (is_number(self.tol) and self.tol >= 0):
            raise OptionError(f"tol is {self.tol!r}; it must be a finite number of at least 0, for example 1e-8")
        if not isinstance(self.accelerate, bool | np.bool_):
            raise OptionError(f"accelerate is {self.accelerate!r}; it must be True or False")
        if self.optimizer not in OPTIMIZERS:
            raise UnknownNameError("optimizer", self.optimizer, OPTIMIZERS)


class Climb:
    """Outcome of one start.

    `trace` has the objective at every accepted point, `objective` is its last entry. `potentials` is the last evaluated
    point (ln θ for EM, E[ln θ] for VB), `counts` and `log_z` its E-step, over all flat positions. A climb that an
    interrupt ended before its first point `is_empty`: it has none of them.
    """

    def __init__(self, engine: Engine, fixed: FixedPart, end: ClimbResult) -> None:
        self._engine, self._fixed, self._end = engine, fixed, end
        self.status = STATUS_OF[Outcome(end.outcome)] if engine.active.size else Status.CLOSED_FORM
        self.n_iter = int(end.n_iter)
        self.trace: FloatArray = np.asarray(end.trace)
        self.objective = float(end.trace[-1]) if len(end.trace) else -math.inf
        self.log_z = float(end.log_z) + fixed.log_z
        # Cut short within the E-step of its start.
        self.is_empty = self.status is Status.INTERRUPTED and self.objective == -math.inf

    # Of several starts only the best one is looked at more closely, so these wait until they are asked for.
    @cached_property
    def potentials(self) -> FloatArray:
        """(P,) the last evaluated point."""
        engine = self._engine
        potentials = np.empty(engine.layout.size)
        potentials[engine.active], potentials[engine.inactive] = self._end.potentials, self._fixed.potentials
        return potentials

    @cached_property
    def counts(self) -> FloatArray:
        """(P,) expected counts there."""
        counts = self._engine.complete_counts.copy()
        counts[self._engine.active] = self._end.counts
        return counts


def rule_of(method: str) -> Rule:
    """Return the rule of a method name."""
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    return METHODS[method]


def added_counts(rule: Rule, blocks: Blocks, pseudo: FloatArray) -> FloatArray:
    """Return what the M step adds to N: 0 (ML), λ − 1 (MAP over probabilities), λ (MAP in natural form)."""
    if rule is Rule.ML:
        return np.zeros_like(pseudo)
    if rule is Rule.MAP_PROBABILITY:
        added = blocks.over_parameters(pseudo)
        if added.size and added.min() < 0.0:
            raise PriorError(
                f"the prior has λ = {pseudo.min():g} < 1, and the mode over probabilities does not exist then; "
                "use λ ≥ 1, or method 'map' (mode over logits), which takes every λ > 0"
            )
        return added
    return pseudo


class FixedPart(NamedTuple):
    """What a climb leaves alone: potentials after one M step on the inactive rows, and what those contribute."""

    potentials: FloatArray
    """Of the inactive positions."""
    constant: float
    """Constant of the objective."""
    log_z: float
    """Share of log_z."""


class PreparedStarts(NamedTuple):
    """Starts of one climber: what the kernel takes (None when there is nothing for it), and the fixed part of each."""

    climbs: Climbs | None
    fixed: list[FixedPart]


def climb_together(
    prepared: Sequence[PreparedStarts], rule: Rule, n: float, options: ClimbOptions, stop: IntArray
) -> list[list[ClimbResult]]:
    """Climb from the starts of several climbers with the same rule and number of rows in one kernel call."""
    from lurking.kernels.cpu.batch import climb_batch

    items = [part.climbs for part in prepared if part.climbs is not None]
    if len(items) != len(prepared):
        raise ValueError("a climber without a compiled program cannot climb together with others")
    threshold = options.tol * max(n, 1.0)
    return climb_batch(items, int(rule), threshold, int(options.max_iter), bool(options.accelerate), stop)


class Climber:
    """Prepared to climb from any start: prior terms restricted to the active positions, constants of the rest.

    The objectives, all constants kept: ml: ln p(y|θ); map-probability: + ln p(θ); map: + the density in natural form,
    λ·η(θ) − A(λ), which for tables is the density in the logits; vb: B(φ) = D(λ, N) + log_z − Σ φ·N, or where the
    engine is not convex F (`lurking.learn.damped`).
    """

    def __init__(self, engine: Engine, pseudo: FloatArray, rule: Rule, n: float) -> None:
        engine.checked_program()
        self.engine, self.rule, self.n = engine, rule, n
        self.pseudo = pseudo
        self.blocks = engine.layout.blocks
        self.added = added_counts(rule, self.blocks, pseudo)
        self.active_pseudo, self.active_added = pseudo[engine.active], self.added[engine.active]
        self._density_constant = 0.0 if rule is Rule.ML else -self.blocks.log_normaliser(pseudo)

    @cached_property
    def active_blocks(self) -> Blocks:
        """The rows that take part in the iterations."""
        return self.blocks.at(self.engine.active)

    @cached_property
    def _compiled_prior(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """What the compiled climb of tables needs: λ, lnΓ(λ), λ_jl, lnΓ(λ_jl), and what the M step adds."""
        program, compact = self.engine.program, self.active_pseudo
        assert program is not None
        rows = np.add.reduceat(compact, program.row_start[:-1])
        return compact, gammaln(compact), rows, gammaln(rows), self.active_added

    @property
    def is_compiled(self) -> bool:
        """True if a whole climb is one kernel call."""
        engine = self.engine
        return engine.program is not None and engine.active.size > 0 and engine.is_convex and self.blocks.are_tables

    def climb(self, start: FloatArray, options: ClimbOptions, stop: StopFlag | None = None) -> Climb:
        """Climb from potentials `start` (P,) by EM or VBEM."""
        return self.climb_all([start], options, stop)[0]

    def climb_all(
        self, starts: Sequence[FloatArray], options: ClimbOptions, stop: StopFlag | None = None
    ) -> list[Climb]:
        """Climb from each of the potentials (P,) in one kernel call."""
        prepared = self.prepare(starts)
        return self.finish(prepared, self.ends(prepared, starts, options, (stop or StopFlag()).array))

    def ends(
        self, prepared: PreparedStarts, starts: Sequence[FloatArray], options: ClimbOptions, stop: IntArray
    ) -> list[ClimbResult]:
        """Return the ends of the climbs from `starts`, prepared, over the active positions."""
        if prepared.climbs is not None:
            return climb_together([prepared], self.rule, self.n, options, stop)[0]
        threshold = options.tol * max(self.n, 1.0)
        active = self.engine.active
        if not active.size:
            return [_closed_form(fixed, options) for fixed in prepared.fixed]
        climb = climb_in_python if self.engine.is_convex else climb_damped
        return [
            climb(self, start[active], fixed.constant, threshold, options.max_iter, options.accelerate, stop)
            for start, fixed in zip(starts, prepared.fixed, strict=True)
        ]

    def prepare(self, starts: Sequence[FloatArray]) -> PreparedStarts:
        """Return what the kernel needs to climb from the potentials (P,), and what it leaves alone."""
        fixed = [self._fixed_part(start) for start in starts]
        if base := self.engine.log_base:
            fixed = [FixedPart(own.potentials, own.constant + base, own.log_z + base) for own in fixed]
        program = self.engine.program
        if program is None or not self.is_compiled:
            return PreparedStarts(None, fixed)
        begin = np.stack([start[self.engine.active] for start in starts])
        constants = np.asarray([part.constant for part in fixed])
        return PreparedStarts(Climbs(program, self._compiled_prior, begin, constants), fixed)

    def finish(self, prepared: PreparedStarts, ends: Sequence[ClimbResult]) -> list[Climb]:
        """Return the climbs, given their ends over the active positions."""
        for end in ends:
            if end.outcome != Outcome.INTERRUPTED:  # its last E-step may have been cut short
                self.engine.check(end.potentials, end.counts, end.log_z)
        return [Climb(self.engine, fixed, end) for fixed, end in zip(prepared.fixed, ends, strict=True)]

    def resume(self, climb: Climb) -> FloatArray:
        """Return the potentials from which a climb goes on where `climb` stopped."""
        if self.rule is Rule.VB:
            return self.blocks.expected(self.pseudo + climb.counts)
        return climb.potentials

    def _fixed_part(self, start: FloatArray) -> FixedPart:
        """Take one M step on the inactive rows."""
        if self.rule is Rule.VB:
            return self._fixed_bound
        inactive = self.engine.inactive
        if not inactive.size:
            return FixedPart(np.empty(0), self._density_constant, 0.0)
        counts, added = self.engine.complete_counts, self.added
        # A row without any count keeps its value. Active rows are computed along: leaving them out costs more.
        potentials = self.blocks.mode(counts + added, start)[inactive]
        log_z = _weighted(counts[inactive], potentials)
        constant = self._density_constant + _weighted(added[inactive], potentials)
        return FixedPart(potentials, constant + log_z, log_z)

    @cached_property
    def _fixed_bound(self) -> FixedPart:
        """The same for VB, where it does not depend on the start: E[ln θ], D(λ, N), Σ N E[ln θ] of inactive rows."""
        inactive = self.engine.inactive
        if not inactive.size:
            return FixedPart(np.empty(0), 0.0, 0.0)
        rows = self.blocks.at(inactive)
        pseudo, counts = self.pseudo[inactive], self.engine.complete_counts[inactive]
        potentials = rows.expected(pseudo + counts)
        return FixedPart(potentials, rows.log_evidence(pseudo, counts), _weighted(counts, potentials))


def _closed_form(fixed: FixedPart, options: ClimbOptions) -> ClimbResult:
    """Nothing is unobserved: one M step is the answer; tol = 0 still reports `max_iter` (equal) entries."""
    n_iter = options.max_iter if options.tol == 0.0 else 1
    nothing = np.empty(0)
    return ClimbResult(int(Outcome.CONVERGED), n_iter, 0.0, nothing, nothing, np.full(n_iter, fixed.constant))


def _weighted(weights: FloatArray, potentials: FloatArray) -> float:
    """Return Σ weights · potentials with 0·(−inf) = 0."""
    used = weights != 0.0
    return float(weights[used] @ potentials[used])
