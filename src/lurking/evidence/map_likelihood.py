"""The likelihood at the point estimate, for comparison."""

from __future__ import annotations

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import point_estimate
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions


def map_likelihood(problem: Problem, options: FitOptions, *, at: str = "map") -> Evidence:
    """Ln p(y|θ̂): no penalty for complexity and no bound; only p(y | global ML) bounds the evidence from above."""
    estimate = point_estimate(problem, options, at)
    return Evidence(
        estimate.loglik,
        0.0,
        None,
        Kind.PLUG_IN,
        "map-likelihood",
        {"loglik": estimate.loglik},
        estimate.fit.status,
        estimate.info,
    )
