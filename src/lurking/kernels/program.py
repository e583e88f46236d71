"""The compiled form of an exact E-step, as plain arrays that every kernel understands."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lurking.types import FloatArray, IntArray

LEAST_JUMP = 1.0 + 1e-9
"""Extrapolations below this differ from a plain step by rounding alone and are not tried."""
FIRST_STEP_LIMIT = 4.0
"""The first limit of an extrapolation's length, and the least."""
STEP_LIMIT_FACTOR = 4.0
"""How much the limit grows after a success at the limit, and shrinks after a failure."""


def starts(lengths: Sequence[int]) -> IntArray:
    """Return where each of several consecutive pieces begins, and where the last one ends, (pieces + 1,)."""
    return np.fromiter(accumulate(lengths, initial=0), np.int64, len(lengths) + 1)


class Rule(IntEnum):
    """Which objective a climb raises; the numbers are part of the compiled kernel's signature."""

    ML = 0
    MAP_PROBABILITY = 1
    MAP = 2
    VB = 3


class Outcome(IntEnum):
    """Why a climb ended, as the kernels report it."""

    CONVERGED = 0
    MAX_ITER = 1
    INTERRUPTED = 2
    IMPOSSIBLE = 3


class Joined(NamedTuple):
    """Factors of a group joined into few: a *joint row* is the product of one S-vector of each of its factors.

    With many rows and small factors (eight binary columns make 256 joint rows) this divides the work per row by the
    number of factors joined; the joint rows are multiplied out once per E-step.
    """

    width: IntArray
    """(G,) joint factors per row; 0 where nothing is joined."""
    cell_start: IntArray
    """(G,) first cell of the group's joint rows; they follow the plain cells."""
    row_begin: IntArray
    """(G + 1,) range of the group's joint rows."""
    part_begin: IntArray
    """(joint rows + 1,) range of each joint row's parts."""
    parts: NDArray[np.uint32]
    """First plain cell of each S-vector that is multiplied."""
    n_cells: int
    """Plain and joint cells together."""


class Program(NamedTuple):
    """Everything `expect` needs, over the Q *active* potentials (rows that touch an unobserved variable).

    A *group* is one independent component of unobserved variables together with the families that touch it; it has
    S joint states and its own unique rows. A *cell* is one entry of a table expanded to (observed configuration,
    joint state), joint state innermost: `gather[cell]` is the potential it stands for.
    """

    row_start: IntArray
    """(R + 1,) first active potential of each table row (node, parent configuration)."""
    counts: FloatArray
    """(Q,) counts of the family instances without an unobserved variable."""
    gather: NDArray[np.int32]
    """(cells,) potential behind each expanded cell; Q stands for the neutral factor, which is 1 and counts nothing."""
    states: IntArray
    """(G,) number of joint states S of each group."""
    n_fixed: IntArray
    """(G,) number of factors without observed variable; their cells are the same for every row."""
    n_factors: IntArray
    """(G,) number of factors with at least one observed variable."""
    fixed_start: IntArray
    """(G,) first cell of the group's fixed factors."""
    slot_start: IntArray
    """(G,) first entry of the group in `slots`."""
    row_begin: IntArray
    """(G + 1,) range of each group's rows in `weights`."""
    slots: NDArray[np.uint32]
    """(sum of rows × factors,) first cell of the S-vector that a row uses for a factor, or for a joint factor."""
    weights: FloatArray
    """(rows of all groups,) weight of each row."""
    joined: Joined
    """Which factors are read together."""


def plain_slots(program: Program, group: int) -> IntArray:
    """Return the first plain cell of every factor in every row of a group, (rows, factors)."""
    joined, begin = program.joined, int(program.slot_start[group])
    n_rows, factors = int(program.row_begin[group + 1] - program.row_begin[group]), int(program.n_factors[group])
    width = int(joined.width[group])
    slots = (
        program.slots[begin : begin + n_rows * (width or factors)].astype(np.int64).reshape(n_rows, width or factors)
    )
    if not width:
        return slots
    rows = joined.row_begin[group] + (slots - joined.cell_start[group]) // program.states[group]
    # All joint rows of one joint factor have as many parts as the factor has members.
    members = (joined.part_begin[rows[0] + 1] - joined.part_begin[rows[0]]) if n_rows else np.zeros(width, np.int64)
    blocks = [joined.parts[joined.part_begin[rows[:, k]][:, None] + np.arange(m)] for k, m in enumerate(members)]
    return np.concatenate(blocks, axis=1).astype(np.int64)


class TreeProgram(NamedTuple):
    """What the junction tree's E-step needs for one connected part of C cliques, parents before children.

    Variables that a row observes are not summed: a clique is visited only in the joint states of its variables that are
    *free* in the row. How many there are, and where they lie in the tables and messages, depends only on which of the
    clique's variables are free; that is a *plan*. A plan's block in `maps` holds, for its S joint states in turn: the
    offset in each of the clique's factors (factors × S), the place in the message to the parent (S), and the place in
    the message of each child (children × S).
    """

    factor_begin: IntArray
    """(C + 1,) the columns of `bases` that belong to each clique."""
    parent: IntArray
    """(C,) parent of each clique, −1 for the root."""
    child_begin: IntArray
    """(C + 1,) range of each clique's children in `children`."""
    children: IntArray
    """(C − 1,) children of the cliques in turn."""
    state_begin: IntArray
    """(C + 1,) where each clique's joint states lie in scratch, large enough for every plan."""
    message_begin: IntArray
    """(C + 1,) where each clique's message to its parent lies in scratch."""
    plan_states: IntArray
    """(L,) number of joint states of each plan."""
    plan_message: IntArray
    """(L,) length of the message to the parent; 0 when nothing free is shared with it."""
    plan_begin: IntArray
    """(L,) start of the plan's block in `maps`."""
    maps: NDArray[np.int32]
    """The blocks of all plans."""
    plan_of: NDArray[np.int32]
    """(missingness patterns, C) plan of each clique, −1 where none of its variables is free."""
    pattern_of: NDArray[np.int32]
    """(rows,) missingness pattern of each row."""
    bases: NDArray[np.int32]
    """(rows, factors) first active potential of the factor given what the row observes, −1 where it has no part."""
    weights: FloatArray
    """(rows,) weight of each row."""


class ClimbResult(NamedTuple):
    """Where a climb ended: the last evaluated point, its counts and the trace of the objective."""

    outcome: int
    n_iter: int
    log_z: float
    potentials: FloatArray
    """(Q,) the last evaluated point."""
    counts: FloatArray
    """(Q,) expected counts at that point."""
    trace: FloatArray
    """(T,) objective at each accepted point."""
