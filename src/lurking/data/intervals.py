"""Classes of numbers as levels: half-open intervals written as text, read back exactly, and numbers put into them.

Cut points c_1 < ... < c_{K-1} make the K classes ``< c_1``, ``[c_1, c_2)``, ..., ``>= c_{K-1}``. A cut point is written
with the fewest digits that give back the same floating-point number, so the levels of a column are all that is needed
to cut new numbers as the old ones were cut.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lurking.data.coding import PLAIN_NUMBER
from lurking.data.sources import RawColumn, apply_lookup
from lurking.types import FloatArray, IntArray, Level

WHOLE_LINE = "(-inf, inf)"
"""The only class of a column without a cut point."""

_NUMBER = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_BELOW = re.compile(rf"<\s*{_NUMBER}")
_BETWEEN = re.compile(rf"\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)")
_ABOVE = re.compile(rf">=\s*{_NUMBER}")


def interval_levels(cuts: Sequence[float]) -> tuple[str, ...]:
    """Return the texts of the len(cuts) + 1 classes that strictly increasing, finite cut points make, in order."""
    texts = [_text(cut) for cut in cuts]
    if not texts:
        return (WHOLE_LINE,)
    between = [f"[{low}, {high})" for low, high in pairwise(texts)]
    return (f"< {texts[0]}", *between, f">= {texts[-1]}")


def interval_bounds(levels: Sequence[Level]) -> list[tuple[float, float]] | None:
    """Return (low, high) of each level when all of them together divide the line into half-open intervals, else None.

    The levels may come in any order; the bounds come in the same one.
    """
    bounds: list[tuple[float, float]] = []
    for level in levels:
        pair = _bounds_of(level)
        if pair is None:
            return None
        bounds.append(pair)
    ordered = sorted(bounds)
    ends = [-math.inf, *(high for _, high in ordered)]
    starts = [*(low for low, _ in ordered), math.inf]
    return bounds if ends == starts and all(low < high for low, high in bounds) else None


def class_codes(values: FloatArray, cuts: Sequence[float] | FloatArray) -> IntArray:
    """Return the class of each number, shape (n,): how many cut points are at or below it; NaN becomes -1."""
    codes = np.searchsorted(np.asarray(cuts, dtype=np.float64), values, side="right")
    codes[np.isnan(values)] = -1
    return codes


def with_numbers_in_intervals(raw: RawColumn, levels: Sequence[Level]) -> RawColumn:
    """Return the column with each number replaced by the level it falls into.

    Numbers written as text count as numbers. All other values stay, and so does the column as a whole when the levels
    are not a complete set of intervals.
    """
    bounds = interval_bounds(levels)
    if bounds is None:
        return raw
    lows = np.asarray([low for low, _ in bounds])
    order = np.argsort(lows)
    numbers = np.asarray([_number(value) for value in raw.distinct], dtype=np.float64)
    places = class_codes(numbers, lows[order][1:])
    is_number = places >= 0
    others = [value for value, known in zip(raw.distinct, is_number, strict=True) if not known]
    lookup = np.empty(len(numbers), dtype=np.int64)
    lookup[is_number] = order[places[is_number]]
    lookup[~is_number] = len(levels) + np.arange(len(others))
    return RawColumn(raw.name, apply_lookup(raw.codes, lookup), [*levels, *others])


def _text(cut: float) -> str:
    # Adding zero makes -0.0 the same text as 0.0.
    return repr(float(cut) + 0.0).removesuffix(".0")


def _bounds_of(level: Level) -> tuple[float, float] | None:
    """Return the bounds that one level spells, or None."""
    if not isinstance(level, str):
        return None
    if level == WHOLE_LINE:
        return -math.inf, math.inf
    pair: tuple[float, float] | None = None
    if found := _BELOW.fullmatch(level):
        pair = (-math.inf, _finite(found[1]))
    elif found := _ABOVE.fullmatch(level):
        pair = (_finite(found[1]), math.inf)
    elif found := _BETWEEN.fullmatch(level):
        pair = (_finite(found[1]), _finite(found[2]))
    return pair


def _finite(text: str) -> float:
    """Return the number a text spells, or NaN, which no interval contains, when it is infinite."""
    number = float(text)
    return number if math.isfinite(number) else math.nan


def _number(value: object) -> float:
    """Return the value as a number, or NaN when it is none; True and False are none."""
    if isinstance(value, str):
        return _finite(value) if PLAIN_NUMBER.fullmatch(value.strip()) else math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
