"""Many small climbs in one call: no Python and no GIL between the climbs either."""

from __future__ import annotations

from collections.abc import Sequence

from numba import njit

from lurking.kernels.batch import Batch, BatchResult, Climbs, pack
from lurking.kernels.cpu.climb import climb_into
from lurking.kernels.program import ClimbResult, Joined, Program
from lurking.types import FloatArray, IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def _program(batch: Batch, k: int) -> Program:
    """Return program k as views of the batch's arrays, in the order in which `lurking.kernels.batch.pack` puts them."""
    i, at = batch.integers, batch.integers_begin[k]
    joined = Joined(
        i[at[7] : at[8]],
        i[at[8] : at[9]],
        i[at[9] : at[10]],
        i[at[10] : at[11]],
        batch.parts[batch.parts_begin[k, 0] : batch.parts_begin[k, 1]],
        batch.n_cells[k],
    )
    return Program(
        i[at[0] : at[1]],
        batch.floats[batch.floats_begin[k, 0] : batch.floats_begin[k, 1]],
        batch.gather[batch.gather_begin[k, 0] : batch.gather_begin[k, 1]],
        i[at[1] : at[2]],
        i[at[2] : at[3]],
        i[at[3] : at[4]],
        i[at[4] : at[5]],
        i[at[5] : at[6]],
        i[at[6] : at[7]],
        batch.slots[batch.slots_begin[k, 0] : batch.slots_begin[k, 1]],
        batch.weights[batch.weights_begin[k, 0] : batch.weights_begin[k, 1]],
        joined,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _prior(batch: Batch, k: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the prior terms of program k, the pieces after its counts."""
    f, at = batch.floats, batch.floats_begin[k]
    return f[at[1] : at[2]], f[at[2] : at[3]], f[at[3] : at[4]], f[at[4] : at[5]], f[at[5] : at[6]]


@njit(cache=True, nogil=True, error_model="numpy")
def climb_batch_into(
    batch: Batch, rule: int, threshold: float, max_iter: int, accelerate: bool, stop: IntArray, result: BatchResult
) -> None:
    """Climb from every start of every program as `climb_into` does."""
    for k in range(batch.n_cells.shape[0]):
        program, prior = _program(batch, k), _prior(batch, k)
        size = prior[0].shape[0]
        first = batch.start_begin[k]
        for c in range(batch.climb_begin[k], batch.climb_begin[k + 1]):
            out = (result.potentials[first : first + size], result.counts[first : first + size], result.traces[c])
            outcome, n_iter, n_trace, log_z = climb_into(
                program,
                rule,
                prior,
                batch.starts[first : first + size],
                batch.constants[c],
                threshold,
                max_iter,
                accelerate,
                stop,
                out,
            )
            result.numbers[c, 0] = outcome
            result.numbers[c, 1] = n_iter
            result.numbers[c, 2] = n_trace
            result.log_z[c] = log_z
            first += size


def climb_batch(
    items: Sequence[Climbs], rule: int, threshold: float, max_iter: int, accelerate: bool, stop: IntArray
) -> list[list[ClimbResult]]:
    """Climb from every start of every item; return the ends, item by item in the order of the starts."""
    batch = pack(items)
    result = BatchResult.for_batch(batch, max_iter)
    climb_batch_into(batch, rule, threshold, max_iter, accelerate, stop, result)
    return list(result.of_programs(batch))
