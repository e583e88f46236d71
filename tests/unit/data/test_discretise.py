"""`discretise`: what every rule keeps, new numbers for old classes, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lurking as lk
from lurking.data.column import Column
from lurking.data.intervals import interval_bounds
from lurking.data.table import Table
from lurking.errors import DataError, LurkingError, LurkingWarning, OptionError, UnknownNameError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ONE_CLASS = "(-inf, inf)"


def table_of(values, weights=None, **others):
    return Table.from_columns({"x": values, **others}, weights=weights, continuous=["x"])


def cut(values, rule, weights=None, **options):
    return lk.discretise(table_of(values, weights), {"x": rule}, **options)["x"]


# What holds for every rule.

RULES = {
    "quantile": ({"x": 3}, {}),
    "width": ({"x": 3}, {"method": "width"}),
    "given": ({"x": [-3.5, 2]}, {}),
    "evidence": ({"x": "evidence"}, {}),
    "target": ({"x": "evidence"}, {"target": "y"}),
}


@pytest.fixture(params=RULES)
def rule(request):
    return RULES[request.param]


@pytest.mark.filterwarnings("ignore::lurking.LurkingWarning")
def test_weights_are_repetition_and_order_does_not_matter(rule):
    columns, options = rule
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values, target = rng.normal(0, 4, 30).round(1), rng.integers(0, 3, 30)
        values[rng.integers(30)] = np.nan
        weights = rng.integers(0, 5, 30)
        levels = {"y": [0, 1, 2]}
        weighted = Table.from_columns({"x": values, "y": target}, weights=weights, levels=levels)
        rows = np.repeat(np.arange(30), weights)
        repeated = Table.from_columns({"x": values[rows], "y": target[rows]}, levels=levels)
        shuffled = repeated.take(rng.permutation(repeated.n_rows))
        made = [lk.discretise(table, columns, **options) for table in (weighted, repeated, shuffled)]
        assert made[0]["x"].levels == made[1]["x"].levels == made[2]["x"].levels
        assert made[0].digest == made[1].digest == made[2].digest


def test_nothing_but_the_column_changes(rule):
    columns, options = rule
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(-5, 0.5, 50), rng.normal(5, 1.5, 50), [np.nan]])
    table = Table.from_columns(
        {"a": rng.normal(size=101), "x": values, "y": (values > 0).astype(int)}, weights=rng.integers(1, 4, 101)
    )
    made = lk.discretise(table, columns, **options)
    assert made.columns == table.columns
    assert made["a"] is table["a"]
    assert made["y"] is table["y"]
    np.testing.assert_array_equal(made.weights, table.weights)
    assert made.has_weights
    column = made["x"]
    assert (column.kind, column.declared, column.n_missing) == ("categorical", True, 1)
    assert table["x"].kind == "continuous"
    for value, code in zip(values[:-1], column.codes, strict=False):
        low, high = interval_bounds(column.levels)[code]
        assert low <= value < high


def test_every_continuous_column_by_default():
    table = Table.from_columns({"x": [0.5, 1.5, 2.5], "n": [1, 2, 3], "z": [0.25, None, 9.5]})
    made = lk.discretise(table, states=2)
    assert [made[name].levels for name in made.columns] == [("< 1", ">= 1"), (1, 2, 3), ("< 5", ">= 5")]
    assert lk.discretise(table, "z", states=2)["x"].kind == "continuous"
    assert lk.discretise(table, ["x", "z"], states=2).digest == made.digest
    with pytest.warns(LurkingWarning, match="found no continuous column"):
        assert lk.discretise(made).digest == made.digest


def test_a_number_of_classes_goes_to_columns_without_one():
    table = table_of(np.arange(24.0), z=np.arange(24.0))
    made = lk.discretise(table, {"x": 3, "z": "width"}, states=6)
    assert (made["x"].cardinality, made["z"].cardinality) == (3, 6)
    assert lk.discretise(table, ["x"])["x"].cardinality == 4
    values = np.random.default_rng(0).normal(size=3000)
    assert cut(values, "evidence").cardinality > 4
    assert cut(values, "evidence", states=4).cardinality == 4
    assert cut(values, 4, method="evidence").levels == cut(values, "evidence", states=4).levels


def test_numbers_that_were_coded_as_categories_can_be_cut_by_name():
    table = Table.from_columns({"age": [31, 25, None, 40, 25]})
    made = lk.discretise(table, {"age": 3})["age"]
    assert made.levels == ("< 30", "[30, 40)", ">= 40")
    assert made.codes.tolist() == [1, 0, -1, 2, 0]


def test_an_empty_column_can_get_given_classes():
    with pytest.warns(LurkingWarning, match="entirely empty"):
        table = Table.from_columns({"x": [None, None], "y": [0, 1]})
    assert lk.discretise(table, {"x": [1]})["x"].levels == ("< 1", ">= 1")
    assert lk.discretise(table, {"x": [1]})["x"].n_missing == 2


def test_a_constant_column_is_one_class():
    for method in ("quantile", "width", "evidence"):
        with pytest.warns(LurkingWarning, match="'x' became one class, which tells nothing: it holds one number only"):
            assert cut([2.5, None, 2.5], 3, method=method).levels == (ONE_CLASS,)


def test_a_frame_is_data_too():
    assert lk.discretise({"x": [0.5, 1.5, 2.5]}, {"x": 3})["x"].codes.tolist() == [0, 1, 2]


# New numbers for old classes.


def test_numbers_are_coded_by_the_intervals_they_lie_in():
    levels = ("< 18.5", "[18.5, 25)", ">= 25")
    for values in ([17.5, 18.5, None, 25.0, 24.9], ["17.5", "18.5", None, "25", "24.9"]):
        column = Table.from_columns({"x": values}).with_columns_coded({"x": levels})["x"]
        assert column.levels == levels
        assert column.codes.tolist() == [0, 1, -1, 2, 1]
    column = Table.from_columns({"x": [30, 10, 20]}).with_columns_coded({"x": levels[::-1]})["x"]
    assert column.codes.tolist() == [0, 2, 1]
    column = Table.from_columns({"x": [">= 25", "< 18.5", "19.5"]}).with_columns_coded({"x": levels})["x"]
    assert column.codes.tolist() == [2, 0, 1]
    column = Table.from_columns({"x": [1, 2]}).with_columns_coded({"x": (ONE_CLASS,)})["x"]
    assert column.codes.tolist() == [0, 0]
    assert Table.from_columns({"x": [10**400, -(10**400)]}).with_columns_coded({"x": levels})["x"].codes.tolist() == [
        2,
        0,
    ]


def test_what_is_no_number_is_still_refused():
    levels = ("< 1", ">= 1")
    for values, row in ((["0.5", "tall"], 2), ([True, False], 1), (["0.5", "inf"], 2), (["< 2", "0"], 1)):
        with pytest.raises(DataError, match=f"'x', row {row}: .* is not a declared level"):
            Table.from_columns({"x": values}).with_columns_coded({"x": levels})
    with pytest.raises(DataError, match=r"0\.5 is not a declared level"):
        table_of([0.5]).with_columns_coded({"x": ("< 1", ">= 2")})


@given(st.lists(st.one_of(st.none(), FINITE), min_size=1, max_size=30), st.integers(2, 5))
@pytest.mark.filterwarnings("ignore::lurking.LurkingWarning")
def test_raw_numbers_are_cut_as_they_were(values, states):
    if all(value is None for value in values):
        values.append(0.25)
    table = table_of(values)
    for method in ("quantile", "width", "evidence"):
        made = lk.discretise(table, {"x": states}, method=method)
        again = table.with_columns_coded({"x": made["x"].levels})
        np.testing.assert_array_equal(again["x"].codes, made["x"].codes)
        assert again.digest == made.digest


def test_a_network_takes_raw_numbers(tmp_path):
    rng = np.random.default_rng(8)
    kind = rng.random(150) < 0.5
    raw = Table.from_columns(
        {
            "height": np.where(kind, rng.normal(180, 6, 150), rng.normal(165, 6, 150)),
            "weight": [None if k % 9 == 0 else w for k, w in enumerate((rng.normal(70, 9, 150) + 9 * kind).round(1))],
            "beard": kind & (rng.random(150) < 0.6),
        }
    )
    cut_table = lk.discretise(raw, {"height": 4, "weight": [60, 75, 90]})
    lk.fit("class[2] -> *", cut_table, seed=0, restarts=2).network.save(tmp_path / "model.json")
    network = lk.Network.load(tmp_path / "model.json")
    np.testing.assert_array_equal(network.loglik(raw), network.loglik(cut_table))
    for target in ("class", "beard", "weight"):
        np.testing.assert_array_equal(
            network.predict(raw, target).probabilities, network.predict(cut_table, target).probabilities
        )
    assert network.predict(raw, "weight").levels == ("< 60", "[60, 75)", "[75, 90)", ">= 90")
    assert network.impute(raw).table.digest == network.impute(cut_table).table.digest


# Refusals.


def refused(kind, columns, *parts, table=None, **options):
    if table is None:
        table = Table.from_columns(
            {"age": [31.5, 44.25, 60.0, 18.5], "sex": ["f", "m", "m", "f"], "dose": [0.1, 0.2, 0.4, 0.8]}
        )
    with pytest.raises(LurkingError) as caught:
        lk.discretise(table, columns, **options)
    message = str(caught.value)
    assert type(caught.value) is kind, message
    assert "\n" not in message
    for part in parts:
        assert part in message, message


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        ({"agee": 4}, ("discretise names 'agee'", "did you mean 'age'")),
        ("agee", ("'agee'",)),
        ({"sex": 2}, ("'sex' is categorical already", "'f', 'm'", "only numbers")),
    ],
)
def test_columns_that_cannot_be_cut(columns, parts):
    refused(DataError, columns, *parts)


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        (1, ("the number of classes is 1", "from 2 to 1000")),
        (0, ("from 2 to 1000",)),
        (-4, ("-4",)),
        (1001, ("1001",)),
        (True, ("True is no rule",)),
        (4.0, ("4.0 is no rule", "whole number", "list of cut points", "quantile, width, evidence")),
        (None, ("None is no rule",)),
        ([], ("list of cut points is empty",)),
        ([2, 1], ("the cut point 1 comes after 2.0", "larger than the one before")),
        ([1, 1.0], ("the cut point 1.0 comes after 1.0",)),
        ([2**53, 2**53 + 1], ("comes after",)),
        ([1, math.nan], ("the cut point nan is not a finite number",)),
        ([-math.inf, 1], ("-inf",)),
        ([10**400], ("not a finite number",)),
        (["1", "2"], ("'1'",)),
        ([True], ("True",)),
    ],
)
def test_rules_that_are_none(rule, parts):
    refused(OptionError, {"age": rule}, "'age'", *parts)


def test_states_outside_their_range():
    refused(OptionError, ["age"], "states=", "1", states=1)
    refused(OptionError, ["age"], "states=", "'4'", states="4")


def test_unknown_methods_list_the_choices():
    choices = "choose from: quantile, width, evidence"
    refused(UnknownNameError, ["age"], "'quantil'", "did you mean 'quantile'", choices, method="quantil")
    refused(UnknownNameError, {"age": "entropy"}, "rule for column 'age'", "'entropy'", choices)


def test_targets_that_are_none():
    refused(DataError, {"age": "evidence"}, "target names 'sexx'", "did you mean 'sex'", target="sexx")
    refused(DataError, {"age": "evidence"}, "'dose' is continuous", "cut it first", target="dose")
    refused(OptionError, {"age": "evidence"}, "'age' is itself to be cut", target="age")
    refused(OptionError, {"age": 4, "dose": [0.3]}, "target 'sex'", "'evidence' only", target="sex")


def test_columns_without_a_number_that_counts():
    table = Table.from_columns({"x": [None, 1.5, None], "y": ["a", None, "b"]}, weights=[1, 0, 1], continuous=["x"])
    for method in ("quantile", "width", "evidence"):
        refused(DataError, ["x"], "'x' has no row with a number that counts", "cut points", table=table, method=method)
    table = Table.from_columns({"x": [None, 1.5, None], "y": ["a", None, "b"]}, continuous=["x"])
    refused(DataError, {"x": "evidence"}, "'x' has no row with a number and a known 'y'", table=table, target="y")


def test_infinite_numbers():
    table = table_of([1.5, 2.5]).with_columns({"x": Column.continuous("x", np.array([1.5, np.inf]), declared=False)})
    refused(DataError, {"x": 2}, "'x', row 2: an infinite number", table=table)
    refused(DataError, {"x": 2}, "infinite", table=Table.from_columns({"x": [1, 10**400]}))


def test_rows_are_not_looked_at_one_by_one(count_calls):
    """About 400 calls at most, a thousand rows or a million."""
    values = np.random.default_rng(0).normal(size=10**5)
    table = table_of(values, y=values > 0.5)
    for columns, options in ({"x": 4}, {}), ({"x": "evidence"}, {}), ({"x": "evidence"}, {"target": "y"}):
        lk.discretise(table, columns, **options)  # modules are imported and kernels compiled
        assert count_calls(lambda c=columns, o=options: lk.discretise(table, c, **o)) < 2000
