"""Gamma-function kernels against SciPy, exact products and 50-digit decimals."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from lurking.kernels.cpu import special as compiled
from lurking.kernels.reference.special import dirichlet_evidence, log_rising, table_evidence

GRID = np.concatenate([np.logspace(-8, 8, 1601), [1.0, 2.0, 9.999999, 10.0, 30.0, 0.5, 1.4616321449683623]])


def compiled_log_rising(base, increment):
    lower = compiled.log_gamma_digamma(base)[0]
    return compiled.log_rising(base, lower, increment, compiled.log_gamma_digamma(base + increment)[0])


def plain_log_rising(base, increment):
    return float(log_rising(np.asarray([base]), np.asarray([increment]))[0])


def decimal_log_gamma(x, digits=50):
    """Return lnΓ(x) by recurrence and Stirling's series in decimals; the neglected terms are below 1e-36."""
    bernoulli = [(1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510)]
    with localcontext() as context:
        context.prec = digits
        x, shift = Decimal(x), Decimal(0)
        while x < 200:
            shift += x.ln()
            x += 1
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097")
        total = (x - Decimal("0.5")) * x.ln() - x + (2 * pi).ln() / 2
        for m, (top, bottom) in enumerate(bernoulli, start=1):
            total += Decimal(top) / Decimal(bottom) / (2 * m * (2 * m - 1)) / x ** (2 * m - 1)
        return total - shift


def decimal_log_rising(base, increment):
    """Return lnΓ(base + increment) − lnΓ(base) for the two doubles, subtracted before rounding."""
    with localcontext() as context:
        context.prec = 50
        return float(decimal_log_gamma(Decimal(base) + Decimal(increment)) - decimal_log_gamma(Decimal(base)))


BOTH = pytest.mark.parametrize("function", [plain_log_rising, compiled_log_rising], ids=["numpy", "numba"])


def test_log_gamma_and_digamma_on_a_log_grid():
    for x in GRID:
        log_gamma, psi = compiled.log_gamma_digamma(x)
        # Near their zeros both are compared in absolute terms.
        assert log_gamma == pytest.approx(float(gammaln(x)), rel=1e-13, abs=1e-13)
        assert psi == pytest.approx(float(digamma(x)), rel=1e-13, abs=1e-13)


def test_the_decimal_twin_knows_factorials():
    assert float(decimal_log_gamma(171)) == pytest.approx(math.log(math.factorial(170)), rel=1e-15)
    assert float(decimal_log_gamma(Decimal("0.5"))) == pytest.approx(0.5 * math.log(math.pi), rel=1e-15)


@BOTH
@pytest.mark.parametrize("base", [1e-6, 1e-3, 0.5, 1.0, 29.999, 30.0, 31.5, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("increment", [1, 2, 3, 10, 1000])
def test_whole_increments_are_products(function, base, increment):
    expected = math.fsum(math.log(base + i) for i in range(increment))
    assert function(base, float(increment)) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@BOTH
@pytest.mark.parametrize("base", [1e-6, 0.25, 1.0, 29.0, 30.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("increment", [1e-9, 1e-3, 0.3, 7.7, 1e3, 1e6])
def test_fractional_increments_against_fifty_digits(function, base, increment):
    expected = decimal_log_rising(base, increment)
    # Below the switch to the combined form the plain difference keeps an absolute error of a few ulps of lnΓ.
    slack = 0.0 if base >= 1e3 and increment >= 0.3 else 3e-14
    assert function(base, increment) == pytest.approx(expected, rel=1e-12, abs=slack)


@BOTH
def test_nothing_added_is_exactly_nothing(function):
    assert [function(base, 0.0) for base in (1e-6, 1.0, 30.0, 1e6)] == [0.0] * 4


def test_log_rising_broadcasts():
    result = log_rising(np.asarray([[1.0], [1e6]]), np.asarray([0.0, 2.0, 3.0]))
    assert result.shape == (2, 3)
    assert result[0] == pytest.approx([0.0, math.log(2), math.log(6)], rel=1e-14)


PSEUDO_COUNTS = [1e-6, 1e-3, 0.5, 1.0, 31.0, 1e3, 1e6]


def exact_evidence(pseudo, counts):
    """Return D(λ, N) of one row of whole counts by exact fractions: Π_k λ_k (λ_k + 1) … / [λ (λ + 1) …], λ = Σ λ_k."""

    def rising(base, count):
        return math.prod((base + i for i in range(int(count))), start=Fraction(1))

    bases = [Fraction(value) for value in pseudo]
    value = math.prod(rising(base, count) for base, count in zip(bases, counts, strict=True))
    value /= rising(sum(bases), sum(counts))
    return math.log(value.numerator) - math.log(value.denominator)


def drawn_rows(seed):
    """Return random pseudo-counts from 1e-6 to 1e6 and whole counts, some of them 0, of a table (6, 3)."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 9, (6, 3)) * generator.integers(0, 2, (6, 3))
    return 10.0 ** generator.uniform(-6, 6, (6, 3)), counts.astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_dirichlet_evidence_matches_exact_fractions(seed):
    pseudo, counts = drawn_rows(seed)
    expected = [exact_evidence(*row) for row in zip(pseudo, counts, strict=True)]
    found = dirichlet_evidence(pseudo, counts, pseudo.sum(axis=1)[:, None], counts.sum(axis=1)[:, None])
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("pseudo", PSEUDO_COUNTS)
def test_table_evidence_keeps_leading_axes(pseudo):
    counts = np.stack([drawn_rows(seed)[1] for seed in range(4)]).reshape(2, 2, 6, 3)
    expected = [[sum(exact_evidence([pseudo] * 3, row) for row in table) for table in pair] for pair in counts]
    assert table_evidence(pseudo, counts) == pytest.approx(np.asarray(expected), rel=1e-12)
    assert table_evidence(pseudo, np.zeros((2, 6, 3))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_row_evidence_matches_its_twin_and_exact_fractions(seed):
    pseudo, counts = drawn_rows(seed)
    flat, log_gamma = pseudo.ravel(), gammaln(pseudo.ravel())
    for row in range(len(counts)):
        whole = pseudo[row].sum()
        found = compiled.row_evidence(
            flat, log_gamma, 3 * row, whole, math.lgamma(whole), counts.ravel(), 3 * row, 3 * row + 3
        )
        twin = dirichlet_evidence(pseudo[row], counts[row], [whole], counts[row].sum(keepdims=True))
        assert found == pytest.approx(float(twin), rel=1e-12, abs=1e-13)
        assert found == pytest.approx(exact_evidence(pseudo[row], counts[row]), rel=1e-12, abs=1e-13)
