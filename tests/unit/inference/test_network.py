"""Questions to a network, against sums over every joint state."""

import itertools
import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, LurkingError, OptionError, StructureError
from lurking.inference.network import Network

LEVELS = {"a": ("no", "yes"), "b": (1, 2, 5), "c": (False, True), "h": (0, 1), "g": (0, 1, 2)}


def make_network(seed=0):
    """Return two hidden causes over three columns with levels of three types."""
    dag = lk.Dag.parse("g[3] -> h[2] c; h -> a b; a -> b")
    sizes = {name: len(levels) for name, levels in LEVELS.items()}
    generator = np.random.default_rng(seed)
    tables = {}
    for name in dag.nodes:
        rows = int(np.prod([sizes[parent] for parent in dag.parents(name)]))
        draws = generator.standard_gamma(0.8, (rows, sizes[name])) + 0.02
        tables[name] = draws / draws.sum(axis=1, keepdims=True)
    return Network.from_tables(dag, tables, levels=LEVELS)


def joint_states(network):
    """Return [({name: level}, probability)] of every joint state, straight from the tables."""
    names, states = network.dag.nodes, []
    for combination in itertools.product(*(network.levels[name] for name in names)):
        state = dict(zip(names, combination, strict=True))
        probability = 1.0
        for name in names:
            row = 0
            for parent in network.dag.parents(name):
                row = row * len(network.levels[parent]) + network.levels[parent].index(state[parent])
            probability *= network.tables[name][row, network.levels[name].index(state[name])]
        states.append((state, probability))
    return states


def summed(states, evidence):
    """Return p(evidence); cells that are None are summed out."""
    return math.fsum(
        p for state, p in states if all(state[name] == value for name, value in evidence.items() if value is not None)
    )


ROWS = [
    ("no", 1, True),
    ("yes", 5, False),
    ("yes", None, True),
    (None, 2, None),
    (None, None, False),
    (None, None, None),
    ("yes", 5, False),
]
COLUMNS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def network():
    return make_network()


@pytest.fixture(scope="module")
def states(network):
    return joint_states(network)


@pytest.fixture(scope="module")
def table():
    return lk.Table.from_rows(ROWS, columns=COLUMNS, weights=[2, 1, 1, 3, 1, 1, 1])


def test_all_joint_states_sum_to_one(states):
    assert math.fsum(p for _, p in states) == pytest.approx(1.0, abs=1e-12)


def test_log_likelihood_of_every_row(network, states, table):
    expected = [math.log(summed(states, dict(zip(COLUMNS, row, strict=True)))) for row in ROWS]
    assert network.loglik(table) == pytest.approx(expected, abs=1e-12)
    assert network.loglik(table)[5] == pytest.approx(0.0, abs=1e-12)


def test_hidden_probabilities_are_bayes_rule(network, states, table):
    result = network.hidden_probabilities(table)
    assert list(result) == ["g", "h"]
    for name, probabilities in result.items():
        assert probabilities.shape == (len(ROWS), len(LEVELS[name]))
        for i, row in enumerate(ROWS):
            evidence = dict(zip(COLUMNS, row, strict=True))
            total = summed(states, evidence)
            by_hand = [summed(states, {**evidence, name: level}) / total for level in LEVELS[name]]
            assert probabilities[i] == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("target", ["a", "b", "c", "h", "g"])
def test_predict_any_variable_from_the_others(network, states, table, target):
    prediction = network.predict(table, target)
    assert prediction.target == target
    assert prediction.levels == LEVELS[target]
    for i, row in enumerate(ROWS):
        evidence = {name: value for name, value in zip(COLUMNS, row, strict=True) if name != target}
        total = summed(states, evidence)
        by_hand = [summed(states, {**evidence, target: level}) / total for level in LEVELS[target]]
        assert prediction.probabilities[i] == pytest.approx(by_hand, abs=1e-12)
        assert prediction.labels[i] == LEVELS[target][int(np.argmax(by_hand))]


def test_the_column_of_the_target_is_not_looked_at(network):
    rows = [("no", 1, True), ("yes", 1, True), (None, 1, True)]
    prediction = network.predict(lk.Table.from_rows(rows, columns=COLUMNS), "a").probabilities
    assert np.array_equal(prediction[0], prediction[1])
    assert np.array_equal(prediction[0], prediction[2])
    # Not even values that the network has never heard of.
    strange = lk.Table.from_rows([("maybe", 1, True)], columns=COLUMNS)
    assert np.array_equal(network.predict(strange, "a").probabilities[0], prediction[0])
    alone = lk.Table.from_rows([("maybe",)], columns=["a"])
    assert network.predict(alone, "a").probabilities[0] == pytest.approx(network.joint(["a"]), abs=1e-12)


@pytest.mark.parametrize("target", ["a", "b", "c", "h", "g"])
def test_an_empty_row_gives_the_marginal(network, table, target):
    assert network.predict(table, target).probabilities[5] == pytest.approx(network.joint([target]), abs=1e-12)


def test_absent_columns_are_unobserved(network, states):
    only_c = lk.Table.from_rows([(True,), (False,)], columns=["c"])
    expected = [math.log(summed(states, {"c": value})) for value in (True, False)]
    assert network.loglik(only_c) == pytest.approx(expected, abs=1e-12)
    nothing = lk.Table.from_rows([(1,), (2,), (2,)], columns=["unrelated"])
    assert network.loglik(nothing) == pytest.approx(np.zeros(3), abs=1e-12)
    expected = np.tile(network.joint(["h"]), (3, 1))
    assert network.hidden_probabilities(nothing)["h"] == pytest.approx(expected, abs=1e-12)


def test_columns_may_come_in_any_order_with_others_among_them(network, table):
    frame = table.to_frame()[["c", "a", "b"]].assign(extra=np.linspace(0, 1, len(ROWS)))
    assert np.array_equal(network.loglik(frame), network.loglik(table))


def test_an_unknown_level_is_an_error_that_names_column_and_value(network):
    with pytest.raises(DataError, match=r"'a'.*'perhaps'"):
        network.loglik(lk.Table.from_rows([("no", 1, True), ("perhaps", 1, True)], columns=COLUMNS))


def test_levels_not_in_the_new_data_keep_their_place(network, states):
    rows = lk.Table.from_rows([(5,), (5,)], columns=["b"])
    assert network.loglik(rows) == pytest.approx([math.log(summed(states, {"b": 5}))] * 2, abs=1e-12)


def test_unknown_variables_are_refused_with_the_nearest_name(network, table):
    with pytest.raises(StructureError, match="variables are: g, h, c, a, b"):
        network.predict(table, "z")
    with pytest.raises(StructureError, match="'z' is no variable"):
        network.joint(["a", "z"])
    with pytest.raises(StructureError, match="'z' is no variable"):
        network.levels_of("z")


def test_impute_fills_exactly_the_empty_cells(network, table):
    imputation = network.impute(table)
    filled = imputation.table
    assert filled.columns == table.columns
    assert np.array_equal(filled.weights, table.weights)
    assert {name: rows.tolist() for name, (rows, _) in imputation.cells.items()} == {
        "a": [3, 4, 5],
        "b": [2, 4, 5],
        "c": [3, 5],
    }
    for name in COLUMNS:
        before = [row[COLUMNS.index(name)] for row in ROWS]
        after = list(filled.to_frame()[name])
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            if old is not None:
                assert new == old
            else:
                assert new == network.predict(table, name).labels[i]
    assert table["a"].codes[3] == -1  # the caller's table is untouched


def test_imputation_probabilities_are_predictions(network, table):
    for name, (rows, probabilities) in network.impute(table).cells.items():
        assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-12)
        assert probabilities == pytest.approx(network.predict(table, name).probabilities[rows], abs=1e-12)


def test_nothing_to_impute(network):
    table = lk.Table.from_rows([("no", 1, True)], columns=COLUMNS)
    imputation = network.impute(table)
    assert imputation.cells == {}
    assert imputation.table["a"].codes.tolist() == network.impute(imputation.table).table["a"].codes.tolist()


def test_columns_outside_the_network_are_left_as_they_are(network):
    table = lk.Table.from_columns({"a": ["no", None], "extra": [0.25, math.nan]})
    filled = network.impute(table).table
    assert filled["a"].n_missing == 0
    assert np.isnan(filled["extra"].values[1])


@pytest.mark.parametrize("names", [["a"], ["b", "a"], ["a", "b"], ["h", "c", "b"], ["c", "g", "h", "a", "b"]])
def test_joint_is_full_enumeration_in_the_order_of_names(network, states, names):
    joint = network.joint(names)
    assert joint.shape == tuple(len(LEVELS[name]) for name in names)
    for index in np.ndindex(*joint.shape):
        evidence = {name: LEVELS[name][k] for name, k in zip(names, index, strict=True)}
        assert joint[index] == pytest.approx(summed(states, evidence), abs=1e-13)


def test_joint_refuses_a_repeated_name(network):
    with pytest.raises(OptionError, match="twice"):
        network.joint(["a", "h", "a"])


def test_joint_of_nothing_is_one_or_refused(network):
    try:
        joint = network.joint([])
    except LurkingError:
        return
    assert joint == pytest.approx(1.0)


def test_joint_at_the_end_of_a_long_chain():
    size = 60
    dag = lk.Dag.from_edges([(f"x{i}", f"x{i + 1}") for i in range(size - 1)])
    step = np.asarray([[0.9, 0.1], [0.2, 0.8]])
    chain = Network.from_tables(dag, {name: [0.3, 0.7] if name == "x0" else step for name in dag.nodes})
    expected = np.asarray([0.3, 0.7]) @ np.linalg.matrix_power(step, size - 1)
    assert chain.joint([f"x{size - 1}"]) == pytest.approx(expected, abs=1e-12)


def test_class_sizes_are_marginals_of_the_hidden_variables(network, states):
    sizes = network.class_sizes()
    assert list(sizes) == ["g", "h"]
    assert sizes["h"] == pytest.approx([summed(states, {"h": 0}), summed(states, {"h": 1})], abs=1e-12)


def test_sampled_frequencies_are_the_joint_probabilities(network, states):
    draws = network.sample(20_000, seed=0, hidden=True)
    assert draws.columns == network.dag.nodes
    assert draws.n_rows == 20_000
    codes = np.column_stack([draws[name].codes for name in draws.columns])
    strides = np.cumprod([1, *[len(LEVELS[name]) for name in reversed(draws.columns[1:])]])[::-1]
    seen = np.bincount(codes @ strides, minlength=len(states))
    for count, (_, p) in zip(seen, states, strict=True):
        assert abs(count / 20_000 - p) <= 4 * math.sqrt(p * (1 - p) / 20_000)


def test_samples_have_only_observed_columns_unless_asked(network):
    draws = network.sample(50, seed=1)
    assert draws.columns == network.dag.observed == ("c", "a", "b")
    assert [draws[name].levels for name in ("a", "b", "c")] == [LEVELS["a"], LEVELS["b"], LEVELS["c"]]
    with_hidden = network.sample(50, seed=1, hidden=True)
    for name in draws.columns:
        assert np.array_equal(draws[name].codes, with_hidden[name].codes)


def test_equal_seeds_give_equal_samples(network):
    one, again, other = network.sample(200, seed=3), network.sample(200, seed=3), network.sample(200, seed=4)
    assert all(np.array_equal(one[name].codes, again[name].codes) for name in one.columns)
    assert not all(np.array_equal(one[name].codes, other[name].codes) for name in one.columns)


@pytest.mark.parametrize("n", [-1, 1.5, True, "9"])
def test_sample_size_must_be_a_whole_number(network, n):
    with pytest.raises(OptionError, match="whole number"):
        network.sample(n, seed=0)


def test_a_sample_of_nothing(network):
    assert network.sample(0, seed=0).n_rows == 0
    assert network.loglik(network.sample(0, seed=0)).shape == (0,)


def test_impossible_states_are_never_drawn():
    dag = lk.Dag.parse("a -> b")
    network = Network.from_tables(dag, {"a": [0.0, 0.4, 0.0, 0.6], "b": [[0, 1], [1, 0], [0, 1], [0, 1]]})
    draws = network.sample(5000, seed=0)
    assert set(np.unique(draws["a"].codes)) == {1, 3}
    assert np.array_equal(draws["b"].codes, (draws["a"].codes == 3).astype(int))


def test_rows_that_the_network_calls_impossible_have_no_silent_answer():
    dag = lk.Dag.parse("h[2] -> a b c")
    identity = [[1.0, 0.0], [0.0, 1.0]]
    network = Network.from_tables(dag, {"h": [0.5, 0.5], "a": identity, "b": identity, "c": [[0.3, 0.7], [0.6, 0.4]]})
    row = lk.Table.from_rows([(0, 1, 0)], columns=["a", "b", "c"])
    try:
        probabilities = [network.hidden_probabilities(row)["h"], network.predict(row, "c").probabilities]
    except LurkingError:
        return  # refusing is an answer, probabilities that sum to 0 are not
    for values in probabilities:
        assert values.sum(axis=1) == pytest.approx([1.0])


def test_a_barren_hidden_node_reports_the_prior():
    table = lk.Table.from_rows([(0, 0), (0, 1), (1, 1), (1, 1)], columns=["a", "b"])
    counts = {
        "c": [2.0, 1.0],
        "a": [[1.0, 2.0], [2.0, 1.0]],
        "b": [[1.0, 1.0], [1.0, 1.0]],
        "spare": [[3.0, 1.0, 2.0], [1.0, 1.0, 6.0]],
    }
    dag = lk.Dag.parse("c[2] -> a b; a -> spare[3]")
    for method in ("vb", "map", "ml"):
        fit = lk.fit(dag, table, method=method, prior=lk.Prior.from_counts(counts), seed=0)
        assert fit.network.dag == dag
        expected = np.asarray([[3, 1, 2], [1, 1, 6]]) / np.asarray([[6], [8]])
        assert fit.network.tables["spare"] == pytest.approx(expected, abs=1e-14)
        shares = fit.network.hidden_probabilities(table)["spare"]
        assert shares == pytest.approx(expected[[0, 0, 1, 1]], abs=1e-12)
        if method == "vb":
            assert np.array_equal(fit.posterior["spare"], np.asarray(counts["spare"]))


def test_pruning_does_not_change_the_other_tables():
    table = lk.carcinoma()
    with_spare = lk.fit("c[2] -> *; A -> spare[3]", table, seed=0)
    without = lk.fit("c[2] -> *", table, seed=0)
    assert with_spare.objective == pytest.approx(without.objective, abs=1e-4)
    assert with_spare.problem.dimension == without.problem.dimension


DAG = lk.Dag.parse("h[2] -> a")
TABLES = {"h": [0.4, 0.6], "a": [[0.1, 0.9], [0.5, 0.5]]}


@pytest.mark.parametrize(
    ("change", "levels", "message"),
    [
        ({"a": None}, None, "no table for 'a'"),
        ({"a": [[0.1, 0.8], [0.5, 0.5]]}, None, "sum to 1"),
        ({"a": [[-0.1, 1.1], [0.5, 0.5]]}, None, "negative"),
        ({"a": [[math.nan, 0.9], [0.5, 0.5]]}, None, "sum to 1"),
        ({"a": [[0.1, 0.9]]}, None, "shape"),
        ({"z": [0.5, 0.5]}, None, "not in the structure"),
        ({}, {"a": ["x", "y", "z"]}, "shape"),
        ({"h": [0.2, 0.3, 0.5], "a": [[0.5, 0.5]] * 3}, None, "'h'"),
        ({}, {"a": ["x", "x"]}, "'a'"),
    ],
)
def test_tables_that_are_no_network_are_refused(change, levels, message):
    tables = {name: table for name, table in {**TABLES, **change}.items() if table is not None}
    with pytest.raises(StructureError, match=message):
        Network.from_tables(DAG, tables, levels=levels)


def test_tables_make_a_network():
    network = Network.from_tables(DAG, TABLES, levels={"a": ["x", "y"]})
    assert network.levels == {"h": (0, 1), "a": ("x", "y")}
    assert network.tables["a"].tolist() == [[0.1, 0.9], [0.5, 0.5]]
    assert network.alpha is None
