"""Splitting and merging states of a hidden variable with all parameters integrated out (after Jain & Neal 2004).

The cases of state a are dealt out to a and b by restricted Gibbs scans. A scan draws the parameters of the two states
given where the cases are, θ ~ Dir(λ + N), then every case anew,

    ρ_i = p(a | case i, θ) = θ_h[a] Π_c θ_c[a] / (θ_h[a] Π_c θ_c[a] + θ_h[b] Π_c θ_c[b]).

The launch ω, the parameters before the last scan, starts from cases dealt out at random, so that its distribution
depends on the merged state alone; it is the same for a split and for the merge that undoes it, and cancels. A split is
accepted with probability

    min(1, [p(s', y|m') p(m')] / [p(s, y|m) p(m)] · 1/q(s'|ω)),  q(s'|ω) = Π_i ρ_i or 1 − ρ_i.

Equal cases are counts; their binomial coefficients stand in q and in the number of ways to make the counts, and cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lurking.models.prior import BDeuPrior, SymmetricPrior
from lurking.samplers.jumps.cells import Cells, family_index, side_by_side, sums_at
from lurking.types import AnyArray, FloatArray, IntArray

SCANS = 4
"""Restricted Gibbs scans before the one whose probability counts."""

Families = tuple[tuple[int, tuple[int, ...]], ...]


class Cases(NamedTuple):
    """The cases of one state to be split, in cells of the larger variable."""

    first: IntArray
    """(m,) the cell of each kind of case with the state a."""
    second: IntArray
    """(m,) its cell with the state b."""
    totals: FloatArray
    """(m,) cases of each kind."""


def cases_of(cells: Cells, rows: IntArray, codes: AnyArray, totals: FloatArray, node: int, a: int, b: int) -> Cases:
    """Return the cases `codes` (p, m) of different `rows` (m,), in whose place `node` takes the states a and b."""
    codes = codes.copy()
    codes[node] = a
    first = cells.places(rows, codes)
    codes[node] = b
    return Cases(first, cells.places(rows, codes), totals)


def launch(
    cells: Cells,
    families: Families,
    prior: SymmetricPrior | BDeuPrior,
    cases: Cases,
    generator: np.random.Generator,
) -> FloatArray:
    """Return ln ρ/(1 − ρ) of every kind of case, (m,), under parameters drawn by restricted scans from a random deal.

    `families` are those of the hidden variable and of its children, on the cells of the larger variable.
    """
    places = [
        tuple(family_index(cells.codes[:, at], cells.cardinalities, *family) for at in (cases.first, cases.second))
        for family in families
    ]
    sizes = [cells.size(*family) for family in families]
    states = [cells.cardinalities[node] for node, _ in families]
    totals = cases.totals.astype(np.int64)
    taken = generator.binomial(totals, 0.5).astype(np.float64)
    log_odds = np.zeros(len(totals))
    for scan in range(SCANS):
        rest = cases.totals - taken
        counts = [
            sums_at(at_first, taken, size) + sums_at(at_second, rest, size)
            for (at_first, at_second), size in zip(places, sizes, strict=True)
        ]
        log_odds[:] = 0.0
        for (at_first, at_second), log_theta in zip(
            places, drawn_tables(counts, prior, states, generator), strict=True
        ):
            log_odds += log_theta[at_first] - log_theta[at_second]
        if scan < SCANS - 1:
            taken = deal(totals, log_odds, generator)
    return log_odds


def deal(totals: AnyArray, log_odds: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return how many cases of each kind go to the first state."""
    share = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
    return np.asarray(generator.binomial(totals.astype(np.int64), share), np.float64)


def log_deal(totals: FloatArray, taken: FloatArray, log_odds: FloatArray) -> float:
    """Return ln q(s'|ω) of the cases one by one: Σ [taken ln ρ + (totals − taken) ln (1 − ρ)]."""
    odds = np.clip(log_odds, -700.0, 700.0)
    return float(-(taken @ np.logaddexp(0.0, -odds) + (totals - taken) @ np.logaddexp(0.0, odds)))


def drawn_tables(
    counts: Sequence[FloatArray],
    prior: SymmetricPrior | BDeuPrior,
    states: Sequence[int],
    generator: np.random.Generator,
) -> list[FloatArray]:
    """Return ln θ, flat, of some families with every row, of length `states`, drawn from Dir(λ + N)."""
    blocks, pseudo = side_by_side(prior, tuple((len(own) // r, r) for own, r in zip(counts, states, strict=True)))
    drawn = blocks.draw(pseudo + np.concatenate(counts), generator)
    return np.split(drawn, np.cumsum([len(own) for own in counts])[:-1])
