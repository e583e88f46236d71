"""The junction tree against brute force and against its textbook twin, on random networks with random empty cells."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lurking as lk
from lurking.errors import TooLarge
from lurking.inference.engines import junction
from lurking.inference.engines.choice import MixedEngine, choose_engine, enumeration_cost, looked_at
from lurking.inference.engines.components import Splitter, kept_nodes, openings
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.junction import JunctionEngine
from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.rows import Rows
from lurking.kernels.reference.junction import Tables, Tree
from lurking.kernels.reference.junction import expect as textbook_expect
from lurking.models.layout import Layout


def random_case(seed, most_nodes=7):
    """Return (layout, codes, weights, prune, wanted, generator) of a random network with hidden and empty cells."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most_nodes + 1))
    names = [f"v{i}" for i in range(n)]
    edges = [(names[i], names[j]) for j in range(n) for i in range(j) if rng.random() < 0.4]
    hidden = {name: int(rng.integers(2, 4)) for name in names[:-1] if rng.random() < 0.35}
    dag = lk.Dag.from_edges(edges, nodes=names, hidden=hidden)
    layout = Layout(dag, {name: hidden.get(name, int(rng.integers(1, 4))) for name in names})
    rows = int(rng.integers(0, 7))
    codes = np.stack([rng.integers(0, r, rows) for r in layout.cardinalities], axis=1).astype(np.int32)
    codes[rng.random((rows, n)) < 0.3] = -1
    codes[:, [j for j, name in enumerate(names) if name in hidden]] = -1
    codes[:, [j for j, r in enumerate(layout.cardinalities) if r == 1]] = 0
    wanted = [int(rng.integers(n))] if rng.random() < 0.5 else []
    return layout, codes, 3.0 * rng.random(rows), bool(rng.integers(2)), wanted, rng


def potentials_of(layout, rng, kind):
    phi = rng.normal(-1.0, 1.0, layout.size)
    if kind == "low":  # products underflow, so rows are redone in logarithms
        return np.minimum(phi, 0.0) - 400.0 * rng.random(layout.size)
    if kind == "steep":  # masses at and beyond the edge of what a double can hold
        return np.minimum(phi, 0.0) - rng.choice([0.0, 100.0, 570.0, 740.0, 800.0, 2000.0], layout.size)
    if kind == "zeros":
        phi = np.minimum(phi, 0.0)
        phi[rng.random(layout.size) < 0.15] = -np.inf
    return np.minimum(phi, 0.0) if kind == "negative" else phi


KINDS = st.sampled_from(["any", "negative", "low", "steep", "zeros"])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), KINDS)
def test_the_tree_agrees_with_brute_force(seed, kind):
    layout, codes, weights, prune, wanted, rng = random_case(seed)
    phi = potentials_of(layout, rng, kind)
    slow = ReferenceEngine(layout, Rows.of_codes(codes, weights), prune, wanted)
    expected, expected_log_z = slow.expect(phi)
    for make in (JunctionEngine, choose_engine):
        fast = make(layout, Rows.of_codes(codes, weights), prune, wanted)
        counts, log_z = fast.expect(phi)
        rows = slow.pattern_log_z(phi)
        assert fast.pattern_log_z(phi) == pytest.approx(rows, rel=1e-10, abs=1e-10)
        if math.isinf(expected_log_z):
            assert log_z == -math.inf
            continue
        assert log_z == pytest.approx(expected_log_z, rel=1e-10, abs=1e-10)
        assert counts == pytest.approx(expected, rel=1e-10, abs=1e-10)
        if np.isfinite(rows).all():
            assert fast.pattern_statistics(phi) == pytest.approx(slow.pattern_statistics(phi), rel=1e-10, abs=1e-10)
            for node in range(len(layout.nodes)):
                marginals = slow.pattern_marginals(phi, node)
                assert fast.pattern_marginals(phi, node) == pytest.approx(marginals, rel=1e-10, abs=1e-10, nan_ok=True)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), KINDS)
def test_the_kernel_agrees_with_its_textbook_twin(seed, kind):
    layout, codes, weights, prune, wanted, rng = random_case(seed)
    phi = potentials_of(layout, rng, kind)
    engine = JunctionEngine(layout, Rows.of_codes(codes, weights), prune, wanted)
    tree = Tree(engine.tree.cliques, engine.tree.parent, engine.home)
    tables = Tables(layout.cardinalities, layout.strides, layout.offsets)
    with np.errstate(divide="ignore", invalid="ignore"):
        counts, row_log_z = textbook_expect(tree, tables, codes, engine.kept, engine.touched, weights, phi)
    complete = np.zeros(len(codes))
    for j in range(len(layout.nodes)):
        rows = np.flatnonzero(engine.complete[:, j])
        complete[rows] += phi[engine._offsets(j, rows)]
    assert engine.pattern_log_z(phi) == pytest.approx(complete + row_log_z, rel=1e-11, abs=1e-11)
    if np.isfinite(complete + row_log_z).all():
        assert engine.expect(phi)[0] == pytest.approx(counts + engine.complete_counts, rel=1e-10, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_kept_nodes_are_those_of_the_splitter(seed):
    layout, codes, _, prune, wanted, _ = random_case(seed)
    splitter = Splitter(layout, prune, wanted)
    keep = kept_nodes(layout, codes, prune, wanted)
    for row, kept in zip(codes, keep, strict=True):
        mask = splitter.kept(sum(1 << j for j, code in enumerate(row) if code < 0))
        assert kept.tolist() == [bool(mask >> j & 1) for j in range(len(layout.nodes))]


def chain(length, states, rows, seed=0):
    """Return a hidden chain with one observed child each, as a Problem's ingredients."""
    model = "; ".join([f"h{i}[{states}] -> h{i + 1}[{states}]" for i in range(length - 1)])
    model += "; " + "; ".join(f"h{i} -> y{i}" for i in range(length))
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 3, (rows, length))
    return model, lk.Table.from_array(data, columns=[f"y{i}" for i in range(length)])


def forward(problem, theta, row):
    """Return ln p(row) of a hidden chain by the forward recursion written out."""
    tables, codes = problem.layout.split(theta), dict(zip(problem.layout.nodes, row, strict=True))
    message, log_z = tables["h0"][0], 0.0
    for i in range(len(codes) // 2):
        message = (message if i == 0 else message @ tables[f"h{i}"]) * tables[f"y{i}"][:, codes[f"y{i}"]]
        log_z += math.log(message.sum())
        message = message / message.sum()
    return log_z


def test_a_hidden_chain_of_forty_nodes_is_the_forward_recursion():
    model, table = chain(40, 3, 25)
    problem = lk.Problem(model, table)
    assert isinstance(problem.engine, JunctionEngine)
    assert problem.engine.width == 1
    theta = problem.layout.normalise(np.random.default_rng(1).random(problem.layout.size))
    expected = np.asarray([forward(problem, theta, row) for row in problem.rows.codes])
    assert problem.engine.pattern_log_z(np.log(theta)) == pytest.approx(expected, rel=1e-12)


def test_a_hidden_chain_is_fitted_and_its_bound_never_falls():
    model, table = chain(40, 2, 30)
    fit = lk.fit(model, table, restarts=2, max_iter=60, seed=0)
    assert np.all(np.diff(fit.trace) > -1e-9 * abs(fit.objective))
    assert fit.network.loglik(table).shape == (30,)
    assert fit.network.hidden_probabilities(table)["h20"].sum(axis=1) == pytest.approx(np.ones(30))


def test_parts_of_a_model_get_their_own_method():
    model, table = chain(12, 3, 40)
    rng = np.random.default_rng(3)
    more = lk.Table.from_columns(
        {
            **{name: table[name].codes for name in table.columns},
            "a": rng.integers(0, 2, 40),
            "b": rng.integers(0, 2, 40),
        }
    )
    problem = lk.Problem(model + "; class[2] -> a b", more)
    engine = problem.engine
    assert isinstance(engine, MixedEngine)
    assert [type(part) for part in engine.parts] == [EnumerationEngine, JunctionEngine]
    phi = np.log(problem.layout.normalise(rng.random(problem.layout.size)))
    whole = JunctionEngine(problem.layout, problem.rows, True)
    assert engine.expect(phi)[1] == pytest.approx(whole.expect(phi)[1], rel=1e-12)
    assert engine.expect(phi)[0] == pytest.approx(whole.expect(phi)[0], rel=1e-11, abs=1e-11)
    node = problem.layout.index["class"]
    assert engine.pattern_marginals(phi, node) == pytest.approx(whole.pattern_marginals(phi, node), rel=1e-11)
    # The class sees four different rows, not forty.
    assert len(engine.parts[0].program.weights) == 4


def test_small_models_are_enumerated():
    problem = lk.Problem("s[2] -> a b; t[3] -> b c", lk.Table.from_rows([(0, 1, 1), (1, 0, 0)], columns=list("abc")))
    assert isinstance(problem.engine, EnumerationEngine)


def test_the_choice_follows_the_cost():
    model, table = chain(8, 2, 50)
    problem = lk.Problem(model, table)
    families = range(len(problem.layout.nodes))
    splitter = Splitter(problem.layout, True)
    looked = looked_at(problem.layout, openings(problem.layout, problem.rows.codes, splitter)[0])
    cost, largest = enumeration_cost(problem.layout, looked, splitter, families)
    assert largest == 2**8
    assert cost > 50 * 2**8 * 16
    assert isinstance(problem.engine, JunctionEngine)
    assert problem.engine.cost < cost


def test_equal_rows_of_a_part_are_done_once():
    model, table = chain(8, 2, 5)
    doubled = lk.Table.from_array(np.tile(np.stack([table[c].codes for c in table.columns], axis=1), (4, 1)))
    problem = lk.Problem(model.replace("y", "x"), doubled, engine="junction")
    assert [len(part.program.weights) for part in problem.engine.parts] == [5]
    assert problem.engine.parts[0].program.weights.tolist() == [4.0] * 5


def test_a_tree_that_does_not_fit_tells_width_and_memory(monkeypatch):
    model, table = chain(14, 2, 3)
    problem = lk.Problem(model, table)
    monkeypatch.setattr(junction, "STATE_LIMIT", 3)
    with pytest.raises(TooLarge, match="the junction tree has width 1 and a clique of 4 joint") as told:
        _ = lk.Problem(model, table, engine="junction").engine
    assert "KiB" in str(told.value)
    # Enumeration of 2^14 joint states still fits, and is what is left.
    assert isinstance(problem.engine, EnumerationEngine)


def test_when_nothing_fits_the_tree_says_so():
    # Every pair of twenty hidden variables has a common child: one clique of 4^20 joint states.
    pairs = [(i, j) for i in range(20) for j in range(i)]
    arrows = "; ".join(f"h{i}[4] -> z{i}_{j}; h{j}[4] -> z{i}_{j}" for i, j in pairs)
    table = lk.Table.from_array(np.tile([[0], [1]], len(pairs)), columns=[f"z{i}_{j}" for i, j in pairs])
    with pytest.raises(TooLarge, match=r"no exact method fits: .* width 19 and a clique of 1\.1e\+12 joint states"):
        _ = lk.Problem(arrows, table).engine


def test_one_wide_row_among_thousands_is_seen():
    """The cost is estimated from some rows; the one that leaves most open is always among them."""
    names = [f"y{i}" for i in range(30)]
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (2000, 30)).astype(float)
    rows[np.arange(2000), rng.integers(1, 29, 2000)] = np.nan
    rows[np.arange(2000), rng.integers(1, 29, 2000)] = np.nan
    rows[777, 1:29] = np.nan
    table = lk.Table.from_array(rows, names, levels=dict.fromkeys(names, (0, 1)))
    problem = lk.Problem(" -> ".join(names), table)
    assert isinstance(problem.engine, JunctionEngine)


def test_more_joint_states_than_a_float_can_hold():
    length = 1100
    model = " -> ".join(f"h{i}[2]" for i in range(length)) + " -> y"
    table = lk.Table.from_rows([(0,), (1,)], ["y"])
    problem = lk.Problem(model, table)
    assert isinstance(problem.engine, JunctionEngine)
    theta = problem.layout.normalise(np.random.default_rng(0).random(problem.layout.size))
    total = np.exp(problem.engine.pattern_log_z(np.log(theta))).sum()
    assert total == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(TooLarge, match=r"10\^331\.\d joint states"):
        _ = lk.Problem(model, table, engine="enumeration").engine


def test_totals_above_one_do_not_overflow():
    """With everything kept, a clique's total is a sum over parents and may exceed 1 in hundreds of cliques."""
    model, table = chain(600, 2, 2)
    empty = lk.Table.from_codes({name: (np.full(2, -1), (0, 1, 2)) for name in table.columns})
    problem = lk.Problem(model, empty, prune=False)
    theta = problem.layout.normalise(np.random.default_rng(0).random(problem.layout.size))
    assert problem.engine.pattern_log_z(np.log(theta)) == pytest.approx(np.zeros(1), abs=1e-9)


@pytest.mark.parametrize("switch", [10, 40, 45, 51, 60])
def test_a_state_that_looks_lost_comes_back(switch):
    """A chain of copies of one bit, seen through noisy items: evidence for one state, then more for the other.

    Messages are normalised, so a state may underflow though no total does, and later cliques may be all for it.
    """
    length, items = 80, 12
    links = [f"h{i}[2] -> h{i + 1}[2]" for i in range(length - 1)]
    arrows = links + [f"h{i} -> y{i}_{k}" for i in range(length) for k in range(items)]
    dag = lk.Dag.parse("; ".join(arrows))
    tables = {name: [[0.9, 0.1], [0.1, 0.9]] if name[0] == "y" else np.eye(2) for name in dag.nodes}
    tables["h0"] = [[0.5, 0.5]]
    network = lk.Network.from_tables(dag, tables)
    row = {name: [int(int(name[1:].split("_")[0]) >= switch)] for name in dag.observed}
    zeros, ones = switch * items, (length - switch) * items
    scores = math.log(0.5) + np.asarray([zeros, ones]) @ np.log([[0.9, 0.1], [0.1, 0.9]])
    expected = float(np.logaddexp(*scores))
    assert network.loglik(row)[0] == pytest.approx(expected, rel=1e-12)
    posterior = network.hidden_probabilities(row)["h3"][0]
    assert posterior == pytest.approx(np.exp(scores - expected), abs=1e-12)
