"""Send Ctrl-C to runs of the command at random moments: each must end soon, with 130, or with 0 if it was done.

    python benchmarks/interrupts.py --runs 40

Every command runs twice undisturbed; then it is started `--runs` times and interrupted at a moment drawn uniformly from
the start of the process to a little after its usual end. Printed per command: how the runs ended, how long they took
from the signal to the end, and whatever is wrong (another exit code, a traceback, a run that goes on for `--patience`
seconds). A signal that arrives while Python itself starts, before any code of this project runs, is Python's own affair
and is counted apart.
"""

from __future__ import annotations

import argparse
import collections
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SMALL = ("--restarts", "20", "--max-iter", "3000", "--tol", "0")
COMMANDS = {
    "fit": ("fit", "data.csv", "--model", "class[4] -> *", *SMALL),
    "score": ("score", "data.csv", "--model", "class[3] -> *", "--scores", "vb,cs,ais", "--steps", "4000"),
    "compare": ("compare", "data.csv", "--model", "class[1..5] -> *", *SMALL),
    "search": ("search", "data.csv", "--hidden", "1", "--time-limit", "8"),
}
STARTING = ("<frozen ", "site.py", "sitecustomize", "runpy", "Fatal Python error: init", "encodings")


@dataclass
class Tally:
    """How the runs of one command ended."""

    endings: collections.Counter[str] = field(default_factory=collections.Counter)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def write_data(folder: Path) -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 3000)
    answers = rng.random((3000, 8)) < np.array([0.15, 0.5, 0.85])[kind][:, None]
    lines = [",".join(f"y{j}" for j in range(8)), *(",".join(map(str, row)) for row in answers.astype(int))]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")


def start(words: tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lurking", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupt(words: tuple[str, ...], folder: Path, moment: float, patience: float, tally: Tally) -> None:
    process = start(words, folder)
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    try:
        _, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
        tally.endings["went on"] += 1
        tally.wrong.append(f"after {moment:.2f} s: still running {patience:g} s later\n{err}")
        return
    tally.seconds.append(time.monotonic() - sent)
    code = process.returncode
    is_python = "lurking" not in err.replace(str(folder), "") and any(word in err for word in STARTING)
    if code == -signal.SIGINT or (code != 0 and is_python):
        tally.endings["while Python started"] += 1
    elif code in (0, 130) and "Traceback" not in err and "ignored" not in err:
        tally.endings[str(code)] += 1
    else:
        tally.endings[f"{code}, wrong"] += 1
        tally.wrong.append(f"after {moment:.2f} s: {code}\n{err}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Interrupt runs of the command at random moments.")
    parser.add_argument("--runs", type=int, default=40, help="interrupted runs of each command")
    parser.add_argument("--patience", type=float, default=15.0, help="seconds after which a run counts as lost")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    options = parser.parse_args()
    # In a background job Ctrl-C is ignored by the processes started here too, unless it is handled here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    generator, is_wrong = random.Random(options.seed), False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        for verb in options.commands.split(","):
            tally, usual = Tally(), 0.0
            for _ in range(2):  # the first one may have to compile kernels
                began = time.monotonic()
                with start(COMMANDS[verb], folder) as process:
                    process.communicate()
                usual = time.monotonic() - began
            for _ in range(options.runs):
                interrupt(COMMANDS[verb], folder, generator.uniform(0.0, 1.1 * usual), options.patience, tally)
            ends = ", ".join(f"{ending}: {count}" for ending, count in sorted(tally.endings.items()))
            slowest = max(tally.seconds, default=0.0)
            print(f"{verb:8} {usual:5.1f} s undisturbed; {ends}; slowest end {slowest:.1f} s", flush=True)
            for text in tally.wrong:
                print("  " + text.strip().replace("\n", "\n  "), flush=True)
            is_wrong = is_wrong or bool(tally.wrong)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
