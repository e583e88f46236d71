"""`read`: a table from a CSV, TSV, Parquet, Arrow or JSON file.

DuckDB reads text and Parquet files; Arrow files and JSON records are read directly. Text files are read as text only
and coded by the rule in `lurking.data.coding`; the other formats keep their own types.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lurking.data.coding import Coding
from lurking.data.disk import read_on_disk
from lurking.data.duckdb_files import (
    Query,
    Size,
    csv_query,
    encoding_error,
    kept_columns,
    parquet_query,
    run_query,
    size_of,
)
from lurking.data.frames import read_arrow_file, source_from_frame
from lurking.data.messages import listed, one_line, shown, shown_path, unknown_column
from lurking.data.sources import Source, source_from_columns
from lurking.data.table import Table, assemble
from lurking.errors import DataError, MemoryLimit, OptionError, UnknownNameError
from lurking.runtime.memory import available_bytes, byte_count, in_words
from lurking.runtime.progress import Progress, Silent
from lurking.types import FloatArray, Level

DEFAULT_NA_VALUES = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "<NA>", "?")
"""Texts that mean a missing cell in CSV and TSV files. "None" is not one of them: it can be an answer."""

FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv.gz": "csv",
    ".tsv.gz": "tsv",
    ".tab.gz": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
FORMATS = ("csv", "tsv", "json", "parquet", "arrow")
LARGE_FILE = 1 << 26
"""Bytes from which a file's rows are counted before they are read."""
LEAST_MEMORY = 160 << 20
ROW_BYTES = 64
CELL_BYTES = 40
"""Memory per row and per cell on the way from DuckDB to a compiled model, about."""


def read(
    path: str | os.PathLike[str],
    *,
    weights: str | Sequence[float] | None = None,
    levels: Mapping[str, Sequence[Level]] | None = None,
    known_levels: Mapping[str, Sequence[Level]] | None = None,
    categorical: Iterable[str] = (),
    continuous: Iterable[str] = (),
    drop: Iterable[str] = (),
    columns: Iterable[str] | None = None,
    na_values: Iterable[str] | None = None,
    unique: bool = False,
    format: str | None = None,  # noqa: A002 - the word users of pandas and DuckDB expect
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path
        A file; its ending says the format.
    weights
        Name of the column with row weights, or one weight for each row.
    levels
        All states of a column, by its name; a value outside them is a `DataError`.
    known_levels
        The same for columns that may be absent, such as those of a model the file is read for.
    categorical
        Columns to take as categorical whatever they hold.
    continuous
        Columns to take as continuous; they must hold numbers.
    drop
        Columns to leave out; they are not even looked at.
    columns
        Columns to keep, in the order of the file; all others are left out. Weights need not be among them.
    na_values
        Texts that mean a missing cell, in place of `DEFAULT_NA_VALUES`; a blank cell of a text file is always missing.
        Formats that know missing cells of their own use this list only when it is given.
    unique
        Return each distinct row once with its summed weight, sorted; otherwise rows stay in file order.
    format
        One of csv, tsv, json, parquet, arrow, when the ending of the path does not say it.
    memory
        Memory that the rows may take, such as ``"1GB"``; half of what is free by default. A text or Parquet file with
        more rows (distinct rows when `unique`) than fit becomes a table on disk, which models read block by block.
    progress
        Told how far the reading is.

    Notes
    -----
    The first line of a text file holds the column names. Lines without a single character are skipped when there are
    two or more columns; in a file of one column such a line is a missing cell. An empty cell too many at the end of a
    line, as some programs write it, is passed over; any other difference in the number of cells is a `DataError`.
    """
    file = checked_path(path)
    kind = format_of(file, format)
    is_text = kind in ("csv", "tsv")
    given = (DEFAULT_NA_VALUES if is_text else ()) if na_values is None else na_values
    missing = frozenset([given] if isinstance(given, str) else given)
    declared = {**(known_levels or {}), **(levels or {})} if known_levels else levels
    coding = replace(
        Coding.from_options(declared, categorical, continuous, drop),
        is_text=is_text,
        missing_texts=missing,
        optional=frozenset(known_levels or {}) - frozenset(levels or {}),
    )
    reading = Reading(file, kind, coding, checked_limit(memory), progress)
    if columns is not None:
        coding = reading.keeping([columns] if isinstance(columns, str) else list(columns), weights)
        reading = replace(reading, coding=coding)
    if (weights is None or isinstance(weights, str)) and reading.query is not None:
        # Small files are not looked at twice.
        size = reading.size() if memory is not None or file.stat().st_size > LARGE_FILE else None
        if size is not None and not reading.fits(size.n_distinct if unique else size.n_rows):
            return read_on_disk(reading.query, coding, weights, reading.memory, size.n_rows, progress or Silent())
    if unique and (weights is None or isinstance(weights, str)):
        try:
            return read_grouped(reading, weights)
        except MemoryLimit:
            raise
        except DataError:
            # Rows are numbered as in the file only when it is read whole, so the message comes from reading it again.
            pass
    table = assemble(reading.source(unique=False)[0], coding, weights)
    return table.unique() if unique else table


@dataclass(frozen=True)
class Reading:
    """One file about to be read, and how."""

    file: Path
    kind: str
    coding: Coding
    memory: int
    progress: Progress | None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of the file."""
        return tuple(map(str, self.source(unique=False)[0].names)) if self.query is None else self.query.names

    def keeping(self, columns: Sequence[str], weights: object) -> Coding:
        """Return the coding with all columns dropped but the given ones and the weights."""
        for name in columns:
            if name not in self.names:
                raise unknown_column("columns=", name, self.names)
        others = frozenset(self.names) - frozenset(columns) - {weights}
        return replace(self.coding, drop=self.coding.drop | others)

    @cached_property
    def query(self) -> Query | None:
        """How DuckDB reads the file, or None when it does not."""
        if self.kind not in ("csv", "tsv", "parquet"):
            return None
        if self.kind == "parquet":
            found = parquet_query(self.file)
        else:
            found = csv_query(self.file, "\t" if self.kind == "tsv" else None)
        self.coding.check_names(found.names)
        return found

    def size(self) -> Size:
        """Return the number of rows and, about, of distinct rows."""
        assert self.query is not None
        return size_of(self.query, self.coding.drop, self.memory)

    def fits(self, n_rows: int) -> bool:
        """Whether so many rows fit in memory, with what is made of them on the way to a model."""
        assert self.query is not None
        columns = len(kept_columns(self.query, self.coding.drop))
        return n_rows * (ROW_BYTES + CELL_BYTES * columns) <= self.memory

    def source(self, *, unique: bool) -> tuple[Source, FloatArray | None]:
        """Return the columns of a file and, when DuckDB has grouped its rows, how often each occurs."""
        counts: FloatArray | None = None
        if self.query is not None:
            source, counts = run_query(
                self.query, self.coding.drop, unique=unique, memory=self.memory, progress=self.progress
            )
        elif self.kind == "arrow":
            source = source_from_frame(read_arrow_file(str(self.file)))
        else:
            source = source_from_columns(json_columns(self.file))
        if source.n_rows == 0:
            where = shown_path(self.file)
            raise DataError(f"{where} has no data rows; a file needs at least one row below the column names")
        return source, counts


def checked_limit(memory: int | str | None) -> int:
    """Return the memory limit in bytes."""
    if memory is None:
        return max(available_bytes() // 2, LEAST_MEMORY)
    limit = byte_count(memory)
    if limit < LEAST_MEMORY:
        raise OptionError(
            f"memory is {memory!r}; the least that a file can be read with is {in_words(LEAST_MEMORY)}, beyond what "
            "Python itself takes"
        )
    return limit


def read_grouped(reading: Reading, weights: str | None) -> Table:
    """Return the unique rows of a file; where DuckDB reads it, only those ever come to Python."""
    source, counts = reading.source(unique=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = assemble(source, reading.coding, weights, counts)
    for warning in caught:
        # Rows are numbered among the distinct ones here, which tells nobody anything.
        warnings.warn(re.sub(r" in row \d+", "", str(warning.message)), warning.category, stacklevel=3)
    # Rows that differ as text can be the same after coding, so what DuckDB grouped is grouped once more.
    return table.unique()


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that exists, can be opened and is not empty; anything else is a `DataError`."""
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"the path is {shown(path)}; give the path of one file as text or as a Path")
    file = Path(path).expanduser()
    where = shown_path(file)
    if file.is_dir():
        raise DataError(f"{where} is a directory; give the path of one file")
    try:
        with file.open("rb") as handle:
            is_empty = not handle.read(1)
    except FileNotFoundError as error:
        raise DataError(f"{where} does not exist; check the path") from error
    except PermissionError as error:
        raise DataError(f"{where} may not be read by you; change its permissions or copy it") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{where} cannot be opened ({one_line(str(error))}); check the path") from error
    if is_empty:
        raise DataError(f"{where} is an empty file; a file needs column names and at least one row")
    return file


def format_of(file: Path, given: str | None) -> str:
    """Return the format of a file by its ending, or the one the user gives."""
    if given is not None:
        if given not in FORMATS:
            raise DataError(str(UnknownNameError("format", str(given), FORMATS)))
        return given
    suffixes = [suffix.lower() for suffix in file.suffixes]
    ending = "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])
    if ending not in FORMAT_OF_SUFFIX:
        raise DataError(
            f"{shown_path(file)} has the ending {shown(ending)}, which says no format; known are: "
            f"{', '.join(FORMAT_OF_SUFFIX)}; rename the file or give format="
        )
    return FORMAT_OF_SUFFIX[ending]


def json_columns(file: Path) -> dict[str, list[Any]]:
    """Return the columns of a JSON file: one array of records, or one record on each line. An absent key is missing."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise encoding_error(file) from error
    records = json_records(file, text)
    columns: dict[str, list[Any]] = {}
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise DataError(
                f"{shown_path(file)}, record {number}: {shown(record)} is not a record; "
                'every row is an object such as {"a": 1, "b": "yes"}'
            )
        for name in record:
            if name not in columns:
                columns[name] = [None] * len(records)
            columns[name][number - 1] = record[name]
    if not columns:
        raise DataError(f"{shown_path(file)} has no data rows; give an array of records with at least one value")
    return columns


def json_records(file: Path, text: str) -> list[Any]:
    """Return the records of JSON text."""

    def record_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise DataError(f"{shown_path(file)}: a record has {listed(repeated)} more than once; keep one of each")
        return record

    try:
        document = json.loads(text, object_pairs_hook=record_of)
        if isinstance(document, dict) and document.get("format") == "lurking-network":
            raise DataError(f"{shown_path(file)} is a model written by lurking, not a table of data")
        return document if isinstance(document, list) else [document]
    except RecursionError:
        raise DataError(f"{shown_path(file)} is JSON nested too deeply; give an array of flat records") from None
    except ValueError as whole_error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            return [json.loads(line, object_pairs_hook=record_of) for line in lines]
        except RecursionError:
            raise DataError(f"{shown_path(file)} is JSON nested too deeply; give an array of flat records") from None
        except ValueError as error:
            # A file that begins as an array is judged as one; otherwise the message speaks of its lines.
            reason = whole_error if text.lstrip().startswith("[") else error
            raise DataError(
                f"{shown_path(file)} is not valid JSON ({one_line(str(reason))}); "
                "give an array of records or one record on each line"
            ) from error


def as_table(data: Any, **options: Any) -> Table:
    """Return a table from whatever is given: a `Table`, a path, a frame, a mapping of columns, or an array.

    `options` are those of the constructor or reader that fits; a `Table` is passed through and takes none.
    """
    if isinstance(data, Table):
        if options:
            raise DataError(f"options {listed(sorted(options))} have no effect on a Table; give them where it is made")
        return data
    if isinstance(data, str | Path):
        return read(data, **options)
    if isinstance(data, np.ndarray):
        return Table.from_array(data, **options)
    if isinstance(data, Mapping):
        return Table.from_columns(data, **options)
    if isinstance(data, list | tuple):
        raise DataError("a list of rows has no column names; use Table.from_rows(rows, columns=[...])")
    return Table.from_frame(data, **options)
