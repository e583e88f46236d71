"""Unique rows with their weights: the form in which every loop of the library sees data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lurking.types import CodeArray, FloatArray, IntArray

LARGEST_KEY = 2**62
COUNTING_FACTOR = 4
COUNTING_FLOOR = 4096
UNOBSERVED, CONSTANT = -1, -2
FILL = {UNOBSERVED: -1, CONSTANT: 0}


@dataclass(frozen=True, eq=False, repr=False)
class Patterns:
    """The u unique rows of p categorical columns. All arrays are read-only.

    Attributes
    ----------
    columns : tuple of str, length p
    codes : int32 array, shape (u, p)
        Unique rows in lexicographic order; -1, a missing cell, comes first.
    weights : float64 array, shape (u,)
        Sum of the weights of the rows of each pattern; 0 when all of them have weight 0.
    inverse : int64 array, shape (n_rows,)
        The pattern of each row, so that ``codes[inverse]`` is the data.
    """

    columns: tuple[str, ...]
    codes: CodeArray
    weights: FloatArray
    inverse: IntArray

    def __post_init__(self) -> None:
        for array in (self.codes, self.weights, self.inverse):
            array.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_arranged"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickling forgets that arrays are read-only.
        self.__dict__.update(state)
        self.__post_init__()

    def __len__(self) -> int:
        return len(self.codes)

    def arranged(self, places: tuple[int, ...]) -> CodeArray:
        """Return codes (u, places): of each place that column, −1 throughout for `UNOBSERVED`, 0 for `CONSTANT`.

        Structures over the same columns ask for the same arrangement; the last one is kept.
        """
        kept = self.__dict__.get("_arranged")
        if kept is not None and kept[0] == places:
            arranged: CodeArray = kept[1]
            return arranged
        # One column after the other in memory: that is how they are read.
        codes = np.empty((len(self.codes), len(places)), np.int32, order="F")
        for k, place in enumerate(places):
            codes[:, k] = self.codes[:, place] if place >= 0 else FILL[place]
        codes.flags.writeable = False
        self.__dict__["_arranged"] = (places, codes)
        return codes

    def __repr__(self) -> str:
        return f"Patterns({len(self)} unique of {len(self.inverse)} rows over {', '.join(self.columns)})"


def distinct_integers(values: NDArray[np.integer]) -> tuple[NDArray[np.integer], IntArray]:
    """Return the distinct values ascending, shape (u,), and the index of each value among them, shape (n,).

    Counting replaces sorting when the values span a range not much longer than the data, which is the usual case.
    """
    if values.size == 0:
        return values, np.empty(0, dtype=np.int64)
    if values.dtype != np.uint64:
        # Differences of narrow integers would wrap; only unsigned 64-bit values may not fit in int64.
        values = values.astype(np.int64, copy=False)
    lowest = int(values.min())
    span = int(values.max()) - lowest + 1
    if span > max(COUNTING_FACTOR * values.size, COUNTING_FLOOR):
        distinct, inverse = np.unique(values, return_inverse=True)
        return distinct, inverse.astype(np.int64, copy=False)
    offsets = (values - values.dtype.type(lowest)).astype(np.int64, copy=False)
    is_present = np.bincount(offsets, minlength=span) > 0
    rank = np.cumsum(is_present, dtype=np.int64) - 1
    present_offsets = np.flatnonzero(is_present).astype(values.dtype)
    return present_offsets + values.dtype.type(lowest), rank[offsets]


def rank_rows(
    codes: Sequence[NDArray[np.integer]], cardinalities: Sequence[int], n_rows: int
) -> tuple[IntArray, IntArray]:
    """Rank the rows of several code columns lexicographically.

    `codes` are p arrays of shape (n_rows,) with values from -1 to cardinality - 1. Returns the rank of each row among
    the distinct rows, shape (n_rows,), where the first column weighs most and -1 comes first; and one row for each
    rank, shape (u,).

    A row is one mixed-radix number. Whenever the next digit would not fit in 62 bits, the numbers so far are replaced
    by their ranks, which keeps the order and cannot overflow again before every row is distinct.
    """
    key = np.zeros(n_rows, dtype=np.int64)
    size = 1
    for column, cardinality in zip(codes, cardinalities, strict=True):
        radix = cardinality + 1
        if size * radix > LARGEST_KEY:
            distinct, key = distinct_integers(key)
            size = len(distinct)
        key = key * radix
        key += column
        key += 1
        size *= radix
    distinct, inverse = distinct_integers(key)
    representative = np.empty(len(distinct), dtype=np.int64)
    representative[inverse] = np.arange(n_rows, dtype=np.int64)
    return inverse, representative


def summed_weights(inverse: IntArray, weights: FloatArray, n_distinct: int) -> FloatArray:
    """Return the sum of the weights of the rows of each rank, shape (n_distinct,)."""
    return np.bincount(inverse, weights=weights, minlength=n_distinct).astype(np.float64, copy=False)
