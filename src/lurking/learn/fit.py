"""Fitting one structure: restarts or a tournament of starts, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lurking.data.messages import plain_count
from lurking.errors import OptionError
from lurking.inference.dimension.identifiability import unidentified_note
from lurking.inference.goodness import Goodness, goodness_of_fit
from lurking.inference.network import Network
from lurking.inference.posterior import DirichletPosterior
from lurking.inference.problem import Problem, refuse_families
from lurking.kernels.program import Rule
from lurking.learn.degenerate import StateIssue, is_symmetric, state_issues
from lurking.learn.loop import Climb, Climber, ClimbOptions, Status, rule_of
from lurking.learn.options import FitOptions
from lurking.learn.restarts import climb_until_settled
from lurking.learn.starts import ENOUGH, SAME_OPTIMUM, Spread, climb_from, starting_points
from lurking.models.document import versions
from lurking.runtime.rng import Seed, generators
from lurking.types import FloatArray, read_only


@dataclass(frozen=True, eq=False)
class Fit:
    """Outcome of EM or VBEM and nothing more.

    `trace` has one entry per accepted point of the best start; `objective` is its last entry (see `Climber` for what
    each method raises). `potentials`, `counts`, `log_z` are the last evaluated point and its E-step, over the
    (pruned) layout of `problem`.
    """

    method: str
    objective: float
    trace: FloatArray = field(repr=False)
    status: Status
    n_iter: int
    seed: Seed
    spread: Spread
    problem: Problem = field(repr=False)
    options: FitOptions = field(repr=False)
    potentials: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)
    log_z: float = field(repr=False)

    def __post_init__(self) -> None:
        for array in (self.trace, self.potentials, self.counts):
            read_only(array)

    def __str__(self) -> str:
        problem = self.problem
        lines = [
            f"{problem.full_dag}   ({problem.parameters_in_words}, n = {plain_count(problem.n)})",
            f"{self.method}: objective {self.objective:.4f}; {self.status.sentence} ({self.n_iter} E-steps)",
            f"starts: {self.spread}",
        ]
        notes = (unidentified_note(problem.dimension, problem.cheap_effective_dimension), *self.issues)
        return "\n".join([*lines, *(f"note: {note}" for note in notes if note is not None)])

    @cached_property
    def posterior(self) -> DirichletPosterior | None:
        """q(θ), the Dirichlet α of every table (VB only); pruned nodes have the prior. None unless all are tables."""
        if self.method != "vb" or self.problem.families:
            return None
        layout, prior = self.problem.full_pseudo
        alpha = self.problem.unpruned(self.problem.pseudo + self.counts, prior)
        return DirichletPosterior(layout, alpha)

    @cached_property
    def hyperparameters(self) -> dict[str, FloatArray] | None:
        """Natural hyperparameters λ + N of q(θ) by node, (rows, size) each: Dirichlet α of tables; VB only."""
        return self.problem.layout.split(self.problem.pseudo + self.counts) if self.method == "vb" else None

    @cached_property
    def network(self) -> Network:
        """The fitted network: θ̂ (EM), or the posterior means (VB); pruned nodes have the prior mean."""
        problem = self.problem
        refuse_families(problem, "networks and predictions are available", "use fit.hyperparameters or lk.gibbs")
        layout, prior = problem.full_pseudo
        if self.posterior is not None:
            theta, alpha = self.posterior.mean(), self.posterior.flat
        else:
            theta = problem.unpruned(np.exp(self.potentials), layout.normalise(prior))
            theta, alpha = layout.normalise(theta), None
        return Network(problem.full_dag, dict(problem.levels), theta, alpha, self._about(), problem.tied)

    def _about(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "objective": self.objective,
            "status": self.status.name,
            "n_iter": self.n_iter,
            "seed": self.seed if isinstance(self.seed, int) else None,
            "options": self.options.describe(),
            "prior": self.problem.prior.describe(),
            "prune": self.problem.prune,
            "n": self.problem.n,
            "data_digest": self.problem.table.select(self.problem.full_dag.observed).digest,
            "versions": versions(),
        }

    @cached_property
    def issues(self) -> tuple[StateIssue, ...]:
        """Empty and duplicate hidden states, and hidden variables that nothing observed depends on."""
        loose = tuple(StateIssue(name, "unconnected", ()) for name in self.problem.full_dag.barren)
        layout = self.problem.layout
        is_mean = self.method == "vb" and layout.are_tables
        theta = (
            layout.normalise(self.problem.pseudo + self.counts) if is_mean else layout.probabilities(self.potentials)
        )
        return loose + state_issues(layout, theta, self.counts, self.problem.n)

    @cached_property
    def statistics(self) -> Goodness:
        """G², X², degrees of freedom, AIC, entropy R², bivariate residuals of the network on its own data."""
        return goodness_of_fit(self.network, self.problem.table)


def fit_problem(problem: Problem, method: str, options: FitOptions) -> Fit:
    """Fit a compiled problem; equal (method, options) are fitted once and shared."""
    return problem.remember(
        ("fit", method, options.key),
        lambda: _fit(problem, method, options),
        keep=lambda fit: fit.status is not Status.INTERRUPTED,
    )


def remember_fit(problem: Problem, options: FitOptions, fit: Fit) -> None:
    """Let `fit_problem` find a fit that was made elsewhere."""
    problem.remember(("fit", fit.method, options.key), lambda: fit)


def has_fit(problem: Problem, method: str, options: FitOptions) -> bool:
    """Whether `fit_problem` would find this fit made."""
    return problem.remembers(("fit", method, options.key))


def _fit(problem: Problem, method: str, options: FitOptions) -> Fit:
    if options.optimizer != "em":
        refuse_families(problem, f"optimizer={options.optimizer!r} works", "use optimizer='em'")
    if method == "map-probability":
        refuse_families(problem, f"method={method!r} works", "use method='map'")
    stop, was_set = options.stop, options.stop.is_set
    problem.watch(options.progress, options.workers)
    climber = Climber(problem.engine, problem.pseudo, rule_of(method), problem.n)
    climbs = _tournament(climber, problem, options) if options.tournament else _from_starts(climber, problem, options)
    if not climbs or (stop.is_set and not was_set and not options.keep_interrupted):
        raise KeyboardInterrupt
    fit = outcome(problem, method, options, climber, climbs)
    return replace(fit, status=Status.INTERRUPTED) if stop.is_set else fit


def _from_starts(climber: Climber, problem: Problem, options: FitOptions) -> list[Climb]:
    """Return the climb from each start."""
    options.progress.begin(f"{climber.rule.name.lower()} starts", options.first_starts)
    try:
        return climbs_of_starts(climber, problem, options)
    finally:
        options.progress.end()


def climbs_of_starts(climber: Climber, problem: Problem, options: FitOptions) -> list[Climb]:
    """Return one climb for each start, as many as the option `restarts` asks for."""
    if options.is_auto:
        return climb_until_settled(climber, problem, options, same_optimum(problem, options))
    starts = starting_points(problem, options, options.first_starts)
    return climb_from(climber, problem, starts, options, options.climb)


def same_optimum(problem: Problem, options: FitOptions) -> float:
    """Return how many nats below the best a start has found it too: never less than what `tol` leaves open."""
    return max(SAME_OPTIMUM, 100.0 * options.tol * problem.n)


def outcome(problem: Problem, method: str, options: FitOptions, climber: Climber, climbs: Sequence[Climb]) -> Fit:
    """Return the best of the climbs as a fit."""
    best = max(range(len(climbs)), key=lambda k: (climbs[k].objective, -k))
    climb = climbs[best]
    if any(other.status is Status.IMPOSSIBLE for other in climbs):
        raise OptionError("init gives probability 0 to some row of the data; use positive probabilities")
    status = climb.status
    if options.init is not None and best == 0 and _is_saddle(climber, problem, climb, options):
        status = Status.SADDLE
    return Fit(
        method=method,
        objective=climb.objective,
        trace=climb.trace,
        status=status,
        n_iter=climb.n_iter,
        seed=options.seed,
        spread=Spread(
            tuple(c.objective for c in climbs),
            same_optimum(problem, options),
            ENOUGH if problem.engine.active.size else 1,
        ),
        problem=problem,
        options=options.at_rest,
        potentials=climb.potentials,
        counts=climb.counts,
        log_z=climb.log_z,
    )


def _tournament(climber: Climber, problem: Problem, options: FitOptions) -> list[Climb]:
    """Run 1, 2, 4, … plain iterations on ever fewer copies, keeping the better half, then climb from the last.

    chickering-heckerman-1996 §3 with 64 copies: 64 × 1, 32 × 2, 16 × 4, … , 1.
    """
    points = starting_points(problem, options, options.tournament)
    iterations = 1
    while len(points) > 1:
        short = ClimbOptions(iterations, 0.0, False)
        rounds = climb_from(climber, problem, points, options, short)
        if options.stop.is_set and not rounds:
            raise KeyboardInterrupt
        order = sorted(range(len(rounds)), key=lambda k: (-rounds[k].objective, k))[: max(1, len(rounds) // 2)]
        points = [climber.resume(rounds[k]) for k in sorted(order)]
        iterations *= 2
        if options.stop.is_set:
            break
    return climb_from(climber, problem, points[:1], options, options.climb)


def _is_saddle(climber: Climber, problem: Problem, climb: Climb, options: FitOptions) -> bool:
    """Whether identical hidden states can be told apart by a small push: then the end point is no maximum."""
    layout = problem.layout
    if layout.are_tables:
        theta = np.exp(climb.potentials) if climber.rule is not Rule.VB else problem.pseudo + climb.counts
        theta = layout.normalise(theta)
    else:
        theta = layout.probabilities(climb.potentials)
    if not is_symmetric(layout, theta):
        return False
    generator = generators(options.seed, 1)[0]
    if layout.are_tables:
        pushed = theta * np.exp(0.1 * generator.standard_normal(layout.size))
        with np.errstate(divide="ignore"):
            start = np.log(layout.normalise(pushed))
    else:
        x = layout.blocks.coordinates(climb.potentials)
        start = layout.blocks.natural(x + 0.1 * generator.standard_normal(len(x)))[0]
    probe = climber.climb(start, ClimbOptions(200, 1e-10, True), options.stop)
    return probe.objective > climb.objective + max(1e-6, 1e-9 * math.fabs(climb.objective))
