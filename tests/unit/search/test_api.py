"""`lurking.search` and `lurking.edge_posterior`: options, defaults, refusals."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError, StructureError, UnknownNameError
from lurking.runtime.executor import StopFlag
from lurking.search.api import search
from lurking.search.constraints import Constraints
from lurking.search.families import FamilyScores, score_of
from lurking.search.trees import tree


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    c = np.where(rng.random(300) < 0.9, a ^ b, rng.integers(0, 2, 300))
    d = np.where(rng.random(300) < 0.8, c, rng.integers(0, 3, 300))
    return lk.Table.from_array(np.stack([a, b, c, d], axis=1), columns=list("abcd"))


@pytest.mark.parametrize("score", ["bd", "bdeu", "bic"])
def test_methods_agree_on_few_variables(table, score):
    exact = lk.search(table, score=score, method="exact")
    found = lk.search(table, score=score, method="tabu")
    greedy = lk.search(table, score=score, method="greedy")
    assert exact.status is lk.Status.OPTIMUM
    chosen = lk.search(table, score=score)
    assert (chosen.best, chosen.score, chosen.status) == (exact.best, exact.score, exact.status)
    assert exact.history == ()
    assert found.status is greedy.status is lk.Status.LOCAL_OPTIMUM
    assert found.score == pytest.approx(exact.score, rel=1e-12)
    assert greedy.score <= found.score + 1e-9
    if score != "bd":
        assert found.cpdag == exact.cpdag
    assert found.best.nodes == table.columns


def test_the_score_is_the_evidence(table):
    found = lk.search(table, prior=3.0)
    assert found.score == pytest.approx(lk.score(found.best, table, "exact", prior=lk.Prior.bdeu(3.0)).log_z, rel=1e-12)
    given = lk.search(table, prior=lk.Prior.bdeu(3.0))
    assert given.score == found.score
    k2 = lk.search(table, score="bd")
    assert k2.score == pytest.approx(lk.score(k2.best, table, "exact", prior=1.0).log_z, rel=1e-12)


def test_starts(table):
    best = lk.search(table)
    scorer, flag = FamilyScores(table, "bdeu"), StopFlag()
    flag.set()
    grown = tree(scorer, Constraints.from_options(table.columns))
    assert len(grown.edges) > 0
    text = "a -> d; b; c"
    starts = [("empty", lk.Dag(table.columns)), ("tree", grown), (text, lk.Dag.parse(text)), (best.best, best.best)]
    for start, dag in starts:
        # A search that is stopped before its first move is still where it began.
        begun = lk.search(table, start=start, method="greedy", max_parents=2, stop=flag)
        assert set(begun.best.edges) == set(dag.edges)
        assert begun.score == pytest.approx(score_of(scorer, dag), rel=1e-12)
        assert lk.search(table, start=start, method="greedy", max_parents=2).score >= begun.score
    assert lk.search(table, start=best.best, method="greedy").score >= best.score - 1e-9
    partial = lk.search(table, start="a -> c", method="greedy")
    assert partial.best.nodes == table.columns


def test_what_climbs_alone_have_is_climbed(table):
    for option in ({"start": "tree"}, {"restarts": 2}, {"patience": 3}):
        assert lk.search(table, **option).status is lk.Status.LOCAL_OPTIMUM
    assert lk.search(table, time_limit=1e6).status is lk.Status.OPTIMUM
    wide = lk.Table.from_array(np.tile(np.arange(2)[:, None], (10, 9)), columns=list("abcdefghi"))
    assert lk.search(wide, restarts=None).status is lk.Status.LOCAL_OPTIMUM


def test_a_stop_ends_an_exact_search_that_was_not_asked_for_at_its_start(table):
    flag = StopFlag()
    flag.set()
    found = lk.search(table, required="a -> c", stop=flag)
    assert found.status is lk.Status.INTERRUPTED
    assert found.best.edges == (("a", "c"),)
    with pytest.raises(KeyboardInterrupt):
        lk.search(table, method="exact", stop=flag)


def test_constraints_reach_every_method(table):
    for method in ("auto", "tabu", "greedy", "exact"):
        found = lk.search(table, required="d -> a", forbidden=[("a", "c")], tiers=[["d"], ["b"]], method=method)
        assert ("d", "a") in found.best.edges
        assert ("a", "c") not in found.best.edges
        assert ("b", "d") not in found.best.edges


def test_data_of_any_kind_and_seeds(table):
    frame = table.to_frame()
    tabu = {"seed": 5, "method": "tabu"}
    assert lk.search(frame, **tabu).history == lk.search(table, **tabu, workers=1).history != ()
    assert "bdeu = " in str(lk.search(frame))


def test_edge_posterior(table):
    posterior = lk.edge_posterior(table)
    by_structures = lk.edge_posterior(table, over="structures")
    for found in (posterior, by_structures):
        assert found.probability("c", "d") + found.probability("d", "c") == pytest.approx(1.0, abs=1e-6)
        assert not found.probabilities.flags.writeable
    frame = posterior.to_frame()
    assert list(frame.columns) == ["parent", "child", "probability"]
    assert len(frame) == 12
    assert (frame["probability"].diff().dropna() <= 0).all()
    with pytest.raises(UnknownNameError, match="variable"):
        posterior.probability("a", "x")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "hc"}, UnknownNameError, "tabu, greedy, exact"),
        ({"score": "aic"}, UnknownNameError, "bd, bdeu, bic"),
        ({"method": "exact", "time_limit": 3.0}, OptionError, "considers all structures"),
        ({"time_limit": 0}, OptionError, "seconds above 0"),
        ({"restarts": -1}, OptionError, "restarts is -1"),
        ({"patience": 1.5}, OptionError, "patience is 1.5"),
        ({"seed": -1}, OptionError, "seed is -1"),
        ({"start": "h[2] -> a"}, StructureError, "the start has 'h'"),
        ({"start": "a -> e"}, StructureError, "the start has 'e'"),
        ({"start": "a -> b", "forbidden": "a -> b"}, StructureError, "rule out"),
        ({"max_parents": -1}, OptionError, "max_parents is -1"),
        ({"prior": -1.0}, lk.LurkingError, "positive"),
    ],
)
def test_refusals_are_one_line(table, options, error, words):
    with pytest.raises(error) as caught:
        search(table, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_package_is_the_function():
    import lurking.search.greedy

    assert lk.search is lurking.search
    assert lurking.search.greedy.climb.__module__ == "lurking.search.greedy"


def test_empty_cells_are_searched_by_sampled_evidence():
    holes = lk.Table.from_rows([(0, None), (1, 0), (1, 1)], ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    result = lk.search(holes, target=1.0)
    assert result.evidence is not None
    exact = lk.score(result.best, holes, "exact")
    assert result.score == pytest.approx(exact.log_z, abs=4.0 * (result.evidence.std_error or 1e-9))


def test_numbers_are_refused():
    numbers = lk.Table.from_columns({"a": [0.5, 1.5], "b": [0, 1]}, continuous=["a"])
    for hidden in (0, 1):
        with pytest.raises(lk.LurkingError, match="continuous"):
            lk.search(numbers, hidden=hidden)


def test_help_describes_the_function():
    import inspect
    import pydoc

    assert inspect.signature(lk.search) == inspect.signature(search)
    text = pydoc.plain(pydoc.render_doc(lk.search))
    assert "max_states" in text
    assert "seconds after which the best structure so far is returned" in text
    assert "Structures compared, averaged and searched." in text


def test_printed_probabilities_of_arcs(table):
    lines = str(lk.edge_posterior(table)).splitlines()
    assert lines[0] == "probabilities of arcs between 4 variables, summed over orders"
    assert len(lines) == 12
    shown = [float(line.split()[0]) for line in lines[1:-1]]
    assert shown == sorted(shown, reverse=True)
    assert lines[-1] == "… and 2 more"


def test_arcs_that_constraints_settle_are_arcs_of_the_class():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 500)
    b = np.where(rng.random(500) < 0.9, a, 1 - a)
    c = np.where(rng.random(500) < 0.9, b, 1 - b)
    chain = lk.Table.from_array(np.stack([a, b, c], axis=1), columns=list("abc"))
    assert lk.search(chain).cpdag.directed == frozenset()
    assert lk.search(chain, tiers=[["b"], ["c"]]).cpdag.directed == {("b", "c")}
    # Nothing else points to b than a, so that b -> c follows.
    assert lk.search(chain, tiers=[["a"], ["b"]]).cpdag.directed == {("a", "b"), ("b", "c")}
    assert lk.search(chain, required="c -> b").cpdag.directed == {("c", "b"), ("b", "a")}
