"""One column of a `Table`: categorical codes with their levels, or continuous values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lurking.types import CodeArray, FloatArray, IntArray, Level

Kind: TypeAlias = Literal["categorical", "continuous", "count"]

NO_CODES: CodeArray = np.empty(0, dtype=np.int32)
NO_VALUES: FloatArray = np.empty(0, dtype=np.float64)
NO_CODES.flags.writeable = False
NO_VALUES.flags.writeable = False


@dataclass(frozen=True)
class ColumnSummary:
    """What `Table.describe` says of one column."""

    name: str
    kind: Kind
    levels: tuple[Level, ...]
    n_missing: int
    unseen_levels: tuple[Level, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """An immutable column of n rows.

    Attributes
    ----------
    name : str
    kind : "categorical", "continuous" or "count"
    codes : int32 array, shape (n,), or (0,) when continuous
        Index of each row's level in `levels`; -1 is a missing cell. Read-only.
    levels : tuple
        The states in their order; the different numbers, ascending, of a count; empty when continuous.
    values : float64 array, shape (n,) when continuous, else (0,)
        The numbers; NaN is a missing cell. Read-only.
    declared : bool
        True when the user fixed the levels or the kind (``levels=``, ``categorical=``, or a category dtype).
    """

    name: str
    kind: Kind
    codes: CodeArray
    levels: tuple[Level, ...]
    values: FloatArray
    declared: bool = False

    def __post_init__(self) -> None:
        self.codes.flags.writeable = False
        self.values.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickling forgets that arrays are read-only.
        self.__dict__.update(state)
        self.__post_init__()

    @classmethod
    def categorical(cls, name: str, codes: CodeArray, levels: tuple[Level, ...], *, declared: bool) -> Column:
        """Return a categorical column; `codes` has shape (n,) and is made read-only."""
        return cls(name, "categorical", codes, levels, NO_VALUES, declared)

    @classmethod
    def continuous(cls, name: str, values: FloatArray, *, declared: bool) -> Column:
        """Return a continuous column; `values` has shape (n,) and is made read-only."""
        return cls(name, "continuous", NO_CODES, (), values, declared)

    @classmethod
    def count(cls, name: str, codes: CodeArray, levels: tuple[Level, ...]) -> Column:
        """Return a column of counts; `levels` are the different integers that occur, ascending."""
        return cls(name, "count", codes, levels, NO_VALUES, True)

    @property
    def is_categorical(self) -> bool:
        """True if the levels are states without a distance between them."""
        return self.kind == "categorical"

    @property
    def is_coded(self) -> bool:
        """True if the column has codes and levels, as categories and counts have."""
        return self.kind != "continuous"

    @property
    def cardinality(self) -> int:
        """Number of levels, unseen ones included; 0 for a continuous column."""
        return len(self.levels)

    @property
    def n_states(self) -> int:
        """Number of states of a node with this column: 1 if its values are numbers."""
        return self.cardinality if self.is_categorical else 1

    @property
    def n_missing(self) -> int:
        """Number of physical rows whose cell is missing."""
        if self.is_coded:
            return int(np.count_nonzero(self.codes < 0))
        return int(np.count_nonzero(np.isnan(self.values)))

    @property
    def unseen_levels(self) -> tuple[Level, ...]:
        """Levels that were declared and occur in no row."""
        if not self.declared:
            return ()
        seen = np.bincount(self.codes[self.codes >= 0], minlength=self.cardinality) > 0
        return tuple(level for level, is_seen in zip(self.levels, seen, strict=True) if not is_seen)

    def looks_like_identifier(self, n: float) -> bool:
        """Whether the column seems to number the n rows (counted with their weights) rather than to measure something.

        True when the levels were not declared and there are more than 1000 of them, or more than 100 and more than
        a quarter of the rows.
        """
        many_for_the_rows = self.cardinality > 100 and self.cardinality > n / 4
        return not self.declared and (self.cardinality > 1000 or many_for_the_rows)

    def ranks(self) -> tuple[IntArray, IntArray | FloatArray]:
        """Return codes of shape (n,) for any kind, and the distinct values they count, ascending.

        A column with levels gives its own codes and 0, 1, ..., cardinality - 1. A continuous one gives the rank of
        each value among the distinct ones. -1 is a missing cell.
        """
        if self.is_coded:
            return self.codes.astype(np.int64), np.arange(self.cardinality, dtype=np.int64)
        present = ~np.isnan(self.values)
        distinct, inverse = np.unique(self.values[present], return_inverse=True)
        codes = np.full(len(self), -1, dtype=np.int64)
        codes[present] = inverse
        return codes, distinct

    def take(self, rows: IntArray) -> Column:
        """Return the column with only the given rows, in the order given; levels stay as they are."""
        if self.is_coded:
            return replace(self, codes=self.codes[rows])
        return replace(self, values=self.values[rows])

    def summary(self) -> ColumnSummary:
        """Return name, kind, levels, missing cells and unseen levels as one small record."""
        return ColumnSummary(self.name, self.kind, self.levels, self.n_missing, self.unseen_levels)

    def __len__(self) -> int:
        return len(self.codes) if self.is_coded else len(self.values)

    def __repr__(self) -> str:
        what = f"{self.cardinality} levels" if self.is_categorical else self.kind
        return f"Column({self.name!r}, {what}, {len(self)} rows, {self.n_missing} missing)"


def decoded(column: Column) -> NDArray[Any]:
    """Return the levels or values of each row, shape (n,); a missing cell is None, or NaN in a continuous column."""
    if not column.is_coded:
        return column.values.copy()
    levels = np.empty(column.cardinality + 1, dtype=object)
    levels[:-1] = column.levels
    cells = levels[column.codes]
    kinds = {type(level) for level in column.levels}
    # Plain integers and bools keep their own dtype; a missing cell has no place in one, so then they stay objects.
    if column.n_missing == 0 and kinds in ({int}, {bool}):
        return np.asarray(cells.tolist(), dtype=None if len(cells) else object)
    return cells
