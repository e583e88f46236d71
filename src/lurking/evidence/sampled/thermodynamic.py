"""Evidence by thermodynamic integration along the path from the prior to the posterior."""

from __future__ import annotations

import math

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.closed_form import closed_form
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.runtime.rng import seed_sequence
from lurking.samplers import metropolis
from lurking.samplers.diagnostics import log_mean, relative_error
from lurking.samplers.metropolis import anneal_parameters, schedule

STEPS = 4096
CHAINS = 16
MOST_SPREAD = 1.0
"""Standard deviation of ln w up to which half its variance tells how far chains lag behind."""
MOST_DISAGREEMENT = 3.0


def thermodynamic(
    problem: Problem, options: FitOptions, *, steps: int = STEPS, chains: int | None = None, curvature: float = 0.2
) -> Evidence:
    """Integral over τ from 0 to 1 of E_τ[ln p(y|θ)] with θ ~ p(θ) p(y|θ)^τ, by chains that go from the prior.

    `chains` Metropolis chains (16) in parameter space take `steps` temperatures τ, family by family, spaced by
    `curvature` (e_τ of beal-ghahramani-2006, eq. 69). The integrand does not depend on the names of hidden states.
    Chains lag behind τ and make the integral low by about half the variance of ln w (their AIS weights); so much is
    part of the standard error.
    """
    if chains is not None:
        check_whole("chains", chains, 2)
    temperatures = schedule(steps, curvature)
    if problem.is_complete:
        return closed_form(problem, options, "thermodynamic")
    made = anneal_parameters(
        problem,
        temperatures,
        seed_sequence(options.seed).spawn(chains or CHAINS),
        sweep="family",
        workers=options.workers,
        executor=options.executor,
        stop=options.stop,
    )
    if not len(made) or (options.stop.is_set and not options.keep_interrupted):
        raise KeyboardInterrupt
    integral = metropolis.thermodynamic(made)
    spread = float(made.log_weights.std(ddof=1)) if len(made) > 1 else math.inf
    lag = 0.5 * spread * spread
    std_error = math.hypot(integral.std_error, lag) if len(made) > 1 else math.inf
    by_weights, error = log_mean(made.log_weights), relative_error(made.log_weights)
    if options.stop.is_set:
        status = Status.INTERRUPTED
    else:
        allowed = MOST_DISAGREEMENT * math.hypot(std_error, error) + 1e-9
        # The weights of the same chains are unbiased whatever the lag.
        agree = abs(integral.value - by_weights) <= allowed
        status = Status.SAMPLED if agree and spread <= MOST_SPREAD else Status.UNTRUSTED
    return Evidence(
        log_z=integral.value,
        log_aliases=0.0,
        std_error=std_error,
        kind=Kind.ESTIMATE,
        method="thermodynamic",
        parts={"integral": integral.value},
        status=status,
        info={
            "chains": len(made),
            "steps": len(temperatures) - 1,
            "spread": spread,
            "lag": lag,
            "log_mean_weight": by_weights,
            "mean_log_weight": float(made.log_weights.mean()),
            "acceptance": tuple(made.acceptance.mean(axis=0).tolist()),
        },
    )
