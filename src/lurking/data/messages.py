"""The small pieces from which every one-line `DataError` of this room is made."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lurking.errors import DataError, nearest_hint

LONGEST_VALUE = 60
LONGEST_LIST = 12


def shown(value: object) -> str:
    """Return the value as one short line of Python, cut when it is long."""
    text = one_line(repr(value))
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path as one line of Python, never cut: its end is what tells files apart."""
    return one_line(repr(os.fspath(path)))


def listed(values: Iterable[object]) -> str:
    """Return values separated by commas, with a count of those left out when there are many."""
    shown_values = [shown(value) for value in values]
    if len(shown_values) <= LONGEST_LIST:
        return ", ".join(shown_values)
    return f"{', '.join(shown_values[:LONGEST_LIST])}, ... and {len(shown_values) - LONGEST_LIST} more"


def plain_count(count: float) -> str:
    """Return a number of rows as text: whole numbers in full, since 2e+06 reads badly."""
    return str(int(count)) if float(count).is_integer() and count < 1e15 else f"{count:g}"


def one_line(text: str) -> str:
    """Return the text with every run of white space, line ends included, made one blank."""
    return " ".join(text.split())


def unknown_column(where: str, name: object, columns: Iterable[str]) -> DataError:
    """Return the error for a name that is not a column; `where` says which argument held it."""
    known = tuple(columns)
    return DataError(
        f"{where} names {shown(name)}, which is not a column{nearest_hint(str(name), known)}; "
        f"the columns are: {listed(known)}"
    )
