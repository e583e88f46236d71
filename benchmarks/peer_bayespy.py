"""bayespy: seconds per VB iteration, latent class model. ``python peer_bayespy.py lca_10000.csv [repeats]``."""

import sys
from collections.abc import Callable
from typing import Any

import bayespy
import numpy as np
from bayespy.inference import VB
from bayespy.nodes import Bernoulli, Beta, Categorical, Dirichlet, Mixture
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from timing import best_of, report

CLASSES = 4
WARM_UP = 3
ITERATIONS = 10
Build = Callable[[NDArray[np.int64]], VB]


def bernoulli_items_rows_last(values: NDArray[np.int64]) -> VB:
    """Mixture of Bernoulli items with the rows on the last plate axis."""
    n, items = values.shape
    weights = Dirichlet(np.ones(CLASSES), name="weights")
    members = Categorical(weights, plates=(n,), name="members")
    probabilities = Beta([1.0, 1.0], plates=(items, 1, CLASSES), name="probabilities")
    data = Mixture(members, Bernoulli, probabilities, name="data")
    return start(VB(data, members, probabilities, weights), data, members, values.T)


def bernoulli_items(values: NDArray[np.int64]) -> VB:
    """Mixture of Bernoulli items with uniform Beta and Dirichlet priors, started from random memberships."""
    n, items = values.shape
    weights = Dirichlet(np.ones(CLASSES), name="weights")
    members = Categorical(weights, plates=(n, 1), name="members")
    probabilities = Beta([1.0, 1.0], plates=(items, CLASSES), name="probabilities")
    data = Mixture(members, Bernoulli, probabilities, name="data")
    return start(VB(data, members, probabilities, weights), data, members, values)


def categorical_items(values: NDArray[np.int64]) -> VB:
    """Same model, written with two-valued categorical items and Dirichlet priors."""
    n, items = values.shape
    weights = Dirichlet(np.ones(CLASSES), name="weights")
    members = Categorical(weights, plates=(n, 1), name="members")
    probabilities = Dirichlet(np.ones(2), plates=(items, CLASSES), name="probabilities")
    data = Mixture(members, Categorical, probabilities, name="data")
    return start(VB(data, members, probabilities, weights), data, members, values)


def start(engine: VB, data: Any, members: Any, values: NDArray[np.int64]) -> VB:
    """Observe the items and draw starting memberships, so that the classes differ."""
    data.observe(values)
    members.initialize_from_random()
    engine.ignore_bound_checks = True  # or it would stop at convergence, in the middle of the timing
    engine["probabilities"].update()
    engine["weights"].update()
    return engine


def seconds_per_iteration(build: Build, values: NDArray[np.int64], repeats: int) -> tuple[float, float]:
    """Seconds of one update of every node after warm-up, and the lower bound after the last one."""
    np.random.seed(0)  # noqa: NPY002  (the library draws from the global generator)
    engine = build(values)
    engine.update(repeat=WARM_UP, verbose=False)
    before = engine.iter
    seconds, _ = best_of(repeats, lambda: engine.update(repeat=ITERATIONS, verbose=False))
    if engine.iter - before != repeats * ITERATIONS:
        raise RuntimeError(f"{engine.iter - before} iterations were made, {repeats * ITERATIONS} asked for")
    return seconds / ITERATIONS, float(engine.loglikelihood_lowerbound())


def main(path: str, repeats: int = 3) -> None:
    """Time every way of writing the model, with one and with two linear-algebra threads."""
    values = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)
    builds: dict[str, Build] = {
        "Bernoulli items": bernoulli_items,
        "Bernoulli items, rows last": bernoulli_items_rows_last,
        "Categorical items": categorical_items,
    }
    settings, bounds = {}, {}
    for label, build in builds.items():
        for threads in (1, 2):
            name = f"{label}, threads={threads}"
            with threadpool_limits(threads):
                settings[name], bounds[name] = seconds_per_iteration(build, values, repeats)
    report("bayespy", bayespy.__version__, settings, rows=len(values), lower_bound=bounds)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
