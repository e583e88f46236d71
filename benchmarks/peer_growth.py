"""Growth curves of peers: ``python peer_growth.py stepmix-rows|stepmix-columns|pyagrum-chain ROWS SIZE...``.

ROWS is the number of rows where something else grows (any number for stepmix-rows). Prints one JSON line.
"""

import json
import sys
import warnings

import numpy as np

from data import mixed_items
from timing import best_of

ITEMS = 32


def stepmix_iteration(rows: int, items: int) -> float:
    """Seconds of one EM iteration with binary items: a long run minus a short one, the better of 1 and 2 threads."""
    from threadpoolctl import threadpool_limits

    import peer_stepmix

    values = mixed_items(rows, items)
    short, long = 2, 12
    best = float("inf")
    for threads in (1, 2):
        with threadpool_limits(threads):
            before, _ = best_of(2, lambda: peer_stepmix.fit(values, "binary", short))
            after, _ = best_of(2, lambda: peer_stepmix.fit(values, "binary", long))
        best = min(best, (after - before) / (long - short))
    return best


def pyagrum_iteration(rows: int, length: int) -> float:
    """Seconds of one EM iteration of a hidden chain with observed children: three iterations minus one."""
    import pandas as pd
    import pyagrum as gum

    values = np.random.default_rng(7).integers(2, size=(rows, length), dtype=np.int8)
    frame = pd.DataFrame({f"x{t + 1}": values[:, t].astype(str) for t in range(length)})
    frame = frame.assign(**{f"h{t + 1}": "?" for t in range(length)})
    network = gum.BayesNet()
    for name in frame.columns:
        network.add(gum.LabelizedVariable(name, name, ["0", "1"]))
    for t in range(1, length + 1):
        network.addArc(f"h{t}", f"x{t}")
        if t > 1:
            network.addArc(f"h{t - 1}", f"h{t}")
    gum.initRandom(1)
    network.generateCPTs()
    seconds = {}
    for iterations in (1, 3):
        learner = gum.BNLearner(frame, network, ["?"])
        learner.setNumberOfThreads(2)
        learner.useSmoothingPrior(1.0)
        learner.useEM(1e-300, 0.0)
        learner.EMdisableMinEpsilonRate()
        learner.EMdisableEpsilon()
        learner.EMsetMaxIter(iterations)
        once, _ = best_of(1, lambda one=learner: one.learnParameters(network))
        seconds[int(learner.EMnbrIterations())] = once
    first, last = min(seconds), max(seconds)
    if first == last:
        raise RuntimeError("pyAgrum ended EM early")
    return (seconds[last] - seconds[first]) / (last - first)


def main(which: str, rows: int, sizes: list[int]) -> None:
    """Measure every size in turn."""
    warnings.simplefilter("ignore")
    measure = {
        "stepmix-rows": lambda size: stepmix_iteration(size, ITEMS),
        "stepmix-columns": lambda size: stepmix_iteration(rows, size),
        "pyagrum-chain": lambda size: pyagrum_iteration(rows, size),
    }[which]
    print(json.dumps({"sizes": sizes, "seconds": [measure(size) for size in sizes]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3:]])
