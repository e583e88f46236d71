"""The climb of families whose cells are not convex in the potentials: steps are halved until the objective rises.

B(φ) = D(λ, N) + log_z − φ·N is a bound only where log_z is convex in φ, and plain steps may cycle elsewhere. For
variational Bayes the objective is then the bound itself at hyperparameters h, with φ = E_h[η],

    F(h) = log_z(φ) − KL[p(θ | h) ‖ p(θ | λ)],

and a step goes from h to (1 − ρ) h + ρ (λ + N). For a point θ it is log_z(η(θ)) + c·η(θ), c being what the M step adds
to N, and a step goes the share ρ of the way to the mode in unbounded coordinates. If N stayed as it is, an undamped
step would gain KL[p(θ | h) ‖ p(θ | λ + N)], or (N + c)·(η* − η); the climb ends where this *predicted* gain is small,
since the gain of a halved step says nothing about what is left.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from lurking.kernels.program import FIRST_STEP_LIMIT, LEAST_JUMP, ClimbResult, Outcome, Rule
from lurking.learn.python_loop import Prepared, next_limit, squared_step
from lurking.types import FloatArray, IntArray

LEAST_SHARE = 2.0**-40
"""Share of a step below which no step is thought to raise the objective."""
FLAT = 1e-9
"""Predicted gain, relative to the objective, that rounding may hide."""


class Place(NamedTuple):
    """An evaluated place: h or η with its E-step, and where an undamped step would lead."""

    own: FloatArray
    potentials: FloatArray
    counts: FloatArray
    log_z: float
    objective: float
    target: FloatArray
    predicted: float


class Walk(ABC):
    """What is moved, and what rises."""

    def __init__(self, climber: Prepared) -> None:
        self.engine, self.blocks = climber.engine, climber.active_blocks
        self.pseudo, self.added = climber.active_pseudo, climber.active_added

    @abstractmethod
    def begin(self, start: FloatArray) -> tuple[Place, int]:
        """Return the place that belongs to the potentials of a start, and the E-steps that were needed."""

    @abstractmethod
    def at(self, own: FloatArray) -> Place:
        """Evaluate a place."""

    @abstractmethod
    def between(self, place: Place, share: float) -> FloatArray:
        """Return what lies the given share of the way to the target."""

    @abstractmethod
    def pack(self, own: FloatArray) -> FloatArray:
        """Return unbounded coordinates for extrapolation."""

    @abstractmethod
    def unpack(self, u: FloatArray) -> FloatArray:
        """Return what `pack` was given."""

    def extrapolated(self, before: Place, here: Place, limit: float) -> tuple[float, FloatArray]:
        """Return the length and end of a squared step, kept near the target."""
        x0, x1, x2 = self.pack(before.own), self.pack(here.own), self.pack(here.target)
        step, end = squared_step(x0, x1, x2, limit)
        finite = np.isfinite(x2)
        end[finite] = np.clip(end[finite], x2[finite] - 46.0, x2[finite] + 46.0)
        return step, self.unpack(end)


class Hyperparameters(Walk):
    """Variational Bayes: h is moved, F rises."""

    def begin(self, start: FloatArray) -> tuple[Place, int]:
        """Return h = λ + N, N being the statistics at the start."""
        counts, log_z = self.engine.expect_active(start)
        if not log_z > -math.inf:
            return Place(self.pseudo, start, counts, log_z, -math.inf, self.pseudo, 0.0), 1
        return self.at(self.pseudo + counts), 2

    def at(self, own: FloatArray) -> Place:
        """Evaluate F(h)."""
        potentials = self.blocks.expected(own)
        counts, log_z = self.engine.expect_active(potentials)
        target = self.pseudo + counts
        objective = log_z - self.blocks.kl_divergence(own, self.pseudo)
        return Place(own, potentials, counts, log_z, objective, target, self.blocks.kl_divergence(own, target))

    def between(self, place: Place, share: float) -> FloatArray:
        """Return (1 − ρ) h + ρ (λ + N)."""
        return place.target if share == 1.0 else (1.0 - share) * place.own + share * place.target

    def pack(self, own: FloatArray) -> FloatArray:
        """Return coordinates of h."""
        return self.blocks.pack(own)

    def unpack(self, u: FloatArray) -> FloatArray:
        """Return h."""
        return self.blocks.unpack(u)


class Parameters(Walk):
    """Points: η(θ) is moved, ln p(y | θ) + c·η(θ) rises."""

    def begin(self, start: FloatArray) -> tuple[Place, int]:
        """Return the start itself."""
        return self.at(start), 1

    def at(self, own: FloatArray) -> Place:
        """Evaluate the objective at η."""
        counts, log_z = self.engine.expect_active(own)
        used = self.added != 0.0
        objective = log_z + float(self.added[used] @ own[used])
        pull = counts + self.added
        target = self.blocks.mode(pull, own)
        moves = (pull != 0.0) & (target != own)
        with np.errstate(invalid="ignore"):
            predicted = float(pull[moves] @ (target[moves] - own[moves]))
        return Place(own, own, counts, log_z, objective, target, predicted)

    def between(self, place: Place, share: float) -> FloatArray:
        """Return the point the share ρ of the way to the mode, in unbounded coordinates."""
        if share == 1.0:
            return place.target
        here, there = self.pack(place.own), self.pack(place.target)
        both = np.isfinite(here) & np.isfinite(there)
        end = there.copy()
        end[both] = (1.0 - share) * here[both] + share * there[both]
        return self.unpack(end)

    def pack(self, own: FloatArray) -> FloatArray:
        """Return coordinates of the point."""
        return self.blocks.pack_point(own)

    def unpack(self, u: FloatArray) -> FloatArray:
        """Return η."""
        return self.blocks.unpack_point(u)


def climb_damped(
    climber: Prepared,
    start: FloatArray,
    constant: float,
    threshold: float,
    max_iter: int,
    accelerate: bool,
    stop: IntArray,
) -> ClimbResult:
    """Climb from the potentials `start` (Q,) until an undamped step predicts a gain of less than `threshold`.

    The trace has `constant` + objective at every accepted place and never falls. The E-step of the start is not counted
    in `n_iter`. For variational Bayes the counts returned are h − λ, so that λ + counts are the hyperparameters.
    """
    is_vb = climber.rule is Rule.VB
    walk: Walk = Hyperparameters(climber) if is_vb else Parameters(climber)
    here, evaluations = walk.begin(start)
    trace, share, limit, outcome = [constant + here.objective], 1.0, FIRST_STEP_LIMIT, Outcome.MAX_ITER
    if not here.log_z > -math.inf:
        outcome, max_iter = Outcome.IMPOSSIBLE, 0
    while evaluations - 1 < max_iter:
        is_flat = here.predicted < threshold
        if is_flat or (share < LEAST_SHARE and here.predicted < FLAT * (1.0 + abs(here.objective))):
            outcome = Outcome.CONVERGED
            break
        if share < LEAST_SHARE:  # no step rises though one should: undamped steps are tried until max_iter
            share = 1.0
        if stop[0]:
            outcome = Outcome.INTERRUPTED
            break
        trial = walk.at(walk.between(here, share))
        evaluations += 1
        if not trial.objective >= here.objective:
            share *= 0.5
            continue
        before, here, was_whole = here, trial, share == 1.0
        share = min(1.0, 2.0 * share)
        trace.append(constant + here.objective)
        if not accelerate or not was_whole or evaluations - 1 >= max_iter or here.predicted < threshold:
            continue
        step, end = walk.extrapolated(before, here, limit)
        if step <= LEAST_JUMP:
            continue
        extra = walk.at(end)
        evaluations += 1
        accepted = extra.objective >= here.objective
        if step == limit:
            limit = next_limit(limit, accepted)
        if accepted:
            here = extra
            trace.append(constant + here.objective)
    counts = here.own - walk.pseudo if is_vb else here.counts
    n_iter = min(max(evaluations - 1, 0), max_iter) if outcome is not Outcome.IMPOSSIBLE else 0
    return ClimbResult(int(outcome), n_iter, here.log_z, here.potentials, counts, np.asarray(trace, np.float64))
