"""pyAgrum: structures learnt by BDeu from complete rows. ``python peer_pyagrum_structure.py alarm.bif alarm.csv``."""

import sys
from time import perf_counter

import pandas as pd
import pyagrum as gum

from timing import report

METHODS = {
    "greedy": "useGreedyHillClimbing",
    "extended greedy": "useExtendedGreedyHillClimbing",
    "tabu": "useLocalSearchWithTabuList",
}
REPEATS = 3


def learnt(rows: pd.DataFrame, network: gum.BayesNet, method: str, threads: int) -> tuple[float, list[list[str]]]:
    """Seconds of one search, loading the rows left out, and its arcs."""
    learner = gum.BNLearner(rows, network)
    learner.setNumberOfThreads(threads)
    learner.useScoreBDeu()
    getattr(learner, METHODS[method])()
    begin = perf_counter()
    dag = learner.learnDAG()
    seconds = perf_counter() - begin
    return seconds, [[learner.nameFromId(x), learner.nameFromId(y)] for x, y in dag.arcs()]


def main(network: str, path: str) -> None:
    """Time every method with one and two threads; a fresh learner each time, since it keeps what it counted."""
    published = gum.loadBN(network)
    rows = pd.read_csv(path, dtype=str)
    settings, structures = {}, {}
    for method in METHODS:
        for threads in (1, 2):
            name = f"{method}, threads={threads}"
            runs = [learnt(rows, published, method, threads) for _ in range(REPEATS)]
            settings[name], structures[name] = min(runs)
    report("pyAgrum", gum.__version__, settings, structures=structures, rows=len(rows))


if __name__ == "__main__":
    main(*sys.argv[1:3])
