"""Dirichlet formulas against quadrature, finite differences and exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from lurking.expfam.dirichlet import Dirichlet

ROWS = np.asarray([0, 2, 5, 6])
ALPHA = np.asarray([0.7, 2.5, 1.0, 3.0, 0.4, 2.0])
LAMBDA = np.asarray([1.5, 0.5, 2.0, 1.0, 1.0, 1.0])


def row_of(flat, row):
    return flat[ROWS[row] : ROWS[row + 1]]


def test_log_normaliser_and_density_against_scipy():
    theta = np.asarray([0.3, 0.7, 0.2, 0.5, 0.3, 1.0])
    expected = sum(stats.dirichlet.logpdf(row_of(theta, r), row_of(ALPHA, r)) for r in range(2))
    assert Dirichlet(ROWS).log_density(ALPHA, np.log(theta)) == pytest.approx(expected, rel=1e-13)
    total = integrate.quad(lambda t: t ** (0.7 - 1) * (1 - t) ** (2.5 - 1), 0, 1)[0]
    assert Dirichlet(np.asarray([0, 2])).log_normaliser(ALPHA[:2]) == pytest.approx(math.log(total), rel=1e-8)


def test_expected_logs_by_quadrature():
    logs = Dirichlet(ROWS).expected(ALPHA)
    for row in range(2):
        alpha = row_of(ALPHA, row)
        for k, a in enumerate(alpha):
            beta = stats.beta(a, alpha.sum() - a)
            # Substituting u = F(t) keeps the end points harmless.
            value = integrate.quad(lambda u, beta=beta: math.log(max(beta.ppf(u), 1e-300)), 0, 1, limit=400)[0]
            assert row_of(logs, row)[k] == pytest.approx(value, rel=1e-6)
    assert logs[5] == 0.0


def test_expected_logs_are_the_gradient_of_the_log_normaliser():
    step = 1e-6
    for k in range(len(ALPHA)):
        up, down = ALPHA.copy(), ALPHA.copy()
        up[k] += step
        down[k] -= step
        slope = (Dirichlet(ROWS).log_normaliser(up) - Dirichlet(ROWS).log_normaliser(down)) / (2 * step)
        assert slope == pytest.approx(Dirichlet(ROWS).expected(ALPHA)[k], rel=1e-7, abs=1e-7)


def test_kl_divergence_by_quadrature():
    rows, alpha, reference = np.asarray([0, 2]), np.asarray([2.7, 1.5]), np.asarray([1.2, 3.4])
    p, q = stats.beta(*alpha), stats.beta(*reference)
    value = integrate.quad(lambda t: p.pdf(t) * (p.logpdf(t) - q.logpdf(t)), 0, 1)[0]
    assert Dirichlet(rows).kl_divergence(alpha, reference) == pytest.approx(value, rel=1e-8)


def test_kl_divergence_is_zero_only_at_equality():
    assert Dirichlet(ROWS).kl_divergence(ALPHA, ALPHA) == 0.0
    assert Dirichlet(ROWS).kl_divergence(ALPHA, LAMBDA) > 0.0


def rising(base, count):
    product = Fraction(1)
    for i in range(count):
        product *= base + i
    return product


@pytest.mark.parametrize("pseudo", [Fraction(1, 1000), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10**6)])
def test_evidence_of_whole_counts_by_exact_fractions(pseudo):
    counts = [3, 0, 2, 5, 1, 4]
    exact = Fraction(1)
    for row in range(3):
        members = range(ROWS[row], ROWS[row + 1])
        for k in members:
            exact *= rising(pseudo, counts[k])
        exact /= rising(pseudo * len(members), sum(counts[k] for k in members))
    value = Dirichlet(ROWS).log_evidence(np.full(6, float(pseudo)), np.asarray(counts, float))
    assert value == pytest.approx(math.log(exact.numerator) - math.log(exact.denominator), rel=1e-12)


def test_evidence_is_the_mean_likelihood_under_the_prior():
    """D(λ, N) = ln ∫ Dir(θ; λ) Π θ^N dθ, fractional N included."""
    rows, counts = np.asarray([0, 2]), np.asarray([1.3, 2.2])
    prior = stats.beta(1.5, 0.8)
    value = integrate.quad(lambda t: prior.pdf(t) * t**1.3 * (1 - t) ** 2.2, 0, 1)[0]
    assert Dirichlet(rows).log_evidence(np.asarray([1.5, 0.8]), counts) == pytest.approx(math.log(value), rel=1e-8)


def test_evidence_counted_one_after_the_other_is_the_chain_rule():
    first, second = np.asarray([2.0, 1, 0, 3, 1, 4]), np.asarray([0.5, 1, 2, 0, 1, 2])
    together = Dirichlet(ROWS).log_evidence(LAMBDA, first + second)
    apart = Dirichlet(ROWS).log_evidence(LAMBDA, first) + Dirichlet(ROWS).log_evidence(LAMBDA + first, second)
    assert together == pytest.approx(apart, rel=1e-13)


@pytest.mark.parametrize("pseudo", [1e-6, 1e-3, 1.0, 30.0, 1e3, 1e6, 1e9])
def test_evidence_keeps_its_digits_for_every_prior(pseudo):
    """Two rows of a fair coin: p = (λ+1)/(2(2λ+1)) for equal and λ/(2(2λ+1)) for different faces."""
    rows = np.asarray([0, 2])
    same = Dirichlet(rows).log_evidence(np.full(2, pseudo), np.asarray([2.0, 0.0]))
    different = Dirichlet(rows).log_evidence(np.full(2, pseudo), np.asarray([1.0, 1.0]))
    assert same == pytest.approx(math.log((pseudo + 1) / (2 * (2 * pseudo + 1))), rel=1e-13)
    assert different == pytest.approx(math.log(pseudo / (2 * (2 * pseudo + 1))), rel=1e-13)


@pytest.mark.parametrize(
    ("alpha", "expected"), [([2.0, 2.0], -math.inf), ([0.5, 1.0], math.inf), ([1.0, 1.0], 0.0), ([1.0, 3.0], None)]
)
def test_density_on_the_boundary(alpha, expected):
    with np.errstate(divide="ignore"):
        value = Dirichlet(np.asarray([0, 2])).log_density(np.asarray(alpha), np.log([0.0, 1.0]))
    assert value == pytest.approx(math.log(3.0) if expected is None else expected, rel=1e-14)


def test_density_with_no_value_says_so():
    with np.errstate(divide="ignore"):
        potentials = np.log([0.0, 1.0, 0.0, 1.0])
    assert math.isnan(Dirichlet(np.asarray([0, 2, 4])).log_density(np.asarray([0.5, 1, 2, 1.0]), potentials))


@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_the_density_near_the_mean_equals_the_plain_one(scale, power):
    """Both ways of computing it have digits left up to about λ = 1e8."""
    alpha, added = scale * np.asarray([1.0, 2.0, 0.5, 3.0, 1.0]), np.asarray([3.0, 0.0, 1.5, 2.0, 0.25])
    rows = np.asarray([0, 2, 5])
    wanted = alpha + added
    log_theta = np.log(wanted / np.repeat(np.add.reduceat(wanted, rows[:-1]), np.diff(rows)))
    plain = Dirichlet(rows).log_density(alpha, log_theta) + (1.0 - power) * log_theta.sum()
    found = Dirichlet(rows).log_density_after(alpha, log_theta, added, power)
    assert found == pytest.approx(plain, abs=1e-12 + 1e-13 * scale)


@pytest.mark.parametrize("alpha", [1e12, 1e100, 1e300])
def test_the_density_at_the_mean_of_an_enormous_prior_keeps_its_digits(alpha):
    """For Dir(α, α) at ½ over logits, Stirling: ln[Γ(2α) / Γ(α)² 2^(−2α)] = ½ ln(α / π) − ln 2 − 1/(8α)."""
    rows, half = np.asarray([0, 2]), np.log([0.5, 0.5])
    found = Dirichlet(rows).log_density_after(np.full(2, alpha), half, np.zeros(2), 0.0)
    assert found == pytest.approx(0.5 * math.log(alpha / math.pi) - math.log(2.0), rel=1e-12)
    # One count more of one state moves the mode there, which lowers the density by (1/α) / 4 and so not at all.
    moved = Dirichlet(rows).log_density_after(np.full(2, alpha), half, np.asarray([1.0, 0.0]), 0.0)
    assert moved == pytest.approx(found, rel=1e-12)
