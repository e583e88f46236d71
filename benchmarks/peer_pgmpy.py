"""pgmpy: 20 EM iterations, two hidden causes, 480 rows. ``python peer_pgmpy.py bg_480.csv [repeats]``."""

import logging
import sys
from typing import Any

import pandas as pd
import pgmpy
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteEM

from timing import EM_ITERATIONS, TWO_CAUSE_EDGES, best_of, report


def fit(data: pd.DataFrame, n_jobs: int, batch_size: int) -> Any:
    """Run exactly ``EM_ITERATIONS`` iterations: a tolerance of zero never stops early."""
    model = DiscreteBayesianNetwork(list(TWO_CAUSE_EDGES), latents={"s1", "s2"})
    estimator = DiscreteEM(
        state_names={name: list(range(5)) for name in data.columns},
        latent_card={"s1": 2, "s2": 2},
        max_iter=EM_ITERATIONS,
        atol=0.0,
        n_jobs=n_jobs,
        batch_size=batch_size,
        seed=0,
        show_progress=False,
    )
    return estimator.fit(model, data)


def main(path: str, repeats: int = 2) -> None:
    """Time one process, then two with the unique rows halved between them; the first repeat starts the processes."""
    logging.disable(logging.WARNING)
    data = pd.read_csv(path)
    unique = len(data.drop_duplicates())
    settings = {}
    for n_jobs in (1, 2):
        batch_size = -(-unique // n_jobs)
        settings[f"n_jobs={n_jobs}"], _ = best_of(repeats, lambda j=n_jobs, b=batch_size: fit(data, j, b))
    report("pgmpy", pgmpy.__version__, settings, iterations=EM_ITERATIONS, rows=len(data), unique_rows=unique)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
