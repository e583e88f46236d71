"""Expected counts of single rows of the data, in chunks, from the compiled programs of any engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lurking.errors import TooLarge
from lurking.inference.engines.base import Engine
from lurking.kernels.program import Program, TreeProgram, plain_slots
from lurking.types import FloatArray, IntArray

CHUNK = 1 << 21
"""Numbers of one chunk, about: rows × columns, and rows × joint states."""

NEEDS_STATES = (
    "the full curvature needs the joint states of unobserved variables one by one, and there are too many: this model "
    "is done on a junction tree; use curvature='blocks', or engine='enumeration' to insist"
)


class Moments(NamedTuple):
    """Some rows of the data, seen by one component of what they leave unobserved."""

    rows: IntArray
    """(T,) the table rows that the component touches, numbered among the active ones."""
    means: FloatArray
    """(B, columns of these table rows) expected counts E_i[n] of each row of the data."""
    weights: FloatArray
    """(B,) weight of each row."""


def in_chunks(
    engine: Engine, potentials: FloatArray, row_of: IntArray, pairs: FloatArray | None = None
) -> Iterator[Moments]:
    """Yield the moments of all rows, component by component; components of one row are independent.

    `potentials` (Q,) and their table rows `row_of` (Q,) are the active ones. Into `pairs` (Q + 1, Q + 1), where given,
    go the sums of `kernels.cpu.curvature.pairs_into`, the last row and column receiving what neutral factors do. An
    engine without compiled rows has no moments.
    """
    for piece in engine.pieces or ():
        place = np.searchsorted(engine.active, piece.active)
        if isinstance(piece.program, Program):
            yield from _enumerated(piece.program, potentials, place, row_of, pairs)
        elif pairs is not None:
            raise TooLarge(NEEDS_STATES)
        else:
            yield from _on_tree(piece.program, potentials[place], np.unique(row_of[place]))


def has_tree(engine: Engine) -> bool:
    """Whether some of the rows are done on a junction tree, which does not visit their joint states one by one."""
    return any(isinstance(piece.program, TreeProgram) for piece in engine.pieces or ())


def _enumerated(
    program: Program, potentials: FloatArray, place: IntArray, row_of: IntArray, pairs: FloatArray | None
) -> Iterator[Moments]:
    from lurking.kernels.cpu.curvature import means_into, pairs_into

    own = np.ascontiguousarray(potentials[place])
    everywhere = np.append(place, len(potentials))  # neutral factors come last
    ends = np.append(program.fixed_start[1:], len(program.gather))
    for group, states in enumerate(program.states.tolist()):
        first, end = int(program.fixed_start[group]), int(ends[group])
        touched = np.unique(program.gather[first:end])
        rows = np.unique(row_of[place[touched[touched < len(own)]]])
        columns = np.flatnonzero(np.isin(row_of[place], rows))
        column = np.full(len(own) + 1, len(columns), np.int64)
        column[columns] = np.arange(len(columns))
        slots = plain_slots(program, group)
        fixed = first + states * np.arange(int(program.n_fixed[group]))
        cells = np.concatenate([np.broadcast_to(fixed, (len(slots), len(fixed))), slots], axis=1)
        weights = program.weights[program.row_begin[group] : program.row_begin[group + 1]]
        at_once = max(1, CHUNK // max(states, len(columns) + 1))
        for begin in range(0, len(cells), at_once):
            some = np.ascontiguousarray(cells[begin : begin + at_once])
            weight = np.ascontiguousarray(weights[begin : begin + at_once])
            masses, means = np.empty((len(some), states)), np.zeros((len(some), len(columns) + 1))
            means_into(program.gather, own, some, column, masses, means)
            if pairs is not None:
                pairs_into(program.gather, some, everywhere, masses, weight, pairs)
            yield Moments(rows, means[:, :-1], weight)


def _on_tree(tree: TreeProgram, potentials: FloatArray, rows: IntArray) -> Iterator[Moments]:
    from lurking.kernels.cpu.junction import expect_rows

    single = tree._replace(weights=np.ones(len(tree.weights)))
    at_once = max(1, CHUNK // max(1, len(potentials)))
    for begin in range(0, len(tree.weights), at_once):
        end = min(begin + at_once, len(tree.weights))
        means = np.stack([expect_rows(single, potentials, i, i + 1, np.empty(0))[0] for i in range(begin, end)])
        yield Moments(rows, means, tree.weights[begin:end])
