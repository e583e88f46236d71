"""Text and Parquet files through DuckDB, which is imported on first use.

Columns travel under the names c0, c1, ... because DuckDB compares names without regard to case and renames repeated
ones; the true names come from the header or the schema.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from lurking.data.coding import check_column_names
from lurking.data.frames import raw_from_arrow
from lurking.data.messages import one_line, shown_path
from lurking.data.sources import Source
from lurking.errors import DataError, MemoryLimit
from lurking.runtime.executor import worker_count
from lurking.runtime.memory import in_words
from lurking.runtime.progress import Progress
from lurking.types import FloatArray

DELIMITERS = (",", ";", "\t", "|")
CHUNK_BYTES = 1 << 20
BYTES_PER_THREAD = 1 << 29
CSV_BUFFER = 1 << 22
COUNT_COLUMN = "n_of_row"


class Query(NamedTuple):
    """A file, the true names of its columns, and the SQL that reads it, columns called c0, c1, ..."""

    path: Path
    names: tuple[str, ...]
    sql: str


class Size(NamedTuple):
    """Rows of a file and, about, how many of them are different."""

    n_rows: int
    n_distinct: int


def csv_query(path: Path, delimiter: str | None) -> Query:
    """Return the query of a text file, every cell as text.

    Without a `delimiter` the header decides: a comma, or else the one of semicolon, tab and bar that splits it most.
    """
    header, found = read_header(path, delimiter)
    names = check_column_names([name.strip() for name in header])
    columns = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(names)))
    options = (
        "auto_detect = false, header = true, null_padding = false, hive_partitioning = false, "
        f"buffer_size = {CSV_BUFFER}, "
        f"""delim = {quoted(found)}, quote = '"', escape = '"', columns = {{{columns}}}"""
    )
    return Query(path, names, f"read_csv({quoted(escaped_glob(path))}, {options})")


def parquet_query(path: Path) -> Query:
    """Return the query of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        names = check_column_names(pyarrow.parquet.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{shown_path(path)} cannot be read as Parquet ({one_line(str(error))[:120]}); "
            "check that the file is complete, or give format="
        ) from error
    columns = ", ".join(f"c{index}" for index in range(len(names)))
    sql = f"read_parquet({quoted(escaped_glob(path))}, hive_partitioning = false) AS file({columns})"
    return Query(path, names, sql)


@contextmanager
def connected(path: Path, memory: int | None = None, folder: Path | None = None) -> Iterator[Any]:
    """Open DuckDB; what goes wrong with the file is told in one sentence.

    `memory` is the limit in bytes of everything, of which DuckDB gets half; `folder` takes what it cannot hold.
    """
    import duckdb

    settings: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "true",
    }
    if memory is not None:
        settings["memory_limit"] = f"{memory // 2}B"
        # Every thread holds buffers of its own, and a CSV reader large ones.
        settings["threads"] = str(max(1, min(worker_count(None), memory // BYTES_PER_THREAD)))
    with tempfile.TemporaryDirectory(prefix="lurking-") as spill:
        settings["temp_directory"] = str(folder or spill)
        try:
            with duckdb.connect(":memory:", config=settings) as connection:
                yield connection
        except duckdb.OutOfMemoryException as error:
            given = "" if memory is None else f" within {in_words(memory)}"
            raise MemoryLimit(
                f"{shown_path(path)} cannot be read{given}: DuckDB ran out of memory; allow more (memory=), "
                "or leave out columns (drop)"
            ) from error
        except duckdb.Error as error:
            raise plain_error(path, str(error)) from error
        except RuntimeError as error:
            # DuckDB turns an interrupt (Ctrl-C) into this.
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from error
            raise


def kept_columns(query: Query, drop: Collection[str]) -> list[str]:
    """Return the columns of a query that are not dropped."""
    kept = [f"c{index}" for index, name in enumerate(query.names) if name not in drop]
    if not kept:
        raise DataError("drop= names every column of the file; keep at least one")
    return kept


def size_of(query: Query, drop: Collection[str], memory: int) -> Size:
    """Return how many rows a file has and about how many different ones, in one pass."""
    hashed = f"hash({', '.join(kept_columns(query, drop))})"
    with connected(query.path, memory) as connection:
        found = connection.sql(f"SELECT count(*), approx_count_distinct({hashed}) FROM {query.sql}").fetchall()[0]
    return Size(int(found[0]), min(int(found[1]), int(found[0])))


def run_query(
    query: Query, drop: Collection[str], *, unique: bool, memory: int | None = None, progress: Progress | None = None
) -> tuple[Source, FloatArray | None]:
    """Run the SQL and return the source, and how often each row occurs when only unique rows are asked for.

    Rows come in the order of the file, or sorted when `unique`, so equal files give equal tables.
    """
    kept = ", ".join(kept_columns(query, drop))
    statement = f"SELECT {kept} FROM {query.sql}"
    if unique:
        statement = f"SELECT {kept}, count(*) AS {COUNT_COLUMN} FROM {query.sql} GROUP BY ALL ORDER BY ALL"
    with connected(query.path, memory) as connection, watched(connection, "file read (%)", progress):
        result = connection.sql(statement).to_arrow_table()
    counts = result.column(COUNT_COLUMN).to_numpy().astype(np.float64) if unique else None
    source = Source(
        query.names, result.num_rows, lambda index: raw_from_arrow(query.names[index], result.column(f"c{index}"))
    )
    return source, counts


@contextmanager
def watched(connection: Any, what: str, progress: Progress | None) -> Iterator[None]:
    """Report how far the running query is, from a thread of its own."""
    if progress is None:
        yield
        return
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            progress.update(max(0, int(connection.query_progress())))

    progress.begin(what, 100)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        progress.end()


def read_header(path: Path, delimiter: str | None) -> tuple[list[str], str]:
    """Return the cells of the header row and the delimiter that splits them."""
    with_fields: list[tuple[list[str], str]] = []
    for candidate in DELIMITERS if delimiter is None else (delimiter,):
        try:
            with open_text(path) as handle:
                header = next(csv.reader(handle, delimiter=candidate), [])
        except UnicodeDecodeError as error:
            raise encoding_error(path) from error
        except (csv.Error, EOFError, OSError) as error:
            raise DataError(f"the header of {shown_path(path)} cannot be read ({one_line(str(error))})") from error
        if not header:
            raise DataError(f"the first line of {shown_path(path)} is empty; the first line must hold the column names")
        with_fields.append((header, candidate))
        if candidate == "," and len(header) > 1:
            return header, candidate
    # max keeps the first of equals, so a file with one column is read with a comma.
    return max(with_fields, key=lambda pair: len(pair[0]))


def open_text(path: Path) -> IO[str]:
    """Open a plain or gzip text file as UTF-8, with or without a byte-order mark."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def open_bytes(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a plain or gzip file for reading bytes."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def quoted(text: str) -> str:
    """Return the text as an SQL string."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def escaped_glob(path: Path) -> str:
    """Return the path with the signs escaped that DuckDB would take for a pattern of many files."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def plain_error(path: Path, text: str) -> DataError:
    """Return one sentence for the many lines in which DuckDB reports what is wrong with a file."""
    where = shown_path(path)
    if "utf-8" in text.lower() or "unicode" in text.lower():
        return encoding_error(path)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    widths = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if line and widths:
        return DataError(
            f"{where}, line {line[1]}: {widths[2]} cells but the header has {widths[1]} columns; "
            "every line needs one cell for each column, empty where it is missing"
        )
    if line and "quote" in text:
        return DataError(
            f"{where}, line {line[1]}: a quoted cell is not closed properly; "
            'end it with a quotation mark and write "" for one inside'
        )
    if "state machine" in text:
        return DataError(
            f"{where} is not a regular text table; check that all lines end the same way and that quotation marks match"
        )
    reason = one_line(text.split("\n", 1)[0])[:160]
    return DataError(f"{where} cannot be read ({reason}); check that the file is complete, or give format=")


def encoding_error(path: Path) -> DataError:
    """Return the error for a file that is not UTF-8, with the first byte that breaks it."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    with open_bytes(path) as handle:
        while chunk := handle.read(CHUNK_BYTES):
            held_back = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                position += error.start - held_back
                break
            position += len(chunk)
    return DataError(
        f"{shown_path(path)} is not UTF-8 text (byte {position}, counted from 0); save it in the encoding UTF-8"
    )
