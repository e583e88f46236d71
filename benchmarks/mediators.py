"""Whether search finds a hidden variable between its causes and effects: ``python benchmarks/mediators.py [SEEDS]``.

Each seed draws a table of 1500 rows from `x1 … -> h[2] -> y1 …` with two to four parents and two to four children, all
of two values: p(h given parents) ~ Beta(1/2, 1/2), and the children's two rows from [.05, .3] and [.7, .95]. The
search runs with its default options on one thread. It is right if the evidence of its structure, exact or sampled, is
not below that of the true one by more than two standard errors of the difference.
"""

import sys
from time import process_time

import numpy as np

import lurking as lk

ROWS = 1500


def drawn(seed: int) -> tuple[str, lk.Table]:
    """The true structure and its table."""
    rng = np.random.default_rng(seed)
    n_parents, n_children = rng.integers(2, 5, 2)
    parents = rng.random((ROWS, n_parents)) < rng.uniform(0.3, 0.7, n_parents)
    p_hidden = rng.beta(0.5, 0.5, 2**n_parents)
    hidden = rng.random(ROWS) < p_hidden[parents @ (1 << np.arange(n_parents))]
    low, high = rng.uniform(0.05, 0.3, n_children), rng.uniform(0.7, 0.95, n_children)
    turned = rng.random(n_children) < 0.5
    low, high = np.where(turned, high, low), np.where(turned, low, high)
    children = rng.random((ROWS, n_children)) < np.where(hidden[:, None], high, low)
    names = [f"x{k + 1}" for k in range(n_parents)] + [f"y{k + 1}" for k in range(n_children)]
    text = f"{' '.join(names[:n_parents])} -> h[2] -> {' '.join(names[n_parents:])}"
    return text, lk.Table.from_array(np.hstack([parents, children]).astype(int), columns=names)


def main() -> None:
    seeds = range(*(int(part) for part in sys.argv[1].split(":"))) if len(sys.argv) > 1 else range(100)
    lk.search(drawn(0)[1], hidden="auto", seed=0, workers=1)  # compile kernels first
    right, slowest = 0, 0.0
    for seed in seeds:
        text, table = drawn(seed)
        begin = process_time()
        found = lk.search(table, hidden="auto", seed=0, workers=1)
        seconds = process_time() - begin
        truth = lk.score(text, table, "ais", seed=1)
        error = np.hypot(truth.std_error or 0.0, found.evidence.std_error or 0.0)
        is_right = found.score >= truth.log_z - 2.0 * error
        right, slowest = right + is_right, max(slowest, seconds)
        same = "the same" if found.best.same_structure(lk.Dag.parse(text)) else str(found.best)
        ahead = f"{found.score - truth.log_z:8.2f} ± {error:.2f}  {'ok' if is_right else 'MISS':4}"
        print(f"{seed:3} {seconds:6.1f} s  {ahead}  {text}  ·  {same}", flush=True)
    print(f"the true evidence or more in {right} of {len(seeds)}; slowest {slowest:.1f} s of processor time")


if __name__ == "__main__":
    main()
