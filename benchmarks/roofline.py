"""How near the E-step is to what the machine can do: ``python benchmarks/roofline.py [ROWS]``.

Bytes and operations are counted from the compiled program; beside them stand a plain copy and a plain matrix product,
each on one thread and measured in processes of their own. The plain operations are those of the same E-step without
joint tables, one multiplication and one addition for every row, column and class: joining does less, and what it
replaces is what the machine's arithmetic is held against.
"""

import os
import subprocess
import sys
from typing import Any

import growth_models as models

COPY = """
import numpy as np
from time import perf_counter
source = np.ones(1 << 26)
target = np.empty_like(source)
np.copyto(target, source)
best = float("inf")
for _ in range(5):
    start = perf_counter()
    np.copyto(target, source)
    best = min(best, perf_counter() - start)
print(2 * source.nbytes / best)
"""
PRODUCT = """
import numpy as np
from time import perf_counter
size = 1500
left, right = np.random.default_rng(0).random((2, size, size))
left @ right
best = float("inf")
for _ in range(5):
    start = perf_counter()
    left @ right
    best = min(best, perf_counter() - start)
print(2 * size**3 / best)
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def reached(script: str) -> float:
    """What a small script in a process with one linear-algebra thread prints."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    return float(done.stdout)


def programs(engine: Any) -> list[Any]:
    """The compiled programs of an engine, one for each block of rows."""
    pieces = getattr(engine, "pieces", None)
    return [engine.program] if pieces is None else [piece.program for piece in pieces]


def work_of(program: Any) -> dict[str, float]:
    """Bytes from memory, bytes from cache and operations of one E-step, counted from the compiled program.

    A row reads its slots (4 bytes per factor or joint factor) and its weight (8) from memory. From cache it reads one
    S-vector per factor, and reads and writes one to add its masses. It multiplies S numbers per factor, adds S per
    factor, and has S − 1 additions, one division, S scalings, S additions to the total and one product beside. Joint
    rows are multiplied out and handed down once: S numbers per part, twice.
    """
    joined = program.joined
    memory = cache = operations = plain = 0.0
    for group, states in enumerate(program.states.tolist()):
        rows = int(program.row_begin[group + 1] - program.row_begin[group])
        factors = int(joined.width[group] or program.n_factors[group])
        memory += rows * (4.0 * factors + 8.0)
        cache += rows * 3.0 * 8.0 * states * factors
        operations += rows * (2.0 * states * factors + 3.0 * states + 1.0)
        first, last = int(joined.row_begin[group]), int(joined.row_begin[group + 1])
        parts = int(joined.part_begin[last] - joined.part_begin[first])
        operations += 2.0 * states * parts
        plain += rows * (2.0 * states * int(program.n_factors[group]) + 3.0 * states + 1.0)
    return {"memory_bytes": memory, "cache_bytes": cache, "operations": operations, "plain_operations": plain}


SHAPES = ((32, 4), (32, 16), (32, 64), (200, 4), (200, 16))
"""Binary columns and classes; the rows are divided so that every shape has about the same work."""


def roofline(rows: int = 10**6, columns: int = 32, classes: int = 4) -> dict[str, float]:
    """Achieved and possible rates of the E-step of a latent class model on one thread."""
    from growth import e_step

    problem = models.latent_class(rows, columns, classes)
    seconds = e_step(problem)
    work = [work_of(program) for program in programs(problem.engine)]
    total = {name: sum(one[name] for one in work) for name in work[0]}
    return {
        "rows": float(rows),
        "columns": float(columns),
        "classes": float(classes),
        "seconds": seconds,
        **{f"{name}_per_second": amount / seconds for name, amount in total.items()},
    }


def sentence(bound: dict[str, float]) -> str:
    """One line: the rates beside what a copy and a matrix product reach."""
    share = bound["plain_operations_per_second"] / bound["product_operations_per_second"]
    rates = {name.removesuffix("_per_second"): f"{rate / 1e9:.3g}" for name, rate in bound.items()}
    return (
        f"roofline, latent class {bound['rows']:.3g} x {bound['columns']:.0f} x {bound['classes']:.0f}, one thread: "
        f"{bound['seconds'] * 1e3:.3g} ms; plain operations at {rates['plain_operations']} GFLOP/s, {share:.2f} of a "
        f"matrix product ({rates['product_operations']}); done are {rates['operations']} GFLOP/s with "
        f"{rates['cache_bytes']} GB/s from cache and {rates['memory_bytes']} GB/s from memory (copy: "
        f"{rates['copy_bytes']})"
    )


def all_shapes(most_rows: int) -> list[dict[str, float]]:
    """Measure and print every shape."""
    possible = {"copy_bytes_per_second": reached(COPY), "product_operations_per_second": reached(PRODUCT)}
    found = []
    for columns, classes in SHAPES:
        rows = most_rows * 128 // (columns * classes)
        found.append({**roofline(rows, columns, classes), **possible})
        print(sentence(found[-1]), flush=True)
    return found


if __name__ == "__main__":
    all_shapes(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6)
