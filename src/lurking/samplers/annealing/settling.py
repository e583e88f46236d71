"""Starts of paths from short Gibbs runs: where the posterior is, as far as a product of Dirichlets and rows can tell.

A variational mode is often too simple: of two hidden causes it may switch one off, since the bound charges for what θ
and s know of each other. A Gibbs run from there reaches what the mode leaves out. Any start that is fixed before the
annealing chains are drawn keeps their weights unbiased; one with the posterior's own moments keeps them even.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lurking.inference.problem import Problem
from lurking.runtime.executor import StopFlag
from lurking.samplers.aliases import relabelings_of
from lurking.samplers.annealing.modes import Mode
from lurking.samplers.annealing.paths import sampled_program
from lurking.types import FloatArray, IntArray

POINTS, BURN_IN = 100, 20
"""Points that moments are taken over, and points left out before them."""
MOST_THIN = 10
"""Sweeps from one point to the next, unless passes are scarce."""
MOST_COMPARED = 1 << 20
"""Numbers compared for one point at most; where relabelings come to more, hidden states keep the names they have."""
SAME = 0.1
"""Runs end in the same place when, under some relabeling, no mean count differs by more than this share of the rows."""


def thinning(passes: float) -> int:
    """Return how many sweeps points may lie apart in a run of about so many passes over the rows, at least one."""
    return int(np.clip((passes - POINTS) / (BURN_IN + POINTS), 1, MOST_THIN))


def passes_of(thin: int) -> int:
    """Return the passes over the rows of one run: its sweeps, and an E-step at every point."""
    return (BURN_IN + POINTS) * thin + POINTS


def settled(
    problem: Problem, modes: Sequence[Mode], thin: int, seeds: Sequence[np.random.SeedSequence], stop: StopFlag
) -> list[Mode]:
    """Return the modes moved to the moments E[N | y] and E[ln θ | y] of a Gibbs run from each, `thin` sweeps a point.

    Every point is renamed to lie nearest to the mean of those before it. Runs that end in the same place count once.
    """
    layout, active = problem.layout, problem.engine.active
    listed = relabelings_of(problem)
    names = np.arange(layout.size)[None, :] if listed is None or listed.size > MOST_COMPARED else listed
    found: list[FloatArray] = []
    result: list[Mode] = []
    for mode, seed in zip(modes, seeds, strict=True):
        points = _points(problem, mode, thin, np.random.Generator(np.random.PCG64(seed)), stop)
        counts, potentials = _moments(problem, points, names, stop)
        apart = [float(np.abs(counts[names] - other).max(axis=1).min()) for other in found]
        if min(apart, default=np.inf) > SAME * problem.n:
            found.append(counts)
            result.append(Mode(mode.bound, counts[active], potentials[active]))
    return result


def _points(problem: Problem, mode: Mode, thin: int, generator: np.random.Generator, stop: StopFlag) -> FloatArray:
    """Return ln θ at points of a Gibbs run that starts at a mode, (POINTS, Q)."""
    from lurking.kernels.cpu.chains.gibbs import gibbs_into

    program = sampled_program(problem)
    pseudo = np.ascontiguousarray(problem.pseudo[problem.engine.active])
    points, likelihood, log_theta = np.empty((POINTS, len(pseudo))), np.empty(1), mode.potentials.copy()
    # Points before the burn-in is over are overwritten. φ is sub-normalised, which the first sweep forgets.
    for k in range(-BURN_IN, POINTS):
        if stop.is_set:
            raise KeyboardInterrupt
        place = max(k, 0)
        gibbs_into(program, pseudo, log_theta, thin, thin, generator, points[place : place + 1], likelihood)
    return points


def _moments(problem: Problem, points: FloatArray, names: IntArray, stop: StopFlag) -> tuple[FloatArray, FloatArray]:
    """Return the means of N(θ) and ln θ over points, each renamed to lie nearest to those before it, (P,) both."""
    engine, size = problem.engine, problem.layout.size
    counts, potentials, log_theta = np.zeros(size), np.zeros(size), np.zeros(size)
    for k, point in enumerate(points):
        if stop.is_set:
            raise KeyboardInterrupt
        log_theta[engine.active] = point
        own = engine.expect(log_theta)[0]
        nearest = names[int(((k * own[names] - counts) ** 2).sum(axis=1).argmin())]
        counts += own[nearest]
        potentials += log_theta[nearest]
    return counts / len(points), potentials / len(points)
