"""Values that a case stores against values that the library computes, and the keys that were compared."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lurking.errors import PriorError, UndefinedScore

RELATIVE = 1e-9
"""Largest difference that agrees, as a fraction of the stored value."""
SMALLEST = 1e-3
"""Stored values below this are compared as if they were this large: their absolute tolerance is 1e-12."""
INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def keys_of(numbers: Any, path: str = "") -> Iterator[str]:
    """Yield the key of every value of a case: its path, with list indices removed."""
    if isinstance(numbers, dict) and numbers:
        for name, value in numbers.items():
            yield from keys_of(value, f"{path}.{name}" if path else name)
    elif isinstance(numbers, list) and any(isinstance(entry, dict | list) for entry in numbers):
        for entry in numbers:
            yield from keys_of(entry, path)
    else:
        yield path


def difference(found: float, expected: float, smallest: float) -> float:
    """Return |found − expected| / max(|expected|, smallest); infinite if only one of them is finite."""
    if found == expected or (math.isnan(found) and math.isnan(expected)):
        return 0.0
    if not (math.isfinite(found) and math.isfinite(expected)):
        return math.inf
    return abs(found - expected) / max(abs(expected), smallest)


def flat(values: Any) -> list[float]:
    """Return nested values as one list of floats; null is NaN, "inf" and "-inf" are infinities."""
    if values is None:
        return [math.nan]
    if isinstance(values, str):
        return [INFINITIES[values]]
    if isinstance(values, np.ndarray | np.generic):
        return [float(value) for value in np.ravel(values)]
    if isinstance(values, list | tuple):
        return [value for entry in values for value in flat(entry)]
    return [float(values)]


@dataclass
class Outcome:
    """The comparison of one case or of several."""

    n_values: int = 0
    n_agreed: int = 0
    largest: float = 0.0
    largest_at: str = ""
    disagreements: list[str] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    """Keys that the cases have."""
    compared: Counter[str] = field(default_factory=Counter)
    """Values compared, for each key."""
    excused: dict[str, str] = field(default_factory=dict)
    """Keys that a case has and the library need not compute there, with the reason."""

    def add(self, other: "Outcome") -> None:
        """Add the comparison of another case."""
        self.n_values += other.n_values
        self.n_agreed += other.n_agreed
        if other.largest > self.largest:
            self.largest, self.largest_at = other.largest, other.largest_at
        self.disagreements += other.disagreements
        self.present |= other.present
        self.compared += other.compared
        self.excused |= other.excused


class Comparison:
    """The comparison of one case, written down as its values are computed."""

    def __init__(self, case: str, numbers: Any) -> None:
        self.case, self.numbers = case, numbers
        self.outcome = Outcome(present=set(keys_of(numbers)))

    def has(self, key: str) -> bool:
        """Return True if the case has values under a key."""
        return bool(self.under(key))

    def stored(self, key: str) -> Any:
        """Return what the case stores under a key without lists on its path."""
        value = self.numbers
        for name in key.split("."):
            value = value[name]
        return value

    def check(
        self,
        key: str,
        compute: Callable[[], Any],
        take: Callable[[Any], Any] = lambda value: value,
        smallest: float = SMALLEST,
    ) -> None:
        """Compare the values stored under a key, or what `take` takes of them, with those that `compute` returns.

        Nothing happens if the case does not have the key.
        """
        if self.has(key):
            self.check_values(key, take(self.stored(key)), compute, smallest)

    def check_values(self, key: str, expected: Any, compute: Callable[[], Any], smallest: float = SMALLEST) -> None:
        """Compare values; stored ones below `smallest` have the absolute tolerance of one of that size.

        A refusal by `UndefinedScore` or `PriorError` agrees with a value that is undefined (null) or infinite. Any
        other exception is a disagreement.
        """
        wanted = flat(expected)
        try:
            found, reason = flat(compute()), ""
        except (UndefinedScore, PriorError) as refusal:
            found = [value if not math.isfinite(value) else math.nan for value in wanted]
            reason = f"refused, {_first_line(refusal)}"
        except Exception as error:
            self._disagree(key, len(wanted), f"{type(error).__name__}, {_first_line(error)}")
            return
        if len(found) != len(wanted):
            self._disagree(key, len(wanted), f"{len(found)} values instead of {len(wanted)}")
            return
        self._count(key, found, wanted, smallest, reason)

    def excuse(self, keys: Iterable[str], reason: str) -> None:
        """Note keys that cannot be compared in this case, with the reason."""
        self.outcome.excused.update(dict.fromkeys(keys, reason))

    def under(self, prefix: str) -> list[str]:
        """Return the keys of the case that begin with a path."""
        return [key for key in self.outcome.present if key == prefix or key.startswith(f"{prefix}.")]

    def _count(self, key: str, found: list[float], wanted: list[float], smallest: float, reason: str) -> None:
        outcome = self.outcome
        differences = [difference(*pair, smallest) for pair in zip(found, wanted, strict=True)]
        outcome.n_values += len(wanted)
        outcome.n_agreed += sum(size <= RELATIVE for size in differences)
        outcome.compared[key] += len(wanted)
        worst = max(range(len(differences)), key=differences.__getitem__, default=None)
        if worst is None:
            return
        if differences[worst] > outcome.largest:
            outcome.largest, outcome.largest_at = differences[worst], f"{self.case} {key}"
        if differences[worst] > RELATIVE:
            place = f"[{worst}]" if len(wanted) > 1 else ""
            what = reason or f"found {_shown(found[worst])}"
            outcome.disagreements.append(f"{self.case} {key}{place}: expected {_shown(wanted[worst])}; {what}")

    def _disagree(self, key: str, n_values: int, what: str) -> None:
        self.outcome.n_values += n_values
        self.outcome.compared[key] += n_values
        self.outcome.largest, self.outcome.largest_at = math.inf, f"{self.case} {key}"
        self.outcome.disagreements.append(f"{self.case} {key}: {what}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _shown(value: float) -> str:
    return "undefined" if math.isnan(value) else repr(value)
