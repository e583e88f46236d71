"""Searches with hidden variables that are stopped, go on, begin somewhere, or meet what is too large."""

from unittest.mock import Mock

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingWarning, TooLarge, UndefinedScore
from lurking.evidence.base import Kind
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Silent
from lurking.runtime.store import Store
from lurking.search import inventing, local_trials
from lurking.search import judge as judge_module
from lurking.search.clock import Clock
from lurking.search.judge import Judge

ANSWERS = [[0.85, 0.15], [0.2, 0.8]]
OPTIONS = {"hidden": 1, "seed": 0, "target": 0.5}


def drawn(text, rows, seed=0, **tables):
    dag = lk.Dag.parse(text)
    whole = dict.fromkeys(dag.observed, ANSWERS) | {name: [[0.5, 0.5]] for name in dag.hidden} | tables
    return lk.Network.from_tables(dag, whole, levels={name: [0, 1] for name in dag.observed}).sample(rows, seed=seed)


def one_cause():
    return drawn("h[2] -> a b c d", 600)


def nearly_tied():
    """Return a table on which two proposals lead to one structure, its variables in a different order."""
    sides = {name: [[0.8, 0.2], [0.25, 0.75]] for name in "abce"}
    last = [[0.9, 0.1], [0.5, 0.5], [0.4, 0.6], [0.1, 0.9]]
    return drawn("h[2] -> a b c d e; e -> d", 500, h=[[0.4, 0.6]], d=last, **sides)


def with_holes():
    rng = np.random.default_rng(0)
    kind = rng.random(400) < 0.5
    rows = (rng.random((400, 5)) < np.where(kind[:, None], 0.9, 0.1)).astype(int).astype(object)
    rows[rng.random(rows.shape) < 0.15] = None
    return lk.Table.from_rows(rows.tolist(), columns=list("abcde"))


@pytest.fixture(scope="module")
def found():
    return lk.search(one_cause(), **OPTIONS)


@pytest.mark.parametrize(
    "table",
    [pytest.param(one_cause(), id="one cause"), pytest.param(nearly_tied(), id="nearly tied", marks=pytest.mark.long)],
)
def test_a_store_gives_everything_back(tmp_path, table, monkeypatch):
    alone = lk.search(table, **OPTIONS)
    with Store(tmp_path / "search.sqlite") as store:
        first = lk.search(table, **OPTIONS, store=store)
        kept = len(store)
        for place in (inventing, local_trials):
            monkeypatch.setattr(place, "structural_em", Mock(side_effect=AssertionError))
        monkeypatch.setattr(judge_module, "evaluate", Mock(side_effect=AssertionError))
        again = lk.search(table, **OPTIONS | {"seed": np.int64(0)}, store=store)
        assert len(store) == kept
        monkeypatch.undo()
        other = lk.search(table, **OPTIONS, max_parents=1, store=store)
    for result in (first, again):
        assert (result.best, result.score, result.n_evaluated) == (alone.best, alone.score, alone.n_evaluated)
        assert [str(trial) for trial in result.history] == [str(trial) for trial in alone.history]
    assert max(len(other.best.parents(name)) for name in other.best.nodes) == 1


class Stopper(Silent):
    """Sets a flag after some steps of progress."""

    def __init__(self, flag, steps):
        self.flag, self.left = flag, steps

    def update(self, done):
        self.left -= 1
        if done and self.left == 0:
            self.flag.set()


@pytest.mark.parametrize("steps", [1, 6])
def test_a_search_that_was_stopped_goes_on_to_the_same_end(tmp_path, found, steps):
    flag = StopFlag()
    with Store(tmp_path / "search.sqlite") as store:
        half = lk.search(one_cause(), **OPTIONS, store=store, stop=flag, progress=Stopper(flag, steps))
        assert half.status is Status.INTERRUPTED
        assert not half.best.hidden
        again = lk.search(one_cause(), **OPTIONS, store=store)
    assert (again.best, again.score, again.n_evaluated) == (found.best, found.score, found.n_evaluated)
    assert [str(trial) for trial in again.history] == [str(trial) for trial in found.history]


def test_a_stop_or_the_time_limit_leaves_the_best_so_far():
    flag = StopFlag()
    flag.set()
    result = lk.search(one_cause(), hidden=1, stop=flag)
    assert result.status is Status.INTERRUPTED
    assert not result.best.hidden
    assert result.untried.startswith("no structure with a hidden variable was evaluated before the search was stopped")
    late = lk.search(one_cause(), hidden=1, time_limit=1e-9)
    assert late.status is Status.TIME_LIMIT


@pytest.mark.parametrize("table", [one_cause(), with_holes()], ids=["complete", "with empty cells"])
def test_a_search_without_time_for_hidden_variables_claims_nothing_about_them(table):
    late = lk.search(table, hidden="auto", time_limit=1e-6)
    assert late.posterior is None
    assert late.evidence is not None
    assert late.untried == (
        "no structure with a hidden variable was evaluated within the time limit, so nothing is known about hidden "
        "variables; give a higher time_limit"
    )
    assert str(late).splitlines()[-1] == f"note: {late.untried}"


def test_a_search_that_tried_hidden_variables_or_may_not_has_its_posterior(found):
    assert found.untried is None
    assert found.posterior is not None
    without = lk.search(with_holes(), hidden=0, time_limit=1e-6)
    assert without.untried is None
    assert without.posterior is not None


def test_data_that_cannot_carry_a_hidden_variable_say_nothing_about_one():
    rows = [[0, 0], [0, None], [1, 1], [1, 1], [0, 0], [None, 1], [1, 1], [0, 0]] * 8
    with pytest.warns(LurkingWarning, match="no hidden variable is tried"):
        result = lk.search(lk.Table.from_rows(rows, columns=["a", "b"]), hidden="auto", seed=0, target=0.5)
    assert result.posterior is None
    assert "too few columns or rows" in result.untried


@pytest.mark.parametrize("hidden", [0, 1])
@pytest.mark.parametrize("seconds", [1e-6, 0.05, 0.2, 0.4, 0.8])
def test_the_time_limit_never_costs_the_result_on_a_table_with_empty_cells(hidden, seconds):
    result = lk.search(with_holes(), hidden, time_limit=seconds, seed=0)
    assert result.status in (Status.TIME_LIMIT, Status.LOCAL_OPTIMUM)
    assert set(result.best.observed) == set("abcde")


def test_what_an_interrupt_leaves_unsampled_comes_back_with_its_bound(monkeypatch):
    monkeypatch.setattr(Judge, "evidence", Mock(side_effect=KeyboardInterrupt))
    result = lk.search(with_holes(), 1, seed=0)
    assert (result.status, result.evidence.kind) == (Status.INTERRUPTED, Kind.LOWER_BOUND)
    assert result.score <= lk.score(result.best, with_holes(), "vb", prior=1.0).log_z + 1e-6
    assert len(result.best.edges) > 3


def test_a_sampler_that_is_stopped_before_it_has_a_value_leaves_the_bound(monkeypatch):
    def stopped(judge, *_given):
        judge.stop.set()
        raise UndefinedScore("its chains leave it open by inf nats")

    monkeypatch.setattr(Judge, "evidence", stopped)
    result = lk.search(with_holes(), 1, seed=0)
    assert (result.status, result.evidence.kind) == (Status.INTERRUPTED, Kind.LOWER_BOUND)


@pytest.mark.parametrize("start", [None, "k[2] -> a b c d e"])
def test_what_is_too_large_to_sample_is_judged_by_its_bound(monkeypatch, start):
    monkeypatch.setattr(Judge, "evidence", Mock(side_effect=TooLarge("too many joint states")))
    with pytest.warns(
        LurkingWarning, match="judged by a bound, and no hidden variable is tried: too many joint states"
    ):
        result = lk.search(with_holes(), 1, start=start, seed=0)
    assert result.evidence.kind is Kind.LOWER_BOUND
    assert result.score == pytest.approx(lk.score(result.best, with_holes(), "vb", prior=1.0, seed=0).log_z, abs=0.01)
    assert bool(result.best.hidden) is (start is not None)


def test_a_start_over_columns_with_empty_cells_is_judged_first():
    generator = np.random.default_rng(3)
    first = generator.integers(0, 2, 14)
    second = np.where(generator.random(14) < 0.8, first, 1 - first)
    third = np.where(generator.random(14) < 0.8, second, 1 - second)
    rows = np.stack([first, second, third], axis=1).astype(object)
    rows[generator.random(rows.shape) < 0.45] = None
    table = lk.Table.from_rows(rows.tolist(), columns=list("abc"), levels={name: [0, 1] for name in "abc"})
    start = lk.Dag.parse("a -> b c; b -> c")
    result = lk.search(table, start=start, seed=0, target=0.02)
    assert result.history[0].dag.same_structure(start)
    # Two standard errors of the difference are what sampled evidence leaves open.
    assert lk.score(result.best, table, "exact").log_z >= lk.score(start, table, "exact").log_z - 0.06


def test_the_clock_never_sets_the_flag_of_the_caller():
    flag = StopFlag()
    with Clock(1e-4, flag) as clock:
        while not clock.is_over:
            pass
        assert clock.ending is Status.TIME_LIMIT
    assert not flag.is_set


@pytest.mark.parametrize("seconds", [1e-6, 0.05, 0.5, None])
def test_the_outcome_is_not_below_a_start_with_hidden_variables(seconds):
    """Whatever the time allows: a start that could not be sampled comes back with its bound."""
    rng = np.random.default_rng(0)
    kind = rng.random(2000) < 0.5
    rows = (rng.random((2000, 6)) < np.where(kind[:, None], 0.9, 0.1)).astype(int).tolist()
    table = lk.Table.from_rows(rows, columns=list("abcdef"))
    start = "k[2] -> a b c d e f"
    found = lk.search(table, 1, start=start, time_limit=seconds, seed=0)
    value = lk.score(start, table, "vb").log_z
    assert len(found.best.hidden) == 1
    assert found.score > lk.search(table, 0, score="bd").score
    assert found.evidence.kind is Kind.LOWER_BOUND or found.score > value
    if seconds == 1e-6:
        assert (found.evidence.kind, found.status) == (Kind.LOWER_BOUND, Status.TIME_LIMIT)
        assert found.score <= value + 1e-6
