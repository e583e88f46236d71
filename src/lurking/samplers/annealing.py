"""Annealed importance sampling along a path: many independent chains, each with an unbiased weight."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lurking.errors import OptionError
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.samplers.paths import ProductPath
from lurking.types import FloatArray


@dataclass(frozen=True, eq=False)
class Chains:
    """Finished chains of one path.

    Attributes
    ----------
    path : the path.
    temperatures : (K + 1,) from 0 to 1.
    log_weights : (G,) ln w with E[w] = p(y).
    increments : (G, K) contribution of each temperature, without constants.
    log_theta : (G, Q) a point of each chain's end, over the active positions; with the weights a posterior sample.
    counts : (G, Q) counts of the last completion of each chain.
    """

    path: ProductPath = field(repr=False)
    temperatures: FloatArray = field(repr=False)
    log_weights: FloatArray
    increments: FloatArray = field(repr=False)
    log_theta: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.log_weights)


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
    seeds: list[np.random.SeedSequence],
    *,
    workers: int | None = None,
    stop: StopFlag | None = None,
) -> Chains:
    """Run one chain per seed; after an interrupt, when `stop` is given, those finished are returned."""
    from lurking.kernels.cpu.annealing import anneal_into

    program, schedule = path.program, checked_temperatures(temperatures)
    steps, size = len(schedule) - 1, len(path.alpha)

    def one(seed: np.random.SeedSequence) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        increments, log_theta, counts = np.empty(steps), np.empty(size), np.empty(size)
        generator = np.random.Generator(np.random.PCG64(seed))
        start = (path.alpha, path.potentials)
        total = anneal_into(program, path.pseudo, start, schedule, generator, increments, (log_theta, counts))
        return float(total), increments, log_theta, counts

    done = map_in_order(one, seeds, workers=workers, stop=stop)
    return Chains(
        path,
        schedule,
        np.asarray([total for total, _, _, _ in done]) + path.constant,
        np.asarray([increments for _, increments, _, _ in done]).reshape(-1, steps),
        np.asarray([log_theta for _, _, log_theta, _ in done]).reshape(-1, size),
        np.asarray([counts for _, _, _, counts in done]).reshape(-1, size),
    )


def spaced_by_spread(chains: Chains, steps: int) -> FloatArray:
    """Return a schedule of `steps` steps whose increments have equal spread, judged by pilot chains.

    The standard deviation over chains of d ln f/dτ is the local speed at which the path changes; temperatures are dense
    where it is large. A tenth of the mean is added everywhere, so that no stretch is left without a temperature.
    """
    width = np.maximum(np.diff(chains.temperatures), 1e-300)
    speed = chains.increments.std(axis=0) / width
    speed = speed + 0.1 * speed.mean() + 1e-300
    length = np.concatenate([[0.0], np.cumsum(speed * width)])
    schedule = np.interp(np.linspace(0.0, length[-1], steps + 1), length, chains.temperatures)
    schedule[0], schedule[-1] = 0.0, 1.0
    return schedule
