"""The Cheeseman-Stutz score."""

from __future__ import annotations

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import dimension_of, log_n, point_estimate
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions


def cheeseman_stutz(problem: Problem, options: FitOptions, *, at: str = "map", dimension: str = "standard") -> Evidence:
    """D(λ, N̂) + ln p(y|θ̂) − Σ N̂ ln θ̂, a lower bound for any θ̂ (beal-ghahramani-2006, eq. 27 and theorem 6.1).

    It equals B(ln θ̂) of `vb`. If log_z is not convex, B is not a bound, and the value is F(λ + N̂) = log_z(E[η]) −
    KL[p(θ | λ + N̂) ‖ p(θ | λ)]. With dimension="effective" the term (d − d′)/2 · ln n of chickering-heckerman-1996,
    eq. 13 is added, and the value is no bound any more (nothing is added when the value is exact already).
    """
    estimate = point_estimate(problem, options, at)
    d = dimension_of(problem, dimension)
    if problem.engine.is_convex:
        parts = {
            "completed_evidence": estimate.completed_evidence,
            "loglik": estimate.loglik,
            "completed_loglik": estimate.completed_loglik,
        }
        value = parts["completed_evidence"] + parts["loglik"] - parts["completed_loglik"]
    else:
        parts = {"log_z": estimate.variational_log_z, "divergence": estimate.divergence}
        value = parts["log_z"] - parts["divergence"]
    kind = Kind.LOWER_BOUND
    log_rows = log_n(problem, "cs with its dimension term") if dimension == "effective" else 0.0
    if dimension == "effective" and not problem.is_complete:
        parts["dimension_correction"] = 0.5 * (problem.dimension - d) * log_rows
        value += parts["dimension_correction"]
        kind = Kind.ASYMPTOTIC
    if problem.is_complete:
        kind = Kind.EXACT
    return Evidence(
        log_z=value,
        log_aliases=0.0 if kind is Kind.EXACT else problem.relevant_log_aliases,
        std_error=None,
        kind=kind,
        method="cs",
        parts=parts,
        status=estimate.fit.status,
        info=estimate.info,
    )
