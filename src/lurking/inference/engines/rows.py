"""The rows that an engine works on, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lurking.types import CodeArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The u unique rows ("patterns") of the data, with everything that a row brings along.

    Attributes
    ----------
    codes : (u, nodes) int32, −1 where unobserved (hidden nodes: always).
    values : (u, columns) float64, one for each column of numbers or counts; (u, 0) for tables of categories.
    weights : (u,) weight of each pattern.
    log_base : (u,) ln h(y), the base measure of each pattern; zero for tables of categories.
    """

    codes: CodeArray
    values: FloatArray
    weights: FloatArray
    log_base: FloatArray

    def __post_init__(self) -> None:
        u = len(self.codes)
        if not u == len(self.values) == len(self.weights) == len(self.log_base):
            raise ValueError(
                f"{u} codes, {len(self.values)} values, {len(self.weights)} weights and {len(self.log_base)} base "
                "measures; rows have one of each"
            )

    @classmethod
    def of_codes(cls, codes: CodeArray, weights: FloatArray) -> Rows:
        """Return rows of categories alone: no values, and a base measure of 1."""
        return cls(codes, np.empty((len(codes), 0)), weights, np.zeros(len(codes)))

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"Rows({len(self)} patterns of {self.codes.shape[1]} nodes, {self.values.shape[1]} columns of values)"

    def take(self, chosen: IntArray | slice) -> Rows:
        """Return some of the rows, in the order chosen; of a slice they are views."""
        return Rows(self.codes[chosen], self.values[chosen], self.weights[chosen], self.log_base[chosen])

    @cached_property
    def has_base(self) -> bool:
        """True if some pattern has a base measure other than 1."""
        return bool(np.count_nonzero(self.log_base))

    @cached_property
    def total_log_base(self) -> float:
        """Σ_i w_i ln h(y_i); rows without weight count for nothing."""
        if not self.has_base:
            return 0.0
        used = (self.log_base != 0.0) & (self.weights != 0.0)
        return float((self.weights[used] * self.log_base[used]).sum())
