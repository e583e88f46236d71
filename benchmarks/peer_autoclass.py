"""AutoClass C: seconds of one try to convergence, latent class model. ``python peer_autoclass.py lca_400.csv``.

AutoClass seeds its random numbers from the clock in whole seconds, anew for each try, and offers no other seed outside
its testing mode; ``faketime`` holds the clock, so every try of one process is the same try. The seconds of a try are
then (process with many tries - process with one try) / (tries - 1): start-up, reading and writing are left out.
Standard library and NumPy only.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from timing import best_of, report

CLASSES = 4
TRIES = 51
SEEDS = (1, 2, 3, 4, 5)
STOPPING_RULES = ("converge_search_3", "converge")
SAME_OPTIMUM = 0.05
NUMBER = re.compile(r"[-+]?\d+\.\d+e[-+]\d+")


def write_inputs(folder: Path, names: list[str], values: NDArray[np.int64]) -> None:
    """Write data, header and model file: every item a two-valued attribute, independent given the class."""
    np.savetxt(folder / "run.db2", values, fmt="%d", delimiter=" ")
    header = ["num_db2_format_defs 1", f"number_of_attributes {len(names)}", ""]
    header += [f'{index} discrete nominal "{name}" range 2' for index, name in enumerate(names)]
    (folder / "run.hd2").write_text("\n".join(header) + "\n")
    (folder / "run.model").write_text("model_index 0 1\nsingle_multinomial default\n")


def write_search(folder: Path, rule: str, tries: int) -> None:
    """Write the search parameters: four classes in every try, and nothing that waits for a terminal."""
    lines = {
        "start_j_list": CLASSES,
        "fixed_j": CLASSES,
        "max_n_tries": tries,
        "try_fn_type": f'"{rule}"',
        "interactive_p": "false",
        "break_on_warnings_p": "false",
        "save_compact_p": "false",
        "read_compact_p": "false",
        "min_report_period": 30000,
    }
    (folder / "run.s-params").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    for output in ("results", "search", "log"):
        (folder / f"run.{output}").unlink(missing_ok=True)


def search(folder: Path, rule: str, tries: int, seed: int | None, repeats: int) -> float:
    """Smallest wall-clock seconds of the whole process."""
    command = ["autoclass", "-search", "run.db2", "run.hd2", "run.model", "run.s-params"]
    if seed is not None:
        command = ["faketime", "-f", f"2020-01-01 00:00:{seed:02d}", *command]
    smallest = float("inf")
    for _ in range(repeats):
        write_search(folder, rule, tries)
        seconds, _ = best_of(
            1, lambda: subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        )
        smallest = min(smallest, seconds)
    return smallest


def log_likelihood(results: str, values: NDArray[np.int64]) -> float:
    """Compute log p(rows | parameters) from the class weights and item probabilities of a results file."""
    database, *classes = re.split(r"^class_DS \d+$", results, flags=re.MULTILINE)
    translations = re.findall(r"^translations_DS\n0 (\d)\n1 (\d)$", database, flags=re.MULTILINE)
    first_value = np.array([int(first) for first, _ in translations])
    second = values != first_value  # the program numbers the values of an item in its own order
    weights, probabilities = [], np.empty((len(classes), values.shape[1], 2))
    for index, block in enumerate(classes):
        lines = block.splitlines()
        weights.append(float(NUMBER.findall(lines[lines.index("w_j, pi_j") + 1])[1]))
        rows = [NUMBER.findall(lines[at + 1]) for at, line in enumerate(lines) if line == "val_probs"]
        items = [int(lines[at + 1].split()[1]) for at, line in enumerate(lines) if line.startswith("n_term, n_att,")]
        probabilities[index, items] = np.array(rows, dtype=float)
    table = np.log(probabilities)
    joint = np.log(weights) + second @ table[:, :, 1].T + ~second @ table[:, :, 0].T
    return float(np.logaddexp.reduce(joint, axis=1).sum())


def measure(folder: Path, values: NDArray[np.int64], rule: str, seed: int | None, repeats: int) -> dict[str, float]:
    """Seconds, cycles and log-likelihood of one try."""
    many = search(folder, rule, TRIES, seed, repeats)
    once = search(folder, rule, 1, seed, repeats)
    results, log = (folder / "run.results").read_text(), (folder / "run.log").read_text()
    stated = float(NUMBER.findall(results.split("log_p_x_h_pi_theta, log_a_x_h\n")[1])[0])
    cycles = re.search(r"num_cycles\s+(\d+)", log)
    return {
        "seconds": (many - once) / (TRIES - 1),
        "process_seconds": once,
        "cycles": int(cycles[1]) if cycles else -1,
        "log_likelihood": log_likelihood(results, values),
        "log_likelihood_stated": stated,
    }


def main(path: str, repeats: int = 5) -> None:
    """Measure every seed under both stopping rules; the fastest try that reached the best optimum counts."""
    if shutil.which("autoclass") is None:
        print(json.dumps({"peer": "AutoClass C", "error": "not installed"}))
        return
    names = Path(path).read_text().split("\n", 1)[0].split(",")
    values = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)
    seeds: tuple[int | None, ...] = SEEDS if shutil.which("faketime") else (None,)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, names, values)
        tries = {
            f"{rule}, seed {seed}": measure(folder, values, rule, seed, repeats)
            for rule in STOPPING_RULES
            for seed in seeds
        }
        version = re.search(r"^ac_version (\S+)", (folder / "run.results").read_text(), flags=re.MULTILINE)
    best = max(one["log_likelihood"] for one in tries.values())
    good = {name: one for name, one in tries.items() if one["log_likelihood"] > best - SAME_OPTIMUM}
    report(
        "AutoClass C",
        version[1] if version else "unknown",
        {name: one["seconds"] for name, one in good.items()},
        rows=len(values),
        log_likelihood=best,
        tries=tries,
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
