"""Chains run backwards, from posterior draws down to the start of a path: the upper side of the evidence.

A reverse chain from an exact posterior draw gives V with E[1/V] = 1/p(y) (`lurking.kernels.cpu.chains.annealing`).

Aliases. Forward populations carry S·ρ(θ), ρ(θ) = g(θ)^γ / Σ_π g(πθ)^γ (see `lurking.samplers.aliases`): they give
W = w · S ρ(θ_K). In reverse, choose the relabeling π of a posterior draw with probability ρ(πθ): what comes out has the
density S ρ(θ) p(θ | y), since p(θ | y) is the same for all relabelings. That is the law towards which W weighs the
forward chains, so V = w · S ρ(πθ) has E[1/V] = 1/p(y). (Without the factor ρ it would not: 1/(w S) has the mean
E_forward[ρ]/p(y).) The completion needs no relabeling of its own, it is drawn given πθ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lurking.inference.problem import Problem
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import generators
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealing.paths import ProductPath, sampled_program
from lurking.samplers.annealing.populations import Populations, checked_temperatures
from lurking.samplers.diagnostics import log_mean
from lurking.types import FloatArray

BURN_IN = 500
"""Gibbs sweeps before a draw that is not exact is used."""


@dataclass(frozen=True, eq=False)
class Way:
    """A path with its temperatures and the sharing of the posterior among relabelings."""

    path: ProductPath
    sharing: Sharing
    flattening: float
    power: float
    temperatures: FloatArray

    def estimates(self, populations: Populations) -> FloatArray:
        """Return ln of each population's unbiased estimate of p(y), (G,)."""
        shape = populations.log_weights.shape
        points = populations.log_theta.reshape(-1, populations.log_theta.shape[-1])
        return populations.estimates(self.sharing.log_share(0, points, self.power).reshape(shape))

    def stretched(self, steps: int) -> FloatArray:
        """Return the temperatures of a schedule of the same shape with another number of steps."""
        places, known = np.linspace(0.0, 1.0, steps + 1), np.linspace(0.0, 1.0, len(self.temperatures))
        return np.interp(places, known, self.temperatures)


def posterior_draws(
    problem: Problem,
    first: FloatArray,
    count: int,
    spacing: int,
    seed: np.random.SeedSequence,
    *,
    is_exact: bool = True,
) -> FloatArray:
    """Return ln θ of `count` posterior draws over the active positions, (count, Q): a Gibbs chain from the first.

    `first` (P,) is ln θ of an exact posterior draw; where it is not exact the chain runs for `BURN_IN` sweeps before.
    Each draw is `spacing` sweeps after the one before.
    """
    from lurking.kernels.cpu.chains.gibbs import gibbs_into

    program, active = sampled_program(problem), problem.engine.active
    generator = generators(seed, 1)[0]
    pseudo = np.ascontiguousarray(problem.pseudo[active])
    log_theta = np.ascontiguousarray(first[active])
    if not is_exact:
        gibbs_into(
            *(program, pseudo, log_theta, BURN_IN, BURN_IN + 1, generator),
            *(np.empty((0, len(active))), np.empty(0)),
        )
    begin, points = log_theta.copy(), np.empty((count - 1, len(active)))
    gibbs_into(program, pseudo, log_theta, (count - 1) * spacing, spacing, generator, points, np.empty(count - 1))
    return np.concatenate([begin[None, :], points])


def relabelled(
    sharing: Sharing, problem: Problem, log_theta: FloatArray, power: float, generator: np.random.Generator
) -> FloatArray:
    """Return ln πθ of one posterior draw ln θ (Q,), the relabeling π chosen with probability ρ(πθ)."""
    if power == 0.0:  # ρ is the same for all: the draw as it is has the law wanted
        return log_theta
    active = problem.engine.active
    whole = np.zeros(problem.layout.size)
    whole[active] = log_theta
    return np.asarray(whole[sharing.draw(log_theta, power, generator)][active])


def reverse(
    path: ProductPath,
    temperatures: FloatArray,
    points: FloatArray,
    seeds: Sequence[np.random.SeedSequence],
    *,
    workers: int | None = None,
    stop: StopFlag | None = None,
) -> FloatArray:
    """Return ln w of one reverse chain from each posterior draw ln θ, (chains, Q); the mean of 1/w is 1/p(y).

    After an interrupt, when `stop` is given, the chains finished by then.
    """
    from lurking.kernels.cpu.chains.annealing import reverse_into

    program, schedule, flag = path.program, checked_temperatures(temperatures), stop or StopFlag()

    def one(item: tuple[FloatArray, np.random.SeedSequence]) -> float | None:
        generator = np.random.Generator(np.random.PCG64(item[1]))
        log_theta, start = np.array(item[0], np.float64), (path.alpha, path.potentials)
        whole, value = reverse_into(program, path.pseudo, start, schedule, log_theta, generator, flag.array)
        return float(value) if whole else None

    made = map_in_order(one, list(zip(points, seeds, strict=True)), workers=workers, stop=stop)
    return np.asarray([value for value in made if value is not None]) + path.constant


def reverse_values(
    way: Way,
    temperatures: FloatArray,
    points: FloatArray,
    seed: np.random.SeedSequence,
    workers: int | None = None,
    stop: StopFlag | None = None,
) -> FloatArray:
    """Return ln V of a reverse chain from each posterior draw, aliases shared, (chains,)."""
    choice, *seeds = seed.spawn(1 + len(points))
    generator = np.random.Generator(np.random.PCG64(choice))
    moved = np.stack([relabelled(way.sharing, way.path.problem, own, way.power, generator) for own in points])
    values = reverse(way.path, temperatures, moved, seeds, workers=workers, stop=stop)
    return values + way.sharing.log_share(0, moved, way.power)[: len(values)]


def correlated_error(log_weights: FloatArray) -> float:
    """Return the standard error of ln(mean weight) for successive weights of a chain, in order.

    With autocovariances c_t of n weights over their mean it is √(c₀ τ / (n − τ)), τ = −1 + 2 Σ_k (c_2k + c_2k+1) / c₀
    summed while the pairs are positive and falling (Geyer 1992), between 1 and n/2: n/τ independent weights would say
    as much. n − τ in place of n makes up for deviations being taken from the chain's own mean.
    """
    count = len(log_weights)
    if count < 2:
        return math.inf
    deviations = np.exp(log_weights - log_mean(log_weights)) - 1.0
    covariances = np.correlate(deviations, deviations, "full")[count - 1 :] / count
    if covariances[0] <= 0.0:
        return 0.0
    pairs = covariances[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    is_first = np.logical_and.accumulate(pairs > 0.0)
    falling = np.minimum.accumulate(np.where(is_first, pairs, 0.0))
    time = min(max(1.0, 2.0 * float(falling.sum()) / float(covariances[0]) - 1.0), 0.5 * count)
    return math.sqrt(float(covariances[0]) * time / (count - time))
