import itertools

import numpy as np
import pytest

from lurking.graph.dag import Dag
from lurking.learn.kicks import Kicks
from lurking.models.layout import Layout

TWO = Dag.parse("s[3] -> a b t; x -> t; t[2] -> b c")
CARDS = {"a": 2, "b": 3, "c": 2, "x": 2, "s": 3, "t": 2}


def layout_of(dag, cards=CARDS, tied=()):
    return Layout(dag, cards, tied)


def random_theta(layout, seed=0):
    return layout.normalise(np.random.default_rng(seed).standard_exponential(layout.size))


def kicks_of(layout, theta, count=40):
    kicks = Kicks(layout)
    return [kicks.kicked(theta, np.random.default_rng(seed)) for seed in range(count)]


@pytest.mark.parametrize("tied", [(), (("a", "c"),)])
def test_kicked_tables_are_positive_and_normalised(tied):
    dag = Dag.parse("s[2] -> a c") if tied else TWO
    layout = layout_of(dag, tied=tied)
    for kicked in kicks_of(layout, random_theta(layout)):
        assert kicked.min() > 0.0
        np.testing.assert_allclose(layout.row_sums(kicked), 1.0, rtol=1e-12)


def test_a_kick_changes_only_tables_around_one_hidden_variable():
    layout = layout_of(TWO)
    theta = random_theta(layout)
    around = [{"s", "a", "b", "t"}, {"t", "b", "c"}]
    met = set()
    for kicked in kicks_of(layout, theta):
        changed = {
            name for name in layout.nodes if not np.allclose(layout.table(kicked, name), layout.table(theta, name))
        }
        assert any(changed <= own for own in around)
        met.add(frozenset(changed))
    assert {frozenset(own) for own in around} <= met


def test_a_split_gives_the_lost_state_one_half_of_another():
    layout = layout_of(Dag.parse("s[3] -> a b c"))
    theta = random_theta(layout)
    sizes = layout.table(theta, "s")[0]
    pairs = set()
    for kicked in kicks_of(layout, theta):
        own = layout.table(kicked, "s")[0]
        (pair,) = [pair for pair in itertools.combinations(range(3), 2) if np.isclose(own[pair[0]], own[pair[1]])]
        (split,) = [k for k in pair if np.isclose(own[k] * (sizes.sum() - sizes[sum(pair) - k]), 0.5 * sizes[k])]
        pairs.add((split, sum(pair) - split))
        untouched = 3 - sum(pair)
        for child in "abc":
            np.testing.assert_allclose(layout.table(kicked, child)[untouched], layout.table(theta, child)[untouched])
    assert pairs == set(itertools.permutations(range(3), 2))


@pytest.mark.parametrize("text", ["a -> b; b -> c", "h[1] -> a b c", "a -> h[2]; b; c"])
def test_structures_without_a_varying_hidden_parent_have_no_kicks(text):
    dag = Dag.parse(text)
    assert Kicks(layout_of(dag, {**CARDS, **dag.hidden})).is_empty
