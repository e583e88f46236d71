"""`lurking.search` and `lurking.edge_posterior`: structures learnt from data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lurking.data.frames import pandas_frame
from lurking.data.table import Table, as_table
from lurking.errors import OptionError, StructureError, UnknownNameError
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.graph.equivalence import Cpdag, cpdag
from lurking.inference.problem import check_columns
from lurking.learn.loop import Status
from lurking.models.discrete.prior import Prior
from lurking.runtime.checks import check_whole, is_number
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import Seed, seed_sequence
from lurking.runtime.store import Store
from lurking.search.constraints import Arcs, Constraints
from lurking.search.contenders import Invented, Trial
from lurking.search.exhaustive import edge_probabilities, optimum
from lurking.search.families import FamilyScorer, FamilyScores
from lurking.search.greedy import ClimbRules, Searched, Step, climb
from lurking.search.hidden import HiddenSearch, check_room, checked_limit, room_for
from lurking.search.posterior import StructurePosterior
from lurking.search.trees import tree
from lurking.types import FloatArray, Frame, read_only

METHODS = {"tabu": {"restarts": 100, "patience": 10}, "greedy": {"restarts": 0, "patience": 0}, "exact": {}}
"""The methods with their default restarts and patience."""


@dataclass(frozen=True)
class SearchResult:
    """Outcome of `search`.

    Attributes
    ----------
    best : the structure with the highest score that was met.
    score : its score, on the scale of ln p(data | structure), every constant kept; with hidden variables or empty
        cells the evidence, exact or sampled.
    scored_by : name of the score.
    status : why the search ended; OPTIMUM is the only one that promises that nothing is better.
    history : every move with the score after it, empty for method="exact"; with hidden variables or empty cells every
        structure that was judged.
    n_evaluated : number of families that were scored; with hidden variables or empty cells structures that were fitted.
    evidence : `score` with its standard error and kind; None in a search on complete columns alone.
    posterior : over the structures that were judged, by exact or sampled evidence; None likewise.
    """

    best: Dag
    score: float
    scored_by: str
    status: Status
    history: tuple[Step, ...] | tuple[Trial, ...] = field(repr=False)
    n_evaluated: int
    evidence: Evidence | None = None
    posterior: StructurePosterior | None = field(default=None, repr=False)

    @cached_property
    def cpdag(self) -> Cpdag:
        """The equivalence class of the best structure: arcs that the whole class shares, lines for the others."""
        return cpdag(self.best)

    def __str__(self) -> str:
        if self.evidence is not None:
            return f"{self.best}\n{self.evidence}; structures judged: {len(self.history)}; {self.status.sentence}"
        return (
            f"{self.best}\n{self.scored_by} = {self.score:.4f}, {self.n_evaluated} families scored, "
            f"{len(self.history)} moves; {self.status.sentence}"
        )


@dataclass(frozen=True, eq=False)
class EdgePosterior:
    """Posterior probabilities of arcs; `probabilities[x, y]` (p, p) is that of variables[x] → variables[y]."""

    variables: tuple[str, ...]
    probabilities: FloatArray = field(repr=False)
    over: str

    def probability(self, parent: str, child: str) -> float:
        """Return the probability of the arc parent → child."""
        for name in (parent, child):
            if name not in self.variables:
                raise UnknownNameError("variable", name, self.variables)
        return float(self.probabilities[self.variables.index(parent), self.variables.index(child)])

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame with one row per ordered pair, most probable first."""
        pairs = [(x, y) for x in range(len(self.variables)) for y in range(len(self.variables)) if x != y]
        pairs.sort(key=lambda pair: -self.probabilities[pair])
        return pandas_frame(
            {
                "parent": [self.variables[x] for x, _ in pairs],
                "child": [self.variables[y] for _, y in pairs],
                "probability": [float(self.probabilities[pair]) for pair in pairs],
            }
        )


def search(
    table: Any,
    hidden: int | str = 0,
    score: str | None = None,
    *,
    prior: Prior | float | None = None,
    max_parents: int | None = None,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Sequence[str]] = (),
    method: str = "tabu",
    start: Dag | str | None = None,
    restarts: int | None = None,
    patience: int | None = None,
    seed: Seed = 0,
    time_limit: float | None = None,
    workers: int | None = None,
    stop: StopFlag | None = None,
    progress: Progress | None = None,
    max_states: int = 8,
    target: float = 0.3,
    store: Store | None = None,
) -> SearchResult:
    """Find the structure of highest score, with hidden variables if the evidence speaks for them.

    Parameters
    ----------
    table : a Table, a pandas/polars/Arrow frame, a 2-d array, or the path of a file.
    hidden : the most hidden variables that may be invented; "auto" is 3, or fewer where the data cannot carry them.
    score : "bdeu" (`prior` is the equivalent sample size, 1 by default), "bd" (`prior` is the pseudo-count of every
        cell, 1 by default, the K2 score) or "bic" (no prior). A Prior.symmetric, .jeffreys or .bdeu may be given. By
        default "bdeu" on complete columns alone, and "bd" with hidden variables or empty cells, which need a prior.
    max_parents : the most parents of a variable; None for no limit.
    required, forbidden : arcs as (parent, child) pairs or as text, "a -> b c".
    tiers : lists of names; no arc leads from a later list to an earlier one.
    method : "tabu", "greedy" (plain hill climbing), or "exact" (the best of all structures, up to about 20 variables).
    start : "empty" (the required arcs alone; the default), "tree" (Chow & Liu's), or a structure.
    restarts : climbs from perturbed best structures; 100 for "tabu", 0 for "greedy".
    patience : steps without a new best before a climb ends; 10 for "tabu", 0 for "greedy".
    time_limit : seconds after which the best structure so far is returned.
    workers : threads; they never change a result.
    max_states, target, store : with hidden variables or empty cells: the most states of a hidden variable, the
        standard error of sampled evidence to go on for, and where evidence is kept to be found again.
    """
    most = checked_limit(hidden)
    if method not in METHODS:
        raise UnknownNameError("search method", method, tuple(METHODS))
    own = {"start": start, "restarts": restarts, "patience": patience, "time_limit": time_limit}
    if method == "exact":
        for name, value in own.items():
            if value is not None:
                raise OptionError(f"{name} is {value!r}, but method='exact' considers all structures; leave it out")
    data = as_table(table)
    check_columns(Dag(data.columns), data)
    constraints = Constraints.from_options(
        data.columns, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents
    )
    has_unobserved = most != 0 or any(data[name].n_missing for name in data.columns)
    if has_unobserved:
        if method == "exact":
            raise OptionError("method is 'exact', which knows no hidden variables and no empty cells; use 'tabu'")
        counts = _counts(method, restarts, patience)
        rules = ClimbRules(counts["patience"], counts["restarts"], seed=seed_sequence(seed), workers=workers)
        work = HiddenSearch(
            data,
            room_for(data) if most is None else check_room(data, most),
            constraints,
            score or "bd",
            prior,
            rules,
            start,
            seed,
            check_whole("max_states", max_states, 2),
            target,
            _seconds(time_limit),
            stop,
            progress or Silent(),
            store,
        )
        return _invented(work.run())
    score = score or "bdeu"
    scorer = FamilyScores(data, score, prior)
    if method == "exact":
        return _result(optimum(scorer, constraints, stop, progress), score)
    rules = ClimbRules(
        **_counts(method, restarts, patience),
        time_limit=_seconds(time_limit),
        seed=seed_sequence(seed),
        workers=workers,
        stop=stop or StopFlag(),
        progress=progress or Silent(),
    )
    return _result(climb(scorer, _start(start, scorer, constraints, data), constraints, rules), score)


def edge_posterior(
    table: Any,
    score: str = "bdeu",
    *,
    prior: Prior | float | None = None,
    over: str = "orders",
    max_parents: int | None = None,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Sequence[str]] = (),
    workers: int | None = None,
    stop: StopFlag | None = None,
    progress: Progress | None = None,
) -> EdgePosterior:
    """Return the posterior probability of every arc, summed exactly over all structures of up to about 20 variables.

    With over="orders" the prior is uniform over orders of the variables and over the parent sets that agree with them,
    which makes the sum possible and favours structures that agree with many orders; over="structures" is uniform over
    structures and possible for at most five variables. Other options as in `search`.
    """
    data = as_table(table)
    scorer = FamilyScores(data, score, prior)
    constraints = Constraints.from_options(
        data.columns, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents
    )
    found = edge_probabilities(scorer, constraints, over, workers, stop, progress)
    return EdgePosterior(data.columns, read_only(np.ascontiguousarray(found)), over)


def _result(found: Searched, score: str) -> SearchResult:
    return SearchResult(found.best, found.score, score, found.status, found.history, found.n_evaluated)


def _invented(found: Invented) -> SearchResult:
    evidence = found.evidence
    return SearchResult(
        best=found.best,
        score=evidence.log_z,
        scored_by=evidence.method,
        status=found.status,
        history=found.history,
        n_evaluated=found.n_fitted,
        evidence=evidence,
        posterior=found.posterior,
    )


def _counts(method: str, restarts: int | None, patience: int | None) -> dict[str, int]:
    """Return restarts and patience, as given or as the method has them."""
    given = {"restarts": restarts, "patience": patience}
    return {
        name: METHODS[method][name] if value is None else check_whole(name, value, 0) for name, value in given.items()
    }


def _seconds(time_limit: float | None) -> float | None:
    if time_limit is not None and not (is_number(time_limit) and time_limit > 0):
        raise OptionError(f"time_limit is {time_limit!r}; it must be a number of seconds above 0, or None")
    return time_limit


def _start(start: Dag | str | None, scorer: FamilyScorer, constraints: Constraints, table: Table) -> Dag:
    """Return where to start: a structure over the columns of the table that keeps the constraints."""
    if start is None or start == "empty":
        names = table.columns
        return Dag(names, [(names[x], names[y]) for y, x in np.argwhere(constraints.required.T)])
    if start == "tree":
        return tree(scorer, constraints)
    dag = (Dag.parse(start) if isinstance(start, str) else start).bind(table.columns)
    strange = sorted(set(dag.nodes) - set(table.columns))
    if dag.hidden or strange:
        listed = ", ".join(map(repr, dag.hidden or strange))
        raise StructureError(
            f"the start has {listed}, which the data do not have; start from columns of the data, 'empty' or 'tree'"
        )
    dag = Dag(table.columns, dag.edges)
    constraints.check(dag)
    return dag
