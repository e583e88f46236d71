"""Splits and merges undo each other, and their Jacobian is the determinant of the map."""

import math

import numpy as np
import pytest

from lurking.samplers.jumps.splitting import SPREAD, Auxiliary, HiddenTables, draw_auxiliary, merge, split

SHAPES = [((1, 1), [(1, 1, 1, 2)]), ((1, 2), [(1, 2, 1, 3)]), ((2, 3), [(2, 3, 1, 2), (1, 3, 2, 3)]), ((1, 2), [])]
"""Shapes (L, r) of the hidden variable's own table and (B, r, A, K) of its children's."""


def tables_of(shapes, generator):
    own, children = shapes
    draw = [np.log(generator.dirichlet(np.ones(shape[-1]), shape[:-1])) for shape in (own, *children)]
    return HiddenTables(draw[0], tuple(draw[1:]))


def free_coordinates(tables):
    """Return θ of all tables without the last state of each row."""
    return np.concatenate([np.exp(table)[..., :-1].ravel() for table in (tables.own, *tables.children)])


def from_coordinates(flat, shapes):
    """Return the tables with the given free θ, and what is left of the vector."""
    own, children = shapes
    tables = []
    for shape in (own, *children):
        size = math.prod(shape[:-1]) * (shape[-1] - 1)
        free, flat = flat[:size].reshape(*shape[:-1], -1), flat[size:]
        tables.append(np.log(np.concatenate([free, 1.0 - free.sum(axis=-1, keepdims=True)], axis=-1)))
    return HiddenTables(tables[0], tuple(tables[1:])), flat


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("states", [(0, 0), (0, 1), (-1, 0)])
def test_the_jacobian_is_the_determinant_by_finite_differences(shapes, states):
    generator = np.random.default_rng(1)
    tables = tables_of(shapes, generator)
    a, b = states[0] % shapes[0][1], states[1]
    auxiliary = draw_auxiliary(tables, generator)
    # Only the rows in which the hidden variable is in state a change; all others are mapped to themselves.
    begin = np.concatenate([free_coordinates(tables), auxiliary.shares, *(own.ravel() for own in auxiliary.shifts)])

    def mapped(flat):
        old, flat = from_coordinates(flat, shapes)
        shares, flat = flat[: len(auxiliary.shares)], flat[len(auxiliary.shares) :]
        shifts = []
        for own in auxiliary.shifts:
            shifts.append(flat[: own.size].reshape(own.shape))
            flat = flat[own.size :]
        return free_coordinates(split(old, a, b, Auxiliary(shares, tuple(shifts)))[0])

    step = 1e-6
    columns = [(mapped(begin + step * unit) - mapped(begin - step * unit)) / (2 * step) for unit in np.eye(len(begin))]
    sign, log_determinant = np.linalg.slogdet(np.asarray(columns))
    assert len(columns) == len(mapped(begin))  # dimensions match
    assert log_determinant == pytest.approx(split(tables, a, b, auxiliary)[1], abs=1e-6)


@pytest.mark.parametrize("shapes", SHAPES)
def test_a_merge_undoes_a_split(shapes):
    generator = np.random.default_rng(2)
    tables = tables_of(shapes, generator)
    for a in range(shapes[0][1]):
        for b in range(shapes[0][1] + 1):
            auxiliary = draw_auxiliary(tables, generator)
            larger, log_jacobian = split(tables, a, b, auxiliary)
            for table in (larger.own, *larger.children):
                np.testing.assert_allclose(np.exp(table).sum(axis=-1), 1.0, rtol=1e-12)
            back, found, again = merge(larger, a + (a >= b), b)
            np.testing.assert_allclose(back.own, tables.own, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(found.shares, auxiliary.shares, rtol=1e-10)
            for ours, theirs in zip(
                (*back.children, *found.shifts), (*tables.children, *auxiliary.shifts), strict=True
            ):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
            assert again == pytest.approx(log_jacobian, rel=1e-10, abs=1e-10)


def test_the_density_of_auxiliary_variables_is_normal():
    shifts = np.asarray([[[0.3, -1.0]]])
    expected = sum(-0.5 * (v / SPREAD) ** 2 - math.log(SPREAD * math.sqrt(2 * math.pi)) for v in (0.3, -1.0))
    assert Auxiliary(np.asarray([0.2]), (shifts,)).log_density == pytest.approx(expected, rel=1e-12)
