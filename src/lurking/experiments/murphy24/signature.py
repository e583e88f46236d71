"""What a hidden variable leaves behind when it is left out (slide "Structural signatures").

The lecture draws a hidden H with parents X1 X2 X3 and children Y1 Y2 Y3, all binary: 3 + 8 + 6 = 17 parameters. Without
H every child depends on all parents and on the children before it: 3 + 8 + 16 + 32 = 59. It names no data. Here X are
even coins, rows of P(H | X) are Dirichlet(½, ½), and P(Y = 1 | H) is one of U(0.05, 0.35) and one of U(0.65, 0.95).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lurking.data.table import Table
from lurking.evidence.evaluation import evaluate
from lurking.experiments.bench import Task, Workbench
from lurking.graph.dag import Dag
from lurking.inference.network import Network
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.runtime.store import Key, digest_of
from lurking.search.api import search

VERSION: Final = 1
PARENTS: Final = ("X1", "X2", "X3")
CHILDREN: Final = ("Y1", "Y2", "Y3")
OBSERVED: Final = (*PARENTS, *CHILDREN)


@dataclass(frozen=True)
class SignatureConfig:
    """Numbers of rows, generating networks, and how evidence is sampled."""

    rows: tuple[int, ...] = (100, 300, 1000, 3000, 10000)
    sets: int = 6
    target: float = 0.1
    passes: int = 1 << 15

    def __post_init__(self) -> None:
        for name, least in (("sets", 0), ("passes", 1)):
            check_whole(name, getattr(self, name), least)
        for count in self.rows:
            check_whole("rows", count, 1)


@dataclass(frozen=True)
class Learnt:
    """One data set.

    hidden, std_error, status : sampled evidence of the network with H.
    full : exact evidence of the 59-parameter network; best : of the best of all structures without H; tabu : of the one
        that tabu search ends at.
    structure, parameters, most_parents : of the best one.
    linked_children, linked_across : pairs of children, and pairs of a parent and a child, that it links.
    """

    rows: int
    place: int
    hidden: float
    std_error: float
    status: str
    full: float
    best: float
    tabu: float
    structure: str
    parameters: int
    most_parents: int
    linked_children: int
    linked_across: int
    is_semi_clique: bool


def with_hidden() -> Dag:
    """Return the network with the hidden variable."""
    arcs = [(name, "H") for name in PARENTS] + [("H", name) for name in CHILDREN]
    return Dag([*PARENTS, "H", *CHILDREN], arcs, {"H": 2})


def without_hidden() -> Dag:
    """Return the network that takes its place: every child depends on all parents and on the children before it."""
    arcs = list(itertools.product(PARENTS, CHILDREN)) + list(itertools.combinations(CHILDREN, 2))
    return Dag(OBSERVED, arcs)


def generating(seed: int, place: int) -> Network:
    """Draw the parameters of a network with the hidden variable."""
    generator = np.random.default_rng([seed, place, 0])
    tables: dict[str, Any] = {name: [[0.5, 0.5]] for name in PARENTS}
    tables["H"] = generator.dirichlet([0.5, 0.5], size=2 ** len(PARENTS))
    for name in CHILDREN:
        ones = generator.permutation([generator.uniform(0.05, 0.35), generator.uniform(0.65, 0.95)])
        tables[name] = np.stack([1.0 - ones, ones], axis=1)
    return Network.from_tables(with_hidden(), tables)


def is_semi_clique(dag: Dag, names: tuple[str, ...]) -> bool:
    """Whether each of the variables is linked to at least half of the others (Elidan et al. 2001)."""
    return all(
        2 * sum(_is_linked(dag, name, other) for other in names if other != name) >= len(names) - 1 for name in names
    )


def _is_linked(dag: Dag, one: str, other: str) -> bool:
    return one in dag.parents(other) or other in dag.parents(one)


def learnt(bench: Workbench, config: SignatureConfig, seed: int) -> tuple[Learnt, ...]:
    """Do every data set; those of one generating network are nested."""
    how = {"target": config.target, "passes": config.passes}
    tasks = []
    for place in range(config.sets):
        drawn = generating(seed, place).sample(max(config.rows), seed=np.random.SeedSequence([seed, place, 1]))
        for count in config.rows:
            table = drawn.take(np.arange(count))
            key = Key(table.digest, "X -> H -> Y", "signature", digest_of(VERSION, how), seed)
            tasks.append(Task(key, lambda table=table: _one(bench, table, config, seed), count))  # type: ignore[misc]
    places = itertools.product(range(config.sets), config.rows)
    made = bench.each("signature of a hidden variable", tasks)
    return tuple(Learnt(rows=count, place=place, **own) for (place, count), own in zip(places, made, strict=True))


def _one(bench: Workbench, table: Table, config: SignatureConfig, seed: int) -> dict[str, Any]:
    """Return the content of a `Learnt` but for rows and place; every cell of every table has pseudo-count 1."""
    options = FitOptions(restarts=10, seed=seed, workers=1, stop=bench.stop, keep_interrupted=True)
    own = {"target": config.target, "passes": config.passes}
    sampled = evaluate(Problem(with_hidden(), table), ["ais"], options, own)["ais"]
    full = evaluate(Problem(without_hidden(), table), ["exact"], options, {})["exact"]
    best = search(table, score="bd", prior=1.0, method="exact", stop=bench.stop)
    tabu = search(table, score="bd", prior=1.0, method="tabu", seed=seed, workers=1, stop=bench.stop)
    dag = best.best
    return {
        "hidden": sampled.log_z,
        "std_error": sampled.nominal_error or 0.0,
        "status": sampled.status.name,
        "full": full.log_z,
        "best": best.score,
        "tabu": tabu.score,
        "structure": str(dag),
        "parameters": Problem(dag, table).dimension,
        "most_parents": max(len(dag.parents(name)) for name in OBSERVED),
        "linked_children": sum(_is_linked(dag, *pair) for pair in itertools.combinations(CHILDREN, 2)),
        "linked_across": sum(_is_linked(dag, *pair) for pair in itertools.product(PARENTS, CHILDREN)),
        "is_semi_clique": is_semi_clique(dag, CHILDREN),
    }


def dimensions() -> tuple[int, int]:
    """Return the parameters of both networks."""
    table = generating(0, 0).sample(1, seed=0)
    return Problem(with_hidden(), table).dimension, Problem(without_hidden(), table).dimension
