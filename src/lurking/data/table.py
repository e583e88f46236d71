"""`Table`: immutable data, coded once, from which every model reads unique rows with weights."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lurking.data.coding import (
    Coding,
    check_column_names,
    checked_levels,
    code_by_levels,
    code_column,
    code_weights,
    kept_names,
    weights_from_array,
)
from lurking.data.column import Column, ColumnSummary, decoded
from lurking.data.forgotten_weights import warn_of_forgotten_weights
from lurking.data.frames import pandas_frame, source_from_frame
from lurking.data.intervals import with_numbers_in_intervals
from lurking.data.messages import listed, plain_count, shown, unknown_column
from lurking.data.patterns import Patterns, rank_rows, summed_weights
from lurking.data.sources import (
    RawColumn,
    Source,
    source_from_array,
    source_from_columns,
    source_from_rows,
)
from lurking.errors import DataError
from lurking.types import CodeArray, FloatArray, Frame, Level

DIGEST_BITS = 40


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named columns of equal length with one weight for each row. Nothing in it can be changed.

    Make one with `from_rows`, `from_columns`, `from_frame`, `from_array` or `lurking.data.read`.

    Attributes
    ----------
    columns : tuple of str
    n_rows : int
        Physical rows.
    weights : float64 array, shape (n_rows,)
        How often each row counts; ones when none were given. Read-only.
    has_weights : bool
        Whether weights were given.
    home : the folder of a table on disk (`lurking.data.disk.Home`), or None.
    """

    columns: tuple[str, ...]
    n_rows: int
    weights: FloatArray
    has_weights: bool
    _by_name: dict[str, Column]
    home: Any = None
    _patterns: dict[tuple[str, ...], Patterns] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False

    @property
    def is_complete(self) -> bool:
        """Whether no cell is empty."""
        return not any(column.n_missing for column in self._by_name.values())

    @property
    def is_on_disk(self) -> bool:
        """Whether the cells live in files, because they do not fit in memory; see `lurking.read`."""
        return self.home is not None

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickling forgets that arrays are read-only.
        self.__dict__.update(state)
        self.__post_init__()

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Any],
        columns: Sequence[str],
        levels: Mapping[str, Sequence[Level]] | None = None,
        weights: str | Sequence[float] | NDArray[Any] | None = None,
        categorical: Iterable[str] = (),
        continuous: Iterable[str] = (),
        count: Iterable[str] = (),
    ) -> Table:
        """Return a table from a list of rows, each with one value for each column; None is a missing cell.

        No rows at all is allowed when the levels of every column are declared.
        """
        source = source_from_rows(rows, names_given(columns))
        return assemble(source, Coding.from_options(levels, categorical, continuous, count=count), weights)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any],
        levels: Mapping[str, Sequence[Level]] | None = None,
        weights: str | Sequence[float] | NDArray[Any] | None = None,
        categorical: Iterable[str] = (),
        continuous: Iterable[str] = (),
        drop: Iterable[str] = (),
        count: Iterable[str] = (),
    ) -> Table:
        """Return a table from a mapping of names to sequences or one-dimensional arrays of equal length."""
        coding = Coding.from_options(levels, categorical, continuous, drop, count)
        return assemble(source_from_columns(columns), coding, weights)

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        weights: str | Sequence[float] | NDArray[Any] | None = None,
        levels: Mapping[str, Sequence[Level]] | None = None,
        categorical: Iterable[str] = (),
        continuous: Iterable[str] = (),
        drop: Iterable[str] = (),
        count: Iterable[str] = (),
    ) -> Table:
        """Return a table from a pandas, polars or Arrow table; `weights` is a column of it or an array.

        Category and Enum columns keep their own order, and their unused categories stay as unseen levels.
        """
        coding = Coding.from_options(levels, categorical, continuous, drop, count)
        return assemble(source_from_frame(frame), coding, weights)

    @classmethod
    def from_array(
        cls,
        array: NDArray[Any],
        columns: Sequence[str] | None = None,
        levels: Mapping[str, Sequence[Level]] | None = None,
        weights: str | Sequence[float] | NDArray[Any] | None = None,
        categorical: Iterable[str] = (),
        continuous: Iterable[str] = (),
        drop: Iterable[str] = (),
        count: Iterable[str] = (),
    ) -> Table:
        """Return a table from an array of shape (n_rows, p); NaN and None are missing, names default to x0, x1, ..."""
        source = source_from_array(array, None if columns is None else names_given(columns))
        return assemble(source, Coding.from_options(levels, categorical, continuous, drop, count), weights)

    @classmethod
    def from_codes(cls, columns: Mapping[str, tuple[CodeArray, Sequence[Level]]]) -> Table:
        """Return a table of categorical columns given as {name: (codes, levels)}; a code of -1 is a missing cell."""
        names = check_column_names(list(columns))
        if not names:
            raise DataError("no column was given; a table needs at least one")
        by_name = {}
        for name in names:
            given, levels = columns[name]
            states = checked_levels(name, levels)
            codes = np.array(given, np.int32)
            wrong = codes[(codes < -1) | (codes >= len(states))]
            if wrong.size:
                raise DataError(f"column {name!r} has the code {wrong[0]}; codes go from -1 to {len(states) - 1}")
            by_name[name] = Column.categorical(name, codes, tuple(states), declared=True)
        n_rows = len(next(iter(by_name.values())))
        empty = cls((), n_rows, np.ones(n_rows), False, {})
        return empty.with_columns(by_name)

    @cached_property
    def n(self) -> float:
        """Sum of the weights: the number of cases the rows stand for."""
        return float(self.weights.sum())

    @property
    def has_integer_weights(self) -> bool:
        """Whether every weight is a whole number."""
        return bool(np.all(self.weights == np.floor(self.weights)))

    def __getitem__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            raise unknown_column("the table was asked for a column: it", name, self.columns) from None

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return self.n_rows

    def patterns(self, columns: Sequence[str] | None = None) -> Patterns:
        """Return the unique rows of the given categorical columns (default: all), computed once for each choice."""
        key = self.columns if columns is None else tuple(names_given(columns))
        found = self._patterns.get(key)
        if found is not None:
            return found
        chosen = [self[name] for name in key]
        for column in chosen:
            if not column.is_coded:
                raise DataError(
                    f"column {column.name!r} is continuous and has no unique rows to count; "
                    "declare it with categorical= or cut it into classes first"
                )
        inverse, representative = rank_rows(
            [column.codes for column in chosen], [column.cardinality for column in chosen], self.n_rows
        )
        codes = np.empty((len(representative), len(chosen)), dtype=np.int32)
        for position, column in enumerate(chosen):
            codes[:, position] = column.codes[representative]
        weights = summed_weights(inverse, self.weights, len(representative))
        patterns = Patterns(key, codes, weights, inverse)
        self._patterns[key] = patterns
        return patterns

    def blocks(self, columns: Sequence[str], size: int) -> Iterator[tuple[CodeArray, FloatArray]]:
        """Yield codes (rows, p) and weights (rows,) of at most `size` rows at a time, in order; nothing is merged."""
        chosen = [self[name] for name in names_given(columns)]
        for begin in range(0, self.n_rows, size):
            end = min(begin + size, self.n_rows)
            codes = np.empty((end - begin, len(chosen)), np.int32, order="F")
            for position, column in enumerate(chosen):
                codes[:, position] = column.codes[begin:end]
            yield codes, np.ascontiguousarray(self.weights[begin:end])

    def unique(self) -> Table:
        """Return the table with each distinct row once, in sorted order, and the summed weights."""
        ranks = [self[name].ranks() for name in self.columns]
        inverse, representative = rank_rows(
            [codes for codes, _ in ranks], [len(distinct) for _, distinct in ranks], self.n_rows
        )
        weights = summed_weights(inverse, self.weights, len(representative))
        by_name = {name: self[name].take(representative) for name in self.columns}
        return Table(self.columns, len(representative), weights, True, by_name)

    def select(self, columns: Sequence[str]) -> Table:
        """Return the table with only the given columns, in the order given; rows and weights stay."""
        names = check_column_names(names_given(columns))
        return self.with_columns({name: self[name] for name in names})

    def drop(self, columns: Sequence[str]) -> Table:
        """Return the table without the given columns."""
        dropped = {self[name].name for name in names_given(columns)}
        return self.with_columns({name: self[name] for name in self.columns if name not in dropped})

    def with_columns_coded(self, levels: Mapping[str, Sequence[Level]]) -> Table:
        """Return the table with the named columns recoded to the given levels; others stay as they are.

        Values are matched by equality, then by text form, so that levels learnt from numbers or bools fit the same
        answers read as text. Levels that are a complete set of intervals take every number by where it lies. A value in
        the data that matches none of the levels is a `DataError`.
        """
        coding = Coding.from_options(levels)
        coding.check_names(self.columns)
        if all(self[name].is_categorical and self[name].levels == tuple(given) for name, given in levels.items()):
            return self
        by_name = {name: self[name] for name in self.columns}
        for name, given in coding.levels.items():
            column = self[name]
            codes, distinct = column.ranks()
            values = list(column.levels) if column.is_coded else distinct.tolist()
            raw = with_numbers_in_intervals(RawColumn(name, codes, values), given)
            by_name[name] = code_by_levels(raw, tuple(given))
        return self.with_columns(by_name)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the columns, their levels, and the distinct rows with their weights.

        It depends neither on the order of the rows nor on whether a row is repeated or weighted. Weights enter with 40
        significant bits, because sums of fractional ones depend on their order in the last few. A table on disk, which
        is too large to be sorted, has another digest of the same kind.
        """
        if self.home is not None:
            return str(self.home.digest(self))
        counted = self.take(np.flatnonzero(self.weights > 0)) if np.any(self.weights == 0) else self
        table = counted.unique()
        state = hashlib.sha256()
        for name in self.columns:
            column = table[name]
            levels = [(type(level).__name__, level) for level in column.levels]
            state.update(repr((name, column.kind, levels)).encode())
            state.update((column.codes if column.is_coded else column.values).tobytes())
        mantissa, exponent = np.frexp(table.weights)
        state.update(np.ldexp(np.rint(np.ldexp(mantissa, DIGEST_BITS)), exponent - DIGEST_BITS).tobytes())
        return state.hexdigest()

    def take(self, rows: NDArray[np.integer]) -> Table:
        """Return the rows with the given indices, in the order given; levels stay as they are."""
        indices = np.asarray(rows, dtype=np.int64)
        by_name = {name: self[name].take(indices) for name in self.columns}
        return Table(self.columns, len(indices), self.weights[indices], self.has_weights, by_name)

    def to_frame(self, weights: str | None = None) -> Frame:
        """Return a pandas DataFrame with the levels themselves; missing cells are None or NaN.

        `weights` is the name of a column to hold the row weights; by default they are left out.
        """
        if weights is not None and weights in self.columns:
            raise DataError(f"weights={weights!r} is already the name of a column; choose another name")
        columns = {name: decoded(self[name]) for name in self.columns}
        if weights is not None:
            columns[weights] = self.weights.copy()
        return pandas_frame(columns)

    def describe(self) -> list[ColumnSummary]:
        """Return one small record for each column: name, kind, levels, missing cells, unseen levels."""
        return [self[name].summary() for name in self.columns]

    def with_columns(self, columns: Mapping[str, Column]) -> Table:
        """Return a table of the given columns with the rows' weights kept; every column must have `n_rows` cells."""
        for name, column in columns.items():
            if len(column) != self.n_rows:
                raise DataError(f"column {name!r} has {len(column)} cells for {self.n_rows} rows; they must agree")
        return Table(tuple(columns), self.n_rows, self.weights, self.has_weights, dict(columns), self.home)

    def _title(self) -> str:
        weighted = f", weights summing to {plain_count(self.n)}" if self.has_weights else ""
        return f"Table: {self.n_rows} rows{weighted}, {len(self.columns)} columns"

    def __repr__(self) -> str:
        lines = [self._title()]
        for summary in self.describe():
            states = f": {listed(summary.levels)}" if summary.levels else ""
            missing = f" ({summary.n_missing} missing)" if summary.n_missing else ""
            lines.append(f"  {summary.name}  {summary.kind}{states}{missing}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(summary.name)}</td><td>{summary.kind}</td>"
            f"<td>{html.escape(listed(summary.levels))}</td><td>{summary.n_missing}</td></tr>"
            for summary in self.describe()
        )
        head = "<tr><th>column</th><th>kind</th><th>levels</th><th>missing</th></tr>"
        return f"<table><caption>{html.escape(self._title())}</caption>{head}{rows}</table>"


def names_given(columns: Sequence[str]) -> Sequence[str]:
    """Return the names as given; a single text is taken for one name, not for its letters."""
    if not isinstance(columns, Iterable):
        raise DataError(f"columns is {shown(columns)}; give a list of column names")
    return (columns,) if isinstance(columns, str) else tuple(columns)


def assemble(
    source: Source,
    coding: Coding,
    weights: str | Sequence[float] | NDArray[Any] | None,
    counts: FloatArray | None = None,
) -> Table:
    """Return the table that a source, a coding and weights describe; every rule of the room is applied here.

    counts : (n_rows,) how often each row of the source occurs, once by default.
    """
    names = check_column_names(source.names)
    kept = kept_names(names, coding, weights)
    row_weights = np.ones(source.n_rows)
    if isinstance(weights, str):
        row_weights = code_weights(source.fetch(names.index(weights)), is_text=coding.is_text)
    elif weights is not None:
        row_weights = weights_from_array(weights, source.n_rows)
    by_name = {name: code_column(source.fetch(names.index(name)), coding) for name in kept}
    is_once = counts is None or bool((counts == 1.0).all())
    # Columns of a model that is there already are read for it, and rows that are predicted have no weight.
    if weights is None and is_once and not coding.optional:
        warn_of_forgotten_weights(by_name, source.n_rows)
    if counts is not None:
        row_weights = row_weights * counts
    return Table(tuple(kept), source.n_rows, row_weights, weights is not None or counts is not None, by_name)
