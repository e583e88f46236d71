"""EM of the discrete cases: traces, parameters and the scores of points along the way."""

import math
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import lurking as lk
from conformance.comparison import Comparison, flat
from conformance.discrete_model import Model
from lurking.errors import PriorError

METHODS = {"ml": "ml", "map": "map-probability", "map_softmax": "map"}
SCORES = {"loglik": "map-likelihood", "bic": "bic", "bicp": "bicp", "draper": "draper", "mled": "mled", "cs": "cs"}
BASES = {"map": ("laplace_theta_basis", "probability"), "map_softmax": ("laplace_softmax_basis", "logit")}
"""The basis of the Laplace approximation that belongs to each mode."""
GRADIENT = 1.0
"""Derivatives are differences of numbers of rows, and 0 at a mode: below this the tolerance is absolute, 1e-9."""
POINTS = {"scores_after_5": 5, "scores_after_50": 50}


def not_compared() -> dict[str, str]:
    """Return the keys of points that are not compared, with the reason."""
    reasons = {}
    for stored in METHODS:
        for name in ("iterations", "last_change", "is_converged"):
            reasons[f"em.{stored}.converged.{name}"] = "of the reference computation"
        for place, basis in product((*POINTS, "converged.scores"), ("laplace_theta_basis", "laplace_softmax_basis")):
            base = f"em.{stored}.{place}.{basis}"
            reasons |= {f"{base}.min_scaled_eigenvalue": "not reported by the library", f"{base}.why": "text"}
            if BASES.get(stored, ("",))[0] != basis:
                elsewhere = "the library evaluates a basis at its own mode only"
                reasons |= {f"{base}.value": elsewhere, f"{base}.logdet": elsewhere}
    return reasons


def check_point(comparison: Comparison, model: Model, stored: str) -> None:
    """Compare one method of EM: "ml", "map" (over probabilities) or "map_softmax" (over logits)."""
    if stored == "map" and not model.has_probability_mode:
        # A case may have numbers of the formula all the same.
        unused = [key for key in comparison.under("em.map") if key != "em.map.undefined"]
        comparison.excuse(unused, "λ < 1, which the method refuses")
        comparison.check_values("em.map.undefined", True, lambda: is_refused(model))
        return
    base, method = f"em.{stored}", METHODS[stored]
    check_trace(comparison, model, stored)
    for place, iterations in POINTS.items():
        check_scores(comparison, model, stored, f"{base}.{place}", iterations)
    if comparison.has(f"{base}.converged"):
        n = comparison.stored(f"{base}.converged.iterations")
        comparison.check(f"{base}.converged.theta", lambda: model.flat(model.fit(method, n).network.tables))
        theta = np.asarray(flat(comparison.stored(f"{base}.converged.theta")))
        if ((theta > 0.0) & (theta < sys.float_info.min)).any():
            # On its way to 0, it has no digits left, and its logarithm is part of the density.
            density = f"{base}.converged.scores.log_prior_softmax_density"
            comparison.excuse([density], "a probability is below the normal range of floats")
        check_scores(comparison, model, stored, f"{base}.converged.scores", n)


def is_refused(model: Model) -> bool:
    """Return True if the fit and all scores at the mode over probabilities raise `PriorError`."""
    calls = [partial(model.fit, "map-probability", 5), partial(laplace, model, "probability", 5)]
    names = [name for name in SCORES.values() if model.rows or name not in ("bic", "bicp", "draper")]
    calls += [partial(model.scores, (name,), "map-probability", 5) for name in names]
    return all(raises_prior_error(call) for call in calls)


def raises_prior_error(call: Callable[[], Any]) -> bool:
    """Return True if a call raises `PriorError`."""
    try:
        call()
    except PriorError:
        return True
    return False


def check_trace(comparison: Comparison, model: Model, stored: str) -> None:
    """Compare log-likelihoods, objectives and parameters, and the bounds of VB from the same point."""
    check, base, method = comparison.check, f"em.{stored}", METHODS[stored]
    n = len(comparison.stored(f"{base}.objective"))
    check(f"{base}.loglik", lambda: model.logliks(method, n))
    check(f"{base}.objective", lambda: first_objective(model, stored), lambda values: values[0])
    check(f"{base}.objective", lambda: model.fit(method, n - 1).trace, lambda values: values[1:])
    check(f"{base}.theta_after_5", lambda: model.flat(model.fit(method, 5).network.tables))

    def bounds() -> np.ndarray:
        options = {**model.options(5), "init": model.fit(method, 5).network.tables}
        return lk.fit(model.dag, model.table, method="vb", **options).trace

    def together() -> lk.Evidence:
        return lk.score(model.dag, model.table, "vb", start="map", at=method, **model.options(5))

    base = f"{base}.corollary_6_2_from_theta_after_5"
    check(f"{base}.F_after_vbm", bounds)
    check(f"{base}.F_after_vbm", lambda: together().log_z, lambda values: values[4])
    check(f"{base}.cs", lambda: together().info["cs"])


def first_objective(model: Model, stored: str) -> float:
    """Return the objective at the start."""
    loglik = float(model.start_network.loglik(model.table).sum())
    if stored == "ml":
        return loglik
    density = model.log_prior(model.start)
    return loglik + (logit_density(model.start, density) if stored == "map_softmax" else density)


def logit_density(tables: Any, log_prior: float) -> float:
    """Return the log prior density over logits, Dir(θ; λ) · Π θ, given the one over probabilities."""
    theta = np.concatenate([np.ravel(table) for table in tables.values()])
    return -math.inf if (theta <= 0.0).any() else log_prior + float(np.log(theta).sum())


def check_scores(comparison: Comparison, model: Model, stored: str, base: str, iterations: int) -> None:
    """Compare the scores at the point after some iterations."""
    if not comparison.has(base):
        return
    check, method, numbers = comparison.check, METHODS[stored], comparison.stored(base)
    finite = tuple(score for key, score in SCORES.items() if isinstance(numbers.get(key), float | int))
    for key, score in SCORES.items():
        # Scores with a finite value are computed together, others are refused one by one.
        names = finite if score in finite else (score,)
        check(f"{base}.{key}", lambda s=score, n=names: model.scores(n, method, iterations)[s].log_z)
    check(f"{base}.log_prior", lambda: log_prior(model, method, iterations))
    density = f"{base}.log_prior_softmax_density"
    if density not in comparison.outcome.excused:
        check(density, lambda: log_density_over_logits(model, method, iterations))
    effective = {"at": method, "dimension": "effective", **model.options(iterations)}
    check(
        f"{base}.cs_dimension_corrected",
        lambda: lk.score(model.dag, model.table, "cs", **effective).log_z,
        # Undefined without rows: (d − d′)/2 · ln n.
        lambda value: value if model.rows else None,
    )
    for name, basis in (("laplace_theta_basis", "probability"), ("laplace_softmax_basis", "logit")):
        gradient = f"{base}.{name}.max_abs_gradient"
        check(gradient, lambda b=basis: largest_derivative(model, method, iterations, b), smallest=GRADIENT)
        if BASES.get(stored) == (name, basis):
            check_laplace(comparison, model, f"{base}.{name}", basis, iterations)


def log_prior(model: Model, method: str, iterations: int) -> float:
    """Return ln Dir(θ̂; λ): a term of bicp, which is undefined without rows."""
    if not model.rows:
        return model.log_prior(model.fit(method, iterations).network.tables)
    return float(model.scores(("bicp",), method, iterations)["bicp"].parts["log_prior"])


def log_density_over_logits(model: Model, method: str, iterations: int) -> float:
    """Return the log prior density over logits at a point."""
    fit = model.fit(method, iterations)
    if method == "map":
        return fit.objective - fit.log_z
    if (fit.network.theta <= 0.0).any():
        return -math.inf
    return logit_density(fit.network.tables, log_prior(model, method, iterations))


def largest_derivative(model: Model, method: str, iterations: int, basis: str) -> float:
    """Return the largest derivative of the log posterior over free logits or probabilities, the last state dropped.

    With c = N + λ (logits) or N + λ − 1 (probabilities): c_k − θ_k Σ c, or c_k / θ_k − c_K / θ_K.
    """
    fit = model.fit(method, iterations)
    counts = fit.counts + (model.pseudo_counts - (basis == "probability"))
    largest, begin = 0.0, 0
    for theta in (row for table in model.in_order(fit.network.tables) for row in table):
        own = counts[begin : begin + len(theta)]
        begin += len(theta)
        derivatives = own - theta * own.sum() if basis == "logit" else own / theta - own[-1] / theta[-1]
        largest = max(largest, float(np.abs(derivatives[:-1]).max(initial=0.0)))
    return largest


def check_laplace(comparison: Comparison, model: Model, base: str, basis: str, iterations: int) -> None:
    """Compare the Laplace approximation at the stated point, whatever the gradient there."""

    def value() -> float | None:
        found = laplace(model, basis, iterations)
        is_singular = found.info["rank"] < found.info["dimension"]
        return None if is_singular else found.log_z

    comparison.check(f"{base}.value", value)
    comparison.check(f"{base}.logdet", lambda: -2.0 * laplace(model, basis, iterations).parts["curvature"])
    # The library chooses the state that is dropped, and over probabilities it drops those on their way to 0 too.
    if max(model.cards) <= 2 and (basis == "logit" or comparison.stored(f"{base}.value") is not None):
        key = f"{base}.max_abs_gradient"
        comparison.check(key, lambda: laplace(model, basis, iterations).info["gradient"], smallest=GRADIENT)


def laplace(model: Model, basis: str, iterations: int) -> lk.Evidence:
    """Return the Laplace approximation at the point after some iterations."""
    return lk.score(model.dag, model.table, "laplace", basis=basis, **model.options(iterations))
