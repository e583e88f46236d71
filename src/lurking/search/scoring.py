"""Scoring many structures on the same rows: fits of small ones together, the rest structure by structure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from lurking.data.table import Table
from lurking.errors import LurkingError, TooLarge, UndefinedScore
from lurking.evidence.base import Evidence
from lurking.evidence.evaluation import chosen_scores, evaluate
from lurking.evidence.limits import refuse_inapplicable
from lurking.graph.dag import Dag
from lurking.graph.model_class import without_idle_hidden
from lurking.inference.binding import shared_patterns
from lurking.inference.dimension.identifiability import dimension_if_cheap
from lurking.inference.problem import Problem
from lurking.learn.degenerate import StateIssue
from lurking.learn.fit import fit_problem, has_fit
from lurking.learn.loop import METHODS
from lurking.learn.options import FitOptions
from lurking.learn.together import can_fit_together, fit_together, is_small
from lurking.models.layout import Layout
from lurking.models.prior import Prior
from lurking.models.ties import restricted
from lurking.runtime.executor import map_in_order

HELD = 1 << 27
"""Bytes of compiled problems held at once, about."""
WINDOW = 256
"""Problems held at once at most; fewer than `LEAST_WINDOW` are not worth fitting together."""
LEAST_WINDOW = 8
SHORT_WINDOW = 32
"""Problems at most when each needs several fits: an interrupt loses those that have some but not all of theirs."""
VECTORS = 8  # flat vectors of a compiled problem beside one per start
BYTES_PER_CELL = 32  # of the rows of a compiled problem: codes, choices, slots


@dataclass(frozen=True)
class Row:
    """One model of a comparison with all its scores."""

    name: str
    dag: Dag
    dimension: int
    pruned_dimension: int
    """The same without hidden variables that have no observed descendant, whatever `prune` says."""
    evidences: Mapping[str, Evidence]
    layout: Layout | None = field(default=None, repr=False, compare=False)
    refused: Mapping[str, LurkingError] = field(default_factory=dict, repr=False, compare=False)
    """Scores after the first that have no value for the model, and why."""
    issues: tuple[StateIssue, ...] = field(default=(), repr=False, compare=False)
    """Empty and duplicate hidden states of the fit behind the first score that is read off one."""

    @cached_property
    def effective_dimension(self) -> int | None:
        """The effective dimension where it costs next to nothing, else None; computed on first use."""
        return None if self.layout is None else dimension_if_cheap(self.layout)

    @property
    def is_settled(self) -> bool:
        """False if the starts of some fit behind the scores do not agree on the best."""
        return all(evidence.is_settled is not False for evidence in self.evidences.values())

    @property
    def starts_in_words(self) -> str:
        """How many starts found the best fit, of the fits behind the scores that with the fewest, for a table.

        A dash stands for no fit, or one of complete data, which has a single best.
        """
        spreads = [e.starts for e in self.evidences.values() if e.starts is not None and e.starts.enough > 1]
        if not spreads:
            return "-"
        least = min(spreads, key=lambda spread: spread.n_at_best)
        return f"{least.n_at_best} of {len(least.objectives)}" + ("" if least.is_settled else ", not settled")

    @property
    def effective_in_words(self) -> str:
        """The effective dimension for a table, a question mark where it is not known."""
        return "?" if self.effective_dimension is None else str(self.effective_dimension)

    @property
    def is_deficient(self) -> bool:
        """Whether the effective dimension is known to be below d."""
        return self.effective_dimension is not None and self.effective_dimension < self.dimension


@dataclass(frozen=True)
class Refusal:
    """One model of a comparison that has no scores, and why."""

    name: str
    error: LurkingError


@dataclass(frozen=True)
class Scoring:
    """How structures are scored: the data, the scores, and the options of problems, fits and scores."""

    table: Table
    scores: tuple[str, ...]
    of_problem: Mapping[str, Any]
    options: FitOptions
    own: Mapping[str, Any]
    workers: int | None
    executor: Executor | None
    in_blocks: bool
    """Whether the rows are taken block by block; threads work on the blocks then, not across structures."""

    def rows(self, names: Sequence[str], dags: Sequence[Dag], done: Callable[[int], None]) -> list[Row | Refusal]:
        """Return a row for every structure, or why it was refused; after an interrupt those finished, in order.

        Structures that are equal up to the names of hidden variables, and without idle ones, are scored once, so that
        copies share one value.
        """
        first = self.first_of_equals(names, dags)
        places = [k for k, name in enumerate(names) if first[name] == name]
        made = self._different_rows([names[k] for k in places], [dags[k] for k in places], done)
        found = {row.name: row for row in made}
        pairs = [(name, dag, found[first[name]]) for name, dag in zip(names, dags, strict=True) if first[name] in found]
        if len(pairs) > len(made):
            done(len(pairs))
        return [row if row.name == name else copied(row, name, dag) for name, dag, row in pairs]

    def first_of_equals(self, names: Sequence[str], dags: Sequence[Dag]) -> dict[str, str]:
        """Return {model: the first one of its structure}; each is its own where names of hidden variables matter.

        Idle hidden variables count only where they are not pruned, and change bounds.
        """
        prior = Prior.of(self.of_problem.get("prior", 1.0))
        if self.of_problem.get("tied") or self.options.init is not None or not prior.is_exchangeable:
            return {name: name for name in names}
        first: dict[Dag, str] = {}
        is_pruned = self.of_problem.get("prune", True)
        kept = [without_idle_hidden(dag) if is_pruned else dag for dag in dags]
        return {name: first.setdefault(dag.canonical(), name) for name, dag in zip(names, kept, strict=True)}

    def _different_rows(
        self, names: Sequence[str], dags: Sequence[Dag], done: Callable[[int], None]
    ) -> list[Row | Refusal]:
        candidates = [_Candidate(self, name, dag) for name, dag in zip(names, dags, strict=True)]
        methods = self._methods_together()
        window = self._window(dags, methods) if methods else 0
        if window < LEAST_WINDOW:
            return self._each(candidates, done)
        result: list[Row | Refusal] = []
        for begin in range(0, len(candidates), window):
            some = candidates[begin : begin + window]
            self._fit_and_score(some, methods, partial(_after, done, begin))
            result += [candidate.result for candidate in some if candidate.result is not None]
            if self.options.stop.is_set:
                break
        return result

    def _fit_and_score(self, some: Sequence[_Candidate], methods: Sequence[str], done: Callable[[int], None]) -> None:
        """Fit some structures together and score each as soon as its last fit is there; then do what is left."""
        # The largest first: while threads climb on those, the many small ones are compiled.
        ordered = sorted(some, key=lambda candidate: -len(candidate.dag.edges))
        owner: dict[int, _Candidate] = {}
        n_scored = itertools.count(1)

        def score(problem: Problem) -> None:
            if owner[id(problem)].is_fitted(methods):
                owner[id(problem)].score()
                done(next(n_scored))

        for method in methods:
            if not self.options.stop.is_set:
                problems = _problems(ordered, owner, self.options)
                fit_together(problems, method, self.options, self.workers, self.executor, score)
        left = [candidate for candidate in some if candidate.result is None]
        if not self.options.stop.is_set:
            self._each(left, partial(_after, done, len(some) - len(left)))
            return
        for candidate in left:
            if candidate.is_fitted(methods):
                candidate.score()

    @property
    def is_read_off_fits(self) -> bool:
        """True if no score needs anything else than one fit."""
        return len(self.methods()) == len(self.scores)

    def methods(self) -> list[str]:
        """Return the method of the fit behind each score that is read off one."""
        methods = [score.fit_of(self.own) for score in chosen_scores(self.scores, self.own)]
        return [method for method in methods if isinstance(method, str) and method in METHODS]

    def _methods_together(self) -> list[str]:
        """Return the methods of the fits that the scores are read off; none when the scores need anything else."""
        can = can_fit_together(self.options) and not self.in_blocks and self.is_read_off_fits
        return list(dict.fromkeys(self.methods())) if can else []

    def _window(self, dags: Sequence[Dag], methods: Sequence[str]) -> int:
        """Return how many problems can be held at once, judged by the one with the most arrows."""
        largest = max(dags, key=lambda dag: len(dag.edges))
        cells = max(1, len(shared_patterns(largest, self.table))) * len(largest.nodes)
        cardinalities = {name: self.table[name].n_states for name in largest.observed}
        vectors = Layout(largest, {**cardinalities, **largest.hidden}).size * (self.options.first_starts + VECTORS)
        most = WINDOW if len(methods) == 1 else SHORT_WINDOW
        return min(most, HELD // (cells * BYTES_PER_CELL + 8 * vectors))

    def _each(self, some: Sequence[_Candidate], done: Callable[[int], None]) -> list[Row | Refusal]:
        """Score structure by structure, on threads; those of a table in blocks work on its blocks instead."""
        workers, executor = (1, None) if self.in_blocks else (self.workers, self.executor)
        return map_in_order(
            _Candidate.score, some, workers=workers, executor=executor, stop=self.options.stop, done=done
        )


def copied(row: Row | Refusal, name: str, dag: Dag) -> Row | Refusal:
    """Return the row of an equal structure for another one, without its issues, which name its hidden variables."""
    return replace(row, name=name, dag=dag, issues=()) if isinstance(row, Row) else replace(row, name=name)


def _pruned_dimension(problem: Problem) -> int:
    """Return the number of free parameters without barren hidden variables, also where the problem has them."""
    kept = problem.dag.pruned()
    if kept is problem.dag:
        return problem.dimension
    return Layout(kept, problem.cardinalities, restricted(problem.tied, kept.nodes), problem.families).dimension


def _after(done: Callable[[int], None], before: int, count: int) -> None:
    """Tell `done` a count that begins after `before` others."""
    done(before + count)


class _Candidate:
    """One structure to be scored; its compiled problem is held from the first use until it is scored."""

    def __init__(self, scoring: Scoring, name: str, dag: Dag) -> None:
        self.scoring, self.name, self.dag = scoring, name, dag
        self.result: Row | Refusal | None = None

    @cached_property
    def problem(self) -> Problem:
        return Problem(self.dag, self.scoring.table, **self.scoring.of_problem)

    def is_fitted(self, methods: Sequence[str]) -> bool:
        problem = self.__dict__.get("problem")
        return problem is not None and all(has_fit(problem, method, self.scoring.options) for method in methods)

    def score(self) -> Row | Refusal:
        """Return the row, or why there is none, and keep it as `result`."""
        scoring = self.scoring
        try:
            problem = self.problem
            refused: dict[str, LurkingError] = {}
            found = evaluate(problem, scoring.scores, scoring.options, scoring.own, refused)
            evidences = self._possible(found, refused)
            dimensions = problem.dimension, _pruned_dimension(problem)
            issues = self._issues(problem)
            self.result = Row(self.name, problem.full_dag, *dimensions, evidences, problem.layout, refused, issues)
        except (TooLarge, UndefinedScore) as refusal:
            self.result = Refusal(self.name, refusal)
        self.forget()
        return self.result

    def _possible(self, found: dict[str, Evidence], refused: dict[str, LurkingError]) -> dict[str, Evidence]:
        """Return the evidences that may be right; the others go to `refused`, but the first score must have one."""
        refuse_inapplicable(found[self.scoring.scores[0]])
        for name, evidence in found.items():
            try:
                refuse_inapplicable(evidence)
            except UndefinedScore as refusal:
                refused[name] = refusal
        return {name: evidence for name, evidence in found.items() if name not in refused}

    def _issues(self, problem: Problem) -> tuple[StateIssue, ...]:
        """Return the doubtful hidden states of the first fit that was made for a score."""
        made = [method for method in self.scoring.methods() if has_fit(problem, method, self.scoring.options)]
        if not made or not problem.dag.hidden:
            return ()
        fit = fit_problem(problem, made[0], self.scoring.options)
        return tuple(issue for issue in fit.issues if issue.kind != "unconnected")

    def forget(self) -> None:
        """Let go of the compiled problem."""
        self.__dict__.pop("problem", None)


def _problems(candidates: Iterable[_Candidate], owner: dict[int, _Candidate], options: FitOptions) -> Iterator[Problem]:
    """Yield the small problems, noting whose they are; the others are not held and are scored on their own."""
    for candidate in candidates:
        try:
            problem = candidate.problem
            small = is_small(problem, options)
        except TooLarge:
            small = False
        if small:
            owner[id(problem)] = candidate
            yield problem
        else:
            candidate.forget()
