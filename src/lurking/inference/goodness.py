"""What latent-class users expect beside a fit: G², X², AIC, entropy R², bivariate residuals."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc, xlogy

from lurking.data.table import Table
from lurking.inference.network import Network
from lurking.types import BoolArray, CodeArray, FloatArray


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
    `n_complete` says how many rows that were. `degrees_of_freedom` = cells − 1 − d, and may be negative when the model
    has more parameters than the table has cells. AIC and BIC are −2 ln p(y|θ̂) + penalty: lower is better.
    """

    n: float
    n_complete: float
    loglik: float
    dimension: int
    aic: float
    bic: float
    g_squared: float
    x_squared: float
    degrees_of_freedom: int
    p_value: float | None
    entropy_r2: dict[str, float]
    bivariate_residuals: tuple[BivariateResidual, ...]


def goodness_of_fit(network: Network, table: Table, dimension: int | None = None) -> Goodness:
    """Return the statistics of `network` on `table` (weights count as repeated rows).

    `dimension` is d; by default that of the network without its barren nodes, which the data cannot see.
    """
    observed = network.dag.observed
    coded = table.with_columns_coded({name: network.levels[name] for name in observed})
    patterns = coded.patterns(observed)
    loglik = network.loglik(coded)
    total = float(coded.weights @ loglik)
    n, d = coded.n, network.relevant_dimension if dimension is None else dimension
    complete = (patterns.codes >= 0).all(axis=1) & (patterns.weights > 0)
    g_squared, x_squared, n_complete = _against_saturated(network, coded, patterns.weights, complete)
    cells = math.prod(len(network.levels[name]) for name in observed)
    freedom = cells - 1 - d
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
        p_value=float(gammaincc(0.5 * freedom, 0.5 * g_squared)) if freedom > 0 else None,
        entropy_r2=_entropy_r2(network, coded),
        bivariate_residuals=_bivariate_residuals(network, patterns.codes, patterns.weights),
    )


def _against_saturated(
    network: Network, table: Table, weights: FloatArray, complete: BoolArray
) -> tuple[float, float, float]:
    """Return (G², X², n) of the complete rows: 2 Σ f ln(f/e) and Σ (f − e)²/e, empty cells included in X²."""
    n = float(weights[complete].sum())
    if n == 0.0:
        return 0.0, 0.0, 0.0
    row_loglik = np.zeros(len(weights))
    row_loglik[table.patterns(network.dag.observed).inverse] = network.loglik(table)
    seen = weights[complete]
    expected = n * np.exp(row_loglik[complete])
    g_squared = 2.0 * float(xlogy(seen, seen / expected).sum())
    x_squared = float(((seen - expected) ** 2 / expected).sum()) + max(n - float(expected.sum()), 0.0)
    return max(g_squared, 0.0), x_squared, n


def _entropy_r2(network: Network, table: Table) -> dict[str, float]:
    """Return 1 − mean entropy of p(state | row) / ln r for each hidden variable: 1 when every row is surely placed."""
    result = {}
    for name, probabilities in network.hidden_probabilities(table).items():
        states = probabilities.shape[1]
        if states > 1 and table.n > 0 and name not in network.dag.barren:
            entropy = -float(table.weights @ xlogy(probabilities, probabilities).sum(axis=1))
            result[name] = 1.0 - entropy / (table.n * math.log(states))
    return result


def _bivariate_residuals(network: Network, codes: CodeArray, weights: FloatArray) -> tuple[BivariateResidual, ...]:
    """Return the residuals of all pairs of observed columns over the rows where both are present, largest first."""
    observed = network.dag.observed
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
        expected = n * network.joint([observed[a], observed[b]]).ravel()
        gap = np.where(seen == expected, 0.0, (seen - expected) ** 2 / np.maximum(expected, 1e-300))
        residuals.append(BivariateResidual(observed[a], observed[b], float(gap.sum()) / freedom))
    return tuple(sorted(residuals, key=lambda residual: -residual.value))
