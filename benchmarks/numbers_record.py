"""Numbers as JSON without losing a bit, and the differences between two records of them.

A record is a flat {key: value}. Floats are hexadecimal strings, so that equal strings are equal bits. Arrays keep
shape, type and values; of long arrays there are a digest of the bytes, some values and two sums that do not depend on
the order of the entries.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LONGEST = 512
"""Entries up to which an array is kept as it is."""
KEPT = 16
"""Values that are kept of a longer array, evenly spaced."""
SHOWN = 80
"""Characters of a value that is not a number in the list of differences."""
NO_ATTRIBUTE = "no such attribute"
FLOAT = re.compile(r"-?(0x[01]\.|inf$|nan$)")


class Recorder:
    """Collects numbers under keys such as "fits/carcinoma/class[2] -> */vb/objective"."""

    def __init__(self) -> None:
        self.numbers: dict[str, Any] = {}
        self.unexpected: list[str] = []

    def put(self, key: str, value: Any) -> None:
        """Keep a value; mappings and nested sequences are spread over keys."""
        if isinstance(value, Mapping):
            for name, own in value.items():
                self.put(f"{key}/{name}", own)
        elif isinstance(value, list | tuple) and not all(_is_plain(own) for own in value):
            self._keep(f"{key}/count", len(value))
            for place, own in enumerate(value):
                self.put(f"{key}/{place}", own)
        else:
            self._keep(key, encoded(value))

    def fields(self, key: str, thing: Any, names: str) -> None:
        """Keep attributes of a result, given by name; one that the tree does not have is an entry of its own."""
        for name in names.split():
            if hasattr(type(thing), name) or hasattr(thing, name):
                self.put(f"{key}/{name}", getattr(thing, name))
            else:
                self._keep(f"{key}/{name}", NO_ATTRIBUTE)
                self.unexpected.append(f"{key}: no attribute {name!r}")

    def attempt(self, key: str, work: Callable[[], Any], describe: Callable[[str, Any], None] | None = None) -> Any:
        """Keep what `work` returns, as `describe` does it, or the name of the error that it raises."""
        import lurking as lk

        try:
            result = work()
            (describe or self.put)(key, result)
        except Exception as error:
            self._keep(f"{key}/raises", type(error).__name__)
            if not isinstance(error, lk.LurkingError):
                self.unexpected.append(f"{key}: {type(error).__name__}: {error}")
            return None
        return result

    def _keep(self, key: str, value: Any) -> None:
        if key in self.numbers:
            raise KeyError(f"{key} was recorded twice")
        self.numbers[key] = value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float | np.generic | Enum)


def encoded(value: Any) -> Any:
    """Return a value as JSON keeps it."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.ndarray):
        return encoded_array(value)
    if isinstance(value, np.generic):
        return encoded(value.item())
    if isinstance(value, list | tuple):
        return [encoded(own) for own in value]
    if isinstance(value, float):
        return value.hex()
    if value is None or isinstance(value, str | bool | int):
        return value
    raise TypeError(f"no way to record a {type(value).__name__}")


def encoded_array(array: np.ndarray) -> dict[str, Any]:
    """Return an array with shape and type; longer ones as a digest of their bytes, some values and two sums."""
    flat = np.ascontiguousarray(array).ravel()
    about = {"shape": list(array.shape), "type": str(array.dtype)}
    if flat.size <= LONGEST or array.dtype.kind not in "biuf":
        return {**about, "values": [encoded(own) for own in flat.tolist()]}
    places = np.linspace(0, flat.size - 1, KEPT).astype(int)
    numbers = flat[np.isfinite(flat)].astype(float)
    return {
        **about,
        "sha256": hashlib.sha256(flat.tobytes()).hexdigest(),
        "some": [encoded(own) for own in flat[places].tolist()],
        "sum": math.fsum(numbers).hex(),
        "sum of squares": math.fsum(numbers * numbers).hex(),
    }


class Difference(NamedTuple):
    """One key whose values differ: the worst pair, its relative difference, and how many pairs differ."""

    key: str
    old: Any
    new: Any
    relative: float
    count: int

    def __str__(self) -> str:
        size = "" if math.isinf(self.relative) else f"   relative {self.relative:.2e}"
        more = "" if self.count == 1 else f"   and {self.count - 1} more"
        return f"{self.key}: {shown(self.old)} -> {shown(self.new)}{size}{more}"


def shown(value: Any) -> str:
    """Return a value for people: a float in decimals and in bits."""
    number = as_float(value)
    if number is not None:
        return f"{number!r} ({value})"
    text = "nothing" if value is MISSING else str(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


MISSING = object()
"""Stands for the value of a key that one of two records does not have."""


def as_float(value: Any) -> float | None:
    """Return the number behind a hexadecimal string, else None."""
    return float.fromhex(value) if isinstance(value, str) and FLOAT.match(value) else None


def relative_difference(old: Any, new: Any) -> float:
    """Return |old − new| / max(|old|, |new|) of two encoded values; inf unless both are finite numbers."""
    first, second = as_float(old), as_float(new)
    if first is None or second is None or not (math.isfinite(first) and math.isfinite(second)):
        return math.inf
    return abs(first - second) / max(abs(first), abs(second)) if first != second else 0.0


def pairs_of(old: Any, new: Any, is_exact: bool) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of single values of two encoded values, or the two as a whole if their shapes differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() == new.keys():
        pairs = [pair for name in old if name != "sha256" for pair in pairs_of(old[name], new[name], is_exact)]
        yield from pairs
        if is_exact and "sha256" in old and all(one == other for one, other in pairs):
            yield old["sha256"], new["sha256"]
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) == len(new):
            for first, second in zip(old, new, strict=True):
                yield from pairs_of(first, second, is_exact)
        else:
            yield f"{len(old)} values", f"{len(new)} values"
    else:
        yield old, new


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], relative: float = 0.0, absolute: float = 0.0
) -> list[Difference]:
    """Return what differs between two records, by key.

    `relative` 0 asks for equal bits. Otherwise floats may differ by so much of the larger one, or by `absolute`, and
    long arrays are judged by the values and sums that are kept of them.
    """
    found = []
    for key in sorted({*old, *new}):
        first, second = old.get(key, MISSING), new.get(key, MISSING)
        if first == second:
            continue
        worst = None
        count = 0
        for one, other in pairs_of(first, second, relative == 0.0 and absolute == 0.0):
            if one != other and not _is_close(one, other, relative, absolute):
                count += 1
                gap = relative_difference(one, other)
                if worst is None or gap > worst.relative:
                    worst = Difference(key, one, other, gap, 1)
        if worst is not None:
            found.append(worst._replace(count=count))
    return found


def _is_close(old: Any, new: Any, relative: float, absolute: float) -> bool:
    """True if tolerances are given and both values are numbers within them."""
    if relative == 0.0 and absolute == 0.0:
        return False
    first, second = as_float(old), as_float(new)
    if first is None or second is None:
        return False
    return relative_difference(old, new) <= relative or abs(first - second) <= absolute


def written(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record with sorted keys, one key per line."""
    lines = [f"{json.dumps(key)}: {json.dumps(record[key], sort_keys=True)}" for key in sorted(record)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_record(path: Path) -> dict[str, Any]:
    """Read what `written` wrote."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record
