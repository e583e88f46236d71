"""pyAgrum: EM on alarm with empty cells. ``python peer_pyagrum_alarm.py alarm.bif alarm_5000.csv [iterations]``.

A whole EM takes it minutes, so only the first iterations are timed: its whole EM takes at least as long.
"""

import sys

import pandas as pd
import pyagrum as gum

from timing import best_of, report

SMOOTHING = 1.0  # without it the learner refuses: some parent configuration is in no row


def main(network: str, path: str, iterations: int = 3) -> None:
    """Time ``learnParameters`` with one and two threads; loading the rows is left out."""
    published = gum.loadBN(network)
    rows = pd.read_csv(path, dtype=str, keep_default_na=False).replace("", "?")
    settings, done, traces = {}, {}, {}
    for threads in (1, 2):
        learner = gum.BNLearner(rows, published, ["?"])
        learner.setNumberOfThreads(threads)
        learner.useSmoothingPrior(SMOOTHING)
        learner.useEM(1e-300)
        learner.EMdisableMinEpsilonRate()
        learner.EMdisableEpsilon()
        learner.EMsetMaxIter(iterations)
        learner.EMsetVerbosity(True)
        name = f"threads={threads}"
        settings[name], _ = best_of(1, lambda one=learner: one.learnParameters(published.dag()))
        done[name], traces[name] = int(learner.EMnbrIterations()), list(learner.EMHistory())
    report("pyAgrum", gum.__version__, settings, iterations=done, history=traces, rows=len(rows))


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
