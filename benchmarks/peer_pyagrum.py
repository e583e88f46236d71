"""pyAgrum: 20 EM iterations, two hidden causes, 480 rows. ``python peer_pyagrum.py bg_480.csv [repeats]``."""

import sys

import pandas as pd
import pyagrum as gum

from timing import EM_ITERATIONS, TWO_CAUSE_EDGES, best_of, report

# From most starts the learner ends early, warning of a diverging likelihood; from this one it makes all iterations.
START_SEED = 4


def template(names: list[str]) -> gum.BayesNet:
    """Build the network without data: two hidden binary parents, four five-valued children."""
    network = gum.BayesNet()
    for hidden in ("s1", "s2"):
        network.add(gum.RangeVariable(hidden, hidden, 0, 1))
    for name in names:
        network.add(gum.RangeVariable(name, name, 0, 4))
    for tail, head in TWO_CAUSE_EDGES:
        network.addArc(tail, head)
    return network


def make_learner(data: pd.DataFrame, weights: list[int] | None, threads: int, start: gum.BayesNet) -> gum.BNLearner:
    """Load the rows, hidden columns empty, and let EM stop at the iteration count alone. Not timed."""
    learner = gum.BNLearner(data.astype(str).assign(s1="?", s2="?"), start, ["?"])
    learner.setNumberOfThreads(threads)
    for row, weight in enumerate(weights or ()):
        learner.setRecordWeight(row, weight)
    learner.useEM(1e-300, 0.0)
    learner.EMdisableMinEpsilonRate()
    learner.EMdisableEpsilon()
    learner.EMsetMaxIter(EM_ITERATIONS)
    return learner


def seconds(data: pd.DataFrame, weights: list[int] | None, threads: int, repeats: int) -> tuple[float, int]:
    """Smallest seconds of ``learnParameters``, and the iterations it made."""
    gum.initRandom(START_SEED)
    start = template(list(data.columns))
    start.generateCPTs()
    smallest, iterations = float("inf"), EM_ITERATIONS
    for _ in range(repeats):
        learner = make_learner(data, weights, threads, start)
        once, _ = best_of(1, lambda one=learner: one.learnParameters(start))
        smallest, iterations = min(smallest, once), min(iterations, int(learner.EMnbrIterations()))
    return smallest, iterations


def main(path: str, repeats: int = 1) -> None:
    """Time one and two threads, on all rows and on unique rows carrying their counts."""
    rows = pd.read_csv(path)
    names = list(rows.columns)
    counted = rows.groupby(names, as_index=False).size()
    tables = {"unique rows with weights": (counted[names], counted["size"].tolist()), "all rows": (rows, None)}
    settings, iterations = {}, {}
    for label, (data, weights) in tables.items():
        for threads in (1, 2):
            name = f"{label}, threads={threads}"
            settings[name], iterations[name] = seconds(data, weights, threads, repeats)
    report("pyAgrum", gum.__version__, settings, iterations=iterations, rows=len(rows), unique_rows=len(counted))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
