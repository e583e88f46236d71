"""The compiled form of an exact E-step, as plain arrays that every kernel understands."""

from __future__ import annotations

from enum import IntEnum
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
    """(sum of rows × factors,) first cell of the S-vector that a row uses for a factor."""
    weights: FloatArray
    """(rows of all groups,) weight of each row."""


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
