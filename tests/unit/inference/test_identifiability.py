"""Effective dimensions with known values."""

import math

import pytest

from lurking.graph.dag import Dag
from lurking.inference.identifiability import effective_dimension
from lurking.models.discrete.layout import Layout


def layout_of(text, **cards):
    dag = Dag.parse(text)
    return Layout(dag, {name: dag.hidden.get(name, cards.get(name, 2)) for name in dag.nodes})


KNOWN = {
    "complete": ("a -> b; a -> c", {}, 5, 5),
    "complete, three states": ("a -> b -> c", {"a": 3, "b": 3, "c": 3}, 14, 14),
    "two classes, one child": ("s[2] -> a", {}, 3, 1),
    "two classes, two children": ("s[2] -> a b", {}, 5, 3),
    "two classes, three children": ("s[2] -> a b c", {}, 7, 7),
    "three classes, three children": ("s[3] -> a b c", {}, 11, 7),
    # Goodman (1974): three classes and four binary items have 14 parameters, 15 free cells, and one is not identified.
    "three classes, four children": ("s[3] -> a b c d", {}, 14, 13),
    "one class": ("s[1] -> a b", {}, 2, 2),
    "hidden leaf": ("a -> s[2]", {}, 3, 1),
    "hidden between": ("a -> s[2] -> b", {}, 5, 3),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_dimensions(name):
    text, cards, standard, effective = KNOWN[name]
    layout = layout_of(text, **cards)
    assert layout.dimension == standard
    assert effective_dimension(layout) == effective


def test_it_does_not_depend_on_the_seed():
    layout = layout_of("s[3] -> a b c d")
    assert {effective_dimension(layout, seed) for seed in range(6)} == {13}


def test_too_many_cells_are_sampled():
    layout = layout_of("s[2] -> " + " ".join(f"y{k}" for k in range(20)))
    assert math.prod(layout.cardinalities[1:]) > 10**6
    assert effective_dimension(layout) == layout.dimension == 41
