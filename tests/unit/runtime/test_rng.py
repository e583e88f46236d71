"""Seeds: one child per piece of work."""

import numpy as np
import pytest

from lurking.errors import OptionError
from lurking.runtime.rng import generators, seed_sequence


@pytest.mark.parametrize("seed", [0, 12, np.int64(12), np.random.SeedSequence(5)])
def test_generator_k_does_not_depend_on_how_many(seed):
    few = [g.random(4) for g in generators(seed, 3)]
    many = [g.random(4) for g in generators(seed, 10)]
    assert np.array_equal(few, many[:3])
    assert len({tuple(draws) for draws in many}) == 10


def test_equal_seeds_are_equal_whatever_their_type():
    expected = generators(12, 1)[0].random()
    assert generators(np.int64(12), 1)[0].random() == expected
    assert generators(np.random.SeedSequence(12), 1)[0].random() == expected
    assert generators(13, 1)[0].random() != expected


def test_the_callers_sequence_is_not_spawned_from():
    sequence = np.random.SeedSequence(1)
    generators(sequence, 5)
    assert sequence.n_children_spawned == 0


def test_a_spawned_sequence_is_not_its_parent():
    parent = np.random.SeedSequence(1)
    child = parent.spawn(1)[0]
    assert generators(child, 1)[0].random() != generators(parent, 1)[0].random()


def test_a_generator_is_drawn_from_once():
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    assert generators(one, 2)[1].random() == generators(other, 2)[1].random()
    assert one.random() == other.random()
    assert generators(one, 1)[0].random() != generators(np.random.default_rng(3), 1)[0].random()


def test_none_is_fresh_every_time():
    assert generators(None, 1)[0].random() != generators(None, 1)[0].random()


def test_streams_are_uncorrelated():
    draws = np.asarray([g.standard_normal(2000) for g in generators(0, 8)])
    correlations = np.corrcoef(draws) - np.eye(8)
    assert np.abs(correlations).max() < 4.5 / np.sqrt(2000)


def test_no_generators():
    assert generators(0, 0) == []


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, [1]])
def test_other_seeds_are_refused(seed):
    with pytest.raises(OptionError, match=r"seed is .*whole number of at least 0"):
        seed_sequence(seed)
