"""Which variables depend on the class: all subsets, greedy search and structural EM (slide "Sparse mixture model").

Data come from a hidden class of two states with `relevant` children among `items` binary variables, the others on their
own. P(x = 1) of a child is one of U(0.05, 0.35) and one of U(0.65, 0.95), in random order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from scipy.special import xlogy

from lurking.data.table import Table
from lurking.experiments.bench import Task, Workbench
from lurking.expfam.blocks import Blocks
from lurking.graph.dag import Dag
from lurking.inference.network import Network
from lurking.inference.problem import Problem
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.runtime.store import Key, digest_of
from lurking.search.compare import compare
from lurking.search.structural_em import structural_em
from lurking.search.structures import from_hidden_only
from lurking.types import FloatArray

VERSION: Final = 1
CLASS: Final = "c"
SCORES: Final = ("cs", "vb")
"""What greedy search climbs on."""
BIC: Final = "bic"
"""At the maximum of the likelihood, as theorem 19.4.3 takes it."""
MOST_ROUNDS: Final = 50
Children = tuple[str, ...]


@dataclass(frozen=True)
class SparseConfig:
    """Sizes, data sets, starts of EM, and random subsets to begin a search at."""

    items: int = 8
    relevant: int = 4
    rows: int = 300
    sets: int = 5
    restarts: int = 20
    random_starts: int = 5

    def __post_init__(self) -> None:
        for name, least in (
            ("items", 2),
            ("relevant", 2),
            ("rows", 1),
            ("sets", 0),
            ("restarts", 1),
            ("random_starts", 0),
        ):
            check_whole(name, getattr(self, name), least)


@dataclass(frozen=True)
class Route:
    """One search: how, from where, where it ended, how many structures it fitted, and nats below the best subset."""

    method: str
    score: str
    start: str
    end: str
    fits: int
    below_best: float


@dataclass(frozen=True)
class SparseSet:
    """One data set.

    best : {score: best of all subsets}; truth : the relevant items; ranks : {score: place of the true subset}.
    predicted, actual : gain in BIC over the full structure, from its expected data and in truth, for every subset.
    """

    truth: str
    best: Mapping[str, str]
    ranks: Mapping[str, int]
    routes: tuple[Route, ...]
    predicted: tuple[float, ...]
    actual: tuple[float, ...]


def items_of(config: SparseConfig) -> Children:
    """Return the names of the observed variables; the relevant ones are the first."""
    return tuple(f"x{place}" for place in range(1, config.items + 1))


def structure(items: Children, children: Children) -> Dag:
    """Return the sparse mixture with these children."""
    return Dag([CLASS, *items], [(CLASS, name) for name in children], {CLASS: 2})


def data_set(config: SparseConfig, seed: int, place: int) -> Table:
    """Draw parameters and rows."""
    stream = [seed, config.items, config.relevant, place]
    generator = np.random.default_rng([*stream, 0])
    items = items_of(config)
    tables: dict[str, FloatArray] = {CLASS: np.asarray([[0.5, 0.5]])}
    for item in items:
        one = np.asarray([generator.uniform(0.05, 0.35), generator.uniform(0.65, 0.95)])
        ones = generator.permutation(one) if item in items[: config.relevant] else one[:1]
        tables[item] = np.stack([1.0 - ones, ones], axis=1)
    network = Network.from_tables(structure(items, items[: config.relevant]), tables)
    return network.sample(config.rows, seed=np.random.SeedSequence([*stream, 1]))


def sparse_sets(bench: Workbench, config: SparseConfig, seed: int) -> tuple[SparseSet, ...]:
    """Do every data set."""
    tasks = []
    for place in range(config.sets):
        table = data_set(config, seed, place)
        key = Key(table.digest, f"{CLASS} -> subsets", "sparse", digest_of(VERSION, asdict(config)), seed)
        tasks.append(Task(key, lambda table=table, place=place: _one(bench, table, config, seed, place)))  # type: ignore[misc]
    made = bench.each("sparse mixtures", tasks)
    return tuple(SparseSet(**own | {"routes": tuple(Route(**route) for route in own["routes"])}) for own in made)


def _one(bench: Workbench, table: Table, config: SparseConfig, seed: int, place: int) -> dict[str, Any]:
    """Return the content of a `SparseSet`."""
    items = items_of(config)
    options = FitOptions(restarts=config.restarts, seed=seed, workers=1, stop=bench.stop)
    values = subset_scores(table, items, options)
    truth = items[: config.relevant]
    ordered = {score: sorted(own, key=lambda children: -own[children]) for score, own in values.items()}
    routes = []
    for score in SCORES:
        best = values[score][ordered[score][0]]
        for name, start in starts(items, config.random_starts, seed, place):
            for method, search in METHODS.items():
                end, fits = search(Ground(table, items, score, values[score], options), start)
                below = best - values[score][end]
                routes.append(asdict(Route(method, score, name, " ".join(end), fits, below)))
    predicted = predicted_gains(table, items, list(values[BIC]), options)
    return {
        "truth": " ".join(truth),
        "best": {score: " ".join(ordered[score][0]) for score in values},
        "ranks": {score: ordered[score].index(truth) + 1 for score in values},
        "routes": routes,
        "predicted": predicted,
        "actual": [own - values[BIC][items] for own in values[BIC].values()],
    }


def subset_scores(table: Table, items: Children, options: FitOptions) -> dict[str, dict[Children, float]]:
    """Return {score: {children: value}} over all subsets of the items."""
    subsets = [chosen for size in range(len(items) + 1) for chosen in itertools.combinations(items, size)]
    models = {" ".join(children) or "none": structure(items, children) for children in subsets}
    how: dict[str, Any] = {"restarts": options.restarts, "seed": options.seed, "workers": 1, "stop": options.stop}
    how["rescore"] = False  # the values of each score are asked for, not a ranking
    at_mode = compare(models, table, scores=SCORES, **how)
    at_peak = compare(models, table, scores=[BIC], at="ml", **how)
    found = {score: at_mode[score] for score in SCORES} | {BIC: at_peak[BIC]}
    return {
        score: {children: one.evidence.log_z for children, one in zip(subsets, own, strict=True)}
        for score, own in found.items()
    }


def starts(items: Children, count: int, seed: int, place: int) -> list[tuple[str, Children]]:
    """Return where a search begins: no child, all of them, and random subsets of at least two."""
    generator = np.random.default_rng([seed, len(items), count, place])
    chosen: list[tuple[str, Children]] = [("none", ()), ("all", items)]
    for _ in range(count):
        size = int(generator.integers(2, len(items)))
        kept = set(generator.choice(items, size, replace=False).tolist())
        chosen.append(("random", tuple(name for name in items if name in kept)))
    return chosen


@dataclass(frozen=True, eq=False)
class Ground:
    """What a search goes over: the rows, the items, and the score of every subset."""

    table: Table
    items: Children
    score: str
    values: Mapping[Children, float]
    options: FitOptions


def greedy(ground: Ground, start: Children) -> tuple[Children, int]:
    """Add or delete the one arc that gains most until none gains; return the end and the structures scored."""
    items, values = ground.items, ground.values
    here, scored = start, {start}
    while True:
        near = [tuple(name for name in items if (name in here) != (name == moved)) for moved in items]
        scored.update(near)
        best = max(near, key=lambda children: values[children])
        if values[best] <= values[here]:
            return here, len(scored)
        here = best


def slide_rule(ground: Ground, start: Children) -> tuple[Children, int]:
    """Keep C → x_i where its family scores higher than x_i alone on expected data, until nothing changes.

    All arcs are decided at once, by the Dirichlet evidence of expected counts with pseudo-counts 1, as on the slide. A
    structure that comes up a second time ends it too, and the best one met is returned.
    """
    here, met = start, [start]
    for _ in range(MOST_ROUNDS):
        counts = expected_counts(ground.table, ground.items, here, "map", ground.options)
        here = tuple(name for name, own in counts.items() if _evidence(own) > _evidence(own.sum(axis=0)[None, :]))
        if here in met:
            break
        met.append(here)
    return max(met, key=lambda children: ground.values[children]), len(met)


def friedman(ground: Ground, start: Children) -> tuple[Children, int]:
    """Run the library's structural EM with arcs from the class alone; return the end and the structures fitted."""
    options = ground.options
    found = structural_em(
        ground.table,
        structure(ground.items, start),
        score=ground.score,
        constraints=from_hidden_only({CLASS: 2}, ground.items),
        restarts=options.restarts,
        seed=options.seed,
        workers=1,
        stop=options.stop,
    )
    children = found.best.children(CLASS)
    return tuple(name for name in ground.items if name in children), len(found.history)


METHODS: Final[Mapping[str, Callable[[Ground, Children], tuple[Children, int]]]] = {
    "greedy": greedy,
    "slide's rule": slide_rule,
    "structural EM": friedman,
}
"""{name: how it searches}."""


def expected_counts(
    table: Table, items: Children, children: Children, method: str, options: FitOptions
) -> dict[str, FloatArray]:
    """Return {item: expected counts of (class, item), shape (2, 2)} at the point estimate of a structure."""
    problem = Problem(structure(items, children), table)
    rows = table.unique()
    chances = fit_problem(problem, method, options).network.hidden_probabilities(rows)[CLASS]
    weighted = chances * _weights(rows)[:, None]
    return {name: weighted.T @ np.eye(2)[rows[name].codes] for name in items}


def _weights(rows: Table) -> FloatArray:
    return np.ones(len(rows)) if rows.weights is None else np.asarray(rows.weights)


def _evidence(counts: FloatArray) -> float:
    """Return ln p of counts (l, k) with pseudo-counts 1 in every cell."""
    row_start = np.arange(0, counts.size + 1, counts.shape[1])
    return Blocks.of_tables(row_start).log_evidence(np.ones(counts.size), counts.ravel())


def predicted_gains(table: Table, items: Children, subsets: Sequence[Children], options: FitOptions) -> list[float]:
    """Return the gain in BIC of every subset over the full structure on the latter's expected data (theorem 19.4.3).

    An arc is worth n times the information that class and item share there, less ½ ln n for its parameter.
    """
    worth = {}
    for name, own in expected_counts(table, items, items, "ml", options).items():
        alone = own.sum(axis=0)
        with_class = xlogy(own, own).sum() - xlogy(own.sum(axis=1), own.sum(axis=1)).sum()
        without = xlogy(alone, alone).sum() - xlogy(table.n, table.n)
        worth[name] = float(with_class - without) - 0.5 * np.log(table.n)
    return [-float(sum(worth[name] for name in items if name not in children)) for children in subsets]
