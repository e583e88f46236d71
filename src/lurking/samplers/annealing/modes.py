"""Distinct variational modes of one problem, up to the names of hidden states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lurking.inference.problem import Problem
from lurking.kernels.program import Rule
from lurking.learn.fit import climbs_of_starts
from lurking.learn.loop import Climber
from lurking.learn.options import FitOptions
from lurking.samplers.aliases import relabelings_of
from lurking.types import FloatArray

WITHIN = 4.0
"""Modes whose bound lies further below the best one are left out: they hold little of the posterior."""
SAME = 0.02
"""Two climbs end in the same mode when, under some relabeling, no count differs by more than this share of the rows."""


@dataclass(frozen=True, eq=False)
class Mode:
    """One optimum of the variational bound, over the active positions: α = λ + counts, φ = E[ln θ]."""

    bound: float
    counts: FloatArray
    potentials: FloatArray


def variational_modes(problem: Problem, options: FitOptions, most: int) -> list[Mode]:
    """Return the distinct modes that the restarts of a VB fit end in, the best first, at most `most`.

    Restarts that end in the same mode under other names of hidden states count as one.
    """
    engine = problem.engine
    climber = Climber(engine, problem.pseudo, Rule.VB, problem.n)
    climbs = climbs_of_starts(climber, problem, options)
    if not climbs or options.stop.is_set:  # nothing is sampled yet, so nothing can be kept
        raise KeyboardInterrupt
    climbs.sort(key=lambda climb: -climb.objective)
    permutations = relabelings_of(problem)
    if permutations is None:
        climbs = climbs[:1]
    found: list[Mode] = []
    known: list[FloatArray] = []
    for climb in climbs:
        if len(found) == most or climb.objective < climbs[0].objective - WITHIN:
            break
        nearest = min(
            (float(np.abs(climb.counts[permutations] - other).max(axis=1).min()) for other in known),
            default=np.inf,
        )
        if nearest > SAME * max(problem.n, 1.0):
            known.append(climb.counts)
            found.append(Mode(climb.objective, climb.counts[engine.active], climb.potentials[engine.active]))
    return found
