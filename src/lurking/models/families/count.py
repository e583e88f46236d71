"""Counts: Poisson distributed, with a Gamma distributed rate for each parent configuration."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from lurking.errors import DataError
from lurking.expfam.gamma import PoissonRate
from lurking.models.families.base import Cells, Family, Scope, weighted
from lurking.types import FloatArray

SPREAD = 2.0
"""Shape of the Gamma distribution around the column's mean from which rates of a start are drawn."""


class CountFamily(Family):
    """p(y | parents in configuration l) = r_l^y e^(−r_l) / y!, with r_l ~ Gamma(shape, rate).

    The default is Gamma(1, 1 / ȳ): the prior mean of every rate is the mean of the column.
    """

    name = "count"
    has_values = True

    def __init__(self, shape: float = 1.0, rate: float = 1.0) -> None:
        self.prior_shape, self.prior_rate = shape, rate

    def check(self, scope: Scope) -> None:
        """Refuse columns other than counts."""
        if scope.column.kind != "count":
            raise DataError(
                f"column {scope.name!r} is {scope.column.kind}, and a {self.name} node needs a column of counts; "
                f"declare it when the table is made (count={scope.name!r})"
            )

    def shape(self, configurations: int) -> tuple[int, int]:
        """Return one row (rate, shape) for each configuration."""
        return configurations, 2

    def block(self, n_rows: int) -> PoissonRate:
        """Return Gamma distributions."""
        return PoissonRate(n_rows)

    def prior(self, n_rows: int) -> FloatArray:
        """Return (rate, shape) of every row."""
        return np.tile([self.prior_rate, self.prior_shape], n_rows)

    def start(self, n_rows: int, generator: np.random.Generator) -> FloatArray:
        """Return η of rates drawn around the prior mean."""
        rates = np.maximum(generator.standard_gamma(SPREAD, n_rows), 1e-3) / SPREAD * self.prior_shape / self.prior_rate
        return PoissonRate(n_rows).natural(np.log(rates))[0]

    def cells(self, potentials: FloatArray, cells: Cells) -> FloatArray:
        """Return φ₁ + y φ₂ of the row of each place, with 0·(−inf) = 0."""
        rows = potentials.reshape(-1, 2)[cells.configuration]
        return np.asarray(rows[:, 0] + weighted(cells.value, rows[:, 1]))

    def statistics(self, potentials: FloatArray, cells: Cells, masses: FloatArray) -> FloatArray:
        """Return (Σ masses, Σ masses · y) of every row."""
        count = len(potentials) // 2
        sums = [
            np.bincount(cells.configuration, weights=own, minlength=count) for own in (masses, masses * cells.value)
        ]
        return np.asarray(np.stack(sums, axis=1).ravel(), np.float64)

    def log_base(self, values: FloatArray) -> FloatArray:
        """Return −ln y!."""
        return np.where(np.isnan(values), 0.0, -gammaln(np.nan_to_num(values) + 1.0))


def count_of(scope: Scope) -> CountFamily:
    """Return the family of a column of counts, its prior mean that of the column."""
    column = scope.column
    if not column.is_coded or column.kind != "count":
        return CountFamily()  # `check` refuses it
    values = np.append(np.asarray(column.levels, np.float64), np.nan)[column.codes]
    seen = column.codes >= 0
    weight, total = float(scope.weights[seen].sum()), float(scope.weights[seen] @ values[seen])
    # A column of zeros alone, or without weight, does not determine a scale.
    return CountFamily(1.0, weight / total if total > 0.0 else 1.0)
