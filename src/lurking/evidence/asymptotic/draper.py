"""Draper's refinement of BIC."""

from __future__ import annotations

import math

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import dimension_of, log_n, point_estimate
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions


def draper(problem: Problem, options: FitOptions, *, at: str = "map", dimension: str = "standard") -> Evidence:
    """Ln p(y|θ̂) − d/2 · ln n + d/2 · ln 2π (chickering-heckerman-1996, eq. 10)."""
    d = dimension_of(problem, dimension)
    penalty = -0.5 * d * log_n(problem, "draper")
    constant = 0.5 * d * math.log(2.0 * math.pi)
    estimate = point_estimate(problem, options, at)
    return Evidence(
        log_z=estimate.loglik + penalty + constant,
        log_aliases=problem.relevant_log_aliases,
        std_error=None,
        kind=Kind.ASYMPTOTIC,
        method="draper",
        parts={"loglik": estimate.loglik, "penalty": penalty, "constant": constant},
        status=estimate.fit.status,
        info=estimate.info,
    )
