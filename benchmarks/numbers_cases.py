"""What the numbers are taken on: the reference cases of the tests, the bundled tables, and tables drawn here."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

import lurking as lk
from trees import ROOT

CASES = ROOT / "tests" / "oracle" / "data" / "discrete"
NETWORKS = ROOT / "tests" / "oracle" / "networks"
TABLES = {"carcinoma": lk.carcinoma, "gss82": lk.gss82, "stouffer_toby": lk.stouffer_toby}
ROLES = "a[2] -> A B; b[2] -> C D; a -> b"
MODELS: dict[str, tuple[tuple[str, str], ...]] = {
    "carcinoma": (
        ("two classes", "class[2] -> *"),
        ("three classes", "class[3] -> *"),
        ("two causes", "s[2] -> A B C D; t[2] -> D E F G"),
        ("chain", "h1[2] -> A B; h2[2] -> C D E; h3[2] -> F G; h1 -> h2; h2 -> h3"),
        ("observed parent", "class[2] -> B C D E F G; A -> class"),
    ),
    "gss82": (
        ("independent", "PURPOSE; ACCURACY; UNDERSTA; COOPERAT"),
        ("two classes", "class[2] -> *"),
        ("three classes", "class[3] -> *"),
        ("four classes", "class[4] -> *"),
        ("observed parent", "PURPOSE -> class; class[2] -> ACCURACY UNDERSTA COOPERAT"),
        ("two causes", "s[2] -> PURPOSE ACCURACY UNDERSTA; t[2] -> UNDERSTA COOPERAT; s -> t"),
        ("barren", "class[2] -> PURPOSE ACCURACY UNDERSTA; COOPERAT -> idle[2]"),
    ),
    "stouffer_toby": (
        ("two classes", "class[2] -> *"),
        ("three classes", "class[3] -> *"),
        ("two causes", ROLES),
        ("complete", "A -> B C; B -> D; C -> D"),
    ),
}
"""Structures for each bundled table, by name."""
PRIORS: dict[str, Any] = {
    "uniform": lambda: 1.0,
    "bdeu": lambda: lk.Prior.bdeu(2.0),
    "jeffreys": lk.Prior.jeffreys,
    "half": lambda: lk.Prior.symmetric(0.7),
}
TIED = (("A", "B"), ("C", "D"))


class Case:
    """One reference case as arguments of public calls."""

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        names, hidden = numbers["names"], numbers["hidden"]
        edges = [(names[p], names[j]) for j, parents in enumerate(numbers["parents"]) for p in parents]
        seen = [j for j in range(len(names)) if j not in hidden]
        self.dag = lk.Dag(names, edges, {names[h]: numbers["card"][h] for h in hidden})
        self.table = lk.Table.from_rows(
            [[row[j] for j in seen] for row in numbers["data"]],
            [names[j] for j in seen],
            levels={names[j]: list(range(numbers["card"][j])) for j in seen},
        )
        self.prior = lk.Prior.from_counts(dict(zip(names, numbers["lambda"], strict=True)))
        self.init = dict(zip(names, map(np.asarray, numbers["theta0"]), strict=True))
        self.network = lk.Network.from_tables(self.dag, self.init)

    @property
    def plain(self) -> dict[str, Any]:
        """Options of plain iterations from the start that belongs to the case."""
        return {"prior": self.prior, "init": self.init, "restarts": 1, "tol": 0.0, "accelerate": False}


@cache
def cases() -> dict[str, Case]:
    """Return all reference cases by name."""
    paths = sorted(CASES.glob("*.json"))
    return {path.stem: Case(json.loads(path.read_text(encoding="utf-8"))) for path in paths}


@cache
def bundled(name: str) -> lk.Table:
    """Return a bundled table."""
    return TABLES[name]()


def bundled_models() -> Iterator[tuple[str, str, lk.Table]]:
    """Yield a key, a structure and the table for every structure on a bundled table."""
    for name, models in MODELS.items():
        for title, model in models:
            yield f"{name}/{title}", model, bundled(name)


@cache
def with_missing(name: str = "gss82", fraction: float = 0.15) -> lk.Table:
    """Return a bundled table, row by row, with cells emptied at random."""
    table = bundled(name)
    frame = table.take(np.repeat(np.arange(table.n_rows), table.weights.astype(int))).to_frame()
    generator = np.random.default_rng(11)
    cells = np.asarray(frame.loc[:, list(table.columns)], dtype=object)
    cells[generator.random(cells.shape) < fraction] = None
    levels = {column: table[column].levels for column in table.columns}
    return lk.Table.from_rows(cells.tolist(), table.columns, levels=levels)


def emptied(table: lk.Table, fraction: float) -> lk.Table:
    """Return the table with cells emptied at random."""
    generator = np.random.default_rng(12)
    cells = np.asarray(table.to_frame(), dtype=object)
    cells[generator.random(cells.shape) < fraction] = None
    return lk.Table.from_rows(
        cells.tolist(), table.columns, levels={name: table[name].levels for name in table.columns}
    )


def fewer_rows(table: lk.Table, count: int) -> lk.Table:
    """Return the first rows of a table."""
    return table.take(np.arange(min(count, table.n_rows)))


@cache
def alarm_rows(count: int) -> lk.Table:
    """Return rows drawn from the published network alarm."""
    return lk.read_network(NETWORKS / "alarm.bif").sample(count, seed=3)


@cache
def asia_rows(count: int) -> lk.Table:
    """Return rows drawn from the published network asia."""
    return lk.read_network(NETWORKS / "asia.bif").sample(count, seed=4)


def two_cause_rows(count: int) -> lk.Table:
    """Return rows of four five-valued columns below two binary hidden causes."""
    import data

    values = data.two_causes(count)
    levels = tuple(range(5))
    return lk.Table.from_codes({f"y{k + 1}": (column.astype(np.int32), levels) for k, column in enumerate(values.T)})


def binary_rows(count: int, columns: int) -> lk.Table:
    """Return rows of binary columns from four classes; nearly all rows differ if there are many columns."""
    import data

    values = data.mixed_items(count, columns)
    return lk.Table.from_codes({f"x{k + 1}": (column, (0, 1)) for k, column in enumerate(values.T)})
