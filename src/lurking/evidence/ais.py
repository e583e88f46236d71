"""Evidence by annealing: chains or populations that go from a distribution known exactly to the posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lurking.errors import OptionError, UnknownNameError
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.closed_form import closed_form
from lurking.inference.problem import Problem
from lurking.learn.fit import FitOptions
from lurking.learn.loop import Status
from lurking.runtime.rng import seed_sequence
from lurking.samplers.annealed import MOST_PARETO, Annealed, AnnealOptions, annealed_evidence
from lurking.samplers.annealing import anneal, checked_temperatures
from lurking.samplers.collapsed import anneal_completions
from lurking.samplers.diagnostics import effective_sample_size, log_mean, pareto_k, relative_error
from lurking.samplers.metropolis import Walk, anneal_parameters, check_whole, schedule
from lurking.samplers.paths import prior_path
from lurking.types import FloatArray

PATHS = ("variational", "prior", "parameters", "completions")
STEPS = {"prior": 4096, "parameters": 16384, "completions": 1024}
CHAINS = {"prior": 16, "parameters": 26, "completions": 16}
DEFAULTS = AnnealOptions()


def annealed_importance_sampling(
    problem: Problem,
    options: FitOptions,
    *,
    path: str = "variational",
    target: float = DEFAULTS.target,
    passes: int = DEFAULTS.budget,
    steps: int | None = None,
    chains: int | None = None,
    particles: int = DEFAULTS.particles,
    resample: float = DEFAULTS.threshold,
    curvature: float = 0.2,
    temperatures: Sequence[float] | None = None,
    sweep: str = "joint",
    strength: tuple[float, float] | None = None,
) -> Evidence:
    """Ln p(y|m) by annealed importance sampling, with a standard error (Neal 2001; beal-ghahramani-2006, section 3.6).

    path="variational" (default): populations from flattened variational modes; steps are doubled and replicates added
    until the standard error `target` is reached with agreeing diagnostics or `passes` passes over the rows are spent.
    path="prior": `chains` chains of `steps` Gibbs steps over completions and parameters from the prior.
    path="parameters": Metropolis steps in parameter space as in algorithm 3.1 of the paper (`sweep`, `strength`).
    path="completions": collapsed Gibbs steps over completions, row by row. These three take `curvature` (e_τ of the
    paper's schedule) or explicit `temperatures`.
    """
    if path not in PATHS:
        raise UnknownNameError("path", path, PATHS)
    _check(target, passes, steps, chains, particles, resample)
    Walk(problem, sweep, strength)  # refuses what it cannot use, whatever the path
    taus = schedule(steps or STEPS.get(path, 1), curvature) if temperatures is None else _given(temperatures)
    if problem.is_complete:
        return closed_form(problem, options, "ais")
    if path == "variational":
        if temperatures is not None:
            raise OptionError("temperatures were given, and the variational path spaces its own; use another path")
        chosen = AnnealOptions(target, passes, particles, steps or DEFAULTS.steps, resample)
        return _kept(_of_populations(annealed_evidence(problem, options, chosen)), options)
    seeds = seed_sequence(options.seed).spawn(chains or CHAINS[path])
    workers, stop = options.workers, options.stop
    info: dict[str, Any] = {"path": path, "steps": len(taus) - 1}
    if path == "prior":
        made = anneal(prior_path(problem), taus, seeds, workers=workers, executor=options.executor, stop=stop)
        log_weights = made.estimates()
    elif path == "parameters":
        walked = anneal_parameters(problem, taus, seeds, sweep=sweep, strength=strength, workers=workers, stop=stop)
        log_weights = walked.log_weights
        info["acceptance"] = tuple(np.asarray(walked.acceptance).mean(axis=0).tolist())
    else:
        log_weights = anneal_completions(problem, taus, seeds, workers=workers, stop=stop).log_weights
    return _kept(evidence_of_chains(log_weights, target, info, options.stop.is_set), options)


def _kept(evidence: Evidence, options: FitOptions) -> Evidence:
    """Return what an interrupt left, where the caller wants it; raise the interrupt otherwise."""
    if evidence.status is Status.INTERRUPTED and not options.keep_interrupted:
        raise KeyboardInterrupt
    return evidence


def _of_populations(found: Annealed) -> Evidence:
    """Return the evidence of the variational path with everything that was learnt on the way."""
    info: dict[str, Any] = {
        "path": "variational",
        "steps": found.steps,
        "settings": found.settings,
        "replicates": len(found.estimates),
        "spread": found.spread,
        "pareto_k": found.pareto_k,
        "effective_share": found.effective_share,
        "switched": found.switched,
        "modes": found.n_modes,
        "passes": found.spent,
    }
    if found.log_missing > 1e-9:
        info["note"] = (
            f"there are more relabelings of hidden states than can be summed; one variable's are counted, and up to "
            f"{found.log_missing:.1f} nats are left out where modes are apart"
        )
    return _evidence(found.log_z, found.std_error, found.status, info)


def evidence_of_chains(log_weights: FloatArray, target: float, info: dict[str, Any], interrupted: bool) -> Evidence:
    """Return the evidence of independent chains, judged by their own weights."""
    if not len(log_weights):
        raise KeyboardInterrupt
    value, error, shape = log_mean(log_weights), relative_error(log_weights), pareto_k(log_weights)
    effective = effective_sample_size(log_weights)
    info |= {
        "chains": len(log_weights),
        "mean_log_weight": float(log_weights.mean()),
        "spread": float(log_weights.std(ddof=1)) if len(log_weights) > 1 else math.inf,
        "pareto_k": shape,
        "effective_share": effective / len(log_weights),
    }
    # Below ten chains there is no tail to look at; then a few chains must not carry the mean.
    heavy = effective < 0.3 * len(log_weights) if math.isnan(shape) else shape >= MOST_PARETO
    if interrupted:
        status = Status.INTERRUPTED
    elif heavy or effective < 5.0:
        status = Status.UNTRUSTED
    else:
        status = Status.SAMPLED if error <= target else Status.BUDGET
    return _evidence(value, error, status, info)


def _evidence(value: float, error: float, status: Status, info: dict[str, Any]) -> Evidence:
    return Evidence(
        log_z=value,
        log_aliases=0.0,
        std_error=error,
        kind=Kind.ESTIMATE,
        method="ais",
        parts={"log_mean_weight": value},
        status=status,
        info=info,
    )


def _given(temperatures: Sequence[float]) -> FloatArray:
    try:
        return checked_temperatures(np.asarray(temperatures, np.float64))
    except (TypeError, ValueError):
        raise OptionError(f"temperatures are {temperatures!r}; they must be a list of numbers from 0 to 1") from None


def _check(target: object, passes: object, steps: object, chains: object, particles: object, resample: object) -> None:
    """Refuse options out of their range."""
    for name, value in (("steps", steps), ("chains", chains)):
        if value is not None:
            check_whole(name, value, 1)
    check_whole("passes", passes, 1)
    check_whole("particles", particles, 2)
    is_number = isinstance(target, int | float | np.floating) and not isinstance(target, bool)
    if not (is_number and math.isfinite(target) and target > 0):  # type: ignore[operator, arg-type]
        raise OptionError(f"target is {target!r}; it must be a standard error above 0, for example 0.2")
    if not (isinstance(resample, int | float) and 0.0 <= resample <= 1.0):
        raise OptionError(f"resample is {resample!r}; it must be a share from 0 (never) to 1 (always)")
