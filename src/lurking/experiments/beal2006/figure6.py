"""How annealed importance sampling behaves: figure 6 of the paper (beal-ghahramani-2006, section 5).

The chains are those of algorithm 3.1: they go from the prior to the posterior in parameter space, with one joint
Dirichlet proposal at each temperature, whose strength is fixed once at n = 480 and kept for all data sets and
temperatures. Four questions are asked of them:

- (a) how ln p̂ of single chains rises with the number of temperatures K, from ten seeds and from the true parameters;
- (b), (c) which share of the proposals is accepted, over all structures of the class and by quarter of the schedule;
- (d) what the schedule τ(k) = e (k/K) / (1 − k/K + e) of eq. 69 looks like, and what its curvature e does.

Beside (a) stand chains on the variational path, at equal numbers of passes over the rows. The last question is asked
through *hysteresis*, which the paper names as what e was chosen by, without showing it: a forward chain has
E[ln w] ≤ ln p(y), and a chain that starts from a posterior draw and goes back to the prior gives, with its sign
reversed, a mean ≥ ln p(y). The distance of the two is the hysteresis; it closes as K grows.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from lurking.data.table import Table
from lurking.evidence.asymptotic.bic import bic
from lurking.evidence.sampled.ais import annealed_importance_sampling
from lurking.experiments.beal2006.data import OBSERVED, SIZES, STRUCTURE, true_log_theta, true_problem, true_table
from lurking.experiments.beal2006.sampled import VERSION, data_digest
from lurking.graph.spaces import bipartite
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, fit_problem
from lurking.learn.options import FitOptions
from lurking.report.beal2006 import Acceptance, Figure6, Hysteresis, References, Traces
from lurking.runtime.executor import map_in_order
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import seed_sequence
from lurking.runtime.store import Key, Store, digest_of
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealing.paths import variational_path
from lurking.samplers.annealing.populations import anneal
from lurking.samplers.gibbs import gibbs
from lurking.samplers.metropolis import Walk, anneal_parameters, schedule
from lurking.types import FloatArray

STRENGTH: Final = 2000.0
"""Accepts three proposals in five at n = 480 under the true structure; the paper's acceptance there is about 60 %."""


@dataclass(frozen=True)
class Config:
    """What figure 6 is made of; the defaults are the sizes of the paper.

    Attributes
    ----------
    rows : n of panel (a), of the schedules and of the hysteresis.
    steps : numbers of temperatures K of panel (a).
    chains : chains of each K from the prior, also of each setting of the hysteresis.
    strength, curvature : a of the proposal Dir(a θ + ε), e of the schedule.
    flattening : c of the variational path.
    passes : passes over the rows that the reference estimate may take.
    sizes, acceptance_steps, structures : data sets and K of the acceptance rates, and how many of the 136 structures.
    curvatures, hysteresis_steps : e and K of the hysteresis.
    burn_in : Gibbs sweeps before a posterior draw.
    seed : of all random numbers but the data, which are always the same.
    """

    rows: int = 480
    steps: tuple[int, ...] = tuple(1 << power for power in range(6, 15))
    chains: int = 10
    strength: float = STRENGTH
    curvature: float = 0.2
    flattening: float = 0.2
    passes: int = 1 << 19
    sizes: tuple[int, ...] = SIZES
    acceptance_steps: int = 1 << 14
    structures: int = 136
    curvatures: tuple[float, ...] = (0.02, 0.05, 0.2, 0.5, 2.0, 100.0)
    hysteresis_steps: tuple[int, ...] = (1 << 10, 1 << 14)
    burn_in: int = 20_000
    seed: int = 0


def quick(config: Config) -> Config:
    """Return a config of the same shape that takes some ten seconds."""
    return replace(
        config,
        steps=tuple(1 << power for power in range(6, 10)),
        passes=1 << 15,
        sizes=(10, 480, 10240),
        acceptance_steps=1 << 7,
        structures=34,
        hysteresis_steps=(1 << 7, 1 << 9),
        burn_in=2_000,
    )


def run(config: Config, *, workers: int | None = None, progress: Progress | None = None) -> Figure6:
    """Return the numbers of figure 6; they do not depend on the number of workers."""
    shown = progress or Silent()
    problem = true_problem(config.rows)
    chain_seed, variational_seed, acceptance_seed, hysteresis_seed = seed_sequence(config.seed).spawn(4)
    options = FitOptions(restarts=10, seed=config.seed, workers=workers)
    references = _references(problem, config, options)
    seeds = chain_seed.spawn(config.chains + 1)
    fit = fit_problem(problem, "vb", options)
    traces = _traces(problem, fit, config, (seeds, variational_seed.spawn(config.chains)), workers, shown)
    acceptance = _acceptance(config, acceptance_seed, workers, shown)
    hysteresis = _hysteresis(problem, config, (seeds[:-1], hysteresis_seed), workers, shown)
    return Figure6(config.rows, config.strength, config.curvature, references, traces, acceptance, hysteresis)


def recall(config: Config, store: Store, workers: int | None = None, progress: Progress | None = None) -> Figure6:
    """Return the figure from the store; make and keep it first if it is not there."""
    setting = digest_of(VERSION, asdict(config))
    key = Key(data_digest(true_table(config.rows)), STRUCTURE, "figure 6", setting, config.seed)
    made = store.recall(key, lambda: _plain(run(config, workers=workers, progress=progress).content()))
    return Figure6.of(made)


def _plain(content: Any) -> Any:
    """Return nested values with lists in the place of arrays."""
    return json.loads(json.dumps(content, default=np.ndarray.tolist))


def _references(problem: Problem, config: Config, options: FitOptions) -> References:
    """Return the levels that do not depend on K: the variational bound, BIC, and an estimate with its error."""
    estimate = annealed_importance_sampling(problem, options, passes=config.passes)
    return References(
        bound=fit_problem(problem, "vb", options).objective,
        bic=bic(problem, options).log_z,
        log_aliases=problem.relevant_log_aliases,
        estimate=estimate.log_z,
        std_error=estimate.std_error,
    )


def _traces(
    problem: Problem,
    fit: Fit,
    config: Config,
    seeds: tuple[list[np.random.SeedSequence], list[np.random.SeedSequence]],
    workers: int | None,
    progress: Progress,
) -> Traces:
    """Return panel (a); a trace keeps its seed, and with it its start, for all K."""
    (*own, last), variational_seeds = seeds
    path = variational_path(fit, config.flattening)
    sharing = Sharing(problem, [path.alpha])
    start, strength = true_log_theta(problem), (config.strength, 0.0)
    prior, true, variational = [], [], []
    progress.begin("chains of growing length", len(config.steps))
    for place, steps in enumerate(config.steps):
        taus = schedule(steps, config.curvature)
        prior.append(
            anneal_parameters(problem, taus, own, sweep="joint", strength=strength, workers=workers).log_weights
        )
        told = anneal_parameters(problem, taus, [last], sweep="joint", strength=strength, starts=start)
        true.append(told.log_weights[0])
        chains = anneal(path, np.linspace(0.0, 1.0, steps + 1), variational_seeds, workers=workers)
        share = sharing.log_share(0, chains.log_theta[:, 0], 1.0)
        variational.append(chains.estimates(share[:, None]))
        progress.update(place + 1)
    progress.end()
    return Traces(config.steps, np.stack(prior), np.asarray(true), np.stack(variational))


def _acceptance(config: Config, seed: np.random.SeedSequence, workers: int | None, progress: Progress) -> Acceptance:
    """Return the share of proposals accepted, one chain for each structure and data set, by quarter of the schedule.

    Table rows that nothing hidden touches have exact evidence and are not proposed, unlike in the paper; structures
    without any other row have no chain and do not count.
    """
    every = list(bipartite(2, OBSERVED))
    chosen = np.unique(np.linspace(0, len(every) - 1, config.structures).round().astype(int))
    structures = [every[place] for place in chosen]
    taus = schedule(config.acceptance_steps, config.curvature)
    rates = np.empty((len(config.sizes), len(structures), 4))
    progress.begin("acceptance rates", len(config.sizes))
    for place, (n, child) in enumerate(zip(config.sizes, seed.spawn(len(config.sizes)), strict=True)):
        table, seeds = true_table(n), child.spawn(len(structures))

        def one(number: int, table: Table = table, seeds: list[np.random.SeedSequence] = seeds) -> FloatArray:
            problem = Problem(structures[number], table, 1.0)
            strength = (config.strength, 0.0)
            chain = anneal_parameters(problem, taus, [seeds[number]], strength=strength, workers=1)
            return np.asarray(chain.acceptance[0])

        rates[place] = map_in_order(one, range(len(structures)), workers=workers)
        progress.update(place + 1)
    progress.end()
    moving = rates[:, ~np.isnan(rates).any(axis=(0, 2))]
    whole = moving.mean(axis=2)
    return Acceptance(
        config.sizes,
        config.acceptance_steps,
        moving.shape[1],
        whole.mean(axis=1),
        whole.std(axis=1, ddof=1),
        moving.mean(axis=1),
    )


def _hysteresis(
    problem: Problem,
    config: Config,
    seeds: tuple[list[np.random.SeedSequence], np.random.SeedSequence],
    workers: int | None,
    progress: Progress,
) -> Hysteresis:
    """Return ln p̂ of chains from the prior and of chains back to it, for every curvature and number of steps."""
    forward_seeds, other = seeds
    draw_seed, reverse_seed = other.spawn(2)
    reverse_seeds = reverse_seed.spawn(config.chains)
    draws = gibbs(problem, chains=config.chains, draws=1, burn_in=config.burn_in, seed=draw_seed, workers=workers)
    starts = draws.log_theta[:, 0, problem.engine.active]
    walk = Walk(problem, "joint", (config.strength, 0.0))
    shape = (len(config.curvatures), len(config.hysteresis_steps), config.chains)
    forward, backward = np.empty(shape), np.empty(shape)
    progress.begin("hysteresis", shape[0] * shape[1])
    for place in np.ndindex(*shape[:2]):
        taus = schedule(config.hysteresis_steps[place[1]], config.curvatures[place[0]])
        chains = anneal_parameters(problem, taus, forward_seeds, strength=walk.strength, workers=workers)
        forward[place] = chains.log_weights
        backward[place] = _backward(walk, taus, starts, reverse_seeds, workers)
        progress.update(int(np.ravel_multi_index(place, shape[:2])) + 1)
    progress.end()
    return Hysteresis(config.curvatures, config.hysteresis_steps, forward, backward)


def _backward(
    walk: Walk, taus: FloatArray, starts: FloatArray, seeds: list[np.random.SeedSequence], workers: int | None
) -> FloatArray:
    """Return Σ_k (τ_{k+1} − τ_k) ln p(y|θ_{k+1}) of chains from θ_K = a posterior draw through τ_K = 1 … τ_0 = 0, (G,).

    In the true structure every table row has a hidden parent or is hidden, so that no exact part is to be added.
    """
    down = np.ascontiguousarray(taus[::-1])

    def one(place: int) -> float:
        return -float(walk.run(down, seeds[place], starts[place]).increments.sum())

    return np.asarray(map_in_order(one, range(len(seeds)), workers=workers))
