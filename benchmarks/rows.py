"""Rows of the benchmark's table, and how a peer's script is run."""

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from make_peers import BENCHMARKS, peer_python

Measured = dict[str, Any]
PEER_TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    lurking_seconds: float | None
    peer: str
    peer_seconds: float | None
    ratio: float | None
    target: str
    met: str


def run_peer(script: str, peer: str, *arguments: object, timeout: float = PEER_TIMEOUT_SECONDS) -> Measured:
    """Run a peer's script in its own environment and read its last line; a failure becomes an ``error`` entry."""
    command = [str(peer_python()), str(BENCHMARKS / script), *map(str, arguments)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout)
    except (FileNotFoundError, subprocess.TimeoutExpired) as failure:
        return {"peer": peer, "error": type(failure).__name__}
    lines = done.stdout.splitlines()
    if done.returncode != 0 and "No module named" in done.stderr:
        return {"peer": peer, "error": "not installed"}
    if done.returncode != 0 or not lines:
        print(done.stderr, file=sys.stderr)
        return {"peer": peer, "error": f"failed with code {done.returncode}"}
    return dict(json.loads(lines[-1]))


def smaller(before: Measured | None, after: Measured) -> Measured:
    """Of two measurements, keep the smaller seconds of every setting and overall; the rest is the later one's."""
    if before is None or "error" in before:
        return after
    if "error" in after:
        return before
    merged = {**after, "seconds": min(before["seconds"], after["seconds"])}
    if "settings" in after:
        settings = dict(before["settings"])
        for name, seconds in after["settings"].items():
            settings[name] = min(seconds, settings.get(name, math.inf))
        merged |= {"settings": settings, "best": min(settings, key=lambda name: settings[name])}
    return merged


def ratio_of(peer_seconds: float | None, our_seconds: float | None) -> float | None:
    """Peer seconds over lurking's, None where either is missing."""
    if peer_seconds is None or our_seconds is None:
        return None
    return peer_seconds / our_seconds


def verdict(met: bool | None) -> str:
    """Word for the last column."""
    return "-" if met is None else ("yes" if met else "no")


def peer_label(peer: str, measured: Measured) -> str:
    """Name and version of a peer, or why it has no number."""
    return f"{peer} {measured['version']}" if "version" in measured else f"{peer}: {measured.get('error')}"


def print_table(rows: list[Row]) -> None:
    """Print the rows as aligned columns."""
    header = ("what", "lurking s", "peer", "peer s", "ratio", "target", "met")
    lines = [header]
    for row in rows:
        numbers = [
            "-" if value is None else f"{value:.4g}" for value in (row.lurking_seconds, row.peer_seconds, row.ratio)
        ]
        lines.append((row.what, numbers[0], row.peer or "-", numbers[1], numbers[2], row.target, row.met))
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
