"""The true model of the paper and the data sets drawn from it (beal-ghahramani-2006, figure 1 and section 4).

Two hidden binary causes of four five-valued variables. The paper prints the parameters with two digits, drawn once from
the uniform prior, and not the data: the rows here are drawn anew, always the same ones, and smaller sets are the first
rows of larger ones as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.graph.dag import Dag
from lurking.inference.problem import Problem
from lurking.types import FloatArray, IntArray

STRUCTURE: Final = "s1[2] -> y1 y2 y3; s2[2] -> y2 y3 y4"
OBSERVED: Final = ("y1", "y2", "y3", "y4")
STATES: Final = 5
SIZES: Final = (10, 20, 40, 80, 110, 160, 230, 320, 400, 430, 480, 560, 640, 800, 960, 1120, 1280, 2560, 5120, 10240)
"""Rows of the nested data sets (section 4)."""
TABLES: Final[Mapping[str, tuple[tuple[float, ...], ...]]] = {
    "s1": ((0.12, 0.88),),
    "s2": ((0.08, 0.92),),
    "y1": ((0.03, 0.03, 0.64, 0.02, 0.27), (0.18, 0.15, 0.22, 0.19, 0.27)),
    "y2": (
        (0.10, 0.54, 0.07, 0.14, 0.15),
        (0.04, 0.15, 0.59, 0.05, 0.16),
        (0.20, 0.08, 0.36, 0.17, 0.18),
        (0.19, 0.45, 0.10, 0.09, 0.17),
    ),
    "y3": (
        (0.11, 0.47, 0.12, 0.30, 0.01),
        (0.27, 0.07, 0.16, 0.25, 0.25),
        (0.52, 0.14, 0.15, 0.02, 0.17),
        (0.04, 0.00, 0.37, 0.33, 0.25),
    ),
    "y4": ((0.10, 0.08, 0.43, 0.03, 0.36), (0.30, 0.14, 0.07, 0.04, 0.45)),
}
"""{node: table[l, k]} as printed, to 0.01; rows of y2 and y3 are (s1, s2) = (1, 1), (1, 2), (2, 1), (2, 2)."""
DATA_SEED: Final = 0
HALF_OF_ROUNDED_TO_ZERO: Final = 0.0025
"""What a probability printed as 0.00 stands for where its logarithm is needed: the middle of what rounds to it."""


def true_tables() -> dict[str, FloatArray]:
    """Return {node: table[l, k]} of the true model, every row divided by its sum."""
    tables = {name: np.asarray(table, np.float64) for name, table in TABLES.items()}
    return {name: table / table.sum(axis=1, keepdims=True) for name, table in tables.items()}


def drawn_tables(draw: int, seed: int = 0) -> dict[str, FloatArray]:
    """Return {node: table[l, k]} with every row drawn from the uniform prior; the same for the same draw and seed."""
    generator = np.random.default_rng([seed, draw, 0])
    return {name: np.asarray(generator.dirichlet(np.ones(len(table[0])), len(table))) for name, table in TABLES.items()}


def draw_rows(n: int) -> IntArray:
    """Return the first n of the 10240 rows of y1 … y4 that the true model gives, states 0 … 4, (n, 4)."""
    return rows_from(true_tables(), np.random.default_rng(DATA_SEED), n)


def rows_from(tables: Mapping[str, FloatArray], generator: np.random.Generator, n: int) -> IntArray:
    """Return the first n of the 10240 rows that a model of the true structure gives, (n, 4)."""
    if not 1 <= n <= SIZES[-1]:
        raise OptionError(f"n is {n}; the true model has 1 to {SIZES[-1]} rows here")
    nothing = np.zeros(SIZES[-1], np.int64)
    first, second = (_draw(tables[name], nothing, generator) for name in ("s1", "s2"))
    parents = {"y1": first, "y2": 2 * first + second, "y3": 2 * first + second, "y4": second}
    return np.column_stack([_draw(tables[name], parents[name], generator) for name in OBSERVED])[:n]


def _draw(table: FloatArray, rows: IntArray, generator: np.random.Generator) -> IntArray:
    """Draw one state per entry of `rows`, from the table row that the entry names, by inverting its cumulative sums."""
    cumulative = np.cumsum(table, axis=1)
    cumulative[:, -1] = 1.0
    return np.asarray((generator.random(rows.size)[:, None] >= cumulative[rows]).sum(axis=1), np.int64)


def table_of(rows: IntArray) -> Table:
    """Return rows of states 0 … 4 as a table; all five levels are declared, whether they occur or not."""
    codes = rows.astype(np.int32)
    return Table.from_codes({name: (codes[:, j], range(STATES)) for j, name in enumerate(OBSERVED)})


def true_table(n: int) -> Table:
    """Return the data set of n rows."""
    return table_of(draw_rows(n))


def true_problem(n: int) -> Problem:
    """Return the true structure on n rows with the uniform prior λ = 1 of the paper."""
    return Problem(Dag.parse(STRUCTURE), true_table(n), 1.0)


def true_log_theta(problem: Problem) -> FloatArray:
    """Return ln θ of the true model over the active positions of a problem with the true structure, (Q,)."""
    theta = problem.layout.join(TABLES)
    theta = problem.layout.normalise(np.where(theta > 0.0, theta, HALF_OF_ROUNDED_TO_ZERO))
    return np.asarray(np.log(theta)[problem.engine.active])
