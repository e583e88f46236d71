"""What every exact engine keeps: all checks of `engine_checks` for everything in `ENGINES` and what it is made of."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import lurking as lk
from engine_checks import CHECKS, Case, broken
from lurking.errors import EngineError
from lurking.inference.engines.choice import MixedEngine, choose_engine
from lurking.inference.engines.components import independent_families, kept_nodes
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.junction import JunctionEngine
from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.row_blocks import BlockEngine, MemoryShelf
from lurking.inference.problem import ENGINES

ENGINE = pytest.mark.parametrize("engine", list(ENGINES))

CASES = {
    "hidden root": ("s[2] -> a b c", [(0, 1, 0), (1, 1, 1), (0, 1, 0)]),
    "empty cells": ("a -> b -> c", [(0, None, 1), (None, 1, 0), (None, None, None), (1, 0, 1)]),
    "hidden and empty": ("s[3] -> a b; a -> c", [(0, None, 1), (1, 1, None), (None, 0, 0)]),
    "hidden chain": ("s[2] -> t[2] -> u[2]; s -> a; t -> b; u -> c", [(0, 1, 1), (1, None, 0)]),
    "hidden leaf": ("a -> b; b -> s[2]; c", [(0, 1, 1), (1, 0, 0)]),
    "two causes": ("s[2] -> a b; t[3] -> b c", [(0, 1, 1), (1, 0, 0), (1, 1, 1)]),
    "apart": ("s[2] -> a; t[2] -> b; c", [(0, 1, 1), (1, None, 0), (None, 1, 1)]),
    "one state": ("s[1] -> a b c", [(0, 1, 1), (1, 0, 0)]),
    "complete": ("a -> b; a -> c; b -> c", [(0, 1, 1), (1, 0, 0), (1, 0, 1)]),
    "tied": ("s[2] -> a b; c", [(0, 1, 1), (1, None, 0), (1, 1, None)]),
    "no rows": ("s[2] -> a b c", []),
}
TIED = {"tied": [["a", "b"]]}


def mixed(layout, rows, prune):
    """Enumeration and a tree in turn for the independent parts of a model."""
    is_open = ((rows.codes < 0) & kept_nodes(layout, rows.codes, prune)).any(axis=0)
    parts = independent_families(layout, np.flatnonzero(is_open).tolist())
    makers = itertools.cycle((EnumerationEngine, JunctionEngine))
    return MixedEngine([make(layout, rows, prune, (), families) for make, families in zip(makers, parts, strict=False)])


def in_blocks(layout, rows, prune):
    """Two rows at a time."""
    blocks = [rows.take(slice(k, k + 2)) for k in range(0, len(rows), 2)]
    return BlockEngine(layout, blocks, len(blocks), prune, choose_engine, MemoryShelf())


MAKERS = {**ENGINES, "mixed": mixed, "in blocks": in_blocks}


def problem_of(name, engine="auto", prune=False):
    model, rows = CASES[name]
    table = lk.Table.from_rows(
        rows, list("abc"), levels={key: [0, 1] for key in "abc"}, weights=np.arange(1, len(rows) + 1) / 2
    )
    return lk.Problem(model, table, 0.7, prune=prune, engine=engine, tied=TIED.get(name))


def case_of(name, make, prune=False):
    problem = problem_of(name, prune=prune)
    return Case(make, problem.layout, problem.rows, prune)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("maker", MAKERS)
def test_every_engine_keeps_the_contract(maker, name, check):
    for prune in (False, True):
        CHECKS[check](case_of(name, MAKERS[maker], prune))


@pytest.mark.parametrize("maker", MAKERS)
def test_many_points_are_one_by_one_to_the_last_bit(maker):
    for name in CASES:
        case = case_of(name, MAKERS[maker])
        expected = [case.engine.expect(point)[1] for point in case.points]
        assert case.engine.log_z(case.points).tolist() == expected


def by_definition(problem, potentials):
    """Return log_z from the joint table of all nodes: a sum over everything that is not observed."""
    layout = problem.layout
    joint = np.zeros(layout.cardinalities)
    for j, strides in enumerate(layout.strides):
        for states in np.ndindex(*layout.cardinalities):
            joint[states] += potentials[layout.offsets[j] + sum(s * states[v] for v, s in strides.items())]
    values = []
    for row in problem.rows.codes:
        chosen = joint[tuple(slice(None) if code < 0 else int(code) for code in row)]
        values.append(math.log(np.exp(chosen).sum()))
    return np.asarray(values)


@ENGINE
@pytest.mark.parametrize("name", CASES)
def test_log_z_is_the_sum_over_what_is_unobserved(name, engine):
    problem = problem_of(name, engine)
    potentials = np.random.default_rng(0).normal(-1.0, 1.0, problem.layout.size)
    expected = by_definition(problem, potentials)
    assert problem.engine.pattern_log_z(potentials) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    log_z = problem.engine.expect(potentials)[1]
    assert log_z == pytest.approx(float(problem.rows.weights @ expected), rel=1e-12, abs=1e-12)


@ENGINE
@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
@pytest.mark.parametrize("name", CASES)
def test_scores_do_not_depend_on_the_engine(name, engine, prune):
    model, rows = CASES[name]
    table = lk.Table.from_rows(rows, list("abc"), levels={key: [0, 1] for key in "abc"})
    names = ["map-likelihood", "mled", "cs", "vb"] + (["bic", "bicp", "draper"] if rows else [])
    options = {"restarts": 1, "seed": 0, "tol": 0.0, "max_iter": 8, "accelerate": False, "prune": prune}
    expected = lk.score(model, table, names, **options)
    scores = lk.score(model, table, names, engine=engine, **options)
    for score in names:
        assert scores[score].log_z == pytest.approx(expected[score].log_z, rel=1e-10, abs=1e-10)
        assert scores[score].kind is expected[score].kind
        assert scores[score].log_aliases == expected[score].log_aliases


class WrongSize(EnumerationEngine):
    def _expect_active(self, potentials):
        counts, log_z = super()._expect_active(potentials)
        return counts[:-1], log_z


class NotANumber(EnumerationEngine):
    def _expect_active(self, potentials):
        return super()._expect_active(potentials)[0], math.nan


class NotTheGradient(EnumerationEngine):
    def _expect_active(self, potentials):
        counts, log_z = super()._expect_active(potentials)
        return counts * 1.001, log_z


class OtherLikelihood(ReferenceEngine):
    def _expect_active(self, potentials):
        counts, log_z = super()._expect_active(potentials)
        return counts, log_z + 1e-9


class OtherPoints(EnumerationEngine):
    def _log_z_active(self, points):
        return super()._log_z_active(points) + 1e-9


class OtherPatterns(EnumerationEngine):
    def _pattern_log_z(self, potentials):
        return super()._pattern_log_z(potentials) + 1e-9


class SwappedPatterns(EnumerationEngine):
    """The sums over the patterns are right."""

    def pattern_statistics(self, potentials):
        result = super().pattern_statistics(potentials)
        if len(result) > 1:
            result[0] += 2.0 * self.rows.weights[1]
            result[1] -= 2.0 * self.rows.weights[0]
        return result


class MarginalsOfNothing(EnumerationEngine):
    def pattern_marginals(self, potentials, node):
        return np.nan_to_num(super().pattern_marginals(potentials, node), nan=0.5)


class FirstRowTwice(EnumerationEngine):
    def __init__(self, layout, rows, prune):
        weights = rows.weights.copy()
        weights[:1] *= 2.0
        super().__init__(layout, type(rows).of_codes(rows.codes, weights), prune)


class ChangesItsInput(EnumerationEngine):
    def pattern_statistics(self, potentials):
        result = super().pattern_statistics(potentials)
        potentials += 1.0
        return result


class AllActive(ReferenceEngine):
    """Everything counts as inferred, even if nothing is unobserved."""

    def __init__(self, layout, rows, prune):
        super().__init__(layout, rows, prune)
        self.active, self.complete_counts = np.arange(layout.size), np.zeros(layout.size)


class ForgetsTheBase(EnumerationEngine):
    def pattern_log_z(self, potentials):
        return self._pattern_log_z(potentials)


class SomethingOutOfNothing(EnumerationEngine):
    def _pattern_log_z(self, potentials):
        result = super()._pattern_log_z(potentials)
        return result if len(result) else np.zeros(1)


class HalfThePieces(EnumerationEngine):
    @property
    def pieces(self):
        return []


BROKEN = {
    WrongSize: "counts_have_the_right_size",
    NotANumber: "counts_have_the_right_size",
    NotTheGradient: "counts_are_the_gradient",
    OtherLikelihood: "brute_force_agrees",
    OtherPoints: "many_points_are_one_by_one",
    OtherPatterns: "patterns_add_up",
    SwappedPatterns: "patterns_are_those_of_brute_force",
    MarginalsOfNothing: "marginals_are_posteriors",
    FirstRowTwice: "order_and_splitting_do_not_matter",
    ChangesItsInput: "potentials_are_left_alone",
    AllActive: "active_positions_are_what_is_inferred",
    ForgetsTheBase: "base_measure_is_added",
    SomethingOutOfNothing: "no_rows_give_nothing",
    HalfThePieces: "pieces_are_the_compiled_rows",
}


@pytest.mark.parametrize("engine", BROKEN, ids=lambda engine: engine.__name__)
def test_the_checks_find_a_broken_engine(engine):
    name = "complete" if engine is AllActive else "empty cells"
    assert BROKEN[engine] in broken(case_of(name, engine, prune=True))
    assert not broken(case_of(name, engine.__base__, prune=True))


def test_every_check_finds_some_broken_engine():
    assert set(BROKEN.values()) == set(CHECKS)


@pytest.mark.parametrize("engine", [WrongSize, NotANumber])
@pytest.mark.parametrize("method", ["vb", "map"])
def test_a_broken_engine_raises_one_error_that_names_it(engine, method, monkeypatch):
    class Uncompiled(engine):
        """The climb calls it from Python."""

        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.compiled, self.program = self.program, None

        def _expect_active(self, potentials):
            self.program = self.compiled
            try:
                return super()._expect_active(potentials)
            finally:
                self.program = None

    monkeypatch.setitem(ENGINES, "broken", Uncompiled)
    model, rows = CASES["hidden root"]
    with pytest.raises(EngineError, match=r"^Uncompiled returned (NaN|counts)") as caught:
        lk.fit(model, lk.Table.from_rows(rows, list("abc")), method=method, engine="broken", restarts=1, seed=0)
    assert "\n" not in str(caught.value)


def test_a_program_of_another_size_is_refused(monkeypatch):
    class TooShort(EnumerationEngine):
        def __init__(self, layout, rows, prune):
            super().__init__(layout, rows, prune)
            self.active = self.active[:-1]

    monkeypatch.setitem(ENGINES, "short", TooShort)
    model, rows = CASES["hidden root"]
    with pytest.raises(EngineError, match="TooShort compiled a program of 12 potentials for 11 active positions"):
        lk.fit(model, lk.Table.from_rows(rows, list("abc")), engine="short", restarts=1, seed=0)


def test_a_compiled_climb_that_ends_in_nan_is_refused(monkeypatch):
    def spoilt(layout, rows, prune):
        engine = EnumerationEngine(layout, rows, prune)
        engine.program = engine.program._replace(weights=np.full(len(engine.program.weights), np.nan))
        return engine

    monkeypatch.setitem(ENGINES, "spoilt", spoilt)
    model, rows = CASES["hidden root"]
    with pytest.raises(EngineError, match="EnumerationEngine returned NaN as log_z"):
        lk.fit(model, lk.Table.from_rows(rows, list("abc")), engine="spoilt", method="ml", restarts=1, seed=0)


def test_infinite_potentials_are_not_the_fault_of_the_engine():
    engine = problem_of("hidden root").engine
    points = np.full((2, engine.layout.size), np.inf)
    assert np.isnan(engine.expect(points[0])[1])
    assert np.isnan(engine.log_z(points)).all()


def test_no_module_asks_which_class_an_engine_has():
    source = Path(lk.__file__).parent
    files = {path.relative_to(source): path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    asking = re.compile(r"isinstance\([^\n]*\w*Engine\b|\bis (?:not )?\w*Engine\b")
    assert len(files) > 200
    assert [str(path) for path, text in files.items() if asking.search(text)] == []
