"""pomegranate: seconds per EM iteration, latent class. ``python peer_pomegranate.py lca_100000.csv [repeats]``."""

import itertools
import sys
from importlib.metadata import version

import numpy as np
import torch
from numpy.typing import NDArray
from pomegranate.distributions import Categorical
from pomegranate.gmm import GeneralMixtureModel

from timing import best_of, report

CLASSES = 4
SHORT, LONG = 2, 12


def fit(values: torch.Tensor, ones: NDArray[np.float64], iterations: int, check: bool) -> GeneralMixtureModel:
    """Run a fixed number of EM iterations from one random start."""
    tables = [torch.tensor(np.stack([1.0 - row, row], axis=1), dtype=torch.get_default_dtype()) for row in ones]
    parts = [Categorical(table, check_data=check) for table in tables]
    model = GeneralMixtureModel(parts, max_iter=iterations, tol=-np.inf, check_data=check)
    return model.fit(values)


def main(path: str, repeats: int = 1) -> None:
    """Time a long and a short run for both precisions, one and two threads, with and without checks of the data."""
    values = torch.tensor(np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64))
    ones = np.random.default_rng(0).uniform(size=(CLASSES, values.shape[1]))
    settings = {}
    for precision, threads, check in itertools.product((torch.float32, torch.float64), (1, 2), (True, False)):
        torch.set_default_dtype(precision)
        torch.set_num_threads(threads)
        fit(values, ones, SHORT, check)
        short, _ = best_of(repeats, lambda c=check: fit(values, ones, SHORT, c))
        long, _ = best_of(repeats, lambda c=check: fit(values, ones, LONG, c))
        name = f"{str(precision).removeprefix('torch.')}, threads={threads}, check_data={check}"
        settings[name] = (long - short) / (LONG - SHORT)
    report("pomegranate", version("pomegranate"), settings, rows=len(values), torch=torch.__version__)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
