"""The 136 structures of the paper and their scores on one data set (beal-ghahramani-2006, section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from scipy.special import logsumexp

from lurking.data.table import Table
from lurking.evidence.evaluation import evaluate
from lurking.experiments.beal2006.data import OBSERVED, STRUCTURE, true_table
from lurking.graph.dag import Dag
from lurking.graph.spaces import bipartite
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag
from lurking.search.compare import compare
from lurking.types import FloatArray

METHODS: Final = ("map", "bic", "bicp", "cs", "vb")
_SCORES: Final = {"map": "map-likelihood", "bic": "bic", "bicp": "bicp", "cs": "cs", "vb": "vb"}
CORRECTED: Final = ("bic", "bicp", "cs", "vb")
"""Scores that see one of S equivalent modes; the paper adds ln S to them and prints an asterisk where it does not."""
ROUNDING: Final = 1e-10
"""Values that differ by less than this share of their size are equal."""


@dataclass(frozen=True)
class Contender:
    """One structure: its free parameters, barren hidden nodes included, and ln S over all hidden nodes."""

    dag: Dag
    dimension: int
    log_aliases: float


@cache
def contenders() -> tuple[Contender, ...]:
    """Return the 136 structures in the order of `bipartite`."""
    table = true_table(1)
    problems = [Problem(dag, table, prune=False) for dag in bipartite({"s1": 2, "s2": 2}, list(OBSERVED))]
    return tuple(Contender(problem.dag, problem.dimension, problem.log_aliases) for problem in problems)


@cache
def true_place() -> int:
    """Return the place of the structure that made the data among the contenders."""
    truth = Dag.parse(STRUCTURE)
    return next(k for k, contender in enumerate(contenders()) if contender.dag.same_structure(truth))


@cache
def log_aliases() -> FloatArray:
    """Return ln S of every contender, (136,)."""
    return np.asarray([contender.log_aliases for contender in contenders()])


@cache
def log_aliases_counted() -> FloatArray:
    """Return ln S of every contender as the paper seems to count it, (136,).

    With 2 for each hidden node that has children, and another 2 for exchanging the two whether or not that maps the
    structure onto itself, table 2's ranks with and without ln S can be explained; with the relabelings that leave the
    structure unchanged (`log_aliases`, by the paper's own words) its claims about them cannot.
    """
    children = [sum(bool(one.dag.children(name)) for name in one.dag.hidden) for one in contenders()]
    return np.asarray([math.log((1, 2, 8)[count]) for count in children])


@dataclass(frozen=True)
class Protocol:
    """How EM and VB are run: as in section 4.1, three starts drawn from the prior, the same for both."""

    restarts: int = 3
    tol: float = 1e-6
    max_iter: int = 1000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of all structures on one data set.

    Attributes
    ----------
    n : rows of the data set.
    values : {method: (136,)} without ln S.
    unfinished : {method: structures whose climbs ran out of iterations}, of EM and VB.
    below_cs : structures whose VB bound lies below CS.
    still_below_cs : how many of these remain when VB starts from the posterior at the MAP point (corollary 6.2).
    """

    n: int
    values: Mapping[str, FloatArray] = field(repr=False)
    unfinished: Mapping[str, int]
    below_cs: int
    still_below_cs: int

    def corrected(self, method: str) -> FloatArray:
        """Return the scores with ln S where the paper adds it, (136,)."""
        return self.values[method] + log_aliases() if method in CORRECTED else self.values[method]

    def content(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "values": {method: own.tolist() for method, own in self.values.items()}}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> ClassScores:
        """Return what `content` was made from."""
        return cls(**{**content, "values": {method: np.asarray(own) for method, own in content["values"].items()}})


def score_class(table: Table, protocol: Protocol, workers: int | None, stop: StopFlag) -> ClassScores:
    """Score every structure on a data set by MAP, BIC, BICp, CS and VB."""
    options: dict[str, Any] = asdict(protocol)
    dags = [contender.dag for contender in contenders()]
    chosen = [_SCORES[method] for method in METHODS]
    made = compare(dags, table, scores=chosen, rescore=False, prune=False, workers=workers, stop=stop, **options)
    if stop.is_set:
        raise KeyboardInterrupt
    values = {method: np.asarray([row.evidences[_SCORES[method]].log_z for row in made.rows]) for method in METHODS}
    late = {
        method: sum(row.evidences[_SCORES[method]].status is Status.MAX_ITER for row in made.rows)
        for method in ("map", "vb")
    }
    below = np.flatnonzero(is_below(values["vb"], values["cs"]))
    fit_options = FitOptions(**options, workers=1, stop=stop)
    again = [evaluate(Problem(dags[k], table, prune=False), ["vb"], fit_options, {"start": "map"})["vb"] for k in below]
    still = int(is_below(np.asarray([one.log_z for one in again]), values["cs"][below]).sum()) if again else 0
    return ClassScores(round(table.n), values, late, len(below), still)


def is_below(values: FloatArray, others: FloatArray) -> Any:
    """Whether each value is below the other by more than rounding, as booleans of their shape."""
    return values < others - ROUNDING * np.abs(others)


def rank_of(scores: FloatArray, place: int) -> int:
    """Return 1 + how many scores are above the one at `place` by more than rounding."""
    return 1 + int(is_below(np.full(len(scores), scores[place]), scores).sum())


def posterior_of(scores: FloatArray) -> FloatArray:
    """Return p(m|y) with a uniform prior over the structures whose scores are given."""
    return np.asarray(np.exp(scores - logsumexp(scores)))


def divergence(reference: FloatArray, scores: FloatArray) -> float:
    """Return KL(p ‖ q) of two posteriors, given by their unnormalised logarithms; p may be 0 (−inf) in places."""
    log_p, log_q = reference - logsumexp(reference), scores - logsumexp(scores)
    has_mass = np.isfinite(log_p)
    return float(np.sum(np.exp(log_p[has_mass]) * (log_p[has_mass] - log_q[has_mass])))
