"""`lurking.search` and `lurking.edge_posterior`: structures learnt from data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.errors import FractionalWeights, OptionError, StructureError, UnknownNameError
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag, as_dag
from lurking.graph.equivalence import Cpdag, cpdag
from lurking.graph.structure_priors import StructurePrior, StructurePriorOption
from lurking.inference.binding import check_columns
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.models.prior import BDeuPrior, Prior
from lurking.runtime.checks import check_standard_error, check_time_limit, check_whole
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import Seed, seed_sequence
from lurking.runtime.store import Store, opened
from lurking.search.averaging import Fitting
from lurking.search.clock import Clock
from lurking.search.constraints import Arcs, Constraints
from lurking.search.contenders import Invented, Trial, untried
from lurking.search.edges import EdgePosterior
from lurking.search.exhaustive import edge_probabilities, optimum
from lurking.search.families import FamilyScorer, FamilyScores, prior_of_score
from lurking.search.greedy import ClimbRules, Searched, Step, climb
from lurking.search.hidden import HiddenSearch, check_room, checked_limit, room_for, why_too_many
from lurking.search.judge import TARGET
from lurking.search.posterior import StructurePosterior
from lurking.search.silent_columns import SetAside
from lurking.search.suggestions import suggested_option
from lurking.search.trees import tree
from lurking.types import read_only

TABU = {"restarts": 100, "patience": 10}
TABU_WITH_HOLES = {"restarts": 20, "patience": 10}
"""The same within a round of structural EM, for tables with empty cells."""
METHODS = {"auto": TABU, "tabu": TABU, "greedy": {"restarts": 0, "patience": 0}, "exact": {}}
"""The methods with their default restarts and patience."""
FEW_COLUMNS = 8
"""Up to so many complete columns "auto" looks at all structures."""


@dataclass(frozen=True)
class SearchResult:
    """Outcome of `search`.

    Attributes
    ----------
    best : the structure with the highest score that was met; with hidden variables or empty cells the last one that
        was more probable than the one before by more than two standard errors of the difference, or had fewer hidden
        variables and was not behind by more, so that another one may be ahead of it within the errors: see `posterior`.
    score : its score, on the scale of ln p(data | structure), every constant kept; with hidden variables or empty
        cells the evidence, exact or sampled.
    scored_by : name of the score.
    status : why the search ended; OPTIMUM is the only one that promises that nothing is better.
    history : every move with the score after it, empty for method="exact"; with hidden variables or empty cells every
        structure that was judged.
    n_evaluated : number of families that were scored; with hidden variables or empty cells structures that were fitted.
    evidence : `score` with its standard error and kind; None in a search on complete columns alone.
    posterior : over the structures that were judged, by exact or sampled evidence, and predictions averaged over them;
        None likewise, and where `untried` says that nothing is known about hidden variables. Structures that no data
        can tell apart are one candidate.
    structure_prior : the p(m) behind it; None likewise.
    constraints : what structures were allowed to be.
    untried : why no structure with a hidden variable was evaluated in a search that may invent some, such as the time
        limit; None if one was, or if all were hopeless by a bound.
    suggestion : one line on `tiers` or `indicators` if the columns look ordered in time or like answers to questions;
        None if not, or if one of the two was given.
    """

    best: Dag
    score: float
    scored_by: str
    status: Status
    history: tuple[Step, ...] | tuple[Trial, ...] = field(repr=False)
    n_evaluated: int
    evidence: Evidence | None = None
    posterior: StructurePosterior | None = field(default=None, repr=False)
    structure_prior: StructurePrior | None = field(default=None, repr=False)
    constraints: Constraints | None = field(default=None, repr=False)
    untried: str | None = None
    suggestion: str | None = None

    @property
    def outdone(self) -> tuple[Trial, ...]:
        """Structures with a hidden variable that is not needed where tables may be summarised; see `Trial`."""
        return tuple(trial for trial in self.history if isinstance(trial, Trial) and trial.outdone_by is not None)

    @cached_property
    def cpdag(self) -> Cpdag:
        """The equivalence class of the best structure: arcs that the whole class shares, lines for the others.

        Arcs between columns that the constraints do not let turn are arcs here too, with all that follows from them.
        """
        return self.cpdag_of(self.best)

    def cpdag_of(self, dag: Dag) -> Cpdag:
        """Return the same for another structure that keeps the constraints, such as a candidate of the posterior."""
        return cpdag(dag, () if self.constraints is None else self.constraints.settled(dag))

    def __str__(self) -> str:
        lines = [str(self.best)]
        if self.evidence is not None:
            lines.append(f"{self.evidence}; structures judged: {len(self.history)}; {self.status.sentence}")
        else:
            lines.append(
                f"{self.scored_by} = {self.score:.4f}, {self.n_evaluated} families scored, "
                f"{len(self.history)} moves; {self.status.sentence}"
            )
        lines += [f"note: {note}" for note in (self.untried, self.suggestion) if note is not None]
        return "\n".join(lines)


def search(
    table: Any,
    hidden: int | str = 0,
    score: str | None = None,
    *,
    prior: Prior | float | None = None,
    structure_prior: StructurePriorOption | None = None,
    max_parents: int | None = None,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Sequence[str]] = (),
    indicators: bool = False,
    method: str = "auto",
    start: Dag | str | None = None,
    restarts: int | None = None,
    patience: int | None = None,
    seed: Seed = 0,
    time_limit: float | None = None,
    workers: int | None = None,
    stop: StopFlag | None = None,
    progress: Progress | None = None,
    max_states: int = 8,
    target: float = TARGET,
    store: Store | str | Path | None = None,
) -> SearchResult:
    """Find the structure of highest score, with hidden variables if the evidence speaks for them.

    Columns with fewer than two observed levels have no say in it and stay alone, unless an arc at them is required.

    Parameters
    ----------
    table : a Table, a pandas/polars/Arrow frame, a 2-d array, or the path of a file.
    hidden : the most hidden variables that may be invented; "auto" is 3, or fewer where the data cannot carry them.
    score : "bdeu" (`prior` is the equivalent sample size, 1 by default), "bd" (`prior` is the pseudo-count of every
        cell, 1 by default, the K2 score) or "bic" (no prior). A Prior.symmetric, .jeffreys or .bdeu may be given. By
        default "bdeu" on complete columns alone, and "bd" with hidden variables or empty cells, which need a prior.
    max_parents : the most parents of a variable, at least 1; None for no limit.
    required, forbidden : arcs as (parent, child) pairs or as text, "a -> b c".
    tiers : lists of names; nothing in a later list is a cause of what is in an earlier one, through hidden variables
        neither.
    method : "tabu", "greedy" (plain hill climbing), "exact" (the best of all structures, up to about 20 variables), or
        "auto": "exact" for up to 8 complete columns where no start, restarts or patience is given, else "tabu".
    start : "empty" (the required arcs alone; the default), "tree" (Chow & Liu's), or a structure.
    restarts, patience : climbs from perturbed best structures (100 for "tabu", with empty cells 20 in every round of
        structural EM, 0 for "greedy"), and steps without a new best before a climb ends (10 and 0).
    time_limit : seconds after which the best structure so far is returned.
    workers : threads; they never change a result.
    indicators, structure_prior, max_states, target, store : with hidden variables or empty cells. Whether columns are
        parents of nothing, so that hidden variables alone join them; p(m) as in `compare`, by default a factor 1/p for
        each hidden variable among the p columns with a say; the most states of a hidden variable; the standard error of
        sampled evidence to go on for; the path of a file, or a Store of `lurking.runtime.store`, where what was found
        is kept to be found again. Weights must be whole numbers there.
    """
    most = checked_limit(hidden)
    check_standard_error("target", target, TARGET)
    way = _Way(method, start, restarts, patience, time_limit)
    data = as_table(table)
    check_columns(Dag(data.columns), data)
    rules: dict[str, Any] = {"required": required, "forbidden": forbidden, "tiers": tiers, "max_parents": max_parents}
    constraints = Constraints.from_options(data.columns, **rules, indicators=indicators)
    climbing = way.rules(data, seed_sequence(seed), workers=workers, stop=stop, progress=progress)
    if most == 0 and data.is_complete:
        if structure_prior is not None:
            raise OptionError("structure_prior is for a search with hidden variables or empty cells; leave it out")
        found = _without_hidden(data, constraints, way, climbing, score or "bdeu", prior)
        return replace(found, suggestion=None if tiers else advice(data, may_invent=False))
    if method == "exact":
        raise OptionError("method is 'exact', which knows no hidden variables and no empty cells; use 'auto'")
    _check_weights(data)
    p_structure = None if structure_prior is None else StructurePrior.from_option(structure_prior)
    aside = SetAside.of(data, constraints, declared=False)
    with opened(store) as kept:
        work = HiddenSearch(
            aside.table,
            room_for(aside.table) if most is None else check_room(aside.table, most),
            aside.constraints,
            score or "bd",
            prior,
            climbing,
            aside.start(start),
            seed,
            aside.structure_prior(p_structure),
            check_whole("max_states", max_states, 2),
            target,
            kept,
            way.is_exact(aside.table),
        )
        invented = aside.invented(work.run(), work.checked_prior(), p_structure)
        outcome = _invented(invented, constraints, data, work, may_invent=most != 0)
        line = _more_hidden(outcome, work) if most is None else None
        may_advise = line is None and not (tiers or indicators)
        return replace(outcome, suggestion=advice(data, may_invent=most != 0) if may_advise else line)


def _more_hidden(outcome: SearchResult, work: HiddenSearch) -> str | None:
    """Return the line on `hidden` if the structure has as many hidden variables as "auto" invents, or None."""
    most = work.most_hidden
    if not most or len(outcome.best.hidden) < most or why_too_many(work.table, most + 1) is not None:
        return None
    return f"the structure has {most} hidden variables, the most that 'auto' invents; try hidden={most + 1}"


def _check_weights(table: Table) -> None:
    """Refuse fractions of rows, which have no hidden state to draw, before anything is searched."""
    if not table.has_integer_weights and (table.is_on_disk or not table.unique().has_integer_weights):
        raise FractionalWeights(
            "the weights are no whole numbers, and hidden variables and empty cells are judged by sampling whole rows; "
            "search complete columns with hidden=0, rank models of your own with lk.compare, or give whole numbers"
        )


@dataclass(frozen=True)
class _Way:
    """How the user wants structures over the columns to be searched."""

    method: str
    start: Dag | str | None
    restarts: int | None
    patience: int | None
    time_limit: float | None

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise UnknownNameError("search method", self.method, tuple(METHODS))
        check_time_limit(self.time_limit)
        if self.method == "exact":
            for name in ("start", "restarts", "patience", "time_limit"):
                if (value := getattr(self, name)) is not None:
                    raise OptionError(f"{name} is {value!r}, but method='exact' considers all structures; leave it out")

    def is_exact(self, table: Table) -> bool:
        """Whether all structures are looked at."""
        is_free = self.start is None and self.restarts is None and self.patience is None
        is_small = len(table.columns) <= FEW_COLUMNS and table.is_complete
        return self.method == "exact" or (self.method == "auto" and is_free and is_small)

    def rules(
        self,
        table: Table,
        seed: np.random.SeedSequence,
        workers: int | None,
        stop: StopFlag | None,
        progress: Progress | None,
    ) -> ClimbRules:
        """Return how to climb, where all structures are too many."""
        counts = {"restarts": self.restarts, "patience": self.patience}
        defaults = METHODS[self.method]
        if not table.is_complete and defaults is TABU:
            defaults = TABU_WITH_HOLES
        return ClimbRules(
            **{name: defaults.get(name, 0) if n is None else check_whole(name, n, 0) for name, n in counts.items()},
            time_limit=self.time_limit,
            seed=seed,
            workers=workers,
            stop=stop or StopFlag(),
            progress=progress or Silent(),
        )


def _without_hidden(
    data: Table, constraints: Constraints, way: _Way, rules: ClimbRules, score: str, prior: Prior | float | None
) -> SearchResult:
    """Return the outcome of a search on complete columns, those with one level set aside."""
    made = prior_of_score(score, prior)
    aside = SetAside.of(data, constraints, declared=isinstance(made, BDeuPrior))
    scorer = FamilyScores(aside.table, score, prior)
    found = _complete(scorer, aside.constraints, replace(way, start=aside.start(way.start)), rules, aside.table)
    outcome = aside.searched(found, made)
    told = (outcome.best, outcome.score, score, outcome.status, outcome.history, outcome.n_evaluated)
    return SearchResult(*told, constraints=constraints)


def _complete(scorer: FamilyScores, constraints: Constraints, way: _Way, rules: ClimbRules, table: Table) -> Searched:
    """Return the outcome of a search on complete columns; when the time ends an exact one, its start."""
    if not way.is_exact(table):
        return climb(scorer, _start(way.start, scorer, constraints, table), constraints, rules)
    with Clock(rules.time_limit, rules.stop) as clock:
        try:
            return optimum(scorer, constraints, clock.stop, rules.progress)
        except KeyboardInterrupt:
            if way.method == "exact":
                raise
            ending = clock.ending or Status.INTERRUPTED
            clock.stop.set()
            start = _start(None, scorer, constraints, table)
            return replace(climb(scorer, start, constraints, replace(rules, stop=clock.stop)), status=ending)


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
    structures and possible for at most five variables. A column with one level is in no structure that is summed, so
    that it changes no other arc, and its own arcs have probability 0. Other options as in `search`.
    """
    data = as_table(table)
    check_columns(Dag(data.columns), data)
    constraints = Constraints.from_options(
        data.columns, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents
    )
    aside = SetAside.of(data, constraints, declared=True)
    scorer = FamilyScores(aside.table, score, prior)
    found = edge_probabilities(scorer, aside.constraints, over, workers, stop, progress)
    return EdgePosterior(data.columns, read_only(aside.matrix(found)), over)


def advice(table: Table, *, may_invent: bool, for_command: bool = False) -> str | None:
    """Return the line on `tiers` or `indicators` for the columns of a table; see `suggested_option`."""
    levels = {name: table[name].levels for name in table.columns if table[name].is_categorical}
    return suggested_option(levels, may_invent=may_invent, for_command=for_command)


def _invented(
    found: Invented, constraints: Constraints, data: Table, work: HiddenSearch, *, may_invent: bool
) -> SearchResult:
    """Return the outcome with what predictions need: structures are fitted as the search was made.

    Probabilities among structures without hidden variables alone would say that there is none, so there is no posterior
    if no other was evaluated.
    """
    why = untried(found, work.most_hidden) if may_invent else None
    options = FitOptions(seed=work.seed, workers=1)
    fitting = Fitting(data, {"prior": work.checked_prior()}, options, work.rules.workers)
    evidence = found.evidence
    return SearchResult(
        best=found.best,
        score=evidence.log_z,
        scored_by=evidence.method,
        status=found.status,
        history=found.history,
        n_evaluated=found.n_fitted,
        evidence=evidence,
        posterior=replace(found.posterior, fitting=fitting) if why is None else None,
        structure_prior=found.structure_prior,
        constraints=constraints,
        untried=why,
    )


def _start(start: Dag | str | None, scorer: FamilyScorer, constraints: Constraints, table: Table) -> Dag:
    """Return where to start: a structure over the columns of the table that keeps the constraints."""
    if start is None or start == "empty":
        return constraints.least()
    if start == "tree":
        return tree(scorer, constraints)
    dag = as_dag(start, "start").bind(table.columns)
    strange = sorted(set(dag.nodes) - set(table.columns))
    if dag.hidden or strange:
        listed = ", ".join(map(repr, dag.hidden or strange))
        raise StructureError(
            f"the start has {listed}, which the data do not have; start from columns of the data, 'empty' or 'tree'"
        )
    dag = Dag(table.columns, dag.edges)
    constraints.check(dag)
    return dag
