"""Logistic nodes: two states, a weight for each parent instead of a row for each of their configurations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lurking.errors import StructureError
from lurking.expfam.gaussian import GaussianWeights
from lurking.expfam.logistic_moments import LogisticMoments, logistic_moments
from lurking.models.families.base import Cells, Family, Scope
from lurking.types import FloatArray, IntArray

SCALE = 2.5
"""Default standard deviation of the prior of every weight."""
START = 0.5
"""Standard deviation of the weights of a start."""


class _Places(NamedTuple):
    """Different places of a logistic node: its features u and the sign of y."""

    features: FloatArray
    """(k, weights)"""
    sign: FloatArray
    """(k,)"""


class LogisticFamily(Family):
    """p(y = ±1 | parents) = g(y w·u), g(a) = 1 / (1 + e^−a), u = (1, parents as ±1), w ~ N(0, scale² I).

    A cell is E ln g(y w·u) under the Gaussian with E[w] and E[w wᵀ] given by the potentials, one integral over
    a = w·u for each configuration (de-freitas-2001, section 2, without the quadratic bound). It is not affine in the
    potentials, and not convex. Potentials of a point have the variance 0 there, and the cell is ln g itself.
    """

    name = "logistic"
    is_affine = False

    def __init__(self, n_parents: int, scale: float = SCALE) -> None:
        self.n_weights, self.scale = n_parents + 1, scale

    def check(self, scope: Scope) -> None:
        """Refuse nodes and parents that do not have two states, and another number of parents."""
        if not scope.column.is_categorical or scope.column.n_states != 2:
            has = f"has {scope.column.n_states} states" if scope.column.is_categorical else f"is {scope.column.kind}"
            raise StructureError(f"{scope.name!r} {has}, and a logistic node must have 2 states; use another family")
        wrong = [states for states in scope.parents if states != 2]
        if wrong:
            raise StructureError(
                f"{scope.name!r} has a parent with {wrong[0]} states, and the parents of a logistic node must have 2; "
                "use a table"
            )
        if len(scope.parents) + 1 != self.n_weights:
            raise StructureError(
                f"the logistic family of {scope.name!r} was made for {self.n_weights - 1} parents, and it has "
                f"{len(scope.parents)}; pass LogisticFamily({len(scope.parents)})"
            )

    def shape(self, configurations: int) -> tuple[int, int]:  # noqa: ARG002
        """Return one row (w, w wᵀ)."""
        return 1, self.n_weights + self.n_weights**2

    def block(self, n_rows: int) -> GaussianWeights:
        """Return Gaussian weights."""
        return GaussianWeights(n_rows, self.n_weights)

    def prior(self, n_rows: int) -> FloatArray:
        """Return h of N(0, scale² I)."""
        precision = np.tile(np.eye(self.n_weights) / self.scale**2, (n_rows, 1, 1))
        return self.block(n_rows).natural_of(np.zeros((n_rows, self.n_weights)), precision)

    def start(self, n_rows: int, generator: np.random.Generator) -> FloatArray:
        """Return η of small random weights."""
        return self.block(n_rows).natural(START * generator.standard_normal(n_rows * self.n_weights))[0]

    def cells(self, potentials: FloatArray, cells: Cells) -> FloatArray:
        """Return E ln g(y w·u) of each place."""
        _, inverse, moments = self._moments(potentials, cells)
        return np.asarray(moments.value[inverse])

    def statistics(self, potentials: FloatArray, cells: Cells, masses: FloatArray) -> FloatArray:
        """Return Σ masses ∂cell/∂φ.

        With m = y E[w]·u and v = uᵀ (E[w wᵀ] − E[w] E[w]ᵀ) u: ∂/∂E[w] = (∂m y − 2 ∂v E[w]·u) u and ∂/∂E[w wᵀ] =
        ∂v u uᵀ.
        """
        u, inverse, moments = self._moments(potentials, cells)
        sums = np.bincount(inverse, weights=masses, minlength=len(u.sign))
        along = u.features @ potentials[: self.n_weights]
        linear = sums * (moments.of_mean * u.sign - 2.0 * moments.of_variance * along)
        square = np.einsum("k,ki,kj->ij", sums * moments.of_variance, u.features, u.features)
        return np.concatenate([linear @ u.features, square.ravel()])

    def _moments(self, potentials: FloatArray, cells: Cells) -> tuple[_Places, IntArray, LogisticMoments]:
        """Return the different places, which of them each place is, and the moments of a there."""
        first, inverse = cells.distinct
        features = np.concatenate([np.ones((len(first), 1)), 2.0 * cells.parents[first] - 1.0], axis=1)
        places = _Places(features, np.asarray(2.0 * cells.state[first] - 1.0, np.float64))
        mean = features @ potentials[: self.n_weights]
        second = potentials[self.n_weights :].reshape(self.n_weights, self.n_weights)
        variance = np.maximum(np.einsum("ki,ij,kj->k", features, second, features) - mean**2, 0.0)
        return places, inverse, logistic_moments(places.sign * mean, variance)


def logistic_of(scope: Scope) -> LogisticFamily:
    """Return the family with a weight for each parent."""
    return LogisticFamily(len(scope.parents))
