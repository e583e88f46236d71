"""Gibbs sampling of the posterior p(θ | y), hidden states and empty cells drawn along."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lurking.inference.problem import Problem
from lurking.runtime.checks import check_whole
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.annealing.paths import sampled_program
from lurking.samplers.reference_gibbs import ReferenceGibbs
from lurking.types import FloatArray


@dataclass(frozen=True, eq=False)
class Draws:
    """Posterior draws of several chains; hidden states may have different names in different chains.

    Attributes
    ----------
    problem : what the posterior is of.
    log_theta : (chains, draws, P) ln θ over all flat positions; of nodes without a table η(θ).
    log_likelihood : (chains, draws) ln p(y|θ) at the point each kept sweep started from.
    """

    problem: Problem = field(repr=False)
    log_theta: FloatArray = field(repr=False)
    log_likelihood: FloatArray = field(repr=False)

    @property
    def mean(self) -> FloatArray:
        """(P,) posterior mean over all chains of θ, of nodes without a table of η(θ).

        It is of use only if chains agree on the names of hidden states.
        """
        layout = self.problem.layout
        if layout.are_tables:
            return np.asarray(np.exp(self.log_theta).mean(axis=(0, 1)))
        return np.asarray(layout.probabilities(self.log_theta).mean(axis=(0, 1)))


def gibbs(
    problem: Problem,
    *,
    chains: int = 4,
    draws: int = 1000,
    burn_in: int = 500,
    thin: int = 1,
    seed: Seed = 0,
    workers: int | None = None,
    stop: StopFlag | None = None,
) -> Draws:
    """Run Gibbs chains from draws of the prior and keep `draws` points of each, `thin` sweeps apart, after `burn_in`.

    Each chain has its own random stream: results do not depend on the number of workers.
    """
    for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        check_whole(name, value, least)
    if problem.families:
        return _in_python(
            problem, int(draws), int(burn_in), int(thin), seed_sequence(seed).spawn(int(chains)), workers, stop
        )
    from lurking.kernels.cpu.chains.gibbs import gibbs_into

    engine = problem.engine
    program = sampled_program(problem)
    pseudo, active, inactive = np.ascontiguousarray(problem.pseudo[engine.active]), engine.active, engine.inactive
    posterior = problem.pseudo + engine.complete_counts
    blocks = problem.layout.blocks
    active_blocks = blocks.at(active)

    def one(child: np.random.SeedSequence) -> tuple[FloatArray, FloatArray]:
        generator = np.random.Generator(np.random.PCG64(child))
        log_theta = active_blocks.draw(pseudo, generator)
        nothing = np.empty((0, len(pseudo))), np.empty(0)
        gibbs_into(program, pseudo, log_theta, int(burn_in), int(burn_in) + 1, generator, *nothing)
        points, likelihoods = np.empty((draws, len(pseudo))), np.empty(draws)
        gibbs_into(program, pseudo, log_theta, int(draws * thin), int(thin), generator, points, likelihoods)
        whole = np.empty((draws, problem.layout.size))
        for k in range(draws):
            # Table rows that nothing unobserved touches have independent draws.
            whole[k] = blocks.draw(posterior, generator)
            likelihoods[k] += float(engine.complete_counts[inactive] @ whole[k, inactive])
        whole[:, active] = points
        return whole, likelihoods

    done = map_in_order(one, seed_sequence(seed).spawn(int(chains)), workers=workers, stop=stop)
    if not done:
        raise KeyboardInterrupt
    return Draws(problem, np.stack([points for points, _ in done]), np.stack([values for _, values in done]))


def _in_python(
    problem: Problem,
    draws: int,
    burn_in: int,
    thin: int,
    seeds: list[np.random.SeedSequence],
    workers: int | None,
    stop: StopFlag | None,
) -> Draws:
    """Run the chains of a problem with nodes other than tables, by the reference sampler."""
    flag, sampler = stop or StopFlag(), ReferenceGibbs(problem)

    def one(child: np.random.SeedSequence) -> tuple[FloatArray, FloatArray] | None:
        generator = np.random.Generator(np.random.PCG64(child))
        eta = sampler.first(generator)
        points, likelihoods = np.empty((draws, problem.layout.size)), np.empty(draws)
        for sweep in range(burn_in + draws * thin):
            if flag.is_set:
                return None
            kept, rest = divmod(sweep + 1 - burn_in, thin)
            is_kept = kept > 0 and rest == 0
            if is_kept:
                likelihoods[kept - 1] = sampler.log_likelihood(eta)
            eta = sampler.sweep(eta, generator)
            if is_kept:
                points[kept - 1] = eta
        return points, likelihoods

    made = map_in_order(one, seeds, workers=workers, interruptible=True, stop=flag)
    done = [own for own in made if own is not None]
    if not done or (flag.is_set and stop is None):
        raise KeyboardInterrupt
    return Draws(problem, np.stack([points for points, _ in done]), np.stack([values for _, values in done]))
