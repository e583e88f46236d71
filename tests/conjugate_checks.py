"""What every conjugate family must keep, as checks of one family at given hyperparameters.

Each check raises an AssertionError if the family breaks the contract of `lurking.expfam.base.Conjugate`.
"""

import numpy as np
from scipy import integrate

STEP = 1e-6


def check_expected(family, h):
    """E[η] is the gradient of A."""
    numeric = np.empty(len(h))
    for k in range(len(h)):
        move = np.zeros(len(h))
        move[k] = STEP * max(1.0, abs(h[k]))
        up, down = family.log_normaliser(h + move), family.log_normaliser(h - move)
        numeric[k] = (up - down) / (2.0 * move[k])
    np.testing.assert_allclose(family.expected(h), numeric, rtol=1e-5, atol=1e-6)


def check_normalised(family, h):
    """exp(h·η(x) + j(x) − A(h)) integrates to 1 over a single coordinate."""

    def density(x):
        eta, log_jacobian = family.natural(np.asarray([x]))
        return float(np.exp(h @ eta + log_jacobian - family.log_normaliser(h)))

    total = integrate.quad(density, -60.0, 0.0, limit=400)[0] + integrate.quad(density, 0.0, 60.0, limit=400)[0]
    np.testing.assert_allclose(total, 1.0, rtol=1e-6)


def check_pull_back(family, h, x):
    """The pull-back of g is the gradient of g·η(x) + j(x)."""

    def value(point):
        eta, log_jacobian = family.natural(point)
        return float(h @ eta + log_jacobian)

    moves = STEP * np.eye(len(x))
    numeric = [(value(x + move) - value(x - move)) / (2.0 * STEP) for move in moves]
    np.testing.assert_allclose(family.pull_back(x, h), numeric, rtol=1e-5, atol=1e-6)


def check_coordinates(family, x):
    """Coordinates and natural parameters are inverse to each other, one point or many."""
    eta, _ = family.natural(x)
    np.testing.assert_allclose(family.coordinates(eta), x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(family.unpack_point(family.pack_point(eta)), eta, rtol=1e-9, atol=1e-9)
    many, log_jacobians = family.natural(np.stack([x, 0.5 * x]))
    np.testing.assert_allclose(many[0], eta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(many[1], family.natural(0.5 * x)[0], rtol=1e-12, atol=1e-12)
    assert np.shape(log_jacobians) == (2,)
    assert len(x) == family.dimension == family.coordinate_start[-1]
    assert len(eta) == family.row_start[-1]


def check_packing(family, h):
    """Packed hyperparameters are unbounded coordinates of h."""
    np.testing.assert_allclose(family.unpack(family.pack(h)), h, rtol=1e-9, atol=1e-12)
    assert np.isfinite(family.log_normaliser(family.unpack(family.pack(h) + 0.1)))


def check_mode(family, h, x):
    """No point has a higher h·η than the mode."""
    best = family.mode(h, np.full(len(h), np.nan))
    for scale in (-1.0, -0.1, 0.0, 0.1, 1.0):
        other, _ = family.natural(family.coordinates(best) + scale * x)
        assert h @ other <= h @ best + 1e-9 * (1.0 + abs(h @ best))


def check_evidence(family, h, counts):
    """D(λ, N) = A(λ + N) − A(λ), and data may come in two parts."""
    whole = family.log_evidence(h, counts)
    np.testing.assert_allclose(
        whole, family.log_normaliser(h + counts) - family.log_normaliser(h), rtol=1e-9, atol=1e-9
    )
    parts = family.log_evidence(h, 0.4 * counts) + family.log_evidence(h + 0.4 * counts, 0.6 * counts)
    np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-9)


def check_divergence(family, h, counts):
    """The divergence is 0 for equal and positive for other hyperparameters, and is that of its definition."""
    other = h + counts
    assert abs(family.kl_divergence(h, h)) < 1e-9
    assert family.kl_divergence(h, other) > 0.0
    direct = (h - other) @ family.expected(h) - family.log_normaliser(h) + family.log_normaliser(other)
    np.testing.assert_allclose(family.kl_divergence(h, other), direct, rtol=1e-8, atol=1e-9)


def check_draws(family, h, draws=4000):
    """The mean of drawn η is E[η] within 5 standard errors, and draws lie on the family's own surface."""
    generator = np.random.default_rng(5)
    points = np.asarray([family.draw(h, generator) for _ in range(draws)])
    error = points.std(axis=0, ddof=1) / np.sqrt(draws)
    assert np.all(np.abs(points.mean(axis=0) - family.expected(h)) <= 5.0 * error + 1e-12)
    np.testing.assert_allclose(family.natural(family.coordinates(points[0]))[0], points[0], rtol=1e-8, atol=1e-8)


def check_rows(family, h):
    """Rows are independent: parts of the family have parts of the sums."""
    rows = np.arange(len(family.row_start) - 1)
    if len(rows) < 2:
        return
    total = 0.0
    for own in (rows[::2], rows[1::2]):
        positions = np.concatenate([np.arange(family.row_start[r], family.row_start[r + 1]) for r in own])
        part = family.rows(own)
        total += part.log_normaliser(h[positions])
        np.testing.assert_allclose(part.expected(h[positions]), family.expected(h)[positions], rtol=1e-12)
    np.testing.assert_allclose(total, family.log_normaliser(h), rtol=1e-12)
