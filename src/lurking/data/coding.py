"""The coding rule: which columns are categorical, what their levels are and in which order.

Text, bool and integer columns, and floats with only integral values and at most 20 distinct ones, are categorical:
numbers ascending (integral floats become integers), text sorted, category dtypes in their own order. Other floats are
continuous. ``categorical=``, ``continuous=`` and ``levels=`` override the rule.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lurking.data.column import Column
from lurking.data.messages import listed, shown, unknown_column
from lurking.data.sources import RawColumn, apply_lookup, is_missing, raw_from_numpy, raw_from_values
from lurking.errors import DataError, LurkingWarning
from lurking.types import FloatArray, Level

MOST_INTEGRAL_FLOATS = 20
EMPTY_LEVEL = "(empty)"
LARGEST_COUNT = 1e9
"""Beyond it the logarithm of a probability has too few digits."""

# More digits than Python turns into an integer by itself are left to the float rule, which refuses them.
STRAY_SHARE = 0.1
CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,3999}")
# Leading zeros are refused: "01" is a code, not a number, and must not become the same level as "1".
PLAIN_NUMBER = re.compile(r"[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Coding:
    """How the columns of one table are to be coded.

    Attributes
    ----------
    levels : declared levels by column
    categorical, continuous, count : names whose kind is forced
    drop : names that are left out
    is_text : the source is a text file, so numbers are still text and a blank cell is missing
    missing_texts : texts that stand for a missing cell
    optional : names with declared levels that need not exist
    """

    levels: Mapping[str, Sequence[Level]] = field(default_factory=dict)
    categorical: frozenset[str] = frozenset()
    continuous: frozenset[str] = frozenset()
    count: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    is_text: bool = False
    missing_texts: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    @classmethod
    def from_options(
        cls,
        levels: Mapping[str, Sequence[Level]] | None = None,
        categorical: Iterable[str] = (),
        continuous: Iterable[str] = (),
        drop: Iterable[str] = (),
        count: Iterable[str] = (),
    ) -> Coding:
        """Return the coding that a user's options describe; contradictions are a `DataError`."""
        if levels is not None and not isinstance(levels, Mapping):
            raise DataError(f"levels= is {shown(levels)}; give the levels of each column, such as {{'a': [0, 1]}}")
        declared = {name: checked_levels(name, given) for name, given in (levels or {}).items()}
        coding = cls(
            declared,
            names_of("categorical=", categorical),
            names_of("continuous=", continuous),
            names_of("count=", count),
            names_of("drop=", drop),
        )
        for name in sorted(coding.count & (coding.categorical | coding.continuous | declared.keys()), key=str):
            raise DataError(
                f"column {name!r} is given in count= and also in categorical=, continuous= or levels=; keep only one"
            )
        for name in sorted(coding.continuous & (coding.categorical | declared.keys()), key=str):
            raise DataError(
                f"column {name!r} is given in continuous= and also in categorical= or levels=; keep only one of them"
            )
        return coding

    def check_names(self, columns: Collection[str]) -> None:
        """Raise a `DataError` for an option that names a column which does not exist."""
        for where, names in (
            ("levels", self.levels),
            ("categorical", self.categorical),
            ("continuous", self.continuous),
            ("count", self.count),
            ("drop", self.drop),
        ):
            for name in names:
                if name not in columns and name not in self.optional:
                    raise unknown_column(where, name, columns)


def names_of(where: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names as a set; one name alone is accepted without a list around it."""
    if isinstance(names, str):
        return frozenset([names])
    if not isinstance(names, Iterable):
        raise DataError(f"{where} is {shown(names)}; give a list of column names")
    given = tuple(names)
    for name in given:
        if not isinstance(name, str):
            raise DataError(f"{where} contains {shown(name)}; a column name is text")
    return frozenset(given)


def checked_levels(name: str, given: Sequence[Level]) -> tuple[Level, ...]:
    """Return declared levels as a tuple of plain values; none, missing or repeated ones are a `DataError`."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DataError(f"levels= of column {name!r} is {shown(given)}; give a list with all states of the column")
    levels = tuple(level.item() if isinstance(level, np.generic) else level for level in given)
    if not levels:
        raise DataError(f"levels= of column {name!r} is empty; give at least one level")
    for level in levels:
        if is_missing(level) or not isinstance(level, str | int | float):
            raise DataError(
                f"levels= of column {name!r} contains {shown(level)}; a level is text, a number, True or False, "
                "and a missing cell is not a level"
            )
    repeated = [level for level in levels if levels.count(level) > 1] if len(set(levels)) < len(levels) else []
    if repeated:
        raise DataError(
            f"levels= of column {name!r} contains {shown(repeated[0])} more than once; list each level once"
        )
    return levels


def check_column_names(names: Iterable[object]) -> tuple[str, ...]:
    """Return the names; one that is not text or is empty, or occurs twice, is a `DataError`."""
    checked: list[str] = []
    for position, name in enumerate(names, start=1):
        if not isinstance(name, str):
            raise DataError(
                f"the name of column {position} is {shown(name)}, which is not text; rename the columns, "
                "for example with frame.columns = [str(name) for name in frame.columns]"
            )
        if not name.strip():
            raise DataError(f"the name of column {position} is empty; give every column a name")
        checked.append(str(name))
    repeated = sorted({name for name in checked if checked.count(name) > 1}) if len(set(checked)) < len(checked) else []
    if repeated:
        raise DataError(f"column names occur more than once: {listed(repeated)}; every column needs its own name")
    return tuple(checked)


def code_column(raw: RawColumn, coding: Coding) -> Column:
    """Return the column that the rule, or the user's word, makes of raw values."""
    name = raw.name
    raw = without_missing_texts(raw, coding)
    if name in coding.levels:
        return code_by_levels(raw, tuple(coding.levels[name]), coding.is_text)
    if len(raw.distinct) == 0:
        return code_empty(raw, coding)
    if coding.is_text:
        raw = with_parsed_numbers(raw)
    if name in coding.continuous:
        return Column.continuous(name, as_numbers(raw), declared=True)
    if name in coding.count:
        return code_counts(raw)
    check_one_family(raw)
    if raw.is_category:
        return Column.categorical(name, raw.codes.astype(np.int32), tuple(raw.distinct), declared=True)
    declared = name in coding.categorical
    if not isinstance(raw.distinct, list) or any(type(value) is float for value in raw.distinct):
        return code_floats(raw, declared=declared)
    if coding.is_text and not declared:
        warn_of_stray_text(raw)
    levels = sorted(set(raw.distinct))
    index_of = {level: index for index, level in enumerate(levels)}
    codes = apply_lookup(raw.codes, [index_of[value] for value in raw.distinct])
    return Column.categorical(name, codes.astype(np.int32), tuple(levels), declared=declared)


def warn_of_stray_text(raw: RawColumn) -> None:
    """Warn when nearly all cells of a text column of a file spell numbers: the others are probably slips."""
    strays = [k for k, value in enumerate(raw.distinct) if not PLAIN_NUMBER.fullmatch(str(value).strip())]
    if not strays or len(strays) == len(raw.distinct):
        return
    cells = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.distinct))
    if cells[strays].sum() <= STRAY_SHARE * cells.sum():
        warnings.warn(
            f"column {raw.name!r} is taken as text because of {shown(raw.distinct[strays[0]])} in row "
            f"{raw.first_row(strays[0])}; if that is a slip, correct it or name it as a missing value",
            LurkingWarning,
            stacklevel=2,
        )


def code_floats(raw: RawColumn, *, declared: bool) -> Column:
    """Code numbers of which at least one is a float; `declared` makes them categorical whatever they are."""
    numbers, inverse = np.unique(finite_numbers(raw), return_inverse=True)
    is_integral = bool(np.all(numbers == np.floor(numbers)))
    if not declared and not (is_integral and len(numbers) <= MOST_INTEGRAL_FLOATS):
        return Column.continuous(raw.name, as_numbers(raw), declared=False)
    levels = tuple(int(number) if is_integral else number for number in numbers.tolist())
    return Column.categorical(raw.name, apply_lookup(raw.codes, inverse).astype(np.int32), levels, declared=declared)


def code_counts(raw: RawColumn) -> Column:
    """Return a column of counts (integers >= 0), coded by the different ones that occur."""
    numbers, inverse = np.unique(finite_numbers(raw), return_inverse=True)
    wrong = (numbers < 0.0) | (numbers != np.floor(numbers)) | (numbers > LARGEST_COUNT)
    if wrong.any():
        index = int(np.flatnonzero(wrong[inverse])[0])
        raise DataError(
            f"column {raw.name!r}, row {raw.first_row(index)}: {shown(plain_number(raw.distinct[index]))} is not a "
            f"count; a count must be an integer from 0 to {LARGEST_COUNT:.0e}"
        )
    codes = apply_lookup(raw.codes, inverse).astype(np.int32)
    return Column.count(raw.name, codes, tuple(int(number) for number in numbers.tolist()))


def code_empty(raw: RawColumn, coding: Coding) -> Column:
    """Code a column in which every cell is missing."""
    if raw.name in coding.count:
        return Column.count(raw.name, raw.codes.astype(np.int32), ())
    if raw.name in coding.continuous:
        return Column.continuous(raw.name, np.full(len(raw.codes), np.nan), declared=True)
    if len(raw.codes) == 0:
        raise DataError(
            f"column {raw.name!r} has no rows and no declared levels; declare its states with levels=, "
            "or name it in continuous="
        )
    warnings.warn(
        f"column {raw.name!r} is entirely empty and tells nothing; declare levels=, leave it out with drop=, "
        "or make it a hidden variable",
        LurkingWarning,
        stacklevel=2,
    )
    return Column.categorical(
        raw.name, raw.codes.astype(np.int32), (EMPTY_LEVEL,), declared=raw.name in coding.categorical
    )


def code_by_levels(raw: RawColumn, levels: tuple[Level, ...], is_text: bool = False) -> Column:
    """Code values by a given list of levels.

    A value is matched by equality, then by its text form, and in a text file at last by the number it spells. A value
    that occurs in a row and matches nothing is a `DataError`; an unused category that matches nothing is forgotten.
    """
    index_of = {level: index for index, level in enumerate(levels)}
    index_of_text: dict[str, int] = {}
    for index, level in enumerate(levels):
        index_of_text.setdefault(str(level), index)
    values = [plain_number(value) for value in raw.distinct]
    lookup: list[int] = []
    unmatched: list[int] = []
    for position, value in enumerate(values):
        index = index_of.get(value, index_of_text.get(str(value), -1))
        if index < 0 and is_text and PLAIN_NUMBER.fullmatch(value.strip()):
            index = index_of.get(float(value), -1)
        if index < 0:
            unmatched.append(position)
        lookup.append(index)
    seen = np.isin(unmatched, raw.codes)
    if seen.any():
        row, value = min((raw.first_row(unmatched[place]), values[unmatched[place]]) for place in np.flatnonzero(seen))
        raise DataError(
            f"column {raw.name!r}, row {row}: {shown(value)} is not a declared level; declared are: {listed(levels)}; "
            "add it to levels= or correct the cell"
        )
    return Column.categorical(raw.name, apply_lookup(raw.codes, lookup).astype(np.int32), levels, declared=True)


def code_weights(raw: RawColumn, *, is_text: bool = False) -> FloatArray:
    """Return row weights of shape (n,); each must be a finite number, zero or more."""

    def refuse(row: int, what: str) -> DataError:
        return DataError(
            f"the weight in row {row} of {raw.name!r} is {what}; a weight is a finite number, zero or more"
        )

    if is_text:
        raw = without_missing_texts(raw, Coding(is_text=True))
    if (raw.codes < 0).any():
        raise refuse(raw.first_row(-1), "missing")
    numbers: list[float] = []
    bad: list[tuple[int, Any]] = []
    used = np.zeros(len(raw.distinct), dtype=bool)
    used[raw.codes] = True
    for index, value in enumerate(raw.distinct):
        number = value
        if is_text and PLAIN_NUMBER.fullmatch(value.strip()):
            number = float(value)
        if isinstance(number, int | float) and 0 <= number <= sys.float_info.max:
            numbers.append(float(number))
        else:
            numbers.append(math.nan)
            if used[index]:
                bad.append((raw.first_row(index), plain_number(value)))
    if bad:
        row, value = min(bad, key=lambda pair: pair[0])
        raise refuse(row, shown(value))
    return np.asarray(numbers, dtype=np.float64)[raw.codes]


def kept_names(names: Sequence[str], coding: Coding, weights: object) -> list[str]:
    """Return the columns of a table to be made, those neither dropped nor weights, after checking every name."""
    coding.check_names(names)
    left_out = coding.drop
    if isinstance(weights, str):
        if weights not in names:
            raise unknown_column("weights", weights, names)
        if weights in coding.drop:
            raise DataError(f"column {weights!r} is given in weights= and in drop=; keep only one of them")
        left_out = coding.drop | {weights}
    kept = [name for name in names if name not in left_out]
    if not kept:
        raise DataError("no column is left; a table needs at least one column that is neither dropped nor the weights")
    return kept


def weights_from_array(weights: Sequence[float] | NDArray[Any], n_rows: int) -> FloatArray:
    """Return weights given as an array, list or series, checked, with shape (n_rows,)."""
    if not isinstance(weights, Iterable):
        raise DataError(f"weights= is {shown(weights)}; give one number for each row or the name of a column")
    is_numeric = isinstance(weights, np.ndarray) and weights.ndim == 1
    raw = raw_from_numpy("weights", np.asarray(weights)) if is_numeric else raw_from_values("weights", weights)
    if len(raw.codes) != n_rows:
        raise DataError(f"weights= has {len(raw.codes)} values for {n_rows} rows; give one weight for each row")
    return code_weights(raw)


def without_missing_texts(raw: RawColumn, coding: Coding) -> RawColumn:
    """Return the column with the missing texts, and in a text file blank cells, made missing."""
    if not isinstance(raw.distinct, list) or not (coding.is_text or coding.missing_texts):
        return raw
    kept: list[Any] = []
    lookup: list[int] = []
    for value in raw.distinct:
        is_text = isinstance(value, str)
        if is_text and (value in coding.missing_texts or (coding.is_text and not value.strip())):
            lookup.append(-1)
        else:
            lookup.append(len(kept))
            kept.append(value)
    return raw if len(kept) == len(raw.distinct) else raw.recoded(lookup, kept)


def with_parsed_numbers(raw: RawColumn) -> RawColumn:
    """Return a text-file column with integers or floats when every text spells one, and unchanged otherwise."""
    stripped = [value.strip() for value in raw.distinct]
    if all(CANONICAL_INTEGER.fullmatch(text) for text in stripped):
        return RawColumn(raw.name, raw.codes, [int(text) for text in stripped])
    if all(PLAIN_NUMBER.fullmatch(text) for text in stripped):
        return RawColumn(raw.name, raw.codes, np.asarray([float(text) for text in stripped], dtype=np.float64))
    return raw


def check_one_family(raw: RawColumn) -> None:
    """Raise a `DataError` when text, numbers and bools occur together in one column."""
    if not isinstance(raw.distinct, list):
        return
    first_of_family: dict[str, Any] = {}
    for kind in {type(value) for value in raw.distinct}:
        family = {str: "text", bool: "bool"}.get(kind, "number")
        first_of_family[family] = next(value for value in raw.distinct if type(value) is kind)
    if len(first_of_family) > 1:
        examples = " and ".join(f"{family} ({shown(example)})" for family, example in sorted(first_of_family.items()))
        raise DataError(f"column {raw.name!r} mixes {examples}; make all its cells one type, for example text")


def finite_numbers(raw: RawColumn) -> FloatArray:
    """Return the distinct values as float64, shape (u,); text, bools and infinite numbers are a `DataError`."""
    if isinstance(raw.distinct, list):
        wrong = [index for index, value in enumerate(raw.distinct) if isinstance(value, str | bool)]
        # Among texts, the one that does not even look like a number is the one to name.
        wrong.sort(key=lambda index: bool(PLAIN_NUMBER.fullmatch(str(raw.distinct[index]).strip())))
        if wrong:
            raise DataError(
                f"column {raw.name!r}, row {raw.first_row(wrong[0])}: {shown(raw.distinct[wrong[0]])} is not a "
                "number; a continuous column holds only numbers"
            )
    try:
        numbers = np.asarray(raw.distinct, dtype=np.float64) + 0.0
    except OverflowError:
        numbers = np.asarray([math.inf if abs(value) > 1e308 else value for value in raw.distinct], dtype=np.float64)
    is_infinite = ~np.isfinite(numbers)
    if is_infinite.any():
        index = int(np.argmax(is_infinite))
        raise DataError(
            f"column {raw.name!r}, row {raw.first_row(index)}: an infinite number; "
            "replace it by a finite one or leave the cell empty"
        )
    return numbers


def as_numbers(raw: RawColumn) -> FloatArray:
    """Return the value of each row as float64, shape (n,), with NaN where it is missing."""
    return np.append(finite_numbers(raw), np.nan)[raw.codes]


def plain_number(value: Any) -> Any:
    """Return an integral float as int and anything else as a plain Python value."""
    number = value.item() if isinstance(value, np.generic) else value
    return int(number) if isinstance(number, float) and number.is_integer() else number
