"""Structural EM: expected gains are lower bounds, the score is the score of what is returned, nothing falls."""

import itertools

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingError, TooLarge
from lurking.graph.moves import MoveKind
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Silent
from lurking.search.constraints import Constraints
from lurking.search.direct import neighbours
from lurking.search.expected import ExpectedScores
from lurking.search.families import FamilyScores, score_of
from lurking.search.structural_em import completion_of, expected_gain, structural_em
from lurking.search.structures import arranged_constraints, from_hidden_only, start_structure

SHARP = {"max_iter": 5000, "tol": 1e-12}


def mixture(seed, n=300, empty=0.0):
    """Two classes with four noisy copies, and two columns that have nothing to do with them."""
    copies = {name: [[0.85, 0.15], [0.2, 0.8]] for name in "abcd"}
    dag = lk.Dag.parse("h[2] -> a b c d; e; f")
    network = lk.Network.from_tables(dag, {"h": [[0.4, 0.6]], **copies, "e": [[0.3, 0.7]], "f": [[0.2, 0.3, 0.5]]})
    table = network.sample(n, seed=seed)
    rng = np.random.default_rng(seed)
    columns = {}
    for name in table.columns:
        codes = np.where(rng.random(n) < empty, -1, table[name].codes)
        columns[name] = codes, table[name].levels
    return lk.Table.from_codes(columns)


def expected_of(fit, score):
    return ExpectedScores(completion_of(fit), score, lk.Prior.symmetric(1.0))


def test_on_complete_data_expected_scores_are_the_scores_of_families():
    table = mixture(0)
    fit = lk.fit(lk.Dag(table.columns), table, method="map")
    for name, family, prior in [("bic", "bic", None), ("cs", "bd", 1.0), ("vb", "bd", 1.0)]:
        ours, theirs = expected_of(fit, name), FamilyScores(table, family, prior)
        for node, parents in [(0, ()), (5, (0, 2)), (1, (3, 4, 5))]:
            assert ours.score(node, parents) == pytest.approx(theirs.score(node, parents), rel=1e-12)
    dag = lk.Dag(table.columns, [("a", "b"), ("a", "f"), ("b", "f")])
    assert score_of(expected_of(fit, "map"), dag) == pytest.approx(lk.fit(dag, table, method="map").objective)


def test_families_in_large_tables_score_the_same(monkeypatch):
    table = mixture(1, 60, empty=0.2)
    fit = lk.fit("h[3] -> *", table, method="map", restarts=1)
    families = [(1, (0, 2, 6)), (6, (1, 2, 3, 4)), (0, (5, 6))]
    whole = {name: [expected_of(fit, name).score(*family) for family in families] for name in ("bic", "map", "vb")}
    monkeypatch.setattr("lurking.inference.completion.DENSE_CELLS", 0)
    monkeypatch.setattr("lurking.inference.completion.DENSE_CELLS_PER_ROW", 0)
    for name, values in whole.items():
        np.testing.assert_allclose([expected_of(fit, name).score(*family) for family in families], values, rtol=1e-12)


@pytest.mark.parametrize("empty", [0.0, 0.15])
@pytest.mark.parametrize("score", ["map", "vb"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_neighbour_gains_less_than_expected(score, seed, empty):
    """Friedman's inequality for all single moves; with empty cells the bound needs the same cells in all structures."""
    table = mixture(seed, 120, empty)
    dag = lk.Dag.parse("h[2] -> a b c; c -> d; e -> f")
    fit = lk.fit(dag, table, method=score, restarts=5, prune=False, **SHARP)
    scorer = expected_of(fit, score)
    everything = list(neighbours(dag, Constraints.from_options(dag.nodes)))
    assert {move.kind for move, _ in everything} == set(MoveKind)
    for _, other in everything[seed::4]:
        promised = expected_gain(scorer, dag, other, prune=False)
        warm = {name: np.exp(phi) for name, phi in scorer.potentials(other).items()}
        init = {name: table / table.sum(axis=1, keepdims=True) for name, table in warm.items()}
        true = lk.fit(other, table, method=score, init=init, restarts=3, prune=False, **SHARP).objective
        assert true - fit.objective >= promised - 1e-6


@pytest.mark.parametrize("weight", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("score", ["map", "vb"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("h[3] -> a b c; d e f", "a b c d e f -> h[3]"),
        ("a b c d e f -> h[3]", "d -> h[3]; h -> a b c; e f"),
        ("h[3] -> a b c d; g[2]; e f -> g", "a b c -> h[3]; g[2] -> d e f"),
    ],
)
def test_promises_are_kept_where_hidden_variables_become_barren_or_cease_to_be(old, new, score, weight):
    """A barren variable has no share in the true score, whatever the prior of its many parameters says."""
    table, prior = mixture(0, 60), lk.Prior.symmetric(weight)
    before, after = (lk.Dag.parse(text) for text in (old, new))
    fit = lk.fit(before, table, method=score, prior=prior, restarts=10, **SHARP)
    scorer = ExpectedScores(completion_of(fit), score, prior)
    after = lk.Dag(before.nodes, after.edges, after.hidden)
    true = lk.fit(after, table, method=score, prior=prior, restarts=30, **SHARP).objective - fit.objective
    promised = expected_gain(scorer, before, after)
    assert true >= promised - 1e-6


def test_a_variable_that_was_barren_costs_what_its_completion_does_not_know():
    """Where h leaves nothing but the columns behind, the promise is their gain less at most the entropy of h."""
    table = mixture(0, 60)
    before, after = lk.Dag.parse("h[3] -> a b c; d e f"), lk.Dag.parse("h[3]; a b c d e f")
    fit = lk.fit(before, table, method="map", restarts=10, **SHARP)
    scorer = expected_of(fit, "map")
    joint = scorer.best_log_likelihood(0, ())
    alone = sum(scorer.score(k, ()) for k in range(1, 7))
    own = score_of(scorer, before)
    assert expected_gain(scorer, before, after) == pytest.approx(alone + joint - own, rel=1e-12)
    counts = np.asarray(completion_of(fit).table([0])).ravel()
    assert joint == pytest.approx(float((counts * np.log(counts / counts.sum())).sum()), rel=1e-12)


@pytest.mark.parametrize("score", ["map", "vb"])
@pytest.mark.parametrize("seed", range(4))
def test_search_keeps_its_promises(score, seed):
    result = structural_em(mixture(seed), lk.Dag.parse("h[2] -> *"), score=score, perturbations=2, **SHARP)
    assert result.violations == 0
    assert result.status is Status.LOCAL_OPTIMUM
    kept = [entry.score for entry in result.history if entry.is_kept]
    assert kept == sorted(kept)
    assert len(kept) > 1
    for entry in result.history[1:]:
        assert entry.score >= entry.expected - 1e-6


def test_violations_are_counted():
    """Cheeseman-Stutz is no penalised likelihood; what a round fails to keep is counted, and nothing falls."""
    for seed in range(3):
        result = structural_em(mixture(seed, 60, 0.2), lk.Dag.parse("h[3] -> *"), score="cs", restarts=3)
        slack = 100 * 1e-8 * 60
        assert result.violations == sum(entry.score < entry.expected - slack for entry in result.history)
        assert result.score >= result.history[0].score


@pytest.mark.parametrize("score", ["bic", "cs", "vb"])
@pytest.mark.parametrize("empty", [0.0, 0.1])
def test_score_is_the_score_of_what_is_returned(score, empty):
    table = mixture(3, 200, empty)
    result = structural_em(table, lk.Dag.parse("h[2] -> *"), score=score, perturbations=2, seed=5)
    assert result.score == pytest.approx(lk.score(result.best, table, score, seed=5).log_z, abs=1e-3)
    assert result.best.hidden == {"h": 2}
    assert set(result.best.observed) == set(table.columns)
    assert result.fit.problem.full_dag == result.best


@pytest.mark.parametrize(("score", "seed"), [("cs", 16), ("cs", 18), ("bic", 6), ("bic", 9)])
def test_the_last_fit_with_all_starts_never_lowers_the_score(score, seed):
    # The fit with the highest penalised likelihood is not the one that scores highest here.
    found = structural_em(mixture(seed, 60, 0.2), "h[3] -> *", score=score, restarts=3, perturbations=2, workers=1)
    assert found.score >= max(entry.score for entry in found.history if entry.is_kept)


def test_map_is_the_penalised_likelihood():
    table = mixture(3, 200, 0.1)
    result = structural_em(table, lk.Dag.parse("h[2] -> *"), score="map", perturbations=2)
    assert result.score == pytest.approx(lk.fit(result.best, table, method="map").objective, abs=1e-3)


def test_a_hidden_variable_without_children_never_gets_one():
    table = mixture(0)
    result = structural_em(table, start_structure(table, {"h": 2}, "empty"), score="bic")
    assert result.best.children("h") == ()
    assert result.best.parents("h") == ()
    assert result.score == pytest.approx(lk.search(table, score="bic").score, abs=2.0)  # at another estimate
    full = structural_em(table, start_structure(table, {"h": 2}, "full"), score="bic")
    assert set("abcd") <= {*full.best.children("h"), *full.best.parents("h")}
    assert full.score > result.score + 1.0


def test_without_anything_unobserved_it_is_the_complete_search():
    table = mixture(2, 150)
    result = structural_em(table, lk.Dag(table.columns), score="vb", perturbations=0, patience=0)
    complete = lk.search(table, score="bd", method="greedy")
    assert result.score == pytest.approx(complete.score, rel=1e-12)
    assert set(result.best.edges) == set(complete.best.edges)


def test_constraints_hold_in_any_order_and_the_best_of_several_starts_is_returned():
    table = mixture(1)
    hidden = {"s1": 2, "s2": 2}
    allowed = from_hidden_only(hidden, table.columns)
    starts = [start_structure(table, hidden, kind, seed=1) for kind in ("empty", "random", "full")]
    each = [structural_em(table, start, constraints=allowed) for start in starts]
    both = structural_em(table, starts, constraints=allowed, workers=2)
    assert both.score == max(result.score for result in each)
    assert all(parent in hidden for parent, _ in both.best.edges)
    turned = lk.Dag((*table.columns, *hidden), starts[1].edges, hidden)
    arranged = arranged_constraints(allowed, turned)
    for x, y in itertools.product(turned.nodes, repeat=2):
        old = allowed.allowed[allowed.variables.index(x), allowed.variables.index(y)]
        assert arranged.allowed[turned.nodes.index(x), turned.nodes.index(y)] == old


def test_workers_and_seeds_never_change_a_result():
    table = mixture(4, 150, 0.1)
    start = "h[2] -> *"
    one, two = (structural_em(table, start, perturbations=3, workers=workers, seed=7) for workers in (1, 2))
    assert one.history == two.history
    assert one.score == two.score


class StopAfter(Silent):
    """Sets the flag after so many structures."""

    def __init__(self, count, flag):
        self.count, self.flag = count, flag

    def update(self, done):
        if done >= self.count:
            self.flag.set()


def test_interrupted_search_returns_the_best_so_far():
    table = mixture(0)
    flag = StopFlag()
    result = structural_em(table, lk.Dag.parse("h[2] -> *"), stop=flag, progress=StopAfter(1, flag))
    assert result.status is Status.INTERRUPTED
    assert result.score == result.history[0].score
    flag.array[0] = 0
    both = structural_em(table, lk.Dag.parse("h[2] -> *"), stop=flag, progress=StopAfter(2, flag))
    assert both.score == max(entry.score for entry in both.history) > result.score
    limited = structural_em(table, lk.Dag.parse("h[2] -> *"), time_limit=1e-9)
    assert limited.status is Status.TIME_LIMIT
    assert structural_em(table, lk.Dag.parse("h[2] -> *"), max_rounds=1).status is Status.BUDGET


def test_a_completion_that_is_too_large_ends_the_search_with_what_there_is(monkeypatch):
    table = mixture(0)
    made = []

    def once(fit):
        if made:
            raise TooLarge("too large")
        made.append(fit)
        return completion_of(fit)

    monkeypatch.setattr("lurking.search.structural_em.completion_of", once)
    result = structural_em(table, "h[2] -> *")
    assert result.status is Status.BUDGET
    assert result.score == result.history[1].score > result.history[0].score
    with pytest.raises(TooLarge):
        structural_em(table, "h[2] -> *")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "laplace"}, "score of structural EM"),
        ({"time_limit": 0}, "time_limit"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"prior": lk.Prior.from_counts({"a": [[1.0, 1.0]]})}, "fits every structure"),
        ({"constraints": Constraints.from_options(["a", "b"])}, "differ in"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options, message):
    with pytest.raises(LurkingError, match=message):
        structural_em(mixture(0, 20), lk.Dag.parse("h[2] -> *"), **options)
