"""Joining small factors: with many rows it is cheaper to read several columns at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lurking.kernels.program import Joined, starts
from lurking.types import IntArray

LIMITS = (256, 64, 16)
"""Joint rows of a joint factor at most; the cheapest limit is taken."""
MOST_CELLS = 1 << 21
"""Numbers in the joint rows of a group at most: 16 MiB, twice, in every thread."""
WORTH = 0.8
"""Joining must bring the work below this share of the plain one."""


class Choices(NamedTuple):
    """A group's factors as a row sees them: which of its S-vectors each row uses, and where those lie."""

    codes: list[IntArray]
    """F arrays (rows,), the choice of each row."""
    cells: list[IntArray]
    """F arrays (choices of the factor,), first cell of each S-vector."""


class JoinedGroup(NamedTuple):
    """One group's joint factors: slots (rows, width) counted in joint rows, and the parts of each joint row."""

    rows: NDArray[np.uint32]
    parts: list[IntArray]


NOT_JOINED = JoinedGroup(np.empty((0, 0), np.uint32), [])


def join(choices: Choices, states: int) -> JoinedGroup:
    """Return the cheapest joining of consecutive factors, or `NOT_JOINED` when the plain factors are cheaper.

    With many joint states S the joint rows, S numbers each, would outgrow the memory they are meant to save.
    """
    sizes = [len(cells) for cells in choices.cells]
    n_rows = len(choices.codes[0]) if choices.codes else 0
    plain = float(n_rows * len(sizes))
    best, runs = WORTH * plain, None
    for limit in LIMITS:
        candidate = _runs(sizes, limit)
        joint_rows = [math.prod(sizes[f] for f in run) for run in candidate]
        cost = float(n_rows * len(candidate)) + sum(len(run) * n for run, n in zip(candidate, joint_rows, strict=True))
        if cost < best and sum(joint_rows) * states <= MOST_CELLS:
            best, runs = cost, candidate
    if runs is None:
        return NOT_JOINED
    rows = np.empty((n_rows, len(runs)), np.uint32)
    parts: list[IntArray] = []
    for k, run in enumerate(runs):
        code = np.zeros(n_rows, np.int64)
        for f in run:
            code = code * sizes[f] + choices.codes[f]
        rows[:, k] = code + len(parts)
        digits = np.indices([sizes[f] for f in run]).reshape(len(run), -1)
        parts += list(np.stack([choices.cells[f][digit] for f, digit in zip(run, digits, strict=True)], axis=1))
    return JoinedGroup(rows, parts)


def _runs(sizes: list[int], limit: int) -> list[list[int]]:
    """Return consecutive factors in runs whose sizes multiply to at most `limit`; a larger factor is a run alone."""
    runs: list[list[int]] = []
    product = limit + 1
    for f, size in enumerate(sizes):
        if product * size > limit:
            runs.append([])
            product = 1
        runs[-1].append(f)
        product *= size
    return runs


def assemble(groups: list[JoinedGroup], states: list[int], n_plain: int) -> tuple[Joined, list[IntArray]]:
    """Return the joined groups as arrays of a `Program` with `n_plain` plain cells, and the slots of each group."""
    n_rows = [len(group.parts) for group in groups]
    cell_start = n_plain + starts([rows * s for rows, s in zip(n_rows, states, strict=True)])
    slots = [
        (first + s * group.rows.astype(np.int64)).ravel()
        for group, first, s in zip(groups, cell_start, states, strict=False)
    ]
    parts = [part for group in groups for part in group.parts]
    joined = Joined(
        width=np.asarray([group.rows.shape[1] for group in groups], np.int64),
        cell_start=cell_start[:-1],
        row_begin=starts(n_rows),
        part_begin=starts([len(part) for part in parts]),
        parts=np.concatenate(parts).astype(np.uint32) if parts else np.empty(0, np.uint32),
        n_cells=int(cell_start[-1]),
    )
    return joined, slots
