"""The relabelings behind ln S as permutations of the flat vector, and the factor that makes one mode stand for all.

A chain that starts in one of S equivalent modes seldom leaves it, and a plain estimate is low by up to ln S. With any
density g, ρ(θ) = g(θ) / Σ_π g(πθ) sums to 1 over the relabelings of θ, so the posterior mean of S·ρ is exactly 1:
multiplying a weight by S·ρ(θ) keeps it unbiased, adds ln S when the modes are apart and nothing when they overlap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from lurking.expfam import dirichlet
from lurking.graph.dag import Dag
from lurking.graph.symmetry import symmetric_count
from lurking.inference.problem import Problem
from lurking.models.discrete.layout import Layout
from lurking.types import FloatArray, IntArray

MOST_RELABELINGS = 50_000
UNTIED = 1e-3


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
    # Permutations of nodes are tried one by one; those that fit, with all orders of states, are listed.
    nodes = math.prod(math.factorial(sum(s == r for _, s in hidden)) for r in {states for _, states in hidden})
    if nodes > MOST_RELABELINGS or symmetric_count(dag, {}) > MOST_RELABELINGS:
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


def relabelings_of(problem: Problem) -> IntArray | None:
    """Return the relabelings of a problem, listed once."""
    return problem.remember("relabelings", lambda: relabelings(problem.layout, problem.pseudo))


class Sharing:
    """Shares the posterior among the relabelings of several modes, so that chains from one of them stand for all.

    With modes q_1 … q_M, ρ_m(θ) = g_m(θ)^γ / Σ_{m′,π} g_{m′}(πθ)^γ sums to 1 over modes and relabelings, and
    p(y) = Σ_m E[w_m · S ρ_m(θ)] for weights w_m of chains that start at mode m. g_m is the density of Dir(α_m).

    Where the relabelings are too many to list, those of the states of the hidden variable with the most states are
    shared by assignment: ρ = 1 if no other order of the states suits g better, else 0. g is moved a little in a fixed
    direction there, so that states which are alike in α are never tied: exactly one order wins. `is_whole` tells
    whether that is all of them; if not, up to `log_missing` nats are left out where modes are apart.
    """

    def __init__(self, problem: Problem, alphas: Sequence[FloatArray]) -> None:
        layout, active = problem.layout, problem.engine.active
        self.alphas = [np.ones(layout.size) for _ in alphas]
        for flat, alpha in zip(self.alphas, alphas, strict=True):
            flat[active] = alpha
        self.permutations = relabelings_of(problem)
        self.normalisers = [dirichlet.log_normaliser(layout.row_start, alpha) for alpha in self.alphas]
        self._layout, self._active = layout, active
        self.states: list[IntArray] = []
        self.log_missing = 0.0
        if self.permutations is None:
            states = _state_positions(layout)
            if all(np.array_equal(problem.pseudo[states[0]], problem.pseudo[own]) for own in states):
                self.states = states
            self.log_missing = max(0.0, problem.log_aliases - math.lgamma(len(self.states) + 1.0))

    @property
    def is_whole(self) -> bool:
        """Whether every relabeling is shared out."""
        return self.log_missing < 1e-9

    def log_share(self, mode: int, active_log_theta: FloatArray, power: float) -> FloatArray:
        """Return ln(S · ρ_m(θ)) of each point, given ln θ over the active positions, (points, Q)."""
        if power == 0.0 and len(self.alphas) == 1:
            return np.zeros(len(active_log_theta))
        log_theta = np.zeros((len(active_log_theta), self._layout.size))
        log_theta[:, self._active] = active_log_theta
        if self.permutations is None:
            return self._by_assignment(mode, log_theta)
        scores = [
            power * (_scores(self.permutations, alpha, log_theta) + normaliser)
            for alpha, normaliser in zip(self.alphas, self.normalisers, strict=True)
        ]
        own = scores[mode][0]
        return np.asarray(math.log(len(self.permutations)) + own - logsumexp(np.concatenate(scores), axis=0))

    def switched(self, mode: int, active_log_theta: FloatArray) -> float:
        """Return the share of points that another relabeling of the same mode suits better: chains that switched."""
        if self.permutations is None or len(self.permutations) == 1 or not len(active_log_theta):
            return 0.0
        log_theta = np.zeros((len(active_log_theta), self._layout.size))
        log_theta[:, self._active] = active_log_theta
        return float((_scores(self.permutations, self.alphas[mode], log_theta).argmax(axis=0) != 0).mean())

    def _by_assignment(self, mode: int, log_theta: FloatArray) -> FloatArray:
        """Return ln r! where the identity is the best order of the states, −inf elsewhere."""
        if not self.states:
            return np.zeros(len(log_theta))
        result = np.full(len(log_theta), math.lgamma(len(self.states) + 1.0))
        for k, point in enumerate(log_theta):
            if not np.array_equal(self.best_order(mode, point), np.arange(len(self.states))):
                result[k] = -math.inf
        return result

    def best_order(self, mode: int, log_theta: FloatArray) -> IntArray:
        """Return the order of the states of one point (P,) that suits g best: which state takes each place, (r,)."""
        weights = np.stack([self.alphas[mode][own] - 1.0 for own in self.states])
        weights += UNTIED * np.random.default_rng(0).standard_normal(weights.shape)
        gains = weights @ np.stack([log_theta[own] for own in self.states]).T
        return np.asarray(linear_sum_assignment(gains, maximize=True)[1], np.int64)


def _state_positions(layout: Layout) -> list[IntArray]:
    """Return, for each state of the hidden variable with the most states, its flat positions in matching order."""
    name = max(layout.dag.hidden, key=lambda hidden: layout.dag.hidden[hidden])
    node = layout.index[name]
    found: list[list[IntArray]] = [[] for _ in range(layout.cardinalities[node])]
    for j, strides in enumerate(layout.strides):
        if node not in strides:
            continue
        others = np.indices([layout.cardinalities[v] for v in strides if v != node])
        offsets = np.full(others.shape[1:], layout.offsets[j], np.int64)
        for axis, stride in enumerate(stride for v, stride in strides.items() if v != node):
            offsets = offsets + stride * others[axis]
        for state, positions in enumerate(found):
            positions.append((offsets + strides[node] * state).ravel())
    return [np.concatenate(positions) for positions in found]
