"""Published networks: posteriors against another program's exact inference, EM against plain EM written out here."""

import json
from pathlib import Path

import numpy as np
import pytest

import lurking as lk
from lurking.kernels.reference.junction import Tables, Tree
from lurking.kernels.reference.junction import expect as textbook_expect

NETWORKS = Path(__file__).parent / "networks"
CASES = json.loads((NETWORKS / "alarm_posteriors.json").read_text())["cases"]


@pytest.fixture(scope="module")
def alarm():
    return lk.read_network(NETWORKS / "alarm.bif")


@pytest.fixture(scope="module")
def asia():
    return lk.read_network(NETWORKS / "asia.bif")


def with_empty_cells(network, rows=5000, share=0.2, seed=1):
    """Return rows drawn from a network with a share of the cells emptied at random."""
    table = network.sample(rows, seed=seed)
    # Another stream than the one that drew the rows: the same would empty cells by their values.
    rng = np.random.default_rng(seed + 1000)
    columns = {}
    for name in table.columns:
        codes = table[name].codes.copy()
        codes[rng.random(rows) < share] = -1
        columns[name] = (codes, table[name].levels)
    return lk.Table.from_codes(columns)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['evidence'])} observed")
def test_posteriors_of_alarm(alarm, case):
    row = {name: [value] for name, value in case["evidence"].items()} or {"HYPOVOLEMIA": [None]}
    table = lk.Table.from_columns(row, levels={name: alarm.levels[name] for name in row})
    assert np.exp(alarm.loglik(table)[0]) == pytest.approx(case["probability"], rel=1e-9)
    for name, expected in case["posteriors"].items():
        assert alarm.predict(table, name).probabilities[0] == pytest.approx(expected, rel=1e-8, abs=1e-12)


def plain_em(theta, normalise, expect, iterations):
    """Return θ and ln p(y|θ) after each of so many plain EM iterations (maximum likelihood)."""
    trace = []
    for _ in range(iterations):
        counts, log_z = expect(theta)
        trace.append(log_z)
        with np.errstate(invalid="ignore"):
            moved = normalise(counts)
        theta = np.where(np.isnan(moved), theta, moved)  # a row without any count keeps its value
    trace.append(expect(theta)[1])
    return theta, np.asarray(trace[1:])


@pytest.fixture(scope="module")
def em_of_asia(asia):
    """Return rows with empty cells, a start, and the trace of plain EM from it.

    The independent E step multiplies the joint table of all 2^8 states by the indicator of each row.
    """
    table, layout = with_empty_cells(asia), asia.layout
    cells = np.stack([table[name].codes for name in layout.nodes], axis=1)
    states = np.indices(layout.cardinalities).reshape(len(layout.nodes), -1)
    fits = np.all((cells[:, :, None] < 0) | (cells[:, :, None] == states[None]), axis=1)
    # Cells without observed descendant sum out by themselves when probabilities are normalised.
    places = np.stack(
        [layout.offsets[j] + sum(s * states[v] for v, s in layout.strides[j].items()) for j in range(len(states))]
    )

    def expect(theta):
        joint = np.prod(theta[places], axis=0)
        mass = fits @ joint
        share = (fits / mass[:, None]).sum(axis=0) * joint
        counts = np.bincount(places.ravel(), weights=np.tile(share, len(states)), minlength=layout.size)
        return counts, float(np.log(mass).sum())

    rng = np.random.default_rng(0)
    start = layout.normalise(rng.random(layout.size) + 0.2)
    return table, start, plain_em(start, layout.normalise, expect, 300)[1]


@pytest.mark.parametrize("engine", ["auto", "enumeration", "junction"])
def test_em_on_asia_ends_where_plain_em_ends(asia, em_of_asia, engine):
    table, start, trace = em_of_asia
    options = {"method": "ml", "init": asia.layout.split(start), "restarts": 1, "engine": engine, "prune": False}
    fit = lk.fit(asia.dag, table, tol=1e-12, **options)
    assert fit.objective == pytest.approx(trace[-1], rel=1e-9)
    slow = lk.fit(asia.dag, table, tol=0.0, max_iter=40, accelerate=False, **options)
    assert slow.trace == pytest.approx(trace[:40], rel=1e-11)


def test_em_on_alarm_ends_where_plain_em_ends(alarm):
    """The independent E step is message passing as the textbooks have it."""
    table, layout = with_empty_cells(alarm, rows=1500), alarm.layout
    problem = lk.Problem(alarm.dag, table, engine="junction")
    engine, codes, weights = problem.engine, problem.rows.codes, problem.rows.weights
    tree = Tree(engine.tree.cliques, engine.tree.parent, engine.home)
    tables = Tables(layout.cardinalities, layout.strides, layout.offsets)

    def expect(theta):
        with np.errstate(divide="ignore", invalid="ignore"):
            phi = np.log(theta)
            counts, rows = textbook_expect(tree, tables, codes, engine.kept, engine.touched, weights, phi)
        counts += engine.complete_counts
        used = engine.complete_counts > 0
        return counts, float(weights @ rows + engine.complete_counts[used] @ phi[used])

    start = layout.normalise(np.random.default_rng(0).random(layout.size) + 0.2)
    theta, trace = plain_em(start, layout.normalise, expect, 20)
    options = {"method": "ml", "init": layout.split(start), "restarts": 1}
    slow = lk.fit(alarm.dag, table, max_iter=20, tol=0.0, accelerate=False, **options)
    assert slow.trace == pytest.approx(trace, rel=1e-11)
    assert np.exp(slow.potentials) == pytest.approx(theta, rel=1e-7, abs=1e-12)
    # Twenty plain steps have nearly come to rest; acceleration ends there, too, and not below.
    assert trace[-1] - trace[-2] < 0.2
    fit = lk.fit(alarm.dag, table, tol=1e-10, **options)
    assert 0.0 <= fit.objective - trace[-1] < 0.1


def test_a_published_network_is_learnt_back(alarm):
    """With 5000 rows and a fifth of the cells empty, tables with enough data come within a few standard errors."""
    fit = lk.fit(alarm.dag, with_empty_cells(alarm), method="map", restarts=1, seed=0)
    assert fit.status is lk.Status.CONVERGED
    roots = [name for name in alarm.dag.nodes if not alarm.dag.parents(name)]
    for name in roots:
        truth = alarm.tables[name][0]
        error = np.sqrt(truth * (1 - truth) / (4000))
        assert np.all(np.abs(fit.network.tables[name][0] - truth) <= 5 * error + 2e-3)
