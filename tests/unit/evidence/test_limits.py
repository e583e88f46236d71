"""Values that cannot be right."""

import math
import re

import pytest

import lurking as lk
from lurking.errors import UndefinedScore
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.limits import checked, refuse_inapplicable
from lurking.learn.loop import Status


def value(log_z, error=None, status=Status.SAMPLED, **parts):
    return Evidence(log_z, 0.0, error, Kind.ESTIMATE, "name", parts, status)


@pytest.mark.parametrize(
    "evidence",
    [
        value(-3.0),
        value(0.0),
        value(1e-9),
        value(0.001, loglik=-1e12),  # rounding of so large a term
        value(0.4, 0.1),
        value(4.0, 1.0, Status.BUDGET),
        value(0.9, 3.0, Status.UNTRUSTED),
        value(-30.0, 900.0, Status.UNTRUSTED),
        value(-5000.0, 1500.0, Status.INTERRUPTED),
    ],
)
def test_values_that_may_be_right_are_returned(evidence):
    assert checked(evidence, 5.0) is evidence


@pytest.mark.parametrize(
    "evidence",
    [
        value(0.01),
        value(0.6, 0.1),
        value(1.1, 3.0, Status.UNTRUSTED),  # an error that is not trusted excuses little
        value(17826.0, 2866.0, Status.UNTRUSTED),
    ],
)
def test_a_value_above_0_is_refused(evidence):
    with pytest.raises(UndefinedScore, match=re.escape(f"name is above 0 here ({evidence.log_z:.4g})")):
        checked(evidence, 5.0)


@pytest.mark.parametrize("kind", [Kind.ASYMPTOTIC, Kind.PLUG_IN])
def test_a_formula_above_0_keeps_its_number_but_is_not_reported(kind):
    evidence = checked(Evidence(2.5, 0.0, None, kind, "name"), 5.0)
    assert (evidence.log_z, evidence.status) == (2.5, Status.INAPPLICABLE)
    with pytest.raises(UndefinedScore, match=re.escape("name is above 0 here (2.5)")):
        refuse_inapplicable(evidence)
    below = Evidence(-2.5, 0.0, None, kind, "name")
    assert refuse_inapplicable(checked(below, 5.0)) is below
    with pytest.raises(UndefinedScore, match=r"name is -2.5 on no data, whose log evidence is 0"):
        refuse_inapplicable(checked(below, 0.0))


@pytest.mark.parametrize("error", [1e22, math.inf])
def test_a_value_that_its_chains_leave_open_is_refused(error):
    with pytest.raises(UndefinedScore, match="leave it open"):
        checked(value(-3e11, error, Status.UNTRUSTED), 5.0)


def test_a_single_chain_without_a_known_error_has_a_value():
    alone = Evidence(-3.0, 0.0, math.inf, Kind.ESTIMATE, "ais", {}, Status.UNTRUSTED, {"chains": 1})
    assert checked(alone, 5.0) is alone


@pytest.mark.parametrize("name", ["ais", "importance"])
def test_pseudo_counts_that_leave_no_digits_are_refused(name):
    table = lk.Table.from_rows([(0, 1), (1, None), (1, 1)], ["a", "b"])
    with pytest.raises(UndefinedScore, match=rf"{name} has no value with pseudo-counts that sum to 2e\+12"):
        lk.score("s[2] -> a b", table, name, prior=1e12, seed=0)
    found, exact = (lk.score("s[2] -> a b", table, one, prior=4e8, seed=0) for one in (name, "exact"))
    assert found.log_z == pytest.approx(exact.log_z, abs=2e-3)
