"""Marginal likelihood of the expected data."""

from __future__ import annotations

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import point_estimate
from lurking.inference.problem import Problem, refuse_families
from lurking.learn.options import FitOptions


def mled(problem: Problem, options: FitOptions, *, at: str = "map") -> Evidence:
    """D(λ, N̂), the evidence of the data completed with their expected counts (chickering-heckerman-1996, eq. 12)."""
    if not problem.engine.is_convex:
        refuse_families(problem, "mled is defined", "use vb or cs")
    estimate = point_estimate(problem, options, at)
    value = estimate.completed_evidence + problem.engine.log_base
    kind = Kind.EXACT if problem.is_complete else Kind.PLUG_IN
    return Evidence(value, 0.0, None, kind, "mled", {"completed_evidence": value}, estimate.fit.status, estimate.info)
