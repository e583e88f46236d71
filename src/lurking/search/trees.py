"""The best tree as a start of a search (Chow & Liu 1968, by the gain in score instead of mutual information)."""

from __future__ import annotations

import numpy as np

from lurking.graph.dag import Dag
from lurking.graph.moves import ArcSet
from lurking.graph.symmetry.groups import Groups
from lurking.search.constraints import Constraints
from lurking.search.families import FamilyScorer
from lurking.types import FloatArray


def tree(scorer: FamilyScorer, constraints: Constraints) -> Dag:
    """Return the forest of greatest gain over no arcs, directed away from the first variable of each of its trees.

    The gain of joining x and y is score(y | x) − score(y), which a score-equivalent score gives in both directions; of
    others the better direction counts. Pairs without a positive gain stay apart. Required arcs come first, and arcs of
    the forest that the constraints rule out are left out.
    """
    size = len(scorer.variables)
    gains = _gains(scorer)
    both = np.maximum(gains, gains.T)
    neighbours = _spanning_forest(both)
    arcs = ArcSet.from_matrix(constraints.required)
    is_seen = [False] * size
    for root in range(size):
        waiting = [] if is_seen[root] else [root]
        is_seen[root] = True
        while waiting:
            x = waiting.pop(0)
            for y in neighbours[x]:
                if not is_seen[y]:
                    is_seen[y] = True
                    waiting.append(y)
                    _join(arcs, constraints, x, y)
    pairs = [(scorer.variables[x], scorer.variables[y]) for y, x in np.argwhere(arcs.arcs.T)]
    return Dag(scorer.variables, pairs)


def _gains(scorer: FamilyScorer) -> FloatArray:
    """Return score(y | x) − score(y) as (p, p), x by y; −inf on the diagonal."""
    size = len(scorer.variables)
    gains = np.full((size, size), -np.inf)
    for y in range(size):
        others = np.flatnonzero(np.arange(size) != y)
        if others.size:
            gains[others, y] = scorer.scores_of_additions(y, (), others) - scorer.score(y, ())
    return gains


def _spanning_forest(weights: FloatArray) -> list[list[int]]:
    """Return the neighbours of each position in the forest of greatest positive weight (Kruskal); ties by position."""
    size = len(weights)
    parts = Groups(size)
    xs, ys = np.triu_indices(size, 1)
    neighbours: list[list[int]] = [[] for _ in range(size)]
    for k in np.argsort(-weights[xs, ys], kind="stable"):
        x, y = int(xs[k]), int(ys[k])
        if weights[x, y] <= 0.0:
            break
        if parts.join(x, y):
            neighbours[x].append(y)
            neighbours[y].append(x)
    return neighbours


def _join(arcs: ArcSet, constraints: Constraints, x: int, y: int) -> None:
    """Add x → y, or y → x where only that is allowed; leave it out where neither is."""
    for parent, child in ((x, y), (y, x)):
        is_free = constraints.allowed[parent, child] and not arcs.arcs[child, parent]
        has_room = arcs.arcs[:, child].sum() < constraints.max_parents
        if arcs.arcs[parent, child] or (is_free and has_room and not arcs.reaches[child, parent]):
            if not arcs.arcs[parent, child]:
                arcs.add(parent, child)
            return
