"""Evidence by annealing: chains or populations that go from a distribution known exactly to the posterior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lurking.errors import OptionError, UnknownNameError
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.closed_form import closed_form
from lurking.evidence.limits import refuse_strong_priors
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_standard_error, check_whole, is_number
from lurking.runtime.rng import seed_sequence
from lurking.samplers.annealing.annealed import MOST_PARETO, Annealed, AnnealOptions, annealed_evidence
from lurking.samplers.annealing.paths import compiled_program, prior_path, sampled_program
from lurking.samplers.annealing.populations import anneal, checked_temperatures
from lurking.samplers.collapsed import anneal_completions
from lurking.samplers.diagnostics import effective_sample_size, log_mean, pareto_k, relative_error, widening
from lurking.samplers.metropolis import Walk, anneal_parameters, schedule
from lurking.types import FloatArray

PATHS = ("variational", "prior", "parameters", "completions")
STEPS = {"prior": 4096, "parameters": 16384, "completions": 1024}
CHAINS = {"prior": 16, "parameters": 26, "completions": 16}
DEFAULTS = AnnealOptions()
CHAIN_PATHS = PATHS[1:]
PATHS_OF = {
    **dict.fromkeys(("passes", "particles", "resample"), PATHS[:1]),
    **dict.fromkeys(("chains", "curvature", "temperatures"), CHAIN_PATHS),
    **dict.fromkeys(("sweep", "strength"), ("parameters",)),
}
"""The paths on which an option has a meaning; `target` and `steps` have one on all of them."""


def annealed_importance_sampling(
    problem: Problem,
    options: FitOptions,
    *,
    path: str = "variational",
    target: float = DEFAULTS.target,
    passes: int | None = None,
    steps: int | None = None,
    chains: int | None = None,
    particles: int | None = None,
    resample: float | None = None,
    curvature: float | None = None,
    temperatures: Sequence[float] | None = None,
    sweep: str | None = None,
    strength: tuple[float, float] | None = None,
) -> Evidence:
    """Ln p(y|m) by annealed importance sampling, with a standard error (Neal 2001; beal-ghahramani-2006, section 3.6).

    path="variational" (default): populations of `particles` (32) from flattened variational modes, resampled below an
    effective share `resample` (0.5); `steps` (256 at first) are doubled and replicates added until the standard error
    `target` is reached with agreeing diagnostics or `passes` (2^19) passes over the rows are spent.
    path="prior": `chains` (16) chains of `steps` (4096) Gibbs steps over completions and parameters from the prior.
    path="parameters": `chains` (26) chains of `steps` (16384) Metropolis steps in parameter space as in algorithm 3.1
    of the paper, with `sweep` ("joint") and `strength` (see `Walk`).
    path="completions": `chains` (16) chains of `steps` (1024) collapsed Gibbs steps over completions, row by row.
    These three take `curvature` (0.2, e_τ of the paper's schedule) or explicit `temperatures`. `target` (0.2) is the
    standard error up to which any value is called sampled. An option of another path is refused.
    """
    given: dict[str, object] = {"passes": passes, "particles": particles, "resample": resample, "chains": chains}
    given |= {"curvature": curvature, "temperatures": temperatures, "sweep": sweep, "strength": strength}
    check_options({"path": path, "target": target, "steps": steps, **given})
    taus = _temperatures(path, steps, curvature, temperatures)
    walk = Walk(problem, "joint" if sweep is None else sweep, strength)
    if problem.is_complete:
        return closed_form(problem, options, "ais")
    # What cannot be sampled is refused before anything is fitted.
    refuse_strong_priors(problem, "ais")
    compiled_program(problem) if path == "parameters" else sampled_program(problem)
    if path == "variational":
        chosen = AnnealOptions(
            target=float(target),
            budget=passes or DEFAULTS.budget,
            particles=particles or DEFAULTS.particles,
            steps=steps or DEFAULTS.steps,
            threshold=DEFAULTS.threshold if resample is None else float(resample),
        )
        return _kept(_of_populations(annealed_evidence(problem, options, chosen)), options)
    log_weights, info = _weighed(path, walk, taus, chains or CHAINS[path], options)
    return _kept(evidence_of_chains(log_weights, target, info, options.stop.is_set), options)


def _weighed(
    path: str, walk: Walk, temperatures: FloatArray, chains: int, options: FitOptions
) -> tuple[FloatArray, dict[str, Any]]:
    """Return ln w of the chains of one path, those finished after an interrupt, and what was learnt on the way."""
    problem, seeds = walk.problem, seed_sequence(options.seed).spawn(int(chains))
    running: Any = {"workers": options.workers, "executor": options.executor, "stop": options.stop}
    info: dict[str, Any] = {"path": path, "steps": len(temperatures) - 1}
    if path == "prior":
        return anneal(prior_path(problem), temperatures, seeds, **running).estimates(), info
    if path == "completions":
        return anneal_completions(problem, temperatures, seeds, **running).log_weights, info
    walked = anneal_parameters(problem, temperatures, seeds, sweep=walk.sweep, strength=walk.strength, **running)
    if len(walked):
        info["acceptance"] = tuple(walked.acceptance.mean(axis=0).tolist())
    return walked.log_weights, info


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
            f"there are more relabelings of hidden states than can be summed; only some are counted, and up to "
            f"{found.log_missing:.1f} nats are left out where modes are apart"
        )
    return _evidence(found.log_z, found.std_error, found.status, info)


def evidence_of_chains(log_weights: FloatArray, target: float, info: dict[str, Any], interrupted: bool) -> Evidence:
    """Return the evidence of independent chains, judged by their own weights."""
    if not len(log_weights):
        raise KeyboardInterrupt
    value, shape = log_mean(log_weights), pareto_k(log_weights)
    error = widening(len(log_weights)) * relative_error(log_weights)
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


def takes(own: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options that have a meaning on the path that the options name."""
    path = own.get("path", PATHS[0])
    return ("path", "target", "steps", *(option for option, paths in PATHS_OF.items() if path in paths))


def check_options(own: Mapping[str, Any]) -> None:
    """Refuse options without a meaning on their path, or out of their range; it costs nothing, so it comes first."""
    path = own.get("path", PATHS[0])
    if path not in PATHS:
        raise UnknownNameError("path", path, PATHS)
    given = {name: own.get(name) for name in PATHS_OF}
    _refuse_others(path, {name: value for name, value in given.items() if value is not None})
    _check(own.get("target", DEFAULTS.target), own.get("steps"), given)


def _refuse_others(path: str, given: Mapping[str, object]) -> None:
    """Refuse options of other paths."""
    for option, value in given.items():
        if path not in PATHS_OF[option]:
            paths = " or ".join(f"path={one!r}" for one in PATHS_OF[option])
            raise OptionError(
                f"{option}={value!r} has no meaning with path={path!r}; leave it out, or use it with {paths}"
            )


def _temperatures(
    path: str, steps: int | None, curvature: float | None, temperatures: Sequence[float] | None
) -> FloatArray:
    """Return the schedule of a path, spaced as in the paper or as given; the variational path spaces its own."""
    if temperatures is None:
        return schedule(steps or STEPS.get(path, 1), 0.2 if curvature is None else curvature)
    for name, value in (("steps", steps), ("curvature", curvature)):
        if value is not None:
            raise OptionError(
                f"{name}={value!r} was given beside temperatures, which say all of it; leave one of them out"
            )
    try:
        return checked_temperatures(np.asarray(temperatures, np.float64))
    except (TypeError, ValueError):
        raise OptionError(f"temperatures are {temperatures!r}; they must be a list of numbers from 0 to 1") from None


def _check(target: object, steps: object, given: Mapping[str, object]) -> None:
    """Refuse options out of their range."""
    for name, value, least in (
        ("steps", steps, 1),
        ("chains", given["chains"], 1),
        ("passes", given["passes"], 1),
        ("particles", given["particles"], 2),
    ):
        if value is not None:
            check_whole(name, value, least)
    check_standard_error("target", target, DEFAULTS.target)
    share = given["resample"]
    if share is not None and not (is_number(share) and 0.0 <= share <= 1.0):
        raise OptionError(f"resample is {share!r}; it must be a share from 0 (never) to 1 (always)")
