"""What a family returns, looked at once for each node before anything is computed with it."""

from __future__ import annotations

import math

import numpy as np

from lurking.errors import FamilyError
from lurking.models.families.base import Cells, Family, Scope
from lurking.types import FloatArray, IntArray

MOST_VALUES = 5
"""Different values of a column at which cells are tried."""


def check_family(family: Family, scope: Scope) -> None:
    """Raise `FamilyError` if the arrays of a family have the wrong size, or contain what no computation can use."""
    who = f"the family {family.name!r} of {scope.name!r}"
    shape = family.shape(math.prod(scope.parents))
    if not (isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(n, int | np.integer) for n in shape)):
        raise FamilyError(f"{who} has the shape {shape!r}; it must be (rows, size of a row)")
    n_rows, width = shape
    block = family.block(n_rows)
    if not np.array_equal(block.row_start, width * np.arange(n_rows + 1)):
        raise FamilyError(f"{who} has {n_rows} rows of {width} entries, and its block has rows at {block.row_start}")
    size = n_rows * width
    prior = _checked(family.prior(n_rows), (size,), f"prior of {who}")
    with np.errstate(all="ignore"):
        constant = block.log_normaliser(prior)
    if not (np.ndim(constant) == 0 and math.isfinite(constant)):
        raise FamilyError(f"the log normaliser of {who} is {constant} at its prior; it must be one finite number")
    start = _checked(family.start(n_rows, np.random.default_rng(0)), (size,), f"start of {who}")
    levels = np.asarray(scope.column.levels[:MOST_VALUES] if family.has_values else [0.0], np.float64)
    if family.has_values:
        every = np.asarray([*scope.column.levels, math.nan], np.float64)
        base = _checked(family.log_base(every), every.shape, f"log_base of {who}")
        if base[-1] != 0.0:
            raise FamilyError(f"the log_base of {who} is {base[-1]} for a missing value (NaN); it must be 0")
    places = _places(len(levels), len(scope.parents), levels)
    _checked(family.cells(start, places), levels.shape, f"cells of {who}")
    _checked(family.statistics(start, places, np.ones(len(levels))), (size,), f"statistics of {who}")


def _places(count: int, n_parents: int, values: FloatArray) -> Cells:
    """Return places with all parents and the node at their first state."""
    zeros: IntArray = np.zeros(count, np.int64)
    return Cells(zeros, np.zeros((count, n_parents), np.int64), zeros, values)


def _checked(given: object, shape: tuple[int, ...], what: str) -> FloatArray:
    """Return an array of the given shape and finite numbers."""
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise FamilyError(f"the {what} is {type(given).__name__}; it must be an array of numbers") from None
    if array.shape != shape:
        raise FamilyError(f"the {what} has shape {array.shape}; it must have {shape}")
    if not np.all(np.isfinite(array)):
        raise FamilyError(f"the {what} contains {array[~np.isfinite(array)][0]}; it must be finite")
    return array
