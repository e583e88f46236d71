"""Bayes factors and their words."""

import math

import pytest

import lurking as lk
from lurking.errors import UnknownNameError
from lurking.learn.loop import Status
from lurking.search.bayes_factors import BayesFactor, are_mixed


def factor(log_factor, error=None, kinds=(lk.Kind.EXACT, lk.Kind.EXACT)):
    return BayesFactor("x", "y", log_factor, error, kinds)


@pytest.mark.parametrize(
    ("value", "word", "jeffreys"),
    [
        (1.0, "not worth more than a bare mention", "not worth more than a bare mention"),
        (2.99, "not worth more than a bare mention", "not worth more than a bare mention"),
        (3.2, "positive", "substantial"),
        (19.9, "positive", "strong"),
        (20.1, "strong", "strong"),
        (149.0, "strong", "decisive"),
        (151.0, "very strong", "decisive"),
        (1e300, "very strong", "decisive"),
    ],
)
def test_words(value, word, jeffreys):
    for sign, name in ((1.0, "x"), (-1.0, "y")):
        found = factor(sign * math.log(value))
        assert found.strength() == word
        assert found.strength("jeffreys") == jeffreys
        assert found.favours == (name if value > 1 else "x")
    assert factor(math.log(value)).factor == pytest.approx(value)
    with pytest.raises(UnknownNameError, match="kass-raftery, jeffreys"):
        factor(0.0).strength("kass")


def test_errors_add_in_squares_and_blur_the_words():
    first = lk.Evidence(-10.0, 0.0, 0.3, lk.Kind.ESTIMATE, "ais")
    second = lk.Evidence(-13.2, 0.0, 0.4, lk.Kind.ESTIMATE, "ais")
    exact = lk.Evidence(-13.2, 0.0, None, lk.Kind.EXACT, "ais")
    found = BayesFactor.between("x", first, "y", second)
    assert found.log_factor == pytest.approx(3.2)
    assert found.std_error == pytest.approx(0.5)
    assert found.strength() == "positive to strong"
    assert BayesFactor.between("x", first, "y", exact).std_error == pytest.approx(0.3)
    assert BayesFactor.between("x", exact, "y", exact).std_error is None
    assert BayesFactor.between("x", first, "x", first).std_error is None
    assert factor(0.1, error=math.inf).strength() == "not worth more than a bare mention to very strong"


def test_a_value_that_is_not_trusted_leaves_the_strength_unknown():
    doubted = lk.Evidence(-10.0, 0.0, 0.01, lk.Kind.ESTIMATE, "chib", status=Status.UNTRUSTED)
    exact = lk.Evidence(-160.0, 0.0, None, lk.Kind.EXACT, "exact")
    for found in (BayesFactor.between("x", doubted, "y", exact), BayesFactor.between("y", exact, "x", doubted)):
        assert (found.std_error, found.is_trusted, found.strength()) == (None, False, "unknown")
        assert "± ?); evidence for 'x': unknown (not trusted: one of the values may be far off)" in str(found)
    assert BayesFactor.between("y", exact, "y", exact).is_trusted


def test_kinds():
    bound = factor(2.0, kinds=(lk.Kind.LOWER_BOUND, lk.Kind.EXACT))
    assert bound.is_mixed
    assert "Bayes factor at least 7.39" in str(bound)
    assert "at most" in str(factor(2.0, kinds=(lk.Kind.EXACT, lk.Kind.LOWER_BOUND)))
    assert not factor(2.0, kinds=(lk.Kind.EXACT, lk.Kind.ESTIMATE)).is_mixed
    assert are_mixed([lk.Kind.ASYMPTOTIC, lk.Kind.EXACT])
    assert not are_mixed([lk.Kind.LOWER_BOUND, lk.Kind.LOWER_BOUND])


def test_a_factor_beyond_every_float_is_finite():
    assert math.isfinite(factor(5000.0).factor)
    assert factor(-5000.0).factor == 0.0
    assert "e^5000" in str(factor(5000.0))
