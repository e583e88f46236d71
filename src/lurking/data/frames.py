"""Frames of other libraries: pandas, polars and Arrow in, pandas out. Their packages are imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lurking.data.coding import check_column_names
from lurking.data.messages import one_line, shown_path
from lurking.data.sources import (
    RawColumn,
    Source,
    dates_error,
    nested_error,
    raw_from_numpy,
    raw_from_values,
    unsupported,
)
from lurking.errors import DataError
from lurking.types import Frame


def source_from_frame(frame: Frame) -> Source:
    """Return the source of an eager frame that narwhals knows."""
    import narwhals as nw

    # narwhals refuses repeated names and names that are not text in words of its own, so they are checked before.
    if nw.dependencies.is_pandas_dataframe(frame):
        check_column_names(frame.columns)
    elif nw.dependencies.is_pyarrow_table(frame):
        check_column_names(frame.column_names)
    try:
        wrapped = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise DataError(
            f"{type(frame).__name__} is not a table that can be read; give a pandas, polars or Arrow table "
            "(collect a lazy one first), a two-dimensional array, or a path"
        ) from error

    names = tuple(wrapped.columns)
    return Source(names, len(wrapped), lambda index: raw_from_series(names[index], wrapped.get_column(names[index])))


def raw_from_series(name: str, series: Any) -> RawColumn:
    """Return the raw column of a narwhals series; pandas and Enum categories keep their own order."""
    import narwhals as nw

    is_pandas = series.implementation.is_pandas_like()
    if is_pandas and series.dtype in (nw.Categorical, nw.Enum):
        return raw_from_categories(name, series.to_native())
    if is_pandas and series.dtype in (nw.Object, nw.Unknown):
        return raw_from_values(name, series.to_list())
    if series.implementation.is_polars() and series.dtype == nw.Categorical:
        # The categories of polars are a pool shared by all columns, ordered as text; only those in use belong here.
        series = series.cast(nw.String)
    if series.implementation.is_polars() and series.dtype == nw.Object:
        return raw_from_values(name, series.to_list())
    return raw_from_arrow(name, series.to_arrow())


def raw_from_categories(name: str, series: Any) -> RawColumn:
    """Return the raw column of a pandas categorical; intervals, as pandas.cut makes them, become text."""
    categories = [
        str(category) if type(category).__name__ == "Interval" else category
        for category in series.cat.categories.tolist()
    ]
    checked = raw_from_values(name, categories)
    return RawColumn(name, series.cat.codes.to_numpy().astype(np.int64), checked.distinct, is_category=True)


def raw_from_arrow(name: str, array: Any) -> RawColumn:
    """Return the raw column of an Arrow array or chunked array; a dictionary keeps its own order and unused values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_temporal(kind):
        raise dates_error(name)
    if pa.types.is_nested(kind):
        raise nested_error(name)
    if pa.types.is_null(kind):
        return RawColumn(name, np.full(len(array), -1, dtype=np.int64), [])
    if pa.types.is_dictionary(kind):
        return raw_from_dictionary(name, array)
    if pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
        kind = array.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        is_null = np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False) if array.null_count else [], dtype=bool)
        filled = pc.fill_null(array, pa.scalar(0).cast(kind)) if array.null_count else array
        numbers = (
            np.asarray(filled.to_numpy(zero_copy_only=False)) if isinstance(filled, pa.Array) else filled.to_numpy()
        )
        return raw_from_numpy(name, numbers, is_null if array.null_count else None)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return raw_from_dictionary(name, array.cast(pa.large_string()).dictionary_encode(), is_category=False)
    raise unsupported(name, f"values of type {kind}", "convert it to text or numbers")


def raw_from_dictionary(name: str, array: Any, *, is_category: bool = True) -> RawColumn:
    """Return the raw column of a dictionary-encoded Arrow array."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            # Without rows there is no chunk to combine, and so no dictionary to keep.
            return RawColumn(name, np.empty(0, dtype=np.int64), [])
    dictionary = raw_from_values(name, array.dictionary.to_pylist())
    codes = array.indices.cast(pa.int64()).fill_null(-1)
    # The dictionary itself may hold a null or a value twice, so its own codes are followed.
    rows = np.append(dictionary.codes, -1)[codes.to_numpy(zero_copy_only=False)]
    return RawColumn(name, rows, dictionary.distinct, is_category)


def read_arrow_file(path: str) -> Any:
    """Return the Arrow table in an IPC file, IPC stream or Feather file."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.ipc

    try:
        with pa.OSFile(path, "rb") as handle:
            return pa.ipc.open_stream(handle).read_all()
    except pa.ArrowInvalid:
        try:
            # Feather covers both its old format and the IPC file format.
            return pyarrow.feather.read_table(path, memory_map=False)
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{shown_path(path)} cannot be read as an Arrow file ({one_line(str(error))[:120]}); "
                "check that it is complete, or give format="
            ) from error


def pandas_frame(columns: Mapping[str, Any]) -> Frame:
    """Return a pandas DataFrame with the given columns."""
    import pandas as pd

    return pd.DataFrame(dict(columns))
