"""What every study is written with: claims beside what is found, tables as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lurking.runtime.files import write_whole

Table = tuple[list[str], list[list[Any]]]
"""Header and rows."""


@dataclass(frozen=True)
class Claim:
    """One claim: what the paper says, what is found here, and whether that agrees (None: not decided by this run)."""

    text: str
    paper: str
    here: str
    holds: bool | None


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; bars within cells are written as themselves."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def claims_table(found: Iterable[Claim]) -> str:
    """Return the claims as a Markdown table."""
    words = {True: "yes", False: "**no**", None: "–"}
    rows = [[claim.text, claim.paper, claim.here, words[claim.holds]] for claim in found]
    return markdown(["claim", "paper", "here", "holds"], rows)


def claims_text(found: Iterable[Claim]) -> str:
    """Return the claims as plain lines."""
    words = {True: "holds", False: "does not hold", None: "-"}
    return "\n".join(
        f"{claim.text}\n  paper: {claim.paper}\n  here:  {claim.here}\n  {words[claim.holds]}" for claim in found
    )


def clear(folder: Path, patterns: Iterable[str]) -> None:
    """Remove what an earlier run wrote: figures of one study must not lie beside the tables of another one."""
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink()


def write_tables(folder: Path, tables: Mapping[str, Table]) -> list[Path]:
    """Write each table as CSV; return the paths."""
    files = []
    for name, (header, rows) in tables.items():
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        files.append(write_whole(folder / f"{name}.csv", text.getvalue()))
    return files
