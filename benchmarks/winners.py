"""Whether compare declares the right winner: ``python benchmarks/winners.py [--tables DIR] [--starts 2000]``.

For each table `class[2..10] -> *` is compared by vb with the prior bdeu:1, once with restarts="auto" and once with
many random starts for every model. A winner is right if its bound is at most 2 nats below the best bound that the many
starts find for any model. A wrong winner must be marked as not settled. ``--tables`` adds the CSV files of a folder,
such as the zoo data of the PyPI package Orange3, to the made tables; columns of numbers are cut into three bins.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

import lurking as lk

MODELS = "class[2..10] -> *"
SHAPES = [
    (n, columns, groups, levels, noise)
    for n, columns in ((100, 10), (100, 16), (100, 40), (200, 12), (200, 24), (300, 16), (500, 12), (500, 30))
    for groups, levels, noise in ((3, 2, 0.2), (6, 2, 0.05), (9, 2, 0.1), (5, 4, 0.15))
]
NEAR = 2.0


def made(seed: int, n: int, columns: int, groups: int, levels: int, noise: float) -> lk.Table:
    """A table of noisy copies of one typical row for each group; a tenth of the tables' cells are empty where odd."""
    rng = np.random.default_rng(seed)
    typical = rng.integers(0, levels, (groups, columns))
    group = rng.choice(groups, n, p=rng.dirichlet(np.ones(groups)))
    values = np.where(rng.random((n, columns)) < noise, rng.integers(0, levels, (n, columns)), typical[group])
    empty = rng.random((n, columns)) < (0.1 if seed % 2 else 0.0)
    rows = [
        tuple(None if lost else int(value) for value, lost in zip(*pair, strict=True))
        for pair in zip(values, empty, strict=True)
    ]
    return lk.Table.from_rows(rows, [f"y{k}" for k in range(columns)])


def is_number(levels: tuple[object, ...]) -> bool:
    """True if a column has many levels, all of them numbers."""
    return len(levels) > 10 and all(isinstance(level, int | float) for level in levels)


def tables(folder: Path | None) -> Iterator[tuple[str, lk.Table]]:
    """The tables of a folder, then the made ones, with their names."""
    for path in sorted(folder.glob("*.csv")) if folder else []:
        table = lk.read(path)
        numbers = [name for name in table.columns if not table[name].is_categorical or is_number(table[name].levels)]
        table = lk.read(path, continuous=numbers)
        yield path.stem, lk.discretise(table, dict.fromkeys(numbers, 3)) if numbers else table
    for seed, shape in enumerate(SHAPES):
        yield "made " + " ".join(map(str, shape)), made(seed, *shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--starts", type=int, default=2000)
    chosen = parser.parse_args()
    right = honest = count = 0
    options = {"prior": lk.Prior.bdeu(1.0), "scores": ["vb"], "rescore": False, "seed": 0, "workers": 1}
    print(
        f"{'table':32} {'auto s':>7} {'starts s':>8} {'10 starts':>10} {'auto':>10} {'many':>10} {'below':>7}  settled"
    )
    for name, table in tables(chosen.tables):
        lk.compare(MODELS, table, restarts=1, max_iter=2, **options)  # compile kernels first
        ten = lk.compare(MODELS, table, restarts=10, **options).posterior.best.evidence.log_z
        begin = perf_counter()
        auto = lk.compare(MODELS, table, restarts="auto", **options)
        middle = perf_counter()
        many = lk.compare(MODELS, table, restarts=chosen.starts, **options).posterior.best.evidence.log_z
        end = perf_counter()
        best = auto.posterior.best
        is_settled, below = best.name not in auto.unsettled, many - best.evidence.log_z
        count, right = count + 1, right + (below <= NEAR)
        honest += below <= NEAR or not is_settled
        print(
            f"{name:32} {middle - begin:7.2f} {end - middle:8.1f} {ten:10.2f} {best.evidence.log_z:10.2f} {many:10.2f} "
            f"{below:7.2f}  {is_settled}",
            flush=True,
        )
    print(f"within {NEAR:g} nats: {right} of {count}; within them or marked as not settled: {honest} of {count}")


if __name__ == "__main__":
    main()
