"""Hidden states that the data do not use, or cannot tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lurking.models.layout import Layout
from lurking.types import FloatArray

EMPTY_BELOW = 0.5
DUPLICATE_WITHIN = 0.01
IDENTICAL_WITHIN = 1e-7


@dataclass(frozen=True)
class StateIssue:
    """What is doubtful about one hidden variable.

    kind "empty": states with less than half a row expected; "duplicate": states with the same profile;
    "unconnected": no observed variable depends on it, so the data say nothing about it.
    """

    node: str
    kind: str
    states: tuple[int, ...]

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.states))
        if self.kind == "unconnected":
            return (
                f"{self.node}: no observed variable depends on it, so the data say nothing about it; check the arrows"
            )
        if self.kind == "empty":
            return f"{self.node}: state {listed} holds less than half a row; fewer states would do"
        return f"{self.node}: states {listed} have the same profile; fewer states would do"


def state_profiles(layout: Layout, theta: FloatArray, node: int) -> FloatArray:
    """Return what each state of a node means for its children, (r, entries): their tables, state of the node first.

    No entries where a child has no row of its own for each state of its parents.
    """
    cards = layout.cardinalities
    parts = [np.empty((cards[node], 0))]
    for child, parents in enumerate(layout.parents):
        if node in parents:
            rows = layout.table(theta, layout.nodes[child])
            if len(rows) != layout.configurations[child]:
                return np.empty((cards[node], 0))  # the states differ in ways that no rows of their own show
            table = rows.reshape(*(cards[p] for p in parents), -1)
            parts.append(np.moveaxis(table, parents.index(node), 0).reshape(cards[node], -1))
    return np.concatenate(parts, axis=1)


def _distance(one: FloatArray, other: FloatArray) -> float:
    """Return the largest difference; equal infinite entries do not differ."""
    apart = one != other
    return float(np.abs(one[apart] - other[apart]).max(initial=0.0))


def _alike(profiles: FloatArray, states: list[int], within: float) -> list[tuple[int, ...]]:
    """Return groups of states whose profiles differ nowhere by more than `within` from the group's first."""
    groups: list[list[int]] = []
    for k in states:
        for group in groups:
            if _distance(profiles[k], profiles[group[0]]) <= within:
                group.append(k)
                break
        else:
            groups.append([k])
    return [tuple(group) for group in groups if len(group) > 1]


def state_issues(layout: Layout, theta: FloatArray, counts: FloatArray, n: float) -> tuple[StateIssue, ...]:
    """Return the empty and the duplicate states of every hidden node of a fit."""
    issues = []
    for name in layout.dag.hidden:
        j = layout.index[name]
        sizes = layout.table(counts, name).sum(axis=0)
        if layout.cardinalities[j] < 2 or n <= 0.0:
            continue
        issues += [StateIssue(name, "empty", (int(k),)) for k in np.flatnonzero(sizes < EMPTY_BELOW)]
        profiles = state_profiles(layout, theta, j)
        if profiles.shape[1]:
            used = [int(k) for k in np.flatnonzero(sizes >= EMPTY_BELOW)]
            issues += [StateIssue(name, "duplicate", group) for group in _alike(profiles, used, DUPLICATE_WITHIN)]
    return tuple(issues)


def is_symmetric(layout: Layout, theta: FloatArray) -> bool:
    """Whether two states of some hidden node (with children) are identical: a fixed point that may be a saddle."""
    for name in layout.dag.hidden:
        profiles = state_profiles(layout, theta, layout.index[name])
        if profiles.shape[1] and _alike(profiles, list(range(len(profiles))), IDENTICAL_WITHIN):
            return True
    return False
