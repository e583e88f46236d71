"""Greedy search with any registered score: every neighbour is fitted and scored on the observed data itself.

It costs a fit for each structure, so it is for small spaces; it needs no score of families, and sees what expected
counts do not, such as the gain of the first arcs of a hidden variable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.evidence.api import split_options
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.evaluation import get_score
from lurking.graph.dag import Dag
from lurking.graph.moves import ArcSet, Move, MoveKind, arc_matrix
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.models.prior import Prior
from lurking.runtime.checks import check_time_limit, check_whole
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress, Silent
from lurking.search.constraints import Constraints
from lurking.search.greedy import LEAST_GAIN, Step
from lurking.search.scoring import Refusal, Row, Scoring
from lurking.search.structural_em import SLACK
from lurking.search.structures import arranged_constraints, moved, whole_start


@dataclass(frozen=True)
class DirectSearch:
    """Outcome of a direct search: the best structure met, its evidence, and how it was found.

    `n_scored` counts structures that were fitted, each once up to the names of hidden variables and order.
    """

    best: Dag
    evidence: Evidence
    history: tuple[Step, ...] = field(repr=False)
    n_scored: int
    status: Status

    @property
    def score(self) -> float:
        """Ln p(y|m) of the best structure by the score of the search, without ln S."""
        return self.evidence.log_z

    def __str__(self) -> str:
        return (
            f"{self.best}\n{self.evidence.method} = {self.score:.4f}, {self.n_scored} structures scored, "
            f"{len(self.history)} moves; {self.status.sentence}"
        )


def direct_search(
    table: Any,
    start: Dag | str,
    score: str = "vb",
    *,
    corrected: bool = False,
    constraints: Constraints | None = None,
    patience: int = 5,
    time_limit: float | None = None,
    workers: int | None = None,
    stop: StopFlag | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> DirectSearch:
    """Make the best single-arc move, hidden variables included, until none raises the score.

    Scores that come from fits must rise by more than `tol` lets a fit miss.

    Parameters
    ----------
    table : a Table, a frame, an array or the path of a file; cells may be empty.
    start : where to begin; the outcome never scores below it. Columns that it does not name are added without arcs.
    score : the name of any score, as in `lurking.score`.
    corrected : compare values with ln S, the number of equivalent modes, counted in.
    constraints : what structures may be, over all variables.
    patience : steps without a new best before the search ends, downhill if need be and never to a structure it has
        been at; 0 is plain hill climbing.
    time_limit : seconds after which no further step begins.
    options : those of `lurking.score`, such as prior, restarts, seed.
    """
    time_limit = check_time_limit(time_limit)
    searcher = DirectSearcher(
        table, score, corrected=corrected, workers=workers, stop=stop, progress=progress, **options
    )
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    return searcher.climb(start, constraints, patience=patience, deadline=deadline)


@final
class DirectSearcher:
    """Greedy searches on one table by one score; a structure is scored once, whichever search meets it first.

    The arguments are those of `direct_search`.
    """

    def __init__(
        self,
        table: Any,
        score: str = "vb",
        *,
        corrected: bool = False,
        workers: int | None = None,
        stop: StopFlag | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        get_score(score)
        self.table = as_table(table)
        self.stop, self.progress = stop or StopFlag(), progress or Silent()
        self._scored = _Scored(self.table, score, corrected, workers, self.stop, options)

    def values(self, dags: Sequence[Dag]) -> dict[Dag, float]:
        """Return {structure: value} of those that have a score, the highest first."""
        self._scored.add(list(dags), self.progress)
        known = {dag: self._scored.value(dag) for dag in dags if self._scored.evidence(dag) is not None}
        return dict(sorted(known.items(), key=lambda pair: -pair[1]))

    def climb(
        self,
        start: Dag | str,
        constraints: Constraints | None = None,
        *,
        patience: int = 5,
        deadline: float = np.inf,
    ) -> DirectSearch:
        """Return what hill climbing from one structure ends at; `deadline` is a time of `time.monotonic`."""
        check_whole("patience", patience, 0)
        begin = whole_start(start, self.table)
        rules = arranged_constraints(constraints, begin)
        rules.check(begin)
        return _climb(self._scored, begin, rules, patience, deadline, self.stop, self.progress)


def neighbours(dag: Dag, constraints: Constraints) -> Iterator[tuple[Move, Dag]]:
    """Yield all allowed moves with what they lead to: additions, deletions, reversals, each by parent and child."""
    names = constraints.variables
    have = arc_matrix(dag, names)
    arcs = ArcSet.from_matrix(have)
    has_room = have.sum(axis=0) < constraints.max_parents
    is_free = have & ~constraints.required
    can_add = arcs.can_add() & constraints.allowed & has_room[None, :]
    can_turn = is_free & constraints.allowed.T & has_room[:, None]
    xs, ys = np.nonzero(can_turn)
    can_turn[xs, ys] = arcs.can_reverse(xs, ys)
    for kind, which in ((MoveKind.ADD, can_add), (MoveKind.DELETE, is_free), (MoveKind.REVERSE, can_turn)):
        for x, y in np.argwhere(which).tolist():
            move = Move(kind, names[x], names[y])
            yield move, moved(dag, move)


def _climb(
    scored: _Scored,
    start: Dag,
    constraints: Constraints,
    patience: int,
    deadline: float,
    stop: StopFlag,
    progress: Progress,
) -> DirectSearch:
    scored.add([start], progress)
    first = scored.evidence(start)
    if first is None:
        raise scored.refusal(start)
    best, best_value = start, scored.value(start)
    current, waited = start, 0
    visited = {start.canonical()}
    history: list[Step] = []
    status = Status.LOCAL_OPTIMUM
    while True:
        if stop.is_set or time.monotonic() >= deadline:
            status = Status.INTERRUPTED if stop.is_set else Status.TIME_LIMIT
            break
        around = [(move, dag) for move, dag in neighbours(current, constraints) if dag.canonical() not in visited]
        scored.add([dag for _, dag in around], progress)
        around = [(move, dag) for move, dag in around if scored.evidence(dag) is not None]
        if not around:
            break
        # Equivalent moves gain the same but for rounding, which must not decide where the search goes.
        least = max(scored.value(dag) for _, dag in around) - LEAST_GAIN * abs(best_value)
        move, current = next(pair for pair in around if scored.value(pair[1]) >= least)
        is_gain = scored.value(current) > best_value + scored.slack(best, current)
        waited = 0 if is_gain else waited + 1
        if waited > patience:
            break
        visited.add(current.canonical())
        history.append(Step(move, scored.value(current), 0))
        if is_gain:
            best, best_value = current, scored.value(current)
    if stop.is_set:
        status = Status.INTERRUPTED
    evidence = scored.evidence(best)
    assert evidence is not None
    return DirectSearch(best, evidence, tuple(history), scored.n_scored, status)


@final
class _Scored:
    """Evidence of structures, found in batches and kept by canonical structure."""

    def __init__(
        self, table: Table, score: str, corrected: bool, workers: int | None, stop: StopFlag, options: dict[str, Any]
    ) -> None:
        self.table, self.score, self.corrected, self.workers = table, score, corrected, workers
        self.stop, self.options = stop, options
        self.known: dict[Dag, Row | Refusal] = {}
        self.scoring: Scoring | None = None

    @property
    def n_scored(self) -> int:
        return len(self.known)

    def add(self, dags: list[Dag], progress: Progress) -> None:
        """Score those of the structures that are not known yet; after an interrupt some may stay unknown."""
        new = {form: self.arranged(dag) for dag in dags if (form := dag.canonical()) not in self.known}
        if not new:
            return
        forms = list(new)
        names = [str(k) for k in range(len(forms))]
        scoring = self.scoring = self.scoring or self._scoring(dags[0])
        progress.begin("structures", len(forms))
        try:
            rows = scoring.rows(names, list(new.values()), progress.update)
        finally:
            progress.end()
        for row in rows:
            is_cut = isinstance(row, Row) and row.evidences[self.score].status is Status.INTERRUPTED
            if not is_cut or not self.known:
                self.known[forms[int(row.name)]] = row
        if not self.known:
            raise KeyboardInterrupt

    def arranged(self, dag: Dag) -> Dag:
        """Return the structure with parents in node order, where their order means nothing to the options.

        The random starts of a fit depend on this order, and so the value would depend on the way to the structure.
        """
        is_free = not self.options.get("tied") and self.options.get("init") is None
        if not is_free or not Prior.of(self.options.get("prior", 1.0)).is_exchangeable:
            return dag
        place = {name: k for k, name in enumerate(dag.nodes)}
        return Dag(dag.nodes, sorted(dag.edges, key=lambda pair: place[pair[0]]), dag.hidden)

    def evidence(self, dag: Dag) -> Evidence | None:
        """Return the evidence of a structure; None when it was refused or an interrupt came before it."""
        row = self.known.get(dag.canonical())
        return row.evidences[self.score] if isinstance(row, Row) else None

    def value(self, dag: Dag) -> float:
        """Return what structures are compared by."""
        evidence = self.evidence(dag)
        assert evidence is not None
        return evidence.corrected if self.corrected else evidence.log_z

    def slack(self, one: Dag, other: Dag) -> float:
        """Return the largest difference of two structures that is no gain: rounding, or what `tol` lets fits miss."""
        rounding = LEAST_GAIN * abs(self.value(one))
        kinds = [evidence.kind for dag in (one, other) if (evidence := self.evidence(dag)) is not None]
        if self.scoring is None or all(kind is Kind.EXACT for kind in kinds):
            return rounding
        return max(rounding, SLACK * self.scoring.options.tol * max(self.table.n, 1.0))

    def refusal(self, dag: Dag) -> Exception:
        """Return why a structure has no evidence."""
        row = self.known[dag.canonical()]
        assert isinstance(row, Refusal)
        return row.error

    def _scoring(self, dag: Dag) -> Scoring:
        of_problem, _, _ = split_options(self.options)
        in_blocks = Problem(dag, self.table, **of_problem).in_blocks
        inner = {"workers": self.workers if in_blocks else 1, "stop": self.stop, "keep_interrupted": True}
        of_problem, fit_options, own = split_options({**self.options, **inner})
        return Scoring(self.table, (self.score,), of_problem, fit_options, own, self.workers, None, in_blocks)
