"""What the library computes, to the last bit, and what another tree computes differently.

    python benchmarks/same_numbers.py dump FILE [--tree DIR] [--only fits,scores]
    python benchmarks/same_numbers.py compare FILE [--tree DIR] [--only fits,scores] [--relative 1e-12]

`dump` writes every number as JSON, floats in hexadecimal. `compare` computes them again, prints each difference and
ends with 1 if there is any. Only public calls are made, so that a record outlives moves of modules. Compare on the
machine that wrote the record: other processors and other versions of NumPy or Numba may round differently.
"""

import argparse
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numbers_record import MISSING, Difference, Recorder, differences, read_record, written
from trees import ROOT, environment

MOST_SHOWN = 200
ABOUT = "about/"
"""Keys of what the numbers depend on beside the tree; they are shown where they differ and are no difference."""


def groups() -> dict[str, Any]:
    """Return the groups of numbers by name."""
    import numbers_choosing
    import numbers_families
    import numbers_learning
    import numbers_networks

    parts = (numbers_learning, numbers_networks, numbers_choosing, numbers_families)
    return {name: group for part in parts for name, group in part.GROUPS.items()}


def record_here(path: Path, only: Sequence[str] | None) -> int:
    """Compute the groups with the tree that Python imports, and write them; 1 if an error was unexpected."""
    import lurking as lk

    warnings.simplefilter("ignore")
    known = groups()
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise SystemExit(f"unknown group {unknown[0]!r}; groups are: {', '.join(known)}")
    whole: dict[str, Any] = {}
    unexpected = []
    for name in only or known:
        recorder, began = Recorder(), time.process_time()
        known[name](recorder)
        whole |= {f"{name}/{key}": value for key, value in recorder.numbers.items()}
        unexpected += [f"{name}/{line}" for line in recorder.unexpected]
        seconds = time.process_time() - began
        print(f"{name:12} {len(recorder.numbers):6} keys {seconds:7.1f} s", file=sys.stderr, flush=True)
    for line in unexpected[:MOST_SHOWN]:
        print(f"unexpected: {line}", file=sys.stderr)
    versions = {name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    versions |= {"python": platform.python_version(), "machine": platform.processor() or platform.machine()}
    about = {f"{ABOUT}{name}": value for name, value in versions.items()}
    written(path, {**whole, **about, f"{ABOUT}tree": str(Path(lk.__file__).resolve().parents[2])})
    return 1 if unexpected else 0


def record(path: Path, tree: Path, only: Sequence[str] | None) -> int:
    """Compute the numbers of a tree in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "here", str(path)]
    command += ["--only", ",".join(only)] if only else []
    return subprocess.run(command, env=environment(tree), check=False).returncode


def compare(path: Path, tree: Path, only: Sequence[str] | None, relative: float, absolute: float) -> int:
    """Compute the numbers of a tree, print what differs from a record, and return 1 if anything does."""
    old = read_record(path)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "numbers.json"
        status = record(fresh, tree, only)
        if not fresh.is_file():
            return status or 1
        new = read_record(fresh)
    for key in sorted({*old, *new}):
        if key.startswith(ABOUT) and old.get(key) != new.get(key):
            print(f"{key.removeprefix(ABOUT)}: {old.get(key)} -> {new.get(key)}")
    chosen = {key.partition("/")[0] for key in new} if only else None
    sides = [
        {
            key: value
            for key, value in side.items()
            if not key.startswith(ABOUT) and (chosen is None or key.partition("/")[0] in chosen)
        }
        for side in (old, new)
    ]
    found = differences(*sides, relative, absolute)
    report(found, len({*sides[0], *sides[1]}))
    return 1 if found or status else 0


def report(found: Sequence[Difference], count: int) -> None:
    """Print each difference, changed values before keys of one side, then how many keys differ in each group."""
    in_order = sorted(found, key=lambda difference: MISSING in (difference.old, difference.new))
    for difference in in_order[:MOST_SHOWN]:
        print(difference)
    if len(found) > MOST_SHOWN:
        print(f"and {len(found) - MOST_SHOWN} more")
    by_group: dict[str, int] = {}
    for difference in found:
        group = difference.key.partition("/")[0]
        by_group[group] = by_group.get(group, 0) + 1
    listed = "".join(f"; {group}: {number}" for group, number in by_group.items())
    print(f"{len(found)} of {count} keys differ{listed}")


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="what the library computes, and what another tree does differently")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("dump", "compare", "here"):
        own = verbs.add_parser(verb)
        own.add_argument("file", type=Path, help="the record")
        own.add_argument("--only", type=lambda text: text.split(","), help="groups of numbers, separated by commas")
        if verb != "here":
            own.add_argument("--tree", type=Path, default=ROOT, help="folder with src/lurking")
        if verb == "compare":
            own.add_argument("--relative", type=float, default=0.0, help="relative difference that is allowed")
            own.add_argument("--absolute", type=float, default=0.0, help="absolute difference that is allowed")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Dump or compare."""
    options = arguments(given)
    if options.verb == "here":
        return record_here(options.file, options.only)
    if options.verb == "dump":
        return record(options.file, options.tree, options.only)
    return compare(options.file, options.tree, options.only, options.relative, options.absolute)


if __name__ == "__main__":
    sys.exit(main())
