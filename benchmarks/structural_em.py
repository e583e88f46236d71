"""Structural EM and direct search: how often they end at the best structure, and how long they take.

``python benchmarks/structural_em.py [class|hidden|alarm …] [--seeds 100] [--out out]`` prints one line for each way and
writes ``OUT/structural_em.json``. Without a name all three are measured:

class   rows of the two-cause model (480, parameters drawn anew for every seed), searched among the 136 structures of
        Beal & Ghahramani (2006) by VB; the best of all 136 by the same fits is the target.
hidden  2 hidden variables, 16 binary columns, 2000 rows.
alarm   10 000 rows of the published 37-variable network with a tenth of the cells empty, by BIC.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lurking as lk
from lurking.experiments.beal2006.data import drawn_tables, rows_from, table_of
from lurking.search.direct import direct_search
from lurking.search.structural_em import structural_em
from lurking.search.structures import from_hidden_only, start_structure
from make_peers import BENCHMARKS
from timing import best_of

NETWORK = BENCHMARKS.parent / "tests/oracle/networks/alarm.bif"
HIDDEN = {"s1": 2, "s2": 2}
CLASS_ROWS, HIDDEN_ROWS, ALARM_ROWS = 480, 2000, 10_000
EMPTY_SHARE = 0.1
TIE = 1e-3  # nats: structures that close are as good as each other
RANDOM_STARTS = 9
PATIENCE = 5


def class_ways(table: lk.Table, seed: int) -> dict[str, tuple[lk.Dag, int]]:
    """Return where each way of searching the 136 structures ends, and how many of them it scored by direct search."""
    allowed = from_hidden_only(HIDDEN, table.columns)
    full, empty = (start_structure(table, HIDDEN, kind) for kind in ("full", "empty"))
    some = [start_structure(table, HIDDEN, "random", seed=100 * seed + k) for k in range(RANDOM_STARTS)]
    options: dict[str, Any] = {"constraints": allowed, "seed": 0}
    em = structural_em(table, [full, *some], **options)
    return {
        "structural EM from all arcs": (structural_em(table, full, **options).best, 0),
        f"structural EM from {RANDOM_STARTS + 1} starts": (em.best, 0),
        **dict(_direct("no arcs", table, empty, options)),
        **dict(_direct("all arcs", table, full, options)),
        **dict(_direct("where structural EM ended", table, em.best, options)),
    }


def _direct(
    start: str, table: lk.Table, dag: lk.Dag, options: dict[str, Any]
) -> Iterator[tuple[str, tuple[lk.Dag, int]]]:
    """Yield where direct search from one start ends, with and without patience, and how many structures it scored."""
    for patience in (0, PATIENCE):
        found = direct_search(table, dag, patience=patience, **options)
        yield f"direct search from {start}, patience {patience}", (found.best, found.n_scored)


def measure_class(seeds: int) -> Iterator[dict[str, Any]]:
    """Count how often each way ends at the best of all structures."""
    hits: dict[str, int] = {}
    scored: dict[str, int] = {}
    for seed in range(seeds):
        table = table_of(rows_from(drawn_tables(seed), np.random.default_rng([seed, 1]), CLASS_ROWS))
        everything = lk.compare(list(lk.bipartite(HIDDEN, table.columns)), table, scores=["vb"], seed=0)["vb"]
        values = {candidate.dag.canonical(): candidate.evidence.log_z for candidate in everything}
        for name, (found, n_scored) in class_ways(table, seed).items():
            is_best = values[found.canonical()] > max(values.values()) - TIE
            hits[name] = hits.get(name, 0) + is_best
            scored[name] = scored.get(name, 0) + n_scored
    for name, count in hits.items():
        yield {"what": "class", "way": name, "hits": count, "of": seeds, "structures_scored": scored[name] / seeds}


def hidden_table(seed: int) -> lk.Table:
    """Rows of two hidden causes, ten children each, four in common."""
    names = [f"y{k}" for k in range(1, 17)]
    arcs = [("s1", name) for name in names[:10]] + [("s2", name) for name in names[6:]]
    dag = lk.Dag([*HIDDEN, *names], arcs, HIDDEN)
    generator = np.random.default_rng(seed)
    tables = {name: generator.dirichlet([0.7, 0.7], size=2 ** len(dag.parents(name))) for name in names}
    return lk.Network.from_tables(dag, {**tables, "s1": [[0.4, 0.6]], "s2": [[0.5, 0.5]]}).sample(
        HIDDEN_ROWS, seed=seed
    )


def measure_hidden() -> Iterator[dict[str, Any]]:
    """Search all structures, and those with arcs from the hidden variables alone."""
    table = hidden_table(0)
    full = start_structure(table, HIDDEN, "full")
    ways: dict[str, dict[str, Any]] = {
        "all structures": {},
        "arcs from hidden variables alone": {"constraints": from_hidden_only(HIDDEN, table.columns)},
    }
    for name, options in ways.items():
        seconds, found = best_of(1, lambda more=options: structural_em(table, full, seed=0, **more))
        yield record("hidden", name, seconds, found)


def alarm_table() -> lk.Table:
    """Complete rows of alarm, then a tenth of the cells taken away."""
    whole = lk.read_network(NETWORK).sample(ALARM_ROWS, seed=0)
    generator = np.random.default_rng(2)
    columns = {}
    for name in whole.columns:
        codes = whole[name].codes.copy()
        codes[generator.random(len(codes)) < EMPTY_SHARE] = -1
        columns[name] = codes, whole[name].levels
    return lk.Table.from_codes(columns)


def measure_alarm() -> Iterator[dict[str, Any]]:
    """Search from no arcs, and say how far the truth is."""
    table, truth = alarm_table(), lk.read_network(NETWORK).dag
    of_truth = lk.score(truth, table, "bic", restarts=1, seed=0).log_z
    for name, options in {"default": {}, "no perturbations": {"perturbations": 0}}.items():
        seconds, found = best_of(
            1, lambda more=options: structural_em(table, lk.Dag(table.columns), score="bic", restarts=1, **more)
        )
        distance = lk.structural_hamming_distance(found.best, truth)
        above = found.score - of_truth
        yield {**record("alarm", name, seconds, found), "above_truth": above, "hamming_distance": distance}


def record(what: str, way: str, seconds: float, found: Any) -> dict[str, Any]:
    """Return what is printed of one search."""
    return {
        "what": what,
        "way": way,
        "seconds": seconds,
        "score": found.score,
        "structures_fitted": len(found.history),
        "families": found.n_evaluated,
        "violations": found.violations,
    }


def main() -> None:
    """Measure what was asked for, print it, write the record."""
    parser = argparse.ArgumentParser(description="structural EM and direct search")
    parser.add_argument("what", nargs="*", choices=["class", "hidden", "alarm", []], help="all three by default")
    parser.add_argument("--seeds", type=int, default=100, help="data sets of the class of 136 structures")
    parser.add_argument("--out", type=Path, default=BENCHMARKS.parent / "out", help="folder of the record")
    options = parser.parse_args()
    measured = {"class": lambda: measure_class(options.seeds), "hidden": measure_hidden, "alarm": measure_alarm}
    records = []
    for what in options.what or measured:
        for entry in measured[what]():
            records.append(entry)
            print(json.dumps(entry))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "structural_em.json").write_text(json.dumps(records, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
