"""Starting points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lurking.errors import OptionError
from lurking.models.families.table import TableFamily
from lurking.models.layout import Layout
from lurking.runtime.rng import Seed, generators
from lurking.types import FloatArray

LEAST_SHAPE = 0.1
MOST_KEPT = 1 << 16  # numbers drawn that are kept for the next structure


def draw_starts(layout: Layout, pseudo: FloatArray, seed: Seed, count: int) -> list[FloatArray]:
    """Return `count` times ln θ drawn from the prior, (P,), kept away from the symmetric saddle and the vertices.

    Each row is drawn from a Dirichlet with the prior's mean and its strength Σ_k λ_jlk held between r/2 and r: a
    strong prior would draw nearly equal rows (the saddle where hidden states are the same), a weak one would draw
    zeros that EM can never leave. For ½ ≤ λ ≤ 1 (symmetric) this is the prior itself. The k-th start does not depend
    on `count`. Nodes of other families start where their family says.
    """
    if not layout.are_tables:
        return [_mixed_start(layout, generator) for generator in generators(seed, count)]
    strength = layout.row_sums(pseudo)
    width = layout.row_start[1:] - layout.row_start[:-1]
    held = np.minimum(np.maximum(strength, 0.5 * width), width)
    shape = np.maximum(pseudo * (held / strength)[layout.row_of], LEAST_SHAPE)
    drawn = _gammas(shape, seed, count)
    sums = np.add.reduceat(drawn, layout.row_start[:-1], axis=1)
    return list(np.log(drawn / sums[:, layout.row_of]))


def _given_mixed(layout: Layout, given: FloatArray, what: str) -> FloatArray:
    """Return η of given parameters: probabilities of tables, η of other families, which are put on its surface."""
    is_table = layout.table_positions()
    if not (np.all(np.isfinite(given)) and np.all(given[is_table] >= 0.0)):
        raise OptionError(f"{what} contains a negative probability or an entry that is not finite")
    result = given.copy()
    for j in layout.owners:
        name = layout.nodes[j]
        own = layout.table(given, name)
        if name in layout.families:
            block = layout.families[name].block(len(own))
            layout.table(result, name)[:] = block.natural(block.coordinates(own.ravel()))[0].reshape(own.shape)
        elif not np.allclose(own.sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
            raise OptionError(f"a row of {what} of {name!r} does not sum to 1; every row must sum to 1")
        else:
            with np.errstate(divide="ignore"):
                layout.table(result, name)[:] = np.log(own)
    return result


def _mixed_start(layout: Layout, generator: np.random.Generator) -> FloatArray:
    """Return η of random parameters, family by family."""
    result = np.empty(layout.size)
    for j in layout.owners:
        name, rows = layout.nodes[j], layout.shapes[j][0]
        family = layout.families.get(name) or TableFamily(layout.cardinalities[j])
        layout.table(result, name)[:] = family.start(rows, generator).reshape(layout.shapes[j])
    return result


_last_drawn: list[tuple[int, int, FloatArray, FloatArray]] = []


def _gammas(shape: FloatArray, seed: Seed, count: int) -> FloatArray:
    """Return standard Gamma draws with the given shapes, (count, P), one generator per line.

    Structures that are fitted one after the other have the same seed, and often one shape is the beginning of
    another; so are the draws then, and the last ones are kept.
    """
    size = len(shape)
    for kept_seed, kept_count, kept_shape, kept in _last_drawn:
        if (kept_seed, kept_count) == (seed, count) and np.array_equal(kept_shape[:size], shape):
            return kept[:, :size]
    drawn = np.maximum([generator.standard_gamma(shape) for generator in generators(seed, count)], 1e-100)
    if type(seed) is int and size * count <= MOST_KEPT:
        _last_drawn[:] = [(seed, count, shape, drawn)]
    return drawn


def given_start(layout: Layout, tables: Mapping[str, Any], what: str = "init") -> FloatArray:
    """Return ln θ of the user's tables {node: array[l, k]}, used as they are; of other families η."""
    known = {name: table for name, table in tables.items() if name in layout.index}
    theta = layout.join(known, what)
    if not layout.are_tables:
        return _given_mixed(layout, theta, what)
    if not (np.all(np.isfinite(theta)) and np.all(theta >= 0.0)):
        raise OptionError(f"{what} contains a negative or non-finite entry; every row must be a probability vector")
    sums = layout.row_sums(theta)
    if not np.allclose(sums, 1.0, rtol=0.0, atol=1e-6):
        wrong = sums[np.argmax(np.abs(sums - 1.0))]
        raise OptionError(f"a row of {what} sums to {wrong:.6g}; every row must sum to 1")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(theta))
