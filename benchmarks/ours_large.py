"""lurking's side of the larger comparisons: public calls only, compiled before the clock starts."""

from pathlib import Path
from time import perf_counter
from typing import Any

import lurking as lk
from ours import CLASSES, TWO_CAUSES, log_likelihood
from rows import Measured
from timing import best_of

SHORT, LONG = 5, 55
WITHIN_PER_ROW = 1e-6
MOST_ITERATIONS = 1000


def latent_class_iteration(path: Path, workers: int, starts: int, repeats: int = 3) -> Measured:
    """Seconds per EM iteration of one start: long run minus short run, as stepmix is measured."""
    table, dag = lk.read(path), f"class[{CLASSES}] -> *"

    def work(iterations: int) -> Any:
        options = {"max_iter": iterations, "tol": 0.0, "accelerate": False, "seed": 0, "workers": workers}
        return lk.fit(dag, table, method="ml", restarts=starts, **options)

    work(SHORT)
    short, _ = best_of(repeats, lambda: work(SHORT))
    long, fit = best_of(repeats, lambda: work(LONG))
    seconds = (long - short) / (LONG - SHORT) / starts
    return {"seconds": seconds, "workers": workers, "starts": starts, "objective": float(fit.objective)}


def best_of_starts(path: Path, starts: int) -> list[float]:
    """Log-likelihood at the end of each start."""
    fit = lk.fit(f"class[{CLASSES}] -> *", lk.read(path), method="ml", restarts=starts, tol=1e-10, seed=0)
    return [float(value) for value in fit.spread.objectives]


def steps_to(path: Path, mark: float, starts: int, accelerate: bool) -> list[int | None]:
    """E-steps, rejected extrapolations included, until each start's log-likelihood is ``mark``; None: never.

    The trace holds accepted points only, so the number is found by bisection over ``max_iter``: a start is drawn from
    its seed and climbs the same way each time.
    """
    problem = lk.Problem(f"class[{CLASSES}] -> *", lk.read(path))
    _ = problem.engine
    return [steps_of_start(problem, mark, seed, accelerate) for seed in range(starts)]


def steps_of_start(problem: Any, mark: float, seed: int, accelerate: bool) -> int | None:
    """E-steps of one start until ``mark``."""
    from lurking.learn.fit import fit_problem
    from lurking.learn.options import FitOptions

    def reaches(iterations: int) -> bool:
        options = FitOptions(restarts=1, max_iter=iterations, tol=0.0, accelerate=accelerate, seed=seed, workers=1)
        return bool(fit_problem(problem, "ml", options).objective >= mark)

    high = 1
    while not reaches(high):
        if high >= MOST_ITERATIONS:
            return None
        high = min(2 * high, MOST_ITERATIONS)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def alarm(network: Path, rows: Path, repeats: int = 3) -> Measured:
    """Seconds of one EM iteration on one thread, and of the whole EM from one start, compiling included.

    ``method="map"`` with λ = 1 adds one to every count, as pyAgrum's smoothing prior of weight 1 does.
    """
    dag = lk.read_network(network).dag
    table = lk.read(rows)

    def work(iterations: int) -> Any:
        options = {"max_iter": iterations, "tol": 0.0, "accelerate": False, "workers": 1}
        return lk.fit(dag, table, method="map", restarts=1, **options)

    work(SHORT)
    short, _ = best_of(repeats, lambda: work(SHORT))
    long, _ = best_of(repeats, lambda: work(LONG))
    whole: dict[str, Measured] = {}
    for method in ("map", "ml"):
        seconds, fit = best_of(repeats, lambda m=method: lk.fit(dag, table, method=m, restarts=1, workers=1))
        likelihood = log_likelihood(fit, table)
        whole[method] = {"seconds": seconds, "iterations": fit.n_iter, "log_likelihood": likelihood}
    return {"iteration": (long - short) / (LONG - SHORT), "seconds": whole["map"]["seconds"], "whole": whole}


def read_and_score(path: Path, repeats: int = 3) -> Measured:
    """Seconds of reading unique rows and of one VB score of the two-cause model, and of both together."""

    def work() -> tuple[float, float, Any]:
        start = perf_counter()
        table = lk.read(path, unique=True)
        middle = perf_counter()
        score = lk.score(TWO_CAUSES, table, "vb", seed=0)
        return middle - start, perf_counter() - middle, (table, score)

    work()
    runs = [work() for _ in range(repeats)]
    reading, scoring, (table, score) = min(runs, key=lambda run: run[0] + run[1])
    return {
        "seconds": reading + scoring,
        "read": reading,
        "score": scoring,
        "rows": table.n,
        "unique_rows": table.n_rows,
        "log_z": float(score.log_z),
    }


def duckdb_pass(path: Path, repeats: int = 3) -> float:
    """Seconds of one bare pass of DuckDB that groups all rows of a Parquet file."""
    import duckdb

    def work() -> int:
        with duckdb.connect(":memory:") as connection:
            sql = "SELECT y1, y2, y3, y4, count(*) FROM read_parquet(?) GROUP BY ALL"
            return len(connection.execute(sql, [str(path)]).fetchall())

    work()
    return best_of(repeats, work)[0]
