"""Which of two structures is kept."""

from dataclasses import replace

import numpy as np
import pytest

import lurking as lk
from lurking.evidence.base import Evidence, Kind
from lurking.graph.structure_priors import UNIFORM
from lurking.learn.loop import Status
from lurking.search.constraints import Constraints
from lurking.search.contest import Contest
from lurking.search.judge import Judge, is_better

FULL, LEAN = lk.Dag.parse("h[2] -> a b c d; a -> b"), lk.Dag.parse("h[2] -> a b c d")


@pytest.fixture
def contest():
    rows = np.random.default_rng(0).integers(0, 2, (20, 4)).tolist()
    table = lk.Table.from_rows(rows, columns=list("abcd"))
    return Contest(Judge(table, 1.0), UNIFORM, Constraints.from_options(table.columns))


def sampled(value: float, error: float = 0.2, status: Status = Status.CONVERGED) -> Evidence:
    return Evidence(value, 0.0, error, Kind.ESTIMATE, "ais", status=status)


@pytest.mark.parametrize(
    ("first", "second", "ahead", "is_kept"),
    [
        (LEAN, FULL, 0.4, False),  # two standard errors of the difference are 0.57
        (LEAN, FULL, 0.7, True),
        (FULL, LEAN, 0.4, True),
        (FULL, LEAN, -0.1, False),
    ],
)
def test_more_parameters_must_be_ahead_by_more_than_the_errors(contest, first, second, ahead, is_kept):
    contest.enter(first, "trial", sampled(-50.0))
    contest.enter(second, "trial", sampled(-50.0 + ahead))
    assert contest.now == (second if is_kept else first)
    assert [trial.is_kept for trial in contest.history] == [True, is_kept]


def test_values_that_are_not_trusted_do_not_make_a_leaner_structure_the_kept_one(contest):
    contest.enter(FULL, "trial", sampled(-50.0))
    contest.enter(LEAN, "trial", sampled(-49.6, status=Status.UNTRUSTED))
    assert contest.now == FULL


def test_nothing_below_a_start_is_kept(contest):
    contest.enter(FULL, "start", sampled(-50.0))
    contest.enter(lk.Dag.parse("a b c d"), "less", sampled(-50.1))
    assert contest.now == FULL


def test_fewer_hidden_variables_are_kept_unless_more_are_ahead_by_more_than_the_errors(contest):
    two = lk.Dag.parse("h[2] -> a b g[2]; g -> c d")
    contest.enter(two, "trial", sampled(-50.0))
    contest.enter(LEAN, "trial", sampled(-50.9))
    assert contest.now == two
    contest.enter(FULL, "trial", sampled(-50.4))
    assert contest.now == FULL


def test_a_simpler_structure_is_compared_with_all_that_were_judged(contest):
    two, further = lk.Dag.parse("h[2] -> a b; g[2] -> c d"), lk.Dag.parse("h[2] -> a b c; g[2] -> c d")
    contest.enter(two, "trial", sampled(-50.0, 0.3))
    contest.enter(further, "trial", sampled(-49.3, 0.3))
    assert contest.now == two  # two standard errors of the difference are 0.85
    contest.enter(LEAN, "trial", sampled(-50.8, 0.3))
    assert contest.now == two
    kept, *others = (trial for trial in contest.history if trial.outdone_by is None)
    assert not any(is_better(other.evidence, kept.evidence) for other in others)


def test_members_of_one_class_are_one_structure_of_the_contest(contest):
    members = [lk.Dag.parse(text) for text in ("a -> h[2] -> b c d", "d -> h[2] -> a b c")]
    first = contest.representative(members[0])
    assert set(first.edges) == set(LEAN.edges)
    # Its fit begins with that of the member, whose tables are turned.
    assert contest.judge.fit(first).objective >= contest.judge.fit(LEAN).objective - 1e-6
    contest.enter(first, "trial", sampled(-50.0))
    assert contest.is_known(contest.representative(members[1]))
    assert contest.history[0].lines == {frozenset(("h", name)) for name in "abcd"}
    assert str(contest.history[0]).startswith("h[2] -- a b c d (trial): ")


def test_nothing_takes_the_place_of_a_bound_nor_does_a_bound(contest):
    bound = Evidence(-50.0, 0.0, None, Kind.LOWER_BOUND, "vb")
    contest.enter(FULL, "start", bound)
    contest.enter(lk.Dag.parse("a b c d"), "start", sampled(-40.0))
    assert contest.now == FULL
    assert not is_better(replace(bound, log_z=-10.0), sampled(-40.0))
