"""How many directions of the parameter space the observed distribution really depends on."""

from __future__ import annotations

import numpy as np

from lurking.inference.enumeration import EnumerationEngine
from lurking.models.discrete.layout import Layout
from lurking.types import CodeArray

CELL_LIMIT = 4096
TRIES = 3


def effective_dimension(layout: Layout, seed: int = 0) -> int:
    """Return the rank of ∂ ln p(y) / ∂ logits at a random θ, rows y over observed cells (generic with probability 1).

    The derivative of ln p(y) with respect to the logit of θ_jlk is N_jlk(y) − θ_jlk N_jl(y), N(y) the expected counts
    of the row y. When there are too many cells, 2d + 64 random ones are used; the largest rank of a few tries counts.
    """
    generator = np.random.default_rng(seed)
    best = 0
    for _ in range(TRIES):
        theta = layout.normalise(generator.standard_exponential(layout.size) + 1e-3)
        codes = _observed_cells(layout, generator)
        engine = EnumerationEngine(layout, codes, np.ones(len(codes)), True)
        counts = engine.pattern_statistics(np.log(theta))
        totals = np.add.reduceat(counts, layout.row_start[:-1], axis=1)
        jacobian = counts - theta * totals[:, layout.row_of]
        norms = np.linalg.norm(jacobian, axis=0)
        jacobian = jacobian[:, norms > 1e-12] / norms[norms > 1e-12]
        if jacobian.size:
            singular = np.linalg.svd(jacobian, compute_uv=False)
            best = max(best, int((singular > 1e-9 * singular[0]).sum()))
        if best == layout.dimension:
            break
    return best


def _observed_cells(layout: Layout, generator: np.random.Generator) -> CodeArray:
    """Return cells of the observed joint table as codes over all nodes: all of them, or a random choice."""
    hidden = layout.dag.hidden
    # A variable with one state adds no cell; its code is 0 everywhere.
    single = [j for j, cardinality in enumerate(layout.cardinalities) if cardinality == 1]
    observed = [j for j, name in enumerate(layout.nodes) if name not in hidden and j not in single]
    cards = [layout.cardinalities[j] for j in observed]
    total = 1
    for card in cards:
        total *= card
    if total <= max(CELL_LIMIT, 2 * layout.dimension + 64):
        cells = np.indices(cards).reshape(len(cards), -1).T if cards else np.zeros((1, 0), np.int64)
    else:
        cells = generator.integers(0, cards, size=(2 * layout.dimension + 64, len(cards)))
    codes = np.full((len(cells), len(layout.nodes)), -1, np.int32)
    codes[:, observed] = cells
    codes[:, single] = 0
    return codes
