"""A run over a folder of cases: what is printed, and whether it succeeds."""

import json
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conformance.comparison import Comparison, Outcome
from conformance.kinds import KINDS, Folder, find_cases

WIDTH = 120
MOST_LINES = 100
"""Disagreements that are printed."""


@dataclass
class Run:
    """All comparisons of a folder, and the keys that an earlier tree compared."""

    folder: Folder
    earlier: dict[str, set[str]]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    n_cases: int = 0

    @property
    def total(self) -> Outcome:
        """The comparison of all kinds together."""
        total = Outcome()
        for outcome in self.outcomes.values():
            total.add(outcome)
        return total

    def lost(self) -> list[str]:
        """Return the keys that an earlier tree compared, that the cases have, and that this one did not compare."""
        return [
            f"{kind} {key}"
            for kind, outcome in self.outcomes.items()
            for key in sorted(self.earlier.get(kind, set()) & outcome.present)
            if key not in outcome.compared and key not in outcome.excused
        ]

    def new(self) -> list[str]:
        """Return the keys that are compared and are not on the list."""
        return [
            f"{kind} {key}"
            for kind, outcome in self.outcomes.items()
            for key in sorted(set(outcome.compared) - self.earlier.get(kind, set()))
        ]

    def failures(self) -> list[str]:
        """Return why the run fails, one line each."""
        total = self.total
        failed = [f"disagreement: {line}" for line in total.disagreements[:MOST_LINES]]
        if len(total.disagreements) > MOST_LINES:
            failed.append(f"disagreement: {len(total.disagreements) - MOST_LINES} more")
        failed += [f"unknown kind: {line}" for line in self.folder.unknown]
        failed += [f"no longer compared: {key}" for key in self.lost()]
        if not total.n_values:
            failed.append("nothing was compared")
        return failed


def run(folder: Path, earlier: dict[str, set[str]]) -> Run:
    """Compare every case of a folder."""
    result = Run(find_cases(folder), earlier)
    for name, paths in result.folder.cases.items():
        compare = KINDS[name].compare
        if compare is None:
            continue
        outcome = result.outcomes.setdefault(name, Outcome())
        for path in paths:
            result.n_cases += 1
            comparison = Comparison(path.relative_to(folder).as_posix(), json.loads(path.read_text(encoding="utf-8")))
            try:
                compare(comparison)
            except Exception as error:
                line = str(error).partition("\n")[0]
                comparison.outcome.disagreements.append(f"{comparison.case}: {type(error).__name__}, {line}")
            outcome.add(comparison.outcome)
    return result


def lines_of(result: Run) -> Iterator[str]:
    """Yield the report line by line: keys, then why the run fails, then the summary."""
    for name, outcome in result.outcomes.items():
        yield from _wrapped(f"{name}, keys compared:", grouped(outcome.compared))
        for reason, keys in _by_reason(name, outcome, is_compared=False):
            yield from _wrapped(f"{name}, keys not compared ({reason}):", grouped(keys))
        for reason, keys in _by_reason(name, outcome, is_compared=True):
            yield from _wrapped(f"{name}, keys not compared in some cases ({reason}):", grouped(keys))
    if new := result.new():
        yield f"{len(new)} compared keys are not on the list of earlier ones; add them with --add-keys"
    yield from result.failures()
    yield from _summary(result)


def _by_reason(name: str, outcome: Outcome, *, is_compared: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield (reason, keys not compared), of keys that are compared in other cases or of those that never are."""
    reasons: dict[str, list[str]] = {}
    if is_compared:
        for key in set(outcome.excused) & set(outcome.compared):
            reasons.setdefault(outcome.excused[key], []).append(key)
    else:
        for key in _not_compared(name, outcome):
            reason = KINDS[name].not_compared.get(key) or outcome.excused.get(key, "the reader has no such key")
            reasons.setdefault(reason, []).append(key)
    yield from sorted(reasons.items())


def _not_compared(name: str, outcome: Outcome) -> list[str]:
    """Return the keys of the cases that are not compared, without those that state the problem."""
    given = KINDS[name].given
    left = outcome.present - set(outcome.compared)
    return [key for key in left if not any(key == prefix or key.startswith(f"{prefix}.") for prefix in given)]


def _summary(result: Run) -> Iterator[str]:
    total, outcomes = result.total, result.outcomes
    at = f" ({total.largest_at})" if total.largest_at else ""
    yield f"{total.n_agreed} of {total.n_values} values agree in {_cases(result.n_cases)}"
    yield f"largest difference: {total.largest:.2g}{at}"
    n_not = sum(len(_not_compared(name, outcome)) for name, outcome in outcomes.items())
    yield f"keys: {sum(len(outcome.compared) for outcome in outcomes.values())} compared, {n_not} not compared"
    paths = result.folder.cases.items()
    unsupported = [f"{name} ({_cases(len(of_kind))})" for name, of_kind in paths if KINDS[name].compare is None]
    yield f"kinds not supported yet: {', '.join(unsupported) or 'none'}"


def _cases(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"


def grouped(keys: Iterable[str]) -> str:
    """Return keys in short: `a.x a.y b.x b.y` is `{a,b}.{x,y}`."""
    patterns = {tuple(frozenset([name]) for name in key.split(".")) for key in keys}
    # Patterns that differ in one place become one, the last place first.
    for place in range(max(map(len, patterns), default=0) - 1, -1, -1):
        merged: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        for pattern in patterns:
            if len(pattern) > place:
                others = (*pattern[:place], frozenset(), *pattern[place + 1 :])
                merged[others] = merged.get(others, frozenset()) | pattern[place]
        patterns = {pattern for pattern in patterns if len(pattern) <= place}
        patterns |= {(*others[:place], names, *others[place + 1 :]) for others, names in merged.items()}
    return " ".join(sorted(".".join(map(_one_of, pattern)) for pattern in patterns))


def _one_of(names: frozenset[str]) -> str:
    return next(iter(names)) if len(names) == 1 else f"{{{','.join(sorted(names))}}}"


def _wrapped(title: str, text: str) -> list[str]:
    indent = {"initial_indent": "  ", "subsequent_indent": "  "}
    return [title, *textwrap.wrap(text, WIDTH, **indent, break_long_words=False, break_on_hyphens=False)]


def read_keys(path: Path) -> dict[str, set[str]]:
    """Read the keys that an earlier tree compared, one `kind key` in each line."""
    keys: dict[str, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, _, key = line.partition(" ")
        keys.setdefault(kind, set()).add(key)
    return keys


def write_keys(path: Path, keys: dict[str, set[str]]) -> None:
    """Write keys, one `kind key` in each line."""
    lines = sorted(f"{kind} {key}\n" for kind, names in keys.items() for key in names)
    path.write_text("".join(lines), encoding="utf-8")
