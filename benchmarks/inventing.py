"""Are hidden variables found again? Networks with one node taken away, complete networks, and panels.

``python benchmarks/inventing.py [CASE …] [--rows 10000] [--limit SECONDS] [--out out]`` prints one line for each case
and writes ``OUT/inventing.json``. Cases are NETWORK:NODE (that column is taken away), NETWORK (nothing is), ``panel``
(two attitudes with three answers each), ``answers`` (two answers each), ``coleman`` (the panel of Coleman 1964).
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path

import lurking as lk
from make_peers import BENCHMARKS, ENVIRONMENT

CASES = ("asia", "asia:either", "child", "child:Disease", "alarm:HR", "alarm:VENTLUNG", "alarm", "panel", "coleman")
ORACLE = BENCHMARKS.parent / "tests" / "oracle" / "data"
COLEMAN = (458, 140, 110, 49, 171, 182, 56, 87, 184, 75, 531, 281, 85, 97, 338, 554)
"""Member of the leading crowd and in favour of it, + +, + −, − +, − −, in autumn (slow) and in spring (fast)."""


def network(name: str) -> lk.Network:
    """Read a published network from the tests, or from the examples that come with pgmpy."""
    path = ORACLE / f"{name}.bif"
    if path.exists():
        return lk.read_network(path)
    found = sorted(ENVIRONMENT.glob(f"lib/python*/site-packages/pgmpy/utils/example_models/{name}.bif.gz"))
    if not found:
        raise SystemExit(f"{name} comes with pgmpy: run benchmarks/make_peers.py first")
    copy = BENCHMARKS.parent / "out" / "bench-data" / f"{name}.bif"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(gzip.decompress(found[0].read_bytes()))
    return lk.read_network(copy)


def panel(rows: int, answers: int) -> lk.Table:
    """Draw rows of two attitudes that go together, each of them in some answers of its own."""
    first, second = ([f"{letter}{k + 1}" for k in range(answers)] for letter in "ab")
    dag = lk.Dag.parse(f"a[2] -> b {' '.join(first)}; b[2] -> {' '.join(second)}")
    tables = {"a": [[0.5, 0.5]], "b": [[0.75, 0.25], [0.25, 0.75]]}
    tables |= {name: [[0.85, 0.15], [0.2, 0.8]] for name in (*first, *second)}
    levels = {name: [0, 1] for name in (*first, *second)}
    return lk.Network.from_tables(dag, tables, levels=levels).sample(rows, seed=0)


def coleman() -> lk.Table:
    """Return the panel of 3398 boys."""
    states = [(m, a) for m in "+-" for a in "+-"]
    rows = [(*before, *after) for before in states for after in states]
    return lk.Table.from_rows(rows, columns=["M1", "A1", "M2", "A2"], weights=COLEMAN)


def data(case: str, rows: int) -> tuple[lk.Table, set[str]]:
    """Return the table of a case and the neighbours of what was taken away."""
    if case in ("panel", "answers"):
        return panel(2000, 3 if case == "panel" else 2), set()
    if case == "coleman":
        return coleman(), set()
    name, _, taken = case.partition(":")
    truth = network(name)
    table = truth.sample(rows, seed=0)
    if not taken:
        return table, set()
    return table.drop([taken]), {*truth.dag.parents(taken), *truth.dag.children(taken)}


def run(case: str, rows: int, limit: float | None) -> dict[str, object]:
    """Search one case, print what was found, and return it for the record."""
    table, neighbours = data(case, rows)
    begun = time.perf_counter()
    result = lk.search(table, hidden="auto", seed=0, time_limit=limit)
    seconds = time.perf_counter() - begun
    found = {name: sorted({*result.best.parents(name), *result.best.children(name)}) for name in result.best.hidden}
    print(f"{case:16} {seconds:7.1f} s  {len(found)} hidden  {result.evidence}", flush=True)
    for name, near in found.items():
        print(f"    {name}[{result.best.hidden[name]}] joined with {', '.join(near)}")
    if neighbours:
        print(f"    taken away was joined with {', '.join(sorted(neighbours))}")
    for trial in result.history:
        print(f"    {trial}")
    print(f"    p(number of hidden variables): {result.posterior.hidden_probabilities()}", flush=True)
    return {
        "case": case,
        "seconds": seconds,
        "hidden": dict(result.best.hidden),
        "joined": found,
        "truth": sorted(neighbours),
        "log_z": result.evidence.log_z,
        "std_error": result.evidence.std_error,
        "status": result.status.name,
        "p_hidden": result.posterior.hidden_probabilities(),
    }


def main() -> None:
    """Run the cases, print them, write the record."""
    parser = argparse.ArgumentParser(description="hidden variables found again")
    parser.add_argument("cases", nargs="*", default=list(CASES), help="which cases; all by default")
    parser.add_argument("--rows", type=int, default=10_000, help="rows drawn from each network")
    parser.add_argument("--limit", type=float, default=None, help="seconds for each case")
    parser.add_argument("--out", type=Path, default=BENCHMARKS.parent / "out", help="folder of the record")
    options = parser.parse_args()
    print("load average at the start: " + " ".join(f"{load:.2f}" for load in os.getloadavg()), flush=True)
    record = [run(case, options.rows, options.limit) for case in options.cases]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "inventing.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
