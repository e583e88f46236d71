"""Time and memory of the effective dimension: latent class models of growing size, and the 136 structures.

Run: python benchmarks/dimension.py
"""

from __future__ import annotations

import resource
import time

import lurking as lk
from lurking.inference.dimension.identifiability import effective_dimension, is_cheap
from lurking.models.layout import Layout


def layout_of(dag: lk.Dag, levels: int) -> Layout:
    """Return the layout of a structure whose observed variables have `levels` states."""
    return Layout(dag, {name: dag.hidden.get(name, levels) for name in dag.nodes})


def main() -> None:
    """Print one line for each case."""
    effective_dimension(layout_of(lk.Dag.parse("s[2] -> a b c"), 2))  # compile first
    print("items  classes     d  effective  told unasked  seconds  peak MB")
    for items, classes in ((4, 3), (20, 4), (20, 16), (64, 8), (64, 32), (64, 64)):
        layout = layout_of(lk.Dag.parse(f"s[{classes}] -> " + " ".join(f"y{k}" for k in range(items))), 2)
        begin = time.perf_counter()
        rank = effective_dimension(layout)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        told = "yes" if is_cheap(layout) else "no"
        print(f"{items:5}  {classes:7}  {layout.dimension:4}  {rank:9}  {told:>12}  {seconds:7.3f}  {peak:7.0f}")
    begin = time.perf_counter()
    for dag in lk.bipartite(2, ["y1", "y2", "y3", "y4"]):
        effective_dimension(layout_of(dag, 5))
    print(f"136 structures of Beal & Ghahramani: {time.perf_counter() - begin:.2f} seconds in all")


if __name__ == "__main__":
    main()
