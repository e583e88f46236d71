"""Columns with fewer than two levels: nothing that a search finds depends on them."""

import itertools
import math
import warnings

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingWarning, OptionError
from lurking.search.constraints import Constraints
from lurking.search.silent_columns import SetAside, silent_columns

CONSTANTS = {"k1": ["x"] * 150, "k2": ["x"] * 150, "k3": ["x"] * 150}


def columns(seed=0, n=150):
    """Five columns by two causes; with constants among them and score "bd" a tabu search lost up to four nats."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    causes = {"a": x, "b": x, "c": x ^ y, "d": y, "e": y}
    return {name: (rng.random(n) < np.where(cause, 0.8, 0.25)).astype(int) for name, cause in causes.items()}


PLAIN = lk.Table.from_columns(columns())
WITH = lk.Table.from_columns({**CONSTANTS, **columns()})
QUIET = pytest.mark.filterwarnings("ignore::lurking.errors.LurkingWarning")


@QUIET
@pytest.mark.parametrize("method", ["auto", "tabu", "greedy", "exact"])
@pytest.mark.parametrize("score", ["bd", "bdeu", "bic"])
def test_a_complete_search_finds_the_same_with_constants(score, method):
    own, other = (lk.search(table, score=score, method=method, workers=1) for table in (PLAIN, WITH))
    assert other.best.edges == own.best.edges
    assert other.best.nodes == WITH.columns
    assert (other.score, other.status, other.n_evaluated) == (own.score, own.status, own.n_evaluated)
    assert [(step.move, step.score) for step in other.history] == [(step.move, step.score) for step in own.history]


@QUIET
def test_the_score_is_that_of_the_whole_table():
    found = lk.search(WITH, score="bd")
    assert found.score == pytest.approx(lk.score(found.best, WITH, "exact").log_z, rel=1e-12)


@QUIET
@pytest.mark.parametrize("score", ["bd", "bic"])
def test_unseen_levels_have_their_share_of_the_score(score):
    levels = {"k": ["x", "y", "z"]}
    table = lk.Table.from_columns({"k": ["x"] * 150, **columns()}, levels=levels)
    found = lk.search(table, score=score, method="tabu", workers=1)
    assert found.best.edges == lk.search(PLAIN, score=score, method="tabu", workers=1).best.edges
    options = {"at": "ml"} if score == "bic" else {}
    whole = lk.score(found.best, table, "bic" if score == "bic" else "exact", **options).log_z
    assert found.score == pytest.approx(whole, rel=1e-12)
    assert found.history[0].score < lk.search(PLAIN, score=score, method="tabu", workers=1).history[0].score - 1.0


def test_by_bdeu_unseen_levels_have_a_say_and_the_optimum_is_that_of_all_structures():
    """λ is divided among the levels of a parent, seen or not, so such a column may be worth an arc."""
    table = lk.Table.from_columns({"k": ["x"] * 8, "a": [0] * 7 + [1]}, levels={"k": ["x", "y"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lk.search(table, score="bdeu", prior=20.0)
    assert found.status is lk.Status.OPTIMUM
    dags = [lk.Dag(["k", "a"], edges) for edges in ([], [("k", "a")], [("a", "k")])]
    every = [lk.score(dag, table, "exact", prior=lk.Prior.bdeu(20.0)).log_z for dag in dags]
    assert found.score == pytest.approx(max(every), rel=1e-12)


@QUIET
def test_by_bd_no_arc_at_a_column_with_one_observed_level_is_better_than_none():
    table = lk.Table.from_columns({"k": ["x"] * 150, **columns()}, levels={"k": ["x", "y", "z"]}).select(
        ["k", "a", "b"]
    )
    found = lk.search(table, score="bd", prior=0.3)
    pairs = list(itertools.permutations(table.columns, 2))
    for arcs in itertools.chain.from_iterable(itertools.combinations(pairs, k) for k in range(4)):
        try:
            dag = lk.Dag(table.columns, arcs)
        except lk.LurkingError:
            continue
        assert lk.score(dag, table, "exact", prior=0.3).log_z <= found.score + 1e-9


def with_holes():
    """Four copies of a hidden variable, a constant, and a column without a cell that has levels all the same."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 300)
    own = {name: (rng.random(300) < np.where(hidden, 0.8, 0.2)).astype(int) for name in "abcd"}
    more = {"Land": ["DE"] * 300, "leer": [None] * 300}
    return lk.Table.from_columns(own), lk.Table.from_columns({**own, **more}, levels={"leer": ["u", "v"]})


@QUIET
@pytest.mark.parametrize(
    "options",
    [{}, {"start": "h[2] -> a b c Land leer; d"}, pytest.param({"score": "bdeu"}, marks=pytest.mark.long)],
)
def test_a_hidden_search_finds_the_same_with_constants_and_empty_columns(options):
    plain, more = with_holes()
    start = {"start": "h[2] -> a b c; d"} if "start" in options else {}
    roughly = {"hidden": 1, "workers": 1, "target": 1.0}
    own = lk.search(plain, **roughly, **options | start)
    other = lk.search(more, **roughly, **options)
    assert other.best.nodes == (*more.columns, *own.best.hidden)
    assert [trial.dag.edges for trial in other.history] == [trial.dag.edges for trial in own.history]
    assert [trial.evidence for trial in other.history] == [trial.evidence for trial in own.history]
    assert other.evidence == own.evidence
    assert other.structure_prior == own.structure_prior
    np.testing.assert_array_equal(other.posterior.probabilities, own.posterior.probabilities)
    for dag in [other.best, *(trial.dag for trial in other.history), *(each.dag for each in other.posterior)]:
        assert set(more.columns) <= set(dag.nodes)
        assert dag.parents("Land") == dag.children("Land") == dag.parents("leer") == dag.children("leer") == ()


@QUIET
def test_a_prior_that_counts_nodes_counts_all_columns():
    _, more = with_holes()
    prior = ("edge-probability", 0.2)
    found = lk.search(more, hidden=1, workers=1, target=1.0, structure_prior=prior)
    assert str(found.structure_prior) == "edge-probability:0.2"
    weights = [found.structure_prior.log_weight(each.dag, 0) for each in found.posterior]
    own = [each.log_prior for each in found.posterior]
    assert np.ptp(np.subtract(own, weights)) == pytest.approx(0.0, abs=1e-9)
    by_size = {"structure_prior": lambda dag: -float(len(dag.nodes) == 7)}
    by_function = lk.search(more, hidden=1, workers=1, target=1.0, **by_size)
    assert {each.log_prior > -1.0 for each in by_function.posterior if not each.dag.hidden} == {True}


def test_columns_without_a_say_are_no_neighbours():
    table = lk.Table.from_columns({**{name: column for name, column in columns().items() if name in "ab"}, **CONSTANTS})
    with pytest.warns(LurkingWarning), pytest.raises(OptionError, match="2 columns are too few"):
        lk.search(table, hidden=1)


def test_one_warning_says_which():
    with pytest.warns(LurkingWarning) as caught:
        lk.search(WITH.drop(["k2", "k3"]).select(["a", "k1", "b"]))
    assert [str(each.message) for each in caught] == [
        "column 'k1' has one level and no say in the structure; it stays alone"
    ]
    with pytest.warns(LurkingWarning) as caught:
        lk.search(WITH, score="bd")
    assert [str(each.message) for each in caught] == [
        "columns 'k1', 'k2', 'k3' have one level each at most and no say in the structure; they stay alone"
    ]
    _, more = with_holes()
    with pytest.warns(LurkingWarning, match="column 'leer' has no observed cell and no say in the structure"):
        lk.search(more.drop(["Land"]))


def test_required_arcs_are_kept():
    with pytest.warns(LurkingWarning, match="columns 'k2', 'k3' have"):
        found = lk.search(WITH, score="bd", required="k1 -> a")
    assert ("k1", "a") in found.best.edges
    assert found.best.parents("k2") == found.best.children("k2") == ()
    assert found.score == pytest.approx(lk.search(PLAIN, score="bd", method="exact").score, rel=1e-9)


@QUIET
def test_starts_lose_the_arcs_that_say_nothing():
    found = lk.search(WITH, score="bd", start="k1 -> a -> b; k2 -> k3", method="greedy")
    own = lk.search(PLAIN, score="bd", start="a -> b", method="greedy")
    assert (found.best.edges, found.score) == (own.best.edges, own.score)


@QUIET
def test_a_table_of_constants_has_a_structure_without_arcs():
    for score in ("bd", "bdeu", "bic"):
        found = lk.search(lk.Table.from_columns(CONSTANTS), score=score)
        assert (found.best, found.score) == (lk.Dag(list(CONSTANTS)), 0.0)


def test_rows_without_weight_show_no_level():
    table = lk.Table.from_columns({"k": [0, 0, 1], "a": [0, 1, 0]}, weights=[1.0, 2.0, 0.0])
    assert silent_columns(table, declared=False) == ("k",)
    assert silent_columns(table, declared=True) == ()


def test_the_evidence_of_cells_of_one_level_is_a_product_of_predictions():
    table = lk.Table.from_columns({"k": ["x", "x", None, "x"], "a": [0, 1, 0, 1]}, levels={"k": ["x", "y", "z"]})
    aside = SetAside(table, Constraints.from_options(table.columns), ("k",))
    for prior, pseudo in ((lk.Prior.symmetric(0.7), 0.7), (lk.Prior.bdeu(1.2), 0.4)):
        expected = sum(math.log((pseudo + i) / (3 * pseudo + i)) for i in range(3))
        assert aside.log_evidence(prior) == pytest.approx(expected, rel=1e-12)
        assert lk.score("k", table, "exact", prior=prior).log_z == pytest.approx(expected, rel=1e-12)


@QUIET
@pytest.mark.parametrize("over", ["orders", "structures"])
def test_arcs_of_constants_change_no_probability_of_other_arcs(over):
    plain, more = PLAIN.select(list("abc")), WITH.select(["k1", "a", "b", "k2", "c"])
    own, other = (lk.edge_posterior(table, over=over, max_parents=1) for table in (plain, more))
    for x, y in itertools.permutations("abc", 2):
        assert other.probability(x, y) == own.probability(x, y)
    assert {other.probability(x, y) for x in ("k1", "k2") for y in "abc"} == {0.0}
    assert other.variables == more.columns


def test_a_sparse_mixture_warns_of_constants():
    table = WITH.select(["a", "b", "k1"])
    with pytest.warns(LurkingWarning, match="column 'k1' has one level, so the data do not say whether it depends on"):
        lk.sparse_mixture(table, 2, restarts=1)
