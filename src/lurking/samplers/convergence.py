"""Whether Gibbs chains agree, judged by what does not depend on the names of hidden states.

Chains that differ in nothing but the names of hidden states agree on everything that can be observed, while their θ
are far apart. So R-hat and the effective sample size are taken of ln p(y|θ) and of the predictive probability of
every level of every observed variable; how often chains change names is told apart.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from lurking.errors import LurkingWarning, OptionError
from lurking.inference.elimination import Factor, eliminate
from lurking.inference.problem import refuse_families
from lurking.samplers.aliases import relabelings
from lurking.samplers.gibbs import Draws
from lurking.types import FloatArray

LEAST_DRAWS = 4
LARGEST_R_HAT = 1.1
LEAST_ESS = 5
"""Effective draws of each chain below which a mean says next to nothing."""
CHUNK = 1 << 22
"""Similarities (draws × relabelings) held at once."""
TAILS = (0.05, 0.95)
"""Quantiles whose worse effective sample size is that of the tails."""
DRAW = ""
"""Name of the axis over draws; no variable has an empty name."""


def predictive(draws: Draws) -> dict[str, FloatArray]:
    """Return {observed variable: p(level | θ) of every draw}, (chains, draws, levels)."""
    refuse_families(draws.problem, "summaries of draws are available", "use draws.log_theta")
    layout = draws.problem.layout
    shape = draws.log_theta.shape[:2]
    theta = np.exp(draws.log_theta).reshape(-1, layout.size)
    factors = {}
    for j, name in enumerate(layout.nodes):
        parents = layout.parents[j]
        sizes = [layout.cardinalities[v] for v in (*parents, j)]
        table = theta[:, layout.offsets[j] : layout.offsets[j] + math.prod(sizes)].reshape(-1, *sizes)
        factors[name] = Factor(table, (DRAW, *(layout.nodes[v] for v in parents), name))
    result = {}
    for name in layout.dag.observed:
        needed = _with_ancestors(draws, name)
        marginal = eliminate([factors[own] for own in layout.nodes if own in needed], (DRAW, name))
        result[name] = marginal.reshape(*shape, -1)
    return result


def _with_ancestors(draws: Draws, name: str) -> set[str]:
    """Return a variable and everything above it; the rest sums to 1."""
    dag = draws.problem.layout.dag
    found, waiting = {name}, [name]
    while waiting:
        for parent in dag.parents(waiting.pop()):
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def warn_of_disagreement(what: str, found: Sequence[Agreement], chains: int) -> None:
    """Warn once where chains disagree on one of some quantities, or have hardly moved; nan is one that never varies."""
    r_hat = max((own.r_hat for own in found if not math.isnan(own.r_hat)), default=1.0)
    ess = min((own.ess_bulk for own in found if not math.isnan(own.ess_bulk)), default=math.inf)
    if r_hat > LARGEST_R_HAT or ess < LEAST_ESS * chains:
        warnings.warn(
            f"the chains have not settled on {what}: R-hat {r_hat:.2f} (at most {LARGEST_R_HAT}), effective sample "
            f"size {ess:.0f} (at least {LEAST_ESS * chains}); raise burn_in and draws",
            LurkingWarning,
            stacklevel=3,
        )


def summary(draws: Draws) -> dict[str, dict[str, float]]:
    """Return {quantity: {mean, sd, r_hat, ess_bulk, ess_tail}} of quantities without names of hidden states.

    Quantities are "log_likelihood" and "p(variable=level)" of every level of every observed variable. R-hat is
    rank-normalised and folded, and ESS that of Vehtari et al. (2021), both as arviz-stats computes them. A quantity
    that does not vary at all has R-hat and ESS nan.
    """
    if draws.log_likelihood.shape[1] < LEAST_DRAWS:
        raise OptionError(
            f"draws has {draws.log_likelihood.shape[1]} points in each chain; R-hat needs at least {LEAST_DRAWS}, "
            "sample more"
        )
    quantities = {"log_likelihood": draws.log_likelihood}
    for name, probabilities in predictive(draws).items():
        for k, level in enumerate(draws.problem.levels[name]):
            quantities[f"p({name}={level})"] = probabilities[:, :, k]
    result = {}
    for quantity, values in quantities.items():
        moments = {"mean": float(values.mean()), "sd": float(values.std(ddof=1))}
        result[quantity] = {**moments, **agreement(values)._asdict()}
    return result


class Agreement(NamedTuple):
    """How well chains agree on one quantity; all nan where it does not vary or has fewer than `LEAST_DRAWS` values."""

    r_hat: float
    ess_bulk: float
    ess_tail: float


def agreement(values: FloatArray) -> Agreement:
    """Return R-hat (rank-normalised, folded) and ESS (Vehtari et al. 2021) of a quantity, (chains, draws)."""
    if values.shape[1] < LEAST_DRAWS or not is_varied(values):
        return Agreement(math.nan, math.nan, math.nan)
    statistics = _imported("arviz_stats.base", "arviz-stats").array_stats
    # R-hat compares chains: a single one is compared with itself, its first half with its second.
    halves = values if len(values) > 1 else values[:, : values.shape[1] // 2 * 2].reshape(2, -1)
    # Chains that do not vary by themselves have no variance to divide by.
    with np.errstate(divide="ignore", invalid="ignore"):
        return Agreement(
            float(statistics.rhat(halves, chain_axis=0, draw_axis=1, method="rank")),
            float(statistics.ess(values, chain_axis=0, draw_axis=1, method="bulk")),
            float(statistics.ess(values, chain_axis=0, draw_axis=1, method="tail", prob=TAILS)),
        )


def is_varied(values: FloatArray) -> bool:
    """Whether a quantity varies by more than rounding."""
    return bool(np.ptp(values) > 1e-12 * max(1.0, float(np.abs(values).max())))


def switching_rate(draws: Draws) -> float:
    """Return the share of consecutive draws of a chain that suit different names of hidden states best.

    Each draw is compared with all relabelings of a draw near the highest likelihood, by the sum over table rows of the
    Bhattacharyya coefficient Σ_k √(θ_jlk θ'_jlk). nan where relabelings are too many to list.
    """
    problem = draws.problem
    refuse_families(problem, "label switching is measured", "use draws.log_theta")
    permutations = relabelings(problem.layout, problem.pseudo)
    if permutations is None:
        return math.nan
    if len(permutations) == 1 or draws.log_likelihood.shape[1] < 2:
        return 0.0
    # ln p(y|θ) is that of the point a sweep started from, so this is the draw after the best: as good a reference.
    best = np.unravel_index(int(draws.log_likelihood.argmax()), draws.log_likelihood.shape)
    references = np.exp(0.5 * draws.log_theta[best])[permutations]
    roots = np.exp(0.5 * draws.log_theta).reshape(-1, problem.layout.size)
    step = max(1, CHUNK // len(permutations))
    nearest = [(roots[k : k + step] @ references.T).argmax(axis=1) for k in range(0, len(roots), step)]
    names = np.concatenate(nearest).reshape(draws.log_likelihood.shape)
    return float((names[:, 1:] != names[:, :-1]).mean())


def to_arviz(draws: Draws) -> Any:
    """Return the draws as ArviZ takes them (an xarray DataTree, made by arviz-base).

    Group `posterior` holds one variable `theta_<node>` per node with dimensions (chain, draw, parent configuration,
    state) and the label-free `predictive_<variable>` (chain, draw, level); `sample_stats` holds `log_likelihood`.
    """
    arviz_base = _imported("arviz_base", "arviz-base")
    problem, layout = draws.problem, draws.problem.layout
    refuse_families(problem, "draws are converted", "use draws.log_theta")
    posterior: dict[str, FloatArray] = {}
    dimensions: dict[str, list[str]] = {}
    coordinates: dict[str, list[Any]] = {}
    for j, name in enumerate(layout.nodes):
        rows, states = layout.configurations[j], layout.cardinalities[j]
        begin = layout.offsets[j]
        table = np.exp(draws.log_theta[:, :, begin : begin + rows * states])
        posterior[f"theta_{name}"] = table.reshape(*table.shape[:2], rows, states)
        dimensions[f"theta_{name}"] = [f"{name}_parents", f"{name}_state"]
        levels = [problem.levels[layout.nodes[v]] for v in layout.parents[j]]
        configurations = np.ndindex(*(len(own) for own in levels))
        coordinates[f"{name}_parents"] = [
            ", ".join(f"{layout.nodes[v]}={own[k]}" for v, own, k in zip(layout.parents[j], levels, at, strict=True))
            for at in configurations
        ]
        coordinates[f"{name}_state"] = [str(level) for level in problem.levels[name]]
    for name, probabilities in predictive(draws).items():
        posterior[f"predictive_{name}"] = probabilities
        dimensions[f"predictive_{name}"] = [f"{name}_state"]
    groups = {"posterior": posterior, "sample_stats": {"log_likelihood": draws.log_likelihood}}
    return arviz_base.from_dict(groups, dims=dimensions, coords=coordinates)


def _imported(module: str, package: str) -> Any:
    """Return a module that is not needed for anything else, or say which package holds it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(f"this needs the package {package}, which is not installed: pip install {package}") from error
