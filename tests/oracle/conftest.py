"""Reference cases as problems of the library."""

import json
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from lurking.data.table import Table
from lurking.graph.dag import Dag
from lurking.inference.problem import Problem
from lurking.models.layout import Layout
from lurking.models.prior import Prior

DATA = Path(__file__).parent / "data"


class Case:
    """One reference case: its numbers by key, and the library's objects made from them."""

    def __init__(self, numbers: dict) -> None:
        self.numbers = numbers
        self.names = numbers["names"]
        names, hidden = self.names, numbers["hidden"]
        edges = [(names[p], names[j]) for j, parents in enumerate(numbers["parents"]) for p in parents]
        self.dag = Dag(names, edges, {names[h]: numbers["card"][h] for h in hidden})
        self.prior = Prior.from_counts(dict(zip(names, numbers["lambda"], strict=True)))
        self.init = dict(zip(names, map(np.asarray, numbers["theta0"]), strict=True))
        self._problems: dict[bool, Problem] = {}

    def __getitem__(self, key: str):
        return self.numbers[key]

    def __contains__(self, key: str) -> bool:
        return key in self.numbers

    def table_of(self, rows: list) -> Table:
        seen = [j for j in range(len(self.names)) if j not in self.numbers["hidden"]]
        return Table.from_rows(
            [[row[j] for j in seen] for row in rows],
            [self.names[j] for j in seen],
            levels={self.names[j]: list(range(self.numbers["card"][j])) for j in seen},
        )

    @cached_property
    def table(self) -> Table:
        return self.table_of(self.numbers["data"])

    def problem(self, prune: bool = False) -> Problem:
        if prune not in self._problems:
            self._problems[prune] = Problem(self.dag, self.table, self.prior, prune=prune)
        return self._problems[prune]

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.dag, dict(zip(self.names, self.numbers["card"], strict=True)))

    def flat(self, tables: list) -> np.ndarray:
        """Return [j][l][k] as a flat vector, with "inf" and "-inf" read as numbers."""
        return np.asarray([float(x) for table in tables for row in table for x in row])

    def tables(self, tables: list) -> dict[str, np.ndarray]:
        return dict(zip(self.names, map(np.asarray, tables), strict=True))

    @property
    def smallest_pseudo_count(self) -> float:
        return self.flat(self.numbers["lambda"]).min()

    @property
    def plain(self) -> dict:
        """Options that run plain iterations from the case's own start."""
        return {"init": self.init, "restarts": 1, "tol": 0.0, "accelerate": False}


_CASES = {path.stem: Case(json.loads(path.read_text())) for path in sorted((DATA / "discrete").glob("*.json"))}


@pytest.fixture(params=list(_CASES))
def case(request) -> Case:
    """Every reference case in turn."""
    return _CASES[request.param]


def _with(*keys):
    return [name for name, entry in _CASES.items() if all(key in entry for key in keys)]


@pytest.fixture(params=_with("exact"))
def exact_case(request) -> Case:
    """The cases with a known exact evidence."""
    return _CASES[request.param]


@pytest.fixture(params=_with("barren_cells_left_out"))
def barren_case(request) -> Case:
    """The cases with unobserved cells that have no observed descendant."""
    return _CASES[request.param]


def _points(refused: bool) -> list[tuple[str, str]]:
    """Return every (case, method): the mode over probabilities needs λ >= 1."""
    found = [(name, method) for name in _CASES for method in _CASES[name]["em"]]
    return [(n, m) for n, m in found if (m == "map" and _CASES[n].smallest_pseudo_count < 1.0) == refused]


@pytest.fixture(params=_points(refused=False), ids="-".join)
def point(request) -> tuple[Case, str]:
    """Every (case, stored method of EM) that has an answer."""
    return _CASES[request.param[0]], request.param[1]


@pytest.fixture(params=_points(refused=True), ids="-".join)
def refused_point(request) -> tuple[Case, str]:
    """Every (case, stored method of EM) whose prior is refused."""
    return _CASES[request.param[0]], request.param[1]


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    """All reference cases by name."""
    return _CASES


@pytest.fixture(scope="session")
def class136() -> dict:
    """The 136 structures with two binary hidden causes of four five-valued variables."""
    return json.loads((DATA / "class136.json").read_text())
