"""Log-likelihoods given covariates, against sums over every joint state."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import lurking as lk
from lurking.errors import OptionError, StructureError
from lurking.inference.covariates import conditional_dimension, covariates_of
from lurking.inference.goodness import goodness_of_fit
from lurking.inference.network import Network

LEVELS = {"age": ("young", "mid", "old"), "income": (0, 1), "y1": (0, 1), "y2": (0, 1, 2), "z": (0, 1)}
SIZES = {**{name: len(levels) for name, levels in LEVELS.items()}, "class": 2}
MODEL = "age -> income; age income -> class[2]; class -> y1 y2; age -> y1; z"
ROWS = [
    ("young", 1, 0, 2, 1),
    ("old", None, 1, None, 0),
    (None, 0, 0, 1, None),
    (None, None, 1, 0, 1),
    ("mid", 0, None, None, 0),
    (None, None, None, None, None),
]
WEIGHTS = [2.0, 1.0, 3.5, 1.0, 4.0, 1.0]


def make_network():
    """Return a network with a direct effect age -> y1 and a column z without neighbours."""
    dag = lk.Dag.parse(MODEL)
    generator = np.random.default_rng(5)
    tables = {}
    for name in dag.nodes:
        rows = math.prod(SIZES[parent] for parent in dag.parents(name))
        draws = generator.standard_gamma(1.0, (rows, SIZES[name])) + 0.05
        tables[name] = draws / draws.sum(axis=1, keepdims=True)
    return Network.from_tables(dag, tables, levels=LEVELS)


def make_table():
    return lk.Table.from_rows(ROWS, columns=["age", "income", "y1", "y2", "z"], levels=LEVELS, weights=WEIGHTS)


def probability(network, evidence):
    """Return p(evidence), the sum of the products of tables over all joint states that agree with it."""
    total = 0.0
    for states in itertools.product(*(range(SIZES[name]) for name in network.dag.nodes)):
        state = dict(zip(network.dag.nodes, states, strict=True))
        if any(LEVELS[name][state[name]] != level for name, level in evidence.items() if level is not None):
            continue
        product = 1.0
        for name in network.dag.nodes:
            row = 0
            for parent in network.dag.parents(name):
                row = row * SIZES[parent] + state[parent]
            product *= network.tables[name][row, state[name]]
        total += product
    return total


def by_enumeration(network, given):
    """Return ln p(row) − ln p(cells of `given`) of every row."""
    result = []
    for cells in ROWS:
        row = dict(zip(["age", "income", "y1", "y2", "z"], cells, strict=True))
        part = {name: row[name] for name in given}
        result.append(math.log(probability(network, row)) - math.log(probability(network, part)))
    return result


@pytest.fixture(scope="module")
def network():
    return make_network()


def test_conditional_loglik_with_missing_values_matches_enumeration(network):
    expected = by_enumeration(network, ["age", "income", "z"])
    assert network.covariates == ("age", "income", "z")
    assert network.conditional_loglik(make_table()) == pytest.approx(expected, abs=1e-12)
    assert expected[4] == pytest.approx(0.0, abs=1e-12)  # a row without any y


@pytest.mark.parametrize("given", [["y1"], ["y2", "age"], ["age", "income", "y1", "y2", "z"]])
def test_conditional_loglik_given_any_columns_matches_enumeration(network, given):
    result = network.conditional_loglik(make_table(), given=given)
    assert result == pytest.approx(by_enumeration(network, given), abs=1e-12)


def test_conditional_loglik_given_nothing_returns_loglik(network):
    np.testing.assert_array_equal(network.conditional_loglik(make_table(), given=[]), network.loglik(make_table()))
    latent = lk.fit("class[2] -> *", lk.stouffer_toby(), restarts=1).network
    assert latent.covariates == ()
    np.testing.assert_array_equal(latent.conditional_loglik(lk.stouffer_toby()), latent.loglik(lk.stouffer_toby()))


def test_conditional_loglik_given_hidden_or_unknown_name_raises(network):
    with pytest.raises(OptionError, match="observed variables, got the hidden variable 'class'"):
        network.conditional_loglik(make_table(), given=["class"])
    with pytest.raises(StructureError, match="did you mean 'income'"):
        network.conditional_loglik(make_table(), given="incom")


def test_covariates_are_the_columns_before_all_hidden_variables():
    def names(text):
        return covariates_of(lk.Dag.parse(text))

    assert names("a -> b -> h[2] -> y1 y2") == ("a", "b")
    assert names("a -> h[2] -> y1 -> c; d -> y1") == ("a", "d")
    assert names("g[2] -> a -> h[2] -> y") == ()
    assert names("h[2] -> y1 y2; z") == ()  # z has no child, so p(y | z) = p(y)
    assert names("a -> b; b -> c") == ()  # no hidden variable
    assert names("a -> h[2]; a -> b") == ()  # nothing observed depends on h


def test_conditional_part_counts_the_tables_outside_the_covariates(network):
    # class: 6 rows; y1: parents age and class, or class and age; y2: 2 rows of 2 free entries.
    assert conditional_dimension(network.relevant_layout, network.covariates) == 6 + 6 + 4
    tied = lk.Problem("a -> b -> h[2]; h -> y1 y2", binary_table(), tied=[["b", "y1", "y2"]])
    assert tied.dimension == 1 + 2 + 2
    assert conditional_dimension(tied.layout, ("a", "b")) == 2 + 2


def binary_table():
    cells = np.random.default_rng(0).integers(0, 2, (20, 4))
    return lk.Table.from_array(cells, columns=["a", "b", "y1", "y2"])


def test_goodness_reports_the_conditional_part(network):
    statistics = goodness_of_fit(network, make_table())
    part = statistics.conditional
    expected = float(np.dot(WEIGHTS, by_enumeration(network, ["age", "income", "z"])))
    n = sum(WEIGHTS)
    assert part.given == ("age", "income", "z")
    assert part.loglik == pytest.approx(expected, abs=1e-11)
    assert part.dimension == 16
    assert part.aic == pytest.approx(-2 * expected + 32, abs=1e-10)
    assert part.bic == pytest.approx(-2 * expected + 16 * math.log(n), abs=1e-10)
    assert str(statistics).startswith(f"joint log-likelihood = {statistics.loglik:.4f}, ")
    assert f"\nlog-likelihood conditional on age, income, z = {expected:.4f} (16 parameters), " in str(statistics)


def test_goodness_without_covariates_has_no_conditional_part():
    statistics = lk.fit("class[2] -> *", lk.stouffer_toby(), restarts=1).statistics
    assert statistics.conditional is None
    assert str(statistics).startswith("ln p(y|θ) = ")


def test_edges_between_covariates_keep_the_conditional_part():
    frame = {name: binary_table().to_frame()[name].tolist() for name in ("a", "b", "y1", "y2")}
    apart = lk.fit("a b -> h[2]; h -> y1 y2", frame, method="map", tol=1e-12, restarts=2)
    joined = lk.fit("a -> b; a b -> h[2]; h -> y1 y2", frame, method="map", tol=1e-12, restarts=2)
    assert apart.statistics.loglik != pytest.approx(joined.statistics.loglik, abs=1e-3)
    assert apart.statistics.conditional.dimension == joined.statistics.conditional.dimension
    assert apart.statistics.conditional.loglik == pytest.approx(joined.statistics.conditional.loglik, abs=1e-5)


def test_dependent_covariates_without_edge_are_reported():
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2, 400)
    b = np.where(rng.random(400) < 0.8, a, 1 - a)
    state = rng.random(400) < np.where(a & b, 0.9, 0.1)
    data = {"a": a, "b": b, **{f"y{k}": (rng.random(400) < np.where(state, 0.9, 0.1)).astype(int) for k in range(3)}}
    apart = lk.fit("a b -> h[2]; h -> y0 y1 y2", data, method="ml", restarts=2)
    joined = lk.fit("a -> b; a b -> h[2]; h -> y0 y1 y2", data, method="ml", restarts=2)
    assert [(r.first, r.second) for r in apart.statistics.dependent_covariates] == [("a", "b")]
    assert joined.statistics.dependent_covariates == ()
    # With the edge the sizes are the mean posterior probabilities; without it they are not.
    shares = {fit: fit.network.hidden_probabilities(data)["h"].mean(axis=0) for fit in (apart, joined)}
    assert joined.network.class_sizes()["h"] == pytest.approx(shares[joined], abs=1e-3)
    assert np.abs(apart.network.class_sizes()["h"] - shares[apart]).max() > 0.05
    assert apart.statistics.conditional.loglik == pytest.approx(joined.statistics.conditional.loglik, abs=1e-4)


def test_table_of_one_binary_covariate_reaches_the_maximum_of_a_logit():
    rng = np.random.default_rng(8)
    x = rng.integers(0, 2, 300)
    state = rng.random(300) < np.where(x, 0.7, 0.3)
    items = (rng.random((300, 3)) < np.where(state[:, None], 0.85, 0.2)).astype(int)

    def minus_loglik(parameters):
        """Return −ln p(y | x) of two classes with logit p(class | x) = b0 + b1 x, written down from its definition."""
        member = 1 / (1 + np.exp(-parameters[0] - parameters[1] * x))
        p = 1 / (1 + np.exp(-parameters[2:].reshape(2, 3)))
        rows = [np.where(items, p[k], 1 - p[k]).prod(axis=1) for k in range(2)]
        return -np.log((1 - member) * rows[0] + member * rows[1]).sum()

    start = np.array([-0.8, 1.6, *[-1.4] * 3, *[1.7] * 3])
    logit = optimize.minimize(minus_loglik, start, method="BFGS")
    data = {"x": x, **{f"y{k}": items[:, k] for k in range(3)}}
    fit = lk.fit("x -> class[2] -> y0 y1 y2", data, method="ml", tol=1e-12, restarts=3)
    assert fit.statistics.conditional.dimension == len(start)
    assert fit.statistics.conditional.loglik == pytest.approx(-logit.fun, abs=1e-5)
