"""Plans: how a clique is visited when only some of its variables are free."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lurking.graph.triangulation import CliqueTree
from lurking.models.layout import Layout
from lurking.types import BoolArray


class Bench(NamedTuple):
    """What the plans of one clique have in common."""

    variables: tuple[int, ...]
    families: tuple[int, ...]
    separator: frozenset[int]
    child_separators: tuple[frozenset[int], ...]


class Plans:
    """The plans that occur among the cliques of one part of a tree, numbered as they are met.

    `states`, `message`, `lengths` describe each plan: joint states, length of the message to the parent, entries of its
    block in the maps (see `TreeProgram`). `most_states` and `longest_message` are the largest of each clique.
    """

    def __init__(self, layout: Layout, tree: CliqueTree, cliques: list[int], homes: dict[int, list[int]]) -> None:
        self.layout = layout
        self.benches = [
            Bench(
                tree.cliques[c],
                tuple(homes[c]),
                frozenset(tree.separator(c)),
                tuple(frozenset(tree.separator(d)) for d in cliques if tree.parent[d] == c),
            )
            for c in cliques
        ]
        self.chosen: list[tuple[Bench, tuple[int, ...]]] = []
        self.states: list[int] = []
        self.message: list[int] = []
        self.lengths: list[int] = []
        self.most_states = [0] * len(cliques)
        self.longest_message = [0] * len(cliques)

    def assign(self, free: BoolArray) -> NDArray[np.int32]:
        """Return the plan of each clique in each missingness pattern, (patterns, C), given which nodes are free."""
        plan_of = np.full((len(free), len(self.benches)), -1, np.int32)
        for k, bench in enumerate(self.benches):
            packed = np.packbits(free[:, bench.variables], axis=1)
            _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
            numbers = []
            for row in first:
                variables = tuple(v for v in bench.variables if free[row, v])
                numbers.append(self._add(k, bench, variables) if variables else -1)
            plan_of[:, k] = np.asarray(numbers, np.int32)[inverse.ravel()]
        return plan_of

    def _add(self, k: int, bench: Bench, variables: tuple[int, ...]) -> int:
        """Add a plan and return its number; nothing is allocated yet, so that sizes can be checked first."""
        cards = self.layout.cardinalities
        states = math.prod(cards[v] for v in variables)
        shared = [v for v in variables if v in bench.separator]
        self.chosen.append((bench, variables))
        self.states.append(states)
        self.message.append(math.prod(cards[v] for v in shared) if shared else 0)
        self.lengths.append(states * (len(bench.families) + 1 + len(bench.child_separators)))
        self.most_states[k] = max(self.most_states[k], states)
        self.longest_message[k] = max(self.longest_message[k], self.message[-1])
        return len(self.states) - 1

    def maps(self) -> NDArray[np.int32]:
        """Return the blocks of all plans, one after the other."""
        result = np.empty(sum(self.lengths), np.int32)
        begin = 0
        for (bench, variables), states, length in zip(self.chosen, self.states, self.lengths, strict=True):
            cards = [self.layout.cardinalities[v] for v in variables]
            digits = dict(zip(variables, np.indices(cards, np.int32).reshape(len(cards), states), strict=True))
            block = result[begin : begin + length].reshape(-1, states)
            for row, j in enumerate(bench.families):
                strides = self.layout.strides[j]
                block[row] = sum(strides[v] * digits[v] for v in variables if v in strides)
            for row, separator in enumerate((bench.separator, *bench.child_separators), len(bench.families)):
                block[row] = self._place(digits, separator)
            begin += length
        return result

    def _place(self, digits: dict[int, NDArray[np.int32]], separator: frozenset[int]) -> NDArray[np.int32] | int:
        """Return the place of each joint state in a message over the free variables of a separator."""
        place: NDArray[np.int32] | int = 0
        for v, digit in digits.items():
            if v in separator:
                place = np.int32(self.layout.cardinalities[v]) * place + digit
        return place
