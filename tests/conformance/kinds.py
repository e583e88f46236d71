"""The kinds of cases that are known, and where cases of each are found in a folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance import class136, discrete
from conformance.comparison import Comparison

IGNORED = ".md"
"""Extension of files that are not cases. Names that begin with a dot are ignored too."""


@dataclass(frozen=True)
class Kind:
    """A format of cases. A kind without a reader is known and not supported yet."""

    name: str
    is_case: Callable[[Any], bool]
    """True for the content of a case of this kind."""
    compare: Callable[[Comparison], None] | None = None
    """Computes and compares all values of a case."""
    given: tuple[str, ...] = ()
    """Keys that state the problem."""
    not_compared: Mapping[str, str] = field(default_factory=dict)
    """Keys that are never compared, with the reason."""


def _with_keys(*names: str, without: str | None = None) -> Callable[[Any], bool]:
    return lambda numbers: isinstance(numbers, dict) and set(names) <= numbers.keys() and without not in numbers


def _of(key: str, *values: str) -> Callable[[Any], bool]:
    return lambda numbers: isinstance(numbers, dict) and numbers.get(key) in values


def _read_by(name: str, reader: Any) -> Kind:
    return Kind(name, reader.is_case, reader.compare, reader.GIVEN, reader.NOT_COMPARED)


KINDS = {
    kind.name: kind
    for kind in (
        _read_by("discrete", discrete),
        _read_by("class136", class136),
        Kind("mixture", _with_keys("X", "K", "responsibilities0")),
        Kind("mixed", _with_keys("nodes", "columns", "start")),
        Kind("logistic", _with_keys("x", "U", "mu0", without="kind")),
        Kind("vmcmc", _of("kind", "logistic", "class", "multinomial", "ordered")),
        Kind("separation", _of("model", "separation", "factor", "number of sources")),
        Kind("partitions", _of("kind", "partitions", "prediction", "streams")),
    )
}


@dataclass
class Folder:
    """The cases of a folder, by kind, and the files and folders that no kind claims."""

    cases: dict[str, list[Path]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def find_cases(folder: Path) -> Folder:
    """Find the cases of a folder.

    The folder has one folder for each kind, named after it, or cases of any kind; their content shows which.
    """
    found = Folder()
    for path in _entries(folder):
        if path.is_file():
            _file(found, path, None, folder)
        elif path.name not in KINDS:
            found.unknown.append(f"{path.name}/ is not named after a kind")
        else:
            for inner in _entries(path):
                _file(found, inner, path.name, folder)
    return found


def _entries(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.suffix != IGNORED and path.name[:1] != "."]


def _file(found: Folder, path: Path, kind: str | None, folder: Path) -> None:
    """Add a file to the cases of its kind, which is the given one, or to those that nothing claims."""
    shown = path.relative_to(folder).as_posix()
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found.unknown.append(f"{shown} is not a JSON file")
        return
    names = [name for name in KINDS if kind in (None, name) and KINDS[name].is_case(numbers)]
    if names:
        found.cases.setdefault(names[0], []).append(path)
    else:
        found.unknown.append(f"{shown} is not a case of {'any known kind' if kind is None else f'the kind {kind}'}")
