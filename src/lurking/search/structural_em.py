"""Structural EM: a search over structures with hidden variables and empty cells (Friedman 1997, 1998).

A round fits the parameters of the current structure, completes the data by the posterior of that fit, and climbs over
structures by the scores that the *expected* counts of the completion give, which cost no further inference. The
structure at the end of the climb is fitted in its turn. For a penalised likelihood with the parameters at its maximum,
and for the variational bound, the true score then rises by at least the expected gain (Friedman 1998, theorem 3.1). The
starts of the parameters are the M step on the expected counts, from which that bound holds step by step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.errors import OptionError, TooLarge, UndefinedScore, UnknownNameError
from lurking.evidence.evaluation import evaluate
from lurking.graph.dag import Dag, as_dag
from lurking.inference.binding import node_codes
from lurking.inference.completion import Completion
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, fit_problem, outcome, remember_fit
from lurking.learn.loop import Climber, Status, rule_of
from lurking.learn.options import AUTO, FitOptions
from lurking.learn.starts import climb_from, starting_points
from lurking.models.prior import Prior, prior_of_every_structure
from lurking.runtime.checks import check_time_limit, check_whole
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import Seed, seed_sequence
from lurking.search.constraints import Constraints
from lurking.search.expected import EXPECTED_SCORES, ExpectedScores
from lurking.search.greedy import ClimbRules, climb
from lurking.search.structures import arranged_constraints, moved, whole_start
from lurking.types import FloatArray

SLACK = 100.0
"""A gain counts when it is larger than so many times what `tol` lets a fit miss."""


@dataclass(frozen=True)
class Round:
    """One structure that was fitted.

    `expected` is what the best structure before promised, its score plus the expected gain; `score` what this one has;
    `is_kept` says whether it became the best.
    """

    dag: Dag
    expected: float
    score: float
    is_kept: bool


@dataclass(frozen=True)
class StructuralEm:
    """Outcome of structural EM.

    Attributes
    ----------
    best : the structure of highest score that was fitted, with its hidden variables.
    score : its score on the observed data; for bic, cs and vb what `lurking.score` gives, or more where the search came
        to a better mode; for "map" the penalised likelihood, the objective of the fit.
    scored_by : name of the score.
    fit : the fit behind the score.
    history : all structures that were fitted, in order.
    violations : how many of them scored less than the round before had promised.
    n_evaluated : families that were counted and scored on expected counts.
    status : why the search ended.
    """

    best: Dag
    score: float
    scored_by: str
    fit: Fit = field(repr=False)
    history: tuple[Round, ...] = field(repr=False)
    violations: int
    n_evaluated: int
    status: Status

    def __str__(self) -> str:
        return (
            f"{self.best}\n{self.scored_by} = {self.score:.4f}, {len(self.history)} structures fitted, "
            f"{self.n_evaluated} families scored, {self.violations} below their expected score; {self.status.sentence}"
        )


def structural_em(
    table: Any,
    start: Dag | str | Sequence[Dag | str],
    *,
    score: str = "vb",
    prior: Prior | float = 1.0,
    constraints: Constraints | None = None,
    max_rounds: int = 50,
    restarts: int | str = AUTO,
    patience: int = 10,
    perturbations: int = 20,
    prune: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-8,
    seed: Seed = 0,
    time_limit: float | None = None,
    stop: StopFlag | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> StructuralEm:
    """Search structures over the columns of the table, whose cells may be empty, and the hidden variables of `start`.

    What a row leaves open falls into independent components, whose joint states are held in memory. A structure that is
    too large to be fitted is passed over; when the best one leaves too much open, the search ends there (BUDGET).

    Parameters
    ----------
    table : a Table, a frame, an array or the path of a file.
    start : the structure to begin with, or its text, or several, of which the one that ends highest is returned.
        Columns that it does not name are added without arcs. From a hidden variable without children none will ever be
        added: its posterior is the same in every row.
    score : "vb", "cs", "bic", or "map" (the penalised likelihood, for which Friedman's inequality is a theorem).
    prior : λ of every cell, `Prior.symmetric`, `.jeffreys` or `.bdeu`.
    constraints : what structures may be, over all variables (`Constraints.from_options`).
    max_rounds : structures that are fitted at most, from each start; to fit the best one with all starts once more, at
        the end of a search, does not count.
    restarts : starts of the first fit and of the last one, as in `lurking.fit`; a fit in between goes on from the
        expected counts. If the last one finds a fit by which the best structure scores higher, the search goes on
        from there.
    patience : steps of a climb without a new best before it ends; 0 is plain hill climbing.
    perturbations : further climbs of every round, from its best structure with a neighbourhood taken apart.
    prune, max_iter, tol : as in `lurking.fit`.
    time_limit : seconds after which no further round begins.
    workers : threads; they never change a result.
    """
    if score not in EXPECTED_SCORES:
        raise UnknownNameError("score of structural EM", score, EXPECTED_SCORES)
    time_limit = check_time_limit(time_limit)
    data = as_table(table)
    if score == "bic" and not data.n > 0.0:
        raise UndefinedScore("bic is undefined on no data (n = 0): its penalty is d/2 · ln n; use cs, vb or map")
    starts = list(start) if isinstance(start, Sequence) and not isinstance(start, str) else [as_dag(start, "start")]
    if not starts:
        raise OptionError("start is empty; give at least one structure")
    flag = stop or StopFlag()
    several = len(starts) > 1
    fits = FitOptions(
        restarts=restarts,
        max_iter=max_iter,
        tol=tol,
        seed=seed_sequence(seed) if isinstance(seed, np.random.Generator) else seed,
        workers=1 if several else workers,
        stop=flag,
        keep_interrupted=True,
    )
    rules = _Rules(
        score=score,
        prior=prior_of_every_structure(prior),
        prune=prune,
        fits=fits,
        max_rounds=check_whole("max_rounds", max_rounds, 1),
        patience=check_whole("patience", patience, 0),
        perturbations=check_whole("perturbations", perturbations, 0),
        deadline=math.inf if time_limit is None else time.monotonic() + time_limit,
        progress=Silent() if several or progress is None else progress,
    )
    runs = [_Run(data, whole_start(dag, data), constraints, rules) for dag in starts]
    meter = progress if several and progress is not None else Silent()
    best = _best_of(runs, workers if several else 1, flag, meter)
    return replace(best, status=Status.INTERRUPTED) if flag.is_set else best


def _best_of(runs: Sequence[_Run], workers: int | None, stop: StopFlag, progress: Progress) -> StructuralEm:
    """Return what the run that ends highest ends at."""
    progress.begin("starts", len(runs))
    try:
        found = map_in_order(_Run.run, runs, workers=workers, stop=stop, done=progress.update)
    finally:
        progress.end()
    made = [result for result in found if result is not None]
    if not made:
        raise KeyboardInterrupt
    return max(made, key=lambda result: result.score)


@dataclass(frozen=True)
class _Rules:
    """What all runs share."""

    score: str
    prior: Prior
    prune: bool
    fits: FitOptions
    max_rounds: int
    patience: int
    perturbations: int
    deadline: float
    progress: Progress

    @property
    def method(self) -> str:
        """The fit that the completion comes from and the score is read off."""
        return "vb" if self.score == "vb" else "map"


@dataclass(frozen=True)
class _State:
    """A fitted structure; `is_fresh` when the fit had all the starts that `lurking.score` has."""

    dag: Dag
    fit: Fit
    score: float
    is_fresh: bool


@final
class _Run:
    """Structural EM from one start."""

    def __init__(self, table: Table, start: Dag, constraints: Constraints | None, rules: _Rules) -> None:
        self.table, self.start, self.rules = table, start, rules
        self.constraints = arranged_constraints(constraints, start)
        self.constraints.check(start)
        self.slack = SLACK * rules.fits.tol * max(table.n, 1.0)
        self.history: list[Round] = []
        self.n_evaluated = 0
        self.status: Status | None = None

    def run(self) -> StructuralEm | None:
        """Return the outcome; None when an interrupt came before the start was fitted."""
        state: _State | None = None
        self.rules.progress.begin("structures", self.rules.max_rounds)
        try:
            state = self.fitted(self.start, None)
            self.note(state, state.score, True)
            while self.status is None:
                state = self.advanced(state)
        except KeyboardInterrupt:
            self.rules.fits.stop.set()
            self.status = Status.INTERRUPTED
        finally:
            self.rules.progress.end()
        if state is None:
            return None
        violations = sum(entry.score < entry.expected - self.slack for entry in self.history)
        return StructuralEm(
            best=state.dag,
            score=state.score,
            scored_by=self.rules.score,
            fit=state.fit,
            history=tuple(self.history),
            violations=violations,
            n_evaluated=self.n_evaluated,
            status=self.status,
        )

    def advanced(self, state: _State) -> _State:
        """Do one round: complete the data, climb, fit; set `status` when it was the last one."""
        if self.is_over():
            return state
        try:
            scorer = self.scorer(state)
        except TooLarge:
            if len(self.history) == 1:
                raise
            self.status = Status.BUDGET
            return state
        left = self.rules.deadline - time.monotonic()
        climbing = ClimbRules(
            patience=self.rules.patience,
            restarts=self.rules.perturbations,
            seed=self.rules.fits.seed,
            time_limit=None if math.isinf(left) else max(left, 1e-3),
            workers=self.rules.fits.workers,
            stop=self.rules.fits.stop,
        )
        found = climb(scorer, state.dag, self.constraints, climbing)
        # Where the whole way does not keep what it promised, its first step may.
        first = [moved(state.dag, found.history[0].move)] if found.history else []
        for dag in dict.fromkeys([found.best, *first]):
            if self.is_over():
                break
            expected = expected_gain(scorer, state.dag, dag, self.rules.prune)
            if not expected > self.slack:
                continue
            try:
                new = self.fitted(dag, scorer.potentials(dag))
            except TooLarge:
                continue
            is_better = new.score > state.score + self.slack
            self.note(new, state.score + expected, is_better)
            if is_better:
                self.n_evaluated += scorer.n_evaluated
                return new
        self.n_evaluated += scorer.n_evaluated
        if self.is_over():
            return state
        return self.refreshed(state)

    def refreshed(self, state: _State) -> _State:
        """Fit the structure at the end of a search with all starts; without a higher score the search is over."""
        if not state.is_fresh:
            other = self.fitted(state.dag, None)
            better = other if other.score >= state.score else replace(state, is_fresh=True)
            if other.score > state.score + self.slack:
                return better
            state = better
        self.status = Status.LOCAL_OPTIMUM
        return state

    def fitted(self, dag: Dag, warm: dict[str, FloatArray] | None) -> _State:
        """Fit a structure, from the potentials {node: table[l, k]} of an M step or from as many starts as asked for."""
        rules = self.rules
        problem = Problem(dag, self.table, rules.prior, prune=rules.prune)
        options = rules.fits if warm is None else replace(rules.fits, restarts=1)
        if warm is None:
            fit = fit_problem(problem, rules.method, options)
        else:
            fit = _fit_from(problem, rules.method, options, {name: warm[name] for name in problem.layout.nodes})
            remember_fit(problem, options, fit)
        if rules.score == "map":
            return _State(dag, fit, fit.objective, warm is None)
        return _State(dag, fit, evaluate(problem, [rules.score], options, {})[rules.score].log_z, warm is None)

    def scorer(self, state: _State) -> ExpectedScores:
        """Return the scores of families on the data completed by a fit."""
        return ExpectedScores(completion_of(state.fit), self.rules.score, self.rules.prior)

    def note(self, state: _State, expected: float, is_kept: bool) -> None:
        """Keep a round in the history."""
        self.history.append(Round(state.dag, expected, state.score, is_kept))
        self.rules.progress.update(len(self.history))

    def is_over(self) -> bool:
        """Whether the search must end, and why."""
        if self.rules.fits.stop.is_set:
            self.status = Status.INTERRUPTED
        elif time.monotonic() >= self.rules.deadline:
            self.status = Status.TIME_LIMIT
        elif len(self.history) >= self.rules.max_rounds:
            self.status = Status.BUDGET
        return self.status is not None


def completion_of(fit: Fit) -> Completion:
    """Return the posterior of a fit over everything that the rows leave unobserved, hidden variables included."""
    problem = fit.problem
    layout, _ = problem.full_pseudo
    means = np.log(fit.network.theta)
    patterns = problem.table.patterns(problem.full_dag.observed)
    counted = patterns.weights > 0.0
    codes = node_codes(layout, patterns.codes[counted])
    potentials = problem.unpruned(fit.potentials, means)
    return Completion(layout, potentials, means, codes, patterns.weights[counted], problem.prune)


def expected_gain(scorer: ExpectedScores, old: Dag, new: Dag, prune: bool = True) -> float:
    """Return how much higher the expected score of `new` is.

    With `prune` the true scores leave out *barren* hidden variables, those without observed descendant. Those that are
    barren in both structures are left out here too. One that is barren in a single structure has in the posterior q of
    the completion an entropy that the true score of that structure lacks. Of the old one it is H(h | parents), of the
    new one at most that, so there max_θ Σ N ln θ stands for the family, without the prior or penalty that a true score
    has of nothing left out. So a round keeps Friedman's inequality where it makes hidden variables barren as well.
    """
    barren = {dag: set(dag.barren) if prune else set() for dag in (old, new)}
    place = {name: k for k, name in enumerate(scorer.variables)}

    def family(dag: Dag, name: str) -> float:
        parents = tuple(sorted(place[parent] for parent in dag.parents(name)))
        if name in barren[dag]:
            return scorer.best_log_likelihood(place[name], parents)
        return scorer.score(place[name], parents)

    left_out = barren[old] & barren[new]
    return math.fsum(family(new, name) - family(old, name) for name in old.nodes if name not in left_out)


def _fit_from(problem: Problem, method: str, options: FitOptions, potentials: dict[str, FloatArray]) -> Fit:
    """Return the fit that a climb from the given potentials ends at."""
    problem.watch(options.progress, options.workers)
    climber = Climber(problem.engine, problem.pseudo, rule_of(method), problem.n)
    starts = starting_points(problem, options, 1)
    starts[0] = problem.layout.join(potentials, "potentials")
    climbs = climb_from(climber, problem, starts, options, options.climb)
    if not climbs:
        raise KeyboardInterrupt
    fit = outcome(problem, method, options, climber, climbs)
    return replace(fit, status=Status.INTERRUPTED) if options.stop.is_set else fit
