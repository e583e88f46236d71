"""E-steps and seconds of EM, accelerated EM, L-BFGS and conjugate gradients: ``python benchmarks/optimizers.py``.

Slow problems: n = 480 rows of the two hidden causes of Beal & Ghahramani (2006), and naive Bayes with three classes
that overlap. All optimizers climb from the same starts to the same tolerance. E-steps and seconds are those of all
starts together (seconds: the smallest of several rounds). Likelihoods have several peaks, and optimizers that share a
start may end on different ones; so the best end is printed, and how many starts came as near to it as 0.001.
"""

import argparse
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

import data
import lurking as lk
from lurking.learn.loop import Climber, rule_of
from lurking.learn.options import FitOptions
from lurking.learn.starts import climb_from, starting_points

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "EM": {"accelerate": False},
    "EM accelerated": {},
    "L-BFGS": {"optimizer": "lbfgs"},
    "CG": {"optimizer": "cg"},
}


def problems() -> Iterator[tuple[str, lk.Problem]]:
    """Yield names and compiled problems."""
    causes = lk.Table.from_array(data.two_causes(480), columns=["y1", "y2", "y3", "y4"])
    yield "two causes, n = 480", lk.Problem("s1[2] -> y1 y2 y3; s2[2] -> y2 y3 y4", causes)
    rng = np.random.default_rng(0)
    ones = np.clip(0.5 + 0.12 * rng.standard_normal((3, 8)), 0.1, 0.9)
    items = (rng.random((2000, 8)) < ones[rng.integers(0, 3, 2000)]).astype(np.int64)
    table = lk.Table.from_array(items, columns=[f"y{i}" for i in range(8)])
    yield "overlapping classes, n = 2000", lk.Problem("class[3] -> *", table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--tol", type=float, default=1e-10)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    print(f"{'problem':30}{'method':8}{'optimizer':16}{'E-steps':>9}{'seconds':>9}{'best':>14}{'starts there':>14}")
    for name, problem in problems():
        for method in ("ml", "map", "vb"):
            for optimizer, own in OPTIMIZERS.items():
                options = FitOptions(restarts=asked.restarts, tol=asked.tol, max_iter=100_000, workers=1, **own)
                climber = Climber(problem.engine, problem.pseudo, rule_of(method), problem.n)
                starts = starting_points(problem, options, asked.restarts)
                seconds = []
                for _ in range(asked.rounds):
                    begin = perf_counter()
                    climbs = climb_from(climber, problem, starts, options, options.climb)
                    seconds.append(perf_counter() - begin)
                ends = np.asarray([climb.objective for climb in climbs])
                steps, there = sum(climb.n_iter for climb in climbs), int((ends > ends.max() - 1e-3).sum())
                print(
                    f"{name:30}{method:8}{optimizer:16}{steps:9}{min(seconds):9.3f}{ends.max():14.4f}{there:14}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
