"""The Bayesian information criterion on the scale of ln p(y|m)."""

from __future__ import annotations

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import dimension_of, log_n, point_estimate
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions


def bic(problem: Problem, options: FitOptions, *, at: str = "map", dimension: str = "standard") -> Evidence:
    """Ln p(y|θ̂) − d/2 · ln n (beal-ghahramani-2006, eq. 22, without ln S); higher is better."""
    penalty = -0.5 * dimension_of(problem, dimension) * log_n(problem, "bic")
    estimate = point_estimate(problem, options, at)
    return Evidence(
        log_z=estimate.loglik + penalty,
        log_aliases=problem.relevant_log_aliases,
        std_error=None,
        kind=Kind.ASYMPTOTIC,
        method="bic",
        parts={"loglik": estimate.loglik, "penalty": penalty},
        status=estimate.fit.status,
        info=estimate.info,
    )
