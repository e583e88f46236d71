"""What every script of the benchmark shares: the clock, the edges of the two-cause structure, one JSON line out."""

import json
from collections.abc import Callable
from time import perf_counter
from typing import Any

EM_ITERATIONS = 20
TWO_CAUSE_EDGES = (("s1", "y1"), ("s1", "y2"), ("s1", "y3"), ("s2", "y2"), ("s2", "y3"), ("s2", "y4"))


def best_of(repeats: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Run ``work`` several times; the smallest wall-clock seconds and the last result."""
    smallest = float("inf")
    result: Any = None
    for _ in range(repeats):
        start = perf_counter()
        result = work()
        smallest = min(smallest, perf_counter() - start)
    return smallest, result


def report(peer: str, version: str, settings: dict[str, float], **more: Any) -> None:
    """Print one JSON line: seconds of every setting tried, the fastest setting, and anything else measured."""
    best = min(settings, key=lambda name: settings[name])
    line = {"peer": peer, "version": version, "settings": settings, "best": best, "seconds": settings[best], **more}
    print(json.dumps(line), flush=True)
