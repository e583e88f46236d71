"""Comparisons at scale: many rows, many variables with empty cells, many equal rows, more rows than memory."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import mean, median

import data_large
import ours_large
from make_peers import BENCHMARKS
from rows import Measured, Row, peer_label, ratio_of, run_peer, smaller, verdict

STARTS = 30  # one slow start in ten decides the mean of ten
STEPMIX_MEASUREMENT = "binary"  # the other one, categorical, is several times slower at every size
ONE_THREAD_TARGET, TWO_THREADS_TARGET = 3.0, 5.0
MOST_SECONDS_ALARM_ITERATION = 0.1
ALARM_TARGET = 50.0
ALARM_TIMEOUT_SECONDS = 900
SMALL_SHARE = 1.3
MEMORY = "1GB"
MEMORY_BYTES = 10**9
LARGE_TIMEOUT_SECONDS = 3600

Outcome = tuple[list[Row], Measured]


def comparisons(paths: dict[str, Path], options: argparse.Namespace) -> Iterator[Outcome]:
    """Yield the rows and the record of every comparison at scale."""
    folder = options.out / "bench-data"
    yield many_rows(paths["lca_100000"], options.rounds, options.peers_only)
    if options.peers_only:
        return
    yield fewer_steps(paths["lca_100000"])
    yield alarm(folder)
    yield equal_rows(folder, options.rounds)
    if options.large:
        yield larger_than_memory(folder, options.large_bytes)


def recorded(rows: list[Row], **details: object) -> Outcome:
    """Rows with what goes into the record beside them."""
    return rows, {"rows": [asdict(row) for row in rows], **details}


def against(what: str, our: float | None, label: str, peer: float | None, least: float | None) -> Row:
    """A row with a least ratio, or for information where there is none."""
    ratio = ratio_of(peer, our)
    met = None if least is None or ratio is None else ratio >= least
    return Row(what, our, label, peer, ratio, "-" if least is None else f">= {least:g}x", verdict(met))


def many_rows(path: Path, rounds: int, peers_only: bool) -> Outcome:
    """One EM iteration of a latent class model with 100 000 rows."""
    ways = {"1 thread": (1, 1), "2 threads, 1 start": (2, 1), "2 threads, 2 starts at once": (2, 2)}
    stepmix: Measured | None = None
    ours: dict[str, Measured | None] = dict.fromkeys(ways)
    pomegranate = run_peer("peer_pomegranate.py", "pomegranate", path)
    for _ in range(rounds):
        stepmix = smaller(stepmix, run_peer("peer_stepmix.py", "stepmix", path, 3, STEPMIX_MEASUREMENT))
        for way, (workers, starts) in ways.items() if not peers_only else ():
            ours[way] = smaller(ours[way], ours_large.latent_class_iteration(path, workers, starts))
    stepmix = stepmix or {}
    targets = {"1 thread": ONE_THREAD_TARGET, "2 threads, 2 starts at once": TWO_THREADS_TARGET}
    what = "1 EM iteration, latent class, 100000 rows"
    label = peer_label("stepmix", stepmix)
    rows = [
        against(f"{what}, {way}", (our or {}).get("seconds"), label, stepmix.get("seconds"), targets.get(way))
        for way, our in ours.items()
    ]
    one = (ours["1 thread"] or {}).get("seconds")
    heavy = peer_label("pomegranate", pomegranate)
    rows.append(against(f"{what}, 1 thread", one, heavy, pomegranate.get("seconds"), None))
    return recorded(rows, lurking=ours, stepmix=stepmix, pomegranate=pomegranate)


def fewer_steps(path: Path) -> Outcome:
    """E-steps until the log-likelihood is within 1e-6 per row of the best that any start of any program found."""
    n = sum(1 for _ in path.open()) - 1
    peer = run_peer("peer_stepmix_starts.py", "stepmix", path, STARTS)
    traces = peer.pop("traces", [])
    found = [*ours_large.best_of_starts(path, STARTS), *(trace[-1] for trace in traces)]
    mark = max(found) - ours_large.WITHIN_PER_ROW * n
    steps: dict[str, list[int | None]] = {
        "accelerated": ours_large.steps_to(path, mark, STARTS, accelerate=True),
        "plain": ours_large.steps_to(path, mark, STARTS, accelerate=False),
        "stepmix": [next((k for k, value in enumerate(trace, 1) if value >= mark), None) for trace in traces],
    }
    means = {name: mean(some) if (some := [s for s in own if s is not None]) else None for name, own in steps.items()}
    medians = {
        name: median(some) if (some := [s for s in own if s is not None]) else None for name, own in steps.items()
    }
    reached = {name: sum(step is not None for step in own) for name, own in steps.items()}
    what = f"E-steps (a number, not s) to the best optimum, latent class, 100000 rows, {reached['accelerated']}"
    rows = []
    for name, label in (("plain", "lurking, plain EM, same starts"), ("stepmix", peer_label("stepmix", peer))):
        ratio = ratio_of(means[name], means["accelerated"])
        met = verdict(None if ratio is None else ratio > 1.0)
        share = f"{label}, {reached[name]} of {STARTS} starts"
        rows.append(Row(f"{what} of {STARTS} starts", means["accelerated"], share, means[name], ratio, "fewer", met))
    return recorded(rows, steps=steps, medians=medians, mark=mark, best=max(found), peer=peer)


def alarm(folder: Path) -> Outcome:
    """EM on 37 variables with a fifth of the cells empty."""
    what = "alarm, 37 variables, 5000 rows, 20 % empty"
    files = data_large.write_alarm(folder)
    if files is None:
        return recorded([Row(f"EM, {what}", None, "pgmpy's copy of the network: not installed", None, None, "-", "-")])
    ours = ours_large.alarm(*files)
    pyagrum = run_peer("peer_pyagrum_alarm.py", "pyAgrum", *files, timeout=ALARM_TIMEOUT_SECONDS)
    again = ours_large.alarm(*files)
    ours = smaller(ours, again) | {"iteration": min(ours["iteration"], again["iteration"])}
    pgmpy = run_peer("peer_pgmpy_alarm.py", "pgmpy", *files)
    most = MOST_SECONDS_ALARM_ITERATION
    iterations = max(pyagrum.get("iterations", {"": 0}).values())
    label = peer_label("pyAgrum", pyagrum) + (f", first {iterations} iterations" if iterations else "")
    whole = f"whole EM, {what}, 1 thread"
    failed = f"pgmpy {pgmpy.get('pgmpy', '')}: {pgmpy.get('error')}"
    limit = verdict(ours["iteration"] <= most)
    rows = [
        Row(f"1 EM iteration, {what}, 1 thread", ours["iteration"], "", None, None, f"<= {most} s", limit),
        against(whole, ours["seconds"], label, pyagrum.get("seconds"), ALARM_TARGET),
        Row(whole, ours["seconds"], failed, None, None, "-", "-"),
    ]
    return recorded(rows, lurking=ours, pyagrum=pyagrum, pgmpy=pgmpy)


def equal_rows(folder: Path, rounds: int) -> Outcome:
    """Reading and scoring ten million rows of few different ones, against few rows and one pass of DuckDB."""
    few = data_large.two_causes_parquet(folder, 10240)
    many = data_large.two_causes_parquet(folder, data_large.TWO_CAUSES_MANY)
    small: Measured | None = None
    big: Measured | None = None
    bare = float("inf")
    for _ in range(rounds):
        small = smaller(small, ours_large.read_and_score(few))
        bare = min(bare, ours_large.duckdb_pass(many))
        big = smaller(big, ours_large.read_and_score(many))
    small, big = small or {}, big or {}
    allowed = SMALL_SHARE * small["seconds"] + bare
    label = f"{SMALL_SHARE} x 10240 rows ({small['seconds']:.3g} s) + DuckDB pass ({bare:.3g} s)"
    row = against("read and VB score, 2 hidden causes, 10 million rows", big["seconds"], label, allowed, 1.0)
    return recorded([row], small=small, big=big, duckdb_pass=bare)


def larger_than_memory(folder: Path, size: float) -> Outcome:
    """A file of two gigabytes read and fitted under one gigabyte, in a process of its own."""
    path = data_large.large_parquet(folder, size)
    command = [sys.executable, str(BENCHMARKS / "beyond_memory.py"), str(path), MEMORY]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LARGE_TIMEOUT_SECONDS)
    what = f"{path.stat().st_size / 1e9:.2g} GB of Parquet under memory={MEMORY!r}"
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return recorded([Row(what, None, f"failed with code {done.returncode}", None, None, "-", "no")])
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    peak, resident = found["peak_anonymous_bytes"], found["peak_resident_bytes"]
    label = f"peak {peak / 1e9:.2f} GB anonymous, {resident / 1e9:.2f} GB with mapped files"
    limit = f"<= {MEMORY_BYTES / 1e9:g} GB"
    rows = [Row(f"{what}: {stage}", seconds, "", None, None, "-", "-") for stage, seconds in found["seconds"].items()]
    rows.append(Row(what, None, label, None, None, limit, verdict(peak <= MEMORY_BYTES)))
    return recorded(rows, measured=found)
