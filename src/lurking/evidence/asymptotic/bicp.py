"""BIC with the prior density kept."""

from __future__ import annotations

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import dimension_of, log_n, point_estimate
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions


def bicp(problem: Problem, options: FitOptions, *, at: str = "map", dimension: str = "standard") -> Evidence:
    """Ln p(y|θ̂) + ln p(θ̂|m) − d/2 · ln n: BIC with the prior density at θ̂ (beal-ghahramani-2006, section 4.1)."""
    penalty = -0.5 * dimension_of(problem, dimension) * log_n(problem, "bicp")
    estimate = point_estimate(problem, options, at)
    return Evidence(
        log_z=estimate.loglik + estimate.log_prior + penalty,
        log_aliases=problem.relevant_log_aliases,
        std_error=None,
        kind=Kind.ASYMPTOTIC,
        method="bicp",
        parts={"loglik": estimate.loglik, "log_prior": estimate.log_prior, "penalty": penalty},
        status=estimate.fit.status,
        info=estimate.info,
    )
