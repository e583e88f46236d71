"""The posterior density of one point, averaged over Gibbs sweeps (Chib 1995) and over its relabelings (Neal 1999).

p(θ*|y) = E_s[Π_jl Dir(θ*_jl; λ + N(s))], the mean over completions s drawn from the posterior. By symmetry πθ* has the
same density for every relabeling π, so the mean over π of Π Dir(πθ*; λ + N(s)) has the same expectation: right for
chains that visit all S equivalent modes, for chains that stay in one of them, and for all between.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

from lurking.errors import OptionError
from lurking.inference.problem import Problem
from lurking.kernels.reference.special import dirichlet_evidence
from lurking.runtime.checks import check_whole
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.aliases import relabelings
from lurking.samplers.annealing.paths import sampled_program
from lurking.samplers.diagnostics import effective_sample_size, log_mean
from lurking.types import FloatArray, IntArray

LEAST_CHAINS = 4
"""Fewer chains tell too little about how far chains differ."""
LEAST_DRAWS = 20
BATCHES = 20
"""Stretches of a chain whose means tell its own error."""
CHUNK = 1 << 22
"""Densities (sweeps × relabelings) held at once."""
MOST_DISAGREEMENT = 3.0
LEAST_EFFECTIVE = 0.1
LEAST_CARRIERS = 5


@dataclass(frozen=True, eq=False)
class CandidateDensity:
    """ln p(θ*|y) by Gibbs chains.

    Densities of the posterior are relative to that of the prior, p(θ*|y) / p(θ*) = p(y|θ*) / p(y): with large
    pseudo-counts both are huge, and their ratio is not.

    Attributes
    ----------
    chain_means : (chains,) ln of the mean density over the sweeps of each chain, inactive table rows included.
    log_densities : (chains, draws) ln of the density that each sweep gives to θ*, averaged over relabelings.
    nearest : (chains, draws) the relabeling of θ* that each sweep suits best; 0 is θ* itself.
    n_relabelings : relabelings averaged over.
    log_missing : ln S where the relabelings are too many to list and only θ* itself was taken, else 0.
    log_prior : ln p(θ*), the density of the prior over probabilities.
    """

    chain_means: FloatArray
    log_densities: FloatArray = field(repr=False)
    nearest: IntArray = field(repr=False)
    n_relabelings: int
    log_missing: float
    log_prior: float = 0.0

    @property
    def log_ratio(self) -> float:
        """Ln p(θ*|y) − ln p(θ*), of the mean density over all sweeps."""
        return log_mean(self.chain_means)

    @property
    def log_density(self) -> float:
        """Ln p(θ*|y)."""
        return self.log_prior + self.log_ratio

    @property
    def spread(self) -> float:
        """Standard deviation over chains of (mean density of a chain) / (mean density); inf for a single chain."""
        if len(self.chain_means) < 2:
            return math.inf
        return float(np.exp(self.chain_means - self.log_ratio).std(ddof=1))

    @property
    def own_error(self) -> float:
        """Root mean square over chains of a chain's own relative error, judged by the means of its batches."""
        length = self.log_densities.shape[1] // BATCHES
        shares = np.exp(self.log_densities[:, : length * BATCHES] - self.log_ratio)
        batches = shares.reshape(len(shares), BATCHES, length).mean(axis=2)
        return float(np.sqrt((batches.var(axis=1, ddof=1) / BATCHES).mean()))

    @property
    def std_error(self) -> float:
        """Standard error of `log_density`: spread / √chains, or what chains tell of themselves if that is more."""
        return max(self.spread, self.own_error) / math.sqrt(len(self.chain_means))

    @property
    def effective_share(self) -> float:
        """(Σ d)² / Σ d² of the densities d of all sweeps, over their number."""
        return effective_sample_size(self.log_densities.ravel()) / self.log_densities.size

    @property
    def carriers(self) -> int:
        """How few sweeps make up half of the mean."""
        ordered = np.sort(np.exp(self.log_densities - self.log_densities.max()), axis=None)[::-1]
        return int(np.searchsorted(np.cumsum(ordered), 0.5 * ordered.sum())) + 1

    @property
    def near(self) -> dict[int, float]:
        """{relabeling: share of sweeps that suit it best}."""
        found, times = np.unique(self.nearest, return_counts=True)
        return {int(place): float(count) / self.nearest.size for place, count in zip(found, times, strict=True)}

    @property
    def switched(self) -> float:
        """Share of consecutive sweeps that suit different relabelings best."""
        return float((self.nearest[:, 1:] != self.nearest[:, :-1]).mean())

    @property
    def is_trusted(self) -> bool:
        """Whether chains agree within their own errors and the mean rests on enough sweeps."""
        agree = self.spread <= MOST_DISAGREEMENT * self.own_error + 1e-12
        return agree and self.effective_share >= LEAST_EFFECTIVE and self.carriers >= LEAST_CARRIERS


def candidate_density(
    problem: Problem,
    log_theta: FloatArray,
    *,
    chains: int = 8,
    draws: int = 2000,
    burn_in: int = 500,
    average: bool = True,
    starts: FloatArray | None = None,
    seed: Seed = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    stop: StopFlag | None = None,
) -> CandidateDensity:
    """Estimate ln p(θ*|y) at ln θ* = `log_theta` (P,) by chains that start at θ*, or at ln θ = `starts` (P,).

    `average=False` leaves out the relabelings. Each chain has its own random stream: results do not depend on the
    number of workers. After an interrupt, when `stop` is given, the chains finished are returned.
    """
    from lurking.kernels.cpu.chains.gibbs import counts_into

    check_whole("chains", chains, LEAST_CHAINS)
    check_whole("draws", draws, LEAST_DRAWS)
    check_whole("burn_in", burn_in, 0)
    program, active = sampled_program(problem), problem.engine.active
    point = _checked(problem, "log_theta", log_theta)
    begin = (point if starts is None else _checked(problem, "starts", starts))[active]
    density = _SweepDensity(problem, point, average)
    flag = stop or StopFlag()

    def one(child: np.random.SeedSequence) -> tuple[FloatArray, IntArray] | None:
        generator = np.random.Generator(np.random.PCG64(child))
        counts = np.empty((int(draws), len(active)))
        kept = counts_into(program, density.pseudo, begin.copy(), int(burn_in), generator, flag.array, counts)
        return density.of_counts(counts) if kept == len(counts) else None

    seeds = seed_sequence(seed).spawn(int(chains))
    made = map_in_order(one, seeds, workers=workers, executor=executor, interruptible=stop is not None, stop=stop)
    done = [ends for ends in made if ends is not None]
    values = np.asarray([own for own, _ in done]).reshape(len(done), int(draws))
    nearest = np.asarray([places for _, places in done], np.int64).reshape(len(done), int(draws))
    means = np.asarray([log_mean(own) for own in values])
    log_prior = problem.layout.blocks.log_density(problem.pseudo, point)
    return CandidateDensity(means, values, nearest, len(density.moved), density.log_missing, log_prior)


def _checked(problem: Problem, name: str, log_theta: FloatArray) -> FloatArray:
    """Return ln θ (P,), refusing what is no positive distribution in every table row."""
    flat, layout = np.asarray(log_theta, np.float64), problem.layout
    if flat.shape != (layout.size,):
        raise OptionError(f"{name} has shape {flat.shape}; it must hold ln θ of all {layout.size} positions")
    if not (np.all(np.isfinite(flat)) and np.allclose(layout.row_sums(np.exp(flat)), 1.0, rtol=0.0, atol=1e-6)):
        raise OptionError(f"{name} must hold logarithms of positive probabilities that sum to 1 in every table row")
    return flat


class _SweepDensity:
    """The density of θ* given the counts of a sweep, averaged over the relabelings of θ*."""

    def __init__(self, problem: Problem, log_theta: FloatArray, average: bool) -> None:
        engine, layout = problem.engine, problem.layout
        active, inactive = engine.active, engine.inactive
        self.pseudo = np.ascontiguousarray(problem.pseudo[active])
        self.row_start = layout.blocks.at(active).row_start
        self.totals = np.add.reduceat(self.pseudo, self.row_start[:-1])
        permutations = relabelings(layout, problem.pseudo) if average else np.arange(layout.size)[None, :]
        self.log_missing = problem.log_aliases if permutations is None else 0.0
        if permutations is None:
            permutations = np.arange(layout.size)[None, :]
        # (S, Q) ln πθ*; relabelings keep to the active positions, as whatever involves a hidden state that occurs is.
        self.moved: FloatArray = log_theta[permutations[:, active]]
        self.constant = 0.0
        if inactive.size:
            # Table rows that nothing unobserved touches have a posterior in closed form.
            counts = engine.complete_counts[inactive]
            self.constant = float(counts @ log_theta[inactive])
            self.constant -= layout.blocks.at(inactive).log_evidence(problem.pseudo[inactive], counts)

    def of_counts(self, counts: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return ln mean_π Π Dir(πθ*; λ + N) / Dir(πθ*; λ) and the best π for each row of `counts` (kept, Q).

        The ratio of the densities is Π θ*^N / D(λ, N), and πθ* has the prior density of θ*.
        """
        values, nearest = np.empty(len(counts)), np.empty(len(counts), np.int64)
        step = max(1, CHUNK // max(len(self.moved), counts.shape[1]))
        for begin in range(0, len(counts), step):
            some = counts[begin : begin + step]
            totals = np.add.reduceat(some, self.row_start[:-1], axis=1)
            completed = dirichlet_evidence(self.pseudo, some, self.totals, totals)
            scores = some @ self.moved.T
            values[begin : begin + step] = logsumexp(scores, axis=1) - completed
            nearest[begin : begin + step] = scores.argmax(axis=1)
        return values - math.log(len(self.moved)) + self.constant, nearest
