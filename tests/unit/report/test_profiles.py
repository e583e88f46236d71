"""Profiles of hidden states: the numbers and the picture."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingError, StructureError
from lurking.inference.hidden_tables import order_by_size
from lurking.inference.network import Network
from lurking.report.profiles import plot_profiles, profiles, save_figure

mpl.use("Agg")


def make_network():
    """Return g → h → a, h and a → b: the profile of g needs a sum over h, that of h one over a."""
    dag = lk.Dag.parse("g[2] -> h[3]; h -> a b; a -> b")
    tables = {
        "g": [0.3, 0.7],
        "h": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]],
        "a": [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]],
        "b": np.asarray([[8, 1, 1], [2, 2, 6], [1, 8, 1], [5, 4, 1], [3, 3, 4], [1, 1, 8]]) / 10,
    }
    return Network.from_tables(dag, tables, levels={"a": ["no", "yes"], "b": ["low", "mid", "high"]})


def by_hand(network, hidden):
    """Return p(variable | hidden) by Bayes' rule over every joint state."""
    sizes = {"g": 2, "h": 3, "a": 2, "b": 3}
    joint = {name: np.zeros((sizes[hidden], sizes[name])) for name in ("a", "b")}
    t = network.tables
    for g, h, a, b in itertools.product(*(range(size) for size in sizes.values())):
        p = t["g"][0, g] * t["h"][g, h] * t["a"][h, a] * t["b"][h * 2 + a, b]
        state = {"g": g, "h": h}[hidden]
        joint["a"][state, a] += p
        joint["b"][state, b] += p
    return {name: table / table.sum(axis=1, keepdims=True) for name, table in joint.items()}


@pytest.fixture(scope="module")
def network():
    return make_network()


@pytest.mark.parametrize("hidden", ["g", "h"])
def test_profiles_are_bayes_rule(network, hidden):
    result = profiles(network, hidden)
    assert list(result) == ["a", "b"]
    for name, expected in by_hand(network, hidden).items():
        assert result[name] == pytest.approx(expected, abs=1e-13)


def test_profiles_of_a_latent_class_model_are_its_tables():
    fit = lk.fit("c[3] -> *", lk.carcinoma(), seed=0)
    for name, table in profiles(fit.network, "c").items():
        assert table == pytest.approx(fit.network.tables[name], abs=1e-12)


def test_a_state_of_size_zero_has_no_nan():
    network = Network.from_tables(lk.Dag.parse("h[2] -> a"), {"h": [1.0, 0.0], "a": [[0.3, 0.7], [0.5, 0.5]]})
    result = profiles(network, "h")["a"]
    assert np.all(np.isfinite(result))
    assert result[0] == pytest.approx([0.3, 0.7])


@pytest.mark.parametrize("name", ["a", "nobody", ""])
def test_only_hidden_variables_have_profiles(network, name):
    with pytest.raises(StructureError, match="hidden are: g, h"):
        profiles(network, name)
    with pytest.raises(StructureError, match="hidden are: g, h"):
        plot_profiles(network, name)


def test_states_are_ordered_by_size(network):
    sizes = network.joint(["h"])
    assert order_by_size(network, "g") == [1, 0]
    assert sizes[order_by_size(network, "h")].tolist() == sorted(sizes, reverse=True)


def test_picture_has_one_line_per_state_at_the_right_heights(network):
    axes = plot_profiles(network, "h")
    lines = axes.get_lines()
    expected = by_hand(network, "h")
    sizes = network.joint(["h"])
    assert len(lines) == 3
    assert len({line.get_color() for line in lines}) == 3
    for line, state in zip(lines, order_by_size(network, "h"), strict=True):
        heights = [expected["a"][state, 1], expected["b"][state] @ [0.0, 0.5, 1.0]]
        assert line.get_ydata() == pytest.approx(heights, abs=1e-12)
        assert line.get_label() == f"h {state}: {sizes[state]:.0%} of rows"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "b"]
    assert axes.get_ylabel() == "mean position, first level = 0, last = 1"
    assert "h" in axes.get_title(loc="left")
    assert len(axes.get_legend().get_texts()) == 3


def test_the_first_hidden_variable_is_the_default(network):
    assert len(plot_profiles(network).get_lines()) == 2


def test_two_valued_columns_show_a_probability():
    fit = lk.fit("c[2] -> *", lk.carcinoma(), seed=0)
    assert plot_profiles(fit.network).get_ylabel() == "probability of the answer 1"


def test_given_axes_are_drawn_on(network):
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert plot_profiles(network, "g", axes) is axes
    assert len(axes.get_lines()) == 2


def test_more_states_than_colours():
    tables = {"h": [0.1] * 10, "a": [[0.1 * k, 1 - 0.1 * k] for k in range(10)]}
    assert len(plot_profiles(Network.from_tables(lk.Dag.parse("h[10] -> a"), tables)).get_lines()) == 10


def test_a_network_without_hidden_variable_is_refused():
    network = Network.from_tables(lk.Dag.parse("a"), {"a": [0.5, 0.5]})
    with pytest.raises(StructureError, match="hidden are: none"):
        plot_profiles(network)


def test_the_picture_is_written_as_png(network, tmp_path):
    path = tmp_path / "profiles.png"
    save_figure(plot_profiles(network, "h"), str(path))
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("place", ["missing/profiles.png", "profiles.unknown"])
def test_a_picture_that_cannot_be_written(network, tmp_path, place):
    with pytest.raises(LurkingError):
        save_figure(plot_profiles(network, "h"), str(tmp_path / place))
