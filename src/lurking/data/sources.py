"""From Python values and NumPy arrays to raw columns: distinct values and the index of each row among them.

Only distinct values are ever looked at one by one, so the cost of the coding rule does not grow with the rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lurking.data.messages import shown
from lurking.data.patterns import distinct_integers
from lurking.errors import DataError
from lurking.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column before the coding rule.

    Attributes
    ----------
    name : str
    codes : int64 array, shape (n,)
        Index of each row's value in `distinct`; -1 is a missing cell.
    distinct : list of plain Python text, bool, int, float values, or a float64 array without NaN
        Values equal in Python but of another type (1, 1.0, True) are separate here.
    is_category : bool
        The source has a category dtype: `distinct` is its own list in its own order, unused ones included.
    """

    name: str
    codes: IntArray
    distinct: list[Any] | FloatArray
    is_category: bool = False

    def first_row(self, index: int) -> int:
        """Return the 1-based number of the first data row that holds ``distinct[index]``."""
        return int(np.argmax(self.codes == index)) + 1

    def recoded(self, lookup: Sequence[int], distinct: list[Any]) -> RawColumn:
        """Return the column with ``distinct[lookup[i]]`` in place of value i; a lookup of -1 makes it missing."""
        return RawColumn(self.name, apply_lookup(self.codes, lookup), distinct, self.is_category)


@dataclass(frozen=True)
class Source:
    """Named columns that are converted on demand, so that a dropped column is never looked at."""

    names: tuple[object, ...]
    n_rows: int
    fetch: Callable[[int], RawColumn]


def apply_lookup(codes: IntArray, lookup: Sequence[int] | IntArray) -> IntArray:
    """Return ``lookup[codes]`` of shape (n,), where -1 stays -1."""
    # The extra last entry is what index -1 meets.
    return np.append(np.asarray(lookup, dtype=np.int64), -1)[codes]


def unsupported(name: str, what: str, advice: str) -> DataError:
    """Return the error for a column whose values cannot be coded at all."""
    return DataError(f"column {name!r} holds {what}, which are not supported; {advice} or leave it out with drop=")


def dates_error(name: str) -> DataError:
    """Return the error for a column of dates or times."""
    return unsupported(name, "dates or times", "convert it to text or numbers")


def nested_error(name: str) -> DataError:
    """Return the error for a column of lists, records or other containers."""
    return unsupported(name, "nested values (lists or records)", "make one plain column of each part")


def is_missing(value: object) -> bool:
    """Return whether a Python value stands for an empty cell: None, NaN, pandas NA and NaT, NumPy NaT."""
    if value is None:
        return True
    # Compared with itself, pandas NA gives NA again, which has no truth value; every other missing value differs.
    if type(value).__name__ == "NAType":
        return True
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64 | dt.date | Decimal) and bool(
        value != value
    )


def plain_value(name: str, value: object, row: int) -> str | bool | int | float:
    """Return the value as plain Python text, bool, int or float; any other type is a `DataError`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Decimal):
        return float(value)
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        raise dates_error(name)
    if isinstance(value, list | tuple | set | frozenset | Mapping | np.ndarray):
        raise nested_error(name)
    raise DataError(
        f"column {name!r}, row {row}: {shown(value)} has type {type(value).__name__}; "
        "a cell is text, a number, True or False, or missing: convert it or leave it out with drop="
    )


def raw_from_values(name: str, values: Iterable[object]) -> RawColumn:
    """Return the raw column of any Python values, shape (n,)."""
    codes: list[int] = []
    distinct: list[Any] = []
    # The type is part of the key because 1, 1.0 and True are equal and hash alike.
    index_of: dict[tuple[type, object], int] = {}
    for row, value in enumerate(values, start=1):
        if is_missing(value):
            codes.append(-1)
            continue
        plain = value if type(value) in (str, int, bool, float) else plain_value(name, value, row)
        key = (type(plain), plain)
        index = index_of.setdefault(key, len(distinct))
        if index == len(distinct):
            distinct.append(plain)
        codes.append(index)
    return RawColumn(name, np.asarray(codes, dtype=np.int64), distinct)


def raw_from_numpy(name: str, array: NDArray[Any], is_null: NDArray[np.bool_] | None = None) -> RawColumn:
    """Return the raw column of a one-dimensional array; NaN and the cells marked in `is_null` are missing."""
    kind = array.dtype.kind
    if kind in "mM":
        raise dates_error(name)
    if kind not in "biuf":
        return raw_from_values(name, array.tolist())
    if kind == "f":
        array = array.astype(np.float64)
        is_null = np.isnan(array) if is_null is None else is_null | np.isnan(array)
    present = slice(None) if is_null is None or not is_null.any() else ~is_null
    codes = np.full(len(array), -1, dtype=np.int64)
    if kind == "f":
        # Adding zero turns -0.0 into 0.0, so that equal numbers have equal bytes.
        numbers, codes[present] = np.unique(array[present] + 0.0, return_inverse=True)
        return RawColumn(name, codes, numbers)
    whole = array[present].astype(np.int64) if kind == "b" else array[present]
    distinct, codes[present] = distinct_integers(whole)
    values = distinct.tolist()
    return RawColumn(name, codes, [bool(value) for value in values] if kind == "b" else values)


def source_from_columns(columns: Mapping[str, Any]) -> Source:
    """Return the source of a mapping from name to a sequence or one-dimensional array; equal lengths are required."""
    if not isinstance(columns, Mapping):
        raise DataError(
            f"the columns are {shown(columns)}; give a mapping from name to values, such as {{'a': [0, 1]}}"
        )
    names = tuple(columns)
    sequences: list[Any] = []
    for name in names:
        values = columns[name]
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise DataError(f"column {name!r} is {shown(values)}; give a list or array with one value for each row")
        sequences.append(values if isinstance(values, np.ndarray) else list(values))
    for name, values in zip(names, sequences, strict=True):
        if isinstance(values, np.ndarray) and values.ndim != 1:
            raise DataError(f"column {name!r} has {values.ndim} dimensions; a column has one value for each row")
        if len(values) != len(sequences[0]):
            raise DataError(
                f"column {name!r} has {len(values)} rows but {names[0]!r} has {len(sequences[0])}; "
                "all columns need the same number of rows"
            )

    def fetch(index: int) -> RawColumn:
        values = sequences[index]
        make = raw_from_numpy if isinstance(values, np.ndarray) else raw_from_values
        return make(str(names[index]), values)

    return Source(names, len(sequences[0]) if sequences else 0, fetch)


def source_from_rows(rows: Iterable[Any], columns: Sequence[str]) -> Source:
    """Return the source of a list of rows; every row has one value for each column."""
    if not isinstance(rows, Iterable):
        raise DataError(f"the rows are {shown(rows)}; give a list of rows")
    kept: list[Sequence[object]] = []
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
            raise DataError(f"row {number} is {shown(row)}; a row is a list or tuple with one value for each column")
        cells = tuple(row)
        if len(cells) != len(columns):
            raise DataError(
                f"row {number} has {len(cells)} values but there are {len(columns)} columns; "
                "every row needs one value for each column, None where it is missing"
            )
        kept.append(cells)
    names = tuple(columns)
    return Source(names, len(kept), lambda index: raw_from_values(str(names[index]), [row[index] for row in kept]))


def source_from_array(array: NDArray[Any], columns: Sequence[str] | None) -> Source:
    """Return the source of an array of shape (n, p); default names are x0, x1, ..."""
    try:
        array = np.asarray(array)
    except ValueError as error:
        raise DataError("the rows of the array have different lengths; give every row as many values") from error
    if array.ndim != 2 or array.dtype.kind not in "biufOUmM":
        raise DataError(
            f"the array has shape {array.shape} and dtype {array.dtype}; "
            "a table needs two dimensions (rows, columns) of numbers, text or objects"
        )
    names = tuple(columns) if columns is not None else tuple(f"x{index}" for index in range(array.shape[1]))
    if len(names) != array.shape[1]:
        raise DataError(f"{len(names)} column names are given for an array of {array.shape[1]} columns; give one each")
    return Source(names, array.shape[0], lambda index: raw_from_numpy(str(names[index]), array[:, index]))
