"""The variational Bayes lower bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lurking.errors import UnknownNameError
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.cs import cheeseman_stutz
from lurking.evidence.point import POINTS, point_estimate
from lurking.inference.problem import Problem
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions

STARTS = ("prior", "map")


def variational_fit(own: Mapping[str, Any]) -> str | None:
    """Return the fit behind the score; None when it starts at an estimate that must be fitted first."""
    return "vb" if own.get("start", "prior") == "prior" else None


def variational_bayes(problem: Problem, options: FitOptions, *, start: str = "prior", at: str = "map") -> Evidence:
    """Max B(φ), the variational lower bound; exact when nothing is unobserved (beal-ghahramani-2006, section 3.5).

    start="prior": restarts as in any fit. start="map": one climb from the point estimate named by `at`, which can
    never end below `cs` from the same estimate (corollary 6.2).
    """
    if start not in STARTS:
        raise UnknownNameError("start", start, STARTS)
    if at not in POINTS:
        raise UnknownNameError("point estimate", at, POINTS)
    info: dict[str, object] = {}
    if start == "map":
        estimate = point_estimate(problem, options, at)
        info["cs"] = cheeseman_stutz(problem, options, at=at).log_z
        tables = problem.layout.split(problem.layout.probabilities(estimate.fit.potentials))
        options = replace(options, init=tables, restarts=1, tournament=0)
    fit = fit_problem(problem, "vb", options)
    kind = Kind.EXACT if problem.is_complete else Kind.LOWER_BOUND
    info |= {"start": start, "n_iter": fit.n_iter, "spread": fit.spread}
    return Evidence(
        log_z=fit.objective,
        log_aliases=0.0 if kind is Kind.EXACT else problem.relevant_log_aliases,
        std_error=None,
        kind=kind,
        method="vb",
        parts={"bound": fit.objective},
        status=fit.status,
        info=info,
    )
