"""Counts and logistic nodes in fits, scores and draws, against exact sums and integrals."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit, gammaln, log_expit, logsumexp

import lurking as lk
from lurking.errors import DataError
from lurking.evidence.base import Kind
from lurking.inference.log_posterior import LogPosterior
from lurking.models.families.count import CountFamily
from lurking.models.families.logistic import LogisticFamily
from lurking.samplers.convergence import summary

X = [0, 1, 1, None, 0, 1, 0]
Y = [0, 4, 6, 5, None, 7, 1]
MODEL = "class[2] -> x visits"


@pytest.fixture(scope="module")
def table():
    return lk.Table.from_columns({"x": X, "visits": Y}, levels={"x": [0, 1]}, count=["visits"])


def exact_count_evidence(prior_rate, classes=2):
    """ln p(y) of `MODEL` by summing over all assignments of classes, written down from the definition."""
    total = []
    for s in itertools.product(range(classes), repeat=len(Y)):
        sizes = np.bincount(s, minlength=classes)
        value = math.lgamma(classes) - math.lgamma(classes + len(Y)) + sum(math.lgamma(1 + n) for n in sizes)
        for k in range(classes):
            own = [x for x, state in zip(X, s, strict=True) if state == k and x is not None]
            value += math.lgamma(2) - math.lgamma(2 + len(own))
            value += math.lgamma(1 + own.count(0)) + math.lgamma(1 + own.count(1))
            counts = [y for y, state in zip(Y, s, strict=True) if state == k and y is not None]
            shape, rate = 1 + sum(counts), prior_rate + len(counts)
            value += math.lgamma(shape) - shape * math.log(rate) + math.log(prior_rate)
            value -= sum(math.lgamma(y + 1) for y in counts)
        total.append(value)
    return float(logsumexp(total))


def test_bounds_of_counts_stay_below_the_exact_evidence(table):
    seen = [y for y in Y if y is not None]
    exact = exact_count_evidence(len(seen) / sum(seen))
    found = lk.score(MODEL, table, ["vb", "cs", "bic"], seed=0)
    assert found["cs"].log_z <= found["vb"].log_z + 1e-6 <= exact
    assert exact - found["vb"].log_z < 3.0
    assert found["vb"].kind is found["cs"].kind is Kind.LOWER_BOUND
    loglik = found["bic"].parts["loglik"]
    assert found["bic"].log_z == pytest.approx(loglik - 0.5 * 5 * math.log(len(Y)))


def test_counts_with_one_class_or_an_observed_parent_have_a_closed_form():
    y, x = np.asarray([0, 3, 1, 4, 4]), [0, 0, 1, 1, 1]
    table = lk.Table.from_columns({"x": x, "y": y}, count="y")
    rate = len(y) / y.sum()

    def of(values):
        shape = 1 + values.sum()
        return math.lgamma(shape) - shape * math.log(rate + len(values)) + math.log(rate) - gammaln(values + 1).sum()

    alone = lk.score("y", table.select(["y"]), "exact")
    assert alone.log_z == pytest.approx(of(y), rel=1e-12)
    of_x = math.log(math.factorial(2) * math.factorial(3) / math.factorial(6))
    given = lk.score("x -> y", table, ["exact", "vb", "cs", "mled"], seed=0)
    for name in ("exact", "vb", "cs", "mled"):
        assert given[name].log_z == pytest.approx(of_x + of(y[:2]) + of(y[2:]), rel=1e-12)
        assert given[name].kind is Kind.EXACT


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_fits_of_counts_rise_and_do_not_depend_on_order_or_repetition(table, method):
    found = lk.fit(MODEL, table, method=method, seed=0)
    assert np.all(np.diff(found.trace) >= -1e-9)
    order = [3, 1, 6, 0, 5, 2, 4]
    turned = {"x": [X[k] for k in order], "visits": [Y[k] for k in order]}
    other = lk.Table.from_columns(turned, levels={"x": [0, 1]}, count="visits")
    assert lk.fit(MODEL, other, method=method, seed=0).objective == pytest.approx(found.objective, abs=1e-6)
    twice = lk.Table.from_columns({"x": X * 2, "visits": Y * 2}, levels={"x": [0, 1]}, count="visits")
    weighted = lk.Table.from_columns(
        {"x": X, "visits": Y, "w": [2.0] * len(X)}, levels={"x": [0, 1]}, weights="w", count="visits"
    )
    first, second = (lk.fit(MODEL, own, method=method, seed=0).objective for own in (twice, weighted))
    assert first == pytest.approx(second, abs=1e-6)


def test_the_likelihood_at_a_fit_is_that_of_poisson_distributions(table):
    found = lk.fit(MODEL, table, method="ml", seed=0)
    layout = found.problem.layout
    p = np.exp(layout.table(found.potentials, "class")[0])
    px, rates = np.exp(layout.table(found.potentials, "x")), -layout.table(found.potentials, "visits")[:, 0]
    total = 0.0
    for x, y in zip(X, Y, strict=True):
        terms = p.copy()
        if x is not None:
            terms = terms * px[:, x]
        if y is not None:
            terms = terms * np.exp(-rates + y * np.log(np.maximum(rates, 1e-300)) - gammaln(y + 1))
        total += math.log(terms.sum())
    assert found.log_z == pytest.approx(total, rel=1e-10)


def test_ten_equal_answers_of_a_logistic_node():
    """B of such a cell is +8.3 where ln p = -0.94; F is the objective."""
    table = lk.Table.from_columns({"y": [1] * 10}, levels={"y": [0, 1]})
    families = {"y": LogisticFamily(0, 10.0)}
    found = lk.fit("y", table, families=families, seed=0)
    exact = integrate.quad(lambda a: math.exp(10 * log_expit(a) - a * a / 200) / math.sqrt(200 * math.pi), -60, 60)[0]
    assert found.objective == pytest.approx(-1.1703, abs=5e-5)
    assert math.log(exact) == pytest.approx(-0.9449, abs=5e-3)
    assert found.objective < math.log(exact)
    assert np.all(np.diff(found.trace) >= 0.0)
    assert lk.score("y", table, "vb", families=families, seed=0).kind is Kind.LOWER_BOUND
    # Undamped steps cycle here, so some must have been halved.
    plain = lk.fit("y", table, families=families, accelerate=False, restarts=1, seed=0)
    assert plain.objective == pytest.approx(-1.1703, abs=5e-5)
    assert plain.n_iter > len(plain.trace)


def test_the_functional_of_tables_is_no_bound_for_logistic_nodes():
    table = lk.Table.from_columns({"y": [1] * 10}, levels={"y": [0, 1]})
    problem = lk.Problem("y", table, families={"y": LogisticFamily(0, 10.0)})
    blocks = problem.layout.blocks
    potentials = blocks.expected(problem.pseudo)
    counts, log_z = problem.engine.expect(potentials)
    value = blocks.log_evidence(problem.pseudo, counts) + log_z - counts @ potentials
    assert value == pytest.approx(8.3, abs=0.1)


@pytest.fixture(scope="module")
def logistic():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 40)
    y = (rng.random(40) < expit(0.3 + 1.2 * (2 * x - 1))).astype(int)
    return lk.Table.from_columns({"x": x, "y": y})


def weights_on_a_grid(table, scale=2.5):
    """Return ln p(y | x, w) + ln p(w) of a grid of weights, the grid, and the area of its cells."""
    w = np.linspace(-12.0, 12.0, 601)
    bias, slope = np.meshgrid(w, w, indexing="ij")
    x, y = (2 * np.asarray(table[name].codes) - 1 for name in ("x", "y"))
    value = sum(log_expit(t * (bias + slope * s)) for s, t in zip(x, y, strict=True))
    value = value - 0.5 * (bias**2 + slope**2) / scale**2 - math.log(2.0 * math.pi * scale**2)
    return value, (bias, slope), (w[1] - w[0]) ** 2


def test_the_bound_of_a_logistic_child_is_close_below_the_evidence(logistic):
    value, _, area = weights_on_a_grid(logistic)
    exact = float(logsumexp(value)) + math.log(area)
    exact += lk.score("x", logistic.select(["x"]), "exact").log_z
    families = {"y": "logistic"}
    found = lk.score("x -> y", logistic, ["vb", "cs", "bic"], families=families, seed=0)
    assert found["cs"].log_z <= found["vb"].log_z <= exact
    assert exact - found["vb"].log_z < 0.05
    from_mode = lk.score("x -> y", logistic, "vb", start="map", families=families)
    assert from_mode.log_z >= from_mode.info["cs"] - 1e-9
    assert from_mode.log_z == pytest.approx(found["vb"].log_z, abs=1e-5)


def test_the_maximum_of_a_logistic_child_is_that_of_its_saturated_table(logistic):
    as_table = lk.fit("x -> y", logistic, method="ml", seed=0)
    found = lk.fit("x -> y", logistic, method="ml", families={"y": "logistic"}, seed=0)
    assert found.log_z == pytest.approx(as_table.log_z, abs=1e-6)
    assert np.all(np.diff(found.trace) >= 0.0)


def test_draws_of_weights_have_the_means_of_the_grid(logistic):
    value, (bias, slope), _ = weights_on_a_grid(logistic)
    p = np.exp(value - value.max())
    expected = [float((p * own).sum() / p.sum()) for own in (bias, slope)]
    problem = lk.Problem("x -> y", logistic, families={"y": "logistic"})
    draws = lk.gibbs(problem, chains=4, draws=500, burn_in=50, seed=3)
    weights = draws.log_theta[:, :, problem.layout.offsets[1] :][:, :, :2]
    means = weights.mean(axis=1)
    error = means.std(axis=0, ddof=1) / 2.0
    assert np.all(np.abs(means.mean(axis=0) - expected) <= 4.0 * error + 0.02)


def test_draws_of_counts_have_the_exact_mean(table):
    """The mean of Σ_k π_k r_k is the same under every relabeling; its exact value is a sum over assignments."""
    rate = 6 / 23
    weight, value = [], []
    for s in itertools.product(range(2), repeat=len(Y)):
        sizes = np.bincount(s, minlength=2)
        log_w = sum(math.lgamma(1 + n) for n in sizes)
        means = []
        for k in range(2):
            own = [x for x, state in zip(X, s, strict=True) if state == k and x is not None]
            log_w += math.lgamma(1 + own.count(0)) + math.lgamma(1 + own.count(1)) - math.lgamma(2 + len(own))
            counts = [y for y, state in zip(Y, s, strict=True) if state == k and y is not None]
            shape, total = 1 + sum(counts), rate + len(counts)
            log_w += math.lgamma(shape) - shape * math.log(total)
            means.append((1 + sizes[k]) / (2 + len(Y)) * shape / total)
        weight.append(log_w)
        value.append(sum(means))
    p = np.exp(np.asarray(weight) - logsumexp(weight))
    problem = lk.Problem(MODEL, table)
    draws = lk.gibbs(problem, chains=4, draws=700, burn_in=50, seed=1)
    layout, points = problem.layout, draws.log_theta
    shares, start = np.exp(points[:, :, :2]), layout.offsets[layout.index["visits"]]
    rates = -points[:, :, [start, start + 2]]
    means = (shares * rates).sum(axis=2).mean(axis=1)
    error = means.std(ddof=1) / 2.0
    assert abs(means.mean() - float(p @ value)) <= 4.0 * error + 0.02


def test_draws_do_not_depend_on_workers_and_stop(table):
    problem = lk.Problem(MODEL, table)
    one, two = (lk.gibbs(problem, chains=2, draws=5, burn_in=2, thin=2, seed=1, workers=w) for w in (1, 2))
    np.testing.assert_array_equal(one.log_theta, two.log_theta)
    np.testing.assert_array_equal(one.log_likelihood, two.log_likelihood)


MIXED = [
    ("class[2] -> x visits; x -> z", {"z": "logistic"}),
    ("class[3] -> visits; class -> x; z", {}),
    ("h[2] -> z; x -> z; h -> visits", {"z": "logistic"}),
]


def mixed_table():
    columns = {"x": X, "visits": Y, "z": [1, 1, None, 0, 0, 1, 0]}
    return lk.Table.from_columns(columns, levels={"x": [0, 1], "z": [0, 1]}, count="visits")


@pytest.mark.parametrize(("model", "families"), MIXED)
@pytest.mark.parametrize("prune", [True, False])
def test_completions_agree_with_brute_force(model, families, prune):
    problems = [
        lk.Problem(model, mixed_table(), 0.8, families=families, prune=prune, engine=name)
        for name in ("completions", "reference")
    ]
    rng = np.random.default_rng(2)
    layout = problems[0].layout
    for potentials in (layout.blocks.draw(problems[0].pseudo, rng), layout.blocks.expected(1.7 * problems[0].pseudo)):
        (counts, log_z), (other, value) = (problem.engine.expect(potentials) for problem in problems)
        assert log_z == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(counts, other, rtol=1e-10, atol=1e-12)
        rows = [problem.engine.pattern_log_z(potentials) for problem in problems]
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-10)


@pytest.mark.parametrize(("model", "families"), MIXED)
def test_the_log_posterior_of_a_mixed_model_has_its_gradient(model, families):
    posterior = LogPosterior(lk.Problem(model, mixed_table(), 0.8, families=families))
    assert len(posterior.names) == posterior.size
    point = np.random.default_rng(4).normal(size=posterior.size)
    steps = 1e-5 * np.eye(posterior.size)
    numeric = (posterior.log_density(point + steps) - posterior.log_density(point - steps)) / 2e-5
    np.testing.assert_allclose(posterior.gradient(point), numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("model", "families"), MIXED)
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_fits_of_mixed_models_rise(model, families, method):
    found = lk.fit(model, mixed_table(), method=method, families=families, restarts=3, seed=1)
    assert np.all(np.diff(found.trace) >= -1e-9)
    assert math.isfinite(found.objective)
    assert "E-steps" in str(found)


def test_models_of_counts_are_compared(table):
    found = lk.compare(["class[1] -> x visits", MODEL], table, scores=["vb", "bic"], seed=0)
    assert found["vb"].probabilities.sum() == pytest.approx(1.0)


REFUSED = {
    "network": (lambda t: lk.fit(MODEL, t, seed=0).network, "only with tables"),
    "sampled": (lambda t: lk.score(MODEL, t, "ais"), "only with tables"),
    "laplace": (lambda t: lk.score(MODEL, t, "laplace"), "only with tables"),
    "exact": (lambda t: lk.score(MODEL, t, "exact"), "only with tables"),
    "exact logistic": (lambda t: lk.score("x; visits", t, "exact", families={"x": "logistic"}), "closed form only"),
    "mled logistic": (lambda t: lk.score("x; visits", t, "mled", families={"x": "logistic"}), "mled is defined only"),
    "gradient ascent": (lambda t: lk.fit(MODEL, t, optimizer="lbfgs"), "optimizer='lbfgs' works only with tables"),
    "tied": (lambda t: lk.fit("class[2] -> x visits", t, tied=[["x", "visits"]]), "tie tables only"),
    "engine": (lambda t: lk.fit(MODEL, t, engine="enumeration"), "engine is 'enumeration'"),
    "child": (lambda t: lk.fit("visits -> x", t), "cannot have children"),
    "unknown family": (lambda t: lk.fit(MODEL, t, families={"x": "gauss"}), "unknown family 'gauss'"),
    "family of a hidden node": (
        lambda t: lk.fit(MODEL, t, families={"class": "count"}),
        "hidden variables have tables",
    ),
    "family of another kind": (lambda t: lk.fit(MODEL, t, families={"x": "count"}), "count='x'"),
    "instance of another kind": (lambda t: lk.fit(MODEL, t, families={"x": CountFamily()}), "count='x'"),
    "instance for other parents": (lambda t: lk.fit(MODEL, t, families={"x": LogisticFamily(3)}), "3 parents"),
    "logistic of many states": (
        lambda t: lk.fit("class[3] -> x; visits", t, families={"x": "logistic"}),
        "parents of a logistic node must have 2",
    ),
    "table of counts": (lambda t: lk.fit(MODEL, t, families={"visits": "table"}), "a table needs states"),
    "class of a family": (lambda t: lk.fit(MODEL, t, families={"visits": CountFamily}), "an instance of a family"),
    "list of families": (lambda t: lk.fit(MODEL, t, families={"x": ["logistic"]}), "an instance of a family"),
    "logistic counts": (lambda t: lk.fit(MODEL, t, families={"visits": "logistic"}), "'visits' is count"),
    "summary": (lambda t: summary(lk.gibbs(lk.Problem(MODEL, t), draws=5, burn_in=2)), "summaries of draws"),
    "no mapping": (lambda t: lk.fit(MODEL, t, families=["x"]), "must map names"),
    "mode over probabilities": (
        lambda t: lk.fit("x; visits", t, method="map-probability", prior=2.0),
        "method='map-probability' works only with tables",
    ),
    "improper hyperparameters": (
        lambda t: lk.fit("x; visits", t, prior=lk.Prior.from_counts({"x": [[1, 1]], "visits": [[-1.0, 2.0]]})),
        "not those of a proper prior of a count node",
    ),
    "start that is no distribution": (
        lambda t: lk.fit("x; visits", t, init={"x": [[5, 5]], "visits": [[-1.0, 0.0]]}),
        "every row must sum to 1",
    ),
    "search": (lambda t: lk.search(t), "declared as a count"),
    "hidden search": (lambda t: lk.search(t, hidden=1), "declared as a count"),
    "structural em": (lambda t: lk.structural_em(t, "x visits"), "count"),
    "direct search": (lambda t: lk.direct_search(t, "x visits", score="laplace"), "declared as a count"),
    "edge posterior": (lambda t: lk.edge_posterior(t), "declared as a count"),
    "jumps": (lambda t: lk.sample_structures(t, "s[2] -> x visits", draws=5, burn_in=5), "structures are sampled only"),
    "process": (lambda t: lk.dirichlet_process(t, draws=5, burn_in=5), "a Dirichlet process works only"),
    "calibration": (lambda t: lk.calibrate(MODEL, like=t, n=5, repeats=1), "calibration works only"),
    "prequential": (lambda t: lk.prequential([MODEL], t), "tables only"),
    "sparse mixture": (lambda t: lk.sparse_mixture(t, 2), "declared as a count"),
    "effective dimension": (lambda t: lk.score(MODEL, t, "bic", dimension="effective"), "use dimension='standard'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_supports_tables_only_says_so_in_one_line(table, what):
    call, words = REFUSED[what]
    with pytest.raises(lk.LurkingError) as caught:
        call(table)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1, -2], "row 2: -2 is not a count"),
        ([1, 10**12], "row 2: 1000000000000 is not a count"),
        ([0.5, 1], "row 1: 0.5 is not a count"),
        (["a", "b"], "is not a number"),
    ],
)
def test_columns_that_are_no_counts_are_refused(column, words):
    with pytest.raises(DataError, match=words):
        lk.Table.from_columns({"a": column}, count="a")


def test_a_column_is_of_one_kind_only():
    with pytest.raises(DataError, match="keep only one"):
        lk.Table.from_columns({"a": [1, 2]}, count="a", continuous="a")
    with pytest.raises(DataError, match="count"):
        lk.Table.from_columns({"a": [1, 2]}, count="b")


def test_empty_columns_of_counts_have_the_prior():
    table = lk.Table.from_columns({"a": [0, 1, 1], "n": [None, None, None]}, count="n")
    assert lk.score("a; n", table, "vb").log_z == pytest.approx(lk.score("a", table.select(["a"]), "vb").log_z)
    zeros = lk.Table.from_columns({"n": [0, 0]}, count="n")
    assert lk.score("n", zeros, "exact").log_z == pytest.approx(-math.log(3.0))
    assert CountFamily(1.0, 1.0).prior(1).tolist() == [1.0, 1.0]


def test_an_inapplicable_score_or_structure_leaves_the_others(table):
    found = lk.compare(["class[1] -> x visits", MODEL], table, scores=["vb", "laplace"], seed=0)
    assert found.scores == ("vb",)
    assert any("laplace was left out" in note for note in found.warnings)


def test_turned_edges_are_other_models_if_families_differ():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 30))
    table = lk.Table.from_columns({"a": a, "b": b, "c": rng.integers(0, 2, 30)})
    models = ["a -> b; a b -> c", "b -> a; a b -> c", "c -> a; c a -> b"]
    assert lk.compare(models, table, seed=0).duplicates != ()
    assert lk.compare(models, table, families={"c": "logistic"}, seed=0).duplicates == ()


def test_maximum_likelihood_of_separable_or_collinear_data_ends():
    x = [0, 0, 0, 1, 1, 1]
    separable = lk.Table.from_columns({"x": x, "y": x})
    found = lk.fit("x -> y", separable, method="ml", families={"y": "logistic"}, restarts=3, seed=0)
    assert found.log_z == pytest.approx(6 * math.log(0.5), abs=1e-3)
    twice = lk.Table.from_columns({"a": x, "b": x, "y": [0, 1, 0, 1, 1, 0]})
    same = lk.fit("a b -> y", twice, method="ml", families={"y": "logistic"}, restarts=3, seed=0)
    alone = lk.fit("a -> y; b", twice, method="ml", families={"y": "logistic"}, restarts=3, seed=0)
    assert same.log_z == pytest.approx(alone.log_z, abs=1e-5)


def test_many_parents_do_not_depend_on_their_order():
    rng = np.random.default_rng(3)
    columns = {f"v{k}": rng.integers(0, 2, 12) for k in range(66)}
    table = lk.Table.from_columns({**columns, "y": rng.integers(0, 2, 12)})
    names = list(columns)
    bounds = [
        lk.score(f"{' '.join(order)} -> y", table, "vb", families={"y": "logistic"}, restarts=1, seed=0).log_z
        for order in (names, [*names[1:], names[0]])
    ]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-5)


def test_marginals_of_a_missing_logistic_node_are_probabilities():
    table = lk.Table.from_columns({"a": [0, 1, 1], "b": [1, None, 0], "c": [0, 1, 1]}, levels={"b": [0, 1]})
    options = {"families": {"b": "logistic"}, "prune": False}
    problems = [lk.Problem("a -> b; b -> c", table, engine=e, **options) for e in ("completions", "reference")]
    potentials = problems[0].layout.blocks.expected(problems[0].pseudo)
    first, second = (problem.engine.pattern_marginals(potentials, 1) for problem in problems)
    np.testing.assert_allclose(first, second, rtol=1e-10)
    np.testing.assert_allclose(first.sum(axis=1), 1.0)


def test_equal_states_as_a_start_are_reported_as_a_saddle(table):
    init = {"class": [[0.5, 0.5]], "x": [[0.5, 0.5]] * 2, "visits": [[-3.0, math.log(3.0)]] * 2}
    assert lk.fit(MODEL, table, init=init, restarts=1).status.name == "SADDLE"


def test_relabelings_of_explicit_priors_are_counted(table):
    same = {"class": [[1, 1]], "x": [[1, 1]] * 2, "visits": [[0.5, 2.0]] * 2}
    other = {**same, "visits": [[0.5, 2.0], [0.5, 3.0]]}
    found = [lk.Problem(MODEL, table, lk.Prior.from_counts(own)).log_aliases for own in (same, other)]
    assert found == pytest.approx([math.log(2.0), 0.0])


def test_dimensions_of_pruned_and_mixed_models():
    problem = lk.Problem("class[2] -> x visits; x -> z", mixed_table(), families={"z": "logistic"})
    assert problem.dimension == 1 + 2 + 2 + 2
    rows = lk.compare(["s[2] -> visits x; h[2]; x -> h; z"], mixed_table(), prune=False, seed=0).rows
    assert rows[0].pruned_dimension == 1 + 2 + 2 + 1


def test_the_mean_of_draws_has_probabilities_and_natural_parameters(logistic):
    problem = lk.Problem("x -> y", logistic, families={"y": "logistic"})
    draws = lk.gibbs(problem, chains=1, draws=50, burn_in=10, seed=0)
    assert draws.mean[:2].sum() == pytest.approx(1.0)
    assert draws.mean[2:4] == pytest.approx(draws.log_theta[0, :, 2:4].mean(axis=0))
