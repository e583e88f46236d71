"""Which of two structures is kept."""

import numpy as np
import pytest

import lurking as lk
from lurking.evidence.base import Evidence, Kind
from lurking.graph.structure_priors import UNIFORM
from lurking.learn.loop import Status
from lurking.search.constraints import Constraints
from lurking.search.contest import Contest
from lurking.search.judge import Judge

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
    contest.enter(lk.Dag.parse("a b c d"), "less", sampled(-50.1), simpler=True)
    assert contest.now == FULL
