"""Frames of pandas, polars and Arrow: equal tables, category dtypes, and what is refused."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lurking.data.table import Table
from lurking.errors import DataError

COLUMNS = {
    "number": [2, 1, None, 2],
    "text": ["b", None, "a", "b"],
    "yes": [True, None, False, True],
    "size": [0.5, None, 2.25, 1.0],
    "whole": [1.0, 3.0, None, 1.0],
}


def arrow_table():
    return pa.table(COLUMNS)


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas arrow": lambda: arrow_table().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "arrow": arrow_table,
    "arrow chunks": lambda: pa.concat_tables([arrow_table().slice(0, 2), arrow_table().slice(2)]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_same_table(kind):
    expected = Table.from_columns(COLUMNS)
    table = Table.from_frame(FRAMES[kind]())
    assert table.columns == expected.columns
    for name in COLUMNS:
        assert table[name].levels == expected[name].levels
        assert [type(level) for level in table[name].levels] == [type(level) for level in expected[name].levels]
        np.testing.assert_array_equal(table[name].codes, expected[name].codes)
        np.testing.assert_array_equal(table[name].values, expected[name].values)
    assert table.digest == expected.digest


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Categorical(["lo", None, "hi"], categories=["lo", "mid", "hi"])}),
        pd.DataFrame({"a": pd.Categorical(["lo", None, "hi"], categories=["lo", "mid", "hi"], ordered=True)}),
        pl.DataFrame({"a": pl.Series(["lo", None, "hi"], dtype=pl.Enum(["lo", "mid", "hi"]))}),
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, None, 2], pa.int8()), ["lo", "mid", "hi"])}),
    ],
    ids=["pandas", "pandas ordered", "polars", "arrow"],
)
def test_category_dtypes_keep_order_and_unused_levels(frame):
    column = Table.from_frame(frame)["a"]
    assert column.levels == ("lo", "mid", "hi")
    assert column.codes.tolist() == [0, -1, 2]
    assert column.declared
    assert column.unseen_levels == ("mid",)


def test_polars_categorical_is_text_without_the_shared_pool():
    frame = pl.DataFrame({"a": ["z", "y"], "b": ["q", "p"]}, schema={"a": pl.Categorical, "b": pl.Categorical})
    assert Table.from_frame(frame)["a"].levels == ("y", "z")


def test_categories_of_numbers_and_intervals():
    frame = pd.DataFrame(
        {"a": pd.Categorical([3, 1], categories=[3, 1]), "b": pd.cut(pd.Series([1.0, 9.0]), [0, 5, 10])}
    )
    table = Table.from_frame(frame)
    assert table["a"].levels == (3, 1)
    assert table["b"].levels == ("(0, 5]", "(5, 10]")


def test_category_column_can_be_declared_or_continuous():
    frame = pd.DataFrame({"a": pd.Categorical([3, 1], categories=[3, 2, 1])})
    assert Table.from_frame(frame, levels={"a": [1, 3]})["a"].codes.tolist() == [1, 0]
    assert Table.from_frame(frame, continuous=["a"])["a"].values.tolist() == [3.0, 1.0]


def test_empty_frame_with_categories_needs_no_declaration():
    frame = pd.DataFrame({"a": pd.Categorical([], categories=["x", "y"])})
    assert Table.from_frame(frame)["a"].unseen_levels == ("x", "y")
    with pytest.raises(DataError, match="no rows and no declared levels"):
        Table.from_frame(pl.DataFrame({"a": []}, schema={"a": pl.String}))


def test_nan_and_null_are_both_missing_in_polars():
    table = Table.from_frame(pl.DataFrame({"a": [0.5, float("nan"), None]}))
    assert np.isnan(table["a"].values).tolist() == [False, True, True]


def test_weights_by_name_and_by_array():
    frame = pd.DataFrame({"a": [0, 1], "n": [3, 4]})
    assert Table.from_frame(frame, weights="n").weights.tolist() == [3.0, 4.0]
    assert Table.from_frame(frame[["a"]], weights=frame["n"]).weights.tolist() == [3.0, 4.0]
    assert Table.from_frame(frame, weights=np.array([1, 2])).columns == ("a", "n")
    with pytest.raises(DataError, match="row 2 of 'n' is missing"):
        Table.from_frame(pd.DataFrame({"a": [0, 1], "n": [3, None]}), weights="n")


def test_a_column_may_have_any_name():
    frame = pd.DataFrame({"column_names": [1, 2], "columns": [0, 1], "A": [0, 0], "a": [1, 1]})
    assert Table.from_frame(frame).columns == ("column_names", "columns", "A", "a")


DAY = dt.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("frame", "part"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than once: 'a'"),
        (pd.DataFrame([[1, 2]]), "column 1 is 0, which is not text"),
        (pd.DataFrame({"": [1]}), "column 1 is empty"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "more than once: 'a'"),
        (pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}), "'d' holds dates"),
        (pd.DataFrame({"d": pd.period_range("2020", periods=1, freq="D")}), "'d', row 1"),
        (pd.DataFrame({"d": pd.Categorical([DAY])}), "'d' holds dates"),
        (pl.DataFrame({"d": [DAY]}), "'d' holds dates"),
        (pl.DataFrame({"d": [dt.timedelta(1)]}), "'d' holds dates"),
        (pl.DataFrame({"l": [[1, 2]]}), "'l' holds nested values"),
        (pa.table({"s": [{"x": 1}]}), "'s' holds nested values"),
        (pd.DataFrame({"m": [1, "a"]}), "'m' mixes number (1) and text ('a')"),
        (pa.table({"b": pa.array([b"x"])}), "'b' holds values of type binary"),
        (pl.LazyFrame({"a": [1]}), "LazyFrame is not a table"),
        (object(), "object is not a table"),
    ],
)
def test_what_cannot_be_coded_is_refused_in_one_line(frame, part):
    with pytest.raises(DataError) as caught:
        Table.from_frame(frame)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arrow_decimals_and_repeated_dictionary_values():
    decimals = pa.array([1, None, 2]).cast(pa.decimal128(21, 2))
    repeated = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["x", None, "x"]))
    table = Table.from_frame(pa.table({"a": decimals, "b": repeated}))
    assert table["a"].levels == (1, 2)
    assert table["b"].levels == ("x",)
    assert table["b"].codes.tolist() == [0, -1, 0]
