"""Annealing along a path: independent chains or populations, each with an unbiased estimate of the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from lurking.errors import OptionError
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.samplers.annealing.paths import ProductPath
from lurking.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Populations:
    """Finished populations of one path: G of N particles each; particles that were never resampled are chains.

    Attributes
    ----------
    path : the path.
    temperatures : (K + 1,) from 0 to 1.
    log_resampled : (G,) constants of the path, and ln of the mean weights at which a population was resampled.
    log_weights : (G, N) ln weight of each particle since then; for every population the mean over its particles of
        w · exp(log_resampled) has the mean p(y).
    means, variances : (G, K) of the ln weight increments of each step, over the particles.
    log_theta : (G, N, Q) each particle's end, over the active positions; with the weights a posterior sample.
    counts : (G, N, Q) counts of the last completion of each particle.
    lineage : (G, N) the particle at the start from which each one descends.
    """

    path: ProductPath = field(repr=False)
    temperatures: FloatArray = field(repr=False)
    log_resampled: FloatArray = field(repr=False)
    log_weights: FloatArray = field(repr=False)
    means: FloatArray = field(repr=False)
    variances: FloatArray = field(repr=False)
    log_theta: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)
    lineage: IntArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.log_resampled)

    def estimates(self, log_share: FloatArray | float = 0.0) -> FloatArray:
        """Return ln of each population's unbiased estimate of p(y), (G,); `log_share` (G, N) is ln S·ρ of the ends."""
        shared = self.log_weights + log_share
        return np.asarray(self.log_resampled + logsumexp(shared, axis=1) - math.log(shared.shape[1]))

    def first(self, count: int) -> Populations:
        """Return the first populations only."""
        arrays = ("log_resampled", "log_weights", "means", "variances", "log_theta", "counts", "lineage")
        return replace(self, **{name: getattr(self, name)[:count] for name in arrays})

    @property
    def n_lineages(self) -> IntArray:
        """(G,) how many particles of the start have descendants at the end."""
        return np.asarray([len(np.unique(own)) for own in self.lineage], np.int64)


def checked_temperatures(temperatures: FloatArray) -> FloatArray:
    """Return a schedule that goes from 0 to 1 without turning back; refuse any other."""
    schedule = np.ascontiguousarray(temperatures, np.float64)
    if schedule.ndim != 1 or len(schedule) < 2 or schedule[0] != 0.0 or schedule[-1] != 1.0:
        raise OptionError("a schedule of temperatures must be a list that begins with 0 and ends with 1")
    if not np.all(np.diff(schedule) >= 0.0):
        raise OptionError("a schedule of temperatures must not turn back")
    return schedule


def anneal(
    path: ProductPath,
    temperatures: FloatArray,
    seeds: Sequence[np.random.SeedSequence],
    *,
    particles: int = 1,
    threshold: float = 0.0,
    workers: int | None = None,
    executor: Executor | None = None,
    stop: StopFlag | None = None,
    done: Callable[[int], None] = lambda _count: None,
) -> Populations:
    """Anneal one population per seed, resampling when its effective share falls below `threshold`.

    One particle, or `threshold` 0, is annealed importance sampling (Neal 2001); otherwise it is a sequential Monte
    Carlo sampler (Del Moral, Doucet & Jasra 2006) on the same path. After an interrupt, when `stop` is given, the
    populations finished by then are returned.
    """
    from lurking.kernels.cpu.chains.annealing import anneal_into

    program, schedule = path.program, checked_temperatures(temperatures)
    steps, size, flag = len(schedule) - 1, len(path.alpha), stop or StopFlag()

    def one(seed: np.random.SeedSequence) -> _Ends | None:
        generator = np.random.Generator(np.random.PCG64(seed))
        means, squares = np.empty(steps), np.empty(steps)
        shape = (particles, size)
        out = (np.empty(particles), np.empty(shape), np.empty(shape), np.empty(particles, np.int64))
        start = (path.alpha, path.potentials)
        whole, log_resampled, _ = anneal_into(
            program, path.pseudo, start, schedule, threshold, generator, flag.array, means, squares, out
        )
        return (float(log_resampled), means, squares - means * means, *out) if whole else None

    made = map_in_order(one, seeds, workers=workers, executor=executor, stop=stop, done=done)
    ends = [end for end in made if end is not None]
    shapes = ((), (steps,), (steps,), (particles,), (particles, size), (particles, size), (particles,))
    parts = [np.asarray([end[k] for end in ends]).reshape(len(ends), *shape) for k, shape in enumerate(shapes)]
    log_resampled, means, variances, log_weights, log_theta, counts, lineage = parts
    return Populations(
        *(path, schedule, log_resampled + path.constant, log_weights, means, np.maximum(variances, 0.0)),
        *(log_theta, counts, lineage.astype(np.int64)),
    )


_Ends = tuple[float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, IntArray]


def spaced_by_spread(populations: Populations, steps: int) -> FloatArray:
    """Return a schedule of `steps` steps whose increments have equal spread, judged by pilot populations.

    The standard deviation of d ln f/dτ, over particles and over populations, is the local speed at which the path
    changes; temperatures are dense where it is large. A tenth of the mean is added everywhere, so that no stretch is
    left without a temperature.
    """
    width = np.maximum(np.diff(populations.temperatures), 1e-300)
    variance = populations.variances.mean(axis=0) + populations.means.var(axis=0)
    speed = np.sqrt(variance) / width
    speed = speed + 0.1 * speed.mean() + 1e-300
    length = np.concatenate([[0.0], np.cumsum(speed * width)])
    schedule = np.interp(np.linspace(0.0, length[-1], steps + 1), length, populations.temperatures)
    schedule[0], schedule[-1] = 0.0, 1.0
    return np.asarray(schedule)
