"""Gradient ascent beside EM: L-BFGS or conjugate gradients, which finish climbs where EM would creep.

The gradient of ln p(y|θ) costs one E-step, as an EM iteration does: with θ = softmax(η) within each row it is
N_jlk − θ_jlk N_jl. EM comes near an optimum fast and reaches it slowly (Salakhutdinov, Roweis & Ghahramani 2003), so
every start takes some EM steps first, and plain EM steps end it, so that "converged" means the same for all optimizers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.special import polygamma

from lurking.kernels.program import ClimbResult, Outcome, Rule
from lurking.learn.loop import Climb, Climber, ClimbOptions
from lurking.learn.python_loop import Point, evaluate, point_of
from lurking.runtime.executor import StopFlag
from lurking.types import FloatArray, IntArray

WARM_UP = 21
"""E-steps of EM before the first ascent."""
CLOSING = 3
"""E-steps of EM after each ascent: enough for two plain steps, the first of which may end the climb."""
PATIENCE = 2
"""Steps of an ascent in a row that gain less than the tolerance, until EM has to say whether that is the end."""
LEAST_COUNT = 1e-2
"""Expected counts below this set the scale of their coordinate as if they were this."""
LEAST_ROOT = 1e-150
SCIPY: dict[str, dict[str, Any]] = {
    "lbfgs": {
        "method": "L-BFGS-B",
        "options": {"maxcor": 20, "ftol": 0.0, "gtol": 0.0, "maxfun": 10**9, "maxiter": 10**9},
    },
    "cg": {"method": "CG", "options": {"gtol": 0.0, "maxiter": 10**9}},
}
"""Arguments of `scipy.optimize.minimize`, which never ends an ascent by a tolerance of its own."""


class Coordinates(ABC):
    """Coordinates x of an ascent over the active positions, scaled so that the gradient is about an EM step.

    Steps of length 1 are then about a standard deviation of the posterior given complete data.
    """

    scale: FloatArray

    @abstractmethod
    def begin(self) -> FloatArray:
        """Return x of the point that the coordinates were made for."""

    @abstractmethod
    def potentials(self, x: FloatArray) -> FloatArray:
        """Return φ (Q,)."""

    @abstractmethod
    def value_and_gradient(self, x: FloatArray, point: Point) -> tuple[float, FloatArray]:
        """Return what is maximised and ∂/∂x, given the E-step at φ."""


class Tables(Coordinates):
    """Coordinates of the probabilities themselves, for EM: the objective is ln p(y|θ) + Σ c ln θ.

    c is what the M step adds to N. Both kinds have one coordinate per state, so that no state is a special one, and
    leave one direction of each row without effect. Probabilities of exactly 0 stay 0, as in EM.
    """

    def __init__(self, climber: Climber, point: Point) -> None:
        self.row_start, self.added = climber.active_blocks.row_start, climber.active_added
        self.start = point.potentials
        self.free = np.flatnonzero(np.isfinite(self.start))
        self.scale = self._scale(self.totals(point.counts + self.added))[self.free]

    @abstractmethod
    def _scale(self, totals: FloatArray) -> FloatArray:
        """Return the scale of every position, given N_l + c_l of its row."""

    def totals(self, flat: FloatArray) -> FloatArray:
        """Return the sum of its row for every position."""
        return self.spread(np.add.reduceat(flat, self.row_start[:-1]))

    def spread(self, rows: FloatArray) -> FloatArray:
        """Return the value of its row for every position."""
        return np.repeat(rows, np.diff(self.row_start))


class Logits(Tables):
    """Logits, for map: θ = softmax(η), x = η √(θ_k (N_l + c_l)), ∂/∂η_k = N_k + c_k − θ_k (N_l + c_l)."""

    def _scale(self, totals: FloatArray) -> FloatArray:
        return np.asarray(1.0 / np.sqrt(np.maximum(np.exp(self.start) * totals, LEAST_COUNT)))

    def begin(self) -> FloatArray:
        """Return η = ln θ, scaled."""
        return np.asarray(self.start[self.free] / self.scale)

    def potentials(self, x: FloatArray) -> FloatArray:
        """Return ln softmax(η)."""
        eta = self.start.copy()
        eta[self.free] = x * self.scale
        eta -= self.spread(np.maximum.reduceat(eta, self.row_start[:-1]))
        return np.asarray(eta - np.log(self.totals(np.exp(eta))))

    def value_and_gradient(self, x: FloatArray, point: Point) -> tuple[float, FloatArray]:  # noqa: ARG002
        """Return the objective and its gradient."""
        counts = point.counts + self.added
        gradient = counts - np.exp(point.potentials) * self.totals(counts)
        return point.objective, gradient[self.free] * self.scale


class Roots(Tables):
    """Square roots, for ml and map-probability: θ_k = z_k² / Σ z², x = 2z √(N_l + c_l).

    ∂/∂z_k = 2 z_k / Σ z² · ((N_k + c_k) / θ_k − (N_l + c_l)). Optima of ml may have θ = 0. In logits they are
    infinitely far away and the way is flat: a step that is too long ends on a plateau below them. As a root, 0 is a
    place like any other; the complete-data information is the same for every state.
    """

    def _scale(self, totals: FloatArray) -> FloatArray:
        return np.asarray(0.5 / np.sqrt(np.maximum(totals, LEAST_COUNT)))

    def begin(self) -> FloatArray:
        """Return z = √θ, scaled."""
        return np.asarray(np.exp(0.5 * self.start[self.free]) / self.scale)

    def potentials(self, x: FloatArray) -> FloatArray:
        """Return ln z² − ln Σ z²; a root that happens to be 0 is as good as the smallest number."""
        logs = self.start.copy()
        logs[self.free] = 2.0 * np.log(np.maximum(np.abs(x * self.scale), LEAST_ROOT))
        logs -= self.spread(np.maximum.reduceat(logs, self.row_start[:-1]))
        return np.asarray(logs - np.log(self.totals(np.exp(logs))))

    def value_and_gradient(self, x: FloatArray, point: Point) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        roots = np.zeros_like(self.start)
        roots[self.free] = x * self.scale
        counts = point.counts + self.added
        ratios = np.zeros_like(roots)
        ratios[self.free] = counts[self.free] / np.exp(point.potentials[self.free])
        gradient = 2.0 * roots / self.totals(roots * roots) * (ratios - self.totals(counts))
        return point.objective, gradient[self.free] * self.scale


class LogAlpha(Coordinates):
    """ln α, for vb: q(θ) = Dir(α), φ = ψ(α_k) − ψ(α_l), x = ln α · √(α² ψ'(α)).

    What is maximised is F(α) = log_z(φ) − KL[Dir(α) ‖ Dir(λ)], the bound before the VBM step, because its gradient
    needs the E-step only: with r = λ + N − α, ∂F/∂α_k = ψ'(α_k) r_k − ψ'(α_l) Σ_k r_k. B(φ), which needs second
    moments for its own, is never below F and equals it where r = 0, that is at every stationary point.
    """

    def __init__(self, climber: Climber, point: Point) -> None:
        self.blocks, self.pseudo = climber.active_blocks, climber.active_pseudo
        self.start: FloatArray = np.log(self.pseudo + point.counts)
        alpha = np.exp(self.start)
        self.scale = 1.0 / (alpha * np.sqrt(polygamma(1, alpha)))

    def begin(self) -> FloatArray:
        """Return ln(λ + N), scaled."""
        return np.asarray(self.start / self.scale)

    def potentials(self, x: FloatArray) -> FloatArray:
        """Return E[ln θ]."""
        return self.blocks.expected(self._alpha(x))

    def value_and_gradient(self, x: FloatArray, point: Point) -> tuple[float, FloatArray]:
        """Return F and its gradient."""
        alpha = self._alpha(x)
        rest = self.pseudo + point.counts - alpha
        lengths, first = np.diff(self.blocks.row_start), self.blocks.row_start[:-1]
        of_row = polygamma(1, np.add.reduceat(alpha, first)) * np.add.reduceat(rest, first)
        gradient = alpha * (polygamma(1, alpha) * rest - np.repeat(of_row, lengths))
        value = point.log_z - self.blocks.kl_divergence(alpha, self.pseudo)
        return value, gradient * self.scale

    def _alpha(self, x: FloatArray) -> FloatArray:
        # A step of a line search may be far too long; e^46 times the start is far beyond any answer.
        return np.asarray(np.exp(np.clip(x * self.scale, self.start - 46.0, self.start + 46.0)))


COORDINATES: dict[Rule, Callable[[Climber, Point], Coordinates]] = {
    Rule.ML: Roots,
    Rule.MAP_PROBABILITY: Roots,
    Rule.MAP: Logits,
    Rule.VB: LogAlpha,
}


class _EnoughError(Exception):
    """Ends an ascent from within."""


class Ascent:
    """One run of an optimizer from an evaluated point; `best` is the best point so far, `trace` the accepted ones."""

    def __init__(self, climber: Climber, begin: Point, budget: int, threshold: float, stop: IntArray) -> None:
        self.climber, self.budget, self.threshold, self.stop = climber, budget, threshold, stop
        self.coordinates = COORDINATES[climber.rule](climber, begin)
        self.best = begin
        self.n_calls = 0
        self.trace: list[float] = []
        self._reached, self._short_steps = begin.objective, 0

    def run(self, optimizer: str) -> None:
        """Go up until steps gain next to nothing, the budget is spent or `stop` is set."""
        from scipy.optimize import minimize

        arguments: Any = {"jac": True, "callback": self._accepted, **SCIPY[optimizer]}
        with suppress(_EnoughError):
            minimize(self._downhill, self.coordinates.begin(), **arguments)
        if self.best.objective > self._reached:
            self.trace.append(self.best.objective)

    def _downhill(self, x: FloatArray) -> tuple[float, FloatArray]:
        if self.n_calls >= self.budget or self.stop[0]:
            raise _EnoughError
        self.n_calls += 1
        point = evaluate(self.climber, self.coordinates.potentials(x), None)
        if point.objective > self.best.objective:
            self.best = point
        value, gradient = self.coordinates.value_and_gradient(x, point)
        return -value, -gradient

    def _accepted(self, _x: FloatArray) -> None:
        gain, self._reached = self.best.objective - self._reached, self.best.objective
        if gain > 0.0:
            self.trace.append(self._reached)
        self._short_steps = self._short_steps + 1 if gain < self.threshold else 0
        if self._short_steps >= PATIENCE:
            raise _EnoughError


def ascend(climber: Climber, start: FloatArray, options: ClimbOptions, stop: StopFlag | None = None) -> Climb:
    """Climb from potentials `start` (P,): EM, then in turn ascents by the optimizer and plain EM steps.

    A plain step that gains less than tol · max(n, 1) ends the climb, as it does in EM. E-steps are counted as in EM,
    those of line searches included, and `max_iter` bounds them. The trace has every accepted point and never falls.
    """
    if not climber.engine.active.size:
        return climber.climb(start, options, stop)
    way = _Way(climber, start, options, (stop or StopFlag()).array)
    way.take_plain_steps(start[climber.engine.active], WARM_UP)
    while way.can_go_on:
        following = way.ascend(options.optimizer)
        if following is not None:
            way.take_plain_steps(following, CLOSING)
    return climber.finish(way.prepared, [way.end])[0]


class _Way:
    """How far a climb has come: `end` is where it is, with the whole trace and all E-steps so far."""

    def __init__(self, climber: Climber, start: FloatArray, options: ClimbOptions, stop: IntArray) -> None:
        self.climber, self.start, self.options, self.stop = climber, start, options, stop
        self.prepared = climber.prepare([start])
        self.uncounted = 0 if climber.rule is Rule.VB else 1  # EM's closing E-step
        self.left = int(options.max_iter) + self.uncounted
        self.end = ClimbResult(int(Outcome.MAX_ITER), 0, 0.0, start, start, np.empty(0))

    @property
    def can_go_on(self) -> bool:
        """Whether the last plain steps neither converged nor used up what was left."""
        return self.end.outcome == Outcome.MAX_ITER and self.left > 0

    def take_plain_steps(self, potentials: FloatArray, n_calls: int) -> None:
        """Take steps of EM from potentials (Q,); the rest of the E-steps too where nothing is left for an ascent."""
        calls = n_calls if self.left - n_calls > CLOSING else self.left
        full = self.start.copy()
        full[self.climber.engine.active] = potentials
        few = ClimbOptions(max(1, calls - self.uncounted), self.options.tol, self.options.accelerate)
        end = self.climber.ends(self.climber.prepare([full]), [full], few, self.stop)[0]
        is_cut_short = end.outcome == Outcome.INTERRUPTED and not np.all(np.isfinite(end.trace))
        if is_cut_short and len(self.end.trace):  # within its first E-step: the point before it is the end
            self.end = self.end._replace(outcome=end.outcome)
            return
        self._add(end, end.n_iter + self.uncounted)

    def ascend(self, optimizer: str) -> FloatArray | None:
        """Go up by the optimizer; return the potentials after one more M step, or None when `stop` was set."""
        before, constant = self.end, self.prepared.fixed[0].constant
        point = point_of(self.climber, before.potentials, before.counts, before.log_z)
        threshold = self.options.tol * max(self.climber.n, 1.0)
        ascent = Ascent(self.climber, point, self.left - CLOSING, threshold, self.stop)
        ascent.run(optimizer)
        best = ascent.best
        outcome = Outcome.INTERRUPTED if self.stop[0] else Outcome.MAX_ITER
        trace = constant + np.asarray(ascent.trace, np.float64)
        self._add(ClimbResult(int(outcome), 0, best.log_z, best.potentials, best.counts, trace), ascent.n_calls)
        return None if self.stop[0] else best.following

    def _add(self, end: ClimbResult, n_calls: int) -> None:
        """Go on to `end`, which took so many E-steps."""
        self.left -= n_calls
        n_iter = int(self.options.max_iter) - self.left
        self.end = end._replace(n_iter=n_iter, trace=np.concatenate([self.end.trace, end.trace]))
