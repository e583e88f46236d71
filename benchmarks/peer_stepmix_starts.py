"""stepmix: log-likelihood after every EM iteration of several starts. ``python peer_stepmix_starts.py lca.csv starts``.

It has no such record of its own, so its E-step is wrapped; nothing is timed here.
"""

import json
import sys
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from stepmix.stepmix import StepMix

CLASSES = 4
MOST_ITERATIONS = 1000
TOLERANCE_PER_ROW = 1e-10


class Recorded(StepMix):
    """The same program; every E-step's log-likelihood per row is kept."""

    def _e_step(self, *arguments: Any, **options: Any) -> Any:
        result = super()._e_step(*arguments, **options)
        self.__dict__.setdefault("record_", []).append(float(result[0]))
        return result


def main(path: str, starts: int) -> None:
    """Print one JSON line with the log-likelihoods of each start."""
    warnings.simplefilter("ignore")
    values = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)
    traces = []
    for seed in range(starts):
        model = Recorded(
            n_components=CLASSES,
            measurement="binary",
            max_iter=MOST_ITERATIONS,
            abs_tol=TOLERANCE_PER_ROW,
            rel_tol=0.0,
            random_state=seed,
            progress_bar=0,
        ).fit(values)
        traces.append([len(values) * one for one in model.record_])
    print(json.dumps({"peer": "stepmix", "version": version("stepmix"), "traces": traces}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
