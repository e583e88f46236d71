"""Chains over completions with the parameters integrated out: collapsed Gibbs, and annealing along it.

The path is f_τ(s) ∝ p(s, y|m)^τ, from uniform completions to the posterior of what is unobserved (the open question of
beal-ghahramani-2006, section 7). Draws of different rows depend on each other, so a repeated row costs as much as
different ones.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

from lurking.inference.problem import Problem, refuse_ties
from lurking.kernels.program import Program
from lurking.runtime.checks import check_whole
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.annealing.paths import inactive_evidence, sampled_program
from lurking.samplers.annealing.populations import checked_temperatures
from lurking.types import FloatArray


@dataclass(frozen=True, eq=False)
class CollapsedDraws:
    """Posterior draws of completions; hidden states may have different names in different chains.

    Attributes
    ----------
    problem : what the posterior is of.
    counts : (chains, draws, P) counts N(s) over all flat positions: θ | s, y ~ Dir(λ + N(s)).
    log_joint : (chains, draws) ln p(s, y|m).
    """

    problem: Problem = field(repr=False)
    counts: FloatArray = field(repr=False)
    log_joint: FloatArray = field(repr=False)

    @property
    def mean(self) -> FloatArray:
        """(P,) posterior mean of θ, the mean of E[θ|s, y]; of use where chains agree on the names of hidden states."""
        layout, shape = self.problem.layout, self.problem.pseudo + self.counts
        totals = np.add.reduceat(shape, layout.row_start[:-1], axis=-1)
        return np.asarray((shape / totals[..., layout.row_of]).mean(axis=(0, 1)))


@dataclass(frozen=True, eq=False)
class CompletionChains:
    """Finished chains of annealed completions.

    Attributes
    ----------
    temperatures : (K + 1,) from 0 to 1.
    log_weights : (G,) ln w with E[w] = p(y).
    increments : (G, K) contribution of each temperature, without constants.
    counts : (G, Q) counts of the last completion over the active positions; with the weights a posterior sample.
    """

    temperatures: FloatArray = field(repr=False)
    log_weights: FloatArray
    increments: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.log_weights)


def collapsed_gibbs(
    problem: Problem,
    *,
    chains: int = 4,
    sweeps: int = 1000,
    burn_in: int = 500,
    thin: int = 1,
    seed: Seed = 0,
    workers: int | None = None,
    stop: StopFlag | None = None,
) -> CollapsedDraws:
    """Run collapsed Gibbs chains and keep every `thin`-th of the `sweeps` after `burn_in`.

    A chain starts where each row is drawn given those before it. Each has its own random stream: results do not depend
    on the number of workers. After an interrupt, when `stop` is given, the chains finished are returned.
    """
    from lurking.kernels.cpu.chains.collapsed import empty_completion, sweeps_into

    for name, value, least in (
        ("chains", chains, 1),
        ("thin", thin, 1),
        ("sweeps", sweeps, thin),
        ("burn_in", burn_in, 0),
    ):
        check_whole(name, value, least)
    refuse_ties(problem, "collapsed Gibbs sampling", "gibbs, which draws parameters too")
    engine, program = problem.engine, sampled_program(problem)
    pseudo, size, draws = problem.pseudo[engine.active], problem.layout.size, int(sweeps // thin)

    flag = (stop or StopFlag()).array

    def one(child: np.random.SeedSequence) -> tuple[FloatArray, FloatArray] | None:
        generator = np.random.Generator(np.random.PCG64(child))
        tally, states = empty_completion(program, pseudo)
        # The first sweep lets the rows enter.
        nothing = np.empty((0, len(pseudo))), np.empty(0)
        sweeps_into(program, tally, states, int(burn_in) + 1, int(burn_in) + 2, generator, flag, nothing)
        counts, log_joints = np.empty((draws, len(pseudo))), np.empty(draws)
        if not sweeps_into(program, tally, states, draws * int(thin), int(thin), generator, flag, (counts, log_joints)):
            return None
        whole = np.tile(engine.complete_counts, (draws, 1))
        whole[:, engine.active] = counts
        return whole, log_joints

    seeds = seed_sequence(seed).spawn(int(chains))
    made = map_in_order(one, seeds, workers=workers, interruptible=stop is not None, stop=stop)
    done = [chain for chain in made if chain is not None]
    return CollapsedDraws(
        problem,
        np.asarray([counts for counts, _ in done]).reshape(-1, draws, size),
        np.asarray([log_joints for _, log_joints in done]).reshape(-1, draws) + inactive_evidence(problem),
    )


def anneal_completions(
    problem: Problem,
    temperatures: FloatArray,
    seeds: list[np.random.SeedSequence],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    stop: StopFlag | None = None,
) -> CompletionChains:
    """Run one annealed chain per seed; after an interrupt, when `stop` is given, those finished are returned.

    ln w = Σ_k (τ_{k+1} − τ_k) ln p(s_k, y|m) + Σ_i w_i ln S_i: the path starts at 1 for each of the Π_i S_i^{w_i}
    completions.
    """
    from lurking.kernels.cpu.chains.collapsed import anneal_completions_into, empty_completion

    refuse_ties(problem, "path='completions'", "path='variational'")
    program, schedule = sampled_program(problem), checked_temperatures(temperatures)
    pseudo, steps = problem.pseudo[problem.engine.active], len(schedule) - 1
    flag = (stop or StopFlag()).array

    def one(seed: np.random.SeedSequence) -> tuple[float, FloatArray, FloatArray] | None:
        generator, increments = np.random.Generator(np.random.PCG64(seed)), np.empty(steps)
        tally, states = empty_completion(program, pseudo)
        whole, total = anneal_completions_into(program, tally, states, schedule, generator, flag, increments)
        return (float(total), increments, tally.counts) if whole else None

    made = map_in_order(one, seeds, workers=workers, executor=executor, interruptible=stop is not None, stop=stop)
    done = [chain for chain in made if chain is not None]
    constant = _log_completions(program) + inactive_evidence(problem)
    return CompletionChains(
        schedule,
        np.asarray([total for total, _, _ in done]) + constant,
        np.asarray([increments for _, increments, _ in done]).reshape(-1, steps),
        np.asarray([counts for _, _, counts in done]).reshape(-1, len(pseudo)),
    )


def _log_completions(program: Program) -> float:
    """Return Σ_i w_i ln S_i, the log number of completions."""
    return float(program.weights @ np.log(np.repeat(program.states, np.diff(program.row_begin))))
