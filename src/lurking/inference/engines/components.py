"""Which families of a row are complete, and how its unobserved variables fall into independent components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lurking.inference.engines.memory_of_rows import where_unobserved
from lurking.models.layout import Layout
from lurking.types import BoolArray, CodeArray, IntArray


@dataclass(frozen=True)
class Component:
    """Unobserved variables that are dependent given what is observed, and the families that touch them."""

    variables: tuple[int, ...]
    families: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """One missingness pattern taken apart; pruned nodes appear in neither part."""

    complete: tuple[int, ...]
    components: tuple[Component, ...]


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Splitter:
    """Splits missingness patterns of one structure; node sets are bit masks.

    With `prune`, an unobserved node stays only if it has an observed descendant, or is or leads to one of `wanted`.
    `families` restricts the split to some families, which must make up whole components.
    """

    def __init__(
        self, layout: Layout, prune: bool, wanted: Sequence[int] = (), families: Sequence[int] | None = None
    ) -> None:
        self.considered = (1 << len(layout.nodes)) - 1 if families is None else sum(1 << j for j in families)
        self.prune = prune
        self.wanted = sum(1 << j for j in wanted)
        self.scopes = [1 << j for j in range(len(layout.nodes))]
        self.child_masks = [0] * len(layout.nodes)
        for j, parents in enumerate(layout.parents):
            for parent in parents:
                self.scopes[j] |= 1 << parent
                self.child_masks[parent] |= 1 << j
        self.backwards = [layout.index[name] for name in reversed(layout.dag.topological_order)]

    def kept(self, unobserved: int) -> int:
        """Return the nodes that stay."""
        everything = (1 << len(self.scopes)) - 1
        if not self.prune:
            return everything
        keep = everything & ~unobserved | self.wanted
        for j in self.backwards:
            if self.child_masks[j] & keep:
                keep |= 1 << j
        return keep

    def split(self, unobserved: int, keep: int | None = None) -> Split:
        """Return the complete families and the independent components of one missingness pattern.

        `keep` are the nodes that stay, those of `kept` by default.
        """
        if keep is None:
            keep = self.kept(unobserved)
        free = unobserved & keep
        complete: list[int] = []
        parts: list[tuple[int, list[int]]] = []
        for j in bits(keep & self.considered):
            touched = self.scopes[j] & free
            if not touched:
                complete.append(j)
                continue
            variables, families = touched, [j]
            apart = []
            for part in parts:
                if part[0] & touched:
                    variables |= part[0]
                    families = part[1] + families
                else:
                    apart.append(part)
            parts = [*apart, (variables, families)]
        return Split(
            tuple(complete),
            tuple(Component(tuple(bits(variables)), tuple(sorted(families))) for variables, families in parts),
        )


class Opening(NamedTuple):
    """Rows that leave the same variables open: bit masks of what is unobserved and stays, and of all that stays.

    A node may stay in some of the rows only, when its family meets at most one open variable besides: the components
    are the same with and without it.
    """

    free: int
    keep: int
    rows: IntArray


def openings(layout: Layout, codes: CodeArray, splitter: Splitter) -> tuple[list[Opening], BoolArray | None]:
    """Return the rows grouped by what they leave open, and which nodes stay in each row (None: the same in all)."""
    if not len(codes):
        return [], None
    in_some, in_all = where_unobserved(codes)
    if np.array_equal(in_some, in_all):
        mask = _mask(in_all)
        keep = splitter.kept(mask)
        return [Opening(mask & keep, keep, np.arange(len(codes)))], None
    unobserved = codes < 0
    kept = kept_nodes(layout, codes, splitter.prune, list(bits(splitter.wanted)))
    free = unobserved & kept
    is_open: BoolArray = np.any(free, axis=0)
    linking = [
        j for j, parents in enumerate(layout.parents) if is_open[list(parents)].sum() > 1 and not kept[:, j].all()
    ]
    packed = np.packbits(np.concatenate([free[:, is_open], kept[:, linking]], axis=1), axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    bounds = np.searchsorted(inverse.ravel()[order], np.arange(len(first) + 1))
    result = []
    for k, row in enumerate(first):
        rows = order[bounds[k] : bounds[k + 1]]
        result.append(Opening(_mask(free[row]), _mask(np.any(kept[rows], axis=0)), rows))
    return result, kept


def _mask(flags: BoolArray) -> int:
    return sum(1 << int(j) for j in np.flatnonzero(flags))


def independent_families(layout: Layout, unobserved: Sequence[int]) -> list[list[int]]:
    """Return all families in sets that share no variable that may be unobserved; each set is a part of its own.

    A family without such a variable belongs with the first set: it is counted, not inferred.
    """
    split = Splitter(layout, prune=False).split(sum(1 << v for v in unobserved))
    families = [list(component.families) for component in split.components] or [[]]
    families[0] += split.complete
    return families


def kept_nodes(layout: Layout, codes: CodeArray, prune: bool, wanted: Sequence[int] = ()) -> BoolArray:
    """Return which nodes stay in each pattern, (u, nodes): what `Splitter.kept` says, for all patterns at once."""
    keep: BoolArray = codes >= 0
    if not prune:
        return np.ones_like(keep)
    keep[:, list(wanted)] = True
    children: list[list[int]] = [[] for _ in layout.nodes]
    for j, parents in enumerate(layout.parents):
        for parent in parents:
            children[parent].append(j)
    for name in reversed(layout.dag.topological_order):
        j = layout.index[name]
        if children[j]:
            keep[:, j] |= keep[:, children[j]].any(axis=1)
    return keep
