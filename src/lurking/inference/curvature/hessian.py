"""How the log posterior of the parameters curves at a point: the observed information, without finite differences.

Completed by joint state s, row i of the data has 0/1 counts n_is with posterior probabilities p_is. By Louis' identity
(Louis 1982; Thiesson 1995 for networks), with J = ∂ ln θ / ∂ coordinates and g = Jᵀn,

    A = −∂² [ln p(y|θ) + Σ c_k ln θ_k] = −∂² Σ_k (N_k + c_k) ln θ_k − Σ_i w_i Cov_i[g],

N the expected counts and c what the prior adds to them: λ over logits, λ − 1 over probabilities. The covariance is

    Σ_i w_i Cov_i[g] = Jᵀ (diag N + U + Uᵀ) J − Σ_i w_i ḡ_i ḡ_iᵀ,

where N counts only what is inferred and U_ab = Σ_i w_i p_i(n_a = n_b = 1) has every pair of potentials once. Only
*active* table rows have a covariance; all others are complete, and their share has a closed form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lurking.errors import TooLarge
from lurking.inference.curvature.coordinates import Coordinates
from lurking.inference.curvature.moments import in_chunks
from lurking.inference.engines.base import Engine
from lurking.runtime.memory import available_bytes, in_words, is_affordable
from lurking.types import FloatArray, IntArray


class Block(NamedTuple):
    """Curvature of some table rows with f coordinates each."""

    places: IntArray
    """(B, f) the coordinates."""
    curvature: FloatArray
    """(B, f, f) A within each row."""
    complete: FloatArray
    """(B, f, f) the same if everything were observed as it is expected."""


def full(engine: Engine, potentials: FloatArray, coordinates: Coordinates, counts: FloatArray) -> FloatArray:
    """Return A over all coordinates of the active table rows, (d, d).

    `potentials` ln θ and `counts` N + c are those of the active positions, (Q,). Refuses what does not fit in memory.
    """
    size, d = len(potentials), len(coordinates)
    _check(8.0 * ((size + 1) ** 2 + 4 * d**2), f"the full curvature over {d} parameters", "blocks")
    matrix = np.zeros((d, d))
    if engine.pieces is None:
        matrix -= _both_sides(coordinates, engine.covariance(potentials))
        _add_blocks(matrix, coordinates, counts, np.zeros(size))
        return matrix
    row_of = _row_of(coordinates)
    pairs, inferred = np.zeros((size + 1, size + 1)), np.zeros(size)
    for rows, means, weights in in_chunks(engine, potentials, row_of, pairs):
        inferred[np.isin(row_of, rows)] += weights @ means
        part, index = coordinates.within(rows)
        scaled = part.along(means) * np.sqrt(weights)[:, None]
        if len(index) == d:
            matrix += scaled.T @ scaled
        else:
            matrix[np.ix_(index, index)] += scaled.T @ scaled
    cross = _both_sides(coordinates, pairs)
    matrix -= cross
    matrix -= cross.T
    _add_blocks(matrix, coordinates, counts, inferred)
    return matrix


def by_table_row(engine: Engine, potentials: FloatArray, coordinates: Coordinates, counts: FloatArray) -> list[Block]:
    """Return the diagonal blocks of A, one for each active table row; the arguments are those of `full`.

    No two states of one table row occur together, so the pairs U have no part in them.
    """
    numbers = float((np.bincount(coordinates.row_of_free).astype(np.float64) ** 2).sum())
    _check(24.0 * numbers, f"the curvature of single table rows over {len(coordinates)} parameters", "diagonal")
    if engine.pieces is None:
        matrix = full(engine, potentials, coordinates, counts)
        return [
            Block(index, matrix[index[:, :, None], index[:, None, :]], coordinates.complete(counts, rows, index))
            for rows, index in coordinates.blocks()
        ]
    row_of = _row_of(coordinates)
    inferred = np.zeros(len(potentials))
    found = list(coordinates.blocks())
    spread = [np.zeros((*index.shape, index.shape[1])) for _, index in found]
    for touched, means, weights in in_chunks(engine, potentials, row_of):
        inferred[np.isin(row_of, touched)] += weights @ means
        part, places = coordinates.within(touched)
        scaled = np.zeros((len(weights), len(coordinates)))
        scaled[:, places] = part.along(means) * np.sqrt(weights)[:, None]
        for (rows, index), squares in zip(found, spread, strict=True):
            own = np.flatnonzero(np.isin(rows, touched))
            block = scaled[:, index[own]]
            squares[own] += np.einsum("ibf,ibg->bfg", block, block, optimize=True)
    result = []
    for (rows, index), squares in zip(found, spread, strict=True):
        complete = coordinates.complete(counts, rows, index)
        result.append(Block(index, complete - coordinates.squares(inferred, rows, index) + squares, complete))
    return result


def on_the_diagonal(
    engine: Engine, potentials: FloatArray, coordinates: Coordinates, counts: FloatArray
) -> list[Block]:
    """Return the diagonal of A as blocks of one number each; the arguments are those of `full`."""
    if engine.pieces is None:
        return [_single(*block) for block in by_table_row(engine, potentials, coordinates, counts)]
    row_of = _row_of(coordinates)
    inferred, spread = np.zeros(len(potentials)), np.zeros(len(coordinates))
    for touched, means, weights in in_chunks(engine, potentials, row_of):
        inferred[np.isin(row_of, touched)] += weights @ means
        part, places = coordinates.within(touched)
        spread[places] += weights @ part.along(means) ** 2
    result = []
    for rows, index in coordinates.blocks():
        complete = coordinates.complete(counts, rows, index)
        observed = complete - coordinates.squares(inferred, rows, index)
        places = np.arange(index.shape[1])
        observed[:, places, places] += spread[index]
        result.append(_single(index, observed, complete))
    return result


def _single(index: IntArray, curvature: FloatArray, complete: FloatArray) -> Block:
    """Return the diagonals of blocks as blocks of one number."""
    diagonals = [np.diagonal(blocks, axis1=1, axis2=2).reshape(-1, 1, 1) for blocks in (curvature, complete)]
    return Block(index.reshape(-1, 1), *diagonals)


def complete_matrix(coordinates: Coordinates, counts: FloatArray) -> FloatArray:
    """Return −∂² Σ_k (N_k + c_k) ln θ_k over all coordinates, (d, d)."""
    matrix = np.zeros((len(coordinates), len(coordinates)))
    _add_blocks(matrix, coordinates, counts, np.zeros(len(counts)))
    return matrix


def _add_blocks(matrix: FloatArray, coordinates: Coordinates, counts: FloatArray, inferred: FloatArray) -> None:
    """Add what couples coordinates of the same table row only: −∂² Σ (N + c) ln θ − Jᵀ diag(inferred) J."""
    for rows, index in coordinates.blocks():
        block = coordinates.complete(counts, rows, index) - coordinates.squares(inferred, rows, index)
        matrix[index[:, :, None], index[:, None, :]] += block


def _both_sides(coordinates: Coordinates, square: FloatArray) -> FloatArray:
    """Return JᵀXJ, (d, d), of X (Q, Q) or larger."""
    from lurking.kernels.cpu.curvature import carry_into

    result = np.zeros((len(coordinates), len(coordinates)))
    of = coordinates
    carry_into(square, of.row_start, of.free, of.own, of.each, of.shared, result)
    return result


def _row_of(coordinates: Coordinates) -> IntArray:
    """Return the table row of each active position, (Q,)."""
    lengths = np.diff(coordinates.row_start)
    return np.repeat(np.arange(len(lengths)), lengths)


def _check(need: float, what: str, instead: str) -> None:
    """Refuse matrices that do not fit in memory."""
    if not is_affordable(need):
        raise TooLarge(
            f"{what} needs {in_words(need)}, available are {in_words(available_bytes())}; "
            f"use curvature={instead!r}, which needs less, or fewer hidden states"
        )
