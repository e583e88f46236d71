"""Are hidden variables found again? Networks with nodes taken away, complete networks, and panels.

``python benchmarks/inventing.py [CASE …] [--data-sets 1] [--rows 10000] [--limit SECONDS] [--out out]`` prints what was
found in each data set and how often it was right, and writes ``OUT/inventing.json``, which later runs add to. Cases are
NETWORK:NODE or NETWORK:NODE+NODE (those columns are taken away), NETWORK (nothing is), ``panel`` (two attitudes with
three answers each), ``answers`` (two answers each), ``coleman`` (the panel of Coleman 1964); the panels also with
``:indicators`` behind them, columns being parents of nothing then.
"""

import argparse
import gzip
import itertools
import json
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import lurking as lk
from make_peers import BENCHMARKS, ENVIRONMENT

CASES = (
    *("asia:either", "asia:smoke", "asia:smoke+either"),
    *("child:Disease", "child:LungParench", "child:Disease+LungParench"),
    *("alarm:HR", "alarm:VENTLUNG", "alarm:INTUBATION", "alarm:LVFAILURE", "alarm:HR+VENTLUNG"),
    *("asia", "child", "alarm"),
    *("panel", "panel:indicators", "answers", "answers:indicators", "coleman", "coleman:indicators"),
)
STRONG = 0.05
"""Nats that a child must say of its parent to count as strong."""
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


def panel(rows: int, answers: int, seed: int) -> lk.Table:
    """Draw rows of two attitudes that go together, each of them in some answers of its own."""
    first, second = ([f"{letter}{k + 1}" for k in range(answers)] for letter in "ab")
    dag = lk.Dag.parse(f"a[2] -> b {' '.join(first)}; b[2] -> {' '.join(second)}")
    tables = {"a": [[0.5, 0.5]], "b": [[0.75, 0.25], [0.25, 0.75]]}
    tables |= {name: [[0.85, 0.15], [0.2, 0.8]] for name in (*first, *second)}
    levels = {name: [0, 1] for name in (*first, *second)}
    return lk.Network.from_tables(dag, tables, levels=levels).sample(rows, seed=seed)


def coleman() -> lk.Table:
    """Return the panel of 3398 boys."""
    states = [(m, a) for m in "+-" for a in "+-"]
    rows = [(*before, *after) for before in states for after in states]
    return lk.Table.from_rows(rows, columns=["M1", "A1", "M2", "A2"], weights=COLEMAN)


def strengths(truth: lk.Network, node: str) -> dict[str, float]:
    """Return for every child of a node how much it says of it, I(child; node | other parents) in nats."""

    def entropy(names: list[str]) -> float:
        joint = truth.joint(names).ravel() if names else np.ones(1)
        return -float((joint[joint > 0.0] * np.log(joint[joint > 0.0])).sum())

    result = {}
    for child in truth.dag.children(node):
        others = [parent for parent in truth.dag.parents(child) if parent != node]
        inside = entropy([*others, node, child]) + entropy(others)
        result[child] = entropy([*others, node]) + entropy([*others, child]) - inside
    return result


@dataclass(frozen=True)
class Case:
    """One data set: the table, what was taken away with its observed neighbours, and how well it can be seen.

    truth : neighbours in the network. seen : neighbours that the same score finds while the columns are still there;
    no search without them can be asked for more. strong : the least number of strong children.
    """

    table: lk.Table
    truth: dict[str, set[str]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    strong: int = 0


def drawn(case: str, rows: int, seed: int) -> Case:
    """Return one data set of a case."""
    name, _, taken = case.partition(":")
    if name in ("panel", "answers"):
        return Case(panel(2000, 3 if name == "panel" else 2, seed))
    if name == "coleman":
        return Case(coleman())
    truth = network(name)
    table = truth.sample(rows, seed=seed)
    if not taken:
        return Case(table)
    gone = taken.split("+")
    strong = min(sum(value >= STRONG for value in strengths(truth, node).values()) for node in gone)
    observed = lk.search(table, score="bd", seed=seed).best
    return Case(table.drop(gone), around(truth.dag, gone), around(observed, gone), strong)


def around(dag: lk.Dag, nodes: Iterable[str]) -> dict[str, set[str]]:
    """Return the neighbours of some nodes, but for these nodes themselves."""
    return {node: {*dag.parents(node), *dag.children(node)} - set(nodes) for node in nodes}


def errors(found: dict[str, set[str]], truth: dict[str, set[str]]) -> int | None:
    """Return how many neighbours were missed or are wrong, in the best matching; None where too few were found.

    Hidden variables beyond those of the truth are not counted here.
    """
    if len(found) < len(truth):
        return None
    choices = itertools.permutations(found.values(), len(truth))
    return min(sum(len(a ^ b) for a, b in zip(choice, truth.values(), strict=True)) for choice in choices)


def run(case: str, rows: int, seed: int, limit: float | None) -> dict[str, Any]:
    """Search one data set, print what was found, and return it for the record."""
    what = drawn(case, rows, seed)
    begun = time.perf_counter()
    options: dict[str, Any] = {"time_limit": limit, "indicators": case.endswith(":indicators")}
    result = lk.search(what.table, hidden="auto", seed=seed, **options)
    seconds = time.perf_counter() - begun
    dag = result.best
    found = around(dag, dag.hidden)
    wrong, unseen = errors(found, what.truth), errors(found, what.seen)
    said = f", neighbours missed or wrong: {wrong}, as when observed: {unseen}" if what.truth else ""
    print(f"{case:26} {seed}: {seconds:6.1f} s, {len(found)} hidden{said}; {result.evidence}", flush=True)
    for name, near in found.items():
        print(f"    {name}[{dag.hidden[name]}] joined with {', '.join(sorted(near))}")
    for name, near in what.truth.items():
        print(
            f"    {name} was joined with {', '.join(sorted(near))}; observed, with {', '.join(sorted(what.seen[name]))}"
        )
    for trial in result.history:
        print(f"    {trial}")
    shares = None if result.posterior is None else result.posterior.hidden_probabilities()
    print(f"    p(number of hidden variables): {result.untried or shares}", flush=True)
    return {
        "case": case,
        "seed": seed,
        "rows": what.table.n_rows,
        "seconds": seconds,
        "hidden": dict(dag.hidden),
        "joined": {name: sorted(near) for name, near in found.items()},
        "truth": {name: sorted(near) for name, near in what.truth.items()},
        "seen": {name: sorted(near) for name, near in what.seen.items()},
        "strong_children": what.strong,
        "errors": wrong,
        "unlike_seen": unseen,
        "log_z": result.evidence.log_z,
        "std_error": result.evidence.std_error,
        "status": result.status.name,
        "p_hidden": shares,
    }


def summary(record: Sequence[dict[str, Any]]) -> None:
    """Print for each case how many data sets were right, and in what time."""
    columns = ("data sets", "right", "as seen", "either", "too many", "strong", "seconds")
    print(f"{'case':26}" + "".join(f"{name:>10}" for name in columns))
    for case in dict.fromkeys(row["case"] for row in record):
        rows = [row for row in record if row["case"] == case]
        wanted = len(rows[0]["truth"])
        right = [row["errors"] == 0 if wanted else not row["hidden"] for row in rows]
        seen = [row["unlike_seen"] == 0 if wanted else not row["hidden"] for row in rows]
        either = sum(one or other for one, other in zip(right, seen, strict=True))
        many = sum(len(row["hidden"]) > wanted for row in rows)
        middle = round(statistics.median(row["seconds"] for row in rows))
        numbers = (len(rows), sum(right), sum(seen), either, many, rows[0]["strong_children"], middle)
        print(f"{case:26}" + "".join(f"{number:10}" for number in numbers), flush=True)


def main() -> None:
    """Run the cases, print them, add them to the record."""
    parser = argparse.ArgumentParser(description="hidden variables found again")
    parser.add_argument("cases", nargs="*", default=list(CASES), help="which cases; all by default")
    parser.add_argument("--data-sets", type=int, default=1, help="data sets of each case, with seeds 0, 1, …")
    parser.add_argument("--rows", type=int, default=10_000, help="rows drawn from each network")
    parser.add_argument("--limit", type=float, default=None, help="seconds for each data set")
    parser.add_argument("--out", type=Path, default=BENCHMARKS.parent / "out", help="folder of the record")
    options = parser.parse_args()
    print("load average at the start: " + " ".join(f"{load:.2f}" for load in os.getloadavg()), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "inventing.json"
    for seed in range(options.data_sets):
        for case in options.cases:
            row = run(case, options.rows, seed, options.limit)
            record = json.loads(path.read_text()) if path.exists() else []
            record = [old for old in record if (old["case"], old["seed"]) != (case, seed)] + [row]
            path.write_text(json.dumps(record, indent=1) + "\n")
    summary([row for row in json.loads(path.read_text()) if row["case"] in options.cases])


if __name__ == "__main__":
    main()
