"""How many directions of the parameter space the observed distribution really depends on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lurking.errors import TooLarge
from lurking.inference.dimension.projections import Part, parts_of
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.rows import Rows
from lurking.models.layout import Layout
from lurking.types import CodeArray, FloatArray

TRIES = 2
WORK_LIMIT = 1e11
"""Multiplications that one draw may take: a few minutes."""
CHEAP_WORK = 2e7
"""Multiplications that nobody notices: some hundredths of a second."""
SIZE_LIMIT = 8192
"""Rows and columns of the largest matrix: 20 bytes for each of its entries make 1.3 GB."""
CELL_LIMIT = 4096


def effective_dimension(layout: Layout, seed: int = 0) -> int:
    """Return the generic rank of the map θ → p(observed variables) (Geiger, Heckerman & Meek 1996).

    p(y) is a polynomial in θ with whole coefficients, and so are its derivatives. Their rank is computed over the
    field of 2³¹ − 1 elements at a random θ: exactly, so that no threshold tells small from zero. A minor that is not
    zero there is not the zero polynomial, so the result is never too large; it is too small only if the draw is a root
    of a polynomial of degree D that is not zero, which has probability at most D / (2³¹ − 1) (Schwartz 1980), D at
    most the rank times twice the variables. A rank below its bound is therefore computed twice. Whatever is observed in
    the rows of some data plays no part: the dimension is a property of the structure.
    """
    alone, parts = parts_of(layout)
    for part in parts:
        _check_size(part)
    generator = np.random.default_rng(seed)
    return alone + sum(_rank(part, generator) for part in parts)


def is_cheap(layout: Layout) -> bool:
    """Whether the effective dimension costs next to nothing."""
    _, parts = parts_of(layout)
    # The elimination needs no tree, and large parts are sorted out by it.
    is_small = all(part.elimination < CHEAP_WORK for part in parts)
    return is_small and TRIES * sum(part.work for part in parts) < CHEAP_WORK


def dimension_if_cheap(layout: Layout) -> int | None:
    """Return the effective dimension if it costs next to nothing, else None: tables tell it without being asked."""
    return effective_dimension(layout) if layout.are_tables and is_cheap(layout) else None


def unidentified_note(dimension: int, effective: int | None) -> str | None:
    """Return one sentence for a structure with more parameters than effective dimension, else None.

    Parameters
    ----------
    dimension : int
        Number of free parameters d.
    effective : int or None
        Effective dimension, None if it is not cheap to compute (`dimension_if_cheap`).
    """
    if effective is None or effective >= dimension:
        return None
    return (
        f"{dimension} parameters but effective dimension {effective}; the parameters are not identified: "
        "different tables give the same distribution of the observed columns"
    )


def _rank(part: Part, generator: np.random.Generator) -> int:
    """Return the rank of one part, the largest of a few draws."""
    from lurking.kernels.cpu.sums.modular import rank_in_place

    best = 0
    for _ in range(TRIES):
        if best < part.bound:
            best = max(best, int(rank_in_place(part.jacobian(generator).astype(np.uint32))))
    return best


def _check_size(part: Part) -> None:
    """Refuse what takes too long or too much memory."""
    families = [part.layout.nodes[j] for component in part.components for j in component.families]
    names = ", ".join(name for name in families if name in part.layout.dag.hidden)
    if max(part.dimension, part.rows) > SIZE_LIMIT:
        raise TooLarge(
            f"the effective dimension needs the rank of a matrix of {part.rows} × {part.dimension}, one column for "
            f"each parameter around {names}; at most {SIZE_LIMIT} are done, use dimension='standard'"
        )
    if part.work > WORK_LIMIT:
        raise TooLarge(
            f"the effective dimension of the part around {names} takes {part.work:.1g} multiplications; "
            f"at most {WORK_LIMIT:.0g} are done, use dimension='standard'"
        )


class NumericalRank(NamedTuple):
    """A rank found in floating point: `gap` is the singular value after the last that counts, over that one.

    Far below 1 the rank is beyond doubt; near 1 it is a guess.
    """

    rank: int
    gap: float


def numerical_dimension(layout: Layout, seed: int = 0) -> NumericalRank:
    """Return the rank in floating point at a random θ, from all observed cells: the check of `effective_dimension`.

    Rows are √p(y) · ∂ ln p(y) / ∂ logits, so that the Gram matrix is the Fisher information; the derivative with
    respect to the logit of θ_jlk is N_jlk(y) − θ_jlk N_jl(y), N(y) the expected counts of the row y. Columns are scaled
    to length 1, and the rank is where consecutive singular values differ by the largest factor.
    """
    generator = np.random.default_rng(seed)
    theta = layout.normalise(generator.standard_exponential(layout.size) + 0.05)
    codes = _observed_cells(layout)
    engine = EnumerationEngine(layout, Rows.of_codes(codes, np.ones(len(codes))), True)
    counts = engine.pattern_statistics(np.log(theta))
    totals = np.add.reduceat(counts, layout.row_start[:-1], axis=1)
    log_p = engine.pattern_log_z(np.log(theta))
    jacobian = np.exp(0.5 * log_p)[:, None] * (counts - theta * totals[:, layout.row_of])
    norms = np.linalg.norm(jacobian, axis=0)
    jacobian = jacobian[:, norms > 1e-12] / norms[norms > 1e-12]
    return _largest_gap(np.linalg.svd(jacobian, compute_uv=False)) if jacobian.size else NumericalRank(0, 0.0)


def _largest_gap(singular: FloatArray) -> NumericalRank:
    """Return how many singular values come before the largest drop; the end counts as a drop to rounding error."""
    floor = 1e-15 * singular[0]
    values = np.append(np.maximum(singular, floor), floor)
    ratios = values[1:] / values[:-1]
    rank = int(np.argmin(ratios))
    return NumericalRank(rank + 1, float(ratios[rank]))


def _observed_cells(layout: Layout) -> CodeArray:
    """Return all cells of the observed joint table as codes over all nodes."""
    hidden = layout.dag.hidden
    # A variable with one state adds no cell; its code is 0 everywhere.
    single = [j for j, cardinality in enumerate(layout.cardinalities) if cardinality == 1]
    observed = [j for j, name in enumerate(layout.nodes) if name not in hidden and j not in single]
    cards = [layout.cardinalities[j] for j in observed]
    if np.prod(cards, dtype=np.float64) > CELL_LIMIT:
        raise TooLarge(
            f"the observed variables have {np.prod(cards, dtype=np.float64):.3g} joint states, and the numerical rank "
            f"takes all of them, at most {CELL_LIMIT}; use effective_dimension"
        )
    cells = np.indices(cards).reshape(len(cards), -1).T if cards else np.zeros((1, 0), np.int64)
    codes = np.full((len(cells), len(layout.nodes)), -1, np.int32)
    codes[:, observed] = cells
    codes[:, single] = 0
    return codes
