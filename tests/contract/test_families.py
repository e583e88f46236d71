"""Every family of nodes keeps the contract, and a broken one is caught."""

import numpy as np
import pytest
from scipy.special import gammaln

import family_checks as checks
import lurking as lk
from lurking.errors import FamilyError
from lurking.expfam.gamma import PoissonRate
from lurking.models.families.base import Family, Scope
from lurking.models.families.checks import check_family
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
    checks.check_missing(family)
    checks.check_mode(family, n_rows, cells)


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


class ZeroTimesInfinity(CountFamily):
    def cells(self, potentials, cells):
        rows = potentials.reshape(-1, 2)[cells.configuration]
        with np.errstate(invalid="ignore"):
            return rows[:, 0] + cells.value * rows[:, 1]


class MissingBase(CountFamily):
    def log_base(self, values):
        return -gammaln(values + 1.0)


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
        (lambda: ZeroTimesInfinity(1.0, 0.4), "count"),
        (lambda: MissingBase(1.0, 0.4), "count"),
    ],
)
def test_a_broken_family_is_caught(kind, like):
    _, parent_states, states = CASES[like]
    with pytest.raises(AssertionError):
        run_all(kind(), parent_states, states)


SCOPE = Scope("y", lk.Table.from_columns({"y": [0, 3, 1]}, count="y")["y"], np.ones(3), (2,))


def changed(**methods):
    """A count family with some methods replaced."""
    made = {name: (lambda _self, *_given, value=value: value) for name, value in methods.items()}
    return type("Changed", (CountFamily,), made)


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"shape": None}, "has the shape None"),
        ({"shape": (3, 2, 1)}, "must be \\(rows, size of a row\\)"),
        ({"block": PoissonRate(5)}, "and its block has rows at"),
        ({"prior": np.ones(3)}, "prior of .* has shape \\(3,\\); it must have \\(4,\\)"),
        ({"prior": "one"}, "must be an array of numbers"),
        ({"prior": -np.ones(4)}, "log normaliser of .* must be one finite number"),
        ({"start": np.full(4, np.nan)}, "start of .* contains nan"),
        ({"log_base": np.zeros(7)}, "log_base of .* has shape"),
        ({"log_base": np.asarray([0.0, -np.inf, 0.0, 0.0])}, "log_base of .* contains -inf"),
        ({"log_base": np.ones(4)}, "must be 0"),
        ({"cells": 1.0}, "cells of .* has shape"),
        ({"statistics": np.full(4, np.nan)}, "statistics of .* contains nan"),
    ],
)
def test_what_breaks_the_contract_is_refused_before_it_is_used(methods, words):
    with pytest.raises(FamilyError, match=words) as caught:
        check_family(changed(**methods)(), SCOPE)
    assert "'count' of 'y'" in str(caught.value)
    check_family(CountFamily(), SCOPE)
