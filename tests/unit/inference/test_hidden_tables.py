"""Tables of hidden variables with parents: their rows, order, expected counts and intervals."""

import itertools

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, OptionError
from lurking.inference.network import Network

LEVELS = {"a": ("u", "v", "w"), "y1": (0, 1), "y2": (0, 1)}
SIZES = {"g": 2, "a": 3, "h": 2, "y1": 2, "y2": 2}
ROWS = [("u", 1, 0), ("w", 1, None), (None, 0, 0), ("w", None, None), (None, None, None)]
WEIGHTS = [2.0, 1.5, 3.0, 2.5, 1.0]


def make_network():
    """Return g and a → h → y1, y2 and g → y1: h has a hidden and an observed parent."""
    tables = {
        "g": [0.3, 0.7],
        "a": [0.5, 0.0, 0.5],
        "h": [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]],
        "y1": [[0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.05, 0.95]],
        "y2": [[0.7, 0.3], [0.25, 0.75]],
    }
    return Network.from_tables(lk.Dag.parse("g[2] a; g a -> h[2]; g h -> y1; h -> y2"), tables, levels=LEVELS)


def expected_counts(network):
    """Return the posterior weight of every configuration (g, a) over the rows, (2, 3), by enumeration."""
    result = np.zeros((2, 3))
    tables = network.tables
    for cells, weight in zip(ROWS, WEIGHTS, strict=True):
        joint = np.zeros((2, 3))
        for g, a, h, y1, y2 in itertools.product(*(range(size) for size in SIZES.values())):
            levels = (LEVELS["a"][a], y1, y2)
            if all(cell is None or cell == level for cell, level in zip(cells, levels, strict=True)):
                p = tables["g"][0, g] * tables["a"][0, a] * tables["h"][g * 3 + a, h]
                joint[g, a] += p * tables["y1"][g * 2 + h, y1] * tables["y2"][h, y2]
        result += weight * joint / joint.sum()
    return result


def make_table():
    return lk.Table.from_rows(ROWS, columns=["a", "y1", "y2"], levels=LEVELS, weights=WEIGHTS)


def test_hidden_tables_with_missing_values_count_rows_as_enumeration_does():
    network = make_network()
    table = network.hidden_tables(make_table())["h"]
    counts = expected_counts(network)
    assert list(network.hidden_tables(make_table())) == ["h"]  # g has no parents
    assert table.parents == ("g", "a")
    # w has more rows than u, v is impossible; g = 1 is the larger state.
    assert table.configurations == ((1, "w"), (0, "w"), (1, "u"), (0, "u"))
    assert table.expected_rows == pytest.approx([counts[1, 2], counts[0, 2], counts[1, 0], counts[0, 0]], abs=1e-12)
    assert table.expected_rows.sum() == pytest.approx(sum(WEIGHTS), abs=1e-12)
    assert table.probabilities.tolist() == [[0.1, 0.9], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]]
    assert table.lower is None
    assert table.upper is None


def test_hidden_tables_without_data_list_all_configurations():
    table = make_network().hidden_tables()["h"]
    assert table.configurations == ((1, "u"), (0, "u"), (1, "v"), (0, "v"), (1, "w"), (0, "w"))
    assert table.expected_rows is None
    assert list(table.to_frame().columns) == ["g", "a", "p(h=0)", "p(h=1)"]


def test_hidden_tables_of_impossible_rows_raise():
    with pytest.raises(DataError, match="row 1 has probability 0"):
        make_network().hidden_tables({"a": ["v"]})


def test_hidden_tables_with_level_outside_its_rule_raise():
    with pytest.raises(OptionError, match="level is 95"):
        make_network().hidden_tables(level=95)


def test_hidden_tables_of_vb_fit_have_beta_intervals_and_observed_counts():
    rng = np.random.default_rng(3)
    age = rng.integers(0, 3, 200)
    state = rng.random(200) < 0.2 + 0.3 * age
    items = {f"y{k}": (rng.random(200) < np.where(state, 0.9, 0.2)).astype(int) for k in range(3)}
    data = {"age": np.array(["c", "a", "b"])[age], **items}
    fit = lk.fit("age -> class[2] -> y0 y1 y2", data, restarts=2, seed=0)
    table = fit.network.hidden_tables(data)["class"]
    seen = {level: int((data["age"] == level).sum()) for level in ("a", "b", "c")}
    by_rows = sorted(seen, key=lambda level: -seen[level])
    assert [levels for (levels,) in table.configurations] == by_rows
    assert table.expected_rows == pytest.approx([seen[level] for level in by_rows], abs=1e-9)
    lower, upper = fit.posterior.interval("class", 0.95)
    places = [fit.network.levels["age"].index(level) for level in by_rows]
    np.testing.assert_allclose(table.lower, lower[places], rtol=1e-12)
    np.testing.assert_allclose(table.upper, upper[places], rtol=1e-12)
    np.testing.assert_allclose(table.probabilities, fit.network.tables["class"][places], rtol=1e-12)
    narrow = fit.network.hidden_tables(data, level=0.5)["class"]
    assert (narrow.upper - narrow.lower < table.upper - table.lower).all()
    frame = table.to_frame()
    assert frame["age"].tolist() == by_rows
    assert frame["lower(class=1)"].to_numpy() == pytest.approx(lower[places, 1], rel=1e-12)
    assert frame["expected_rows"].tolist() == table.expected_rows.tolist()


def test_hidden_tables_skip_variables_without_observed_descendants():
    fit = lk.fit("class[2] -> y1 y2 loose[2]", {"y1": [0, 1, 1], "y2": [0, 1, 0]}, restarts=1)
    assert fit.network.hidden_tables({"y1": [0, 1, 1], "y2": [0, 1, 0]}) == {}
