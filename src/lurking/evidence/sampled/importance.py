"""Evidence by importance sampling from the variational posterior and all its relabelings."""

from __future__ import annotations

from typing import Any

import numpy as np

from lurking.errors import OptionError, UndefinedScore
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.closed_form import closed_form
from lurking.evidence.limits import refuse_strong_priors
from lurking.inference.problem import Problem
from lurking.learn.fit import fit_problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole, is_positive
from lurking.runtime.executor import map_in_order
from lurking.runtime.rng import seed_sequence
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealing.annealed import MOST_PARETO
from lurking.samplers.annealing.paths import compiled_program, inactive_evidence
from lurking.samplers.diagnostics import effective_sample_size, log_mean, pareto_k, relative_error
from lurking.types import FloatArray

LEAST_DRAWS = 10
"""Below, there is no tail of weights to look at."""
PIECE = 512
"""Points that share a random stream; fixed, so that the number of workers does not matter."""
CHUNK = 1 << 22
"""Densities (points × relabelings) held at once."""
LEAST_EFFECTIVE = 5.0


def importance(problem: Problem, options: FitOptions, *, draws: int = 4096, flattening: float = 0.3) -> Evidence:
    """Ln of the mean of p(θ) p(y|θ) / mean_π q(πθ) over `draws` points of q, the variational posterior.

    q(θ) = Dir(λ + c N) with the counts N of the VB fit; c = `flattening` below 1 makes it wider. It sees one of S
    equivalent modes, so the density of the proposal is that of the mixture of all its relabelings. Target and mixture
    are the same for θ and πθ, so points of q alone have the weights of points of the mixture. Table rows that nothing
    unobserved touches are integrated in closed form.
    """
    check_whole("draws", draws, LEAST_DRAWS)
    if not (is_positive(flattening) and flattening <= 1.0):
        raise OptionError(f"flattening is {flattening!r}; it must be above 0 and at most 1, the variational posterior")
    if problem.is_complete:
        return closed_form(problem, options, "importance")
    compiled_program(problem)  # what cannot be sampled is refused before anything is fitted
    refuse_strong_priors(problem, "importance")
    fit = fit_problem(problem, "vb", options)
    active = problem.engine.active
    alpha = np.ascontiguousarray(problem.pseudo[active] + flattening * fit.counts[active])
    sharing = Sharing(problem, [alpha])
    log_weights = _log_weights(problem, options, alpha, sharing, int(draws))
    if not len(log_weights) or (options.stop.is_set and not options.keep_interrupted):
        raise KeyboardInterrupt
    if not np.any(np.isfinite(log_weights)):
        raise UndefinedScore(
            f"none of {len(log_weights)} draws has its hidden states in the order that stands for all others, and "
            "there are too many orders to sum over; use ais"
        )
    shape, effective = pareto_k(log_weights), effective_sample_size(log_weights)
    info: dict[str, Any] = {
        "draws": len(log_weights),
        "bound": fit.objective,
        "pareto_k": shape,
        "effective_share": effective / len(log_weights),
        "shared_by": sharing.group.form,
    }
    if not sharing.is_whole:
        info["note"] = (
            "there are more relabelings of hidden states than can be summed; only some are counted, and up to "
            f"{sharing.log_missing:.1f} nats are left out where modes are apart"
        )
    if options.stop.is_set:
        status = Status.INTERRUPTED
    else:
        is_heavy = not shape < MOST_PARETO or effective < LEAST_EFFECTIVE
        status = Status.UNTRUSTED if is_heavy or not sharing.is_whole else Status.SAMPLED
    value = log_mean(log_weights)
    return Evidence(
        log_z=value,
        log_aliases=0.0,
        std_error=relative_error(log_weights),
        kind=Kind.ESTIMATE,
        method="importance",
        parts={"log_mean_weight": value},
        status=status,
        info=info,
    )


def _log_weights(problem: Problem, options: FitOptions, alpha: FloatArray, sharing: Sharing, draws: int) -> FloatArray:
    """Return ln w of every point, (draws,); after an interrupt those of the pieces that were finished."""
    from lurking.kernels.cpu.points import weigh_points_into

    program, pseudo = compiled_program(problem), problem.pseudo[problem.engine.active]
    assert program is not None  # something is active
    blocks = problem.layout.blocks.at(problem.engine.active)
    constant = blocks.log_normaliser(alpha) - blocks.log_normaliser(pseudo)
    constant += inactive_evidence(problem)
    group = 1 if sharing.permutations is None else len(sharing.permutations)
    step = max(1, CHUNK // group)

    def piece(place: int) -> FloatArray:
        generator = np.random.Generator(np.random.PCG64(seeds[place]))
        count = min(PIECE, draws - place * PIECE)
        points, log_likelihoods = np.empty((count, len(alpha))), np.empty(count)
        made = weigh_points_into(program, alpha, generator, options.stop.array, points, log_likelihoods)
        points = points[:made]
        log_ratio = constant + points @ (pseudo - alpha)
        shares = [sharing.log_share(0, points[k : k + step], 1.0) for k in range(0, made, step)]
        return np.asarray(log_ratio + log_likelihoods[:made] + np.concatenate([*shares, np.empty(0)]))

    seeds = seed_sequence(options.seed).spawn(-(-draws // PIECE))
    done = map_in_order(
        piece,
        range(len(seeds)),
        workers=options.workers,
        executor=options.executor,
        interruptible=True,
        stop=options.stop,
    )
    return np.concatenate([*done, np.empty(0)])
