"""What every family of distributions of a node given its parents offers to layouts, engines and samplers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lurking.data.column import Column
from lurking.expfam.base import Conjugate
from lurking.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Cells:
    """Places at which the factor of one node is evaluated: k completed rows.

    Attributes
    ----------
    configuration : (k,) parent configuration, row-major over the parents in listed order, first parent slowest; without
        meaning where there are too many for an integer.
    parents : (k, parents) state of each parent.
    state : (k,) state of the node; 0 for a node with values.
    value : (k,) value of the node; 0 for a node with states.
    """

    configuration: IntArray
    parents: IntArray
    state: IntArray
    value: FloatArray

    @cached_property
    def distinct(self) -> tuple[IntArray, IntArray]:
        """One place for each different combination of states (d,), and which of these each place has (k,)."""
        states = np.column_stack([self.parents, self.state])
        _, first, inverse = np.unique(states, axis=0, return_index=True, return_inverse=True)
        return np.asarray(first, np.int64), np.asarray(inverse, np.int64).reshape(-1)


class Scope(NamedTuple):
    """What a family may ask of its node: name, column with the weights of its rows, and states of each parent."""

    name: str
    column: Column
    weights: FloatArray
    parents: tuple[int, ...]


class Family(ABC):
    """p(node | parents, θ) = h(y) exp(cell), the cell being a function of the potentials of the node's own rows.

    A cell is *affine* if it is φ·u(y, parents) for statistics u; then log_z is convex in φ and the posterior of θ given
    completed rows is conjugate. Vectors over potentials and statistics of the node are flat, (rows · width,).

    Attributes
    ----------
    name : what models and messages call the family.
    is_affine : True if cells are affine in the potentials.
    has_values : True if the node takes values (numbers, counts) rather than states.
    """

    name: str
    is_affine: bool = True
    has_values: bool = False

    def check(self, scope: Scope) -> None:  # noqa: B027 - a family that fits every node has nothing to refuse
        """Raise `StructureError` or `DataError` if the family does not fit a node."""

    @abstractmethod
    def shape(self, configurations: int) -> tuple[int, int]:
        """Return the number of rows of parameters and the size of each, given that of parent configurations."""

    @abstractmethod
    def block(self, n_rows: int) -> Conjugate:
        """Return the conjugate family of so many rows."""

    @abstractmethod
    def prior(self, n_rows: int) -> FloatArray:
        """Return the natural hyperparameters λ of so many rows, flat."""

    @abstractmethod
    def start(self, n_rows: int, generator: np.random.Generator) -> FloatArray:
        """Return η of parameters from which a climb may start, different for each draw, flat."""

    @abstractmethod
    def cells(self, potentials: FloatArray, cells: Cells) -> FloatArray:
        """Return the cell at each place, (k,), without ln h(y)."""

    @abstractmethod
    def statistics(self, potentials: FloatArray, cells: Cells, masses: FloatArray) -> FloatArray:
        """Return Σ_k masses_k ∂cell_k/∂φ, flat: for an affine cell the statistics of the rows."""

    def log_base(self, values: FloatArray) -> FloatArray:
        """Return ln h(y) of each value, (k,); 0 for missing ones (NaN)."""
        return np.zeros(len(values))


def weighted(values: FloatArray, potentials: FloatArray) -> FloatArray:
    """Return values · potentials with 0·(−inf) = 0: EM gives potentials of −∞ where a statistic is 0."""
    used = values != 0.0
    return np.where(used, values * np.where(used, potentials, 0.0), 0.0)
