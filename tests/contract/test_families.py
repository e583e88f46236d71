"""Every family of nodes keeps the contract, and a broken one is caught."""

import numpy as np
import pytest

import family_checks as checks
from lurking.models.families.base import Family
from lurking.models.families.count import CountFamily
from lurking.models.families.logistic import LogisticFamily
from lurking.models.families.registry import FAMILIES, TABLE
from lurking.models.families.table import TableFamily

CASES = {
    "table": (TableFamily(2, 0.7), (2, 3), 2),
    "count": (CountFamily(1.0, 0.4), (3,), 1),
    "count without parents": (CountFamily(2.0, 0.5), (), 1),
    "logistic": (LogisticFamily(2), (2, 2), 2),
    "logistic without parents": (LogisticFamily(0, 1.0), (), 2),
}


def run_all(family, parent_states, states):
    configurations = int(np.prod(parent_states, dtype=int))
    n_rows, _ = family.shape(configurations)
    cells = checks.random_cells(family, configurations, parent_states, states, seed=5)
    potentials = checks.posterior_potentials(family, n_rows, seed=6)
    checks.check_shapes(family, configurations)
    checks.check_gradient(family, potentials, cells)
    checks.check_affine(family, potentials, cells)
    checks.check_probabilities(family, n_rows, cells)
    checks.check_bound(family, n_rows, cells)


def test_no_family_is_left_out():
    kinds = {type(family) for family, _, _ in CASES.values()}
    assert kinds == {kind for kind in Family.__subclasses__() if kind.__module__.startswith("lurking.")}
    assert {family.name for family, _, _ in CASES.values()} == {TABLE, *FAMILIES}


@pytest.mark.parametrize("name", CASES)
def test_family_keeps_the_contract(name):
    run_all(*CASES[name])


class WrongShape(CountFamily):
    def shape(self, configurations):
        return configurations + 1, 3


class WrongGradient(LogisticFamily):
    def statistics(self, potentials, cells, masses):
        return 1.01 * super().statistics(potentials, cells, masses)


class FalselyAffine(LogisticFamily):
    is_affine = True


class WrongBase(CountFamily):
    def log_base(self, values):
        return np.zeros(len(values))


class WrongCells(LogisticFamily):
    """The quadratic expansion at the mean is no expectation."""

    def cells(self, potentials, cells):
        return super().cells(potentials, cells) + 0.1


class NotRandom(CountFamily):
    def start(self, n_rows, generator):  # noqa: ARG002
        return self.block(n_rows).natural(np.zeros(n_rows))[0]


@pytest.mark.parametrize(
    ("kind", "like"),
    [
        (lambda: WrongShape(1.0, 0.4), "count"),
        (lambda: WrongGradient(2), "logistic"),
        (lambda: FalselyAffine(2), "logistic"),
        (lambda: WrongBase(1.0, 0.4), "count"),
        (lambda: WrongCells(2), "logistic"),
        (lambda: NotRandom(1.0, 0.4), "count"),
    ],
)
def test_a_broken_family_is_caught(kind, like):
    _, parent_states, states = CASES[like]
    with pytest.raises(AssertionError):
        run_all(kind(), parent_states, states)
