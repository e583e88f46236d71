"""Data sets that are large or come from a published network; each is made once and kept.

They need PyArrow and lurking, so only the project's own environment can make them.
"""

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from data import OBSERVED, draw_two_causes, two_causes
from make_peers import ENVIRONMENT

TWO_CAUSES_MANY = 10_000_000
ALARM_ROWS = 5000
EMPTY_SHARE = 0.2
CHUNK_ROWS = 1 << 18
LARGE_COLUMNS = 64
LARGE_LEVELS = 8
PACKED_BITS = 3  # of one cell of eight levels, once Parquet has packed it


def alarm_file() -> Path | None:
    """The published network as pgmpy brings it, or None where the peers' environment is missing."""
    found = sorted(ENVIRONMENT.glob("lib/python*/site-packages/pgmpy/utils/example_models/alarm.bif.gz"))
    return found[0] if found else None


def write_alarm(folder: Path) -> tuple[Path, Path] | None:
    """Write 5000 rows of the alarm network with a fifth of the cells empty, and the network as plain BIF."""
    import lurking as lk

    published = alarm_file()
    if published is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    network, rows = folder / "alarm.bif", folder / "alarm_5000.csv"
    network.write_bytes(gzip.decompress(published.read_bytes()))
    frame: Any = lk.read_network(network).sample(ALARM_ROWS, seed=0).to_frame()
    empty = np.random.default_rng(2).random(frame.shape) < EMPTY_SHARE
    pd.DataFrame(frame).astype(str).mask(empty, "").to_csv(rows, index=False)
    return network, rows


def write_parquet(path: Path, names: list[str], chunks: Iterable[NDArray[Any]], *, compression: str) -> Path:
    """Write chunks of rows (rows, columns) as one file of int8 columns; a file half written keeps another name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(name, pa.int8()) for name in names])
    unfinished = path.with_suffix(".unfinished")
    with pq.ParquetWriter(unfinished, schema, compression=compression) as writer:
        for chunk in chunks:
            columns = [pa.array(np.ascontiguousarray(column, np.int8)) for column in chunk.T]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    unfinished.rename(path)
    return path


def two_causes_parquet(folder: Path, n: int) -> Path:
    """The two-cause rows as Parquet: the benchmark's own where there are so few, drawn in chunks where more."""
    path = folder / f"bg_{n}.parquet"
    if path.exists():
        return path
    if n < CHUNK_ROWS:
        return write_parquet(path, list(OBSERVED), [two_causes(n)], compression="zstd")
    rng = np.random.default_rng(3)
    sizes = (min(CHUNK_ROWS, n - begin) for begin in range(0, n, CHUNK_ROWS))
    return write_parquet(path, list(OBSERVED), (draw_two_causes(size, rng) for size in sizes), compression="zstd")


def large_parquet(folder: Path, size: float) -> Path:
    """A file of about ``size`` bytes: 64 uniform columns of eight levels; all rows differ and nothing compresses."""
    n = round(size * 8 / (LARGE_COLUMNS * PACKED_BITS))
    path = folder / f"uniform_{n}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(5)
    names = [f"x{column + 1}" for column in range(LARGE_COLUMNS)]
    sizes = (min(CHUNK_ROWS, n - begin) for begin in range(0, n, CHUNK_ROWS))
    chunks = (rng.integers(LARGE_LEVELS, size=(rows, LARGE_COLUMNS), dtype=np.int8) for rows in sizes)
    return write_parquet(path, names, chunks, compression="none")
