"""Sampled evidence of the paper's structures: its own annealing, and the variational path as the reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from lurking.data.table import Table
from lurking.evidence.evaluation import evaluate
from lurking.experiments.beal2006.contenders import contenders
from lurking.experiments.bench import Sampled
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.progress import Progress
from lurking.runtime.rng import seed_sequence
from lurking.runtime.store import Key, Store, digest_of
from lurking.samplers.diagnostics import log_mean
from lurking.samplers.metropolis import anneal_parameters, schedule
from lurking.types import FloatArray

VERSION: Final = 2
"""Part of every key: raised when the same configuration would give other numbers."""
STRENGTH: Final = 2000.0


@dataclass(frozen=True)
class Annealing:
    """The paper's sampler: K temperatures, G chains, e_τ = 0.2, one Metropolis step in all parameters at each.

    The strength of the proposals is the paper's width, which it does not print: fixed, tuned once at n = 480 to its
    share of rejections, and kept.
    """

    steps: int = 16384
    chains: int = 5
    strength: float = STRENGTH
    seed: int = 0


@dataclass(frozen=True)
class Reference:
    """The variational path: standard error to reach, and the budget in passes over the rows."""

    target: float = 0.3
    passes: int = 1 << 19
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Chains:
    """One structure on one data set by the paper's sampler: ln weights of its chains (G,), share rejected."""

    log_weights: FloatArray = field(repr=False)
    rejected: float

    def estimate(self, count: int | None = None) -> float:
        """Return ln of the mean weight of the first chains: AIS⁽ᴳ⁾ of the paper."""
        return log_mean(self.log_weights[:count])


Pieces = Iterable[tuple[Table, int]]
"""(data set, place of a structure among the contenders)"""


@dataclass(frozen=True)
class Bench:
    """Where pieces of work are done: the store, the workers, the stop flag, and who is told."""

    store: Store
    workers: int | None
    stop: StopFlag
    progress: Progress

    def each(self, what: str, pieces: Pieces, score: str, setting: Any, make: Callable[[Problem], Any]) -> list[Any]:
        """Return the kept or newly made value of every piece, in order."""
        listed = list(pieces)
        dags = [contender.dag for contender in contenders()]

        def one(piece: tuple[Table, int]) -> Any:
            table, place = piece
            key = Key(data_digest(table), str(dags[place]), score, digest_of(VERSION, asdict(setting)), setting.seed)
            kept = self.store.get(key)
            if kept is None:
                kept = make(Problem(dags[place], table))
                if self.stop.is_set:
                    raise KeyboardInterrupt
                self.store.put(key, kept)
            return kept

        self.progress.begin(what, len(listed))
        try:
            made = map_in_order(one, listed, workers=self.workers, stop=self.stop, done=self.progress.update)
        finally:
            self.progress.end()
        if self.stop.is_set:
            raise KeyboardInterrupt
        return made


def data_digest(table: Table) -> str:
    """Return a digest of the names, levels and codes of a table's columns, in order."""
    columns = [table[name] for name in table.columns]
    heads = [[column.name, [str(level) for level in column.levels]] for column in columns]
    return digest_of(heads, *(np.ascontiguousarray(column.codes).tobytes() for column in columns))


def chains_of(problem: Problem, setting: Annealing, stop: StopFlag) -> Chains:
    """Run the paper's sampler on one problem, every one with the same random numbers."""
    seeds = seed_sequence(setting.seed).spawn(setting.chains)
    strength = (setting.strength, 0.0)
    made = anneal_parameters(problem, schedule(setting.steps), seeds, strength=strength, workers=1, stop=stop)
    # A quarter of a schedule with fewer than four temperatures may be empty.
    accepted = 1.0 if problem.is_complete else float(np.nanmean(made.acceptance))
    return Chains(made.log_weights, 1.0 - accepted)


def faithful(bench: Bench, pieces: Pieces, setting: Annealing) -> list[Chains]:
    """Anneal in parameter space as in algorithm 3.1 of the paper."""

    def make(problem: Problem) -> dict[str, Any]:
        chains = chains_of(problem, setting, bench.stop)
        return {"log_weights": chains.log_weights.tolist(), "rejected": chains.rejected}

    made = bench.each("annealing as in the paper", pieces, "ais, parameters", setting, make)
    return [Chains(np.asarray(one["log_weights"]), one["rejected"]) for one in made]


def reference(bench: Bench, pieces: Pieces, setting: Reference) -> list[Sampled]:
    """Anneal from flattened variational modes."""

    def make(problem: Problem) -> dict[str, Any]:
        options = FitOptions(restarts=10, seed=setting.seed, workers=1, stop=bench.stop, keep_interrupted=True)
        own = {"target": setting.target, "passes": setting.passes}
        found = evaluate(problem, ["ais"], options, own)["ais"]
        return asdict(Sampled(found.log_z, found.nominal_error or 0.0, found.status.name))

    return [Sampled(**one) for one in bench.each("sampled evidence", pieces, "ais", setting, make)]


def within(bounds: FloatArray, nats: float | None, most: int | None = None) -> list[int]:
    """Return the places of the structures whose bound is at most `nats` below the best one (None: all), best first."""
    order = np.argsort(-bounds, kind="stable")
    near = [int(place) for place in order if nats is None or bounds[place] >= bounds[order[0]] - nats]
    return near[:most]


def log_evidence(found: Mapping[int, Sampled], count: int) -> FloatArray:
    """Return ln p(y|m) of all structures, −inf for those that were not sampled, (count,)."""
    result = np.full(count, -math.inf)
    for place, sampled in found.items():
        result[place] = sampled.log_z
    return result
