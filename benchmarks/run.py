"""The benchmark: lurking and its peers in turn on the same files. Entry of ``make bench``.

``python benchmarks/run.py [--rounds 2] [--peers-only] [--large] [--out out]`` prints one table and writes
``OUT/bench.json``.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from data import write_all
from make_peers import BENCHMARKS
from rows import Measured, Row, peer_label, print_table, ratio_of, run_peer, smaller, verdict

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
        peer = smaller(peer, run_peer(comparison.script, comparison.peer, path))
        if not peers_only:
            our = smaller(our, measure_ours(comparison, path, peer))
    peer, our = peer or {}, our or {}
    ratio = ratio_of(peer.get("seconds"), our.get("seconds"))
    goal = comparison.target
    row = Row(
        comparison.what,
        our.get("seconds"),
        peer_label(comparison.peer, peer),
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
        now_one, now_two = ours.structures(paths[name])
        one, two = smaller(one, now_one), smaller(two, now_two)
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
    parser.add_argument("--large", action="store_true", help="also the file larger than memory: disk and minutes")
    parser.add_argument("--large-bytes", type=float, default=2e9, help="size of that file")
    parser.add_argument("--out", type=Path, default=BENCHMARKS.parent / "out", help="folder of bench.json and the data")
    return parser.parse_args()


def main() -> None:
    """Run everything, print the table, write the record."""
    import scale

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
    for some, details in scale.comparisons(paths, options):
        rows += some
        record["comparisons"].append(details)
    print_table(rows)
    (options.out / "bench.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
