"""Annealing in parameter space by Metropolis-Hastings steps (beal-ghahramani-2006, section 3.6 and algorithm 3.1).

The path is f_τ(θ) = p(θ) p(y|θ)^τ with everything unobserved summed out. At every τ it is the tempered posterior of θ,
so WBIC can be read off it, which paths over completions do not allow, and weights of rows may be fractions. Table rows
that nothing unobserved touches take no part; their evidence is exact and is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lurking.errors import OptionError, UndefinedScore, UnknownNameError
from lurking.inference.problem import Problem
from lurking.kernels.program import Program
from lurking.runtime.checks import check_whole, is_positive
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.annealing.paths import compiled_program, inactive_evidence
from lurking.samplers.annealing.populations import checked_temperatures
from lurking.types import FloatArray, IntArray

SWEEPS = ("joint", "family")
STRENGTHS = {"joint": (100.0, 3.0), "family": (30.0, 1.0)}
"""(a₀, a₁) where none are given: near the best ln w for two hidden and four 5-level variables at n = 480."""
FLOOR = 0.1
"""ε, a tenth of a pseudo-count: at strength 100 it draws the mean of 5 states half a percent towards equal shares."""


class Estimate(NamedTuple):
    """A log evidence and its standard error, judged by how far chains differ; nan for a single chain."""

    value: float
    std_error: float


@dataclass(frozen=True, eq=False)
class TemperedChains:
    """Chains that stay at one temperature.

    Attributes
    ----------
    temperature : τ.
    log_likelihoods : (chains, draws) ln p(y|θ) after every sweep, inactive table rows at their expectation.
    """

    temperature: float
    log_likelihoods: FloatArray = field(repr=False)

    @property
    def estimate(self) -> Estimate:
        """The mean over all sweeps, and how far chains differ."""
        return _over_chains(self.log_likelihoods.mean(axis=1))


@dataclass(frozen=True, eq=False)
class ParameterChains:
    """Finished chains in parameter space.

    Attributes
    ----------
    temperatures : (K + 1,) from 0 to 1.
    log_weights : (G,) ln w with E[w] = p(y) for chains that started from the prior.
    increments : (G, K) (τ_k − τ_{k−1}) ln p(y|θ_{k−1}), active table rows only.
    log_likelihoods : (G, K) ln p(y|θ_k) after the steps at τ_1 … τ_K, active table rows only.
    acceptance : (G, 4) share of proposals accepted in each quarter of the steps; nan where a quarter has none.
    log_theta : (G, Q) ln θ_K over the active positions; with the weights a posterior sample.
    """

    temperatures: FloatArray = field(repr=False)
    log_weights: FloatArray
    increments: FloatArray = field(repr=False)
    log_likelihoods: FloatArray = field(repr=False)
    acceptance: FloatArray = field(repr=False)
    log_theta: FloatArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.log_weights)


class Track(NamedTuple):
    """What one chain leaves behind; `tally` (2, 4) counts proposals and acceptances by quarter.

    A chain that was stopped before its end is not whole, and its numbers mean nothing.
    """

    increments: FloatArray
    log_likelihoods: FloatArray
    tally: IntArray
    log_theta: FloatArray
    is_whole: bool = True


@dataclass(frozen=True, eq=False)
class Walk:
    """How chains move over the parameters of one problem.

    Attributes
    ----------
    problem : what the posterior is of.
    sweep : "joint" proposes all table rows at once, as the paper does; "family" one family after the other.
    strength : (a₀, a₁) of the proposal Dir(a θ_jl + ε), a = a₀ + a₁ n τ for steps at inverse temperature τ. The paper
        holds a fixed (a₁ = 0) and derives a ∝ n τ as the best choice (section 5). None takes `STRENGTHS` of the sweep.
    floor : ε > 0, which keeps proposals off the boundary.
    proposals : sweeps per temperature, C'_k of the paper; only the last point is weighed, so weights stay unbiased.
    """

    problem: Problem
    sweep: str = "joint"
    strength: tuple[float, float] | None = None
    floor: float = FLOOR
    proposals: int = 1

    def __post_init__(self) -> None:
        if self.sweep not in SWEEPS:
            raise UnknownNameError("sweep", self.sweep, SWEEPS)
        check_whole("proposals", self.proposals, 1)
        if not is_positive(self.floor):
            raise OptionError(f"floor is {self.floor!r}; it must be a finite number above 0, for example {FLOOR}")
        given = STRENGTHS[self.sweep] if self.strength is None else self.strength
        is_pair = isinstance(given, Sequence) and len(given) == 2
        if not (is_pair and is_positive(given[0]) and (is_positive(given[1]) or given[1] == 0)):
            raise OptionError(
                f"strength is {given!r}; it must be two finite numbers (a0, a1), a0 above 0 and a1 at least 0, "
                f"for example {STRENGTHS[self.sweep]}"
            )

    @cached_property
    def program(self) -> Program | None:
        """The compiled rows, None when nothing is unobserved; problems without compiled rows are refused."""
        return compiled_program(self.problem)

    @cached_property
    def pseudo(self) -> FloatArray:
        """(Q,) λ over the active positions."""
        return np.ascontiguousarray(self.problem.pseudo[self.problem.engine.active])

    @cached_property
    def blocks(self) -> IntArray:
        """(B + 1,) ranges of active table rows that are proposed together."""
        layout, active = self.problem.layout, self.problem.engine.active
        node_of_row = np.repeat(layout.owners, [layout.configurations[j] for j in layout.owners])
        nodes = node_of_row[np.unique(layout.row_of[active])]
        between = np.flatnonzero(np.diff(nodes)) + 1 if self.sweep == "family" else np.empty(0, np.int64)
        return np.concatenate([[0], between, [len(nodes)]]).astype(np.int64)

    def run(
        self,
        temperatures: FloatArray,
        seed: np.random.SeedSequence,
        start: FloatArray | None = None,
        stop: StopFlag | None = None,
    ) -> Track:
        """Return one chain along any temperatures τ_0 … τ_K, from ln θ = `start` (Q,) or from a draw of the prior.

        Once `stop` is set it ends where it is.
        """
        from lurking.kernels.cpu.chains.metropolis import anneal_parameters_into

        steps, program = len(temperatures) - 1, self.program
        track = Track(np.zeros(steps), np.zeros(steps), np.zeros((2, 4), np.int64), np.empty(len(self.pseudo)))
        if program is None:
            return track
        generator = np.random.Generator(np.random.PCG64(seed))
        if start is None:
            track.log_theta[:] = self.problem.layout.blocks.at(self.problem.engine.active).draw(self.pseudo, generator)
        else:
            track.log_theta[:] = start
        least, growth = self.strength or STRENGTHS[self.sweep]
        strengths = float(least) + float(growth) * self.problem.n * temperatures[1:]
        is_whole, _ = anneal_parameters_into(
            *(program, self.pseudo, self.blocks, (temperatures, strengths, float(self.floor)), int(self.proposals)),
            *(generator, (stop or StopFlag()).array, track.log_theta, track[:3]),
        )
        return track._replace(is_whole=is_whole)

    def run_all(
        self,
        temperatures: FloatArray,
        seeds: Sequence[np.random.SeedSequence],
        *,
        starts: FloatArray | None = None,
        workers: int | None = None,
        executor: Executor | None = None,
        stop: StopFlag | None = None,
    ) -> list[Track]:
        """Return one chain per seed; after an interrupt, when `stop` is given, those that had come to their end."""

        def one(place: int) -> Track:
            return self.run(temperatures, seeds[place], None if starts is None else starts[place], stop)

        # On a pool, even of one thread, a chain is ended in the middle; here it would first have to come to its end.
        made = map_in_order(
            one,
            range(len(seeds)),
            workers=workers,
            executor=executor,
            interruptible=stop is not None,
            stop=stop,
        )
        return [track for track in made if track.is_whole]


def schedule(steps: int, curvature: float = 0.2) -> FloatArray:
    """Return τ(k) = e (k/K) / (1 − k/K + e), k = 0 … K, with e = `curvature` (beal-ghahramani-2006, eq. 69), (K + 1,).

    Small e lingers near the prior; large e is linear.
    """
    check_whole("steps", steps, 1)
    if not is_positive(curvature):
        raise OptionError(f"curvature is {curvature!r}; it must be a finite number above 0, for example 0.2")
    share = np.arange(int(steps) + 1) / int(steps)
    return np.asarray(share * (curvature / (1.0 - share + curvature)))


def anneal_parameters(
    problem: Problem,
    temperatures: FloatArray,
    seeds: Sequence[np.random.SeedSequence],
    *,
    sweep: str = "joint",
    strength: tuple[float, float] | None = None,
    floor: float = FLOOR,
    proposals: int = 1,
    workers: int | None = None,
    executor: Executor | None = None,
    stop: StopFlag | None = None,
    starts: FloatArray | None = None,
) -> ParameterChains:
    """Run one chain per seed; ln w = Σ_k (τ_k − τ_{k−1}) ln p(y|θ_{k−1}), θ_0 from the prior (algorithm 3.1, mended).

    Options of the moves are described at `Walk`. `starts` (Q,) or (G, Q) is ln θ over the active positions to start
    from instead; the weights are then *not* unbiased: on a coarse schedule chains that start where the data came from
    overestimate the evidence, and meet chains from the prior when both are given enough steps (figure 6a). After an
    interrupt, when `stop` is given, the chains finished are returned.
    """
    walk = Walk(problem, sweep, strength, floor, proposals)
    taus = checked_temperatures(temperatures)
    size, steps = len(walk.pseudo), len(taus) - 1
    points = None if starts is None else checked_starts(walk, starts, len(seeds))
    done = walk.run_all(taus, seeds, starts=points, workers=workers, executor=executor, stop=stop)
    increments = np.asarray([track.increments for track in done]).reshape(-1, steps)
    tally = np.asarray([track.tally for track in done]).reshape(-1, 2, 4)
    acceptance = np.full((len(done), 4), math.nan)
    np.divide(tally[:, 1], tally[:, 0], out=acceptance, where=tally[:, 0] > 0)
    return ParameterChains(
        taus,
        increments.sum(axis=1) + inactive_evidence(problem),
        increments,
        np.asarray([track.log_likelihoods for track in done]).reshape(-1, steps),
        acceptance,
        np.asarray([track.log_theta for track in done]).reshape(len(done), size),
    )


def checked_starts(walk: Walk, starts: FloatArray, count: int) -> FloatArray:
    """Return ln θ to start from, (G, Q), refusing what is no positive distribution in every table row."""
    points, size = np.asarray(starts, np.float64), len(walk.pseudo)
    if points.shape not in ((size,), (count, size)):
        raise OptionError(
            f"starts has shape {points.shape}; it must hold ln θ of the {size} active positions, ({size},) or "
            f"({count}, {size}), as in np.log(theta)[problem.engine.active]"
        )
    points = np.broadcast_to(points, (count, size))
    if walk.program is None:
        return points
    if not (np.all(points <= 0.0) and np.all(np.isfinite(points))):
        raise OptionError("starts has a value above 0 or not finite; it must hold logarithms of positive probabilities")
    sums = np.add.reduceat(np.exp(points), walk.program.row_start[:-1], axis=1)
    if not np.allclose(sums, 1.0, rtol=0.0, atol=1e-9):
        worst = float(sums.flat[np.abs(sums - 1.0).argmax()])
        raise OptionError(f"starts has a table row that sums to {worst:.9g}; every row must sum to 1, normalise them")
    return points


def _inactive_expectation(problem: Problem, temperature: float) -> float:
    """Return E[Σ N ln θ] of the same rows under their tempered posterior Dir(λ + τ N)."""
    engine = problem.engine
    if not engine.inactive.size:
        return 0.0
    rows, counts = engine.layout.blocks.at(engine.inactive), engine.complete_counts[engine.inactive]
    logs = rows.expected(problem.pseudo[engine.inactive] + temperature * counts)
    return float(counts @ logs)


def _over_chains(values: FloatArray) -> Estimate:
    """Return the mean over chains and its standard error."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Estimate(float(values.mean()), spread / math.sqrt(len(values)))


def thermodynamic(chains: ParameterChains) -> Estimate:
    """Return ∫₀¹ E_τ[ln p(y|θ)] dτ = ln p(y) by the trapezoid rule, E_τ taken over the chains as they passed τ.

    Inactive table rows are exact. The mean of ln w is the rule that takes each interval's left end, where E_τ is
    smaller, and stays below ln p(y); this one lacks that bias but not that of chains which lag behind the temperature.
    """
    right = chains.log_likelihoods @ np.diff(chains.temperatures)
    return _over_chains(chains.log_weights + 0.5 * (right - chains.increments.sum(axis=1)))


def wbic(
    problem: Problem,
    *,
    chains: int = 8,
    draws: int = 2000,
    burn_in: int = 1000,
    sweep: str = "family",
    strength: tuple[float, float] | None = None,
    floor: float = FLOOR,
    seed: Seed = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    stop: StopFlag | None = None,
) -> TemperedChains:
    """Draw ln p(y|θ) from the tempered posterior at τ = 1/ln n, where its mean approximates ln p(y) (Watanabe 2013).

    The sign is that of a log evidence; Watanabe's WBIC is its negative. Each chain goes from the prior to τ in
    `burn_in` temperatures and stays there for `draws` sweeps; inactive table rows have their expectation in closed
    form. After an interrupt, when `stop` is given, the chains finished are returned.
    """
    for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("burn_in", burn_in, 1)):
        check_whole(name, value, least)
    if problem.n < math.e:
        raise UndefinedScore(f"wbic needs n ≥ 3 rows, as its temperature is 1/ln n; these data have n = {problem.n:g}")
    walk = Walk(problem, sweep, strength, floor)
    temperature = 1.0 / math.log(problem.n)
    taus = temperature * np.minimum(np.arange(burn_in + draws + 1) / burn_in, 1.0)
    seeds = seed_sequence(seed).spawn(int(chains))
    done = walk.run_all(taus, seeds, workers=workers, executor=executor, stop=stop)
    values = np.asarray([track.log_likelihoods[burn_in:] for track in done]).reshape(len(done), int(draws))
    return TemperedChains(temperature, values + _inactive_expectation(problem, temperature))
