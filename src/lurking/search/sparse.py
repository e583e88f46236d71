"""Sparse mixtures: which columns depend on a hidden class at all (Koller & Friedman 2009, section 19.4.3).

The structures are class → subset of the columns, the other columns standing alone. Up to ten columns all subsets are
compared; beyond, structural EM chooses, and each round gives the class every child whose family is better with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.errors import LurkingWarning, OptionError, StructureError, TooLarge, UnknownNameError
from lurking.graph.dag import Dag
from lurking.graph.spaces import bipartite
from lurking.inference.binding import check_columns
from lurking.learn.loop import Status
from lurking.learn.options import AUTO
from lurking.models.prior import Prior
from lurking.runtime.checks import check_whole
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress
from lurking.runtime.rng import Seed, generators, seed_sequence
from lurking.search.bayes_factors import are_mixed
from lurking.search.compare import compare
from lurking.search.posterior import WITHIN, StructurePosterior
from lurking.search.silent_columns import in_words, silent_columns
from lurking.search.structural_em import StructuralEm, structural_em
from lurking.search.structures import from_hidden_only, start_structure

METHODS = ("auto", "exhaustive", "structural-em")
MOST_COLUMNS = 10
"""Columns up to which all subsets are compared without being asked for."""
MOST_EXHAUSTIVE = 16


@dataclass(frozen=True)
class SparseMixture:
    """Which columns depend on the class.

    Attributes
    ----------
    children : the columns that depend on the class in the best structure.
    best : that structure; `score` is its score, by `scored_by`: the score asked for, or "sampled" where exact values
        and bounds met among the best subsets, which `lurking.compare` then scores again by sampled evidence.
    probabilities : {column: posterior probability that it depends on the class}, uniform over all subsets; None when
        not all subsets were compared.
    posterior : all subsets with their evidence, or None.
    search : the outcome of structural EM, or None.
    status : OPTIMUM when all subsets were compared.
    """

    children: tuple[str, ...]
    best: Dag
    score: float
    scored_by: str
    probabilities: Mapping[str, float] | None
    posterior: StructurePosterior | None = field(repr=False)
    search: StructuralEm | None = field(repr=False)
    status: Status

    def __str__(self) -> str:
        lines = [str(self.best), f"{self.scored_by} = {self.score:.4f}; {self.status.sentence}"]
        if self.probabilities is not None:
            lines += [f"p({name} depends on the class) = {value:.4f}" for name, value in self.probabilities.items()]
        return "\n".join(lines)


def sparse_mixture(
    table: Any,
    states: int,
    *,
    name: str = "class",
    score: str = "vb",
    method: str = "auto",
    prior: Prior | float = 1.0,
    restarts: int | str = AUTO,
    starts: int = 5,
    seed: Seed = 0,
    workers: int | None = None,
    stop: StopFlag | None = None,
    progress: Progress | None = None,
) -> SparseMixture:
    """Find the columns that depend on one hidden class of so many states.

    Parameters
    ----------
    table : a Table, a frame, an array or the path of a file; cells may be empty.
    states : number of classes; `name` of the hidden variable.
    score : for "exhaustive" any score of `lurking.score`; for "structural-em" one of `structural_em`.
    method : "exhaustive" (all 2^p subsets), "structural-em", or "auto", the first up to ten columns.
    restarts : starts of every fit, "auto" or a number, as in `lurking.fit`.
    starts : for structural EM: all columns at first, then `starts` − 1 random halves.
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    data = as_table(table)
    if not isinstance(name, str) or not name:
        raise OptionError(f"name is {name!r}; it must be the text that names the class, for example 'class'")
    if name in data.columns:
        raise StructureError(f"name is {name!r}, which is a column of the data; give the class another name")
    check_columns(Dag(data.columns), data)
    hidden = {name: check_whole("states", states, 2)}
    if silent := silent_columns(data, declared=True):
        what = "it depends" if len(silent) == 1 else "they depend"
        text = f"{in_words(silent, data)}, so the data do not say whether {what} on {name!r}"
        warnings.warn(text, LurkingWarning, stacklevel=2)
    if method == "exhaustive" or (method == "auto" and len(data.columns) <= MOST_COLUMNS):
        options = {"prior": prior, "restarts": restarts, "seed": _fixed(seed), "workers": workers, "stop": stop}
        return _exhaustive(data, name, hidden, score, progress, options)
    check_whole("starts", starts, 1)
    more = [
        start_structure(data, hidden, "random", seed=generator) for generator in generators(_fixed(seed), starts - 1)
    ]
    found = structural_em(
        data,
        [start_structure(data, hidden, "full"), *more],
        score=score,
        prior=prior,
        constraints=from_hidden_only(hidden, data.columns),
        restarts=restarts,
        seed=_fixed(seed),
        stop=stop,
        progress=progress,
        workers=workers,
    )
    return SparseMixture(found.best.children(name), found.best, found.score, score, None, None, found, found.status)


def _fixed(seed: Seed) -> Seed:
    """Return a seed that gives the same draws however often it is used."""
    return seed if isinstance(seed, int) else seed_sequence(seed)


def _exhaustive(
    table: Table, name: str, hidden: dict[str, int], score: str, progress: Progress | None, options: dict[str, Any]
) -> SparseMixture:
    """Compare all subsets of the columns as children of the class."""
    columns = table.columns
    if len(columns) > MOST_EXHAUSTIVE:
        raise TooLarge(
            f"the table has {len(columns)} columns and 2^{len(columns)} subsets of them; at most "
            f"{MOST_EXHAUSTIVE} columns are compared exhaustively, use method='structural-em'"
        )
    dags = list(bipartite(hidden, columns))
    posterior = compare(dags, table, scores=[score], progress=progress, **options).posterior
    best = posterior.best
    _warn_of_mixed_kinds(posterior)
    return SparseMixture(
        children=best.dag.children(name),
        best=best.dag,
        score=best.evidence.log_z,
        scored_by=posterior.score,
        probabilities=MappingProxyType({column: posterior.edge_probability(name, column) for column in columns}),
        posterior=posterior,
        search=None,
        status=Status.OPTIMUM,
    )


def _warn_of_mixed_kinds(posterior: StructurePosterior) -> None:
    """Warn when contending subsets are ranked by values of different kinds: too many, or too large, to be sampled."""
    top = posterior.best.evidence.log_z
    near = [candidate for candidate in posterior if candidate.evidence.log_z >= top - WITHIN]
    if are_mixed(candidate.evidence.kind for candidate in near):
        warnings.warn(
            f"{len(near)} subsets contend and were not sampled; some have exact values, which beat the bounds of the "
            "others unfairly: score='ais' samples them all",
            LurkingWarning,
            stacklevel=4,
        )
