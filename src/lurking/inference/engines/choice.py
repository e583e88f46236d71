"""Which exact method does the work: enumeration or a junction tree, for each independent part of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lurking.errors import TooLarge
from lurking.inference.engines.base import Engine
from lurking.inference.engines.completions import CompletionEngine
from lurking.inference.engines.components import (
    Opening,
    Splitter,
    bits,
    independent_families,
    kept_nodes,
    openings,
)
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.junction import JunctionEngine
from lurking.inference.engines.memory_of_rows import where_unobserved
from lurking.inference.engines.pieces import Piece
from lurking.inference.engines.rows import Rows
from lurking.models.layout import Layout
from lurking.types import FloatArray, IntArray

ALWAYS_ENUMERATED = 64
"""Joint states up to which no tree is looked at: one compiled loop over so few is hard to beat."""
LOOKED_AT = 256
"""Ways of leaving variables open from which the cost of enumeration is estimated, about."""
COMPILING = 3000.0
"""What a group of equal components costs beyond its rows, in multiplications: it is compiled in Python once."""


class MixedEngine(Engine):
    """Engines for disjoint sets of families, side by side; made by `choose_engine`."""

    def __init__(self, parts: Sequence[Engine]) -> None:
        super().__init__(parts[0].layout, parts[0].rows, parts[0].prune, parts[0].wanted)
        self.parts = tuple(parts)
        self.complete_counts = np.sum([part.complete_counts for part in parts], axis=0)
        self.active = np.unique(np.concatenate([part.active for part in parts]))
        self._places = [np.searchsorted(self.active, part.active) for part in parts]
        # A table that families of several parts share may be active in one and have constant counts from another.
        self._constant = self.complete_counts[self.active]
        for part, places in zip(parts, self._places, strict=True):
            self._constant[places] -= part.complete_counts[part.active]

    @property
    def cost(self) -> float:
        """The sum over the parts."""
        return sum(part.cost for part in self.parts)

    @property
    def pieces(self) -> list[Piece] | None:
        """Those of all parts; None if some part has none."""
        result = []
        for part in self.parts:
            own = part.pieces
            if own is None:
                return None
            result += own
        return result

    def _expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return the sums of the parts' counts and of their shares of log_z."""
        counts, used = self._constant.copy(), self._constant != 0.0
        log_z = float(counts[used] @ potentials[used])
        for part, places in zip(self.parts, self._places, strict=True):
            own, share = part.expect_active(potentials[places])
            counts[places] += own
            log_z += share
        return counts, log_z

    def _log_z_active(self, points: FloatArray) -> FloatArray:
        """Return the sums of the parts' shares of log_z, (m,)."""
        used = self._constant != 0.0
        result = np.asarray(np.vecdot(np.compress(used, points, axis=1), self._constant[used]))
        for part, places in zip(self.parts, self._places, strict=True):
            result = result + part._log_z_active(np.take(points, places, axis=1))
        return result

    def _pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return the sum of the parts, (u,)."""
        return np.asarray(np.sum([part._pattern_log_z(potentials) for part in self.parts], axis=0))

    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return what the part says in which the node is unobserved; the others know it only where it is observed."""
        result = np.full((len(self.rows), self.layout.cardinalities[node]), np.nan)
        for part in self.parts:
            own = part.pattern_marginals(potentials, node)
            result = np.where(np.isnan(result), own, result)
        return result

    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the sum of the parts, (u, P)."""
        return np.asarray(np.sum([part.pattern_statistics(potentials) for part in self.parts], axis=0))


def choose_engine(layout: Layout, rows: Rows, prune: bool, wanted: Sequence[int] = ()) -> Engine:
    """Return the cheapest exact engine, part by part of the model; `TooLarge` when none fits.

    A model with nodes other than tables has its completions enumerated as arrays.
    """
    if not layout.are_tables:
        return CompletionEngine(layout, rows, prune, wanted)
    codes = rows.codes
    if _states(layout, np.flatnonzero(where_unobserved(codes)[0])) <= ALWAYS_ENUMERATED:
        return EnumerationEngine(layout, rows, prune, wanted)
    free = (codes < 0) & kept_nodes(layout, codes, prune, wanted)
    if _states(layout, np.flatnonzero(free.any(axis=0))) <= ALWAYS_ENUMERATED:
        return EnumerationEngine(layout, rows, prune, wanted)
    return _Choice(layout, rows, prune, wanted).engine(np.flatnonzero(free.any(axis=0)).tolist())


def _states(layout: Layout, variables: Sequence[int] | IntArray) -> int:
    return math.prod(layout.cardinalities[int(v)] for v in variables)


class _Choice:
    """The choice for one set of rows; lives only while an engine is made."""

    def __init__(self, layout: Layout, rows: Rows, prune: bool, wanted: Sequence[int]) -> None:
        self.layout = layout
        self.arguments = (layout, rows, prune, wanted)
        self.splitter = Splitter(layout, prune, wanted)
        self.openings = looked_at(layout, openings(layout, rows.codes, self.splitter)[0])

    def engine(self, open_variables: list[int]) -> Engine:
        """Return an engine for each independent part, those that are enumerated together in one."""
        enumerated: list[int] = []
        trees: list[Engine] = []
        for families in independent_families(self.layout, open_variables):
            tree = self._cheaper_tree(families)
            if tree is None:
                enumerated += families
            else:
                trees.append(tree)
        if enumerated:
            try:
                trees.insert(0, EnumerationEngine(*self.arguments, enumerated))
            except TooLarge:
                # The estimate looks at some rows only; and what no tree was tried for may still have one.
                trees.insert(0, self._tree(enumerated))
        return trees[0] if len(trees) == 1 else MixedEngine(trees)

    def _tree(self, families: list[int]) -> JunctionEngine:
        try:
            return JunctionEngine(*self.arguments, families)
        except TooLarge as refusal:
            raise TooLarge(f"no exact method fits: {refusal}") from None

    def _cheaper_tree(self, families: list[int]) -> Engine | None:
        """Return a tree for these families, or None when enumerating them is cheaper or all that is left."""
        cost, largest = enumeration_cost(self.layout, self.openings, self.splitter, families)
        if largest <= ALWAYS_ENUMERATED and cost <= COMPILING * LOOKED_AT:
            return None
        try:
            tree = JunctionEngine(*self.arguments, families)
        except TooLarge:
            return None
        return tree if tree.cost < cost else None


class LookedAt(NamedTuple):
    """Some of the ways in which rows leave variables open, and how many ways each of them stands for."""

    openings: list[Opening]
    each: int


def looked_at(layout: Layout, opened: list[Opening]) -> LookedAt:
    """Return every n-th opening, about `LOOKED_AT` of them, and the one that leaves the most states open."""
    step = max(1, len(opened) // LOOKED_AT)
    if step == 1:
        return LookedAt(opened, 1)
    sizes = [math.log(max(states, 1)) for states in layout.cardinalities]
    widest = max(opened, key=lambda opening: sum(sizes[j] for j in bits(opening.free)))
    return LookedAt([*opened[::step], widest], step)


def enumeration_cost(
    layout: Layout, looked: LookedAt, splitter: Splitter, families: Sequence[int]
) -> tuple[float, int]:
    """Return about how many multiplications one E-step by enumeration takes, and the most joint states of a component.

    Σ over rows and components of states · (families + 1), estimated from some of the ways in which rows are open. Rows
    that agree on a component are not merged in the estimate.
    """
    chosen = set(families)
    cost, largest = 0.0, 1
    groups: set[tuple[int, ...]] = set()
    for free, keep, rows in looked.openings:
        for component in splitter.split(free, keep).components:
            if component.families[0] in chosen:
                states = _states(layout, component.variables)
                largest = max(largest, states)
                # Beyond 2^1000 a float would overflow, and the comparison is decided.
                cost += float(len(rows)) * min(states, 1 << 1000) * (len(component.families) + 1)
                groups.add(component.variables)
    return looked.each * (cost + COMPILING * len(groups)), largest
