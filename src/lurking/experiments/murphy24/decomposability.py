"""The gain of two arcs is not the sum of their gains (slide "Illustration of non-decomposability").

The lecture prints a table and three facts: a hidden C, X1 and X2 correlate weakly with X3, X3 strongly with X4. Its
penalties, ΔLL − ΔCS = 3.4, 3.4 and 6.7 for one, one and two parameters, are about ½ ln n at n = 1000. Assumed here: n =
1000, binary variables, first network C → X1 X2 with X3 and X4 alone, and data from the network with all four arcs, C
and every X even on the whole, P(Xi = 1 | C) = ½ ± r_i/2 with r1 = r2. That leaves three numbers, which the three
printed ΔLL fix; the printed ΔCS are then a test. Expected data are all sixteen rows with n times their probability.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lurking.data.table import Table
from lurking.evidence.evaluation import evaluate
from lurking.experiments.bench import Task, Workbench
from lurking.graph.dag import Dag
from lurking.inference.network import Network
from lurking.inference.problem import Problem
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.runtime.store import Key, digest_of

VERSION: Final = 1
NAMES: Final = ("X1", "X2", "X3", "X4")
STRENGTHS: Final = (0.19460179, 0.19460179, 0.28646137, 0.53714294)
"""r1 to r4: with n = 1000 the gains in log likelihood of expected data are 3.0, 10.6 and 24.1."""
ADDED: Final = ("", "X3", "X4", "X3 X4")
"""The four networks, by what C has an arc to beside X1 and X2."""
MEASURES: Final = ("loglik", "bic", "cs", "vb")
EXPECTED: Final = "expected"


@dataclass(frozen=True)
class GainConfig:
    """Rows, sampled data sets, and starts of EM and VB; `target` and `passes` of the evidence of sampled data.

    Of C → X1 X2 X3 most starts of VB end at a mode 0.55 nats too low; 100 are enough, with 50 it may be missed.
    """

    rows: int = 1000
    sets: int = 20
    restarts: int = 400
    target: float = 0.1
    passes: int = 1 << 16

    def __post_init__(self) -> None:
        for name, least in (("rows", 1), ("sets", 0), ("restarts", 1), ("passes", 1)):
            check_whole(name, getattr(self, name), least)


@dataclass(frozen=True)
class Gains:
    """One data set: {added arcs: {measure: value less that of the first network}}; `data` names it.

    Sampled data have "ais" too, and its standard error as "ais error".
    """

    data: str
    gains: Mapping[str, Mapping[str, float]]

    def excess(self, measure: str) -> float:
        """Return what both arcs bring beyond the sum of what each brings alone; 0 for a score that decomposes."""
        return self.gains["X3 X4"][measure] - self.gains["X3"][measure] - self.gains["X4"][measure]


def network_of(added: str) -> Dag:
    """Return one of the four networks."""
    children = ("X1", "X2", *added.split())
    return Dag(["C", *NAMES], [("C", name) for name in children], {"C": 2})


def truth() -> Network:
    """Return the generating network."""
    tables = {
        name: [[0.5 + r / 2, 0.5 - r / 2], [0.5 - r / 2, 0.5 + r / 2]] for name, r in zip(NAMES, STRENGTHS, strict=True)
    }
    return Network.from_tables(network_of("X3 X4"), {"C": [[0.5, 0.5]], **tables})


def expected_data(rows: int) -> Table:
    """Return all sixteen rows, each weighing `rows` times its probability."""
    joint = truth().joint(NAMES)
    cells = list(itertools.product(range(2), repeat=len(NAMES)))
    weights = rows * np.asarray([joint[cell] for cell in cells])
    return Table.from_rows(cells, list(NAMES), levels={name: [0, 1] for name in NAMES}, weights=weights)


def gains(bench: Workbench, config: GainConfig, seed: int) -> tuple[Gains, ...]:
    """Return the gains on expected data, then on each sampled data set."""
    tables = {EXPECTED: expected_data(config.rows)}
    for place in range(config.sets):
        drawn = truth().sample(config.rows, seed=np.random.SeedSequence([seed, config.rows, place]))
        tables[f"sampled {place + 1}"] = drawn
    how = {"restarts": config.restarts, "target": config.target, "passes": config.passes}
    tasks = [
        Task(
            Key(table.digest, "C -> X1 X2", "gains", digest_of(VERSION, how), seed),
            lambda table=table, name=name: _measured(bench, table, config, seed, name != EXPECTED),  # type: ignore[misc]
        )
        for name, table in tables.items()
    ]
    return tuple(Gains(name, own) for name, own in zip(tables, bench.each("gains of arcs", tasks), strict=True))


def _measured(
    bench: Workbench, table: Table, config: GainConfig, seed: int, is_sampled: bool
) -> dict[str, dict[str, float]]:
    """Return every measure of every network less that of the first."""
    options = FitOptions(restarts=config.restarts, seed=seed, workers=1, stop=bench.stop, keep_interrupted=True)
    values: dict[str, dict[str, float]] = {}
    errors: dict[str, float] = {}
    for added in ADDED:
        problem = Problem(network_of(added), table)
        found = {"loglik": fit_problem(problem, "ml", options).log_z}
        found |= {name: own.log_z for name, own in evaluate(problem, MEASURES[1:], options, {}).items()}
        if is_sampled:  # a sampler draws whole rows, and expected data have fractions of them
            own_options: dict[str, Any] = {"target": config.target, "passes": config.passes}
            sampled = evaluate(problem, ["ais"], options, own_options)["ais"]
            found["ais"], errors[added] = sampled.log_z, sampled.nominal_error or 0.0
        values[added] = found
    first = values[""]
    gained = {added: {name: values[added][name] - first[name] for name in first} for added in ADDED[1:]}
    if is_sampled:
        gained = {added: own | {"ais error": math.hypot(errors[added], errors[""])} for added, own in gained.items()}
    return gained
