"""The climb in plain NumPy: for engines without a compiled program, and the reference of the compiled one."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from lurking.expfam.blocks import Blocks
from lurking.inference.engines.base import Engine
from lurking.kernels.program import (
    FIRST_STEP_LIMIT,
    LEAST_JUMP,
    STEP_LIMIT_FACTOR,
    ClimbResult,
    Outcome,
    Rule,
)
from lurking.types import FloatArray, IntArray


class Prepared(Protocol):
    """What the loop needs to know of its climber."""

    engine: Engine
    rule: Rule

    @property
    def active_blocks(self) -> Blocks:
        """The rows that take part in the iterations."""
        ...

    @property
    def active_pseudo(self) -> FloatArray:
        """(Q,) λ of the active positions."""
        ...

    @property
    def active_added(self) -> FloatArray:
        """(Q,) what the M step adds to N there."""
        ...


class Point(NamedTuple):
    """An evaluated point: potentials, their E-step, the objective without its constant, the next potentials."""

    potentials: FloatArray
    counts: FloatArray
    log_z: float
    objective: float
    following: FloatArray
    coordinates: FloatArray | None


def evaluate(climber: Prepared, potentials: FloatArray, coordinates: FloatArray | None) -> Point:
    """One E step and one M step at `potentials`, over the active positions."""
    counts, log_z = climber.engine.expect_active(potentials)
    return point_of(climber, potentials, counts, log_z, coordinates)


def point_of(
    climber: Prepared,
    potentials: FloatArray,
    counts: FloatArray,
    log_z: float,
    coordinates: FloatArray | None = None,
) -> Point:
    """Return the evaluated point, given its E-step."""
    blocks, pseudo, added = climber.active_blocks, climber.active_pseudo, climber.active_added
    if climber.rule is Rule.VB:
        used = counts != 0.0
        objective = log_z + blocks.log_evidence(pseudo, counts) - float(counts[used] @ potentials[used])
        following = blocks.expected(pseudo + counts)
    else:
        used = added != 0.0
        objective = log_z + float(added[used] @ potentials[used])
        following = blocks.mode(counts + added, potentials)
    return Point(potentials, counts, log_z, objective, following, coordinates)


def next_coordinates(climber: Prepared, point: Point) -> FloatArray:
    """Return the plain step's coordinates for extrapolation; for tables ln α (VB) or ln θ (EM)."""
    if climber.rule is Rule.VB:
        return climber.active_blocks.pack(climber.active_pseudo + point.counts)
    return climber.active_blocks.pack_point(point.following)


def squared_step(x0: FloatArray, x1: FloatArray, x2: FloatArray, limit: float) -> tuple[float, FloatArray]:
    """Return the length and end of x0 + 2·step·r + step²·v, r = x1 − x0, v = (x2 − x1) − r, step = ‖r‖ / ‖v‖.

    Scheme S3 of Varadhan & Roland (2008); entries that are not finite are those of x2.
    """
    finite = np.isfinite(x0) & np.isfinite(x1) & np.isfinite(x2)
    r = x1[finite] - x0[finite]
    v = (x2[finite] - x1[finite]) - r
    r_square, v_square = float(r @ r), float(v @ v)
    step = 1.0 if v_square <= 1e-300 or r_square <= 1e-300 else min(math.sqrt(r_square / v_square), limit)
    point = x2.copy()
    point[finite] = x0[finite] + 2.0 * step * r + step * step * v
    return step, point


def next_limit(limit: float, accepted: bool) -> float:
    """Widen the limit of extrapolation after a success at the limit, narrow it after a failure."""
    return max(limit * STEP_LIMIT_FACTOR if accepted else limit / STEP_LIMIT_FACTOR, FIRST_STEP_LIMIT)


def extrapolate(
    climber: Prepared, x0: FloatArray, x1: FloatArray, x2: FloatArray, limit: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return (step, coordinates, potentials) of x0 + 2·step·r + step²·v, r = x1 − x0, v = (x2 − x1) − r."""
    step, point = squared_step(x0, x1, x2, limit)
    blocks = climber.active_blocks
    if climber.rule is Rule.VB:
        point = np.clip(point, x2 - 46.0, x2 + 46.0)
        return step, point, blocks.expected(blocks.unpack(point))
    potentials = blocks.unpack_point(point)
    return step, blocks.pack_point(potentials), potentials


def climb_in_python(
    climber: Prepared,
    start: FloatArray,
    constant: float,
    threshold: float,
    max_iter: int,
    accelerate: bool,
    stop: IntArray,
) -> ClimbResult:
    """Climb from `start`; same steps and same result as `lurking.kernels.cpu.climb.climb_into`."""
    is_vb = climber.rule is Rule.VB
    current = evaluate(climber, start, None if is_vb else climber.active_blocks.pack_point(start))
    allowed = max_iter if is_vb else max_iter + 1
    evaluations, limit = 1, FIRST_STEP_LIMIT
    trace = [constant + current.objective] if is_vb else []
    outcome = Outcome.MAX_ITER
    if not current.log_z > -math.inf:
        outcome, allowed = Outcome.IMPOSSIBLE, 0
    while evaluations < allowed:
        if stop[0]:
            outcome = Outcome.INTERRUPTED
            break
        trial = evaluate(climber, current.following, next_coordinates(climber, current))
        evaluations += 1
        trace.append(constant + trial.objective)
        converged = max(trial.objective - current.objective, 0.0) < threshold
        x0, x1 = current.coordinates, trial.coordinates
        current = trial
        if converged:
            outcome = Outcome.CONVERGED
            break
        if not accelerate or x0 is None or x1 is None or evaluations >= allowed:
            continue
        step, coordinates, potentials = extrapolate(climber, x0, x1, next_coordinates(climber, trial), limit)
        if step <= LEAST_JUMP:
            continue
        extra = evaluate(climber, potentials, coordinates)
        evaluations += 1
        accepted = extra.objective >= trial.objective
        if step == limit:
            limit = next_limit(limit, accepted)
        if accepted:
            current = extra
            trace.append(constant + extra.objective)
    if not trace:  # interrupted before the first M step: the start is what there is
        trace.append(constant + current.objective)
    n_iter = evaluations if is_vb else evaluations - 1
    return ClimbResult(
        int(outcome), n_iter, current.log_z, current.potentials, current.counts, np.asarray(trace, np.float64)
    )
