"""The widely applicable Bayesian information criterion, with the sign of a log evidence."""

from __future__ import annotations

import math

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.closed_form import closed_form
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.samplers import metropolis
from lurking.samplers.convergence import agreement, is_varied

CHAINS = 8
MOST_R_HAT = 1.05
LEAST_EFFECTIVE = 100.0
"""Between the 1.01 and 400 that Vehtari et al. (2021) ask for, for quantiles too, and what a mean alone needs."""


def wbic(
    problem: Problem, options: FitOptions, *, chains: int | None = None, draws: int = 2000, burn_in: int = 1000
) -> Evidence:
    """E[ln p(y|θ)] under the posterior tempered by 1/ln n, sampled; right for singular models too (Watanabe 2013).

    `chains` Metropolis chains (8) in parameter space go from the prior to that temperature in `burn_in` steps and stay
    for `draws` sweeps. Watanabe's WBIC is the negative of this value. R-hat and the effective sample size of ln p(y|θ)
    tell whether the chains agree.
    """
    chains = CHAINS if chains is None else chains
    for name, value, least in (("chains", chains, 2), ("draws", draws, 1), ("burn_in", burn_in, 1)):
        check_whole(name, value, least)
    if problem.is_complete:
        return closed_form(problem, options, "wbic")
    made = metropolis.wbic(
        problem,
        chains=chains,
        draws=int(draws),
        burn_in=int(burn_in),
        seed=options.seed,
        workers=options.workers,
        executor=options.executor,
        stop=options.stop,
    )
    values = made.log_likelihoods
    if not len(values) or (options.stop.is_set and not options.keep_interrupted):
        raise KeyboardInterrupt
    estimate, found = made.estimate, agreement(values)
    agree = found.r_hat <= MOST_R_HAT and found.ess_bulk >= LEAST_EFFECTIVE
    if options.stop.is_set:
        status = Status.INTERRUPTED
    else:
        status = Status.SAMPLED if agree or not is_varied(values) else Status.UNTRUSTED
    return Evidence(
        log_z=estimate.value,
        log_aliases=0.0,
        std_error=estimate.std_error if len(values) > 1 else math.inf,
        kind=Kind.ASYMPTOTIC,
        method="wbic",
        parts={"mean_loglik": estimate.value},
        status=status,
        info={
            "chains": len(values),
            "draws": int(draws),
            "burn_in": int(burn_in),
            "temperature": made.temperature,
            "r_hat": found.r_hat,
            "effective": found.ess_bulk,
        },
    )
