"""The exception tree.

Every error a user can cause is a `LurkingError` whose text is one line: what is wrong, which value, which rule,
what to do. The command line prints exactly that line and exits with code 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LurkingError(Exception):
    """Base of every error raised on purpose by the library."""


class DataError(LurkingError):
    """The data cannot be read, or break a rule of `Table`."""


class MemoryLimit(DataError):  # noqa: N818 - reads as the sentence it raises
    """Data that cannot be read within the memory allowed."""


class StructureError(LurkingError):
    """The graph is not a valid structure, or does not fit the data."""


class CycleError(StructureError):
    """The edges contain a directed cycle, kept in `cycle` as a closed walk of names."""

    def __init__(self, cycle: Iterable[str]) -> None:
        self.cycle = tuple(cycle)
        super().__init__(
            f"the edges form a cycle: {' -> '.join(self.cycle)}; a structure must be acyclic, remove one of these edges"
        )


class PriorError(LurkingError):
    """Pseudo-counts that are not positive and finite, or do not fit the structure."""


class OptionError(LurkingError):
    """An option of a call has a value outside its rule."""


class UnknownNameError(LurkingError):
    """A name that is not in a list of choices; the nearest one and the whole list are offered."""

    def __init__(self, what: str, name: str, choices: Iterable[str]) -> None:
        self.name = name
        self.choices = tuple(choices)
        super().__init__(
            f"unknown {what} {name!r}{nearest_hint(name, self.choices)}; choose from: {', '.join(self.choices)}"
        )


class UndefinedScore(LurkingError):  # noqa: N818 - the name is part of the public design
    """The score has no value for this problem (for example BIC on no data)."""


class TablesOnly(OptionError, UndefinedScore):  # noqa: N818 - reads as the sentence it raises
    """A computation that supports tables only was asked of a model with nodes of another family."""


class FamilyError(LurkingError):
    """A family of distributions breaks its contract."""


class BlockError(UndefinedScore):
    """A family of distributions gave a value that is not finite."""

    def __init__(self, family: str, what: str, value: float) -> None:
        super().__init__(
            f"the {what} of the {family} nodes is {value}, not a finite number; use a less extreme prior, or fewer or "
            "less extreme data"
        )


class NotANumber(LurkingError):  # noqa: N818 - reads as the sentence it raises
    """A density gave a value that is not a number."""

    def __init__(self, what: str, value: float) -> None:
        super().__init__(f"the {what} is {value}; move the point nearer to the origin, or use a less extreme prior")


class FractionalWeights(DataError, UndefinedScore):  # noqa: N818 - reads as the sentence it raises
    """Weights of rows that are no whole numbers, where hidden states are drawn row by row."""


class TooLarge(LurkingError):  # noqa: N818 - reads as the sentence it raises
    """The computation needs more memory or work than is allowed; the text says how much."""


class EngineError(LurkingError):
    """An exact inference method returned what no method may return; the text names it."""


class FormatError(LurkingError):
    """A file of a known kind does not follow its format."""


class LurkingWarning(UserWarning):
    """Something was accepted that the user probably wants to know about."""


def clipped(value: object, most: int = 60) -> str:
    """Return how a value of any type is written, the end cut off where it is long."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def nearest_hint(name: str, choices: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest choice, or an empty string when none is close."""
    close = difflib.get_close_matches(str(name), [str(choice) for choice in choices], n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
