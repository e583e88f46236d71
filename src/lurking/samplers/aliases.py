"""The relabelings behind ln S as permutations of the flat vector, and the factor that makes one mode stand for all.

A chain that starts in one of S equivalent modes seldom leaves it, and a plain estimate is low by up to ln S. With any
positive g, ρ(θ) = g(θ) / Σ_π g(πθ) sums to 1 over the relabelings of θ, so the posterior mean of S·ρ is exactly 1:
multiplying a weight by S·ρ(θ) keeps it unbiased, adds ln S when the modes are apart and nothing when they overlap.
The same holds for any group of relabelings instead of all of them, with its own size in place of S.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from lurking.graph.dag import Dag
from lurking.graph.symmetry.actions import symmetric_count
from lurking.inference.problem import Problem
from lurking.models.layout import Layout
from lurking.samplers.orders import Orders
from lurking.types import BoolArray, FloatArray, IntArray

MOST_RELABELINGS = 50_000
MOST_ENTRIES = 1 << 27
"""Numbers in a list of relabelings at most, 1 GiB."""
MOST_OPERATIONS = 1 << 22
"""Operations for one sum over relabelings at most, some milliseconds: one hidden variable of up to 17 states."""
LISTED_AT_ONCE = 4
"""Operations of a sum over a list that take as long as one of a permanent: the former is a product of matrices."""
UNTIED = 1e-3
"""Spread of the fixed random numbers added to α where the best order wins all: large enough that no two orders tie."""


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
    return _listed(layout, pseudo, ())


def _listed(layout: Layout, pseudo: FloatArray, ordered: Collection[int]) -> IntArray | None:
    """Return one relabeling of each set of those that differ in orders of the states of the `ordered` nodes only.

    Shape (C, P), the identity first; None when there are too many. After renaming, the states of an ordered node are in
    the order they had, so every relabeling is one of these followed by an order of the states of each ordered node.
    """
    dag, count = layout.dag, _count_listed(layout, ordered)
    if count is None:
        return None
    hidden = [(layout.index[name], states) for name, states in dag.hidden.items() if states > 1]
    free = [(v, states) for v, states in hidden if v not in ordered]
    grids = [np.indices([layout.cardinalities[v] for v in layout.strides[j]]) for j in range(len(layout.nodes))]
    # Permutations of nodes are tried one by one; those that fit, with all orders of states, are listed. Those that
    # differ in nodes of one state alone are the same. Digests tell: copies would double the memory.
    tells = np.diff(layout.row_start)[layout.row_of] > 1
    result, known, found = np.empty((count, layout.size), np.int64), set[bytes](), 0
    for image in node_permutations(dag):
        to = [layout.index[image[name]] for name in layout.nodes]
        for orders in itertools.product(*(itertools.permutations(range(states)) for _, states in free)):
            order = {v: np.asarray(permuted) for (v, _), permuted in zip(free, orders, strict=True)}
            permutation = _permutation(layout, grids, to, order)
            if permutation is None:
                continue
            digest = hashlib.blake2b(permutation[tells].tobytes(), digest_size=16).digest()
            if digest not in known and np.array_equal(pseudo[permutation], pseudo):
                known.add(digest)
                result[found] = permutation
                found += 1
    return result[:found] if found == count else result[:found].copy()


def _count_listed(layout: Layout, ordered: Collection[int]) -> int | None:
    """Return how many relabelings `_listed` would list if the prior told nothing apart; None if that is too much."""
    dag = layout.dag
    tried = math.prod(math.factorial(list(dag.hidden.values()).count(states)) for states in set(dag.hidden.values()))
    orders = math.prod(math.factorial(layout.cardinalities[v]) for v in ordered)
    count = symmetric_count(dag, {}) // orders
    return count if max(tried, count) <= MOST_RELABELINGS and count * layout.size <= MOST_ENTRIES else None


def _permutation(layout: Layout, grids: list[IntArray], to: list[int], order: dict[int, IntArray]) -> IntArray | None:
    """Return the flat permutation that renames nodes, and then puts states in the order given for the new name.

    Nodes without an order keep that of their states, as those of one state do. None where tied families would move
    their shared table in different ways.
    """
    result = np.full(layout.size, -1, np.int64)
    for j, strides in enumerate(layout.strides):
        source = np.full(grids[j].shape[1:], layout.offsets[j], np.int64)
        target = np.full(grids[j].shape[1:], layout.offsets[to[j]], np.int64)
        for axis, (v, stride) in enumerate(strides.items()):
            states = grids[j][axis]
            source += stride * states
            moved = order[to[v]][states] if to[v] in order else states
            target += layout.strides[to[j]][to[v]] * moved
        if layout.tied and np.any((result[target] != -1) & (result[target] != source)):
            return None
        result[target.ravel()] = source.ravel()
    # Families that part from each other would need their table at two places.
    return result if not layout.tied or np.array_equal(np.sort(result), np.arange(layout.size)) else None


def log_share(permutations: IntArray, alpha: FloatArray, log_theta: FloatArray, power: float = 1.0) -> FloatArray:
    """Return ln(S · ρ(θ)) of each point, ρ(θ) = g(θ)^γ / Σ_π g(πθ)^γ, shape (points,).

    g is the density of Dir(`alpha`) and γ = `power`: any γ keeps weights unbiased, 0 leaves them as they are.
    """
    group = Orders(permutations)
    return np.asarray(group.log_count + power * (log_theta @ (alpha - 1.0)) - group.sums(alpha, log_theta, power)[0])


def relabelings_of(problem: Problem) -> IntArray | None:
    """Return the relabelings of a problem, listed once."""
    return problem.remember("relabelings", lambda: relabelings(problem.layout, problem.pseudo))


Form = Literal["listing", "permanents", "assignment"]


@dataclass(frozen=True, eq=False)
class Group:
    """The relabelings that are shared out, and how.

    form : "listing" sums over a list; "permanents" over a list and over all orders of the states of some hidden
        variables at once; "assignment" gives everything to the best of these orders.
    log_missing : ln of how many relabelings there are for each one in the group.
    """

    form: Form
    orders: Orders
    log_missing: float


def group_of(problem: Problem) -> Group:
    """Return the largest group of relabelings that can be shared out, found once."""
    return problem.remember("group of relabelings", lambda: _group(problem))


def _group(problem: Problem) -> Group:
    """Sum over all relabelings in the cheaper way; where neither is affordable, over orders of states alone."""
    layout, pseudo = problem.layout, problem.pseudo
    states = _ordered_states(layout, pseudo)
    single, identity = _operations(layout, states), np.arange(layout.size)[None, :]
    whole, part = _count_listed(layout, ()), _count_listed(layout, states)
    by_list = math.inf if whole is None else whole * layout.size / LISTED_AT_ONCE
    by_orders = math.inf if part is None or not states else part * single
    if by_orders < by_list and by_orders <= MOST_OPERATIONS:
        listed = _listed(layout, pseudo, states)
        assert listed is not None  # they were counted
        return Group("permanents", Orders(listed, tuple(states.values())), 0.0)
    permutations = relabelings_of(problem)
    if permutations is not None:
        return Group("listing", Orders(permutations), 0.0)
    orders = Orders(identity, tuple(states.values()))
    form: Form = "permanents" if states and single <= MOST_OPERATIONS else "assignment"
    return Group(form, orders, max(0.0, problem.log_aliases - orders.log_count))


def _operations(layout: Layout, states: dict[int, IntArray]) -> int:
    """Return about how many operations one point costs: potentials and permanents of r × r gains, and making these."""
    shapes = [(len(own), len(own[0])) for own in states.values()]
    return layout.size + sum(r * r * width + 8 * r * r * r + (r << r) for r, width in shapes)


def _ordered_states(layout: Layout, pseudo: FloatArray) -> dict[int, IntArray]:
    """Return {node: (r, w) flat positions of each of its states in matching order} of hidden nodes, largest first.

    Their states are the same to the prior, and no two of them are in one family, so that each position belongs to a
    state of one of them at most.
    """
    found: dict[int, IntArray] = {}
    hidden = [layout.index[name] for name, count in layout.dag.hidden.items() if count > 1]
    for node in sorted(hidden, key=lambda v: -layout.cardinalities[v]):
        if any(node in family and other in family for family in layout.strides for other in found):
            continue
        if not _moves_alone(layout, node):
            continue
        states = _state_positions(layout, node)
        if all(np.array_equal(pseudo[states[0]], pseudo[own]) for own in states):
            found[node] = states
    return found


def _moves_alone(layout: Layout, node: int) -> bool:
    """Whether an order of its states moves every shared table in one way: it is along the same axis in all families."""
    for group in layout.tied:
        strides = (layout.strides[layout.index[name]] for name in group)
        if len({own.get(node) for own in strides}) > 1:
            return False
    return True


def _state_positions(layout: Layout, node: int) -> IntArray:
    """Return, for each state of a node, its flat positions in matching order, (r, w)."""
    found: list[list[IntArray]] = [[] for _ in range(layout.cardinalities[node])]
    for j in layout.owners:
        strides = layout.strides[j]
        if node not in strides:
            continue
        others = np.indices([layout.cardinalities[v] for v in strides if v != node])
        offsets = np.full(others.shape[1:], layout.offsets[j], np.int64)
        for axis, stride in enumerate(stride for v, stride in strides.items() if v != node):
            offsets = offsets + stride * others[axis]
        for state, positions in enumerate(found):
            positions.append((offsets + strides[node] * state).ravel())
    return np.stack([np.concatenate(positions) for positions in found])


class Sharing:
    """Shares the posterior among the relabelings of several modes, so that chains from one of them stand for all.

    With modes q_1 … q_M, ρ_m(θ) = g_m(θ)^γ / Σ_{m′,π} g_{m′}(πθ)^γ sums to 1 over modes and relabelings, and
    p(y) = Σ_m E[w_m · S ρ_m(θ)] for weights w_m of chains that start at mode m. g_m is the density of Dir(α_m).

    The sum runs over a list of up to 50 000 relabelings, or over a list and the orders of states of hidden variables
    that share no family, by permanents (`lurking.samplers.orders`). Where not all of them are affordable, the
    orders of those states alone are shared: by permanents, or, for variables of more than 17 states, by assignment:
    ρ = 1 if no other order suits g better, else 0. g is moved a little in a fixed direction there, so that states which
    are alike in α are never tied: exactly one order wins. `is_whole` tells whether that is all of them; if not, up to
    `log_missing` nats are left out where modes are apart.
    """

    def __init__(self, problem: Problem, alphas: Sequence[FloatArray]) -> None:
        layout, active = problem.layout, problem.engine.active
        self.alphas = [np.ones(layout.size) for _ in alphas]
        for flat, alpha in zip(self.alphas, alphas, strict=True):
            flat[active] = alpha
        self.normalisers = [-layout.blocks.log_normaliser(alpha) for alpha in self.alphas]
        self._layout, self._active = layout, active
        self.group = group_of(problem)
        self.log_missing = self.group.log_missing

    @property
    def permutations(self) -> IntArray | None:
        """(S, P) all relabelings where they are listed, else None."""
        return self.group.orders.listed if self.group.form == "listing" else None

    @property
    def is_whole(self) -> bool:
        """Whether every relabeling is shared out."""
        return self.log_missing < 1e-9

    def log_share(self, mode: int, active_log_theta: FloatArray, power: float) -> FloatArray:
        """Return ln(S · ρ_m(θ)) of each point, given ln θ over the active positions, (points, Q)."""
        if power == 0.0 and len(self.alphas) == 1:
            return np.zeros(len(active_log_theta))
        log_theta, orders = self._whole(active_log_theta), self.group.orders
        if self.group.form == "assignment":
            return np.where(self._is_best(mode, log_theta), orders.log_count, -math.inf)
        own = power * (log_theta @ (self.alphas[mode] - 1.0) + self.normalisers[mode])
        sums = [
            orders.sums(alpha, log_theta, power)[0] + power * normaliser
            for alpha, normaliser in zip(self.alphas, self.normalisers, strict=True)
        ]
        return np.asarray(orders.log_count + own - np.logaddexp.reduce(sums, axis=0))

    def switched(self, mode: int, active_log_theta: FloatArray) -> float:
        """Return the share of points that another relabeling of the same mode suits better: chains that switched."""
        if not len(active_log_theta):
            return 0.0
        log_theta, alpha = self._whole(active_log_theta), self.alphas[mode]
        if self.group.form == "assignment":
            return float(1.0 - self._is_best(mode, log_theta).mean())
        own, best = log_theta @ (alpha - 1.0), self.group.orders.sums(alpha, log_theta, 1.0)[1]
        return float((own < best - 1e-9 * (1.0 + np.abs(best))).mean())

    def draw(self, active_log_theta: FloatArray, power: float, generator: np.random.Generator) -> IntArray:
        """Return a relabeling π of one point ln θ (Q,) of the first mode, drawn with probability ρ(πθ), as (P,)."""
        log_theta = self._whole(active_log_theta[None, :])[0]
        if self.group.form == "assignment":
            return self.best(0, log_theta)
        return self.group.orders.draw(self.alphas[0], log_theta, power, generator)

    def best(self, mode: int, log_theta: FloatArray) -> IntArray:
        """Return, as (P,), the orders of states of ln θ (P,) that suit g best, moved a little so that only one does."""
        result, generator = np.arange(self._layout.size), np.random.default_rng(0)
        for own in self.group.orders.states:
            weights = self.alphas[mode][own] - 1.0 + UNTIED * generator.standard_normal(own.shape)
            order = linear_sum_assignment(weights @ log_theta[own].T, maximize=True)[1]
            result[own] = own[order]
        return result

    def _is_best(self, mode: int, log_theta: FloatArray) -> BoolArray:
        """Return whether the orders that points ln θ (points, P) have are their best, (points,)."""
        identity = np.arange(self._layout.size)
        return np.asarray([np.array_equal(self.best(mode, point), identity) for point in log_theta], np.bool_)

    def _whole(self, active_log_theta: FloatArray) -> FloatArray:
        """Return ln θ over all positions, (points, P), given the active ones, (points, Q); α is 1 at all others."""
        log_theta = np.zeros((len(active_log_theta), self._layout.size))
        log_theta[:, self._active] = active_log_theta
        return log_theta
