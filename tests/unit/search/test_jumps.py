"""Shares of draws agree with exact posteriors over small spaces of structures."""

import itertools

import numpy as np
import pytest
from scipy.special import softmax

import lurking as lk
from lurking.errors import LurkingWarning, OptionError, StructureError, UnknownNameError
from lurking.runtime.executor import StopFlag
from lurking.samplers.frequencies import batches, mean_error, share_errors

LEVELS = dict.fromkeys("abc", (0, 1))
ROWS = [(0, 1, 0), (1, 1, 1), (0, 0, 0), (1, 0, 1), (1, 1, 1), (0, 0, 1), (None, 1, 1)]
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS)


def all_dags(nodes):
    pairs = list(itertools.permutations(nodes, 2))
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        try:
            yield lk.Dag(nodes, itertools.compress(pairs, chosen))
        except StructureError:
            continue


def check(found, dags, prior, log_prior=lambda _dag: 0.0):
    """Compare shares with exact probabilities, each within 4 of its standard errors."""
    dags = list(dags)
    exact = softmax([lk.score(dag, TABLE, "exact", prior=prior).log_z + log_prior(dag) for dag in dags])
    shares = {(frozenset(own.dag.edges), tuple(own.dag.hidden.items())): own for own in found}
    assert len(found) <= len(dags)
    assert sum(own.probability for own in found) == pytest.approx(1.0)
    for dag, probability in zip(dags, exact, strict=True):
        own = shares.get((frozenset(dag.edges), tuple(dag.hidden.items())))
        # A structure that few draws were at has no error to speak of: that of independent draws is the least it can be.
        least = np.sqrt(probability * (1.0 - probability) / found.visits.size)
        share, error = (0.0, least) if own is None else (own.probability, max(own.std_error, least))
        assert abs(share - probability) < 4.0 * error, dag
    return exact


def test_all_structures_of_three_observed_variables():
    prior = lk.Prior.bdeu(2.0)
    found = lk.sample_structures(TABLE, "a; b; c", prior=prior, draws=400, burn_in=20, seed=1)
    check(found, all_dags(list("abc")), prior)
    assert found.visits.shape == (4, 400)
    assert found.best.probability == max(own.probability for own in found)
    arc = found.expectation(lambda dag: float(("a", "c") in dag.edges))
    assert arc.mean == pytest.approx(found.edge_probability("a", "c"))
    assert 0.98 < arc.r_hat < 1.05
    # Differences of log_z are log Bayes factors.
    first, second = found.ranked()[:2]
    assert first.evidence.log_z - second.evidence.log_z == pytest.approx(np.log(first.probability / second.probability))


def test_children_and_states_of_a_hidden_variable_with_a_prior():
    def log_prior(dag):
        return 0.4 * len(dag.edges) - 0.2 * dag.hidden["h"]

    found = lk.sample_structures(
        TABLE,
        "h[2]; a; b; c",
        states={"h": 3},
        log_prior=log_prior,
        among_observed=False,
        draws=300,
        burn_in=20,
        seed=2,
    )
    dags = [
        lk.Dag(["h", *"abc"], [("h", name) for name in itertools.compress("abc", chosen)], {"h": states})
        for states in (1, 2, 3)
        for chosen in itertools.product((False, True), repeat=3)
    ]
    exact = check(found, dags, 1.0, log_prior)
    states = found.states_probabilities("h")
    for k in (1, 2, 3):
        error = found.expectation(lambda dag, k=k: float(dag.hidden["h"] == k)).std_error
        assert abs(states[k] - sum(p for p, dag in zip(exact, dags, strict=True) if dag.hidden["h"] == k)) < 4 * error
    assert {"arcs", "h -> a", "h[3]"} <= set(found.convergence())
    assert sum(own.prior for own in found) == pytest.approx(1.0)


def test_two_hidden_variables_one_the_parent_of_the_other():
    dags = []
    pairs = [("g", "h"), ("h", "g"), ("h", "a"), ("g", "a"), ("h", "b")]
    for chosen in itertools.product((False, True), repeat=5):
        if not (chosen[0] and chosen[1]):
            dags.append(lk.Dag(["g", "h", "a", "b"], itertools.compress(pairs, chosen), {"g": 2, "h": 2}))
    found = lk.sample_structures(
        TABLE,
        "g[2]; h[2]; a; b",
        forbidden="g -> b",
        among_observed=False,
        between_hidden=True,
        draws=300,
        burn_in=20,
        seed=3,
    )
    check(found, dags, 1.0)


@pytest.mark.filterwarnings("ignore:the chains have not settled")
def test_results_depend_on_the_seed_and_not_on_the_number_of_workers():
    runs = [
        lk.sample_structures(TABLE, "h[2] -> a b; c", states={"h": 3}, chains=2, draws=20, burn_in=0, seed=s, workers=w)
        for s, w in ((0, 1), (0, 2), (1, 1))
    ]
    names = [[run.candidates[k].name for k in run.visits.ravel()] for run in runs]
    assert names[0] == names[1]
    assert names[0] != names[2]


@pytest.mark.filterwarnings("ignore:the chains have not settled")
def test_required_arcs_stay_and_forbidden_ones_never_come():
    found = lk.sample_structures(
        TABLE, "h[2] -> a; b; c", required="h -> a", forbidden="a -> b", max_parents=1, draws=30, burn_in=0, chains=1
    )
    for own in found:
        assert ("h", "a") in own.dag.edges
        assert ("a", "b") not in own.dag.edges
        assert not own.dag.parents("h")
        assert max(len(own.dag.parents(name)) for name in own.dag.nodes) <= 1


@pytest.mark.filterwarnings("ignore:the chains have not settled")
def test_an_interrupt_keeps_the_chains_that_were_finished(monkeypatch):
    from lurking.search import jumps

    calls, walk = itertools.count(), jumps._walk

    def interrupted(*given):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return walk(*given)

    for keep in (True, False):
        calls = itertools.count()
        monkeypatch.setattr(jumps, "_walk", interrupted)
        options = {"draws": 5, "burn_in": 0, "workers": 1, "keep_interrupted": keep}
        if keep:
            assert lk.sample_structures(TABLE, "a; b; c", **options).visits.shape == (2, 5)
        else:
            with pytest.raises(KeyboardInterrupt):
                lk.sample_structures(TABLE, "a; b; c", **options)


def test_a_flag_ends_chains_early():
    looks = itertools.count(1)

    class Counted(StopFlag):
        """Is set once it has been looked at a hundred times."""

        @property
        def is_set(self):
            if next(looks) == 100:
                self.set()
            return bool(self.array[0])

    with pytest.raises(KeyboardInterrupt):
        lk.sample_structures(TABLE, "a; b; c", draws=10**7, stop=Counted(), keep_interrupted=True, workers=1)


@pytest.mark.parametrize(
    ("start", "options", "error", "words"),
    [
        ("h[2] -> a b", {"states": {"a": 3}}, UnknownNameError, "hidden variable 'a'"),
        ("h[4] -> a b", {"states": {"h": 3}}, OptionError, "starts with 4 states"),
        ("h[2] -> a b", {"states": {"h": (3, 2)}}, OptionError, "most states of 'h'"),
        ("a -> h[2] -> b", {}, StructureError, "'a' -> 'h'"),
        ("h[2] -> a b", {"required": "a -> h"}, StructureError, "from an observed variable to a hidden one"),
        ("h[2] -> a b; g[2]", {"required": "h -> g"}, StructureError, "only with between_hidden=True"),
        ("a; b; c", {"required": "a -> b", "among_observed": False}, StructureError, "leave out among_observed=False"),
        ("h[2] -> a b", {"draws": 0}, OptionError, "draws is 0"),
        ("h[2] -> a b", {"log_prior": lambda _dag: -np.inf}, StructureError, "rules the start out"),
        ("h[2] -> a b", {"prior": lk.Prior.from_counts({})}, OptionError, "fits every structure"),
    ],
)
def test_what_cannot_be_sampled_is_refused(start, options, error, words):
    with pytest.raises(error, match=words):
        lk.sample_structures(TABLE, start, **options)


def test_errors_by_batches():
    assert len(np.unique(batches(4, 1000))) == 40
    values = np.random.default_rng(0).normal(size=(4, 1000))
    assert mean_error(values) == pytest.approx(1 / np.sqrt(4000), rel=0.35)
    visits = np.random.default_rng(0).integers(0, 2, size=(4, 1000))
    assert share_errors(visits, 2)[0] == pytest.approx(mean_error((visits == 0).astype(float)), rel=1e-12)


def test_an_error_that_a_single_batch_does_not_show_is_infinite():
    found = lk.sample_structures(TABLE, "a; b; c", chains=1, draws=3, burn_in=2, seed=0, workers=1)
    assert len(found) > 1
    assert found.best.std_error == found.best.evidence.std_error == np.inf
    assert found.expectation(lambda dag: len(dag.edges)).std_error == np.inf
    assert found.ranges.tolist() == [[0.0, 1.0]] * len(found)
    assert "± inf" in str(found)
    assert mean_error(np.arange(3.0)[None, :]) == np.inf


def test_an_outcome_prints_the_most_visited_structures():
    found = lk.sample_structures(TABLE, "a; b; c", chains=2, draws=400, burn_in=50, seed=0)
    lines = str(found).splitlines()
    assert lines[0].startswith(f"{len(found)} structures in 2 chains of 400 draws")
    assert lines[1].endswith(found.best.name)
    assert len(lines) <= 12
    assert len(repr(found)) < 200


def test_chains_that_have_not_settled_are_told_of():
    with pytest.warns(LurkingWarning, match="have not settled on the number of arcs or states: R-hat") as told:
        lk.sample_structures(lk.stouffer_toby(), "c[2] -> *", chains=2, draws=20, burn_in=0, workers=1)
    assert len(told) == 1
    assert told[0].filename == __file__
