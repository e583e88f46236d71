"""Tables for people on stdout, or one JSON document."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import typer

from lurking.data.table import Table
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.models.document import plain, versions

WIDTH_WITHOUT_TERMINAL = 120
SETTING = re.compile(
    r"\b(path|target|passes|steps|chains|at|dimension|start|budget|hidden|weights|restarts)=('?)([\w+-]+(?:\.\w+)?)\2"
)
"""A setting in a text of the library that is an option of the command too."""
DATA_OPTIONS = "weights|drop|columns|categorical|continuous|na_values"
SUBJECT = re.compile(
    r"^(error: )?(?:(hidden|max_states|max_parents|target|passes|steps|chains|seed|workers|restarts|max_iter|tol|"
    rf"within|tournament|required|forbidden|{DATA_OPTIONS})(?= is )|({DATA_OPTIONS})(?==? names ))=?"
)
"""The option that a text of the library begins with: ``max_states is 1; …``, ``weights names 'x', …``."""
ARGUMENT = re.compile(rf"(?<![\w'])({DATA_OPTIONS}|memory|tied)=(?=[\s,;:)]|$)")
"""An argument of the library without a value, as in ``leave it out with drop=``."""
WRITTEN_OUT = re.compile(r"(?<![\w'-])(max_iter|max_states|max_parents|time_limit)(?![\w'=])")
FUNCTION = re.compile(r"\blk\.(compare|score|search)\b(?!\()")


class Interrupted(Exception):  # noqa: N818 - reads as what happened
    """The user stopped the work; the text says what was finished."""


class ReaderGone(Exception):  # noqa: N818 - reads as what happened
    """Nobody reads our output any more (for example `| head`)."""


def say(text: str = "") -> None:
    """Print text and a line end on stdout."""
    emit(text + "\n")


def emit(text: str) -> None:
    """Write to stdout at once, so that a closed pipe shows here and nowhere else."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def warn(text: str) -> None:
    """Print one warning line on stderr."""
    typer.echo(f"lurking: warning: {in_command_words(text)}", err=True)


def in_command_words(text: str) -> str:
    """Return a text of the library in one line, settings in it such as path='prior' as options of the command."""
    line = SETTING.sub(r"--\1 \3", " ".join(text.split())).replace("rescore=True", "--rescore")
    for words in ("declare levels=, ", "add it to levels= or "):
        line = line.replace(words, "")  # the command has no option for it
    line = SUBJECT.sub(lambda found: (found[1] or "") + _as_option(found[2] or found[3]), line)
    for pattern in (ARGUMENT, WRITTEN_OUT):
        line = pattern.sub(lambda found: _as_option(found[1]), line)
    return FUNCTION.sub(r"lurking \1", line)


def _as_option(name: str) -> str:
    return "--" + name.replace("_", "-")


def print_json(command: str, content: Mapping[str, Any]) -> None:
    """Print exactly one JSON document."""
    document = {"command": command, "versions": versions(), **content}
    say(json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False))


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Print a table; the first `left` columns are text, the others are numbers."""
    from rich.console import Console
    from rich.table import Table as RichTable

    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, name in enumerate(header):
        table.add_column(name, justify="left" if position < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    is_terminal = sys.stdout.isatty()
    width = None if is_terminal else WIDTH_WITHOUT_TERMINAL
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=is_terminal, width=width, highlight=False, markup=False)
    console.print(title, style="italic")
    console.print(table)
    emit(buffer.getvalue())


def data_content(path: object, table: Table) -> dict[str, Any]:
    """Describe the data in a JSON document."""
    return {"path": str(path), "n": table.n, "columns": list(table.columns), "digest": table.digest}


def model_content(dag: Dag, dimension: int, effective: int | None) -> dict[str, Any]:
    """Describe a structure in a JSON document; the effective dimension is null where it is not cheap."""
    return {
        "structure": str(dag),
        "edges": [list(edge) for edge in dag.edges],
        "hidden": dict(dag.hidden),
        "d": dimension,
        "d_effective": effective,
    }


def evidence_content(evidence: Evidence) -> dict[str, Any]:
    """Describe an Evidence in a JSON document."""
    return {
        "score": evidence.method,
        "log_z": evidence.log_z,
        "log_aliases": evidence.log_aliases,
        "corrected": evidence.corrected,
        # One chain alone has an infinite error, which JSON cannot say.
        "std_error": evidence.std_error if evidence.std_error is not None and isfinite(evidence.std_error) else None,
        "kind": evidence.kind.value,
        "status": evidence.status.name,
        "status_sentence": evidence.status.sentence,
        "parts": dict(evidence.parts),
        "starts": None if evidence.starts is None else evidence.starts.describe(),
    }


def number(value: float, digits: int = 3) -> str:
    """Return a number for a table."""
    return f"{value:.{digits}f}"


def probability(value: float) -> str:
    """Return a probability for a table; tiny ones are not shown as 0."""
    if value >= 0.0001:
        return f"{value:.4f}"
    return f"{value:.1e}" if value > 1e-300 else "<1e-300"
