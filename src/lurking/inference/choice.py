"""Which exact method does the work: enumeration or a junction tree, for each independent part of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lurking.errors import TooLarge
from lurking.inference.base import Engine
from lurking.inference.components import Splitter, independent_families, kept_nodes, openings
from lurking.inference.enumeration import EnumerationEngine
from lurking.inference.junction import JunctionEngine
from lurking.models.discrete.layout import Layout
from lurking.types import CodeArray, FloatArray

ALWAYS_ENUMERATED = 64
"""Joint states up to which no tree is looked at: one compiled loop over so few is hard to beat."""
LOOKED_AT = 256
"""Ways of leaving variables open from which the cost of enumeration is estimated, about."""
COMPILING = 3000.0
"""What a group of equal components costs beyond its rows, in multiplications: it is compiled in Python once."""


class MixedEngine(Engine):
    """Engines for disjoint sets of families, side by side; made by `choose_engine`."""

    def __init__(self, layout: Layout, codes: CodeArray, parts: Sequence[Engine]) -> None:
        self.layout, self.codes, self.parts = layout, codes, tuple(parts)
        self.program = None
        self.complete_counts = np.sum([part.complete_counts for part in parts], axis=0)
        self.active = np.sort(np.concatenate([part.active for part in parts]))
        self._places = [np.searchsorted(self.active, part.active) for part in parts]

    @property
    def cost(self) -> float:
        """The sum over the parts."""
        return sum(part.cost for part in self.parts)

    def expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return the parts' counts, each in its own places, and the sum of their shares of log_z."""
        counts, log_z = np.empty(len(self.active)), 0.0
        for part, places in zip(self.parts, self._places, strict=True):
            counts[places], share = part.expect_active(potentials[places])
            log_z += share
        return counts, log_z

    def pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return the sum of the parts, (u,)."""
        return np.asarray(np.sum([part.pattern_log_z(potentials) for part in self.parts], axis=0))

    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return what the part says in which the node is unobserved; the others know it only where it is observed."""
        result = np.full((len(self.codes), self.layout.cardinalities[node]), np.nan)
        for part in self.parts:
            own = part.pattern_marginals(potentials, node)
            result = np.where(np.isnan(result), own, result)
        return result

    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the sum of the parts, (u, P)."""
        return np.asarray(np.sum([part.pattern_statistics(potentials) for part in self.parts], axis=0))


def choose_engine(
    layout: Layout, codes: CodeArray, weights: FloatArray, prune: bool, wanted: Sequence[int] = ()
) -> Engine:
    """Return the cheapest exact engine, part by part of the model; `TooLarge` when none fits."""
    unobserved = codes < 0
    if _states(layout, np.flatnonzero(unobserved.any(axis=0))) <= ALWAYS_ENUMERATED:
        return EnumerationEngine(layout, codes, weights, prune, wanted)
    free = unobserved & kept_nodes(layout, codes, prune, wanted)
    if _states(layout, np.flatnonzero(free.any(axis=0))) <= ALWAYS_ENUMERATED:
        return EnumerationEngine(layout, codes, weights, prune, wanted)
    enumerated: list[int] = []
    trees: list[Engine] = []
    for families in independent_families(layout, np.flatnonzero(free.any(axis=0)).tolist()):
        tree = _cheaper_tree(layout, codes, weights, prune, wanted, families)
        if tree is None:
            enumerated += families
        else:
            trees.append(tree)
    if not trees:
        return EnumerationEngine(layout, codes, weights, prune, wanted)
    if not enumerated and len(trees) == 1:
        return trees[0]
    rest = [EnumerationEngine(layout, codes, weights, prune, wanted, enumerated)] if enumerated else []
    return MixedEngine(layout, codes, [*rest, *trees])


def _states(layout: Layout, variables: Sequence[int] | np.ndarray) -> int:
    return math.prod(layout.cardinalities[v] for v in variables)


def _cheaper_tree(
    layout: Layout,
    codes: CodeArray,
    weights: FloatArray,
    prune: bool,
    wanted: Sequence[int],
    families: list[int],
) -> Engine | None:
    """Return a tree for these families, or None when enumerating them is cheaper."""
    cost, largest = enumeration_cost(layout, codes, prune, wanted, families)
    if largest <= ALWAYS_ENUMERATED and cost <= COMPILING * LOOKED_AT:
        return None
    try:
        tree = JunctionEngine(layout, codes, weights, prune, wanted, families)
    except TooLarge:
        if cost > 2**40:
            raise
        try:
            EnumerationEngine(layout, codes, weights, prune, wanted, families)
        except TooLarge:
            pass
        else:
            return None
        raise
    return tree if tree.cost < cost or largest > 2**22 else None


def enumeration_cost(
    layout: Layout, codes: CodeArray, prune: bool, wanted: Sequence[int], families: Sequence[int]
) -> tuple[float, int]:
    """Return about how many multiplications one E-step by enumeration takes, and the most joint states of a component.

    Σ over rows and components of states · (families + 1), estimated from about `LOOKED_AT` of the ways rows are open.
    Rows that agree on a component are not merged in the estimate.
    """
    splitter = Splitter(layout, prune, wanted)
    chosen = set(families)
    opened, _ = openings(layout, codes, splitter)
    step = max(1, len(opened) // LOOKED_AT)
    cost, largest = 0.0, 1
    groups: set[tuple[int, ...]] = set()
    for free, keep, rows in opened[::step]:
        for component in splitter.split(free, keep).components:
            if component.families[0] in chosen:
                states = _states(layout, component.variables)
                largest = max(largest, states)
                cost += float(len(rows)) * states * (len(component.families) + 1)
                groups.add(component.variables)
    return step * (cost + COMPILING * len(groups)), largest
