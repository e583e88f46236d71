"""What a network says about rows at many values of its parameters, compiled once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.inference.engines.base import Engine
from lurking.inference.network import Network
from lurking.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RowQuestions:
    """p(row) and p(target | other cells of the row) under one structure, as functions of its parameters.

    `inverse` (rows,) is the unique row of each row; methods answer for unique rows.
    """

    network: Network
    engine: Engine
    inverse: IntArray
    node: int

    @classmethod
    def compiled(cls, network: Network, data: Any, target: str) -> RowQuestions:
        """Compile the rows; the target's own column, if any, is not looked at."""
        coded = network._coded(data, without=target)
        engine, inverse = network._compile(coded, [target], without=target)
        return cls(network, engine, inverse, network.layout.index[target])

    @property
    def mean(self) -> FloatArray:
        """Ln θ̄ of the network, (P,)."""
        return self.network._log_theta

    def log_probability(self, log_theta: FloatArray) -> FloatArray:
        """Return ln p(known cells | θ), (u,)."""
        return self.engine.pattern_log_z(log_theta)

    def marginals(self, log_theta: FloatArray) -> FloatArray:
        """Return p(target | known cells, θ), (u, states)."""
        return self.engine.pattern_marginals(log_theta, self.node)

    def variance(self, draws: int, generator: np.random.Generator) -> FloatArray:
        """Return the variance of p(target | known cells, θ) over the posterior of θ, (u, states).

        θ is drawn from q(θ) = Π Dir(α) and weighed by p(known cells | θ), for the row itself says something about θ.
        """
        centre, level = self.marginals(self.mean), self.log_probability(self.mean)
        total, first, second = np.zeros(len(centre)), np.zeros_like(centre), np.zeros_like(centre)
        for _ in range(draws):
            log_theta = drawn_parameters(self.network, generator)
            weight = np.exp(self.log_probability(log_theta) - level)
            # Deviations from the prediction itself, so that nothing cancels in the difference of squares.
            deviation = self.marginals(log_theta) - centre
            total += weight
            first += weight[:, None] * deviation
            second += weight[:, None] * deviation**2
        total = np.maximum(total, np.finfo(np.float64).tiny)[:, None]
        return np.maximum(second / total - (first / total) ** 2, 0.0)


def coded_rows(network: Network, data: Any) -> Table:
    """Return the data as a table whose columns have the levels of the network."""
    return network._coded(data)


def drawn_parameters(network: Network, generator: np.random.Generator) -> FloatArray:
    """Return ln θ drawn from q(θ) = Π_jl Dir(α_jl), (P,); tied families share one draw."""
    if network.alpha is None:
        raise OptionError("the network has no posterior over its parameters to draw from; fit it with method='vb'")
    layout = network.layout
    log_theta = layout.blocks.draw(network.alpha, generator)
    for first, *others in network.tied:
        for name in others:
            layout.table(log_theta, name)[:] = layout.table(log_theta, first)
    return log_theta
