"""Tables: a distribution over states for each parent configuration."""

from __future__ import annotations

import numpy as np

from lurking.expfam.dirichlet import Dirichlet
from lurking.models.families.base import Cells, Family
from lurking.types import FloatArray


class TableFamily(Family):
    """p(node = k | parents in configuration l) = θ_lk, with a Dirichlet distribution for each l."""

    name = "table"

    def __init__(self, states: int, pseudo_count: float = 1.0) -> None:
        self.states, self.pseudo_count = states, pseudo_count

    def shape(self, configurations: int) -> tuple[int, int]:
        """Return one row of `states` for each configuration."""
        return configurations, self.states

    def block(self, n_rows: int) -> Dirichlet:
        """Return Dirichlet distributions."""
        return Dirichlet(self.states * np.arange(n_rows + 1))

    def prior(self, n_rows: int) -> FloatArray:
        """Return the same pseudo-count for every entry."""
        return np.full(n_rows * self.states, self.pseudo_count)

    def start(self, n_rows: int, generator: np.random.Generator) -> FloatArray:
        """Return ln θ drawn from uniform Dirichlet distributions."""
        return self.block(n_rows).draw(np.ones(n_rows * self.states), generator)

    def cells(self, potentials: FloatArray, cells: Cells) -> FloatArray:
        """Return φ of the entry of each place."""
        return np.asarray(potentials[cells.configuration * self.states + cells.state])

    def statistics(self, potentials: FloatArray, cells: Cells, masses: FloatArray) -> FloatArray:
        """Return how much mass falls on each entry."""
        places = cells.configuration * self.states + cells.state
        return np.bincount(places, weights=masses, minlength=len(potentials)).astype(np.float64)
