"""A column that is probably the weight of each row, when no weights were given."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from lurking.data.column import Column
from lurking.data.patterns import rank_rows
from lurking.errors import LurkingWarning

NAMES = frozenset({"count", "counts", "n", "freq", "frequency", "frequencies", "weights", "cases"})
"""What such a column is called, in small letters. "weight" is not among them: people have one too."""
MOST_ROWS = 1 << 16
"""Tables of counts are shorter than this; longer tables are not looked at."""


def warn_of_forgotten_weights(columns: Mapping[str, Column], n_rows: int) -> None:
    """Warn of a column of whole numbers with such a name, when the other columns have no row twice.

    A table of counts read without its weights has all its rows counted once, and the counts for one more variable.
    """
    if not 1 < n_rows <= MOST_ROWS or not all(column.is_categorical for column in columns.values()):
        return
    for name, column in columns.items():
        others = [other for other in columns.values() if other is not column]
        if name.strip().lower() not in NAMES or column.declared or not others or not _holds_counts(column):
            continue
        _, representative = rank_rows(
            [other.codes for other in others], [len(other.levels) for other in others], n_rows
        )
        if len(representative) == n_rows:
            warnings.warn(
                f"column {name!r} holds whole numbers, and without it no row comes twice; if it says how often a row "
                f"counts, use weights={name!r}",
                LurkingWarning,
                stacklevel=4,
            )


def _holds_counts(column: Column) -> bool:
    """Whether every cell has a whole number of at least 0, and some a number above 1."""
    numbers = [level for level in column.levels if isinstance(level, int) and not isinstance(level, bool)]
    return len(numbers) == len(column.levels) and min(numbers) >= 0 and max(numbers) > 1 and not column.n_missing
