"""Bounds stay below the exact evidence, and no score depends on names, orders or labels."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lurking as lk
from lurking.graph.dag import Dag
from lurking.models.layout import Layout


def exact_of(small):
    sizes = np.asarray([small.cards[name] for name in small.dag.nodes])
    work = sum(
        w * math.log(np.where(row < 0, sizes, 1).prod()) for row, w in zip(small.codes, small.weights, strict=True)
    )
    assume(work < math.log(1e5))
    return lk.score(small.dag, small.table, "exact", prior=small.prior).log_z


@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
@settings(max_examples=50)
@given(data=st.data())
def test_the_bound_holds_for_any_potentials(small_problems, bound, prune, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=5, whole_weights=True))
    exact = exact_of(small)
    engine, rng = small.engine(prune=prune), small.generator
    for scale in (0.1, 1.0, 6.0):
        potentials = rng.normal(rng.normal(0.0, 3.0), scale, small.layout.size)
        if scale == 6.0:
            potentials[rng.random(len(potentials)) < 0.1] = -np.inf
            if not math.isfinite(engine.expect(potentials)[1]):
                continue
        value = bound(small.layout, engine, small.pseudo, potentials)
        assert value <= exact + 1e-9 * max(1.0, abs(exact)) + 1e-9


@settings(max_examples=40)
@given(data=st.data())
def test_cheeseman_stutz_is_the_bound_at_theta(small_problems, bound, data):
    """With max_iter = 1 the score is read off θ after one EM step from any start: a bound, and equal to B(ln θ)."""
    small = data.draw(small_problems(max_nodes=4, max_rows=5, whole_weights=True))
    exact = exact_of(small)
    problem = small.problem()
    init = small.layout.split(small.theta(0.3))
    for at in ("map", "ml"):
        options = {"at": at, "init": init, "restarts": 1, "max_iter": 1, "tol": 0.0, "accelerate": False}
        evidence = lk.score(small.dag, small.table, "cs", prior=small.prior, prune=False, **options)
        assert evidence.log_z <= exact + 1e-9 * max(1.0, abs(exact))
        fit = lk.fit(
            small.dag,
            small.table,
            method=at,
            prior=small.prior,
            prune=False,
            **{k: v for k, v in options.items() if k != "at"},
        )
        value = bound(problem.layout, problem.engine, problem.pseudo, fit.potentials)
        assert evidence.log_z == pytest.approx(value, rel=1e-8, abs=1e-8)


@settings(max_examples=40)
@given(data=st.data())
def test_the_bound_is_exact_on_complete_data(small_problems, bound, data):
    small = data.draw(small_problems(max_nodes=4, whole_weights=True))
    rng = small.generator
    sizes = [small.cards[name] for name in small.dag.nodes]
    codes = np.column_stack([rng.integers(0, r, 7) for r in sizes]).astype(np.int32)
    full = small.changed(codes=codes, weights=np.ones(7), dag=Dag(small.dag.nodes, small.dag.edges))
    exact = lk.score(full.dag, full.table, "exact", prior=full.prior).log_z
    potentials = rng.normal(0.0, 3.0, full.layout.size)
    for engine in ("enumeration", "reference"):
        value = bound(full.layout, full.engine(engine), full.pseudo, potentials)
        assert value == pytest.approx(exact, rel=1e-10, abs=1e-9)
    for name in ("cs", "vb", "mled"):
        assert lk.score(full.dag, full.table, name, prior=full.prior).log_z == pytest.approx(
            exact, rel=1e-10, abs=1e-10
        )


@settings(max_examples=30)
@given(data=st.data())
def test_vb_from_any_completion_never_ends_below_it(small_problems, data):
    small = data.draw(small_problems(max_nodes=4))
    for accelerate in (False, True):
        options = {"prior": small.prior, "restarts": 2, "seed": 1, "accelerate": accelerate, "max_iter": 60}
        pair = lk.score(small.dag, small.table, ["cs", "vb"], start="map", **options)
        assert pair["vb"].log_z >= pair["cs"].log_z - 1e-9 * max(1.0, abs(pair["cs"].log_z))


def relabelled(small):
    """Return the same problem with nodes, parents and hidden states in another order, and where each position went."""
    rng = small.generator
    old = small.layout
    order = rng.permutation(len(small.dag.nodes))
    names = {name: (f"h_{name}" if name in small.dag.hidden else name) for name in small.dag.nodes}
    nodes = [names[small.dag.nodes[j]] for j in order]
    edges = [(names[a], names[b]) for a, b in small.dag.edges]
    edges = [edges[k] for k in rng.permutation(len(edges))]
    hidden = {names[name]: card for name, card in small.dag.hidden.items()}
    dag = Dag(nodes, edges, hidden)
    cards = {names[name]: card for name, card in small.cards.items()}
    new = Layout(dag, cards)
    states = {
        name: rng.permutation(card) if name in small.dag.hidden else np.arange(card)
        for name, card in small.cards.items()
    }
    moved = np.empty(old.size, np.int64)
    for j, name in enumerate(old.nodes):
        family = list(old.strides[j])
        target = new.index[names[name]]
        for values in np.ndindex(*(old.cardinalities[v] for v in family)):
            here = old.offsets[j] + sum(old.strides[j][v] * k for v, k in zip(family, values, strict=True))
            there = new.offsets[target] + sum(
                new.strides[target][new.index[names[old.nodes[v]]]] * states[old.nodes[v]][k]
                for v, k in zip(family, values, strict=True)
            )
            moved[here] = there
    assert sorted(moved) == list(range(old.size))
    pseudo = np.empty_like(small.pseudo)
    pseudo[moved] = small.pseudo
    return small.changed(dag=dag, cards=cards, codes=small.codes[:, order], pseudo=pseudo), moved


@settings(max_examples=50)
@given(data=st.data())
def test_names_orders_and_labels_do_not_matter(small_problems, bound, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=5, whole_weights=True))
    exact = exact_of(small)
    other, moved = relabelled(small)
    assert lk.score(other.dag, other.table, "exact", prior=other.prior).log_z == pytest.approx(
        exact, rel=1e-10, abs=1e-10
    )
    potentials = small.generator.normal(-1.0, 2.0, small.layout.size)
    permuted = np.empty_like(potentials)
    permuted[moved] = potentials
    for prune in (False, True):
        mine, its = small.engine(prune=prune), other.engine(prune=prune)
        counts, log_z = mine.expect(potentials)
        its_counts, its_log_z = its.expect(permuted)
        assert its_log_z == pytest.approx(log_z, rel=1e-11, abs=1e-11)
        assert its_counts[moved] == pytest.approx(counts, rel=1e-11, abs=1e-11)
        value = bound(small.layout, mine, small.pseudo, potentials)
        assert bound(other.layout, its, other.pseudo, permuted) == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert other.problem().log_aliases == pytest.approx(small.problem().log_aliases, rel=1e-12)
    assert other.problem().dimension == small.problem().dimension


@settings(max_examples=20)
@given(data=st.data())
def test_a_relabelled_start_climbs_to_the_relabelled_point(small_problems, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=5, least_lambda=1.0))
    other, moved = relabelled(small)
    theta = small.theta()
    permuted = np.empty_like(theta)
    permuted[moved] = theta
    for method in ("vb", "map", "map-probability", "ml"):
        options = {"method": method, "prune": False, "restarts": 1, "tol": 0.0, "max_iter": 8, "accelerate": False}
        mine = lk.fit(small.dag, small.table, prior=small.prior, init=small.layout.split(theta), **options)
        its = lk.fit(other.dag, other.table, prior=other.prior, init=other.layout.split(permuted), **options)
        assert its.trace == pytest.approx(mine.trace, rel=1e-9, abs=1e-9)
        assert its.network.theta[moved] == pytest.approx(mine.network.theta, rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(data=st.data())
def test_row_order_and_repetition_do_not_change_a_fit(small_problems, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=5, whole_weights=True, least_lambda=1.0))
    repeated = np.repeat(np.arange(len(small.codes)), small.weights.astype(int))
    shuffled = small.generator.permutation(repeated)
    long = small.changed(codes=small.codes[shuffled], weights=np.ones(len(shuffled)))
    names = ["map-likelihood", "mled", "cs", "vb"] + (["bic"] if len(shuffled) else [])
    options = {"prior": small.prior, "restarts": 1, "seed": 3, "tol": 0.0, "max_iter": 10, "accelerate": False}
    one = lk.score(small.dag, small.table, names, **options)
    two = lk.score(long.dag, long.table, names, **options)
    for name in names:
        assert two[name].log_z == pytest.approx(one[name].log_z, rel=1e-9, abs=1e-9)
