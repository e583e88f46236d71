"""The benchmark: lurking and its peers in turn on the same files. Entry of ``make bench``.

``python benchmarks/run.py [--rounds 2] [--peers-only] [--out out]`` prints one table and writes ``OUT/bench.json``.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data import write_all
from make_peers import BENCHMARKS, peer_python

Measured = dict[str, Any]
PEER_TIMEOUT_SECONDS = 300
MOST_SECONDS_STRUCTURES = 1.5
LEAST_GAIN_TWO_THREADS = 1.7


@dataclass(frozen=True)
class Comparison:
    """One peer on one file; ``target`` is the least peer/lurking ratio asked for, None where none is."""

    what: str
    script: str
    peer: str
    data: str
    ours: str
    target: float | None


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


EM = "20 EM iterations, 2 hidden causes, 480 rows"
COMPARISONS = (
    Comparison(EM, "peer_pgmpy.py", "pgmpy", "bg_480", "em_iterations", 2000.0),
    Comparison(EM, "peer_pyagrum.py", "pyAgrum", "bg_480", "em_iterations", 2000.0),
    Comparison(
        "1 VB iteration, latent class, 10000 rows", "peer_bayespy.py", "bayespy", "lca_10000", "vb_iteration", 20.0
    ),
    Comparison(
        "1 EM iteration, latent class, 10000 rows", "peer_stepmix.py", "stepmix", "lca_10000", "em_iteration", None
    ),
    Comparison("fit to AutoClass' likelihood, 400 rows", "peer_autoclass.py", "AutoClass C", "lca_400", "reach", 1.0),
)


def run_peer(comparison: Comparison, path: Path) -> Measured:
    """Run a peer's script in its own environment and read its last line; a failure becomes an ``error`` entry."""
    command = [peer_python(), BENCHMARKS / comparison.script, path]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PEER_TIMEOUT_SECONDS)
    except (FileNotFoundError, subprocess.TimeoutExpired) as failure:
        return {"peer": comparison.peer, "error": type(failure).__name__}
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        print(done.stderr, file=sys.stderr)
        return {"peer": comparison.peer, "error": f"failed with code {done.returncode}"}
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


def measure_ours(comparison: Comparison, path: Path, peer: Measured) -> Measured:
    """Run lurking's side; to reach a peer's log-likelihood, the peer's result is needed."""
    import ours

    if comparison.ours == "reach":
        return ours.reach(path, peer["log_likelihood"]) if "error" not in peer else {"error": "no mark to reach"}
    measure: Callable[[Path], Measured] = getattr(ours, comparison.ours)
    return measure(path)


def compare(comparison: Comparison, path: Path, rounds: int, peers_only: bool) -> tuple[Row, Measured]:
    """Alternate peer and lurking for ``rounds`` rounds; best of each."""
    peer: Measured | None = None
    our: Measured | None = None
    load = os.getloadavg()
    for _ in range(rounds):
        peer = smaller(peer, run_peer(comparison, path))
        if not peers_only:
            our = smaller(our, measure_ours(comparison, path, peer))
    peer, our = peer or {}, our or {}
    ratio = ratio_of(peer.get("seconds"), our.get("seconds"))
    goal = comparison.target
    row = Row(
        comparison.what,
        our.get("seconds"),
        f"{comparison.peer} {peer['version']}" if "version" in peer else f"{comparison.peer}: {peer.get('error')}",
        peer.get("seconds"),
        ratio,
        "-" if goal is None else (f">= {goal:g}x" if goal > 1.0 else "faster"),
        verdict(None if goal is None or peers_only or "error" in peer else ratio is not None and ratio >= goal),
    )
    return row, {"row": asdict(row), "peer": peer, "lurking": our, "load_average": load}


def structures(paths: dict[str, Path], name: str, rounds: int, with_targets: bool) -> tuple[list[Row], Measured]:
    """All 136 structures by VB, with one and with two threads in turn."""
    import ours

    one: Measured | None = None
    two: Measured | None = None
    for _ in range(rounds):
        one = smaller(one, ours.structures(paths[name], workers=1))
        two = smaller(two, ours.structures(paths[name], workers=2))
    first, second = (one or {})["seconds"], (two or {})["seconds"]
    gain = ratio_of(first, second)
    count, size = (one or {})["structures"], name.removeprefix("bg_")
    what = f"VB bound of {count} structures, 3 starts, {size} rows"
    met_one = verdict(first <= MOST_SECONDS_STRUCTURES if with_targets else None)
    met_two = verdict(gain is not None and gain >= LEAST_GAIN_TWO_THREADS if with_targets else None)
    rows = [
        Row(
            f"{what}, 1 thread",
            first,
            "",
            None,
            None,
            f"<= {MOST_SECONDS_STRUCTURES} s" if with_targets else "-",
            met_one,
        ),
        Row(
            f"{what}, 2 threads",
            second,
            "lurking, 1 thread",
            first,
            gain,
            f">= {LEAST_GAIN_TWO_THREADS}x" if with_targets else "-",
            met_two,
        ),
    ]
    return rows, {"rows": [asdict(row) for row in rows], "one_thread": one, "two_threads": two}


def starts(path: Path) -> tuple[list[Row], Measured]:
    """Eight starts of one larger fit, with one and with two threads: where threads can show what they bring."""
    import ours

    one, two = ours.many_starts(path, workers=1), ours.many_starts(path, workers=2)
    what = "8 starts of 50 VB iterations, latent class, 10000 rows"
    gain = ratio_of(one["seconds"], two["seconds"])
    row = Row(f"{what}, 2 threads", two["seconds"], "lurking, 1 thread", one["seconds"], gain, "-", verdict(None))
    return [row], {"rows": [asdict(row)], "one_thread": one, "two_threads": two}


def ratio_of(peer_seconds: float | None, our_seconds: float | None) -> float | None:
    """Peer seconds over lurking's, None where either is missing."""
    if peer_seconds is None or our_seconds is None:
        return None
    return peer_seconds / our_seconds


def verdict(met: bool | None) -> str:
    """Word for the last column."""
    return "-" if met is None else ("yes" if met else "no")


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


def machine() -> Measured:
    """What the numbers depend on."""
    return {
        "load_average": os.getloadavg(),
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="lurking and its peers on the same files")
    parser.add_argument("--rounds", type=int, default=2, help="times lurking and each peer take turns")
    parser.add_argument("--peers-only", action="store_true", help="leave lurking out")
    parser.add_argument("--out", type=Path, default=BENCHMARKS.parent / "out", help="folder of bench.json and the data")
    return parser.parse_args()


def main() -> None:
    """Run everything, print the table, write the record."""
    options = arguments()
    about = machine()
    print("load average at the start: " + " ".join(f"{load:.2f}" for load in about["load_average"]), flush=True)
    paths = write_all(options.out / "bench-data")
    rows: list[Row] = []
    record: Measured = {"machine": about, "comparisons": []}
    for comparison in COMPARISONS:
        row, details = compare(comparison, paths[comparison.data], options.rounds, options.peers_only)
        rows.append(row)
        record["comparisons"].append(details)
    if not options.peers_only:
        for name, with_targets in (("bg_480", True), ("bg_10240", False)):
            some, details = structures(paths, name, options.rounds if with_targets else 1, with_targets)
            rows += some
            record["comparisons"].append(details)
        some, details = starts(paths["lca_10000"])
        rows += some
        record["comparisons"].append(details)
    print_table(rows)
    (options.out / "bench.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
