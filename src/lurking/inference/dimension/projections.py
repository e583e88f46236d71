"""Derivatives of random projections of an observed joint distribution, over the field of 2³¹ − 1 elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from lurking.graph.symmetry.groups import Groups
from lurking.graph.triangulation import CliqueTree, clique_tree
from lurking.models.layout import Layout
from lurking.types import IntArray

PRIME = (1 << 31) - 1
"""Products of two elements stay below 2⁶² and sums of 2³² of them below 2⁶³, so that int64 holds them exactly."""
HELD = 1 << 21
"""Numbers of a clique held at once: 16 MiB."""


@dataclass(frozen=True)
class Component:
    """The families around hidden variables that hang together, and what is observed of them.

    F(y) = Σ_h Π_{j ∈ families} θ_j is a function of the observed variables of these families. Those that are nobody's
    child within them are *contexts*: F sums to 1 over the others for each joint state of the contexts.
    """

    layout: Layout
    families: tuple[int, ...]

    @cached_property
    def observed(self) -> tuple[int, ...]:
        """The observed variables of the families."""
        hidden = self.layout.dag.hidden
        members = {v for j in self.families for v in (j, *self.layout.parents[j])}
        return tuple(v for v in sorted(members) if self.layout.nodes[v] not in hidden)

    @cached_property
    def dimension(self) -> int:
        """Number of free parameters of the families."""
        return sum(self.layout.family_dimensions[j] for j in self.families)

    @cached_property
    def bound(self) -> int:
        """The most that the rank can be: the parameters, or the free cells of F if these are fewer."""
        sizes = self.layout.cardinalities
        contexts = math.prod(sizes[v] for v in self.observed if v not in self.families)
        return min(self.dimension, math.prod(sizes[v] for v in self.observed) - contexts)

    @cached_property
    def tree(self) -> CliqueTree:
        """The tree of cliques on which F is summed over all its variables."""
        scopes = [(j, *self.layout.parents[j]) for j in self.families]
        return clique_tree(scopes, dict(enumerate(self.layout.cardinalities)))

    @cached_property
    def work(self) -> float:
        """Multiplications that the derivatives of all projections take on the tree."""
        if not self.bound:
            return 0.0
        sizes = self.layout.cardinalities
        states = [math.prod(sizes[v] for v in clique) for clique in self.tree.cliques]
        factors = len(self.families) + len(self.observed) + len(states)
        # A clique multiplies its own factors three times; on average there are `factors / cliques` of them.
        return 3.0 * self.bound * sum(states) * (2.0 + factors / len(states))

    def jacobian(self, tables: list[IntArray], generator: np.random.Generator) -> IntArray:
        """Return ∂/∂θ of `bound` random projections of F at `tables`, (bound, dimension), entries modulo PRIME.

        A projection is Z = Σ_y F(y) Π_v w_v(y_v), one random weight per state of each observed variable. Products of
        weights span all functions of y, so some `bound` of them have the rank of the whole Jacobian, and then almost
        all have. The last probability of a row of θ is 1 minus the others: ∂Z/∂θ_k − ∂Z/∂θ_last.
        """
        passes = _Pass(self, tables)
        widest = max(
            math.prod(self.layout.cardinalities[v] for v in clique) * (count + 3)
            for clique, count in zip(self.tree.cliques, passes.factor_counts, strict=True)
        )
        step = max(1, HELD // widest)
        blocks = []
        for begin in range(0, self.bound, step):
            count = min(step, self.bound - begin)
            weights = {v: _uniform((count, self.layout.cardinalities[v]), generator) for v in self.observed}
            gradients = passes.gradients(weights)
            free = [((g[..., :-1] - g[..., -1:]) % PRIME).reshape(count, -1) for g in gradients]
            blocks.append(np.concatenate(free, axis=1))
        return np.concatenate(blocks)


@dataclass(frozen=True)
class Part:
    """Components that share tables with each other and with no other: what a rank is computed of.

    Without tied families a part is one component. With them each component's F is still a function of p(y), and the
    rank is that of all their derivatives with respect to the tables that they share.
    """

    layout: Layout
    components: tuple[Component, ...]

    @cached_property
    def columns(self) -> dict[int, slice]:
        """{place of a table in the flat vector: its free parameters among those of the part}."""
        result: dict[int, slice] = {}
        total = 0
        for j in (j for component in self.components for j in component.families):
            if self.layout.offsets[j] not in result:
                count = self.layout.family_dimensions[j]
                result[self.layout.offsets[j]] = slice(total, total + count)
                total += count
        return result

    @property
    def dimension(self) -> int:
        """Number of free parameters of the tables."""
        return max((own.stop for own in self.columns.values()), default=0)

    @cached_property
    def bound(self) -> int:
        """The most that the rank can be."""
        return min(self.dimension, self.rows)

    @property
    def rows(self) -> int:
        """Number of projections of all components."""
        return sum(component.bound for component in self.components)

    @property
    def elimination(self) -> float:
        """Multiplications that the rank of the matrix takes once it is there."""
        return self.rows * self.bound * self.dimension / 3.0

    @cached_property
    def work(self) -> float:
        """Multiplications that one draw takes: derivatives on the trees, and the elimination of a matrix."""
        return self.elimination + sum(component.work for component in self.components)

    def jacobian(self, generator: np.random.Generator) -> IntArray:
        """Return derivatives of projections of every component at one random θ, (rows, dimension), modulo PRIME."""
        tables: dict[int, IntArray] = {}
        blocks = [np.zeros((0, self.dimension), np.int64)]
        for component in (one for one in self.components if one.bound):
            for j in component.families:
                if self.layout.offsets[j] not in tables:
                    tables[self.layout.offsets[j]] = _random_table(self.layout, j, generator)
            own = [tables[self.layout.offsets[j]] for j in component.families]
            derivatives = component.jacobian(own, generator)
            block, begin = np.zeros((len(derivatives), self.dimension), np.int64), 0
            for j in component.families:
                place = self.columns[self.layout.offsets[j]]
                end = begin + place.stop - place.start
                block[:, place] = (block[:, place] + derivatives[:, begin:end]) % PRIME
                begin = end
            blocks.append(block)
        return np.concatenate(blocks)


def parts_of(layout: Layout) -> tuple[int, list[Part]]:
    """Return the parameters of tables that meet no hidden variable, and the parts that all others fall into.

    p(y) is the product of the former's θ and of the components' F, and each of these is a function of p(y) (the
    factors of Tian & Pearl 2002), so the dimension of the set of all p(y) is the sum of theirs, as far as they share
    no table.
    """
    hidden = {j for j, name in enumerate(layout.nodes) if name in layout.dag.hidden}
    members = [[v for v in (j, *parents) if v in hidden] for j, parents in enumerate(layout.parents)]
    linked = Groups(len(layout.nodes))
    for together in members:
        for two in pairwise(together):
            linked.join(*two)
    # A family without hidden variables is a component of its own if its table meets a hidden one elsewhere.
    meets = {layout.offsets[j] for j, together in enumerate(members) if together}
    families: dict[int, list[int]] = {}
    for j, together in enumerate(members):
        if layout.offsets[j] in meets:
            families.setdefault(linked.leader(together[0]) if together else -1 - j, []).append(j)
    components = [Component(layout, tuple(some)) for some in families.values()]
    sharing = Groups(len(components))
    first: dict[int, int] = {}
    for place, component in enumerate(components):
        for j in component.families:
            sharing.join(first.setdefault(layout.offsets[j], place), place)
    parts: dict[int, list[Component]] = {}
    for place, component in enumerate(components):
        parts.setdefault(sharing.leader(place), []).append(component)
    alone = sum(layout.family_dimensions[j] for j in layout.owners if layout.offsets[j] not in meets)
    return alone, [Part(layout, tuple(some)) for some in parts.values()]


def _uniform(shape: tuple[int, ...], generator: np.random.Generator) -> IntArray:
    """Return random elements of the field."""
    return generator.integers(0, PRIME, size=shape, dtype=np.int64)


def _random_table(layout: Layout, j: int, generator: np.random.Generator) -> IntArray:
    """Return a random table of a family, one axis per parent and one for the states, rows summing to 1."""
    table = _uniform((*(layout.cardinalities[p] for p in layout.parents[j]), layout.cardinalities[j]), generator)
    table[..., -1] = (1 - table[..., :-1].sum(axis=-1)) % PRIME
    return table


class _Pass:
    """Sums over a clique tree, to the roots and back again, for many projections at once.

    Every array has an axis for the projections (of length 1 where they do not matter) and one for each variable of
    its clique, ascending (of length 1 where it does not depend on that variable).
    """

    def __init__(self, component: Component, tables: list[IntArray]) -> None:
        self.component, self.layout, self.tree = component, component.layout, component.tree
        cliques = self.tree.cliques
        self.family_home: list[list[int]] = [[] for _ in cliques]
        self.weight_home: list[list[int]] = [[] for _ in cliques]
        self.children: list[list[int]] = [[] for _ in cliques]
        sets = [set(clique) for clique in cliques]
        for place, j in enumerate(component.families):
            scope = {j, *self.layout.parents[j]}
            self.family_home[next(c for c, members in enumerate(sets) if scope <= members)].append(place)
        for v in component.observed:
            self.weight_home[next(c for c, members in enumerate(sets) if v in members)].append(v)
        for c, above in enumerate(self.tree.parent):
            if above >= 0:
                self.children[above].append(c)
        self.tables = tables

    @property
    def factor_counts(self) -> list[int]:
        """How many factors each clique multiplies."""
        homes = zip(self.family_home, self.weight_home, self.children, strict=True)
        return [sum(map(len, home)) for home in homes]

    def gradients(self, weights: dict[int, IntArray]) -> list[IntArray]:
        """Return ∂Z/∂θ of each family, (projections, parents …, states)."""
        count = len(next(iter(weights.values()))) if weights else 1
        cliques = self.tree.cliques
        messages: list[IntArray] = [np.empty(0, np.int64)] * len(cliques)
        factors: list[list[IntArray]] = [[] for _ in cliques]
        plain: list[IntArray] = [np.empty(0, np.int64)] * len(cliques)
        for c in reversed(range(len(cliques))):
            plain[c] = self._weights_of(c, weights)
            factors[c] = [self._table_in(c, place) for place in self.family_home[c]]
            factors[c] += [self._moved(messages[child], child, c) for child in self.children[c]]
            product = plain[c]
            for factor in factors[c]:
                product = product * factor % PRIME
            messages[c] = self._summed(product, c, self.tree.separator(c))
        adjoints: dict[int, IntArray] = {}
        result: dict[int, IntArray] = {}
        for c in range(len(cliques)):
            start = plain[c] * adjoints.pop(c, np.ones((1,) * (len(cliques[c]) + 1), np.int64)) % PRIME
            others = _products_of_others(start, factors[c])
            names = [*self.family_home[c], *self.children[c]]
            for position, name in enumerate(names):
                if position < len(self.family_home[c]):
                    result[name] = self._gradient(others[position], c, name, count)
                else:
                    summed = self._summed(others[position], c, self.tree.separator(name))
                    adjoints[name] = self._moved(summed, c, name)
        return [result[place] for place in range(len(self.tables))]

    def _weights_of(self, c: int, weights: dict[int, IntArray]) -> IntArray:
        """Return the product of the weights that belong to a clique, with its axes."""
        clique = self.tree.cliques[c]
        product = np.ones((1,) * (len(clique) + 1), np.int64)
        for v in self.weight_home[c]:
            shape = [len(weights[v])] + [self.layout.cardinalities[u] if u == v else 1 for u in clique]
            product = product * weights[v].reshape(shape) % PRIME
        return product

    def _table_in(self, c: int, place: int) -> IntArray:
        """Return a family's table with the axes of a clique."""
        j = self.component.families[place]
        scope = (*self.layout.parents[j], j)
        ascending = np.transpose(self.tables[place], np.argsort(scope))
        members = set(scope)
        shape = [self.layout.cardinalities[v] if v in members else 1 for v in self.tree.cliques[c]]
        return ascending.reshape([1, *shape])

    def _moved(self, array: IntArray, source: int, target: int) -> IntArray:
        """Return an array over variables that two cliques share, with the axes of the other one."""
        sizes = dict(zip(self.tree.cliques[source], array.shape[1:], strict=True))
        return array.reshape([len(array)] + [sizes.get(v, 1) for v in self.tree.cliques[target]])

    def _summed(self, array: IntArray, c: int, kept: Sequence[int]) -> IntArray:
        """Return the sum over all variables of a clique but some; an axis of length 1 stands for equal entries."""
        clique = self.tree.cliques[c]
        axes = tuple(1 + k for k, v in enumerate(clique) if v not in kept)
        repeated = math.prod(self.layout.cardinalities[clique[a - 1]] for a in axes if array.shape[a] == 1)
        total = array.sum(axis=axes, keepdims=True) % PRIME
        return np.asarray(total * (repeated % PRIME) % PRIME, np.int64)

    def _gradient(self, others: IntArray, c: int, place: int, count: int) -> IntArray:
        """Return the derivative with respect to one table, axes in the order of the layout."""
        j = self.component.families[place]
        scope = (*self.layout.parents[j], j)
        summed = self._summed(others, c, scope)
        clique = self.tree.cliques[c]
        shape = [self.layout.cardinalities[v] if v in scope else 1 for v in clique]
        full = np.broadcast_to(summed, (count, *shape))
        ascending = full.reshape([count] + [size for v, size in zip(clique, shape, strict=True) if v in scope])
        ranks = np.argsort(np.argsort(scope))
        return np.transpose(ascending, (0, *(1 + ranks)))


def _products_of_others(start: IntArray, factors: list[IntArray]) -> list[IntArray]:
    """Return, for each factor, `start` times all the others: products from the left times those from the right."""
    before = [start]
    for factor in factors:
        before.append(before[-1] * factor % PRIME)
    result: list[IntArray] = []
    after: IntArray | None = None
    for left, factor in zip(reversed(before[:-1]), reversed(factors), strict=True):
        result.append(left if after is None else left * after % PRIME)
        after = factor if after is None else after * factor % PRIME
    return result[::-1]
