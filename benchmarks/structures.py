"""Structures learnt from 10 000 complete rows of alarm by BDeu: seconds, and nats above the truth's score.

``python benchmarks/structures.py [--rounds 3] [--pgmpy] [--out out]`` prints one table and writes
``OUT/structures.json``. Every structure is scored by lurking with equivalent sample size 1. ``--pgmpy`` adds pgmpy's
greedy equivalence search, which takes minutes.
"""

import argparse
import gzip
import json
import os
from pathlib import Path
from typing import Any

import lurking as lk
from data_large import alarm_file
from lurking.search.families import FamilyScores, score_of
from make_peers import BENCHMARKS
from rows import run_peer
from timing import best_of

ROWS = 10_000
PGMPY_TIMEOUT_SECONDS = 3600
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"method": "greedy"},
    "greedy from a tree": {"method": "greedy", "start": "tree"},
    "tabu, no restarts": {"method": "tabu", "restarts": 0, "patience": 100},
    "greedy, 100 restarts": {"method": "greedy", "restarts": 100},
    "tabu, 100 restarts (default)": {},
}


def write_rows(folder: Path) -> tuple[Path, Path] | None:
    """Write the published network and complete rows drawn from it, or None where the peers' environment is missing."""
    published = alarm_file()
    if published is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    network, rows = folder / "alarm.bif", folder / f"alarm_complete_{ROWS}.csv"
    network.write_bytes(gzip.decompress(published.read_bytes()))
    lk.read_network(network).sample(ROWS, seed=0).to_frame().astype(str).to_csv(rows, index=False)
    return network, rows


def ours(table: lk.Table, rounds: int) -> dict[str, tuple[float, lk.Dag]]:
    """Seconds and structure of every way of searching; unique rows and everything else are found anew each time."""
    lk.search(table, method="greedy")  # compiled before the clock starts
    found = {}
    for name, options in WAYS.items():
        # Every round has a table of its own, since a table keeps its unique rows.
        seconds, result = best_of(
            rounds, lambda more=options: lk.search(table.select(table.columns), workers=1, **more)
        )
        found[name] = seconds, result.best
    return found


def theirs(network: Path, rows: Path, with_pgmpy: bool) -> dict[str, tuple[float, lk.Dag]]:
    """The same of the peers that are installed."""
    measured = [run_peer("peer_pyagrum_structure.py", "pyAgrum", network, rows)]
    if with_pgmpy:
        measured.append(run_peer("peer_pgmpy_structure.py", "pgmpy", rows, timeout=PGMPY_TIMEOUT_SECONDS))
    found = {}
    for peer in measured:
        if "error" in peer:
            print(f"{peer['peer']}: {peer['error']}")
            continue
        for name, seconds in peer["settings"].items():
            edges = [tuple(edge) for edge in peer["structures"][name]]
            nodes = lk.read_network(network).dag.nodes
            found[f"{peer['peer']} {peer['version']}: {name}"] = seconds, lk.Dag(nodes, edges)
    return found


def main() -> None:
    """Run everything, print the table, write the record."""
    parser = argparse.ArgumentParser(description="structures learnt from complete rows")
    parser.add_argument("--rounds", type=int, default=3, help="times each of lurking's searches is repeated")
    parser.add_argument("--pgmpy", action="store_true", help="also pgmpy's greedy equivalence search: minutes")
    parser.add_argument("--out", type=Path, default=BENCHMARKS.parent / "out", help="folder of the record and the data")
    options = parser.parse_args()
    written = write_rows(options.out / "bench-data")
    if written is None:
        raise SystemExit("alarm comes with pgmpy: run benchmarks/make_peers.py first")
    network, rows = written
    print("load average at the start: " + " ".join(f"{load:.2f}" for load in os.getloadavg()), flush=True)
    truth = lk.read_network(network).dag
    table = lk.read(rows, categorical=list(truth.nodes))
    scorer = FamilyScores(table, "bdeu", 1.0)
    mark = score_of(scorer, truth)
    print(f"truth: {len(truth.edges)} arcs, BDeu {mark:.2f} on {table.n_rows} rows")
    print(f"{'':44} {'seconds':>9} {'nats above truth':>17} {'arcs':>5} {'SHD':>4}")
    record = []
    for name, (seconds, dag) in {**ours(table, options.rounds), **theirs(network, rows, options.pgmpy)}.items():
        gain, distance = score_of(scorer, dag) - mark, lk.structural_hamming_distance(dag, truth)
        print(f"{name:44} {seconds:9.3f} {gain:17.2f} {len(dag.edges):5} {distance:4}", flush=True)
        record.append({"way": name, "seconds": seconds, "gain": gain, "arcs": len(dag.edges), "shd": distance})
    (options.out / "structures.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
