"""Message passing as the textbooks have it: whole cliques, evidence as indicators, all rows at once, in logarithms.

The compiled kernel visits only the joint states that a row leaves open; it is tested against this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from lurking.types import BoolArray, FloatArray, IntArray


class Tree(NamedTuple):
    """A clique tree with parents before children, and the families that live in each clique."""

    cliques: Sequence[tuple[int, ...]]
    parent: Sequence[int]
    homes: Mapping[int, Sequence[int]]


class Tables(NamedTuple):
    """Where the families' tables lie: numbers of states, strides of each family's variables, first positions."""

    cardinalities: Sequence[int]
    strides: Sequence[Mapping[int, int]]
    offsets: Sequence[int]


def expect(
    tree: Tree,
    tables: Tables,
    codes: IntArray,
    kept: BoolArray,
    touched: BoolArray,
    weights: FloatArray,
    potentials: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the expected counts of the families that `touched` marks, (P,), and their share of ln z by row, (rows,).

    codes, kept : (rows, nodes), −1 where unobserved; False where an unobserved cell is left out of its row.
    touched : (rows, nodes), where the family of a node meets something unobserved; it has no part elsewhere.
    """
    places = [_places(clique, tree.homes[c], tables, codes) for c, clique in enumerate(tree.cliques)]
    scores = [_evidence(clique, tables, codes, kept) for clique in tree.cliques]
    for c in range(len(scores)):
        for j, place in places[c].items():
            inside = touched[:, j].reshape(-1, *[1] * len(tree.cliques[c]))
            scores[c] = scores[c] + np.where(inside, potentials[place], 0.0)
    messages: dict[int, FloatArray] = {}
    log_z = np.zeros(len(codes))
    for c in reversed(range(len(scores))):
        above = tree.parent[c]
        if above < 0:
            log_z += logsumexp(scores[c].reshape(len(codes), -1), axis=1)
            continue
        messages[c] = _marginal(scores[c], tree.cliques[c], tree.cliques[above])
        scores[above] = scores[above] + _spread(messages[c], tree.cliques[c], tree.cliques[above])
    counts = np.zeros_like(potentials)
    for c in range(len(scores)):
        above = tree.parent[c]
        if above >= 0:
            marginal = _marginal(scores[above], tree.cliques[above], tree.cliques[c])
            with np.errstate(invalid="ignore"):
                ratio = np.where(np.isneginf(messages[c]), -np.inf, marginal - messages[c])
            scores[c] = scores[c] + _spread(ratio, tree.cliques[above], tree.cliques[c])
        total = logsumexp(scores[c].reshape(len(codes), -1), axis=1).reshape(-1, *[1] * len(tree.cliques[c]))
        for j, place in places[c].items():
            share = np.exp(scores[c] - total) * (weights * touched[:, j]).reshape(total.shape)
            np.add.at(counts, place, share)
    return counts, log_z


def _axis(values: IntArray, position: int, axes: int) -> IntArray:
    """Return a vector laid along one of several axes."""
    return values.reshape([-1 if a == position else 1 for a in range(axes)])


def _evidence(clique: tuple[int, ...], tables: Tables, codes: IntArray, kept: BoolArray) -> FloatArray:
    """Return the log indicator of what each row observes, (rows, states …); a cell left out stands at state 0."""
    scores = np.zeros((len(codes), *[tables.cardinalities[v] for v in clique]))
    for a, v in enumerate(clique, 1):
        states = _axis(np.arange(tables.cardinalities[v]), a, scores.ndim)
        fixed = _axis(np.where(kept[:, v], codes[:, v], 0), 0, scores.ndim)
        scores = scores + np.where((fixed >= 0) & (states != fixed), -np.inf, 0.0)
    return scores


def _places(clique: tuple[int, ...], families: Sequence[int], tables: Tables, codes: IntArray) -> dict[int, IntArray]:
    """Return where each family reads the flat vector, (rows, states …)."""
    shape = (len(codes), *[tables.cardinalities[v] for v in clique])
    result = {}
    for j in families:
        place = np.full(shape, tables.offsets[j], np.int64)
        for v, stride in tables.strides[j].items():
            if v in clique:
                place += stride * _axis(np.arange(tables.cardinalities[v]), clique.index(v) + 1, len(shape))
            else:
                place += stride * _axis(np.maximum(codes[:, v], 0), 0, len(shape))
        result[j] = place
    return result


def _marginal(scores: FloatArray, clique: tuple[int, ...], other: tuple[int, ...]) -> FloatArray:
    """Return ln Σ exp over the variables that the other clique lacks, (rows, shared states …)."""
    gone = tuple(a for a, v in enumerate(clique, 1) if v not in other)
    return np.asarray(logsumexp(scores, axis=gone) if gone else scores)


def _spread(message: FloatArray, clique: tuple[int, ...], other: tuple[int, ...]) -> FloatArray:
    """Return a message between two cliques with one axis for each variable of `other`; both list them ascending."""
    sizes = iter(message.shape[1:])
    return message.reshape(len(message), *[next(sizes) if v in clique else 1 for v in other])
