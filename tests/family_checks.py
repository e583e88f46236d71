"""What every family of a node must keep, as checks that raise an AssertionError if it does not."""

from dataclasses import replace

import numpy as np

from lurking.models.families.base import Cells


def random_cells(family, configurations, parent_states, states, seed, count=12):
    """Random places of a node with so many parent configurations."""
    rng = np.random.default_rng(seed)
    parents = np.column_stack([rng.integers(0, own, count) for own in parent_states] or [np.empty((count, 0), int)])
    configuration = np.zeros(count, int)
    for k, own in enumerate(parent_states):
        configuration = configuration * own + parents[:, k]
    values = rng.poisson(3.0, count).astype(float) if family.has_values else np.zeros(count)
    assert configurations == int(np.prod(parent_states, dtype=int))
    return Cells(configuration, parents.astype(int), rng.integers(0, states, count), values)


def posterior_potentials(family, n_rows, seed):
    """E[η] at random hyperparameters near the prior, where cells of every family are finite."""
    rng = np.random.default_rng(seed)
    prior = family.prior(n_rows)
    return family.block(n_rows).expected(prior * (1.0 + rng.random(len(prior)).sum() / len(prior)))


def check_shapes(family, configurations):
    """Rows, prior, starts and conjugate family agree on their sizes."""
    n_rows, width = family.shape(configurations)
    block = family.block(n_rows)
    assert block.row_start[-1] == n_rows * width == len(family.prior(n_rows))
    first, second = (family.start(n_rows, np.random.default_rng(seed)) for seed in (0, 1))
    assert first.shape == (n_rows * width,)
    assert not np.allclose(first, second)
    np.testing.assert_allclose(block.natural(block.coordinates(first))[0], first, rtol=1e-9, atol=1e-9)
    assert np.isfinite(block.log_normaliser(family.prior(n_rows)))


def check_gradient(family, potentials, cells):
    """Statistics are the derivatives of the sum of cells with respect to the potentials."""
    masses = np.random.default_rng(7).random(len(cells.configuration))
    numeric = np.empty(len(potentials))
    for k in range(len(potentials)):
        step = np.zeros(len(potentials))
        step[k] = 1e-5 * max(1.0, abs(potentials[k]))
        up, down = (masses @ family.cells(potentials + sign * step, cells) for sign in (1.0, -1.0))
        numeric[k] = (up - down) / (2.0 * step[k])
    np.testing.assert_allclose(family.statistics(potentials, cells, masses), numeric, rtol=1e-5, atol=1e-7)


def check_affine(family, potentials, cells):
    """A family says that its cells are affine exactly if they are φ·u: linear, with statistics that do not change."""
    masses = np.ones(len(cells.configuration))
    statistics = family.statistics(potentials, cells, masses)
    is_linear = np.isclose(statistics @ potentials, family.cells(potentials, cells).sum(), rtol=1e-9)
    other = family.statistics(1.3 * potentials, cells, masses)
    assert family.is_affine == bool(is_linear and np.allclose(statistics, other, rtol=1e-9, atol=1e-12))


def check_probabilities(family, n_rows, cells):
    """At a point, exp(cell) h(y) sums to 1 over states or values."""
    eta = family.start(n_rows, np.random.default_rng(3))
    values = range(400) if family.has_values else [0.0]
    states = [0] if family.has_values else range(2)
    total = np.zeros(len(cells.configuration))
    for state in states:
        for value in values:
            place = replace(cells, state=np.full_like(cells.state, state), value=np.full_like(cells.value, value))
            with np.errstate(over="ignore"):
                total += np.exp(family.cells(eta, place) + family.log_base(place.value))
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)


def check_bound(family, n_rows, cells):
    """E over θ of ln p is at most ln of the mean of p: at potentials E[η], a cell is below the log predictive."""
    h = family.prior(n_rows) * 2.0
    block, generator = family.block(n_rows), np.random.default_rng(11)
    draws = np.asarray([family.cells(block.draw(h, generator), cells) for _ in range(4000)])
    cell = family.cells(block.expected(h), cells)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - cell) <= 5.0 * error + 1e-9)
    assert np.all(cell <= np.log(np.exp(draws).mean(axis=0)) + 1e-9)


def check_missing(family):
    """ln h(y) is finite, and 0 for a missing value."""
    if family.has_values:
        base = family.log_base(np.asarray([0.0, 3.0, np.nan]))
        assert np.all(np.isfinite(base))
        assert base[-1] == 0.0


def check_mode(family, n_rows, cells):
    """At the maximum of the likelihood, where potentials may be -inf, cells of the data are numbers."""
    none = replace(cells, state=np.zeros_like(cells.state), value=np.zeros_like(cells.value))
    start = family.start(n_rows, np.random.default_rng(3))
    eta = start
    for _ in range(3):
        eta = family.block(n_rows).mode(family.statistics(eta, none, np.ones(len(none.state))), eta)
    with np.errstate(over="ignore"):
        assert not np.isnan(family.cells(eta, none)).any()
    assert family.cells(eta, none).sum() >= family.cells(start, none).sum() - 1e-9
