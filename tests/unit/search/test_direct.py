"""Direct search, starts and sparse mixtures: compared with all structures of small spaces."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingError, LurkingWarning
from lurking.experiments.beal2006.data import drawn_tables, rows_from, table_of
from lurking.graph.spaces import all_dags
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Silent
from lurking.search.constraints import Constraints
from lurking.search.direct import direct_search, neighbours
from lurking.search.sparse import sparse_mixture
from lurking.search.structural_em import structural_em
from lurking.search.structures import from_hidden_only, start_structure

HIDDEN = {"s1": 2, "s2": 2}


def two_causes(seed, n=480):
    return table_of(rows_from(drawn_tables(seed), np.random.default_rng([seed, 1]), n))


def test_neighbours_are_all_structures_one_move_away():
    names = ("a", "b", "c")
    everything = {frozenset(dag.edges) for dag in all_dags(names)}
    for edges in everything:
        dag = lk.Dag(names, edges)
        near = [frozenset(other.edges) for _, other in neighbours(dag, Constraints.from_options(names))]
        turned = {edges - {(x, y)} | {(y, x)} for x, y in edges}
        assert len(near) == len(set(near))
        assert set(near) == {other for other in everything if len(edges ^ other) == 1} | (turned & everything)
    rules = Constraints.from_options(names, required="a -> b", forbidden="c -> a", max_parents=1)
    near = {frozenset(dag.edges) for _, dag in neighbours(lk.Dag(names, [("a", "b")]), rules)}
    assert near == {frozenset({("a", "b"), ("a", "c")}), frozenset({("a", "b"), ("b", "c")})}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_ends_at_the_best_of_136_structures(seed):
    table = two_causes(seed)
    allowed = from_hidden_only(HIDDEN, table.columns)
    everything = lk.compare(list(lk.bipartite(HIDDEN, table.columns)), table, scores=["vb"], seed=0)["vb"]
    found = direct_search(table, start_structure(table, HIDDEN, "full"), constraints=allowed, seed=0)
    assert found.best.same_structure(everything.best.dag)
    assert found.score == pytest.approx(everything.best.evidence.log_z, abs=1e-3)
    assert found.n_scored < 136
    starts = [start_structure(table, HIDDEN, "random", seed=k) for k in range(4)]
    em = structural_em(table, [start_structure(table, HIDDEN, "full"), *starts], constraints=allowed, seed=0)
    again = direct_search(table, em.best, constraints=allowed, seed=0)
    assert again.score >= em.score - 1e-3
    assert again.best.same_structure(everything.best.dag)


def test_never_below_its_start_and_any_score_goes():
    table = two_causes(0, 80)
    start = start_structure(table, {"s": 2}, "random", seed=3)
    for score in ("bic", "cs", "bicp"):
        found = direct_search(table, start, score, patience=0, restarts=2, seed=1, corrected=score == "bicp")
        assert found.score >= lk.score(start, table, score, restarts=2, seed=1).log_z - 1e-9
        steps = [step.score for step in found.history]
        assert steps == sorted(steps)
        again = lk.score(found.best, table, score, restarts=2, seed=1)
        assert found.score == pytest.approx(again.log_z, rel=1e-12)
        assert found.evidence.method == score


def test_equal_moves_are_taken_in_order_whatever_the_rounding():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = rng.integers(0, 3, 60)
        b = np.where(rng.random(60) < 0.8, a, rng.integers(0, 4, 60))
        table = lk.Table.from_array(np.stack([a, b], axis=1), columns=["a", "b"])
        found = direct_search(table, "a; b", "exact", prior=lk.Prior.bdeu(1.0), workers=1, patience=0)
        assert [str(step.move) for step in found.history] == ["add a -> b"]


def test_a_gain_is_more_than_the_fits_may_miss():
    table = two_causes(0, 80)
    start = start_structure(table, {"s": 2}, "full")
    options = {"restarts": 2, "seed": 1, "workers": 1}
    found = direct_search(table, start, patience=0, tol=1e-4, **options)
    gain = found.score - lk.score(start, table, "vb", tol=1e-4, **options).log_z
    # Fits may be off by 100 tol n: 0.8 nats at first, then 8.
    assert len(found.history) == 1
    assert 0.8 < gain < 8.0
    assert direct_search(table, start, patience=0, tol=1e-3, **options).history == ()


def test_workers_never_change_a_result():
    table = two_causes(1, 60)
    start = start_structure(table, {"s": 2}, "full")
    one, two = (direct_search(table, start, patience=1, restarts=2, workers=workers) for workers in (1, 2))
    assert one == two


def test_interrupt_and_time_limit_keep_the_best_so_far():
    table = two_causes(1, 60)
    start = start_structure(table, {"s": 2}, "full")
    flag = StopFlag()

    class Stop(Silent):
        def begin(self, what, total):  # noqa: ARG002
            if total > 1:
                flag.set()

    found = direct_search(table, start, stop=flag, progress=Stop(), restarts=2)
    assert found.status is Status.INTERRUPTED
    assert found.score >= lk.score(start, table, "vb", restarts=2).log_z - 1e-9
    assert direct_search(table, start, time_limit=1e-9, restarts=2).status is Status.TIME_LIMIT


def test_starts():
    table = two_causes(0, 100)
    full = start_structure(table, HIDDEN, "full")
    assert set(full.edges) == {(h, y) for h in HIDDEN for y in table.columns}
    assert start_structure(table, HIDDEN, "empty").edges == ()
    some = [start_structure(table, HIDDEN, "random", seed=k) for k in range(20)]
    assert len(set(some)) > 10
    assert some[3] == start_structure(table, HIDDEN, "random", seed=3)
    assert all(set(dag.edges) <= set(full.edges) for dag in some)
    tree = start_structure(table, HIDDEN, "tree")
    assert not any(name in edge for edge in tree.edges for name in HIDDEN)
    assert set(start_structure(table, HIDDEN, "full tree").edges) == {*full.edges, *tree.edges}
    for wrong in ({"kind": "star"}, {"share": 2.0}, {"hidden": {"y1": 2}}):
        with pytest.raises(LurkingError):
            start_structure(table, **{"hidden": HIDDEN, **wrong})


def test_a_sparse_mixture_does_not_set_bounds_against_exact_values():
    rng = np.random.default_rng(0)
    is_second = rng.random(30) < 0.5
    codes = (rng.random((30, 4)) < np.where(is_second[:, None], 0.75, 0.25)).astype(int)
    table = lk.Table.from_array(codes, columns=list("abcd"))
    everything = lk.compare(list(lk.bipartite({"class": 2}, table.columns)), table, scores=["exact"], budget=10**8)
    exact = everything["exact"]
    found = sparse_mixture(table, 2, seed=0, workers=1)
    assert found.scored_by == "sampled"
    assert found.children == exact.best.dag.children("class") == ("a", "c")
    assert found.score == pytest.approx(exact.best.evidence.log_z, abs=0.2)
    for name in table.columns:
        assert found.probabilities[name] == pytest.approx(exact.edge_probability("class", name), abs=0.05)


def test_subsets_too_many_to_be_sampled_are_told_of(monkeypatch):
    monkeypatch.setattr("lurking.search.rescoring.MOST_UNASKED", 2)
    table = two_causes(0, 30)
    with pytest.warns(LurkingWarning, match="16 subsets contend and were not sampled") as told:
        found = sparse_mixture(table, 2, restarts=2, workers=1)
    assert found.scored_by == "vb"
    assert told[0].filename == __file__


def test_sparse_mixture_finds_the_children_both_ways():
    dag = lk.Dag.parse("k[2] -> a b c; d; e")
    tables = {
        "k": [[0.5, 0.5]],
        **{name: [[0.9, 0.1], [0.2, 0.8]] for name in "abc"},
        "d": [[0.3, 0.7]],
        "e": [[0.5, 0.5]],
    }
    table = lk.Network.from_tables(dag, tables).sample(600, seed=1)
    everything = sparse_mixture(table, 2)
    assert everything.children == ("a", "b", "c")
    assert everything.status is Status.OPTIMUM
    assert len(everything.posterior) == 32
    assert all(everything.probabilities[name] > 0.99 for name in "abc")
    assert all(everything.probabilities[name] < 0.5 for name in "de")
    weights = {c.dag: c.probability for c in everything.posterior}
    by_hand = sum(p for dag, p in weights.items() if "a" in dag.children("class"))
    assert everything.probabilities["a"] == pytest.approx(by_hand)
    by_em = sparse_mixture(table, 2, method="structural-em")
    assert by_em.children == everything.children
    assert by_em.score == pytest.approx(everything.score, abs=1e-3)
    assert by_em.probabilities is None
    with pytest.raises(LurkingError, match="another name"):
        sparse_mixture(table, 2, name="a")
