"""Kicks: changes to the tables of one hidden variable that lead a run out of a local optimum."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from lurking.models.layout import Layout
from lurking.types import FloatArray, IntArray

PUSH = 1.0
"""Standard deviation of the logarithms by which the two halves of a split state differ."""
LEAST = 1e-12
"""Probability that a kicked state keeps at least, so that EM can give it rows again."""


class _Places(NamedTuple):
    """Flat positions of all table entries that belong to the states of a hidden variable."""

    own: IntArray
    """(l, r) its own table."""
    children: tuple[IntArray, ...]
    """(r, m, k) the table of each child: state of the variable, states of the other parents, state of the child."""


@final
class Kicks:
    """Random kicks for the hidden variables of one layout that have two states at least and a child.

    A kick gives up one state of a hidden variable and splits another one in two (the split and merge moves of Ueda,
    Nakano, Ghahramani & Hinton 2000, with the states drawn at random). With several hidden variables every other kick
    redraws all tables of one of them instead, since two variables may have taken each other's place. Models with nodes
    other than tables are not kicked.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        made = (_places(layout, name) for name in layout.dag.hidden if layout.are_tables)
        self._hidden = [places for places in made if places.own.shape[1] > 1 and places.children]

    @property
    def is_empty(self) -> bool:
        """True if no hidden variable can be kicked."""
        return not self._hidden

    def kicked(self, theta: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return probabilities (P,) after one random kick."""
        places = self._hidden[int(generator.integers(len(self._hidden)))]
        if len(self._hidden) > 1 and generator.random() < 0.5:
            return self._redrawn(theta, places, generator)
        lost, split = generator.choice(places.own.shape[1], 2, replace=False)
        return self._split(theta, places, int(lost), int(split), generator)

    def _split(
        self, theta: FloatArray, places: _Places, lost: int, split: int, generator: np.random.Generator
    ) -> FloatArray:
        """Return θ in which state `lost` is one half of state `split`; the rows it had go to the other states."""
        result = theta.copy()
        half = 0.5 * theta[places.own[:, split]] + LEAST
        result[places.own[:, split]] = half
        result[places.own[:, lost]] = half
        for child in places.children:
            push = np.exp(PUSH * generator.standard_normal(child[split].shape))
            result[child[lost]] = theta[child[split]] * push + LEAST
            result[child[split]] = theta[child[split]] / push + LEAST
        return self.layout.normalise(result)

    def _redrawn(self, theta: FloatArray, places: _Places, generator: np.random.Generator) -> FloatArray:
        """Return θ in which the tables of one hidden variable and of its children are uniform draws."""
        result = theta.copy()
        for positions in (places.own, *places.children):
            result[positions] = generator.standard_exponential(positions.shape) + LEAST
        return self.layout.normalise(result)


def _places(layout: Layout, name: str) -> _Places:
    """Return the positions of a hidden variable's own table and of its children's."""
    node, cards = layout.index[name], layout.cardinalities
    children = []
    for child, parents in enumerate(layout.parents):
        if node in parents:
            table = _positions(layout, child).reshape(*(cards[parent] for parent in parents), cards[child])
            children.append(np.moveaxis(table, parents.index(node), 0).reshape(cards[node], -1, cards[child]))
    return _Places(_positions(layout, node), tuple(children))


def _positions(layout: Layout, node: int) -> IntArray:
    """Return the flat positions of a table, (l, r)."""
    shape = layout.configurations[node], layout.cardinalities[node]
    return layout.offsets[node] + np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
