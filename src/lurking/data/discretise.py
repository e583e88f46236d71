"""`discretise`: columns of numbers cut into classes, which are levels that say where they begin and end."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lurking.data.column import Column
from lurking.data.cuts import histogram_cuts, quantile_cuts, target_cuts, width_cuts
from lurking.data.files import as_table
from lurking.data.intervals import class_codes, interval_levels
from lurking.data.messages import listed, shown, unknown_column
from lurking.data.table import Table, names_given
from lurking.errors import DataError, LurkingWarning, OptionError, UnknownNameError
from lurking.types import FloatArray

METHODS = ("quantile", "width", "evidence")
DEFAULT_STATES = {"quantile": 4, "width": 4, "evidence": 10}
MOST_STATES = 1000

Rule: TypeAlias = int | str | Sequence[float] | NDArray[Any]
"""How one column is cut: into so many classes, by a method of this name, or at these cut points."""


@dataclass(frozen=True)
class Plan:
    """A rule with everything said: `states` classes (by evidence at most so many), or the given `cuts`."""

    method: str
    states: int
    cuts: tuple[float, ...] = ()


def discretise(
    data: Any,
    columns: Mapping[str, Rule] | Sequence[str] | str | None = None,
    *,
    method: str = "quantile",
    states: int | None = None,
    target: str | None = None,
) -> Table:
    """Return the table with columns of numbers cut into classes.

    Parameters
    ----------
    data
        A table, or anything that makes one.
    columns
        ``{column: rule}``, or names of columns; by default every continuous column. A rule is a number of classes, a
        list of inner cut points, or the name of a method. A categorical column can be named, too, when its levels are
        numbers.
    method
        For columns without a method of their own: ``"quantile"`` makes classes of equal weight, ``"width"`` of equal
        width, and ``"evidence"`` takes the number and the places of the cuts from the data.
    states
        Number of classes of columns without a number of their own (default 4); by evidence the most that are tried
        (default 10).
    target
        A categorical column. Evidence then asks which classes tell most about it, ln p(target | classes); without it,
        which histogram describes the numbers best, ln p(numbers | classes). Rows without a target have no say in it.

    Returns
    -------
    A table with the same rows, weights and missing cells. The levels are texts such as ``< 18.5``, ``[18.5, 25)`` and
    ``>= 25``. They hold the cut points exactly, so a model fitted on them cuts raw numbers by itself.

    Notes
    -----
    Rows count as often as their weight says. Equal numbers are always in one class, so fewer classes than asked for
    can come out; a `LurkingWarning` tells when they do. A column with one distinct number has one class, the whole
    line. See `lurking.data.cuts` for the rules and formulas.
    """
    table = as_table(data)
    plans = _plans(table, columns, method, states)
    _check_target(table, target, plans)
    changed: dict[str, Column] = {}
    for name, plan in plans.items():
        numbers = _numbers(table[name])
        cuts = plan.cuts or _chosen_cuts(table, name, numbers, plan, target)
        codes = class_codes(numbers, cuts).astype(np.int32)
        changed[name] = Column.categorical(name, codes, interval_levels(cuts), declared=True)
    return table.with_columns({name: changed.get(name, table[name]) for name in table.columns})


def _plans(
    table: Table, columns: Mapping[str, Rule] | Sequence[str] | str | None, method: str, states: int | None
) -> dict[str, Plan]:
    """Return the plan of every column that is to be cut."""
    if method not in METHODS:
        raise UnknownNameError("method of discretise", str(method), METHODS)
    most = None if states is None else _checked_states("states=", states)
    if columns is None:
        columns = [name for name in table.columns if not table[name].is_categorical]
        if not columns:
            warnings.warn("discretise found no continuous column, so nothing was cut", LurkingWarning, stacklevel=3)
    rules = columns if isinstance(columns, Mapping) else dict.fromkeys(names_given(columns), method)
    for name in rules:
        if name not in table:
            raise unknown_column("discretise", name, table.columns)
    return {name: _plan(name, rule, method, most) for name, rule in rules.items()}


def _plan(name: str, rule: Rule, method: str, states: int | None) -> Plan:
    """Return what a rule means, given the method and the number of classes for rules that do not name them."""
    where = f"discretise, column {name!r}:"
    if isinstance(rule, str):
        if rule not in METHODS:
            raise UnknownNameError(f"rule for column {name!r}", rule, METHODS)
        return Plan(rule, DEFAULT_STATES[rule] if states is None else states)
    if isinstance(rule, Iterable):
        return Plan(method, 0, _checked_cuts(where, rule))
    return Plan(method, _checked_states(where, rule))


def _checked_states(where: str, given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise OptionError(
            f"{where} {shown(given)} is no rule; give a whole number of classes, a list of cut points, "
            f"or one of {', '.join(METHODS)}"
        )
    if not 2 <= given <= MOST_STATES:
        raise OptionError(f"{where} the number of classes is {shown(given)}; give one from 2 to {MOST_STATES}")
    return int(given)


def _checked_cuts(where: str, given: Iterable[Any]) -> tuple[float, ...]:
    """Return cut points as floats; they must be finite numbers, each larger than the one before."""
    cuts: list[float] = []
    for cut in given:
        number = cut.item() if isinstance(cut, np.generic) else cut
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not -sys.float_info.max <= number <= sys.float_info.max:
            raise OptionError(
                f"{where} the cut point {shown(number)} is not a finite number; correct it or leave it out"
            )
        if cuts and not cuts[-1] < float(number):
            raise OptionError(
                f"{where} the cut point {shown(number)} comes after {shown(cuts[-1])}; "
                "each must be larger than the one before, so sort them and name each once"
            )
        cuts.append(float(number))
    if not cuts:
        raise OptionError(f"{where} the list of cut points is empty; give at least one, or a number of classes")
    return tuple(cuts)


def _check_target(table: Table, target: str | None, plans: Mapping[str, Plan]) -> None:
    """Refuse a target that does not exist, is no category, is itself to be cut, or that no plan would look at."""
    if target is None:
        return
    if target not in table:
        raise unknown_column("target", target, table.columns)
    if target in plans:
        raise OptionError(f"target {target!r} is itself to be cut; cut it first, in a call of its own")
    if not table[target].is_categorical:
        raise DataError(f"target {target!r} is continuous and must be categorical; cut it first, in a call of its own")
    if not any(plan.method == "evidence" and not plan.cuts for plan in plans.values()):
        raise OptionError(f"target {target!r} has a meaning for the rule 'evidence' only; use it or leave target out")


def _numbers(column: Column) -> FloatArray:
    """Return the numbers of a column, shape (n,), NaN where a cell is missing."""
    if not column.is_categorical:
        numbers = column.values
    elif column.n_missing == len(column):
        # An empty column has no numbers and no other values either; cut points can still give it levels.
        numbers = np.full(len(column), np.nan)
    elif all(isinstance(level, int | float) and not isinstance(level, bool) for level in column.levels):
        levels = np.asarray([_as_float(level) for level in column.levels] + [np.nan])
        numbers = levels[column.codes]
    else:
        raise DataError(
            f"column {column.name!r} is categorical already, with the levels {listed(column.levels)}; "
            "only numbers can be cut into classes, leave it out of discretise"
        )
    is_infinite = np.isinf(numbers)
    if is_infinite.any():
        raise DataError(
            f"column {column.name!r}, row {int(np.argmax(is_infinite)) + 1}: an infinite number; "
            "replace it by a finite one or leave the cell empty"
        )
    return numbers


def _as_float(level: Any) -> float:
    try:
        return float(level)
    except OverflowError:
        return np.inf


def _chosen_cuts(table: Table, name: str, numbers: FloatArray, plan: Plan, target: str | None) -> list[float]:
    """Return the cut points that a method finds in the data; tell when fewer classes come out than one would expect."""
    known = table[target] if target is not None and plan.method == "evidence" else None
    counts = ~np.isnan(numbers) & (table.weights > 0)
    if known is not None:
        counts &= known.codes >= 0
    values, weights = numbers[counts], table.weights[counts]
    if len(values) == 0:
        condition = "" if known is None else f" and a known {target!r}"
        raise DataError(
            f"column {name!r} has no row with a number{condition} that counts, so nothing says where to cut; "
            "give cut points or leave it out"
        )
    if known is not None:
        cuts = target_cuts(values, weights, known.codes[counts].astype(np.int64), known.cardinality, plan.states)
    elif plan.method == "evidence":
        cuts = histogram_cuts(values, weights, plan.states)
    elif plan.method == "width":
        cuts = width_cuts(values, plan.states)
    else:
        cuts = quantile_cuts(values, weights, plan.states)
    if not cuts or (plan.method != "evidence" and len(cuts) + 1 < plan.states):
        _tell_of_few_classes(name, plan, len(np.unique(values)), len(cuts) + 1)
    return cuts


def _tell_of_few_classes(name: str, plan: Plan, n_distinct: int, n_classes: int) -> None:
    if n_classes > 1:
        what = f"{n_classes} classes instead of {plan.states}"
        why = f"it has {n_distinct} distinct numbers, and equal ones stay together"
    else:
        what = "one class, which tells nothing"
        why = "it holds one number only" if n_distinct == 1 else "by evidence no cut is worth its price"
    warnings.warn(f"column {name!r} became {what}: {why}", LurkingWarning, stacklevel=4)
