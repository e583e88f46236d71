"""How the seconds of one E-step grow with the problem: ``python benchmarks/growth.py [--quick] [--out out]``.

Prints the slopes in log-log scale and a roofline, draws ``OUT/growth.png`` and writes ``OUT/growth.json``.
"""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import growth_models as models
from make_peers import BENCHMARKS
from rows import run_peer

LEAST_SECONDS = 0.3
MOST_REPEATS = 200
CHAIN_ROWS = 200
COLUMN_ROWS = 10_000
STATE_ROWS = 20_000
WIDTH_LENGTH = 24
COLOURS = {"lurking": "#1f5f99", "stepmix": "#c8641b", "pyAgrum": "#3d7f3d"}
PEER_THREADS = {"stepmix": " (1 or 2 threads)", "pyAgrum": " (2 threads)"}


@dataclass
class Curve:
    """Seconds against size for one program."""

    name: str
    sizes: list[int]
    seconds: list[float]

    @property
    def slope(self) -> float:
        """Slope in log-log scale over the larger half of the sizes, where constant costs matter least."""
        half = max(2, (len(self.sizes) + 1) // 2)
        if len(self.sizes) < 2:
            return float("nan")
        return float(np.polyfit(np.log(self.sizes[-half:]), np.log(self.seconds[-half:]), 1)[0])


@dataclass
class Panel:
    """One picture: what grows, and the curves."""

    title: str
    axis: str
    held: str
    curves: list[Curve] = field(default_factory=list)


def e_step(problem: Any) -> float:
    """Smallest seconds of one E-step on one thread, compiling left out."""
    from lurking.runtime.progress import Silent

    problem.watch(Silent(), 1)
    engine = problem.engine
    draws = np.random.default_rng(0).uniform(0.5, 1.0, problem.layout.size)
    potentials = np.log(problem.layout.normalise(draws))
    engine.expect(potentials)
    smallest, spent, repeats = float("inf"), 0.0, 0
    while repeats < 3 or (spent < LEAST_SECONDS and repeats < MOST_REPEATS):
        start = perf_counter()
        engine.expect(potentials)
        once = perf_counter() - start
        smallest, spent, repeats = min(smallest, once), spent + once, repeats + 1
    return smallest


def measured(name: str, sizes: Sequence[int], make: Callable[[int], Any]) -> Curve:
    """lurking's curve; every problem is dropped before the next is made."""
    return Curve(name, list(sizes), [e_step(make(size)) for size in sizes])


def peer_curve(which: str, peer: str, rows: int, sizes: Sequence[int]) -> list[Curve]:
    """A peer's curve, or nothing where it is not installed or failed."""
    found = run_peer("peer_growth.py", peer, which, rows, *sizes, timeout=900)
    return [] if "error" in found else [Curve(peer, found["sizes"], found["seconds"])]


def powers(base: int, first: int, last: int) -> list[int]:
    """Powers of a base, both ends included."""
    return [base**k for k in range(first, last + 1)]


def panels(quick: bool) -> list[Panel]:
    """Measure everything; ``quick`` leaves out the largest sizes."""
    rows = powers(10, 3, 5 if quick else 7)
    peer_rows = powers(10, 3, 5 if quick else 6)
    different, n = powers(10, 2, 5 if quick else 6), 10 ** (5 if quick else 6)
    columns = powers(2, 3, 6 if quick else 9)
    states = powers(2, 1, 4 if quick else 6)
    widths = range(1, 5 if quick else 9)
    lengths = [10 * 2**k for k in range(3 if quick else 6)]
    short = lengths[: 2 if quick else 3]
    steps: list[tuple[Panel, Callable[[], list[Curve]]]] = [
        (
            Panel("rows, all different", "rows", "latent class, 4 classes, 32 binary items"),
            lambda: [
                measured("lurking", rows, models.latent_class),
                *peer_curve("stepmix-rows", "stepmix", 0, peer_rows),
            ],
        ),
        (
            Panel("different rows", "different rows", f"latent class, {n:,} rows in all"),
            lambda: [measured("lurking", different, lambda size: models.different_rows(size, n))],
        ),
        (
            Panel("columns", "binary items", f"latent class, 4 classes, {COLUMN_ROWS:,} rows"),
            lambda: [
                measured("lurking", columns, lambda size: models.latent_class(COLUMN_ROWS, size)),
                *peer_curve("stepmix-columns", "stepmix", COLUMN_ROWS, columns),
            ],
        ),
        (
            Panel("hidden states", "classes", f"latent class, 32 binary items, {STATE_ROWS:,} rows"),
            lambda: [measured("lurking", states, lambda size: models.latent_class(STATE_ROWS, classes=size))],
        ),
        (
            Panel(
                f"tree width w = {widths[0]} … {widths[-1]}",
                "joint states of a clique, $2^{w+1}$",
                f"{WIDTH_LENGTH} binary hidden nodes, w parents each, {CHAIN_ROWS} rows",
            ),
            lambda: [by_width(widths)],
        ),
        (
            Panel("length of a hidden chain", "hidden nodes", f"binary, {CHAIN_ROWS} rows"),
            lambda: [
                measured("lurking", lengths, lambda size: models.chain(size, 1, CHAIN_ROWS)),
                *peer_curve("pyagrum-chain", "pyAgrum", CHAIN_ROWS, short),
            ],
        ),
    ]
    for panel, work in steps:
        panel.curves = work()
        for curve in panel.curves:
            print(f"{panel.title}, {curve.name}: slope {curve.slope:.2f}; {listed(curve)}", flush=True)
    return [panel for panel, _ in steps]


def by_width(widths: Sequence[int]) -> Curve:
    """A chain of growing tree width, against the joint states of its cliques."""
    curve = measured("lurking", widths, lambda width: models.chain(WIDTH_LENGTH, width, CHAIN_ROWS))
    return Curve(curve.name, [2 ** (width + 1) for width in widths], curve.seconds)


def listed(curve: Curve) -> str:
    """The points of a curve as text."""
    return ", ".join(f"{size}: {seconds:.3g} s" for size, seconds in zip(curve.sizes, curve.seconds, strict=True))


def draw(found: list[Panel], path: Path) -> None:
    """One figure with all panels in log-log scale."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(14, 9))
    for axis, panel in zip(axes.ravel(), found, strict=True):
        draw_panel(axis, panel)
    figure.suptitle("Seconds of one E-step: lurking on one thread; slopes over the larger half of the sizes")
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.98), h_pad=2.5, w_pad=2.0)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_panel(axis: Any, panel: Panel) -> None:
    """One panel: a title with lurking's slope, what is held fixed below it, and ticks at the sizes measured."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

    for curve in panel.curves:
        label = f"{curve.name}{PEER_THREADS.get(curve.name, '')}, slope {curve.slope:.2f}"
        axis.loglog(curve.sizes, curve.seconds, "o-", color=COLOURS[curve.name], label=label)
    axis.set_title(f"{panel.title}: slope {panel.curves[0].slope:.2f}", fontsize=12, pad=20)
    axis.text(0.5, 1.02, panel.held, transform=axis.transAxes, ha="center", fontsize=9, color="#555555")
    axis.set_xlabel(panel.axis)
    axis.set_ylabel("seconds" if len(panel.curves) == 1 else "seconds (peer: one EM iteration)")
    sizes = panel.curves[0].sizes
    if sizes[-1] < 10_000:
        axis.xaxis.set_major_locator(FixedLocator(sizes))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_locator(NullLocator())
    lowest = min(min(curve.seconds) for curve in panel.curves)
    highest = max(max(curve.seconds) for curve in panel.curves)
    # Whole decades and head room: the legend lies above the curves.
    axis.set_ylim(10 ** np.floor(np.log10(lowest)), highest * (highest / lowest) ** 0.35)
    axis.yaxis.set_major_locator(LogLocator(10.0))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.grid(True, which="major", color="#dddddd")
    axis.legend(loc="upper left", frameon=False, fontsize=9)


def main() -> None:
    """Measure, print, draw and write."""
    from roofline import all_shapes

    parser = argparse.ArgumentParser(description="growth of lurking's E-step")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: about two minutes")
    parser.add_argument("--out", type=Path, default=BENCHMARKS.parent / "out", help="folder of the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()
    print("load average at the start: " + " ".join(f"{one:.2f}" for one in load), flush=True)
    found = panels(options.quick)
    roofs = all_shapes(10 ** (5 if options.quick else 6))
    draw(found, options.out / "growth.png")
    written = [asdict(panel) for panel in found]
    for panel, entry in zip(found, written, strict=True):
        entry["slopes"] = {curve.name: curve.slope for curve in panel.curves}
    record = {"load_average": load, "quick": options.quick, "panels": written, "roofline": roofs}
    (options.out / "growth.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
