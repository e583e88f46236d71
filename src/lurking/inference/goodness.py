"""What latent-class users expect beside a fit: G², X², AIC, entropy R², bivariate residuals."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc, xlogy

from lurking.data.messages import plain_count
from lurking.data.table import Table
from lurking.errors import TooLarge
from lurking.inference.covariates import ConditionalLikelihood, conditional_dimension
from lurking.inference.dimension.identifiability import dimension_if_cheap
from lurking.inference.network import Network
from lurking.types import CodeArray, FloatArray

PAIR_LIMIT = 3000
DEPENDENT_ABOVE = 4.0
"""Bivariate residual of two covariates above which the model misses a dependence between them."""


@dataclass(frozen=True)
class BivariateResidual:
    """How badly the model explains one pair of columns: Pearson X² of their table divided by its degrees of freedom."""

    first: str
    second: str
    value: float


@dataclass(frozen=True)
class Goodness:
    """Fit statistics of a network on a table.

    `g_squared`, `x_squared` and `p_value` compare the complete rows with the model's table of all cells;
    `n_complete` says how many rows that were. `degrees_of_freedom` = cells − 1 − d, d the effective dimension where it
    is cheap to know, and may be negative when the model has more parameters than the table has cells. `p_value` is None
    then, and when there are fewer complete rows than cells: G² is far from χ² on such sparse tables. AIC and BIC are
    −2 ln p(y|θ̂) + penalty: lower is better. They and `loglik` are those of all columns together; `conditional` has
    them given the covariates, and is None if the network has no covariates (`Network.covariates`).
    """

    n: float
    n_complete: float
    loglik: float
    dimension: int
    aic: float
    bic: float
    g_squared: float
    x_squared: float | None
    degrees_of_freedom: int
    p_value: float | None
    entropy_r2: dict[str, float]
    bivariate_residuals: tuple[BivariateResidual, ...]
    conditional: ConditionalLikelihood | None = None

    @property
    def dependent_covariates(self) -> tuple[BivariateResidual, ...]:
        """Pairs of covariates that the data relate more strongly than the model, with a residual above 4.

        Sizes of hidden states weigh the rows of p(state | covariates) by the model's p(covariates), so they are off if
        such a pair has no edge; so are `loglik` and G². `conditional` does not depend on it if no covariate is missing.
        """
        given = () if self.conditional is None else self.conditional.given
        pairs = [r for r in self.bivariate_residuals if r.first in given and r.second in given]
        return tuple(residual for residual in pairs if residual.value > DEPENDENT_ABOVE)

    def __str__(self) -> str:
        test = "no degrees of freedom left"
        if self.degrees_of_freedom > 0:
            freedom = str(self.degrees_of_freedom) if self.degrees_of_freedom < 10**9 else "over 1e9"
            test = f"on {freedom} degrees of freedom, "
            test += "table too sparse for a p-value" if self.p_value is None else f"p = {self.p_value:.3g}"
        pearson = "too large" if self.x_squared is None else f"{self.x_squared:.2f}"
        name = "ln p(y|θ)" if self.conditional is None else "joint log-likelihood"
        first = f"{name} = {self.loglik:.4f}, AIC {self.aic:.2f}, BIC {self.bic:.2f} (lower is better)\n"
        if self.conditional is not None:
            first += f"{self.conditional}\n"
        if not self.n_complete:
            return first + "no row is complete, so there is no table of counts to test the model on"
        return (
            first + f"G² = {self.g_squared:.2f}, X² = {pearson}, {test} ({plain_count(self.n_complete)} complete rows)"
        )


def goodness_of_fit(network: Network, table: Table) -> Goodness:
    """Return the statistics of `network` on `table` (weights count as repeated rows).

    d is that of the network without its barren nodes, which the data cannot see. AIC and BIC take it as it is; the
    distribution of G² depends on the effective dimension, the number of directions in which the cells can move.
    """
    if table.is_on_disk:
        raise TooLarge("fit statistics need the distinct rows in memory, and the table is on disk; take a sample of it")
    observed = network.dag.observed
    coded = table.with_columns_coded({name: network.levels[name] for name in observed})
    patterns = coded.patterns(observed)
    row_loglik = network.loglik(coded)
    total = float(coded.weights @ row_loglik)
    loglik = np.zeros(len(patterns.weights))
    loglik[patterns.inverse] = row_loglik
    layout = network.relevant_layout
    n, d, effective = coded.n, layout.dimension, dimension_if_cheap(layout)
    complete = (patterns.codes >= 0).all(axis=1) & (patterns.weights > 0)
    g_squared, x_squared, n_complete = _against_saturated(loglik[complete], patterns.weights[complete])
    cells = math.prod(len(network.levels[name]) for name in observed)
    freedom = cells - 1 - (d if effective is None else effective)
    return Goodness(
        n=n,
        n_complete=n_complete,
        loglik=total,
        dimension=d,
        aic=-2.0 * total + 2.0 * d,
        bic=-2.0 * total + d * math.log(n) if n > 0 else 0.0,
        g_squared=g_squared,
        x_squared=x_squared,
        degrees_of_freedom=freedom,
        p_value=float(gammaincc(0.5 * freedom, 0.5 * g_squared)) if freedom > 0 and n_complete >= cells else None,
        entropy_r2=_entropy_r2(network, coded),
        bivariate_residuals=_bivariate_residuals(network, patterns.codes, patterns.weights),
        conditional=_conditional(network, coded, total),
    )


def _conditional(network: Network, coded: Table, joint: float) -> ConditionalLikelihood | None:
    """Return the log-likelihood given the covariates, `joint` that of all columns; None without covariates."""
    given = network.covariates
    if not given:
        return None
    of_covariates = float(coded.weights @ network.loglik(coded.select(given)))
    dimension = conditional_dimension(network.relevant_layout, given)
    return ConditionalLikelihood(given, joint - of_covariates, dimension, coded.n)


def _against_saturated(loglik: FloatArray, seen: FloatArray) -> tuple[float, float | None, float]:
    """Return (G², X², n) of complete patterns with frequencies f and cell probabilities p: e = n p.

    G² = 2 Σ f ln(f/e); X² = Σ over all cells (f − e)²/e = Σ f²/e − n, None when it is beyond floating point.
    """
    n = float(seen.sum())
    if n == 0.0:
        return 0.0, 0.0, 0.0
    gap = np.log(seen) - math.log(n) - loglik
    with np.errstate(over="ignore"):
        x_squared = float((seen * np.exp(gap)).sum()) - n
    g_squared = 2.0 * float((seen * gap).sum())
    return max(g_squared, 0.0), max(x_squared, 0.0) if math.isfinite(x_squared) else None, n


def _entropy_r2(network: Network, table: Table) -> dict[str, float]:
    """Return 1 − mean entropy of p(state | row) / ln r for each hidden variable: 1 when every row is surely placed."""
    result = {}
    for name, probabilities in network.hidden_probabilities(table).items():
        states = probabilities.shape[1]
        if states > 1 and table.n > 0 and name not in network.dag.barren:
            entropy = -float(table.weights @ xlogy(probabilities, probabilities).sum(axis=1))
            result[name] = 1.0 - entropy / (table.n * math.log(states))
    return result


class _Pairs:
    """Joint distributions of pairs; a latent class model has them as one small matrix product."""

    def __init__(self, network: Network) -> None:
        self.network = network
        roots = {network.dag.parents(name) for name in network.dag.observed}
        self.is_cheap = len(roots) == 1 and len(next(iter(roots))) == 1 and next(iter(roots))[0] in network.dag.hidden
        if self.is_cheap:
            self.sizes = network.joint(next(iter(roots)))

    def joint(self, first: str, second: str) -> FloatArray:
        """Return p(first, second)."""
        if not self.is_cheap:
            return self.network.joint([first, second])
        tables = self.network.tables
        return np.asarray((tables[first] * self.sizes[:, None]).T @ tables[second], np.float64)


def _bivariate_residuals(network: Network, codes: CodeArray, weights: FloatArray) -> tuple[BivariateResidual, ...]:
    """Return the residuals of all pairs of observed columns over the rows where both are present, largest first.

    Outside latent class models each pair needs an elimination of its own; beyond `PAIR_LIMIT` pairs none is computed.
    """
    observed = network.dag.observed
    pairs = _Pairs(network)
    if not pairs.is_cheap and len(observed) * (len(observed) - 1) // 2 > PAIR_LIMIT:
        return ()
    residuals = []
    for a, b in itertools.combinations(range(len(observed)), 2):
        sizes = [len(network.levels[observed[a]]), len(network.levels[observed[b]])]
        freedom = (sizes[0] - 1) * (sizes[1] - 1)
        both = (codes[:, a] >= 0) & (codes[:, b] >= 0)
        n = float(weights[both].sum())
        if freedom == 0 or n == 0.0:
            continue
        key = codes[both, a].astype(np.int64) * sizes[1] + codes[both, b]
        seen = np.bincount(key, weights[both], minlength=sizes[0] * sizes[1])
        expected = n * pairs.joint(observed[a], observed[b]).ravel()
        gap = np.where(seen == expected, 0.0, (seen - expected) ** 2 / np.maximum(expected, 1e-300))
        residuals.append(BivariateResidual(observed[a], observed[b], float(gap.sum()) / freedom))
    return tuple(sorted(residuals, key=lambda residual: -residual.value))
