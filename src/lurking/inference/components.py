"""Which families of a row are complete, and how its unobserved variables fall into independent components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lurking.models.discrete.layout import Layout


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
    """

    def __init__(self, layout: Layout, prune: bool, wanted: Sequence[int] = ()) -> None:
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

    def split(self, unobserved: int) -> Split:
        """Return the complete families and the independent components of one missingness pattern."""
        keep = self.kept(unobserved)
        free = unobserved & keep
        complete: list[int] = []
        parts: list[tuple[int, list[int]]] = []
        for j in bits(keep):
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
