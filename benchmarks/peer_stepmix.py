"""stepmix: seconds per EM iteration, latent class model.

``python peer_stepmix.py lca_10000.csv [repeats [measurement ...]]``; both ways of writing the items by default.
"""

import sys
import warnings
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray
from stepmix.stepmix import StepMix
from threadpoolctl import threadpool_limits

from timing import best_of, report

CLASSES = 4
SHORT, LONG = 5, 55
MEASUREMENTS = ("binary", "categorical")


def fit(values: NDArray[np.int64], measurement: str, iterations: int) -> StepMix:
    """Run a fixed number of EM iterations from one random start."""
    model = StepMix(
        n_components=CLASSES,
        measurement=measurement,
        max_iter=iterations,
        abs_tol=0.0,
        rel_tol=0.0,
        random_state=0,
        progress_bar=0,
    )
    return model.fit(values)


def main(path: str, repeats: int = 3, measurements: tuple[str, ...] = MEASUREMENTS) -> None:
    """Time a long and a short run: their difference holds iterations only, no checks and no final scoring."""
    warnings.simplefilter("ignore")
    values = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)
    settings, scores, done = {}, {}, {}
    for measurement in measurements:
        for threads in (1, 2):
            name = f"{measurement}, threads={threads}"
            with threadpool_limits(threads):
                fit(values, measurement, SHORT)
                short, _ = best_of(repeats, lambda m=measurement: fit(values, m, SHORT))
                long, model = best_of(repeats, lambda m=measurement: fit(values, m, LONG))
            settings[name] = (long - short) / (model.n_iter_ - SHORT)
            scores[name] = float(model.score(values)) * len(values)
            done[name] = int(model.n_iter_)
    report("stepmix", version("stepmix"), settings, rows=len(values), log_likelihood=scores, iterations=done)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]), *([tuple(sys.argv[3:])] if sys.argv[3:] else []))
