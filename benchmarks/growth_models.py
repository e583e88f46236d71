"""Problems of growing size for `growth`: each function returns a compiled lurking problem."""

import numpy as np
from numpy.typing import NDArray

import lurking as lk
from data import mixed_items

ITEMS = 32
CLASSES = 4


def binary_table(values: NDArray[np.int8]) -> lk.Table:
    """A table of binary columns x1, x2, ..."""
    return lk.Table.from_codes({f"x{k + 1}": (column, (0, 1)) for k, column in enumerate(values.T)})


def latent_class(rows: int, items: int = ITEMS, classes: int = CLASSES) -> lk.Problem:
    """A latent class model; with 32 items nearly all rows are different."""
    return lk.Problem(f"class[{classes}] -> *", binary_table(mixed_items(rows, items)))


def different_rows(different: int, rows: int) -> lk.Problem:
    """A latent class model over ``rows`` rows of which ``different`` are different."""
    chosen = np.concatenate([np.arange(different), np.random.default_rng(6).integers(different, size=rows - different)])
    return lk.Problem(f"class[{CLASSES}] -> *", binary_table(mixed_items(different, ITEMS)[chosen]))


def chain(length: int, width: int, rows: int) -> lk.Problem:
    """A chain of binary hidden variables with an observed child each; a node's parents are the ``width`` before it."""
    parts = [f"h{t}[2] -> x{t}" for t in range(1, length + 1)]
    for t in range(2, length + 1):
        parents = " ".join(f"h{s}" for s in range(max(1, t - width), t))
        parts.append(f"h{t} <- {parents}")
    rng = np.random.default_rng(7)
    return lk.Problem("; ".join(parts), binary_table(rng.integers(2, size=(rows, length), dtype=np.int8)))
