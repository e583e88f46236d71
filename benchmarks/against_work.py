"""The benchmarks of `against`: each is some preparation and a piece of work of about a tenth of a second.

As a program it answers on standard output: for every line with the name of a benchmark, the processor seconds of its
work, all threads together. A line "-" ends it. Only public calls are made, so that the
same benchmarks run on trees whose modules are elsewhere.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Work = Callable[[], Any]
"""What is timed; a number that it returns counts in place of the clock."""
TWO_CAUSES = "s[2] -> y1 y2 y3; t[2] -> y2 y3 y4"


def e_steps(model: str, table: Any, count: int, engine: str) -> Work:
    """Some E-steps of a compiled problem by one engine."""
    import lurking as lk

    fit = lk.fit(model, table, engine=engine, restarts=1, max_iter=1)
    expect, potentials = fit.problem.engine.expect, fit.potentials

    def work() -> None:
        for _ in range(count):
            expect(potentials)

    return work


def enumeration() -> Work:
    """E-steps of a latent class model with ten thousand different rows."""
    from numbers_cases import binary_rows

    return e_steps("class[4] -> *", binary_rows(10_000, 32), 800, "enumeration")


def junction() -> Work:
    """E-steps on a chain of thirty hidden variables."""
    from numbers_cases import binary_rows

    parts = ["h1[2] -> x1", *(f"h{t}[2] -> x{t}; h{t} <- h{t - 1}" for t in range(2, 31))]
    return e_steps("; ".join(parts), binary_rows(200, 30), 160, "junction")


def vb_restarts() -> Work:
    """A VB fit from many starts."""
    import lurking as lk

    return partial(lk.fit, "class[3] -> *", lk.gss82(), restarts=400, seed=0, workers=1)


def em_iterations() -> Work:
    """Whole calls of `fit` with few iterations: what compiling a problem costs."""
    import lurking as lk
    from numbers_cases import two_cause_rows

    table = two_cause_rows(480)
    options: dict[str, Any] = {"method": "ml", "restarts": 1, "max_iter": 20, "tol": 0.0, "accelerate": False}

    def work() -> None:
        for _ in range(180):
            lk.fit(TWO_CAUSES, table, **options)

    return work


def many_fits() -> Work:
    """The VB bounds of many structures, side by side."""
    import lurking as lk
    from numbers_cases import two_cause_rows

    dags = list(lk.bipartite({"s": 2, "t": 2}, ["y1", "y2", "y3", "y4"]))[::2]
    options: dict[str, Any] = {"restarts": 3, "seed": 0, "prune": False, "rescore": False, "workers": 1}
    return partial(lk.compare, dags, two_cause_rows(480), **options)


def complete_search() -> Work:
    """Tabu search on complete rows of alarm; unique rows are found anew."""
    import lurking as lk
    from numbers_cases import alarm_rows

    table = alarm_rows(2000)

    def work() -> None:
        for seed in range(3):
            lk.search(table.select(table.columns), restarts=5, seed=seed, workers=1)

    return work


def structural_em() -> Work:
    """Structural EM with two hidden variables."""
    import lurking as lk
    from numbers_cases import two_cause_rows

    table = two_cause_rows(480)

    def work() -> None:
        for seed in range(3):
            lk.structural_em(table, TWO_CAUSES, restarts=3, perturbations=5, seed=seed, workers=1)

    return work


def direct_search() -> Work:
    """Direct search, fit by fit."""
    import lurking as lk

    table, start = lk.stouffer_toby(), "s[2] -> A B; t[2] -> C D"

    def work() -> None:
        for seed in range(2):
            lk.direct_search(table, start, patience=0, restarts=3, seed=seed, workers=1)

    return work


def annealing() -> Work:
    """Annealed importance sampling."""
    import lurking as lk

    return partial(lk.score, "class[2] -> *", lk.carcinoma(), "ais", passes=20_000, restarts=3, seed=0, workers=1)


def gibbs() -> Work:
    """Gibbs draws of the parameters."""
    import lurking as lk

    problem = lk.Problem("class[3] -> *", lk.gss82())
    return partial(lk.gibbs, problem, chains=2, draws=4000, burn_in=200, seed=0, workers=1)


def laplace() -> Work:
    """Laplace approximations, fits and curvature."""
    import lurking as lk

    def work() -> None:
        for seed in range(4):
            lk.score("class[3] -> *", lk.carcinoma(), "laplace", restarts=4, seed=seed, workers=1)

    return work


def jumps() -> Work:
    """Reversible jumps over structures."""
    import lurking as lk

    options: dict[str, Any] = {"chains": 1, "draws": 300, "burn_in": 50, "seed": 0, "workers": 1}
    return partial(lk.sample_structures, lk.stouffer_toby(), "h[2] -> *", **options)


def predictions() -> Work:
    """Predictions of one column and likelihoods of many rows."""
    import lurking as lk
    from numbers_cases import binary_rows

    rows = binary_rows(10_000, 20)
    network = lk.fit("class[3] -> *", rows, restarts=1, max_iter=3).network

    def work() -> None:
        for _ in range(9):
            network.predict(rows, "x1")
            network.loglik(rows)

    return work


def reading() -> Work:
    """A CSV file read row by row, and its unique rows."""
    import lurking as lk
    from numbers_cases import binary_rows

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "rows.csv"
    binary_rows(10_000, 32).to_frame().to_csv(path, index=False)

    def work(_: Any = folder) -> None:
        lk.read(path)
        lk.read(path, unique=True)

    return work


def cutting() -> Work:
    """Columns of numbers cut by evidence."""
    import lurking as lk

    values = np.random.default_rng(0).normal(size=100_000)
    table = lk.Table.from_columns({"x": values, "y": values > 0.5}, continuous=["x"])

    def work() -> None:
        for _ in range(4):
            lk.discretise(table, {"x": "evidence"})
            lk.discretise(table, {"x": "evidence"}, target="y")

    return work


def imports(names: str, count: int) -> Work:
    """Import the library and some of its names in new processes; they clock themselves, without Python's own start."""
    clock = "import time; began = time.process_time(); import lurking; {}; print(time.process_time() - began)"
    command = [sys.executable, "-c", clock.format(names)]

    def work() -> float:
        return sum(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(count))

    return work


BENCHMARKS: dict[str, Callable[[], Work]] = {
    "e-steps enumeration": enumeration,
    "e-steps junction": junction,
    "vb fit many starts": vb_restarts,
    "short em fits": em_iterations,
    "compare 68 structures": many_fits,
    "complete search": complete_search,
    "structural em": structural_em,
    "direct search": direct_search,
    "ais": annealing,
    "gibbs": gibbs,
    "laplace": laplace,
    "sample structures": jumps,
    "predict": predictions,
    "read": reading,
    "discretise": cutting,
    "import lurking": partial(imports, "pass", 3),
    "import fit": partial(imports, "lurking.fit", 1),
}
"""What is measured, by name."""


def serve() -> None:
    """Answer every name on standard input with the seconds of its work; the first time it is prepared and run once."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever prints must not come between the answers
    prepared: dict[str, Work] = {}
    for line in sys.stdin:
        name = line.strip()
        if name == "-":
            return
        if name not in prepared:
            prepared[name] = BENCHMARKS[name]()
            prepared[name]()
            gc.collect()
            gc.freeze()  # what stays is not gone through again, neither here nor within the work
        work = prepared[name]
        gc.collect()
        began = time.process_time()
        counted = work()
        seconds = counted if isinstance(counted, float) else time.process_time() - began
        answers.write(json.dumps(seconds) + "\n")


if __name__ == "__main__":
    serve()
