"""The point estimate shared by the scores that are read off one EM fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lurking.errors import UndefinedScore, UnknownNameError
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, fit_problem
from lurking.learn.options import FitOptions

POINTS = ("map", "map-probability", "ml")
DIMENSIONS = ("standard", "effective")


@dataclass(frozen=True)
class PointEstimate:
    """θ̂ with what the scores need of it: the E-step at θ̂ itself gives `loglik` and the joint family counts N̂."""

    fit: Fit

    @property
    def loglik(self) -> float:
        """Ln p(y|θ̂)."""
        return self.fit.log_z

    @property
    def completed_evidence(self) -> float:
        """D(λ, N̂), the log evidence of the expected counts."""
        problem = self.fit.problem
        return problem.layout.blocks.log_evidence(problem.pseudo, self.fit.counts)

    @property
    def completed_loglik(self) -> float:
        """Σ N̂ ln θ̂, with 0·(−inf) = 0."""
        counts = self.fit.counts
        used = counts != 0.0
        return float(counts[used] @ self.fit.potentials[used])

    @property
    def divergence(self) -> float:
        """KL[p(θ | λ + N̂) ‖ p(θ | λ)], for models whose log_z is not convex."""
        problem, counts = self.fit.problem, self.fit.counts
        return problem.layout.blocks.kl_divergence(problem.pseudo + counts, problem.pseudo)

    @property
    def variational_log_z(self) -> float:
        """log_z at E[η] under p(θ | λ + N̂), for models whose log_z is not convex."""
        problem, counts = self.fit.problem, self.fit.counts
        return problem.engine.expect(problem.layout.blocks.expected(problem.pseudo + counts))[1]

    @property
    def log_prior(self) -> float:
        """Ln p(θ̂|m), the density over probabilities, or over the parameters of other families."""
        fit, problem = self.fit, self.fit.problem
        blocks, pseudo = problem.layout.blocks, problem.pseudo
        if fit.method == "ml":
            return blocks.log_density(pseudo, fit.potentials)
        added = fit.counts - (1.0 if fit.method == "map-probability" else 0.0)
        return blocks.log_density_after(pseudo, fit.potentials, added)

    @property
    def info(self) -> dict[str, object]:
        """What to report beside a score read off this estimate."""
        fit = self.fit
        return {"at": fit.method, "objective": fit.objective, "n_iter": fit.n_iter, "spread": fit.spread}


def point_estimate(problem: Problem, options: FitOptions, at: str) -> PointEstimate:
    """Return the estimate named by `at`; equal requests share one fit."""
    if at not in POINTS:
        raise UnknownNameError("point estimate", at, POINTS)
    return PointEstimate(fit_problem(problem, at, options))


def point_of(own: Mapping[str, Any]) -> str | None:
    """Return the estimate that the options name; None when more is to be done than to read it off."""
    return own.get("at", "map") if own.get("dimension", "standard") == "standard" else None


def log_n(problem: Problem, score: str) -> float:
    """Return ln n, refusing n < 1, where a large-sample score has no meaning: ln n rewards parameters there."""
    if problem.n < 1.0:
        what = f"less than one row (n = {problem.n:g})" if problem.n > 0.0 else "no data (n = 0)"
        raise UndefinedScore(f"{score} is undefined on {what}: its penalty is d/2 · ln n; use exact, cs or vb")
    return math.log(problem.n)


def dimension_of(problem: Problem, dimension: str) -> int:
    """Return d, or the effective dimension when the option says so."""
    if dimension not in DIMENSIONS:
        raise UnknownNameError("dimension", dimension, DIMENSIONS)
    return problem.dimension if dimension == "standard" else problem.effective_dimension
