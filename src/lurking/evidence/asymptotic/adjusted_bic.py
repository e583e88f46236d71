"""The adjusted BIC of Rusakov & Geiger for naive Bayes models with a hidden binary class and binary features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lurking.errors import UndefinedScore
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import log_n, point_estimate
from lurking.inference.binding import shared_patterns
from lurking.inference.engines.row_blocks import BLOCK_ROWS
from lurking.inference.problem import Problem, refuse_families
from lurking.learn.options import FitOptions
from lurking.types import CodeArray, FloatArray

NAME = "adjusted-bic"
LEAST_ROWS = 3  # ln ln n is positive from here on


def adjusted_bic(problem: Problem, options: FitOptions, *, at: str = "map") -> Evidence:
    """Ln p(y|θ̂) − λ · ln n + (m − 1) · ln ln n, (λ, m) by where the data lie (Rusakov & Geiger 2005, theorem 4)."""
    refuse_families(problem, f"{NAME} works", "use bic, vb or cs")
    log_rows = log_n(problem, NAME)
    root, children = _naive_bayes(problem)
    counts = _pair_counts(problem, children)
    if problem.n < LEAST_ROWS:
        raise UndefinedScore(
            f"{NAME} needs at least {LEAST_ROWS} rows (n = {problem.n:g}): it may use ln ln n; use bic"
        )
    estimate = point_estimate(problem, options, at)
    choice = _choose(estimate.loglik, counts, log_rows)
    weakest = float(problem.layout.table(problem.pseudo, root).min())
    threshold, multiplicity = threshold_of(choice.regime, len(children), weakest)
    parts = {"loglik": estimate.loglik, "penalty": -threshold * log_rows}
    if multiplicity > 1:
        parts["log_log"] = (multiplicity - 1) * math.log(log_rows)
    pair = [children[k] for k in choice.pair]
    return Evidence(
        log_z=sum(parts.values()),
        # Only in the regular regime are there separate peaks; a singular posterior lies on one connected set.
        log_aliases=problem.relevant_log_aliases if choice.regime == "regular" and len(children) > 2 else 0.0,
        std_error=None,
        kind=Kind.ASYMPTOTIC,
        method=NAME,
        parts=parts,
        status=estimate.fit.status,
        info={
            **estimate.info,
            "regime": choice.regime,
            "pair": pair,
            "why": choice.why(children),
            "criteria": choice.criteria,
            "threshold": threshold,
            "multiplicity": multiplicity,
        },
    )


def threshold_of(regime: str, n: int, weakest: float = 1.0) -> tuple[float, int]:
    """Return (λ, m), the real log canonical threshold and its multiplicity, for n features.

    `weakest` is α, the smaller pseudo-count of the class. Let t be the size of a class and δ_i the difference of
    feature i between the classes. The n margins take n/2 in every regime; what is left is how t(1 − t) δ_i δ_j
    vanishes.

    - "regular": a point and its mirror image, λ = (2n + 1)/2.
    - "pair": one covariance t(1 − t) δ_i δ_j is fixed and the n − 2 other δ vanish, a smooth set, λ = (2n − 1)/2.
    - "independent": the products t δ_i δ_j vanish, with the prior t^(α − 1): α/2 where t does; where all δ do, n/4
      for n ≥ 3 by one blow-up; for n = 2 the product t δ_1 δ_2 has 1/2 for each δ. Equal ones add their multiplicities.
      For α = 1 that is λ = (n + 1)/2, m = 1, and for n = 2 λ = 3/2, m = 3 (the paper's theorem 4, which assumes a
      prior density that is bounded and positive).
    - One feature has one parameter, λ = 1/2; two that depend have three, λ = 3/2.
    """
    if n == 1:
        return 0.5, 1
    if regime == "regular":
        return (2 * n + 1) / 2, 1
    if regime == "pair":
        return (2 * n - 1) / 2, 1
    of_differences, count = (0.5, 2) if n == 2 else (n / 4, 1)
    of_class = 0.5 * weakest
    if math.isclose(of_class, of_differences):
        return n / 2 + of_class, count + 1
    return (n / 2 + of_class, 1) if of_class < of_differences else (n / 2 + of_differences, count)


@dataclass(frozen=True)
class Choice:
    """The regime with the largest criterion, and all criteria; `pair` are the two features that depend most."""

    regime: str
    pair: tuple[int, ...]
    criteria: dict[str, float]

    def why(self, children: list[str]) -> str:
        """Say in one line why this regime was chosen."""
        words = {
            "independent": "all features are independent",
            "pair": f"only {' and '.join(children[k] for k in self.pair)} depend on each other",
            "regular": "more than two features depend on the class",
        }
        if len(self.criteria) == 1:
            return "one feature has one parameter that counts, whatever its distribution"
        others = ", ".join(f"{name} {value:.2f}" for name, value in self.criteria.items() if name != self.regime)
        return f"{words[self.regime]}: BIC {self.criteria[self.regime]:.2f}, against {others}"


def _choose(loglik: float, counts: FloatArray, log_rows: float) -> Choice:
    """Return the regime by the BIC of the submodels that the regimes consist of.

    Independent features have n parameters; one pair that depends has n + 1, and which pair it is costs ln of their
    number; the model itself has 2n + 1. By their maximum the true regime is found with probability → 1: a submodel
    that does not hold loses likelihood in proportion to the rows, one that holds loses O(1) and saves at least ½ ln n.
    """
    n = len(counts)
    margins, information = _independence(counts)
    independent = margins - 0.5 * n * log_rows
    if n == 1:
        return Choice("regular", (), {"regular": independent})
    i, j = np.unravel_index(int(np.argmax(information)), information.shape)
    pair = (int(min(i, j)), int(max(i, j)))
    of_pair = margins + float(information[i, j]) - 0.5 * (n + 1) * log_rows - math.log(math.comb(n, 2))
    criteria = {"independent": independent, "pair": of_pair}
    if n >= 3:
        criteria["regular"] = loglik - 0.5 * (2 * n + 1) * log_rows
    best = max(criteria, key=criteria.__getitem__)
    return Choice(best, pair if best == "pair" else (), criteria)


def _independence(counts: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest ln p(y) with independent features, and n times the mutual information of each pair, (n, n)."""
    n = len(counts)
    total = counts[0, 0].sum()
    single = np.einsum("iikk->ik", counts)
    margins = _entropy_sum(single[:, None, :]).sum() - n * total * math.log(total)
    own = _entropy_sum(single[:, None, :])[:, 0]
    joint = _entropy_sum(counts.reshape(n, n, 4))
    information = joint - own[:, None] - own[None, :] + total * math.log(total)
    np.fill_diagonal(information, -np.inf)
    return float(margins), np.asarray(information, np.float64)


def _entropy_sum(counts: FloatArray) -> FloatArray:
    """Return Σ c ln c over the last axis, with 0 ln 0 = 0."""
    return np.asarray(np.where(counts > 0.0, counts * np.log(np.where(counts > 0.0, counts, 1.0)), 0.0).sum(axis=-1))


def _naive_bayes(problem: Problem) -> tuple[str, list[str]]:
    """Return class and features, refusing every other structure."""
    dag, sizes = problem.dag, problem.cardinalities
    if problem.tied:
        raise UndefinedScore(f"{NAME} is for features with tables of their own, and some are tied; use bic")
    hidden = list(dag.hidden)
    if len(hidden) != 1 or dag.parents(hidden[0]):
        raise UndefinedScore(f"{NAME} is for one hidden class without parents, and {dag} is another structure; use bic")
    for name in dag.observed:
        if tuple(dag.parents(name)) != (hidden[0],):
            raise UndefinedScore(
                f"{NAME} is for features whose only parent is the hidden class, and {name!r} is no such; use bic"
            )
    for name in (hidden[0], *dag.observed):
        if sizes[name] != 2:
            raise UndefinedScore(f"{NAME} is for binary variables, and {name!r} has {sizes[name]} states; use bic")
    return hidden[0], list(dag.observed)


def _pair_counts(problem: Problem, children: list[str]) -> FloatArray:
    """Return the counts of each pair of features, (n, n, 2, 2), refusing empty cells."""
    total = np.zeros((len(children), len(children), 2, 2))
    for codes, weights in _rows(problem, children):
        used = weights > 0.0
        if np.any(codes[used] < 0):
            name = children[int(np.argmax((codes[used] < 0).any(axis=0)))]
            raise UndefinedScore(f"{NAME} is for rows without empty cells, and column {name!r} has some; use bic")
        indicator = np.stack([codes[used] == k for k in range(2)], axis=-1).astype(np.float64)
        total += np.einsum("u,uik,ujl->ijkl", weights[used], indicator, indicator, optimize=True)
    return total


def _rows(problem: Problem, children: list[str]) -> Iterator[tuple[CodeArray, FloatArray]]:
    """Yield codes (u, n) and weights (u,): the unique rows, or blocks of rows where these are too many to merge."""
    if problem.in_blocks:
        yield from problem.table.blocks(children, BLOCK_ROWS)
    else:
        patterns = shared_patterns(problem.dag, problem.table)
        yield patterns.codes[:, [patterns.columns.index(name) for name in children]], patterns.weights
