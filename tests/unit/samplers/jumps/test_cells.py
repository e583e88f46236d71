"""Cells are all completions of the rows, and families are counted and scored on them as on a plain table."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2, dirichlet

import lurking as lk
from lurking.errors import DataError, TooLarge
from lurking.models.prior import Prior
from lurking.samplers.jumps.cells import Cells, Completed, completable_rows, side_by_side
from lurking.samplers.jumps.rjmcmc import log_density

TABLE = lk.Table.from_rows(
    [(0, 1, 0), (1, None, 2), (None, 0, None), (1, 1, 1)],
    list("abc"),
    levels={"a": (0, 1), "b": (0, 1), "c": (0, 1, 2)},
    weights=[3, 2, 1, 0],
)
NODES = ("h", "a", "b", "c")
SIZES = (2, 2, 2, 3)
PROBLEM = lk.Problem("h[2]; a; b; c", TABLE, prune=False)


def made():
    rows, weights = completable_rows(PROBLEM, likelihood=True)
    return rows, weights, Cells(rows, weights, SIZES)


def test_cells_are_all_completions_of_every_row():
    rows, weights, cells = made()
    assert sorted(weights) == [1.0, 2.0, 3.0]
    expected = sorted(
        (*full, weight)
        for row, weight in zip(rows, weights, strict=True)
        for full in itertools.product(*([v] if v >= 0 else range(r) for v, r in zip(row, SIZES, strict=True)))
    )
    assert (
        sorted((*column, cells.weights[u]) for column, u in zip(cells.codes.T, cells.row_of, strict=True)) == expected
    )
    assert np.array_equal(cells.places(cells.row_of, cells.codes), np.arange(len(cells)))


def test_the_likelihood_is_that_of_all_completions():
    _, _, cells = made()
    log_mass = np.random.default_rng(0).normal(size=len(cells))
    expected = sum(w * np.log(np.exp(log_mass[cells.row_of == u]).sum()) for u, w in enumerate(cells.weights))
    assert cells.log_likelihood(log_mass) == pytest.approx(expected, rel=1e-12)


def test_draws_have_the_probabilities_of_the_masses():
    _, _, cells = made()
    generator = np.random.default_rng(1)
    log_mass = generator.normal(size=len(cells))
    count, total = 2000, np.zeros(len(cells))
    for _ in range(count):
        drawn = cells.draw(log_mass, generator)
        assert np.array_equal(np.bincount(cells.row_of, weights=drawn), cells.weights)
        total += drawn
    sums = np.bincount(cells.row_of, weights=np.exp(log_mass))
    expected = count * cells.weights[cells.row_of] * np.exp(log_mass) / sums[cells.row_of]
    statistic = ((total - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-4, len(cells) - len(cells.weights))


@pytest.mark.parametrize("prior", [Prior.symmetric(0.5), Prior.bdeu(2.0)])
def test_scores_of_families_are_the_exact_evidence_of_the_completed_table(prior):
    _, _, cells = made()
    counts = cells.draw(np.zeros(len(cells)), np.random.default_rng(2))
    completed = Completed(cells, counts, prior)
    full = lk.Table.from_rows(
        [tuple(int(v) for v in column) for column in cells.codes.T],
        list(NODES),
        levels={name: tuple(range(r)) for name, r in zip(NODES, SIZES, strict=True)},
        weights=counts.tolist(),
    )
    dag = lk.Dag.parse("h; a; b; c; h -> a c; a -> c; b -> a")
    families = [(0, ()), (1, (0, 2)), (2, ()), (3, (0, 1))]
    exact = lk.score(dag, full, "exact", prior=prior).log_z
    assert sum(completed.score(*family) for family in families) == pytest.approx(exact, rel=1e-12)
    assert completed.table(3, (0, 1)).sum() == pytest.approx(full.n)


def test_without_the_likelihood_there_are_no_rows_and_everything_scores_0():
    rows, weights = completable_rows(PROBLEM, likelihood=False)
    cells = Cells(rows, weights, SIZES)
    assert len(cells) == 0
    assert cells.log_likelihood(np.empty(0)) == 0.0
    assert Completed(cells, np.empty(0), Prior.symmetric(1.0)).score(3, (0, 1)) == 0.0


def test_too_many_completions_and_fractions_of_rows_are_refused():
    wide = np.full((1, 40), -1, np.int32)
    with pytest.raises(TooLarge, match="completions"):
        Cells(wide, np.ones(1), (3,) * 40)
    table = lk.Table.from_rows([(0,), (1,)], ["a"], weights=[0.5, 1.0])
    with pytest.raises(DataError, match="whole-number"):
        completable_rows(lk.Problem("a", table), likelihood=True)


@pytest.mark.parametrize("prior", [Prior.symmetric(0.3), Prior.bdeu(2.0)])
def test_tables_side_by_side_are_those_of_a_layout(prior):
    layout = lk.Problem("h[2] -> a c; a -> c; b", TABLE).layout
    shapes = tuple(zip(layout.configurations, layout.cardinalities, strict=True))
    blocks, pseudo = side_by_side(prior, shapes)
    assert np.array_equal(blocks.row_start, layout.blocks.row_start)
    assert np.array_equal(pseudo, prior.pseudo_counts(layout, {}))


@pytest.mark.parametrize("pseudo_count", [1e-6, 0.5, 1.0, 7.0, 1e6])
def test_log_density_of_tables_matches_scipy(pseudo_count):
    generator = np.random.default_rng(3)
    tables = [generator.dirichlet(np.full(r, 2.0), shape) for r, shape in ((2, (4,)), (3, (2, 2)))]
    expected = sum(
        dirichlet.logpdf(row, np.full(len(row), pseudo_count))
        for own in tables
        for row in own.reshape(-1, own.shape[-1])
    )
    found = log_density([np.log(own) for own in tables], Prior.symmetric(pseudo_count))
    assert found == pytest.approx(expected, rel=1e-9 if pseudo_count == 1e6 else 1e-12)
