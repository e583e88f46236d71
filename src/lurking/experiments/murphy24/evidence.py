"""Evidence against the number of classes, by every method (slides "Cheeseman-Stutz approximation", "Chib's candidate").

The lecture shows a picture of ln p(D|K) for mixtures of Bernoullis and names neither data nor sizes. Here the data come
from mixtures whose classes have Dirichlet(5, …, 5) sizes and whose items have Beta(½, ½) probabilities, so that classes
are of like size and mostly well apart. Every data set has parameters of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from time import thread_time
from typing import Any, Final, NamedTuple

import numpy as np

from lurking.data.table import Table
from lurking.evidence.base import Evidence
from lurking.evidence.evaluation import evaluate
from lurking.experiments.bench import Task, Workbench
from lurking.graph.dag import Dag
from lurking.inference.network import Network
from lurking.inference.problem import Problem
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.runtime.store import Key, digest_of
from lurking.samplers.candidate import candidate_density

VERSION: Final = 2
"""Part of every key: raised when the same configuration would give other numbers."""
POINTS: Final = ("bic", "bicp", "draper", "mled", "cs")
"""Scores that are read off the mode over logits."""
METHODS: Final = (*POINTS, "laplace", "laplace-probability", "vb", "importance", "ais", "chib", "chib-one")
"""All columns; `chib-one` is `chib` without its average over relabelings."""
REFERENCE: Final = "ais"
"""What all others are measured by."""
ROUNDS: Final = 3
"""A score is timed so many times, and the shortest counts."""


class Size(NamedTuple):
    """True classes, binary items, rows."""

    states: int
    items: int
    rows: int

    def __str__(self) -> str:
        return f"{self.states} classes, {self.items} items, n = {self.rows}"


@dataclass(frozen=True)
class EvidenceConfig:
    """What is computed: sizes, data sets of each, test models up to `beyond` classes more than the true number.

    restarts : starts of EM and VB; draws : Gibbs sweeps of each of the 8 chains of the candidate method.
    target, passes : standard error that `ais` is to reach, and its budget in passes over the rows.
    """

    sizes: tuple[Size, ...] = (Size(3, 8, 200), Size(4, 10, 500), Size(5, 12, 1000))
    sets: int = 4
    beyond: int = 2
    restarts: int = 20
    draws: int = 4000
    target: float = 0.15
    passes: int = 1 << 17

    def __post_init__(self) -> None:
        for name, least in (("sets", 1), ("beyond", 0), ("restarts", 1), ("draws", 20), ("passes", 1)):
            check_whole(name, getattr(self, name), least)


@dataclass(frozen=True)
class Scored:
    """One number of classes on one data set.

    values : {method: ln p(D|K)}, ln K! added to none; errors : {method: nominal error}, of sampled values alone.
    statuses : {method: how it ended}; seconds : {"em", "cs", "bic", "laplace": processor time, scores without EM}.
    """

    values: Mapping[str, float]
    errors: Mapping[str, float]
    statuses: Mapping[str, str]
    seconds: Mapping[str, float] = field(compare=False)

    @property
    def gap(self) -> float:
        """How far the candidate method falls when it does not average over relabelings."""
        return self.values["chib"] - self.values["chib-one"]


Curve = Mapping[int, Scored]
"""{classes: scores} on one data set."""


def mixture(size: Size, seed: int, place: int) -> Network:
    """Return the generating mixture of a data set."""
    generator = np.random.default_rng([seed, *size, place, 0])
    weights = generator.dirichlet(np.full(size.states, 5.0))
    ones = generator.beta(0.5, 0.5, (size.items, size.states))
    names = [f"x{item}" for item in range(1, size.items + 1)]
    dag = Dag(["c", *names], [("c", name) for name in names], {"c": size.states})
    tables = {name: np.stack([1.0 - own, own], axis=1) for name, own in zip(names, ones, strict=True)}
    return Network.from_tables(dag, {"c": weights[None, :]} | tables)


def data_set(size: Size, seed: int, place: int) -> Table:
    """Return the rows of a data set."""
    return mixture(size, seed, place).sample(size.rows, seed=np.random.SeedSequence([seed, *size, place, 1]))


def classes(size: Size, config: EvidenceConfig) -> range:
    """Return the numbers of classes of the test models."""
    return range(1, size.states + config.beyond + 1)


def curves(bench: Workbench, config: EvidenceConfig, seed: int) -> dict[Size, tuple[Curve, ...]]:
    """Score every number of classes on every data set."""
    tasks = [
        _task(bench, config, data_set(size, seed, place), states, seed)
        for size in config.sizes
        for place in range(config.sets)
        for states in classes(size, config)
    ]
    made = iter(bench.each("evidence against the number of classes", tasks))
    return {
        size: tuple({states: Scored(**next(made)) for states in classes(size, config)} for _ in range(config.sets))
        for size in config.sizes
    }


def _task(bench: Workbench, config: EvidenceConfig, table: Table, states: int, seed: int) -> Task:
    how = {"restarts": config.restarts, "draws": config.draws, "target": config.target, "passes": config.passes}
    options = FitOptions(restarts=config.restarts, seed=seed, workers=1, stop=bench.stop, keep_interrupted=True)
    return Task(
        Key(table.digest, str(states), "all", digest_of(VERSION, how), seed),
        lambda: asdict(scored(Problem(f"c[{states}] -> *", table), options, config)),
        int(states * table.n),
    )


def scored(problem: Problem, options: FitOptions, config: EvidenceConfig) -> Scored:
    """Return every column of one test model; the fits behind them are shared."""
    start = thread_time()
    fit_problem(problem, "map", options)
    seconds = {"em": thread_time() - start}
    own: dict[str, Any] = {"draws": config.draws, "target": config.target, "passes": config.passes}
    found: dict[str, Evidence] = evaluate(problem, [*POINTS, "laplace", "vb", "importance"], options, {})
    found["laplace-probability"] = evaluate(problem, ["laplace"], options, {"basis": "probability"})["laplace"]
    found["ais"] = evaluate(problem, ["ais"], options, {name: own[name] for name in ("target", "passes")})["ais"]
    found["chib"] = evaluate(problem, ["chib"], options, {"draws": config.draws})["chib"]
    for name in ("cs", "bic", "laplace"):
        seconds[name] = _seconds(partial(evaluate, problem, [name], options, {}))
    values = {name: evidence.log_z for name, evidence in found.items()}
    values["chib-one"] = values["chib"]
    if not problem.is_complete:
        values["chib-one"] = _without_relabelings(problem, found["chib"], options, config.draws)
    errors = {name: e.nominal_error for name, e in found.items() if e.nominal_error is not None}
    statuses = {name: evidence.status.name for name, evidence in found.items()}
    return Scored({name: values[name] for name in METHODS}, errors, statuses, seconds)


def _without_relabelings(problem: Problem, averaged: Evidence, options: FitOptions, draws: int) -> float:
    """Return the candidate method's value from the same sweeps, the density taken at the one point alone."""
    point = fit_problem(problem, "map", options).potentials
    density = candidate_density(
        problem,
        point,
        chains=averaged.info["chains"],
        draws=draws,
        burn_in=draws // 4,
        average=False,
        seed=options.seed,
        workers=1,
        stop=options.stop,
    )
    if options.stop.is_set:
        raise KeyboardInterrupt
    return averaged.parts["loglik"] + averaged.parts["log_prior"] - density.log_density


def _seconds(work: Callable[[], object]) -> float:
    """Return the shortest of several times."""
    best = math.inf
    for _ in range(ROUNDS):
        start = thread_time()
        work()
        best = min(best, thread_time() - start)
    return best


def selected(curve: Curve, method: str) -> int:
    """Return the number of classes with the highest value, the fewest of equal ones."""
    return max(curve, key=lambda states: (curve[states].values[method], -states))
