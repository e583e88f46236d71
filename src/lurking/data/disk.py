"""Tables that live on disk: for files whose distinct rows do not fit in memory.

DuckDB goes through the file three times: to count the distinct values of every column; to collect those of columns
with few, from which the coding rule makes levels; and in Arrow batches, of which each column's codes are written, as
narrow as they can be, to a file of its own. The table's columns are those files, mapped into memory: the system keeps
what is in use and nothing else.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lurking.data.coding import PLAIN_NUMBER, Coding, code_column, code_weights, kept_names
from lurking.data.column import Column
from lurking.data.duckdb_files import Query, connected, quoted
from lurking.data.frames import raw_from_arrow
from lurking.data.messages import shown, shown_path
from lurking.data.sources import RawColumn, dates_error, nested_error
from lurking.data.table import Table
from lurking.errors import DataError, LurkingWarning
from lurking.runtime.memory import in_words
from lurking.runtime.progress import Progress
from lurking.types import FloatArray

MOST_LEVELS = 1 << 16
"""Distinct values up to which a column's levels are collected."""
BATCH_CELLS = 1 << 22


class Home:
    """The folder of a table on disk, removed when the last table that uses it is gone, and its memory limit."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.folder = Path(tempfile.mkdtemp(prefix="lurking-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def digest(self, table: Table) -> str:
        """Return a digest that does not depend on the order of rows: two sums of hashed rows, with the levels."""
        state = hashlib.sha256()
        for name in table.columns:
            column = table[name]
            state.update(repr((name, column.kind, [(type(level).__name__, level) for level in column.levels])).encode())
        sums = np.zeros(2, np.uint64)
        size = BATCH_CELLS // len(table.columns) + 1
        for begin in range(0, table.n_rows, size):
            part = slice(begin, begin + size)
            # Weights enter as the whole number nearest to 2^20 times them, so that the sum is exact.
            weights = np.rint(table.weights[part] * 2.0**20).astype(np.uint64)
            for k, seed in enumerate((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)):
                rows = np.full(len(weights), seed, np.uint64)
                for name in table.columns:
                    column = table[name]
                    cells = column.codes[part].astype(np.int64) if column.is_coded else column.values[part] + 0.0
                    rows = (rows ^ cells.view(np.uint64)) * np.uint64(0xFF51AFD7ED558CCD)
                    rows ^= rows >> np.uint64(32)
                sums[k] += (rows * weights).sum(dtype=np.uint64)
        state.update(sums.tobytes())
        return f"disk-{state.hexdigest()}"


@dataclass(frozen=True)
class ColumnWriter:
    """How one column is written: codes of its distinct values, or its numbers as they are."""

    name: str
    expression: str
    """The SQL that reads it."""
    column: Column
    distinct: Any = None
    """Arrow array of the distinct values, or None when the numbers themselves are written."""

    @property
    def dtype(self) -> type[np.signedinteger | np.floating]:
        """The narrowest type that holds every code."""
        if self.distinct is None or not self.column.is_coded:
            return np.float64
        most = self.column.cardinality
        return np.int8 if most <= 127 else np.int16 if most <= 32767 else np.int32

    def cells(self, batch: Any) -> NDArray[Any]:
        """Return what is written for one Arrow column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.distinct is None:
            numbers = np.asarray(batch.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
            if np.isinf(numbers).any():
                raise DataError(f"column {self.name!r} holds an infinite number; correct it or name it in na_values=")
            return numbers
        found = pc.index_in(batch, value_set=self.distinct, skip_nulls=True)
        empty = batch.null_count
        if pa.types.is_floating(batch.type):
            empty += pc.sum(pc.is_nan(batch)).as_py() or 0
        if found.null_count > empty:
            raise DataError(f"column {self.name!r} changed while the file was read; read it again")
        place: NDArray[np.int32] = found.fill_null(-1).to_numpy(zero_copy_only=False)
        known: NDArray[Any] = self.column.codes if self.column.is_coded else self.column.values
        # The extra last entry is what a missing cell, −1, meets.
        cells = np.append(known, -1 if self.column.is_coded else np.nan).astype(self.dtype)
        return cells[place] if len(known) else np.full(len(batch), cells[-1])


def read_on_disk(
    query: Query, coding: Coding, weights: str | None, memory: int, n_rows: int, progress: Progress
) -> Table:
    """Return the table of a file, row by row, with its columns on disk."""
    names = kept_names(query.names, coding, weights)
    home = Home(memory)
    with connected(query.path, memory, home.folder) as connection:
        writers = _Levels(connection, query, coding).writers(names)
        if not writers:
            raise DataError(f"no column of {shown_path(query.path)} is left; a table needs at least one")
        _check_room(home, writers, n_rows, weights is not None)
        written = _write(connection, query, writers, weights, coding.is_text, home, n_rows, progress)
    columns = {}
    for number, writer in enumerate(writers):
        cells = np.memmap(home.folder / f"{number}.cells", writer.dtype, "r", shape=(written,))
        if writer.column.is_coded:
            columns[writer.name] = replace(writer.column, codes=cells)
        else:
            columns[writer.name] = replace(writer.column, values=cells)
    row_weights: FloatArray = np.broadcast_to(np.ones(1), (written,))
    if weights is not None:
        row_weights = np.memmap(home.folder / "weights", np.float64, "r", shape=(written,))
    return Table(tuple(columns), written, row_weights, weights is not None, columns, home)


class _Levels:
    """Finds the levels of a file's columns; lives only while it is read."""

    def __init__(self, connection: Any, query: Query, coding: Coding) -> None:
        self.connection, self.query, self.coding = connection, query, coding
        described = connection.sql(f"SELECT * FROM {query.sql} LIMIT 0")
        self.types = [str(kind) for kind in described.types]

    def _row(self, expressions: Sequence[str]) -> list[Any]:
        """Return one row of aggregates, as Arrow arrays of one entry."""
        table = self.connection.sql(f"SELECT {', '.join(expressions)} FROM {self.query.sql}").to_arrow_table()
        return [table.column(k) for k in range(len(expressions))]

    def _expression(self, name: str) -> str:
        """Return the SQL of a column; adding 0 makes one zero of 0.0 and -0.0, which DuckDB counts as equal."""
        index = self.query.names.index(name)
        return f"(c{index} + 0)" if self.types[index] in ("FLOAT", "DOUBLE") else f"c{index}"

    def writers(self, names: Sequence[str]) -> list[ColumnWriter]:
        """Return how each column is written; those with too many values to be coded are left out with a warning."""
        told = self._row([f"approx_count_distinct({self._expression(name)})" for name in names])
        # The sketch may be off by some percent; what it lets through is counted exactly below.
        few = [name for name, count in zip(names, told, strict=True) if count[0].as_py() <= 1.2 * MOST_LEVELS]
        found: dict[str, Any] = {}
        if few:
            lists = self._row([self._distinct(name) for name in few])
            for name, values in zip(few, lists, strict=True):
                # No value at all makes no list.
                distinct = values.chunk(0).flatten()
                if len(distinct) <= MOST_LEVELS:
                    found[name] = distinct
        numeric = self._numeric([name for name in names if name not in found])
        writers = []
        for name in names:
            if name in found:
                writers.append(ColumnWriter(name, self._expression(name), self._column(name, found[name]), found[name]))
            elif name in numeric:
                column = Column.continuous(name, np.empty(0), declared=name in self.coding.continuous)
                writers.append(ColumnWriter(name, self._number(name), column))
            else:
                warnings.warn(
                    f"column {name!r} has more than {MOST_LEVELS} different values, too many to be the levels of a "
                    "variable; it is left out of the table on disk (name it in drop= to say so yourself)",
                    LurkingWarning,
                    stacklevel=2,
                )
        return writers

    def _distinct(self, name: str) -> str:
        """Return the SQL of the list of a column's different values."""
        value = self._expression(name)
        return f"list_sort(list(DISTINCT {value}) FILTER (WHERE {value} IS NOT NULL))"

    def _present(self, name: str) -> str:
        """Return the SQL of a column with the texts that mean a missing cell made null, as in memory."""
        index = self.query.names.index(name)
        if self.types[index] != "VARCHAR":
            return f"c{index}"
        missing = [*self.coding.missing_texts]
        blank = f"trim(c{index}) = ''" if self.coding.is_text else "false"
        listed = ", ".join(quoted(text) for text in sorted(missing)) or "NULL"
        return f"(CASE WHEN {blank} OR c{index} IN ({listed}) THEN NULL ELSE c{index} END)"

    def _number(self, name: str) -> str:
        return f"(TRY_CAST({self._present(name)} AS DOUBLE) + 0)"

    def _numeric(self, names: Sequence[str]) -> set[str]:
        """Return those of some columns with very many values that hold numbers only, by the rule of `coding`."""
        asked = []
        for name in names:
            kind = self.types[self.query.names.index(name)]
            if kind.startswith(("DATE", "TIME", "INTERVAL")):
                raise dates_error(name)
            if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
                raise nested_error(name)
            if name in self.coding.categorical or name in self.coding.levels:
                raise DataError(
                    f"column {name!r} is declared categorical and has more than {MOST_LEVELS} different values, too "
                    "many for a table on disk; group its levels, or leave it out (drop)"
                )
            # Text in a typed file is text, whatever it spells.
            if kind != "VARCHAR" or self.coding.is_text or name in self.coding.continuous:
                asked.append(name)
        if not asked:
            return set()
        strays = self._row([f"count(*) FILTER (WHERE {self._is_stray(name)})" for name in asked])
        numeric = {name for name, count in zip(asked, strays, strict=True) if count[0].as_py() == 0}
        for name in asked:
            if name in self.coding.continuous and name not in numeric:
                raise self._not_a_number(name)
        return numeric

    def _is_stray(self, name: str) -> str:
        """Return the SQL that is true for a cell that is neither missing nor a number."""
        index, present = self.query.names.index(name), self._present(name)
        if self.types[index] != "VARCHAR":
            return f"{present} IS NOT NULL AND {self._number(name)} IS NULL"
        return f"{present} IS NOT NULL AND NOT regexp_full_match(trim(c{index}), {quoted(PLAIN_NUMBER.pattern)}, 'i')"

    def _not_a_number(self, name: str) -> DataError:
        numbered = f"SELECT *, row_number() OVER () AS number FROM {self.query.sql}"
        index = self.query.names.index(name)
        row, value = self.connection.sql(
            f"SELECT number, c{index} FROM ({numbered}) WHERE {self._is_stray(name)} ORDER BY number LIMIT 1"
        ).fetchall()[0]
        return DataError(
            f"column {name!r}, row {row}: {shown(value)} is not a number; correct it, name it in na_values=, or leave "
            "the column out of continuous="
        )

    def _column(self, name: str, distinct: Any) -> Column:
        """Return the column that the coding rule makes of the distinct values, its codes being theirs."""
        raw = raw_from_arrow(name, distinct)
        if len(distinct) == 0:
            raw = RawColumn(name, np.full(1, -1, np.int64), [])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                column = code_column(raw, self.coding)
            except DataError as error:
                raise DataError(self._with_true_row(name, distinct, str(error))) from None
        for warning in caught:
            told = self._with_true_row(name, distinct, str(warning.message))
            warnings.warn(told, LurkingWarning, stacklevel=2)
        return replace(column, codes=column.codes[: len(distinct)], values=column.values[: len(distinct)])

    def _with_true_row(self, name: str, distinct: Any, message: str) -> str:
        """Return a message about a distinct value with the first row of the file that holds it."""
        told = re.search(r"row (\d+)", message)
        if told is None or not 0 < int(told[1]) <= len(distinct):
            return message
        value = distinct[int(told[1]) - 1].as_py()
        numbered = f"SELECT {self._expression(name)} AS value, row_number() OVER () AS number FROM {self.query.sql}"
        first = self.connection.execute(
            f"SELECT min(number) FROM ({numbered}) WHERE value = $value", {"value": value}
        ).fetchall()[0][0]
        return message.replace(told[0], f"row {first}", 1)


def _check_room(home: Home, writers: Sequence[ColumnWriter], n_rows: int, has_weights: bool) -> None:
    """Refuse a table that the disk has no room for."""
    need = n_rows * (sum(np.dtype(writer.dtype).itemsize for writer in writers) + 8 * has_weights)
    room = shutil.disk_usage(home.folder).free
    if need > 0.9 * room:
        raise DataError(
            f"the table needs {in_words(need)} on disk in {tempfile.gettempdir()!r}, where {in_words(room)} are free; "
            "set TMPDIR to a larger place, or leave out columns (drop)"
        )


def _write(
    connection: Any,
    query: Query,
    writers: Sequence[ColumnWriter],
    weights: str | None,
    is_text: bool,
    home: Home,
    n_rows: int,
    progress: Progress,
) -> int:
    """Write all columns batch by batch; return the number of rows."""
    wanted = [f"{writer.expression} AS w{number}" for number, writer in enumerate(writers)]
    if weights is not None:
        wanted.append(f"c{query.names.index(weights)} AS weights")
    batches = connection.sql(f"SELECT {', '.join(wanted)} FROM {query.sql}").to_arrow_reader(
        max(BATCH_CELLS // len(wanted), 1)
    )
    written = 0

    def weigh(batch: Any) -> FloatArray:
        try:
            return code_weights(raw_from_arrow(str(weights), batch), is_text=is_text)
        except DataError as error:
            # Rows are numbered from the beginning of the file, not of the batch.
            told = re.sub(r"row (\d+)", lambda row: f"row {written + int(row[1])}", str(error), count=1)
            raise DataError(told) from None

    makers: list[tuple[str, Callable[[Any], NDArray[Any]]]] = [
        (f"{number}.cells", writer.cells) for number, writer in enumerate(writers)
    ]
    if weights is not None:
        makers.append(("weights", weigh))
    progress.begin("rows read", n_rows)
    try:
        with ExitStack() as stack:
            files = [stack.enter_context((home.folder / name).open("wb")) for name, _ in makers]
            for batch in batches:
                for number, (file, (_, make)) in enumerate(zip(files, makers, strict=True)):
                    file.write(np.ascontiguousarray(make(batch.column(number))).data)
                written += batch.num_rows
                progress.update(min(written, n_rows))
    except OSError as error:
        raise DataError(
            f"the table cannot be written to {str(home.folder)!r} ({error.strerror}); set TMPDIR to a larger place, "
            "or leave out columns (drop)"
        ) from None
    finally:
        progress.end()
    return written
