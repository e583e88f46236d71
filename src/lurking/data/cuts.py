"""Where to cut a column of numbers: by equal counts, by equal width, or where the evidence is highest.

The rows are those that count: their values, shape (n,), are finite and their weights, shape (n,), positive. They are
seen as m distinct values v_0 < ... < v_{m−1} with summed weights. *Boundary* b, for b from 0 to m − 2, separates v_b
from v_{b+1}; equal values can therefore never be torn apart.

By evidence, E - 1 candidate boundaries divide the values into E cells, and every way to join neighbouring cells to K
classes is considered. Its score is a sum over the classes plus a term of K alone, so for each K the best of all
C(E−1, K−1) ways is found by dynamic programming, O(K E²). The prior is uniform over K and, given K, over the ways; its
first part is a constant and left out, its second is −ln C(E−1, K−1).

The prior over cut points and the search are those of histograms by description length (Kontkanen & Myllymäki 2007) and
of supervised cutting (Boullé 2006); the scores are Dirichlet evidences.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal

import numpy as np
from scipy.special import gammaln

from lurking.data.intervals import class_codes
from lurking.kernels.reference.special import dirichlet_evidence, log_rising
from lurking.types import FloatArray, IntArray

MOST_CANDIDATES = 256
COUNTS_AT_ONCE = 1 << 20
"""Counts of a target's states in classes that are evaluated together."""
SAME_SHARE = 1e-9
DIGITS_OF_A_FLOAT = 17
DIGITS_OF_A_WIDTH = 6


def quantile_cuts(values: FloatArray, weights: FloatArray, n_classes: int) -> list[float]:
    """Return the cut points of classes of equal weight, as nearly as ties allow; fewer than asked if some coincide."""
    distinct, summed = weighted_distinct(values, weights)
    return cuts_at(distinct, balanced_boundaries(summed, n_classes))


def width_cuts(values: FloatArray, n_classes: int) -> list[float]:
    """Return the cut points that divide the range of the values equally, rounded to a millionth of a part."""
    low, high = float(values.min()), float(values.max())
    width = high / n_classes - low / n_classes
    if not width > 0.0:
        return []
    step = Decimal(10) ** (math.floor(math.log10(width)) - DIGITS_OF_A_WIDTH)
    cuts: list[float] = []
    for k in range(1, n_classes):
        exact = Decimal(low * (1.0 - k / n_classes) + high * (k / n_classes))
        cut = float(round(exact / step) * step)
        # In a range of a few floating-point numbers neighbouring cut points can coincide.
        if max([low, *cuts]) < cut <= high:
            cuts.append(cut)
    return cuts


def histogram_cuts(values: FloatArray, weights: FloatArray, most_classes: int) -> list[float]:
    """Return the cut points of the histogram with the highest evidence, of at most `most_classes` bins."""
    distinct, summed = weighted_distinct(values, weights)
    candidates = candidate_boundaries(summed)
    n_cells = len(candidates) + 1
    edges = np.concatenate([distinct[:1], distinct[candidates] / 2 + distinct[candidates + 1] / 2, distinct[-1:]])
    below = np.append(0.0, np.cumsum(summed)[np.append(candidates, -1)])
    terms = histogram_terms(float(below[-1]), n_cells, min(most_classes, n_cells))
    chosen, _ = best_partition(histogram_scores(edges, below), terms)
    return cuts_at(distinct, candidates[chosen])


def target_cuts(
    values: FloatArray, weights: FloatArray, codes: IntArray, n_states: int, most_classes: int
) -> list[float]:
    """Return the cut points under which the classes tell most about a target, whose states are `codes`, shape (n,)."""
    distinct, summed = weighted_distinct(values, weights)
    candidates = candidate_boundaries(summed)
    n_cells = len(candidates) + 1
    # A cell begins right after the last value below its boundary.
    cells = class_codes(values, np.nextafter(distinct[candidates], np.inf))
    counts = np.bincount(cells * n_states + codes, weights, minlength=n_cells * n_states).reshape(n_cells, n_states)
    below = np.concatenate([np.zeros((1, n_states)), np.cumsum(counts, axis=0)])
    chosen, _ = best_partition(target_scores(below), -log_ways(n_cells, min(most_classes, n_cells)))
    return cuts_at(distinct, candidates[chosen])


def weighted_distinct(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values ascending and their summed weights, both (m,)."""
    order = np.argsort(values)
    ascending = values[order]
    starts = np.flatnonzero(np.append(True, ascending[1:] > ascending[:-1]))
    return ascending[starts], np.add.reduceat(weights[order], starts)


def balanced_boundaries(weights: FloatArray, n_classes: int) -> IntArray:
    """Return, ascending and each once, the boundaries nearest in weight to k n / n_classes, k = 1 ... n_classes - 1.

    Of two equally near ones the lower is taken; differences too small to be more than rounding count as none.
    """
    below = np.cumsum(weights)
    inner = below[:-1]
    if len(inner) == 0:
        return np.empty(0, dtype=np.int64)
    wanted = below[-1] * np.arange(1, n_classes) / n_classes
    upper = np.clip(np.searchsorted(inner, wanted), 0, len(inner) - 1)
    lower = np.maximum(upper - 1, 0)
    is_nearer = np.abs(inner[upper] - wanted) < np.abs(inner[lower] - wanted) - SAME_SHARE * below[-1]
    return np.unique(np.where(is_nearer, upper, lower)).astype(np.int64)


def candidate_boundaries(weights: FloatArray) -> IntArray:
    """Return all m − 1 boundaries, or at most `MOST_CANDIDATES` of them at equal steps of weight."""
    if len(weights) - 1 <= MOST_CANDIDATES:
        return np.arange(len(weights) - 1, dtype=np.int64)
    return balanced_boundaries(weights, MOST_CANDIDATES + 1)


def cuts_at(distinct: FloatArray, boundaries: IntArray) -> list[float]:
    """Return a short cut point for each boundary."""
    return [separating_number(float(distinct[b]), float(distinct[b + 1])) for b in boundaries]


def separating_number(low: float, high: float) -> float:
    """Return c with low < c <= high: the midpoint, rounded to the fewest significant digits that keep it there.

    Zero counts as a number without digits. Halves are rounded upward, so that 24 and 25 give 25, and 2.4 and 2.5 give
    2.5; for that the midpoint is taken of the numbers as they are written in decimals.
    """
    if low < 0.0 <= high:
        return 0.0
    middle = (Decimal(repr(low)) + Decimal(repr(high))) / 2
    rounding = ROUND_HALF_UP if middle > 0 else ROUND_HALF_DOWN
    for digits in range(1, DIGITS_OF_A_FLOAT + 1):
        cut = float(Context(prec=digits, rounding=rounding).plus(middle))
        if low < cut <= high:
            return cut
    return high


def best_partition(scores: FloatArray, terms: FloatArray) -> tuple[IntArray, float]:
    """Return the best way to join E cells to at most len(terms) classes, and its score.

    Parameters
    ----------
    scores : array, shape (E + 1, E + 1)
        ``scores[i, j]`` is the score of a class of the cells i, ..., j - 1; -inf for j <= i.
    terms : array, shape (limit,), limit <= E
        ``terms[K - 1]`` is added when there are K classes.

    Returns
    -------
    The positions 0 ... E - 2 of the chosen candidates, ascending, shape (K - 1,), and the highest total. Of equals the
    one with the fewest classes is taken.

    Notes
    -----
    With best_1(j) = scores[0, j], the best of K classes for the first j cells is
    best_K(j) = max_i best_{K-1}(i) + scores[i, j], and its last class begins at the i that attains it.
    """
    limit, last = len(terms), len(scores) - 1
    best = scores[0]
    totals = [float(best[last])]
    origins: list[IntArray] = []
    for _ in range(1, limit):
        joined = best[:, None] + scores
        origins.append(joined.argmax(axis=0))
        best = joined.max(axis=0)
        totals.append(float(best[last]))
    with_terms = np.asarray(totals) + terms
    n_classes = int(np.argmax(with_terms)) + 1
    chosen: list[int] = []
    end = last
    for k in range(n_classes - 2, -1, -1):
        end = int(origins[k][end])
        chosen.append(end - 1)
    return np.asarray(chosen[::-1], dtype=np.int64), float(with_terms[n_classes - 1])


def histogram_scores(edges: FloatArray, below: FloatArray, pseudo_count: float = 1.0) -> FloatArray:
    """Return ln Γ(n_k + λ) − ln Γ(λ) − n_k ln(width_k) of every class of neighbouring cells, shape (E + 1, E + 1).

    `edges`, shape (E + 1,), are the bounds of the cells and `below` the weight below each; n_k is the weight of the
    class. Under a density that is constant in each of K bins, with bin probabilities from Dirichlet(λ, ..., λ), the
    evidence of n numbers, n_k of them in bin k, is

    ln p(x | cuts) = ln Γ(Kλ) − ln Γ(n + Kλ) + Σ_k [ln Γ(n_k + λ) − ln Γ(λ) − n_k ln(width_k)].
    """
    first, last = np.triu_indices(len(edges), k=1)
    counts = below[last] - below[first]
    # Halves, because the difference of two huge numbers of unlike sign would be infinite.
    halves = edges[last] / 2 - edges[first] / 2
    with np.errstate(divide="ignore"):
        density = -counts * (np.log(halves) + math.log(2.0))
    scores = np.full((len(edges), len(edges)), -np.inf)
    # A bin too narrow to have a width in floating point has no density either.
    scores[first, last] = np.where(halves > 0.0, log_rising(np.asarray(pseudo_count), counts) + density, -np.inf)
    return scores


def histogram_terms(n: float, n_cells: int, limit: int, pseudo_count: float = 1.0) -> FloatArray:
    """Return ln Γ(Kλ) − ln Γ(n + Kλ) − ln C(E−1, K−1) for K = 1 ... limit, shape (limit,)."""
    strengths = np.asarray(pseudo_count * np.arange(1, limit + 1), np.float64)
    return np.asarray(-log_rising(strengths, np.asarray(n)) - log_ways(n_cells, limit))


def target_scores(below: FloatArray, pseudo_count: float = 1.0) -> FloatArray:
    """Return the Dirichlet evidence of the target's states in every class of neighbouring cells, (E + 1, E + 1).

    `below`, shape (E + 1, C), is the weight of each of the C states below each edge. A class with n_c of state c scores
    ln Γ(Cλ) − ln Γ(Σ_c n_c + Cλ) + Σ_c [ln Γ(n_c + λ) − ln Γ(λ)].
    """
    n_edges, n_states = below.shape
    totals = below.sum(axis=1)
    # A state that never occurs adds nothing.
    occurring = below[:, below[-1] > 0]
    scores = np.full((n_edges, n_edges), -np.inf)
    firsts, lasts = np.triu_indices(n_edges, k=1)
    # Not all classes at once: that would need E² C numbers.
    step = max(1, COUNTS_AT_ONCE // n_states)
    for begin in range(0, len(firsts), step):
        first, last = firsts[begin : begin + step], lasts[begin : begin + step]
        counts = np.maximum(occurring[last] - occurring[first], 0.0)
        sums = (totals[last] - totals[first])[:, None]
        scores[first, last] = dirichlet_evidence(pseudo_count, counts, pseudo_count * n_states, sums)
    return scores


def log_ways(n_cells: int, limit: int) -> FloatArray:
    """Return ln C(E−1, K−1), the number of ways to join E cells to K classes, for K = 1 ... limit, shape (limit,)."""
    chosen = np.arange(limit)
    return np.asarray(gammaln(n_cells) - gammaln(chosen + 1.0) - gammaln(n_cells - chosen))
