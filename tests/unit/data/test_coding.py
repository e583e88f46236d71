"""The coding rule: kinds, levels, order, overrides, missing cells, and what is refused."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pytest

from lurking.data.coding import EMPTY_LEVEL
from lurking.data.table import Table
from lurking.errors import DataError, LurkingWarning


def column(values, **options):
    return Table.from_columns({"a": values}, **options)["a"]


def refused(call, *parts):
    with pytest.raises(DataError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message
    return message


@pytest.mark.parametrize(
    ("values", "levels", "codes"),
    [
        (["b", "a", None, "b"], ("a", "b"), [1, 0, -1, 1]),
        ([3, 1, 10], (1, 3, 10), [1, 0, 2]),
        ([True, False, None], (False, True), [1, 0, -1]),
        ([2.0, 0.0, float("nan")], (0, 2), [1, 0, -1]),
        ([2, 1.0, 1], (1, 2), [1, 0, 0]),
        (["10", "9"], ("10", "9"), [0, 1]),
        ([pd.NA, "x", pd.NaT], ("x",), [-1, 0, -1]),
        ([decimal.Decimal("2"), decimal.Decimal("1")], (1, 2), [1, 0]),
        (np.array([200, 100], dtype=np.uint8), (100, 200), [1, 0]),
        (np.array([-128, 127, 0], dtype=np.int8), (-128, 0, 127), [0, 2, 1]),
        (np.array([2**64 - 1, 0], dtype=np.uint64), (0, 2**64 - 1), [1, 0]),
        (np.array([True, False]), (False, True), [1, 0]),
        (np.array(["b", "a"]), ("a", "b"), [1, 0]),
    ],
)
def test_categorical_by_rule(values, levels, codes):
    made = column(values)
    assert made.kind == "categorical"
    assert made.levels == levels
    assert [type(level) for level in made.levels] == [type(level) for level in levels]
    assert made.codes.tolist() == codes
    assert made.codes.dtype == np.int32
    assert not made.declared


def test_at_most_twenty_integral_floats_are_categorical():
    assert column(np.arange(20.0)).levels == tuple(range(20))
    assert column(np.arange(21.0)).kind == "continuous"
    assert column(np.arange(21)).cardinality == 21


def test_fractional_floats_are_continuous_with_nan_for_missing():
    made = column([0.5, None, -0.0, 2])
    assert made.kind == "continuous"
    np.testing.assert_array_equal(made.values, [0.5, np.nan, 0.0, 2.0])
    assert not np.signbit(made.values[2])
    assert (made.cardinality, made.n_missing, made.levels, len(made)) == (0, 1, (), 4)


def test_categorical_option_keeps_fractional_levels_ascending():
    made = column([0.5, 0.25, np.nan], categorical=["a"])
    assert made.levels == (0.25, 0.5)
    assert made.codes.tolist() == [1, 0, -1]
    assert made.declared
    assert column(np.arange(30.0), categorical="a").levels == tuple(range(30))


def test_continuous_option_on_integers_and_on_what_is_no_number():
    made = column([1, None, 3], continuous=["a"])
    np.testing.assert_array_equal(made.values, [1.0, np.nan, 3.0])
    assert made.declared
    refused(lambda: column([1, "x"], continuous=["a"]), "'a', row 2", "'x' is not a number")
    refused(lambda: column([True], continuous=["a"]), "True is not a number")


def test_declared_levels_keep_their_order_and_the_unseen_ones():
    made = column([0, None, 1, 0], levels={"a": [2, 1, 0]})
    assert made.levels == (2, 1, 0)
    assert made.codes.tolist() == [2, -1, 1, 2]
    assert made.unseen_levels == (2,)
    assert made.declared


def test_declared_levels_match_by_value_then_by_text():
    assert column(["True", "False"], levels={"a": [False, True]}).codes.tolist() == [1, 0]
    assert column([1, 0], levels={"a": ["0", "1"]}).codes.tolist() == [1, 0]
    assert column([1.0, 0.0], levels={"a": ["0", "1"]}).codes.tolist() == [1, 0]
    assert column(["1", 1], levels={"a": [1, "1"]}).codes.tolist() == [1, 0]


def test_undeclared_value_names_column_value_first_row_and_list():
    refused(
        lambda: column([0, 1, 5, 4, 5], levels={"a": [0, 1]}), "column 'a', row 3", "5 is not a declared level", "0, 1"
    )


@pytest.mark.parametrize(
    ("levels", "part"),
    [
        ([], "is empty"),
        ([0, 0], "0 more than once"),
        ([1, True], "more than once"),
        ([0, None], "None"),
        ("ab", "list"),
    ],
)
def test_bad_declared_levels(levels, part):
    refused(lambda: column([0], levels={"a": levels}), "'a'", part)


def test_mixed_types_are_refused_with_both_named():
    refused(lambda: column([1, "a"]), "'a' mixes number (1) and text ('a')")
    refused(lambda: column([True, 2]), "mixes bool (True) and number (2)")
    refused(lambda: column(["x", False]), "mixes bool (False) and text ('x')")


@pytest.mark.parametrize("values", [[1.5, np.inf], np.array([0.0, -np.inf]), [10**400, 0.5]])
def test_infinite_numbers_are_refused(values):
    refused(lambda: column(values), "column 'a'", "infinite")


def test_infinite_number_names_its_row():
    refused(lambda: column([0.5, None, -np.inf, 1.0]), "row 3")


@pytest.mark.parametrize(
    "value",
    [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.timedelta(1), pd.Timestamp("2020-01-01"), np.datetime64("2020")],
)
def test_dates_are_refused(value):
    refused(lambda: column([None, value]), "'a' holds dates or times", "drop=")


@pytest.mark.parametrize("value", [[1], (1, 2), {"b": 1}, {1}, np.array([1])])
def test_nested_values_are_refused(value):
    refused(lambda: column([None, value]), "'a' holds nested values")


def test_other_types_are_refused_with_row_and_type():
    refused(lambda: column([1, 2j]), "row 2", "complex")
    refused(lambda: column([b"x"]), "row 1", "bytes")


@pytest.mark.parametrize("values", [[None, None], np.array([np.nan, np.nan])])
def test_empty_column_is_accepted_with_a_warning(values):
    with pytest.warns(LurkingWarning, match="'a' is entirely empty") as caught:
        made = column(values)
    assert len(caught) == 1
    assert all(word in str(caught[0].message) for word in ("levels=", "drop=", "hidden"))
    assert made.levels == (EMPTY_LEVEL,)
    assert made.codes.tolist() == [-1, -1]
    assert made.n_missing == 2


def test_empty_column_that_is_declared_gives_no_warning():
    assert column([None], levels={"a": ["x", "y"]}).unseen_levels == ("x", "y")
    assert np.isnan(column([None], continuous=["a"]).values).all()


def test_no_rows_need_declared_levels():
    table = Table.from_rows([], columns=["a", "b"], levels={"a": [0, 1], "b": ["x"]})
    assert (len(table), table.n, table["a"].cardinality) == (0, 0.0, 2)
    assert table.patterns(["a", "b"]).codes.shape == (0, 2)
    refused(lambda: Table.from_rows([], columns=["a", "b"], levels={"a": [0, 1]}), "'b' has no rows", "levels=")


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"levels": {"agee": [1]}}, "levels"),
        ({"categorical": ["agee"]}, "categorical"),
        ({"continuous": ["agee"]}, "continuous"),
        ({"drop": ["agee"]}, "drop"),
        ({"weights": "agee"}, "weights"),
    ],
)
def test_unknown_names_offer_the_nearest(options, where):
    refused(lambda: Table.from_columns({"age": [1], "b": [2]}, **options), where, "'agee'", "did you mean 'age'?")


def test_contradicting_options_are_refused():
    refused(lambda: column([1], continuous=["a"], categorical=["a"]), "'a'", "keep only one")
    refused(lambda: column([1], continuous=["a"], levels={"a": [1]}), "'a'", "keep only one")
    refused(lambda: Table.from_columns({"a": [1], "w": [1]}, weights="w", drop=["w"]), "'w'", "keep only one")


def test_bad_column_names():
    refused(lambda: Table.from_rows([(1, 2, 3)], columns=["a", "b", "a"]), "more than once: 'a'")
    refused(lambda: Table.from_rows([(1, 2)], columns=["a", " "]), "column 2 is empty")
    refused(lambda: Table.from_rows([(1, 2)], columns=["a", 7]), "column 2 is 7", "not text")


@pytest.mark.parametrize(
    ("weights", "row"),
    [
        ([1, -0.5], 2),
        ([float("nan"), 1], 1),
        ([1, float("inf")], 2),
        ([1, None], 2),
        (["x", 1], 1),
        (np.array([1.0, -1.0]), 2),
        (np.array([np.inf, 1.0]), 1),
    ],
)
def test_bad_weights_name_their_row(weights, row):
    refused(lambda: column([0, 1], weights=weights), f"row {row} ", "finite number, zero or more")
    refused(lambda: Table.from_columns({"a": [0, 1], "w": weights}, weights="w"), f"row {row} of 'w'")


def test_weights_of_wrong_length_or_shape():
    refused(lambda: column([0, 1], weights=[1.0]), "1 values for 2 rows")
    refused(lambda: column([0, 1], weights=3), "weights= is 3")


def test_weights_column_leaves_the_columns():
    table = Table.from_columns({"a": [0, 1], "w": [2, 0.5]}, weights="w")
    assert table.columns == ("a",)
    assert table.weights.tolist() == [2.0, 0.5]
    assert (table.n, table.has_weights, table.has_integer_weights) == (2.5, True, False)
    refused(lambda: Table.from_columns({"w": [1]}, weights="w"), "no column is left")


def test_dropped_columns_are_not_looked_at():
    table = Table.from_columns({"a": [0, 1], "when": [dt.date(2020, 1, 1), [1]]}, drop=["when"])
    assert table.columns == ("a",)


@pytest.mark.parametrize(
    ("n_rows", "cardinality", "expected"),
    [
        (1000, 101, False),
        (403, 101, True),
        (404, 101, False),
        (399, 100, False),
        (9000, 1001, True),
        (9000, 1000, False),
    ],
)
def test_identifier_rule(n_rows, cardinality, expected):
    values = np.arange(n_rows) % cardinality
    assert column(values).looks_like_identifier(n_rows) is expected
    assert column(values, categorical=["a"]).looks_like_identifier(n_rows) is False
