"""Points θ* at which the candidate method may take the posterior density."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lurking.errors import OptionError, UnknownNameError
from lurking.evidence.point import point_estimate
from lurking.inference.network import Network
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, fit_problem
from lurking.learn.init import given_start
from lurking.learn.options import FitOptions
from lurking.runtime.rng import seed_sequence
from lurking.samplers.gibbs import gibbs
from lurking.types import FloatArray

POINTS = ("map", "vb", "draws")
PILOT_CHAINS, PILOT_DRAWS, PILOT_BURN_IN, PILOT_THIN = 4, 50, 250, 5

PointOption = str | Mapping[str, Any] | Fit | Network


@dataclass(frozen=True)
class CandidatePoint:
    """θ* as ln θ (P,), how it was chosen, ln p(y|θ*), and ln p(θ*) over probabilities."""

    chosen: str
    log_theta: FloatArray = field(repr=False)
    loglik: float
    log_prior: float


def check_point(point: object) -> None:
    """Refuse what names or holds no point; it costs nothing, so it comes first."""
    if isinstance(point, str):
        if point not in POINTS:
            raise UnknownNameError("point", point, POINTS)
    elif not isinstance(point, Mapping | Fit | Network):
        raise OptionError(
            f"point is {point!r}; it must be one of {', '.join(POINTS)}, a Fit, a Network, or {{node: table[l, k]}}"
        )


def candidate_point(problem: Problem, options: FitOptions, point: PointOption) -> CandidatePoint:
    """Return θ*.

    "map": the MAP estimate over logits; "vb": the mean of the variational posterior; "draws": of short Gibbs chains
    from the prior the draw with the highest posterior density. Tables are used as they are.
    """
    check_point(point)
    if isinstance(point, str) and point == "map":
        estimate = point_estimate(problem, options, "map")
        return CandidatePoint("map", estimate.fit.potentials, estimate.loglik, estimate.log_prior)
    if not isinstance(point, str):
        tables = point if isinstance(point, Mapping) else (point.network if isinstance(point, Fit) else point).tables
        return _at(problem, "given", given_start(problem.layout, tables, "point")[None, :])[0]
    if point == "vb":
        counts = fit_problem(problem, "vb", options).counts
        return _at(problem, "vb", np.log(problem.layout.normalise(problem.pseudo + counts))[None, :])[0]
    draws = gibbs(
        problem,
        chains=PILOT_CHAINS,
        draws=PILOT_DRAWS,
        burn_in=PILOT_BURN_IN,
        thin=PILOT_THIN,
        # Streams of their own: θ* must not depend on the sweeps that its density is averaged over.
        seed=seed_sequence(options.seed).spawn(1)[0].spawn(1)[0],
        workers=options.workers,
        stop=options.stop,
    )
    points = draws.log_theta.reshape(-1, problem.layout.size)
    made = _at(problem, "draws", points[np.isfinite(points).all(axis=1)])
    if not made:
        raise OptionError("point='draws' found no draw without a probability of 0; use point='map'")
    return max(made, key=lambda own: own.loglik + own.log_prior)


def _at(problem: Problem, chosen: str, points: FloatArray) -> list[CandidatePoint]:
    """Return each of the points ln θ (m, P) with its densities."""
    blocks, pseudo = problem.layout.blocks, problem.pseudo
    return [
        CandidatePoint(chosen, own, float(loglik), blocks.log_density(pseudo, own))
        for own, loglik in zip(points, problem.engine.log_z(points), strict=True)
    ]
