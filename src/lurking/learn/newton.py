"""The last steps to a mode: Newton's method where EM would creep.

EM stops when a step gains little, and can still be some way from the mode: the error of the log posterior is of second
order in that distance, but the error of its curvature is of first order. Newton steps end it, and the curvature is
needed anyway.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lurking.inference.curvature.coordinates import Logits, row_starts
from lurking.inference.curvature.determinant import Factor
from lurking.inference.curvature.hessian import full
from lurking.inference.engines.base import Engine
from lurking.types import BoolArray, FloatArray

ROUNDS = 12
"""Curvatures made at most."""
STEPS = 8
"""Steps with one curvature at most."""
HALVINGS = 30
CLOSE = 1e-9
"""A point moved by less, in standard deviations of the Gaussian at the mode, has the same curvature."""
SETTLED = 1e-6
"""Distance from the mode, in standard deviations, up to which it counts as reached."""
SHIFTS = (1e-6, 1e-3, 1e-1, 2.0)
"""Shares of the complete curvature that are added, in turn, to one that is not definite."""
SMALLEST = 1e-12
"""Distances below this are rounding."""


class Point(NamedTuple):
    """ln θ (Q,) of the active positions, with its E-step and the log posterior up to a constant."""

    potentials: FloatArray
    counts: FloatArray
    log_z: float
    objective: float


class Mode(NamedTuple):
    """Where the steps ended, with the curvature A (d, d) over logits there, its factor and its coordinates."""

    point: Point
    coordinates: Logits
    curvature: FloatArray
    factor: Factor
    n_steps: int
    is_settled: bool


def climb_to_mode(engine: Engine, added: FloatArray, potentials: FloatArray, held: BoolArray) -> Mode:
    """Climb from ln θ `potentials` to the mode of ln p(y|θ) + Σ c ln θ, all over the active positions (Q,).

    `added` is c: λ for the mode over logits, λ − 1 for the one over probabilities; both are looked for in logits, since
    coordinates do not move the maximum of a given function. Entries that are `held` are not moved. A curvature serves
    several steps, and is made anew until the point that it was made for is the end. Where it is not definite, on a
    ridge or near a saddle, a share of the complete curvature is added (Levenberg 1944).
    """
    row_start = row_starts(engine.layout.row_of[engine.active])
    point = _evaluated(engine, added, potentials)
    n_steps = 0
    for left in reversed(range(ROUNDS)):
        coordinates = Logits(row_start, np.exp(point.potentials), held)
        wanted = point.counts + added
        curvature = full(engine, point.potentials, coordinates, wanted)
        theta = coordinates.theta[coordinates.free]
        diagonal = coordinates.row_sums(wanted)[coordinates.row_of_free] * theta * (1.0 - theta)
        factor = Factor(curvature, diagonal)
        end, taken, moved, distance = _steps(engine, added, point, coordinates, _definite(factor, curvature, diagonal))
        n_steps += taken
        if moved <= CLOSE or not left:
            return Mode(end, coordinates, curvature, factor, n_steps, factor.is_definite and distance <= SETTLED)
        point = end
    raise AssertionError("unreachable")


def _definite(factor: Factor, curvature: FloatArray, diagonal: FloatArray) -> Factor:
    """Return the factor, or that of the least shifted curvature that is definite."""
    for shift in SHIFTS:
        if factor.is_definite:
            break
        factor = Factor(curvature, diagonal, shift)
    return factor


def _steps(
    engine: Engine, added: FloatArray, point: Point, coordinates: Logits, factor: Factor
) -> tuple[Point, int, float, float]:
    """Take steps with one curvature; return (end, steps, way gone, last distance from the mode by this curvature)."""
    moved, distance = 0.0, math.inf
    if not factor.is_definite:
        return point, 0, moved, distance
    for taken in range(STEPS):
        gradient = _gradient(coordinates, point, added)
        step = factor.solve(gradient)
        before, distance = distance, math.sqrt(max(0.0, float(gradient @ step)))
        # A curvature that no longer brings the mode nearer by much is outdated, or all that is left is rounding.
        if distance <= SMALLEST or distance > 0.5 * before:
            return point, taken, moved, distance
        following = _uphill(engine, added, point, coordinates, step)
        if following is None:
            return point, taken, moved, distance
        point = following
        moved += distance
    return point, STEPS, moved, distance


def _uphill(engine: Engine, added: FloatArray, point: Point, coordinates: Logits, step: FloatArray) -> Point | None:
    """Return the point after the step, halved until the objective does not fall; None when nothing helps."""
    slack = 1e-13 * max(1.0, abs(point.objective))
    for _ in range(HALVINGS):
        moved = point.potentials.copy()
        moved[coordinates.free] += step
        trial = _evaluated(engine, added, _normalised(coordinates, moved))
        if trial.objective >= point.objective - slack:
            return trial
        step = 0.5 * step
    return None


def _gradient(coordinates: Logits, point: Point, added: FloatArray) -> FloatArray:
    """Return ∂/∂η_m = N_m + c_m − θ_m (N_l + c_l), (d,)."""
    counts = point.counts + added
    totals = coordinates.row_sums(counts)[coordinates.row_of_free]
    return np.asarray(counts[coordinates.free] - np.exp(point.potentials[coordinates.free]) * totals)


def _normalised(coordinates: Logits, potentials: FloatArray) -> FloatArray:
    """Return the potentials with Σ exp φ = 1 in every row."""
    top = np.maximum.reduceat(potentials, coordinates.row_start[:-1])
    lengths = np.diff(coordinates.row_start)
    lowered = potentials - np.repeat(top, lengths)
    totals = np.log(coordinates.row_sums(np.exp(lowered)))
    return np.asarray(lowered - np.repeat(totals, lengths))


def _evaluated(engine: Engine, added: FloatArray, potentials: FloatArray) -> Point:
    counts, log_z = engine.expect_active(potentials)
    used = added != 0.0
    return Point(potentials, counts, log_z, log_z + float(added[used] @ potentials[used]))
