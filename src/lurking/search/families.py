"""Scores of families: what every search over structures is driven by.

A decomposable score of a structure is a sum over variables of a term that depends on the variable and its parents only.
`FamilyScorer` is all that a search knows of data; `FamilyScores` is the one for complete tables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from threading import Lock
from typing import Protocol, final

import numpy as np

from lurking.data.messages import plain_count
from lurking.data.table import Table
from lurking.errors import DataError, OptionError, StructureError, TooLarge, UndefinedScore, UnknownNameError
from lurking.graph.dag import Dag
from lurking.inference.binding import check_columns
from lurking.models.layout import free_parameters
from lurking.models.prior import BDeuPrior, Prior, SymmetricPrior, prior_of_every_structure, pseudo_count_of
from lurking.runtime.memory import in_words, is_affordable
from lurking.types import AnyArray, FloatArray, IntArray

FAMILY_SCORES = ("bd", "bdeu", "bic")
MOST_CONFIGURATIONS = 1e300
MOST_CELLS = 2**27
MOST_KEPT = 2**23
"""Scores of additions that are kept; beyond, all are forgotten and found again when they are asked for."""
MANY_CONFIGURATIONS = "the family of {name!r} with {count} parents has too many parent configurations; set max_parents"

Family = tuple[int, tuple[int, ...]]


class FamilyScorer(Protocol):
    """Scores families on the scale of ln p(data | structure), every constant kept.

    Variables are positions in `variables`; parents are ascending tuples of positions. The sum of `score` over all
    variables of a structure is the score of the structure.
    """

    @property
    def variables(self) -> tuple[str, ...]:
        """Names in order."""
        ...

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        ...

    @property
    def n_evaluated(self) -> int:
        """How many families were scored so far."""
        ...

    def score(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of one family."""
        ...

    def scores_of_additions(self, node: int, parents: tuple[int, ...], candidates: IntArray) -> FloatArray:
        """Return the scores (m,) of the families with one more parent each, `candidates` (m,)."""
        ...

    def scores_of_deletions(self, node: int, parents: tuple[int, ...]) -> FloatArray:
        """Return the scores (len(parents),) of the families with one parent less, in the order of `parents`."""
        ...


class OneByOne(ABC):
    """Scores of changed families found one after the other."""

    @abstractmethod
    def score(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of one family."""

    def scores_of_additions(self, node: int, parents: tuple[int, ...], candidates: IntArray) -> FloatArray:
        """Return the scores (m,) of the families with one more parent each."""
        more = (tuple(sorted((*parents, candidate))) for candidate in candidates.tolist())
        return np.asarray([self.score(node, group) for group in more], np.float64)

    def scores_of_deletions(self, node: int, parents: tuple[int, ...]) -> FloatArray:
        """Return the scores (len(parents),) of the families with one parent less."""
        return np.asarray([self.score(node, parents[:k] + parents[k + 1 :]) for k in range(len(parents))], np.float64)


def score_of(scorer: FamilyScorer, dag: Dag) -> float:
    """Return the score of a structure: the sum over its families."""
    place = {name: position for position, name in enumerate(scorer.variables)}
    if set(dag.nodes) != set(place):
        different = sorted(set(dag.nodes) ^ set(place))
        raise StructureError(f"the structure and the data differ in {different}; they must have the same variables")
    return math.fsum(
        scorer.score(place[name], tuple(sorted(place[parent] for parent in dag.parents(name)))) for name in dag.nodes
    )


@final
class FamilyScores:
    """Scores of families on a complete categorical table; a family is counted once and its score kept.

    score : "bd" (exact evidence with Dirichlet priors; a number as `prior` is the pseudo-count λ of every cell, 1 gives
        the K2 score), "bdeu" (the same with λ = ess / (q r); a number as `prior` is the equivalent sample size ess), or
        "bic" (ln likelihood at its maximum minus d/2 · ln n).
    prior : a number, `Prior.symmetric`, `Prior.jeffreys` or `Prior.bdeu`; 1.0 by default; "bic" takes none.

    Safe to be used by several threads: the kernels work outside the interpreter's lock, and what is kept never changes.
    """

    def __init__(self, table: Table, score: str = "bd", prior: Prior | float | None = None) -> None:
        if score not in FAMILY_SCORES:
            raise UnknownNameError("family score", score, FAMILY_SCORES)
        self._score = score
        self._prior = prior_of_score(score, prior)
        check_columns(Dag(table.columns), table)
        check_complete(table)
        self._variables = table.columns
        self._cardinalities = tuple(table[name].cardinality for name in table.columns)
        self._sizes: IntArray = np.asarray(self._cardinalities, np.int64)
        self._n = table.n
        if score == "bic" and not self._n > 0.0:
            raise UndefinedScore("bic is undefined on no data (n = 0): its penalty is d/2 · ln n; use bd or bdeu")
        self._codes, self._weights = _rows(table)
        self._scores: dict[Family, float] = {}
        self._additions: dict[Family, FloatArray] = {}
        self._chain: tuple[tuple[int, IntArray, int], ...] = ((-1, np.zeros(len(self._weights), np.int64), 1),)
        self._evaluated = 0
        self._counting = Lock()

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self._variables

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of levels of each column."""
        return self._cardinalities

    @property
    def n_evaluated(self) -> int:
        """How many families were counted and scored so far."""
        return self._evaluated

    def score(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of one family."""
        family = (node, parents)
        kept = self._scores.get(family)
        if kept is not None:
            return kept
        value = self._found_as_addition(node, parents)
        if math.isnan(value):
            value = float(self._evaluate(node, parents, np.asarray([-1], np.int64))[0])
        self._scores[family] = value
        return value

    def scores_of_additions(self, node: int, parents: tuple[int, ...], candidates: IntArray) -> FloatArray:
        """Return the scores (m,) of the families with one more parent each, `candidates` (m,), by one kernel call."""
        family = (node, parents)
        kept = self._additions.get(family)
        if kept is None:
            if len(self._additions) * len(self._variables) > MOST_KEPT:
                self._additions, self._scores = {}, {}
            kept = self._additions.setdefault(family, np.full(len(self._variables), np.nan))
        missing = candidates[np.isnan(kept[candidates])]
        if missing.size:
            kept[missing] = self._evaluate(node, parents, missing)
        return np.asarray(kept[candidates], np.float64)

    def scores_of_deletions(self, node: int, parents: tuple[int, ...]) -> FloatArray:
        """Return the scores (len(parents),) of the families with one parent less."""
        return np.asarray([self.score(node, parents[:k] + parents[k + 1 :]) for k in range(len(parents))], np.float64)

    def _found_as_addition(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score if the family was once a candidate addition, else NaN."""
        for k, parent in enumerate(parents):
            kept = self._additions.get((node, parents[:k] + parents[k + 1 :]))
            if kept is not None and not math.isnan(kept[parent]):
                return float(kept[parent])
        return math.nan

    def _evaluate(self, node: int, parents: tuple[int, ...], candidates: IntArray) -> FloatArray:
        """Count and score the families of `node` with `parents` and each candidate (−1: none)."""
        from lurking.kernels.cpu.families import additions_into

        keys, n_keys = self._parent_keys(parents)
        states = self._cardinalities[node]
        configurations = math.prod(float(self._cardinalities[parent]) for parent in parents)
        sizes = np.where(candidates < 0, 1, self._sizes[candidates])
        if configurations * float(sizes.max()) * states > MOST_CONFIGURATIONS:
            raise TooLarge(MANY_CONFIGURATIONS.format(name=self._variables[node], count=len(parents) + 1))
        if states * int(sizes.max()) > MOST_CELLS:
            raise TooLarge(f"the states of {self._variables[node]!r} and of a parent are too many to count; merge some")
        of_family = configurations * sizes
        # α = 0 is the log-likelihood, which has no prior.
        alphas = np.zeros(len(candidates))
        if self._prior is not None:
            alphas[:] = [pseudo_count_of(self._prior, states, count) for count in of_family.tolist()]
        values = np.empty(len(candidates))
        additions_into(self._codes, self._sizes, self._weights, keys, n_keys, node, candidates, alphas, values)
        with self._counting:
            self._evaluated += len(candidates)
        if self._score == "bic":
            values -= 0.5 * math.log(self._n) * free_parameters(states, of_family)
        return values

    def _parent_keys(self, parents: tuple[int, ...]) -> tuple[IntArray, int]:
        """Return one number for each row that tells the configurations of the parents apart, and their bound."""
        from lurking.kernels.cpu.families import refine_into

        # Of searches that add parent after parent, the next family shares its first parents with the last one. The
        # chain is replaced as a whole, so that threads never see half of one.
        chain = self._chain
        shared = 0
        while shared < min(len(parents), len(chain) - 1) and chain[shared + 1][0] == parents[shared]:
            shared += 1
        chain = chain[: shared + 1]
        for parent in parents[shared:]:
            _, keys, n_keys = chain[-1]
            finer = np.empty_like(keys)
            n_finer = refine_into(keys, n_keys, self._codes[parent], self._cardinalities[parent], finer)
            chain = (*chain, (parent, finer, n_finer))
        self._chain = chain
        return chain[-1][1], chain[-1][2]


def check_complete(table: Table) -> None:
    """Refuse a table with empty cells, saying how many there are."""
    counts = {name: table[name].n_missing for name in table.columns}
    empty = sum(counts.values())
    if empty:
        worst = max(counts, key=lambda name: counts[name])
        raise DataError(
            f"{plain_count(empty)} of {plain_count(table.n_rows * len(counts))} cells are empty, most of them in "
            f"{worst!r} ({counts[worst]}); this search needs complete rows, impute them or leave such columns out"
        )


def prior_of_score(score: str, prior: Prior | float | None) -> SymmetricPrior | BDeuPrior | None:
    """Return the prior that a family score uses; a number is λ for "bd" and the equivalent sample size for "bdeu"."""
    if score == "bic":
        if prior is not None:
            raise OptionError(f"prior is {prior!r}, but bic has no prior; leave it out, or use score='bd' or 'bdeu'")
        return None
    made: Prior
    if isinstance(prior, Prior):
        made = prior
    elif score == "bdeu":
        made = Prior.bdeu(1.0 if prior is None else prior)
    else:
        made = Prior.symmetric(1.0 if prior is None else prior)
    if score == "bdeu" and not isinstance(made, BDeuPrior):
        raise OptionError(
            f"prior is {made!r}, but bdeu has an equivalent sample size; give a number or Prior.bdeu(ess)"
        )
    return prior_of_every_structure(made)


def _rows(table: Table) -> tuple[AnyArray, FloatArray]:
    """Return the different rows as codes (p, u), one byte each where that is enough, and their weights (u,) > 0."""
    widest = max(table[name].cardinality for name in table.columns)
    kind: type[np.generic] = np.uint8 if widest <= 256 else np.int32
    need = table.n_rows * (24 + 5 * len(table.columns))
    if not is_affordable(need):
        raise TooLarge(
            f"the search holds all different rows in memory, up to {in_words(need)} for {table.n_rows} rows; "
            "search on a sample of the rows"
        )
    patterns = table.patterns()
    counted = patterns.weights > 0.0
    codes = np.ascontiguousarray(patterns.codes[counted].T.astype(kind))
    return codes, np.ascontiguousarray(patterns.weights[counted])
