"""Groups of numbers about models with nodes other than tables: counts and logistic nodes."""

from collections.abc import Callable
from typing import Any

import numpy as np

import lurking as lk
from numbers_record import Recorder

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "counts": ("class[2] -> x visits", {}),
    "complete counts": ("x -> visits", {}),
    "logistic": ("x z -> y", {"families": {"y": "logistic"}}),
    "mixed": ("class[2] -> x visits; class x -> y; z", {"families": {"y": "logistic"}}),
}


def patients() -> lk.Table:
    """Return 80 rows of answers and visits with missing values."""
    rng = np.random.default_rng(11)
    ill = rng.random(80) < 0.4
    columns = {name: (rng.random(80) < np.where(ill, 0.8, 0.25)).astype(object) * 1 for name in ("x", "y", "z")}
    columns["visits"] = rng.poisson(np.where(ill, 5.0, 1.0)).astype(object)
    for column in columns.values():
        column[rng.random(80) < 0.1] = None
    levels = {name: [0, 1] for name in ("x", "y", "z")}
    return lk.Table.from_columns({name: list(own) for name, own in columns.items()}, levels=levels, count="visits")


def families(record: Recorder) -> None:
    """Fits by every method, scores, E-steps, draws and the log posterior."""
    table = patients()
    for name, (model, options) in MODELS.items():
        for method in ("vb", "map", "ml"):
            fit = lk.fit(model, table, method=method, restarts=3, seed=0, **options)
            record.fields(f"{name}/fit/{method}", fit, "objective trace status n_iter potentials counts log_z")
        for score in ("vb", "cs", "bic", "map-likelihood"):
            evidence = lk.score(model, table, score, restarts=3, seed=0, **options)
            record.fields(f"{name}/score/{score}", evidence, "log_z log_aliases kind parts")
        problem = lk.Problem(model, table, **options)
        draws = lk.gibbs(problem, chains=2, draws=10, burn_in=5, seed=1)
        record.fields(f"{name}/gibbs", draws, "log_theta log_likelihood")
        posterior = lk.LogPosterior(problem)
        point = 0.3 * np.random.default_rng(2).normal(size=posterior.size)
        record.put(f"{name}/log density", posterior.log_density(point))
        record.put(f"{name}/gradient", posterior.gradient(point))


GROUPS: dict[str, Callable[[Recorder], None]] = {"families": families}
