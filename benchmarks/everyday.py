"""Seconds of small things that everybody does often: importing, building structures, cutting columns.

    python benchmarks/everyday.py

The tests count calls of functions instead, for no test may depend on the speed of the machine. Each line gives the
best of several rounds and what is expected on an ordinary laptop.
"""

from __future__ import annotations

import subprocess
import sys
import timeit

import numpy as np

import lurking as lk
from lurking.graph.symmetry.aliases import alias_count

EDGES = [("s1", "y1"), ("s1", "y2"), ("s1", "y3"), ("s2", "y2"), ("s2", "y3"), ("s2", "y4")]
NODES = ["s1", "s2", "y1", "y2", "y3", "y4"]
IMPORT = "import time; t = time.perf_counter(); import lurking; print(time.perf_counter() - t)"


def best(work, number=1, repeat=5):
    return min(timeit.repeat(work, number=number, repeat=repeat)) / number


def import_seconds():
    return min(float(subprocess.check_output([sys.executable, "-c", IMPORT], text=True)) for _ in range(5))


def twelve_alike():
    hidden = {f"s{number}": 2 for number in range(12)}
    dag = lk.Dag.from_edges([(name, child) for child in ("y", "z") for name in hidden], hidden=hidden)
    return alias_count(dag), dag.canonical()


def main():
    values = np.random.default_rng(0).normal(size=10**6)
    table = lk.Table.from_columns({"x": values, "y": values > 0.5}, continuous=["x"])
    rows = [
        ("import lurking", import_seconds(), 0.1),
        ("build a structure of six nodes", best(lambda: lk.Dag.from_edges(EDGES, NODES, {"s1": 2}), 200, 20), 5e-5),
        ("canonical form and aliases of 12 equal hidden nodes", best(twelve_alike), 0.05),
        ("four quantile bins of 1 000 000 rows", best(lambda: lk.discretise(table, {"x": 4})), 0.5),
        ("bins by evidence of 1 000 000 rows", best(lambda: lk.discretise(table, {"x": "evidence"})), 1.0),
        ("the same for a target", best(lambda: lk.discretise(table, {"x": "evidence"}, target="y")), 1.0),
    ]
    print(f"{'what':52} {'seconds':>10} {'expected':>10}")
    for what, seconds, expected in rows:
        print(f"{what:52} {seconds:10.2g} {expected:10.2g}{'' if seconds <= expected else '   slower'}")


if __name__ == "__main__":
    main()
