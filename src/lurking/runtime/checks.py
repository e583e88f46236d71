"""Rules that numbers among the options of many calls share."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np

from lurking.errors import FractionalWeights, OptionError
from lurking.types import FloatArray


def check_whole(name: str, value: object, least: int) -> int:
    """Return an option as a whole number, refusing what is none or is below `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise OptionError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    return int(value)


def check_time_limit(value: object) -> float | None:
    """Return a time limit in seconds, refusing what is no finite number above 0; None is no limit."""
    if value is None:
        return None
    if not is_positive(value):
        raise OptionError(f"time_limit is {value!r}; it must be a number of seconds above 0, or None")
    return float(value)


def check_standard_error(name: str, value: object, example: float) -> float:
    """Return the standard error that sampling goes on for, refusing what is no finite number above 0."""
    if not is_positive(value):
        raise OptionError(f"{name} is {value!r}; it must be a standard error above 0, for example {example:g}")
    return float(value)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def is_positive(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number above 0."""
    return is_number(value) and value > 0


def check_whole_weights(weights: FloatArray, instead: str) -> None:
    """Raise `FractionalWeights` with the advice `instead` if a weight is not an integer."""
    if not np.array_equal(weights, np.rint(weights)):
        raise FractionalWeights(
            f"sampling needs whole-number weights (a fraction of a row has no hidden state to draw); {instead}"
        )
