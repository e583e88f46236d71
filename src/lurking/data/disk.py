"""Tables that live on disk: for files whose distinct rows do not fit in memory.

One pass of DuckDB finds the distinct values of every column, from which the coding rule makes levels; a second pass
goes through the file in Arrow batches and writes each column's codes, as narrow as they can be, to a file of its own.
The table's columns are those files, mapped into memory: the system keeps what is in use and nothing else.
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
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lurking.data.coding import Coding, code_column, code_weights
from lurking.data.column import Column
from lurking.data.duckdb_files import Query, connected
from lurking.data.frames import raw_from_arrow
from lurking.data.messages import shown_path
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
        names = [name for name in table.columns if table[name].is_categorical]
        sums = np.zeros(2, np.uint64)
        for codes, weights in table.blocks(names, BATCH_CELLS // max(len(names), 1) + 1):
            for k, seed in enumerate((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)):
                rows = np.full(len(codes), seed, np.uint64)
                for column in codes.T:
                    rows = (rows ^ (column + 2).astype(np.uint64)) * np.uint64(0xFF51AFD7ED558CCD)
                    rows ^= rows >> np.uint64(32)
                # Weights enter as the whole number nearest to 2^20 times them, so that the sum is exact.
                sums[k] += (rows * np.rint(weights * 2.0**20).astype(np.uint64)).sum(dtype=np.uint64)
        state.update(sums.tobytes())
        return f"disk-{state.hexdigest()}"


@dataclass(frozen=True)
class Plan:
    """How one column is written: codes of its distinct values, or its numbers as they are."""

    name: str
    index: int
    column: Column
    distinct: Any = None
    """Arrow array of the distinct values, or None when the numbers themselves are written."""

    @property
    def dtype(self) -> type[np.signedinteger | np.floating]:
        """The narrowest type that holds every code."""
        if self.distinct is None or not self.column.is_categorical:
            return np.float64
        most = self.column.cardinality
        return np.int8 if most <= 127 else np.int16 if most <= 32767 else np.int32

    def cells(self, batch: Any) -> NDArray[Any]:
        """Return what is written for one Arrow column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.distinct is None:
            numbers = batch.cast(pa.float64(), safe=False)
            return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
        found = pc.index_in(batch, value_set=self.distinct, skip_nulls=True).fill_null(-1)
        place: NDArray[np.int32] = found.to_numpy(zero_copy_only=False)
        known: NDArray[Any] = self.column.codes if self.column.is_categorical else self.column.values
        # The extra last entry is what a missing cell, −1, meets.
        return np.append(known, -1 if self.column.is_categorical else np.nan).astype(self.dtype)[place]


def read_on_disk(
    query: Query, coding: Coding, weights: str | None, memory: int, n_rows: int, progress: Progress
) -> Table:
    """Return the table of a file, row by row, with its columns on disk."""
    home = Home(memory)
    with connected(query.path, memory, home.folder) as connection:
        plans = [
            plan
            for index, name in enumerate(query.names)
            if name not in coding.drop and name != weights
            for plan in [_plan(connection, query, name, index, coding)]
            if plan is not None
        ]
        if not plans:
            raise DataError(f"no column of {shown_path(query.path)} is left; a table needs at least one")
        _check_room(home, plans, n_rows, weights is not None)
        at = None if weights is None else query.names.index(weights)
        written = _write(connection, query, plans, at, coding.is_text, home, n_rows, progress)
    columns = {}
    for plan in plans:
        cells = np.memmap(home.folder / f"{plan.index}.cells", plan.dtype, "r", shape=(written,))
        if plan.column.is_categorical:
            columns[plan.name] = replace(plan.column, codes=cells)
        else:
            columns[plan.name] = replace(plan.column, values=cells)
    row_weights: FloatArray = np.broadcast_to(np.ones(1), (written,))
    if weights is not None:
        row_weights = np.memmap(home.folder / "weights", np.float64, "r", shape=(written,))
    return Table(tuple(columns), written, row_weights, weights is not None, columns, home)


def _plan(connection: Any, query: Query, name: str, index: int, coding: Coding) -> Plan | None:
    """Return how a column is coded, from its distinct values; None, with a warning, when there are too many."""
    sql = f"SELECT DISTINCT c{index} FROM {query.sql} WHERE c{index} IS NOT NULL LIMIT {MOST_LEVELS + 1}"
    found = connection.sql(sql).to_arrow_table().column(0)
    if len(found) <= MOST_LEVELS:
        found = found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)
        # Sorted, because DuckDB gives them in any order and a warning names the first of its kind.
        found = found.sort() if len(found) else found
        return Plan(name, index, code_column(raw_from_arrow(name, found), coding), found)
    missing = ", ".join("'" + text.replace("'", "''") + "'" for text in sorted(coding.missing_texts)) or "''"
    strays = connection.sql(
        f"SELECT count(*) FROM {query.sql} WHERE c{index} IS NOT NULL AND TRY_CAST(c{index} AS DOUBLE) IS NULL "
        f"AND CAST(c{index} AS VARCHAR) NOT IN ({missing})"
    ).fetchall()[0][0]
    if strays == 0 and name not in coding.categorical and name not in coding.levels:
        return Plan(name, index, Column.continuous(name, np.empty(0), declared=name in coding.continuous))
    warnings.warn(
        f"column {name!r} has more than {MOST_LEVELS} different values, too many to be the levels of a variable; "
        "it is left out of the table on disk (name it in drop= to say so yourself)",
        LurkingWarning,
        stacklevel=2,
    )
    return None


def _check_room(home: Home, plans: Sequence[Plan], n_rows: int, has_weights: bool) -> None:
    """Refuse a table that the disk has no room for."""
    need = n_rows * (sum(np.dtype(plan.dtype).itemsize for plan in plans) + 8 * has_weights)
    room = shutil.disk_usage(home.folder).free
    if need > 0.9 * room:
        raise DataError(
            f"the table needs {in_words(need)} on disk in {tempfile.gettempdir()!r}, where {in_words(room)} are free; "
            "set TMPDIR to a larger place, or leave out columns (drop)"
        )


def _write(
    connection: Any,
    query: Query,
    plans: Sequence[Plan],
    weights: int | None,
    is_text: bool,
    home: Home,
    n_rows: int,
    progress: Progress,
) -> int:
    """Write all columns batch by batch; return the number of rows."""
    wanted = [
        f"TRY_CAST(c{plan.index} AS DOUBLE) AS c{plan.index}" if plan.distinct is None else f"c{plan.index}"
        for plan in plans
    ] + ([] if weights is None else [f"c{weights}"])
    batches = connection.sql(f"SELECT {', '.join(wanted)} FROM {query.sql}").to_arrow_reader(
        max(BATCH_CELLS // len(wanted), 1)
    )

    def weigh(batch: Any) -> FloatArray:
        raw = raw_from_arrow(query.names[weights or 0], batch)
        try:
            return code_weights(raw, is_text=is_text)
        except DataError as error:
            # Rows are numbered from the beginning of the file, not of the batch.
            raise DataError(
                re.sub(r"row (\d+)", lambda row: f"row {written + int(row[1])}", str(error), count=1)
            ) from None

    written = 0
    progress.begin("rows read", n_rows)
    try:
        with ExitStack() as stack:
            opened: list[tuple[BinaryIO, Callable[[Any], NDArray[Any]]]] = [
                (stack.enter_context((home.folder / f"{plan.index}.cells").open("wb")), plan.cells) for plan in plans
            ]
            if weights is not None:
                opened.append((stack.enter_context((home.folder / "weights").open("wb")), weigh))
            for batch in batches:
                for column, (file, cells) in enumerate(opened):
                    file.write(np.ascontiguousarray(cells(batch.column(column))).data)
                written += batch.num_rows
                progress.update(min(written, n_rows))
    finally:
        progress.end()
    return written
