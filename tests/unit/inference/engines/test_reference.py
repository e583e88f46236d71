"""The brute-force kernel against numbers worked out by hand."""

import math

import numpy as np
import pytest

from lurking.graph.dag import Dag
from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.rows import Rows
from lurking.models.layout import Layout

LAYOUT = Layout(Dag.parse("s[2] -> a"), {"s": 2, "a": 2})
THETA = np.asarray([0.25, 0.75, 0.5, 0.5, 0.2, 0.8])


def engine_of(rows, weights, prune=False):
    return ReferenceEngine(
        LAYOUT, Rows.of_codes(np.asarray(rows, np.int32).reshape(-1, 2), np.asarray(weights, float)), prune
    )


def test_one_row_by_hand():
    counts, log_z = engine_of([[-1, 1]], [2.0]).expect(np.log(THETA))
    joint = np.asarray([0.25 * 0.5, 0.75 * 0.8])
    posterior = 2.0 * joint / joint.sum()
    assert log_z == pytest.approx(2.0 * math.log(joint.sum()), rel=1e-15)
    assert counts == pytest.approx([*posterior, 0, posterior[0], 0, posterior[1]], rel=1e-15)


def test_an_impossible_row_has_log_z_minus_infinity():
    potentials = np.log(THETA)
    potentials[[3, 5]] = -np.inf
    counts, log_z = engine_of([[-1, 1], [-1, 0]], [1.0, 1.0]).expect(potentials)
    assert log_z == -math.inf
    assert not counts.any()
    assert engine_of([[-1, 1], [-1, 0]], [0.0, 1.0]).expect(potentials)[1] > -math.inf


def test_an_empty_row_counts_the_prior_unless_pruned():
    counts, log_z = engine_of([[-1, -1]], [1.0]).expect(np.log(THETA))
    assert counts == pytest.approx([0.25, 0.75, 0.125, 0.125, 0.15, 0.6], rel=1e-15)
    assert log_z == pytest.approx(0.0, abs=1e-15)
    pruned = engine_of([[-1, -1]], [1.0], prune=True)
    assert not pruned.expect(np.log(THETA))[0].any()
    assert np.isnan(pruned.pattern_marginals(np.log(THETA), 0)).all()


def test_potentials_are_never_renormalised():
    _, log_z = engine_of([[-1, 1]], [1.0]).expect(np.log(THETA) + 1.5)
    assert log_z == pytest.approx(math.log(0.25 * 0.5 + 0.75 * 0.8) + 3.0, rel=1e-15)


def test_no_rows():
    counts, log_z = engine_of([], []).expect(np.log(THETA))
    assert log_z == 0.0
    assert not counts.any()
