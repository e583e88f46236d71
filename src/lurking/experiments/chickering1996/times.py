"""Table 2: how long EM and each score take as test models grow.

Seconds are those of the processor, on one thread: what else the machine does hardly changes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from time import process_time
from typing import Final

from lurking.data.table import Table
from lurking.evidence.evaluation import evaluate
from lurking.experiments.chickering1996.data import Experiment, data_set
from lurking.experiments.chickering1996.scores import VERSION, Bench, Protocol
from lurking.learn.fit import fit_problem
from lurking.runtime.store import Key, digest_of

ROUNDS: Final = 3
"""A score that takes less than `SHORT` seconds is asked so many times, and the shortest time counts."""
SHORT: Final = 0.05


@dataclass(frozen=True)
class Timing:
    """Processor seconds for one test model; scores without the EM that they are read off.

    em : the tournament and the iterations after it, over probabilities; `laplace` is over them too, as the paper's.
    laplace_logit : Laplace over logits, without the EM of its own that it needs.
    """

    states: int
    d: int
    em: float
    laplace: float
    cs: float
    mled: float
    draper: float
    bic: float
    laplace_logit: float


def timings(bench: Bench, experiment: Experiment, states: tuple[int, ...], protocol: Protocol) -> tuple[Timing, ...]:
    """Measure each test model, one after the other, or return what was measured before."""
    if not states:
        return ()
    table = data_set(*experiment.case, protocol.seed, 0)
    setting = digest_of(VERSION, asdict(protocol))
    result: list[Timing] = []
    is_warm = False
    bench.progress.begin("times of table 2", len(states))
    try:
        for count in states:
            key = Key(table.digest, str(count), "processor seconds", setting, protocol.seed)
            kept = bench.store.get(key)
            if kept is None:
                if not is_warm:
                    # Kernels are compiled or loaded on their first call.
                    _measured(bench, experiment, table, 2, protocol)
                    is_warm = True
                kept = asdict(_measured(bench, experiment, table, count, protocol))
                if bench.stop.is_set:
                    raise KeyboardInterrupt
                bench.store.put(key, kept)
            result.append(Timing(**kept))
            bench.progress.update(len(result))
    finally:
        bench.progress.end()
    return tuple(result)


def _measured(bench: Bench, experiment: Experiment, table: Table, states: int, protocol: Protocol) -> Timing:
    problem, options = protocol.problem(states, table), protocol.options(bench.stop)
    problem.engine.expect(problem.layout.normalise(problem.pseudo))  # compiled, as it is for all of them
    start = process_time()
    fit_problem(problem, "map-probability", options)
    seconds = {"em": process_time() - start}
    for name in ("laplace", "cs", "mled", "draper", "bic"):
        own = {"basis": "probability"} if name == "laplace" else {"at": "map-probability"}
        seconds[name] = _seconds(partial(evaluate, problem, [name], options, own))
    fit_problem(problem, "map", options)
    seconds["laplace_logit"] = _seconds(partial(evaluate, problem, ["laplace"], options, {"basis": "logit"}))
    return Timing(states, experiment.dimension(states), **seconds)


def _seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes, the shortest of several times where it is short."""
    best = math.inf
    for _ in range(ROUNDS):
        start = process_time()
        work()
        best = min(best, process_time() - start)
        if best > SHORT:
            break
    return best
