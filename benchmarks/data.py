"""Data sets of the benchmark, drawn anew and identically on every run, as CSV files.

``python benchmarks/data.py FOLDER`` writes ``bg_480.csv``, ``bg_10240.csv`` (two hidden binary causes of four
five-valued variables), ``lca_400.csv``, ``lca_10000.csv`` and ``lca_100000.csv`` (four classes, 32 binary items).
Hidden columns are not written. NumPy only: `data_large` makes the files that need more.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Beal and Ghahramani (2006), section 4: "the parameters of the true model". Hidden variables first, then y1 to y4;
# the four rows of y2 and y3 are the parent configurations (s1, s2) = (1,1), (1,2), (2,1), (2,2).
HIDDEN = (np.array([0.12, 0.88]), np.array([0.08, 0.92]))
OBSERVED = {
    "y1": np.array([[0.03, 0.03, 0.64, 0.02, 0.27], [0.18, 0.15, 0.22, 0.19, 0.27]]),
    "y2": np.array(
        [
            [0.10, 0.54, 0.07, 0.14, 0.15],
            [0.04, 0.15, 0.59, 0.05, 0.16],
            [0.20, 0.08, 0.36, 0.17, 0.18],
            [0.19, 0.45, 0.10, 0.09, 0.17],
        ]
    ),
    "y3": np.array(
        [
            [0.11, 0.47, 0.12, 0.30, 0.01],
            [0.27, 0.07, 0.16, 0.25, 0.25],
            [0.52, 0.14, 0.15, 0.02, 0.17],
            [0.04, 0.00, 0.37, 0.33, 0.25],
        ]
    ),
    "y4": np.array([[0.10, 0.08, 0.43, 0.03, 0.36], [0.30, 0.14, 0.07, 0.04, 0.45]]),
}
TWO_CAUSES_ROWS = (480, 10240)
LATENT_CLASS_ROWS = (400, 10000)
MANY_LATENT_CLASS_ROWS = 100_000
CLASSES = 4
ITEMS = 32
GROWTH_CHUNK = 1 << 17


def draw_categories(
    probabilities: NDArray[np.float64], rows: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw one category per entry of ``rows``, from the renormalised table row that the entry points at."""
    cumulative = np.cumsum(probabilities / probabilities.sum(axis=1, keepdims=True), axis=1)
    cumulative[:, -1] = 1.0
    return (rng.random(rows.size)[:, None] >= cumulative[rows]).sum(axis=1)


def two_causes(n: int) -> NDArray[np.int64]:
    """Rows of y1..y4 from s1 -> y1 y2 y3; s2 -> y2 y3 y4; smaller sets are the first rows of the largest."""
    return draw_two_causes(max(n, *TWO_CAUSES_ROWS), np.random.default_rng(0))[:n]


def draw_two_causes(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw n rows of y1..y4 from the published parameters."""
    nothing = np.zeros(n, dtype=np.int64)
    first, second = (draw_categories(prior[None, :], nothing, rng) for prior in HIDDEN)
    parents = {"y1": first, "y2": 2 * first + second, "y3": 2 * first + second, "y4": second}
    return np.column_stack([draw_categories(table, parents[name], rng) for name, table in OBSERVED.items()])


def latent_class(n: int) -> NDArray[np.int64]:
    """Rows of 32 binary items, independent given one of four equally likely classes."""
    rng = np.random.default_rng(1)
    ones = rng.dirichlet((1.0, 1.0), size=(CLASSES, ITEMS))[:, :, 1]
    members = rng.integers(CLASSES, size=max(n, *LATENT_CLASS_ROWS))
    return (rng.random((members.size, ITEMS)) < ones[members]).astype(np.int64)[:n]


def mixed_items(n: int, items: int, classes: int = CLASSES) -> NDArray[np.int8]:
    """Rows of binary items from a latent class model, any number of both, one byte per cell: for growth curves."""
    rng = np.random.default_rng(4)
    ones = rng.uniform(0.1, 0.9, size=(classes, items)).astype(np.float32)
    values = np.empty((n, items), np.int8)
    for begin in range(0, n, GROWTH_CHUNK):
        members = rng.integers(classes, size=min(GROWTH_CHUNK, n - begin))
        values[begin : begin + len(members)] = rng.random((len(members), items), np.float32) < ones[members]
    return values


def write_csv(path: Path, values: NDArray[np.int64], names: list[str]) -> None:
    """Write integer categories under a header line."""
    np.savetxt(path, values, fmt="%d", delimiter=",", header=",".join(names), comments="")


def write_all(folder: Path) -> dict[str, Path]:
    """Write every data set into ``folder`` and return the paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    for n in TWO_CAUSES_ROWS:
        paths[f"bg_{n}"] = folder / f"bg_{n}.csv"
        write_csv(paths[f"bg_{n}"], two_causes(n), list(OBSERVED))
    for n in (*LATENT_CLASS_ROWS, MANY_LATENT_CLASS_ROWS):
        paths[f"lca_{n}"] = folder / f"lca_{n}.csv"
        write_csv(paths[f"lca_{n}"], latent_class(n), [f"x{item + 1}" for item in range(ITEMS)])
    return paths


if __name__ == "__main__":
    for name, path in write_all(Path(sys.argv[1])).items():
        print(f"{name}: {path}")
