"""Evidence by annealing from flattened modes: settling, pilot, two settings that must agree, honest errors.

The modes are variational ones, moved by a short Gibbs run to the moments of the posterior around them (`settled`).

A *replicate* is one population per mode; its estimate Σ_m w_m · S ρ_m is unbiased for p(y) (see `Sharing`). In a pilot
the flattenings c are compared by the mean of ln p̂, which is below ln p(y) by Jensen's inequality and the nearer the
better at equal cost. A flattening too near 1 misses parts of the posterior without a sign in its own weights, one that
is too small shows it by their spread: so the smallest one that does about as well as the best is taken, and the next
larger one beside it. Both are run with temperatures spaced by the pilot. Steps are doubled until the two agree and the
weights have no heavy tail, and replicates are added until the standard error is reached or the budget spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.rng import seed_sequence
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealing.modes import Mode, variational_modes
from lurking.samplers.annealing.paths import ProductPath, flattened_path
from lurking.samplers.annealing.populations import Populations, anneal, spaced_by_spread
from lurking.samplers.annealing.settling import passes_of, settled, thinning
from lurking.samplers.diagnostics import effective_sample_size, log_mean, pareto_k, relative_error, widening
from lurking.types import FloatArray

FLATTENINGS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
ABOUT_AS_WELL = 2.0
"""Nats by which the mean ln p̂ of a flattening may lie below the best one in the pilot."""
POWERS = (0.0, 0.1, 0.25, 1.0)
PILOT_STEPS, PILOT_PARTICLES, PILOT_REPLICATES = 48, 8, 3
SETTLING = 0.1
"""Share of the budget that settling may take, as far as it can do with less than it likes."""
LEAST_STEPS = 4
REPLICATES = 4
"""Replicates of each setting in a round."""
MOST_SPREAD = 0.6
"""Standard deviation of ln p̂ over replicates up to which their mean is trusted."""
MOST_PARETO = 0.7
LEAST_ERROR = 1e-3
"""Added to every standard error: replicates that agree to all digits have seen no more than one another."""


@dataclass(frozen=True)
class AnnealOptions:
    """How far annealing goes.

    target : standard error to reach, in nats.
    budget : particle steps at most, but for the few that every run takes; each is one pass over the unique rows.
    particles : particles of a replicate, shared among the modes.
    steps : temperatures K of the first round; doubled where it does not suffice.
    threshold : effective share of the weights below which a population is resampled; 0 for independent chains.
    modes : variational modes to start from, at most.
    """

    target: float = 0.2
    budget: int = 1 << 19
    particles: int = 32
    steps: int = 256
    threshold: float = 0.5
    modes: int = 3


@dataclass(frozen=True, eq=False)
class Setting:
    """One flattening with its paths (one per mode), temperatures and power of the alias factor."""

    flattening: float
    paths: list[ProductPath] = field(repr=False)
    sharing: Sharing = field(repr=False)
    temperatures: FloatArray = field(repr=False)
    power: float


@dataclass(frozen=True, eq=False)
class Replicates:
    """Finished replicates of one setting: ln p̂ of each, ln weights of all particles, share that switched labels."""

    estimates: FloatArray
    log_weights: FloatArray = field(repr=False)
    switched: float

    def __add__(self, other: Replicates) -> Replicates:
        total = len(self.estimates) + len(other.estimates)
        switched = (len(self.estimates) * self.switched + len(other.estimates) * other.switched) / max(total, 1)
        return Replicates(
            np.concatenate([self.estimates, other.estimates]),
            np.concatenate([self.log_weights, other.log_weights]),
            switched,
        )


@dataclass(frozen=True, eq=False)
class Annealed:
    """ln p(y) by annealing, its standard error and what speaks for or against it."""

    log_z: float
    std_error: float
    status: Status
    steps: int
    settings: tuple[tuple[float, float, float], ...]
    """For both settings (c, ln p̂, standard error)."""
    estimates: FloatArray = field(repr=False)
    """(replicates,) ln p̂ of every replicate behind the value."""
    pareto_k: float
    effective_share: float
    spread: float
    """Standard deviation of ln p̂ over replicates."""
    switched: float
    n_modes: int
    log_missing: float
    """Up to so much is left out because there are more relabelings than can be shared out."""
    spent: int
    """Particle steps."""


def annealed_evidence(problem: Problem, fit_options: FitOptions, options: AnnealOptions) -> Annealed:
    """Estimate ln p(y|m) of a problem in which something is unobserved.

    `fit_options` are those of the VB fits behind it; its seed, workers, executor, stop and progress serve both. What a
    smaller budget or a looser target has left on the same problem is gone on from: the value is the same as anew.
    """
    run = problem.remember(_key(fit_options, options), lambda: _Run(problem, fit_options, options))
    if not run.goes_on(fit_options, options):
        run = _Run(problem, fit_options, options)
    fit_options.progress.begin("annealing", options.budget)
    try:
        return run.evidence()
    finally:
        fit_options.progress.end()


def _key(fit_options: FitOptions, options: AnnealOptions) -> tuple[object, ...]:
    """Return what tells two runs apart before their first round, but for its number of steps."""
    thin = tuple(thinning(options.budget * SETTLING / count) for count in range(1, options.modes + 1))
    plan = (options.particles, options.steps, options.threshold, options.modes, thin, _pilot_steps(options.budget))
    return ("annealing", fit_options.key, *plan)


def _pilot_steps(budget: int) -> int:
    """Return the number of steps of the pilot."""
    least = len(FLATTENINGS) * PILOT_REPLICATES * PILOT_PARTICLES
    return max(LEAST_STEPS, min(PILOT_STEPS, budget // (3 * least)))


class _Run:
    """One estimate in the making."""

    def __init__(self, problem: Problem, fit_options: FitOptions, options: AnnealOptions) -> None:
        self.problem, self.options, self.running = problem, options, fit_options
        self.seeds = seed_sequence(fit_options.seed)
        modes = variational_modes(problem, fit_options, options.modes)
        thin = thinning(options.budget * SETTLING / len(modes))
        self.modes: list[Mode] = settled(problem, modes, thin, self.seeds.spawn(len(modes)), fit_options.stop)
        self.spent = len(modes) * passes_of(thin)
        self.spent_first = 0  # when the first round begins
        self.settings: list[Setting] = []
        self.results: list[Replicates] = []
        self.steps = 0
        self.is_cut = False

    def goes_on(self, fit_options: FitOptions, options: AnnealOptions) -> bool:
        """Take limits that reach as far at least; return False if they would not have led to the run so far."""
        first, had = self.first_steps(options.budget), self.first_steps(self.options.budget)
        is_further = options.budget >= self.options.budget and options.target <= self.options.target
        if self.is_cut or not is_further or (self.settings and first != had):
            return False
        self.running, self.options = fit_options, options
        return True

    def first_steps(self, budget: int) -> int:
        """Return the number of steps of the first round."""
        left = (budget - self.spent_first) // (2 * REPLICATES * self.options.particles)
        return max(LEAST_STEPS, min(self.options.steps, left))

    def evidence(self) -> Annealed:
        """Pilot, then rounds."""
        self.is_cut = True  # until a value is there
        if not self.settings:
            settings = self.pilot()
            self.spent_first = self.spent
            self.steps = self.first_steps(self.options.budget)
            self.add_round(settings)
            self.settings = settings
        while True:
            found = self.summary(self.settings, self.results, self.steps)
            self.is_cut = found.status is Status.INTERRUPTED
            if found.status in (Status.SAMPLED, Status.INTERRUPTED):
                return found
            is_doubtful = found.status is Status.UNTRUSTED
            steps = 2 * self.steps if is_doubtful else self.steps
            if self.spent + 2 * REPLICATES * self.options.particles * steps > self.options.budget:
                return found
            self.is_cut, self.steps, self.results = True, steps, [] if is_doubtful else self.results
            self.add_round(self.settings)

    def add_round(self, settings: Sequence[Setting]) -> None:
        """Run replicates of both settings beside those that are there."""
        fresh = [self.replicates(setting, self.steps, REPLICATES) for setting in settings]
        had = self.results
        self.results = [old + new for old, new in zip(had, fresh, strict=True)] if had else fresh

    def pilot(self) -> list[Setting]:
        """Return the smallest flattening that does about as well as the best in short runs, and the next larger one."""
        even = np.linspace(0.0, 1.0, _pilot_steps(self.options.budget) + 1)
        tried: list[tuple[float, Setting]] = []
        for flattening in FLATTENINGS:
            paths = [flattened_path(self.problem, mode.counts, mode.potentials, flattening) for mode in self.modes]
            sharing = Sharing(self.problem, [path.alpha for path in paths])
            populations = [
                self.anneal(path, even, PILOT_REPLICATES, max(4, PILOT_PARTICLES // len(paths))) for path in paths
            ]
            if any(not len(own) for own in populations):
                raise KeyboardInterrupt
            values = {power: _estimates(sharing, populations, power).mean() for power in POWERS}
            power = max(values, key=lambda one: (values[one], one))
            widest = max(populations, key=lambda own: float(own.variances.sum()))
            schedule = spaced_by_spread(widest, self.options.steps)
            tried.append((values[power], Setting(flattening, paths, sharing, schedule, power)))
        best = max(value for value, _ in tried)
        smallest = next(k for k, (value, _) in enumerate(tried) if value >= best - ABOUT_AS_WELL)
        first = min(smallest, len(tried) - 2)
        return [setting for _, setting in tried[first : first + 2]]

    def replicates(self, setting: Setting, steps: int, count: int) -> Replicates:
        """Run replicates of one setting with the given number of steps."""
        places = np.linspace(0.0, 1.0, steps + 1)
        known = np.linspace(0.0, 1.0, len(setting.temperatures))
        temperatures = np.interp(places, known, setting.temperatures)
        particles = max(2, self.options.particles // len(setting.paths))
        populations = [self.anneal(path, temperatures, count, particles) for path in setting.paths]
        finished = min(len(own) for own in populations)
        populations = [own.first(finished) for own in populations]
        shares = _shares(setting.sharing, populations, setting.power)
        weights = [
            own.log_weights + own.log_resampled[:, None] + share for own, share in zip(populations, shares, strict=True)
        ]
        ends = [own.log_theta.reshape(-1, own.log_theta.shape[-1]) for own in populations]
        switched = [setting.sharing.switched(mode, points) for mode, points in enumerate(ends)]
        return Replicates(
            _estimates(setting.sharing, populations, setting.power),
            np.concatenate([own.ravel() for own in weights]),
            float(np.mean(switched)),
        )

    def anneal(self, path: ProductPath, temperatures: FloatArray, count: int, particles: int) -> Populations:
        """Anneal `count` populations, and book their steps."""
        result = anneal(
            path,
            temperatures,
            self.seeds.spawn(count),
            particles=particles,
            threshold=self.options.threshold,
            workers=self.running.workers,
            executor=self.running.executor,
            stop=self.running.stop,
        )
        self.spent += count * particles * (len(temperatures) - 1)
        self.running.progress.update(min(self.spent, self.options.budget))
        return result

    def summary(self, settings: Sequence[Setting], results: Sequence[Replicates], steps: int) -> Annealed:
        """Pool both settings and say whether the value can be trusted."""
        if not all(len(result.estimates) for result in results):
            raise KeyboardInterrupt
        estimates = np.concatenate([result.estimates for result in results])
        log_weights = np.concatenate([result.log_weights for result in results])
        values = [log_mean(result.estimates) for result in results]
        errors = [relative_error(result.estimates) for result in results]
        spread = max(
            float(result.estimates.std(ddof=1)) if len(result.estimates) > 1 else math.inf for result in results
        )
        shape = pareto_k(log_weights)
        difference = abs(values[0] - values[1])
        # What the settings disagree by is an error too.
        widened = widening(len(estimates))
        error = LEAST_ERROR + max(
            widened * max(relative_error(estimates), max(errors) / math.sqrt(2.0)), 0.5 * difference
        )
        agree = difference <= 2.5 * math.hypot(*errors) + LEAST_ERROR
        is_whole = settings[0].sharing.log_missing <= self.options.target
        if self.running.stop.is_set:
            status = Status.INTERRUPTED
        elif not (agree and is_whole and spread <= MOST_SPREAD and shape < MOST_PARETO):
            status = Status.UNTRUSTED
        else:
            status = Status.SAMPLED if error <= self.options.target else Status.BUDGET
        return Annealed(
            log_z=log_mean(estimates),
            std_error=error,
            status=status,
            steps=steps,
            settings=tuple(
                (setting.flattening, value, own) for setting, value, own in zip(settings, values, errors, strict=True)
            ),
            estimates=estimates,
            pareto_k=shape,
            effective_share=effective_sample_size(log_weights) / len(log_weights),
            spread=spread,
            switched=float(np.mean([result.switched for result in results])),
            n_modes=len(self.modes),
            log_missing=settings[0].sharing.log_missing,
            spent=self.spent,
        )


def _shares(sharing: Sharing, populations: Sequence[Populations], power: float) -> list[FloatArray]:
    """Return ln S·ρ_m of the ends of each mode's populations, (G, N) each."""
    return [
        sharing.log_share(mode, own.log_theta.reshape(-1, own.log_theta.shape[-1]), power).reshape(
            own.log_weights.shape
        )
        for mode, own in enumerate(populations)
    ]


def _estimates(sharing: Sharing, populations: Sequence[Populations], power: float) -> FloatArray:
    """Return ln Σ_m p̂_m of each replicate, (G,)."""
    shares = _shares(sharing, populations, power)
    parts = [own.estimates(share) for own, share in zip(populations, shares, strict=True)]
    return np.asarray(np.logaddexp.reduce(parts, axis=0))
