"""The relabelings behind ln S as permutations of the flat vector, and the factor that makes one mode stand for all.

A chain that starts in one of S equivalent modes seldom leaves it, and a plain estimate is low by up to ln S. With any
density g, ρ(θ) = g(θ) / Σ_π g(πθ) sums to 1 over the relabelings of θ, so the posterior mean of S·ρ is exactly 1:
multiplying a weight by S·ρ(θ) keeps it unbiased, adds ln S when the modes are apart and nothing when they overlap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from lurking.graph.dag import Dag
from lurking.models.discrete.layout import Layout
from lurking.types import FloatArray, IntArray

MOST_RELABELINGS = 50_000


def node_permutations(dag: Dag) -> Iterator[dict[str, str]]:
    """Yield the permutations of hidden nodes that map the structure onto itself and keep cardinalities."""
    hidden = list(dag.hidden)
    edges = {(parent, child) for child in dag.nodes for parent in dag.parents(child)}
    by_states: dict[int, list[str]] = {}
    for name in hidden:
        by_states.setdefault(dag.hidden[name], []).append(name)
    for images in itertools.product(*(itertools.permutations(names) for names in by_states.values())):
        image = {name: name for name in dag.nodes}
        for names, permuted in zip(by_states.values(), images, strict=True):
            image.update(zip(names, permuted, strict=True))
        if {(image[parent], image[child]) for parent, child in edges} == edges:
            yield image


def relabelings(layout: Layout, pseudo: FloatArray) -> IntArray | None:
    """Return all relabelings that leave structure and prior as they are, (S, P); None when there are too many to list.

    Row π lists where each position of the relabelled vector comes from: (πθ) = θ[π]. The identity is the first.
    """
    dag = layout.dag
    hidden = [(layout.index[name], states) for name, states in dag.hidden.items() if states > 1]
    nodes = math.prod(math.factorial(sum(s == r for _, s in hidden)) for r in {states for _, states in hidden})
    if nodes * math.prod(math.factorial(states) for _, states in hidden) > MOST_RELABELINGS:
        return None
    grids = [np.indices([layout.cardinalities[v] for v in layout.strides[j]]) for j in range(len(layout.nodes))]
    found: dict[bytes, IntArray] = {}
    for image in node_permutations(dag):
        to = [layout.index[image[name]] for name in layout.nodes]
        for orders in itertools.product(*(itertools.permutations(range(states)) for _, states in hidden)):
            order = {v: np.asarray(permuted) for (v, _), permuted in zip(hidden, orders, strict=True)}
            permutation = _permutation(layout, grids, to, order)
            if np.array_equal(pseudo[permutation], pseudo):
                found.setdefault(permutation.tobytes(), permutation)
    identity = np.arange(layout.size)
    rest = [permutation for key, permutation in found.items() if key != identity.tobytes()]
    return np.stack([identity, *rest])


def _permutation(layout: Layout, grids: list[IntArray], to: list[int], order: dict[int, IntArray]) -> IntArray:
    """Return the flat permutation of one renaming of nodes and states; nodes of one state have nothing to exchange."""
    result = np.empty(layout.size, np.int64)
    for j, strides in enumerate(layout.strides):
        source = np.full(grids[j].shape[1:], layout.offsets[j], np.int64)
        target = np.full(grids[j].shape[1:], layout.offsets[to[j]], np.int64)
        for axis, (v, stride) in enumerate(strides.items()):
            states = grids[j][axis]
            source += stride * states
            moved = order[v][states] if v in order else states
            target += layout.strides[to[j]][to[v]] * moved
        result[target.ravel()] = source.ravel()
    return result


def log_share(permutations: IntArray, alpha: FloatArray, log_theta: FloatArray, power: float = 1.0) -> FloatArray:
    """Return ln(S · ρ(θ)) of each point, ρ(θ) = g(θ)^γ / Σ_π g(πθ)^γ, shape (points,).

    g is the density of Dir(`alpha`) and γ = `power`: any γ keeps weights unbiased, 0 leaves them as they are.
    """
    scores = power * _scores(permutations, alpha, log_theta)
    return np.asarray(math.log(len(permutations)) + scores[0] - logsumexp(scores, axis=0))


def _scores(permutations: IntArray, alpha: FloatArray, log_theta: FloatArray) -> FloatArray:
    """Return Σ (α − 1) ln (πθ) for every relabeling and point, (S, points)."""
    # (πθ)[q] = θ[π[q]]: the sum over q of (α − 1)[q] ln θ[π[q]] is the inverse-permuted weight on ln θ.
    weights = np.empty((len(permutations), len(alpha)))
    np.put_along_axis(weights, permutations, np.broadcast_to(alpha - 1.0, weights.shape), axis=1)
    return np.asarray(weights @ log_theta.T)
