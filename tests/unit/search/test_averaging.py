"""Predictions averaged over structures, against ratios of exact evidence."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import lurking as lk
from lurking.errors import OptionError, UnknownNameError
from lurking.graph.equivalence import are_equivalent
from lurking.graph.spaces import all_dags
from lurking.inference.predictive import drawn_parameters

COLUMNS = ["a", "b", "c"]
LEVELS = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
ROWS = [(0, 0, 0), (0, 1, 0), (1, 2, 1), (1, 2, 1), (0, 0, 1), (1, 1, 1), (0, 0, 0), (1, 2, 0)]
NEW = list(itertools.product([0, 1], [0, 1, 2], [0, 1]))
PRIOR = ("edges", 0.5)


def table(rows):
    return lk.Table.from_rows(rows, columns=COLUMNS, levels=LEVELS)


def log_evidence(dags, rows):
    """Return ln Σ_m p(m) p(rows | m) by closed forms, the prior of a class shared by its members, unnormalised."""
    known = table(rows)
    sizes = [sum(are_equivalent(dag, other) for other in dags) for dag in dags]
    values = [
        len(dag.edges) * math.log(0.5) - math.log(size) + lk.score(dag, known, "exact", budget=10**5).log_z
        for dag, size in zip(dags, sizes, strict=True)
    ]
    return float(logsumexp(values))


@pytest.fixture(scope="module")
def dags():
    return list(all_dags(COLUMNS))


@pytest.fixture(scope="module")
def posterior(dags):
    return lk.compare(dags, table(ROWS), structure_prior=PRIOR, seed=0)["vb"]


def test_a_new_row_is_the_ratio_of_two_evidences(posterior, dags):
    assert len(posterior.average.names) == 25
    before = log_evidence(dags, ROWS)
    expected = [log_evidence(dags, [*ROWS, row]) - before for row in NEW]
    assert posterior.loglik(table(NEW)) == pytest.approx(expected, abs=1e-10)
    assert np.exp(posterior.loglik(table(NEW))).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("known", [{"a": 1, "c": 0}, {"c": 1}, {}])
def test_a_prediction_is_the_ratio_of_two_evidences(posterior, dags, known):
    """Cells that are not known are summed over all their values."""
    agreeing = [row for row in NEW if all(row[COLUMNS.index(name)] == value for name, value in known.items())]
    joint = {row: log_evidence(dags, [*ROWS, row]) for row in agreeing}
    expected = [logsumexp([value for row, value in joint.items() if row[1] == b]) for b in range(3)]
    row = tuple(known.get(name) for name in COLUMNS)
    found = posterior.predict(table([row]), "b", draws=0)
    assert found.probabilities[0] == pytest.approx(np.exp(expected - logsumexp(expected)), abs=1e-10)
    assert found.within is None
    filled = posterior.impute(table([row]))
    assert filled.cells["b"][1][0] == pytest.approx(found.probabilities[0], abs=1e-12)
    assert filled.table["b"].codes[0] == found.probabilities[0].argmax()


def test_rows_with_empty_cells_among_the_data():
    """One empty cell leaves two completions; the evidence of both is known."""
    incomplete = [*ROWS, (0, None, 1)]
    models = ["a; b; c", "a -> c; b"]  # b has no neighbour, so that nothing else depends on the empty cell
    posterior = lk.compare(models, table(incomplete), seed=0, rescore=False)["vb"]
    values = [[lk.score(m, table([*incomplete, *new]), "exact").log_z for m in models] for new in ([], [(1, 1, 1)])]
    before, after = (logsumexp(each) for each in values)
    assert posterior.loglik(table([(1, 1, 1)]))[0] == pytest.approx(after - before, abs=1e-10)


def test_spread_between_structures(posterior):
    found = posterior.predict(table(NEW), "c", draws=0)
    assert found.weights.sum(axis=0) == pytest.approx(np.ones(len(NEW)))
    mean = (found.weights[:, :, None] * found.by_structure).sum(axis=0)
    variance = (found.weights[:, :, None] * (found.by_structure - mean) ** 2).sum(axis=0)
    assert found.probabilities == pytest.approx(mean)
    assert found.between == pytest.approx(np.sqrt(variance))
    assert found.between.max() > 0.05
    alone = lk.compare(["a -> c; b"], table(ROWS))["vb"].predict(table(NEW), "c", draws=0)
    assert (alone.between == 0.0).all()


def test_spread_within_a_structure_is_that_of_its_beta():
    """Given a, p(c | a) is a Beta variable: four rows with a = 0, of which one has c = 1, and the uniform prior."""
    posterior = lk.compare(["a -> c; b"], table(ROWS))["vb"]
    found = posterior.predict(table([(0, 0, None)]), "c", draws=5000, seed=1)
    one, zero = 2.0, 4.0
    assert found.probabilities[0] == pytest.approx([zero / 6, one / 6])
    deviation = math.sqrt(one * zero / (6.0**2 * 7.0))
    assert found.within[0] == pytest.approx([deviation, deviation], rel=0.05)


def test_the_row_itself_weighs_the_parameters():
    """Against the direction of the arrow p(a | c, θ) is no Beta variable; integrate over a grid of three parameters."""
    posterior = lk.compare(["a -> c; b"], table(ROWS))["vb"]
    found = posterior.predict(table([(None, 0, 1)]), "a", draws=8000, seed=1)
    grid = (np.arange(80) + 0.5) / 80
    p, q, r = np.meshgrid(grid, grid, grid, indexing="ij")  # p(a=1), p(c=1|a=0), p(c=1|a=1)
    density = p**4 * (1 - p) ** 4 * q * (1 - q) ** 3 * r**3 * (1 - r)
    joint, other = p * r, (1 - p) * q
    weight = density * (joint + other)
    value = joint / (joint + other)
    mean = (weight * value).sum() / weight.sum()
    deviation = math.sqrt((weight * (value - mean) ** 2).sum() / weight.sum())
    assert found.probabilities[0, 1] == pytest.approx(mean, abs=1e-3)
    assert found.within[0, 1] == pytest.approx(deviation, rel=0.05)


def test_with_hidden_variables_the_prediction_is_the_mean_over_q():
    posterior = lk.compare(["h[2] -> a b c"], table(ROWS), seed=0)["vb"]
    (network,) = posterior.average.networks
    generator = np.random.default_rng(3)
    draws = [drawn_parameters(network, generator) for _ in range(1500)]
    values = [lk.Network(network.dag, network.levels, np.exp(draw)).loglik(table([(1, 2, 1)]))[0] for draw in draws]
    mean, error = np.exp(values).mean(), np.exp(values).std() / math.sqrt(len(values))
    assert abs(math.exp(posterior.loglik(table([(1, 2, 1)]))[0]) - mean) < 4.0 * error
    theta = np.exp(draws).mean(axis=0)
    assert theta == pytest.approx(network.theta, abs=0.05)


def test_hidden_variables_come_near_the_exact_answer():
    models = ["h[2] -> a b c", "a; b; c", "a -> b -> c"]
    exact = lk.compare(models, table(ROWS), scores=["exact"], seed=0)["exact"]
    whole = np.asarray([c.evidence.log_z for c in exact])
    with_row = [[lk.score(m, table([*ROWS, row]), "exact").log_z for m in models] for row in NEW]
    expected = logsumexp(with_row, axis=1) - logsumexp(whole)
    assert np.exp(exact.loglik(table(NEW))) == pytest.approx(np.exp(expected), abs=0.02)


def test_draws_follow_the_seed_and_copies_are_fitted_once(posterior):
    first = posterior.predict(table(NEW), "c", draws=20, seed=5)
    again = posterior.predict(table(NEW), "c", draws=20, seed=5)
    other = posterior.predict(table(NEW), "c", draws=20, seed=6)
    assert (first.within == again.within).all()
    assert (first.within != other.within).any()
    assert list(first.to_frame().columns)[:4] == ["c", "p(c=0)", "between(c=0)", "within(c=0)"]
    twice = lk.compare({"x": "h[2] -> a b c", "y": "g[2] -> c b a", "z": "a; b; c"}, table(ROWS), rescore=False)["vb"]
    assert set(twice.average.names) == {"x", "z"}
    assert twice.average.probabilities.sum() == pytest.approx(1.0)


def test_tied_families_share_their_draws():
    tied = lk.compare(["a; c; b"], table(ROWS), tied=[["a", "c"]])["vb"]
    (network,) = tied.average.networks
    draw = drawn_parameters(network, np.random.default_rng(0))
    assert (network.layout.table(draw, "a") == network.layout.table(draw, "c")).all()


def test_refusals(posterior):
    with pytest.raises(UnknownNameError, match="choose from: a, b, c"):
        posterior.predict(table(NEW), "h")
    with pytest.raises(OptionError, match="draws is -1"):
        posterior.predict(table(NEW), "a", draws=-1)
    network = lk.fit("a -> b; c", table(ROWS), method="ml").network
    with pytest.raises(OptionError, match="method='vb'"):
        drawn_parameters(network, np.random.default_rng(0))
