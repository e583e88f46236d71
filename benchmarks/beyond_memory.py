"""A Parquet file larger than the memory allowed: ``python beyond_memory.py FILE [1GB]`` prints one JSON line.

It runs in a process of its own, because it tells the most memory the process ever took: anonymous memory (RssAnon,
sampled), which the system cannot drop, and VmHWM, which counts the pages of mapped files too.
"""

import json
import sys
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import lurking as lk
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions

CLASSES = 4
FIT_ITERATIONS = 3
SAMPLE_SECONDS = 0.02


def status_bytes(field: str) -> int:
    """One entry of this process's status, 0 where the system has none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), 0)


class Watch:
    """Times stages and samples anonymous memory from a thread; `peaks` holds the most of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peaks: dict[str, int] = {}
        self.stage = "start"
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def sample(self) -> None:
        """Look at the memory until told to stop."""
        while not self.over.wait(SAMPLE_SECONDS):
            self.look()

    def look(self) -> None:
        """Remember the memory of this moment."""
        stage = self.stage
        self.peaks[stage] = max(self.peaks.get(stage, 0), status_bytes("RssAnon"))

    def time(self, stage: str, work: Any) -> Any:
        """Do the work of one stage."""
        self.stage = stage
        start = perf_counter()
        result = work()
        self.seconds[stage] = perf_counter() - start
        self.look()
        return result


def warm_up() -> None:
    """Load every compiled function before the clock starts."""
    small = lk.Problem(f"class[{CLASSES}] -> *", np.random.default_rng(0).integers(2, size=(600, 12)))
    small.engine.expect(np.log(np.full(small.layout.size, 0.5)))
    lk.fit(small.full_dag, small.table, restarts=1, max_iter=2)


def main(path: str, memory: str = "1GB") -> None:
    """Read, compile, make one E-step and a fit of a few iterations."""
    warm_up()
    watch = Watch()
    watch.look()
    table = watch.time("read", lambda: lk.read(path, unique=True, memory=memory))
    problem = watch.time("construct", lambda: lk.Problem(f"class[{CLASSES}] -> *", table))
    engine = watch.time("compile", lambda: problem.engine)
    potentials = np.log(problem.layout.normalise(np.random.default_rng(0).uniform(0.5, 1.0, problem.layout.size)))
    watch.time("first E-step", lambda: engine.expect(potentials))
    watch.time("E-step", lambda: engine.expect(potentials))
    # The problem that is compiled already: `lk.fit` would compile it anew, and write its blocks a second time.
    options = FitOptions(restarts=1, max_iter=FIT_ITERATIONS, tol=0.0, accelerate=False)
    fit = watch.time(f"fit, {FIT_ITERATIONS} iterations", lambda: fit_problem(problem, "ml", options))
    watch.over.set()
    watch.thread.join()
    record = {
        "file_bytes": Path(path).stat().st_size,
        "memory": memory,
        "rows": table.n_rows,
        "columns": len(table.columns),
        "is_on_disk": bool(table.is_on_disk),
        "seconds": watch.seconds,
        "anonymous_bytes": watch.peaks,
        "peak_anonymous_bytes": max(watch.peaks.values()),
        "peak_resident_bytes": status_bytes("VmHWM"),
        "objective": float(fit.objective),
    }
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
