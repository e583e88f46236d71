"""`Table`: constructors, selection, recoding, description and its way back to a frame."""

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.errors import DataError


@pytest.fixture
def table():
    return Table.from_rows(
        [(1, "x", 0.5), (0, None, 1.5), (1, "y", None)],
        columns=["a", "b", "c"],
        levels={"b": ["y", "x", "z"]},
        weights=[1, 2, 3],
    )


def test_parts_of_a_table(table):
    assert table.columns == ("a", "b", "c")
    assert (table.n_rows, len(table), table.n) == (3, 3, 6.0)
    assert table.has_weights
    assert table.has_integer_weights
    assert table["b"].codes.tolist() == [1, -1, 0]
    assert "a" in table
    assert "z" not in table


def test_nothing_can_be_changed(table):
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.n_rows = 4
    for array in (table.weights, table["a"].codes, table["c"].values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_pickled_tables_are_equal_and_still_read_only(table):
    patterns = table.patterns(["a"])
    again = pickle.loads(pickle.dumps(table))
    assert again.digest == table.digest
    assert again.patterns(["a"]).codes.tolist() == patterns.codes.tolist()
    for array in (again.weights, again["a"].codes, again["c"].values, again.patterns(["a"]).codes):
        assert not array.flags.writeable


def test_the_callers_arrays_are_left_alone():
    array = np.array([[0.5, 1.0], [1.5, 0.0]])
    weights = np.array([1.0, 2.0])
    table = Table.from_array(array, weights=weights)
    array[:] = 9.0
    weights[:] = 9.0
    assert table["x0"].values.tolist() == [0.5, 1.5]
    assert table.weights.tolist() == [1.0, 2.0]


def test_without_weights_every_row_counts_once():
    table = Table.from_rows([(1,), (2,)], columns=["a"])
    assert table.weights.tolist() == [1.0, 1.0]
    assert not table.has_weights
    assert table.has_integer_weights


def test_select_and_drop(table):
    assert table.select(["c", "a"]).columns == ("c", "a")
    assert table.select("a").columns == ("a",)
    assert table.drop(["b"]).columns == ("a", "c")
    assert table.drop("b").weights.tolist() == [1.0, 2.0, 3.0]
    for call in (lambda: table.select(["bb"]), lambda: table.drop(["bb"]), lambda: table["bb"]):
        with pytest.raises(DataError, match=r"'bb'.*did you mean 'b'"):
            call()
    with pytest.raises(DataError, match="more than once"):
        table.select(["a", "a"])


def test_recoding_matches_value_then_text(table):
    recoded = table.with_columns_coded({"a": ("1", "0"), "b": ("x", "y")})
    assert recoded["a"].levels == ("1", "0")
    assert recoded["a"].codes.tolist() == [0, 1, 0]
    # The unseen level "z" is in no row, so it may be forgotten.
    assert recoded["b"].codes.tolist() == [0, -1, 1]
    assert recoded["c"] is table["c"]
    assert recoded["a"].declared


def test_recoding_text_to_bools_and_floats_to_integers():
    table = Table.from_columns({"a": ["True", "False"], "b": np.arange(2.0)}, continuous=["b"])
    recoded = table.with_columns_coded({"a": (False, True), "b": (1, 0)})
    assert recoded["a"].codes.tolist() == [1, 0]
    assert recoded["b"].codes.tolist() == [1, 0]


def test_recoding_an_unknown_value_names_column_value_and_row(table):
    with pytest.raises(DataError, match=r"column 'b', row 3: 'y' is not a declared level"):
        table.with_columns_coded({"b": ("x", "w")})
    with pytest.raises(DataError, match=r"did you mean 'a'"):
        table.with_columns_coded({"aa": (0, 1)})


def test_unique_rows_keep_continuous_values_and_sum_weights():
    table = Table.from_columns({"a": [1, 0, 1, 1], "x": [0.5, 0.5, np.nan, 0.5]}, weights=[1, 2, 4, 8])
    unique = table.unique()
    assert unique["a"].codes.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(unique["x"].values, [0.5, np.nan, 0.5])
    assert unique.weights.tolist() == [2.0, 4.0, 9.0]
    assert unique.digest == table.digest


def test_take_keeps_levels_and_weights(table):
    taken = table.take(np.array([2, 0]))
    assert taken["b"].codes.tolist() == [0, 1]
    assert taken["b"].levels == ("y", "x", "z")
    assert taken.weights.tolist() == [3.0, 1.0]


def test_describe_and_the_texts(table):
    summary = table.describe()[1]
    assert (summary.name, summary.kind, summary.levels) == ("b", "categorical", ("y", "x", "z"))
    assert (summary.n_missing, summary.unseen_levels) == (1, ("z",))
    assert repr(table) == (
        "Table: 3 rows, weights summing to 6, 3 columns\n"
        "  a  categorical: 0, 1\n"
        "  b  categorical: 'y', 'x', 'z' (1 missing)\n"
        "  c  continuous (1 missing)"
    )
    assert repr(table["a"]) == "Column('a', 2 levels, 3 rows, 0 missing)"
    assert repr(table.patterns(["a"])) == "Patterns(2 unique of 3 rows over a)"
    page = Table.from_columns({"<b>": ["<i>"]})._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<i>" not in page


def test_to_frame_decodes_levels(table):
    frame = table.to_frame(weights="w")
    assert list(frame.columns) == ["a", "b", "c", "w"]
    assert frame["a"].tolist() == [1, 0, 1]
    assert frame["a"].dtype == np.int64
    assert frame["b"].isna().tolist() == [False, True, False]
    assert frame["b"].dropna().tolist() == ["x", "y"]
    assert frame["c"].isna().tolist() == [False, False, True]
    assert frame["w"].tolist() == [1.0, 2.0, 3.0]
    assert "w" not in table.to_frame()
    with pytest.raises(DataError, match="already the name of a column"):
        table.to_frame(weights="a")


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-3, 30),
            st.none() | st.text(max_size=3),
            st.none() | st.booleans(),
            st.none() | st.floats(-9, 9),
        ),
        min_size=1,
        max_size=25,
    ).map(lambda rows: [*rows, (1, "x", True, 0.5)])
)
def test_frame_to_table_to_frame_and_back(rows):
    names = ["i", "t", "b", "x"]
    table = Table.from_frame(
        pd.DataFrame({name: [row[at] for row in rows] for at, name in enumerate(names)}, dtype=object)
    )
    again = Table.from_frame(table.to_frame())
    assert again.digest == table.digest
    for name in names:
        assert again[name].levels == table[name].levels
        np.testing.assert_array_equal(again[name].codes, table[name].codes)
        np.testing.assert_array_equal(again[name].values, table[name].values)


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ([(1, 2), (1,)], "row 2 has 1 values but there are 2 columns"),
        ([(1, 2, 3)], "row 1 has 3 values"),
        (["ab"], "row 1 is 'ab'"),
        ([(1, 2), 7], "row 2 is 7"),
        ([{"a": 1, "b": 2}], "row 1 is"),
    ],
)
def test_bad_rows_are_named(rows, part):
    with pytest.raises(DataError, match=part) as caught:
        Table.from_rows(rows, columns=["a", "b"])
    assert "\n" not in str(caught.value)


def test_arrays_of_numbers_and_objects():
    table = Table.from_array(np.array([[0.0, 1.5], [np.nan, 2.5]]), weights=[1, 1])
    assert table.columns == ("x0", "x1")
    assert table["x0"].codes.tolist() == [0, -1]
    assert table["x1"].kind == "continuous"
    table = Table.from_array(np.array([["u", 1], [None, 2]], dtype=object), columns=["a", "b"])
    assert table["a"].codes.tolist() == [0, -1]
    assert table["b"].levels == (1, 2)


@pytest.mark.parametrize(
    ("array", "columns", "part"),
    [
        (np.zeros(3), None, r"shape \(3,\)"),
        (np.zeros((2, 2), dtype=complex), None, "complex128"),
        (np.zeros((2, 2)), ["a"], "1 column names are given for an array of 2 columns"),
        (np.zeros((2, 1), dtype="datetime64[D]"), None, "dates"),
    ],
)
def test_bad_arrays(array, columns, part):
    with pytest.raises(DataError, match=part):
        Table.from_array(array, columns=columns)


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({"a": [1, 2], "b": [1]}, "'b' has 1 rows but 'a' has 2"),
        ({"a": "text"}, "'a' is 'text'"),
        ({"a": 3}, "'a' is 3"),
        ({"a": np.zeros((2, 2))}, "'a' has 2 dimensions"),
        ({}, "no column is left"),
    ],
)
def test_bad_columns(columns, part):
    with pytest.raises(DataError, match=part):
        Table.from_columns(columns)


ONE = {"rows": [(1,)], "columns": ["a"]}


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: Table.from_rows(5, columns=["a"]), "the rows are 5"),
        (lambda: Table.from_rows([(1,)], columns=5), "columns is 5"),
        (lambda: Table.from_rows(**ONE, levels=[1]), r"levels= is \[1\]"),
        (lambda: Table.from_rows(**ONE, levels={"a": 5}), "'a' is 5"),
        (lambda: Table.from_rows(**ONE, categorical=[["a"]]), r"categorical= contains \['a'\]"),
        (lambda: Table.from_rows(**ONE, continuous=5), "continuous= is 5"),
        (lambda: Table.from_rows(**ONE, weights=[10**400]), "row 1"),
        (lambda: Table.from_columns([1]), "mapping from name"),
        (lambda: Table.from_array([[1, 2], [3]]), "different lengths"),
        (lambda: Table.from_rows(**ONE).patterns(5), "columns is 5"),
        (lambda: Table.from_rows(**ONE)["a", "b"], "not a column"),
    ],
)
def test_arguments_of_the_wrong_kind(call, part):
    with pytest.raises(DataError, match=part) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_as_table_takes_what_it_is_given(tmp_path):
    table = Table.from_rows([(1, "x"), (0, "y")], columns=["a", "b"])
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n0,y\n")
    assert as_table(table) is table
    for data in (path, str(path), table.to_frame(), {"a": [1, 0], "b": ["x", "y"]}):
        assert as_table(data).digest == table.digest
    assert as_table(np.array([[1], [0]]), columns=["a"]).digest == table.select(["a"]).digest
    assert as_table(path, drop=["b"]).columns == ("a",)
    with pytest.raises(DataError, match="'drop' have no effect on a Table"):
        as_table(table, drop=["a"])
    with pytest.raises(DataError, match=r"Table\.from_rows"):
        as_table([(1, 2)])
    with pytest.raises(DataError, match="int is not a table"):
        as_table(7)


def test_import_stays_light():
    heavy = ["duckdb", "narwhals", "pyarrow", "pandas", "polars", "numba"]
    code = f"import sys, lurking.data, lurking.data.table; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
