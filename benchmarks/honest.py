"""How honest and how fast the sampled evidence is: ``python benchmarks/honest.py [--seeds 20] [--sizes 40,160,480]``.

The true structure of Beal & Ghahramani (2006) on the benchmark's data. For each size a reference (the mean of several
long runs), then one run of `ais` per seed on one thread: root-mean-square error, share of values within two reported
standard errors, seconds. With ``--faithful`` the parameter path of the paper's algorithm is measured in the same run,
for the ratio of the times that both need for the same accuracy: time × (error / 0.3)², as errors of a mean fall with
the root of the time. The paper's own K = 16384 is too short for errors that small: with ``--longer`` chains eight times
as long are measured too (fewer seeds).
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import lurking as lk
from data import two_causes
from ours import TWO_CAUSES

LONG = {"target": 0.05, "passes": 1 << 21, "steps": 1024, "particles": 64}
PASSES = {40: 100_000, 160: 100_000, 480: 300_000, 2560: 300_000, 10240: 300_000}
"""Passes over the rows that bring the error below 0.3 nats."""
PAPER: dict[str, Any] = {"path": "parameters", "steps": 16384, "chains": 26, "strength": (2000.0, 0.0)}
"""The paper's K, G and one joint proposal per temperature; its width, not printed, rejects about 40 % at n = 480."""


LONGER, LONGER_SEEDS = 8, 6


@dataclass(frozen=True)
class Line:
    what: str
    n: int
    reference: float
    rmse: float
    covered: float
    mean_error: float
    seconds: float
    values: list[float]


def table_of(n: int) -> Any:
    """The first n rows of the benchmark's data."""
    names = ["y1", "y2", "y3", "y4"]
    return lk.Table.from_rows(two_causes(n).tolist(), names, levels={name: list(range(5)) for name in names})


def reference_of(table: Any, runs: int) -> float:
    """ln of the mean of several long estimates, without those that say themselves that they are not to be trusted."""
    found = [lk.score(TWO_CAUSES, table, "ais", seed=12345 + k, **LONG) for k in range(runs)]
    trusted = [evidence for evidence in found if evidence.status is not lk.Status.UNTRUSTED]
    found, runs = (trusted, len(trusted)) if trusted else (found, runs)
    values = np.asarray([evidence.log_z for evidence in found])
    weights = np.exp(values - values.max())
    value = float(values.max() + np.log(weights.mean()))
    error = weights.std(ddof=1) / weights.mean() / np.sqrt(runs) if runs > 1 else found[0].std_error
    print(f"reference at n = {table.n:.0f}: {value:.3f} ± {error:.3f}, {runs} runs", flush=True)
    return value


def measure(what: str, table: Any, reference: float, seeds: int, **options: Any) -> Line:
    """Run every seed and compare with the reference."""
    found, seconds = [], []
    for seed in range(seeds):
        start = perf_counter()
        found.append(lk.score(TWO_CAUSES, table, "ais", seed=seed, workers=1, **options))
        seconds.append(perf_counter() - start)
    values = np.asarray([evidence.log_z for evidence in found])
    errors = np.asarray([evidence.std_error for evidence in found])
    away = values - reference
    line = Line(
        what,
        int(table.n),
        reference,
        float(np.sqrt(np.mean(away**2))),
        float(np.mean(np.abs(away) <= 2.0 * errors)),
        float(errors.mean()),
        float(np.mean(seconds)),
        values.tolist(),
    )
    print(
        f"{what:32} n = {line.n:6}  reference {reference:12.3f}  rmse {line.rmse:6.3f}  within two standard errors "
        f"{line.covered:5.0%}  mean standard error {line.mean_error:6.3f}  {line.seconds:7.3f} s",
        flush=True,
    )
    return line


def main() -> None:
    """Measure, print and write out/honest.json."""
    parser = argparse.ArgumentParser(description="honesty and speed of sampled evidence")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sizes", default="40,160,480,2560,10240")
    parser.add_argument("--references", type=int, default=6, help="long runs behind each reference")
    parser.add_argument("--longer", action="store_true", help="also chains eight times as long as the paper's")
    parser.add_argument("--faithful", action="store_true", help="also the paper's parameter path")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "out")
    options = parser.parse_args()
    lk.score(TWO_CAUSES, table_of(6), "ais", passes=2000, steps=4)
    lines = []
    for n in map(int, options.sizes.split(",")):
        table = table_of(n)
        reference = reference_of(table, options.references)
        if not options.faithful:
            lines.append(measure("ais, default", table, reference, options.seeds))
        passes = PASSES.get(n, 300_000)
        quick = measure(f"ais, passes={passes}", table, reference, options.seeds, passes=passes, target=0.3)
        lines.append(quick)
        if options.faithful:
            longer = {**PAPER, "steps": LONGER * PAPER["steps"]}
            measured = [(PAPER, options.seeds), (longer, LONGER_SEEDS)]
            for setting, seeds in measured if options.longer else measured[:1]:
                slow = measure(f"paper: K = {setting['steps']}, G = 26", table, reference, seeds, **setting)
                lines.append(slow)
                ratio = slow.seconds * slow.rmse**2 / (quick.seconds * quick.rmse**2)
                print(f"time for the same accuracy, this path over ais: {ratio:.0f}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "honest.json").write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
