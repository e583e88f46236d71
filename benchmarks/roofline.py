"""How near the E-step is to what the machine can do: ``python benchmarks/roofline.py [ROWS]``.

Bytes and operations are counted from the compiled program; beside them stand a plain copy and a plain matrix product,
each on one thread and measured in processes of their own.
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
    memory = cache = operations = 0.0
    for group, states in enumerate(program.states.tolist()):
        rows = int(program.row_begin[group + 1] - program.row_begin[group])
        factors = int(joined.width[group] or program.n_factors[group])
        memory += rows * (4.0 * factors + 8.0)
        cache += rows * 3.0 * 8.0 * states * factors
        operations += rows * (2.0 * states * factors + 3.0 * states + 1.0)
        first, last = int(joined.row_begin[group]), int(joined.row_begin[group + 1])
        parts = int(joined.part_begin[last] - joined.part_begin[first])
        operations += 2.0 * states * parts
    return {"memory_bytes": memory, "cache_bytes": cache, "operations": operations}


def roofline(rows: int = 10**6) -> dict[str, float]:
    """Achieved and possible rates of the latent class E-step with 32 binary items and 4 classes, on one thread."""
    from growth import e_step

    problem = models.latent_class(rows)
    seconds = e_step(problem)
    work = [work_of(program) for program in programs(problem.engine)]
    total = {name: sum(one[name] for one in work) for name in work[0]}
    return {
        "rows": float(rows),
        "seconds": seconds,
        **total,
        "memory_bytes_per_second": total["memory_bytes"] / seconds,
        "cache_bytes_per_second": total["cache_bytes"] / seconds,
        "operations_per_second": total["operations"] / seconds,
        "copy_bytes_per_second": reached(COPY),
        "product_operations_per_second": reached(PRODUCT),
    }


def sentence(bound: dict[str, float]) -> str:
    """One line: the rates, the nearer bound and how far it is."""
    memory = bound["copy_bytes_per_second"] / bound["memory_bytes_per_second"]
    compute = bound["product_operations_per_second"] / bound["operations_per_second"]
    nearer, missed = ("arithmetic", compute) if compute < memory else ("memory", memory)
    return (
        f"roofline, latent class {bound['rows']:.0e} x 32 x 4, one thread: {bound['seconds'] * 1e3:.3g} ms, "
        f"{bound['memory_bytes_per_second'] / 1e9:.3g} GB/s from memory (copy: "
        f"{bound['copy_bytes_per_second'] / 1e9:.3g}), {bound['operations_per_second'] / 1e9:.3g} GFLOP/s (matrix "
        f"product: {bound['product_operations_per_second'] / 1e9:.3g}), "
        f"{bound['cache_bytes_per_second'] / 1e9:.3g} GB/s from cache; nearer is the {nearer} bound, missed by a "
        f"factor of {missed:.2g}"
    )


if __name__ == "__main__":
    print(sentence(roofline(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6)))
