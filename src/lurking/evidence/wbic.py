"""The widely applicable Bayesian information criterion, with the sign of a log evidence."""

from __future__ import annotations

import math

from lurking.evidence.base import Evidence, Kind
from lurking.evidence.closed_form import closed_form
from lurking.inference.problem import Problem
from lurking.learn.fit import FitOptions
from lurking.learn.loop import Status
from lurking.samplers import metropolis
from lurking.samplers.metropolis import check_whole

CHAINS = 8


def wbic(
    problem: Problem, options: FitOptions, *, chains: int | None = None, draws: int = 2000, burn_in: int = 1000
) -> Evidence:
    """E[ln p(y|θ)] under the posterior tempered by 1/ln n, sampled; right for singular models too (Watanabe 2013).

    `chains` Metropolis chains (8) in parameter space go from the prior to that temperature in `burn_in` steps and stay
    for `draws` sweeps. Watanabe's WBIC is the negative of this value.
    """
    chains = CHAINS if chains is None else chains
    for name, value, least in (("chains", chains, 2), ("draws", draws, 1), ("burn_in", burn_in, 1)):
        check_whole(name, value, least)
    if problem.is_complete:
        return closed_form(problem, options, "wbic")
    estimate = metropolis.wbic(
        problem, chains=chains, draws=int(draws), burn_in=int(burn_in), seed=options.seed, workers=options.workers
    )
    return Evidence(
        log_z=estimate.value,
        log_aliases=0.0,
        std_error=estimate.std_error,
        kind=Kind.ASYMPTOTIC,
        method="wbic",
        parts={"mean_loglik": estimate.value},
        status=Status.SAMPLED,
        info={
            "chains": int(chains),
            "draws": int(draws),
            "burn_in": int(burn_in),
            "temperature": 1.0 / math.log(problem.n),
        },
    )
