"""The study of Beal & Ghahramani (2006), whole: one draw of parameters (section 4.1) and many (section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Final

import numpy as np

from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.experiments.beal2006.contenders import (
    ClassScores,
    Protocol,
    contenders,
    score_class,
    true_place,
)
from lurking.experiments.beal2006.data import SIZES, drawn_tables, rows_from, table_of, true_table
from lurking.experiments.beal2006.sampled import (
    VERSION,
    Annealing,
    Bench,
    Chains,
    Reference,
    chains_of,
    data_digest,
    faithful,
    reference,
    within,
)
from lurking.experiments.bench import Sampled
from lurking.inference.problem import Problem
from lurking.runtime.executor import StopFlag, map_in_order, worker_count
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.store import Key, Store, digest_of
from lurking.search.compare import compare

EVERY: Final = 8
"""Every so manieth structure is annealed to measure the time of all."""


@dataclass(frozen=True)
class Config:
    """What is computed.

    sizes : rows of the nested data sets; protocol : how EM and VB are run.
    annealing, annealed_sizes : the paper's sampler, on all structures; no sizes leave it out.
    reference, reference_sizes : the variational path, on structures within `nats` of the best bound (None: on all).
    draws : parameters drawn from the prior for section 4.2, on all `sizes`.
    sampled_draws, sampled_sizes : of these, how many also get sampled evidence, and where.
    most : structures at most that get sampled evidence on one data set.
    """

    sizes: tuple[int, ...] = SIZES
    protocol: Protocol = field(default_factory=Protocol)
    annealing: Annealing = field(default_factory=Annealing)
    annealed_sizes: tuple[int, ...] = SIZES
    reference: Reference = field(default_factory=Reference)
    reference_sizes: tuple[int, ...] = (40, 160, 480, 1280, 5120)
    nats: float | None = 20.0
    draws: int = 106
    sampled_draws: int = 5
    sampled_sizes: tuple[int, ...] = (160, 640, 2560)
    most: int | None = None
    timed_size: int = 480
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("annealed_sizes", "reference_sizes", "sampled_sizes"):
            left_out = sorted(set(getattr(self, name)) - set(self.sizes))
            if left_out:
                raise OptionError(f"{name} has {left_out[0]}, which is not among sizes; add it there")


def seeded(config: Config, seed: int) -> Config:
    """Return the configuration with all random numbers but those of the printed parameters' data from this seed."""
    return replace(
        config,
        protocol=replace(config.protocol, seed=seed),
        annealing=replace(config.annealing, seed=seed),
        reference=replace(config.reference, seed=seed),
        seed=seed,
    )


def quick(config: Config) -> Config:
    """Return a configuration of the same seed that takes less than a minute."""
    return replace(
        config,
        sizes=(40, 480, 2560),
        annealing=replace(config.annealing, steps=256),
        annealed_sizes=(480,),
        reference=replace(config.reference, target=0.5, passes=1 << 16),
        reference_sizes=(480,),
        draws=3,
        sampled_draws=1,
        sampled_sizes=(480,),
        most=6,
    )


@dataclass(frozen=True)
class Times:
    """Seconds for all structures at `n` rows: EM and VB with three starts, one batch of the paper's sampler.

    `workers` threads worked on it; `batch` is None where the sampler was left out.
    """

    n: int
    workers: int
    em: float
    vb: float
    batch: float | None


@dataclass(frozen=True, eq=False)
class OneDraw:
    """Everything about data sets from one set of parameters, by number of rows.

    scores : {n: scores of all structures}; chains : {n: the paper's sampler on all structures}.
    sampled : {n: {place of a structure: its evidence by the variational path}}.
    """

    scores: Mapping[int, ClassScores]
    chains: Mapping[int, tuple[Chains, ...]]
    sampled: Mapping[int, Mapping[int, Sampled]]


@dataclass(frozen=True, eq=False)
class Study:
    """The whole study: the printed parameters, and parameters drawn from the prior."""

    config: Config
    single: OneDraw
    draws: tuple[OneDraw, ...]
    times: Times


def run(config: Config, store: Store, workers: int | None = None, progress: Progress | None = None) -> Study:
    """Compute what the store does not hold yet; results, but for times, do not depend on the number of workers."""
    bench = Bench(store, workers, StopFlag(), progress or Silent())
    tables = {n: true_table(n) for n in config.sizes}
    scores = _class_scores(bench, "scores of one draw", [tables[n] for n in config.sizes], config)
    by_size = dict(zip(config.sizes, scores, strict=True))
    chains = _chains(bench, tables, config)
    sampled = _sampled(bench, {n: (tables[n], by_size[n]) for n in config.reference_sizes}, config)
    single = OneDraw(by_size, chains, sampled)
    return Study(config, single, _draws(bench, config), _times(bench, config))


def _class_scores(bench: Bench, what: str, tables: list[Table], config: Config) -> list[ClassScores]:
    """Return the scores of all structures on each data set."""
    structures = digest_of([str(contender.dag) for contender in contenders()])
    setting = digest_of(VERSION, asdict(config.protocol))
    result: list[ClassScores] = []
    bench.progress.begin(what, len(tables))
    try:
        for table in tables:
            key = Key(data_digest(table), structures, "map bic bicp cs vb", setting, config.protocol.seed)
            kept = bench.store.get(key)
            if kept is None:
                kept = score_class(table, config.protocol, bench.workers, bench.stop).content()
                bench.store.put(key, kept)
            result.append(ClassScores.of(kept))
            bench.progress.update(len(result))
    finally:
        bench.progress.end()
    return result


def _chains(bench: Bench, tables: Mapping[int, Table], config: Config) -> dict[int, tuple[Chains, ...]]:
    """Return the paper's sampler on all structures, {n: (136,)}."""
    count = len(contenders())
    pieces = [(tables[n], place) for n in config.annealed_sizes for place in range(count)]
    made = faithful(bench, pieces, config.annealing)
    return {n: tuple(made[k * count : (k + 1) * count]) for k, n in enumerate(config.annealed_sizes)}


def _sampled(
    bench: Bench, data: Mapping[int, tuple[Table, ClassScores]], config: Config
) -> dict[int, dict[int, Sampled]]:
    """Return the variational path's evidence for the structures near the best bound and the true one."""
    places = {}
    for n, (_, scores) in data.items():
        near = within(scores.values["vb"], config.nats, config.most)
        places[n] = near if true_place() in near else [*near, true_place()]
    pieces = [(data[n][0], place) for n, own in places.items() for place in own]
    made = iter(reference(bench, pieces, config.reference))
    return {n: {place: next(made) for place in own} for n, own in places.items()}


def _draws(bench: Bench, config: Config) -> tuple[OneDraw, ...]:
    """Section 4.2: nested data sets from parameters drawn from the prior."""
    tables = [drawn_data(draw, config) for draw in range(config.draws)]
    listed = [own[n] for own in tables for n in config.sizes]
    scores = iter(_class_scores(bench, "scores of many draws", listed, config))
    by_draw = [{n: next(scores) for n in config.sizes} for _ in tables]
    sampled: list[dict[int, dict[int, Sampled]]] = []
    for own, found in list(zip(tables, by_draw, strict=True))[: config.sampled_draws]:
        sampled.append(_sampled(bench, {n: (own[n], found[n]) for n in config.sampled_sizes}, config))
    sampled += [{}] * (len(tables) - len(sampled))
    return tuple(OneDraw(found, {}, own) for found, own in zip(by_draw, sampled, strict=True))


def drawn_data(draw: int, config: Config) -> dict[int, Table]:
    """Return the nested data sets of one draw, {n: table}."""
    tables = drawn_tables(draw, config.seed)
    rows = rows_from(tables, np.random.default_rng([config.seed, draw, 1]), max(config.sizes))
    return {n: table_of(rows[:n]) for n in config.sizes}


def _times(bench: Bench, config: Config) -> Times:
    """Measure the paper's table of computation times anew, or return what was measured before."""
    table = true_table(config.timed_size)
    annealing = asdict(config.annealing) if config.annealed_sizes else None
    setting = digest_of(VERSION, asdict(config.protocol), annealing, worker_count(bench.workers))
    key = Key(data_digest(table), "all", "seconds", setting, config.seed)
    kept = bench.store.get(key)
    if kept is None:
        kept = asdict(_measure(bench, table, config))
        bench.store.put(key, kept)
    return Times(**kept)


def _measure(bench: Bench, table: Table, config: Config) -> Times:
    dags = [contender.dag for contender in contenders()]
    protocol = {name: value for name, value in asdict(config.protocol).items() if name != "seed"}
    few = true_table(10)
    protocol |= {"rescore": False}
    compare(dags[:EVERY], few, scores=["cs", "vb"], prune=False, workers=bench.workers, stop=bench.stop, **protocol)
    seconds = []
    for score in ("cs", "vb"):
        start = perf_counter()
        compare(dags, table, scores=[score], prune=False, workers=bench.workers, stop=bench.stop, **protocol)
        seconds.append(perf_counter() - start)
    batch = _seconds_of_batch(bench, table, config) if config.annealed_sizes else None
    if bench.stop.is_set:
        raise KeyboardInterrupt
    return Times(config.timed_size, worker_count(bench.workers), seconds[0], seconds[1], batch)


def _seconds_of_batch(bench: Bench, table: Table, config: Config) -> float:
    """Return how long one chain of the paper's sampler takes on all structures, judged by some of them."""
    dags = [contender.dag for contender in contenders()]
    some = [Problem(dag, table) for dag in dags[::EVERY]]
    one = replace(config.annealing, chains=1)
    chains_of(Problem(dags[-1], true_table(10)), replace(one, steps=4), bench.stop)
    start = perf_counter()
    map_in_order(lambda problem: chains_of(problem, one, bench.stop), some, workers=bench.workers, stop=bench.stop)
    return (perf_counter() - start) * len(dags) / len(some)
