"""What was found out about a set of rows, kept while the next structures are compiled on the same ones."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from lurking.types import BoolArray, CodeArray

Result = TypeVar("Result")

MOST_ROWS = 1 << 12
"""With more rows the work that is saved does not matter, and the memory does."""
MOST_KEYS = 64

_last: list[tuple[weakref.ref[CodeArray], dict[Hashable, Any]]] = []


def remembered(codes: CodeArray, key: Hashable, make: Callable[[], Result]) -> Result:
    """Return what was made for these rows under `key`, making it on first use.

    Only the last array is remembered, and only one that is small and cannot change.
    """
    if codes.flags.writeable or len(codes) > MOST_ROWS:
        return make()
    reference, known = _last[0] if _last else (None, {})
    if reference is None or reference() is not codes:
        known = {}
        weakref.finalize(codes, known.clear)
        _last[:] = [(weakref.ref(codes), known)]
    if key in known:
        found: Result = known[key]
        return found
    if len(known) >= MOST_KEYS:
        known.clear()
    known[key] = made = make()
    return made


def where_unobserved(codes: CodeArray) -> tuple[BoolArray, BoolArray]:
    """Return which columns are unobserved in some row and which in all, (nodes,) each."""

    def look() -> tuple[BoolArray, BoolArray]:
        unobserved = codes < 0
        return np.any(unobserved, axis=0), np.all(unobserved, axis=0)

    return remembered(codes, "unobserved", look)
