"""Section 5: models with a hidden variable against the best one without, on data that have a hidden variable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from lurking.data.table import Table
from lurking.experiments.bench import Sampled, Task
from lurking.experiments.chickering1996.data import data_set
from lurking.experiments.chickering1996.scores import COLUMNS, VERSION, Bench, Protocol, Sampling, Scored
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.runtime.store import Key, digest_of
from lurking.search.api import search


@dataclass(frozen=True)
class Check:
    """One repeat: a generating model of its own and one data set.

    n, c : observed variables and hidden states of the generating model.
    scores : {states of a test model: its scores}.
    arcs, complete : the model without hidden variables that greedy search ends at: its arcs, and ln p(D|m).
    sampled : evidence of the test model that Laplace (over probabilities) selects, by sampling; None if not asked for.
    """

    n: int
    c: int
    scores: dict[int, Scored]
    arcs: int
    complete: float
    sampled: Sampled | None

    def selected(self, column: str) -> int:
        """Return the number of states with the highest score, the fewest of equal ones."""
        return max(self.scores, key=lambda states: (self.scores[states].values[column], -states))

    def gain(self, column: str) -> float:
        """Return Δm, ln p(D|hidden) − ln p(D|no hidden), with the first term by a score at its own best states."""
        return self.scores[self.selected(column)].values[column] - self.complete

    @property
    def sampled_gain(self) -> float | None:
        """Δm with sampled evidence for the test model that Laplace selects."""
        return None if self.sampled is None else self.sampled.log_z - self.complete

    @property
    def agreed(self) -> bool:
        """Whether all scores select the same number of states."""
        return len({self.selected(column) for column in COLUMNS}) == 1


def checks(
    bench: Bench,
    cases: tuple[tuple[int, int, int], ...],
    repeats: int,
    states: tuple[int, ...],
    protocol: Protocol,
    sampling: Sampling | None,
) -> tuple[Check, ...]:
    """Do section 5 for each (n, c, N): `repeats` generating models with one data set each; sampled for the first."""
    places = [(case, repeat) for case in cases for repeat in range(1, repeats + 1)]
    tables = [data_set(*case, protocol.seed, 0, repeat) for case, repeat in places]
    made = iter(bench.each("section 5, with", [bench.scoring(table, k, protocol) for table in tables for k in states]))
    curves = [{k: Scored(**next(made)) for k in states} for _ in tables]
    searches = [
        Task(
            Key(table.digest, "greedy", "bd", digest_of(VERSION), protocol.seed),
            partial(_searched, table, bench.stop),
            len(table.columns),
        )
        for table in tables
    ]
    complete = bench.each("section 5, without", searches)
    found = [
        Check(case[0], case[1], curve, own["arcs"], own["log_z"], None)
        for (case, _), curve, own in zip(places, curves, complete, strict=True)
    ]
    if sampling is None or not found:
        return tuple(found)
    first = [place for place, (case, _) in enumerate(places) if case == cases[0]]
    tasks = [bench.sampling(tables[k], found[k].selected(COLUMNS[0]), protocol, sampling) for k in first]
    for place, own in zip(first, bench.each("section 5, sampled", tasks), strict=True):
        found[place] = replace(found[place], sampled=Sampled(**own))
    return tuple(found)


def _searched(table: Table, stop: StopFlag) -> dict[str, float]:
    """Hill climbing from the empty graph with the BD score, α = 1 (Heckerman, Geiger & Chickering 1995)."""
    found = search(table, hidden=0, score="bd", prior=1.0, method="greedy", stop=stop)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return {"arcs": len(found.best.edges), "log_z": found.score}
