"""Scores of families on expected counts: what structural EM searches with.

The counts are N = Σ_rows w · p(node, parents | row, θ) under the posterior of one fitted structure, the same for all
families (`Completion`). Complete cells count 1 in them, unobserved ones what the posterior gives them.
"""

from __future__ import annotations

import math
from threading import Lock
from typing import final

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from lurking.graph.dag import Dag
from lurking.inference.completion import Completion
from lurking.kernels.reference.special import table_evidence
from lurking.models.layout import free_parameters
from lurking.models.prior import Prior, prior_of_every_structure, pseudo_count_of
from lurking.search.families import Family, OneByOne
from lurking.types import FloatArray

EXPECTED_SCORES = ("bic", "map", "cs", "vb")


@final
class ExpectedScores(OneByOne):
    """A `FamilyScorer` on expected counts; a family is counted once and its score kept.

    score : with N the expected counts and λ the pseudo-counts of a family,
        "bic": max_θ Σ N ln θ − d/2 · ln n;
        "map": max_θ Σ (N + λ) ln θ + Σ_l [lnΓ(λ_l) − Σ_k lnΓ(λ_lk)], the density of the logits counted in;
        "cs" and "vb": D(λ, N), the log evidence of the counts.
    Differences between structures are expected gains; the entropy of the posterior is the same for all of them and left
    out, so the values themselves are not those of `lurking.score`.
    """

    def __init__(self, completion: Completion, score: str, prior: Prior) -> None:
        self._completion, self._score = completion, score
        self._prior = prior_of_every_structure(prior)
        self._n = float(completion.weights.sum())
        self._values: dict[Family, float] = {}
        self._counting = Lock()

    @property
    def variables(self) -> tuple[str, ...]:
        """Columns and hidden variables, in the order of the structure."""
        return self._completion.layout.nodes

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        return self._completion.layout.cardinalities

    @property
    def n_evaluated(self) -> int:
        """How many families were counted and scored so far."""
        return len(self._values)

    def score(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of one family."""
        kept = self._values.get((node, parents))
        if kept is None:
            kept = self._evaluate(node, parents)
            with self._counting:
                self._values[node, parents] = kept
        return kept

    def best_log_likelihood(self, node: int, parents: tuple[int, ...]) -> float:
        """Return max_θ Σ N ln θ of one family, without prior and penalty: −H(node | parents) of the completed rows."""
        return _best_log_likelihood(self._completion.counts((*parents, node))[0])

    def potentials(self, dag: Dag) -> dict[str, FloatArray]:
        """Return {node: table[l, k]}, what the M step on the expected counts gives each family of a structure.

        These are E[ln θ] for "vb" and ln θ for the others. From here a climb on the observed data can only end higher,
        which is what makes the expected gain a lower bound of the true one (Friedman 1998).
        """
        index = self._completion.layout.index
        result = {}
        for name in dag.nodes:
            scope = [*(index[parent] for parent in dag.parents(name)), index[name]]
            width = self.cardinalities[scope[-1]]
            counts = self._completion.table(scope)
            alpha = counts + pseudo_count_of(self._prior, width, float(len(counts)))
            totals = alpha.sum(axis=1, keepdims=True)
            result[name] = digamma(alpha) - digamma(totals) if self._score == "vb" else np.log(alpha / totals)
        return result

    def _evaluate(self, node: int, parents: tuple[int, ...]) -> float:
        counts, n_empty = self._completion.counts((*parents, node))
        states = int(counts.shape[1])
        configurations = float(len(counts)) + n_empty
        if self._score == "bic":
            penalty = 0.5 * math.log(self._n) * free_parameters(states, configurations)
            return _best_log_likelihood(counts) - penalty
        pseudo = pseudo_count_of(self._prior, states, configurations)
        if self._score == "map":
            added = counts + pseudo
            per_row = float(gammaln(states * pseudo) - states * gammaln(pseudo))
            empty = -states * pseudo * math.log(states)
            return _best_log_likelihood(added) + configurations * per_row + n_empty * empty
        return float(table_evidence(pseudo, counts))


def _best_log_likelihood(counts: FloatArray) -> float:
    """Return max_θ Σ N ln θ = Σ_lk N_lk ln (N_lk / N_l) of counts (l, k)."""
    totals = counts.sum(axis=1)
    return float(xlogy(counts, counts).sum() - xlogy(totals, totals).sum())
