"""Many small climbs as a few long arrays, so that one kernel call does them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lurking.kernels.program import ClimbResult, Program, starts
from lurking.types import FloatArray, IntArray

Prior = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


class Climbs(NamedTuple):
    """The starts of one program: everything a climb needs beside its options."""

    program: Program
    prior: Prior
    """(λ, ln Γ(λ), row sums λ_jl, ln Γ(λ_jl), counts that the M step adds)."""
    starts: FloatArray
    """(starts, Q) potentials to climb from."""
    constants: FloatArray
    """(starts,) constant of the objective."""


class Batch(NamedTuple):
    """The arrays of several `Climbs`, those of one type one after the other.

    `*_begin[k, i]` is where piece i of program k begins, and `*_begin[k, pieces]` where its last piece ends.
    """

    integers: IntArray
    """row_start, states, n_fixed, n_factors, fixed_start, slot_start, row_begin; width, cell_start, row_begin and
    part_begin of what is joined."""
    integers_begin: IntArray
    floats: FloatArray
    """counts and the five parts of the prior."""
    floats_begin: IntArray
    weights: FloatArray
    weights_begin: IntArray
    slots: NDArray[np.uint32]
    slots_begin: IntArray
    parts: NDArray[np.uint32]
    parts_begin: IntArray
    gather: NDArray[np.int32]
    gather_begin: IntArray
    n_cells: IntArray
    """(programs,) plain and joint cells of each."""
    starts: FloatArray
    """The starts of all programs, (starts, Q) of each."""
    start_begin: IntArray
    """(programs + 1,) where the starts of each program begin."""
    constants: FloatArray
    """(climbs,) constant of each climb's objective."""
    climb_begin: IntArray
    """(programs + 1,) which climbs belong to each program."""


def pack(items: Sequence[Climbs]) -> Batch:
    """Return the climbs as one batch; the long arrays of a single program are not copied."""
    programs = [item.program for item in items]
    integers, integers_begin = _joined(
        (
            *(p.row_start, p.states, p.n_fixed, p.n_factors, p.fixed_start, p.slot_start, p.row_begin),
            *(p.joined.width, p.joined.cell_start, p.joined.row_begin, p.joined.part_begin),
        )
        for p in programs
    )
    return Batch(
        *(integers, integers_begin),
        *_joined((item.program.counts, *item.prior) for item in items),
        *_joined((p.weights,) for p in programs),
        *_joined((p.slots,) for p in programs),
        *_joined((p.joined.parts,) for p in programs),
        *_joined((p.gather,) for p in programs),
        n_cells=np.asarray([p.joined.n_cells for p in programs], np.int64),
        starts=np.concatenate([item.starts.ravel() for item in items]),
        start_begin=starts([item.starts.size for item in items]),
        constants=np.concatenate([item.constants for item in items]),
        climb_begin=starts([len(item.constants) for item in items]),
    )


class BatchResult(NamedTuple):
    """Where the climbs of a batch write their ends; `numbers[c]` = (outcome, n_iter, entries of the trace)."""

    potentials: FloatArray
    counts: FloatArray
    traces: FloatArray
    """(climbs, max_iter + 1)"""
    numbers: IntArray
    log_z: FloatArray

    @classmethod
    def for_batch(cls, batch: Batch, max_iter: int) -> BatchResult:
        """Return room for the results of a batch."""
        n_climbs, size = len(batch.constants), batch.starts.size
        traces = np.empty((n_climbs, max_iter + 1))
        return cls(np.empty(size), np.empty(size), traces, np.empty((n_climbs, 3), np.int64), np.empty(n_climbs))

    def of_programs(self, batch: Batch) -> Iterator[list[ClimbResult]]:
        """Yield the results of each program's climbs, in the order of its starts."""
        begins, climbs = batch.start_begin.tolist(), batch.climb_begin.tolist()
        numbers, log_z = self.numbers.tolist(), self.log_z.tolist()
        for k in range(len(begins) - 1):
            shape = (climbs[k + 1] - climbs[k], -1)
            potentials = self.potentials[begins[k] : begins[k + 1]].reshape(shape)
            counts = self.counts[begins[k] : begins[k + 1]].reshape(shape)
            own = []
            for place, c in enumerate(range(climbs[k], climbs[k + 1])):
                outcome, n_iter, n_trace = numbers[c]
                ends = (potentials[place], counts[place], self.traces[c, :n_trace].copy())
                own.append(ClimbResult(outcome, n_iter, log_z[c], *ends))
            yield own


def _joined(pieces: Iterable[Sequence[NDArray[Any]]]) -> tuple[NDArray[Any], IntArray]:
    """Return all pieces in one array, and where each of a program's pieces begins and the last one ends."""
    listed = list(pieces)
    each = list(chain.from_iterable(listed))
    ends = starts([len(piece) for piece in each])
    own = len(listed[0])
    begin = np.append(ends[:-1].reshape(len(listed), own), ends[own::own, None], axis=1)
    return each[0] if len(each) == 1 else np.concatenate(each), begin
