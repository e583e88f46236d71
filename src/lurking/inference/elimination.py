"""Marginals of a few variables by variable elimination."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lurking.errors import TooLarge
from lurking.runtime.memory import in_words, is_affordable
from lurking.types import FloatArray

LABELS = 52  # what one einsum call can name


class Factor(NamedTuple):
    """A table with one axis per variable of its scope."""

    table: FloatArray
    scope: tuple[str, ...]


def eliminate(factors: list[Factor], keep: tuple[str, ...]) -> FloatArray:
    """Return Σ over all variables but `keep` of the product of the factors, axes in the order of `keep`.

    The next variable to go is the one whose removal leaves the smallest table; the first of equals.
    """
    work = list(factors)
    sizes = {name: size for f in work for name, size in zip(f.scope, f.table.shape, strict=True)}
    waiting = [name for name in sizes if name not in keep]
    while waiting:
        scopes = {name: _joint_scope([f for f in work if name in f.scope], name) for name in waiting}
        name = min(waiting, key=lambda v: (math.prod(sizes[u] for u in scopes[v]), waiting.index(v)))
        touched = [f for f in work if name in f.scope]
        work = [f for f in work if name not in f.scope] + [_multiply(touched, scopes[name], sizes)]
        waiting.remove(name)
    return _multiply(work, keep, sizes).table


def _joint_scope(factors: list[Factor], without: str) -> tuple[str, ...]:
    """Return the variables of several factors but one, in order of appearance."""
    return tuple(dict.fromkeys(name for f in factors for name in f.scope if name != without))


def _multiply(factors: list[Factor], scope: tuple[str, ...], sizes: dict[str, int]) -> Factor:
    """Return the product of factors summed down to `scope`."""
    names = list(dict.fromkeys([*scope, *(name for f in factors for name in f.scope)]))
    need = 8 * math.prod(sizes[name] for name in names)
    if len(names) > LABELS or not is_affordable(need):
        raise TooLarge(
            f"the joint distribution needs a table over {len(names)} variables, {in_words(float(need))}; "
            "ask for fewer variables at once"
        )
    label = {name: i for i, name in enumerate(names)}
    operands: list[Any] = []
    for f in factors:
        operands += [f.table, [label[name] for name in f.scope]]
    if not operands:
        return Factor(np.ones(()), ())
    table = np.einsum(*operands, [label[name] for name in scope], optimize="greedy")
    return Factor(np.asarray(table, np.float64), scope)
