"""Tables for people on stdout, or one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from lurking.data.table import Table
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.models.discrete.document import plain, versions

WIDTH_WITHOUT_TERMINAL = 120


def print_json(command: str, content: Mapping[str, Any]) -> None:
    """Print exactly one JSON document."""
    document = {"command": command, "versions": versions(), **content}
    typer.echo(json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False))


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Print a table; the first `left` columns are text, the others are numbers."""
    from rich.console import Console
    from rich.table import Table as RichTable

    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, name in enumerate(header):
        table.add_column(name, justify="left" if position < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False, markup=False)
    console.print(title, style="italic")
    console.print(table)


def say(text: str = "") -> None:
    """Print one line on stdout."""
    typer.echo(text)


def data_content(path: object, table: Table) -> dict[str, Any]:
    """Describe the data in a JSON document."""
    return {"path": str(path), "n": table.n, "columns": list(table.columns), "digest": table.digest}


def model_content(dag: Dag, dimension: int) -> dict[str, Any]:
    """Describe a structure in a JSON document."""
    return {
        "structure": str(dag),
        "edges": [list(edge) for edge in dag.edges],
        "hidden": dict(dag.hidden),
        "d": dimension,
    }


def evidence_content(evidence: Evidence) -> dict[str, Any]:
    """Describe an Evidence in a JSON document."""
    return {
        "score": evidence.method,
        "log_z": evidence.log_z,
        "log_aliases": evidence.log_aliases,
        "corrected": evidence.corrected,
        "std_error": evidence.std_error,
        "kind": evidence.kind.value,
        "status": evidence.status.name,
        "status_sentence": evidence.status.sentence,
        "parts": dict(evidence.parts),
    }


def number(value: float, digits: int = 3) -> str:
    """Return a number for a table."""
    return f"{value:.{digits}f}"


def probability(value: float) -> str:
    """Return a probability for a table; tiny ones are not shown as 0."""
    return f"{value:.4f}" if value >= 0.0001 or value == 0.0 else f"{value:.1e}"
