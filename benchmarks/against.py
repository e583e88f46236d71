"""Two source trees against each other: processor seconds of small benchmarks, taking turns in one run.

    python benchmarks/against.py OLD NEW [--rounds 15] [--repeats 3] [--only gibbs,ais] [--out FILE]

OLD and NEW are folders with src/lurking. Each tree has a process of its own that prepares every benchmark, compiles and
runs it once before anything is measured; both are started anew every few rounds, because where a process lies in memory
can change its speed by a few percent. A round measures every benchmark `--repeats` times with each tree, in turn, in an
order that is drawn anew; the smallest value counts. Printed are the median over the rounds of the ratio new / old and
its 95 % interval, and the program ends with 1 if an upper limit is above 1.03.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from math import comb
from pathlib import Path
from statistics import median
from typing import NamedTuple

from trees import environment

LEAST_ROUNDS = 15
ROUNDS_OF_A_PROCESS = 5
LARGEST_RATIO = 1.03
COVERAGE = 0.95
SEED = 0


class Interval(NamedTuple):
    """The median of some ratios with the interval that holds the true median with 95 % confidence."""

    lower: float
    middle: float
    upper: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> "Interval":
        """Return the interval between order statistics; it makes no assumption on how ratios are distributed.

        The true median lies below the k-th smallest of n values with probability Σ_{i < k} C(n, i) / 2^n. With fewer
        than six values no interval reaches 95 %; the smallest and the largest are returned.
        """
        ordered, count = sorted(ratios), len(ratios)
        rank, below = 0, 1.0
        while rank < count // 2 and 2.0 * below / 2.0**count <= 1.0 - COVERAGE:
            rank += 1
            below += comb(count, rank)
        rank = max(rank, 1)
        return cls(ordered[rank - 1], median(ordered), ordered[count - rank])

    @property
    def is_within(self) -> bool:
        """True if the upper limit is not above what is allowed."""
        return self.upper <= LARGEST_RATIO


class Side:
    """The process that runs the benchmarks with one tree."""

    def __init__(self, tree: Path) -> None:
        command = [sys.executable, str(Path(__file__).resolve().with_name("against_work.py"))]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.process = subprocess.Popen(command, env=environment(tree), **pipes)

    def seconds(self, name: str) -> float:
        """Return the processor seconds of one run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process of {name!r} ended with {self.process.wait()}")
        return float(json.loads(answer))

    def end(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        if self.process.poll() is None:
            self.process.stdin.write("-\n")
            self.process.wait()


def measure(trees: Sequence[Path], names: Sequence[str], rounds: int, repeats: int) -> dict[str, list[list[float]]]:
    """Return {benchmark: seconds of every round, old and new}."""
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    order = random.Random(SEED)
    for begin in range(0, rounds, ROUNDS_OF_A_PROCESS):
        sides = [Side(tree) for tree in trees]
        try:
            for name in names:
                for side in sides:
                    side.seconds(name)  # compiles, reads and draws what the benchmark needs
            for number in range(begin, min(rounds, begin + ROUNDS_OF_A_PROCESS)):
                for name in order.sample(names, len(names)):
                    found[name].append(one_round(sides, name, repeats, order.randrange(2)))
                print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        finally:
            for side in sides:
                side.end()
    return found


def one_round(sides: Sequence[Side], name: str, repeats: int, first: int) -> list[float]:
    """Return the smallest seconds of both sides: old, new, new, old, so that a drift strikes both alike."""
    best = [float("inf"), float("inf")]
    for turn in range(2 * repeats):
        which = (first + (turn + 1) // 2) % 2
        best[which] = min(best[which], sides[which].seconds(name))
    return best


def report(found: dict[str, list[list[float]]]) -> list[str]:
    """Print one line for each benchmark and return the names of those that may be slower."""
    print(f"{'benchmark':24} {'old s':>8} {'new s':>8} {'ratio':>7}   95 % interval")
    slower = []
    for name, pairs in found.items():
        interval = Interval.of([new / old for old, new in pairs])
        seconds = [median(values) for values in zip(*pairs, strict=True)]
        note = "" if interval.is_within else f"   above {LARGEST_RATIO}"
        slower += [] if interval.is_within else [name]
        limits = f"{interval.lower:.3f} to {interval.upper:.3f}"
        print(f"{name:24} {seconds[0]:8.4f} {seconds[1]:8.4f} {interval.middle:7.3f}   {limits}{note}")
    return slower


def main(given: Sequence[str] | None = None) -> int:
    """Measure and report; 1 if some benchmark may be slower."""
    from against_work import BENCHMARKS

    parser = argparse.ArgumentParser(description="two source trees against each other")
    parser.add_argument("old", type=Path, help="folder with src/lurking")
    parser.add_argument("new", type=Path, help="folder with src/lurking")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help="rounds, at least 15 for a number to quote")
    parser.add_argument("--repeats", type=int, default=3, help="runs of a tree in a round; the smallest counts")
    parser.add_argument("--only", type=lambda text: text.split(","), help="names of benchmarks, separated by commas")
    parser.add_argument("--out", type=Path, help="file for the seconds of every round, as JSON")
    options = parser.parse_args(given)
    names = [name.strip() for name in options.only] if options.only else list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise SystemExit(f"unknown benchmark {unknown[0]!r}; benchmarks are: {'; '.join(BENCHMARKS)}")
    print("load average at the start: " + " ".join(f"{load:.2f}" for load in os.getloadavg()), flush=True)
    found = measure([options.old, options.new], names, options.rounds, options.repeats)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.rounds < LEAST_ROUNDS:
        print(f"only {options.rounds} rounds; quote no number from fewer than {LEAST_ROUNDS}")
    slower = report(found)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
