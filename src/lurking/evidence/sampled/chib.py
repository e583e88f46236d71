"""Evidence by the candidate method: likelihood times prior over posterior at one point."""

from __future__ import annotations

from typing import Any

import numpy as np

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.closed_form import closed_form
from lurking.evidence.sampled.candidate_points import PointOption, candidate_point, check_point
from lurking.inference.problem import Problem
from lurking.learn.fit import fit_problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.samplers.annealing.paths import sampled_program
from lurking.samplers.candidate import LEAST_CHAINS, LEAST_DRAWS, CandidateDensity, candidate_density

CHAINS = 8
LEAST_PSEUDO = 0.05
"""Pseudo-counts below which completions hardly ever change, so that chains agree though they have seen one of many."""
ERRORS = 3.0
"""Standard errors by which a value may lie below the variational bound, which no log evidence does."""
ROUNDING = 1e-9


def chib(
    problem: Problem,
    options: FitOptions,
    *,
    chains: int | None = None,
    draws: int = 2000,
    point: PointOption = "map",
) -> Evidence:
    """Ln p(y|θ*) + ln p(θ*) − ln p(θ*|y), the last one averaged over Gibbs sweeps and relabelings (Chib 1995).

    `chains` Gibbs chains (8) start at θ*, make draws/4 sweeps to forget it and keep `draws`. θ* is the MAP estimate;
    with point="vb" the mean of the variational posterior, with "draws" the best of a few Gibbs draws, or it is given
    as a Fit, a Network or {node: table[l, k]}.
    """
    check_point(point)
    if chains is not None:
        check_whole("chains", chains, LEAST_CHAINS)
    check_whole("draws", draws, LEAST_DRAWS)
    if problem.is_complete:
        return closed_form(problem, options, "chib")
    sampled_program(problem)  # what cannot be sampled is refused before anything is fitted
    bound = fit_problem(problem, "vb", options).objective
    at = candidate_point(problem, options, point)
    density = candidate_density(
        problem,
        at.log_theta,
        chains=chains or CHAINS,
        draws=draws,
        burn_in=int(draws) // 4,
        seed=options.seed,
        workers=options.workers,
        executor=options.executor,
        stop=options.stop,
    )
    if not len(density.chain_means) or (options.stop.is_set and not options.keep_interrupted):
        raise KeyboardInterrupt
    parts = {
        "loglik": at.loglik,
        "log_prior": at.log_prior,
        "minus_log_posterior": -(at.log_prior + density.log_ratio),
    }
    log_z = at.loglik - density.log_ratio  # without the prior density, which may be huge
    is_possible = log_z + ERRORS * density.std_error >= bound - ROUNDING * max(1.0, abs(bound))
    if options.stop.is_set:
        status = Status.INTERRUPTED
    else:
        is_free = float(problem.pseudo[problem.engine.active].min(initial=np.inf)) >= LEAST_PSEUDO
        is_trusted = density.is_trusted and is_possible and is_free and not density.log_missing
        status = Status.SAMPLED if is_trusted else Status.UNTRUSTED
    return Evidence(
        log_z=log_z,
        log_aliases=0.0,
        std_error=density.std_error,
        kind=Kind.ESTIMATE,
        method="chib",
        parts=parts,
        status=status,
        info={"point": at.chosen, "bound": bound, **_info(density)},
    )


def _info(density: CandidateDensity) -> dict[str, Any]:
    """Return what speaks for or against the value."""
    info: dict[str, Any] = {
        "chains": len(density.chain_means),
        "draws": density.log_densities.shape[1],
        "spread": density.spread,
        "own_error": density.own_error,
        "effective_share": density.effective_share,
        "carriers": density.carriers,
        "relabelings": density.n_relabelings,
        "near": density.near,
        "switched": density.switched,
    }
    if density.log_missing:
        info["note"] = (
            "there are more relabelings of hidden states than can be summed; only the point itself is counted, and the "
            f"value may be low by up to ln S = {density.log_missing:.1f}"
        )
    return info
