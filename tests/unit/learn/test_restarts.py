import warnings

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingWarning
from lurking.inference.problem import Problem
from lurking.learn import restarts
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.learn.starts import Spread


def traits(seed=0, n=101, columns=16, groups=8, sharpness=0.04):
    """Return a table of two-valued traits that depend almost wholly on the group of a row, as animals' traits do."""
    rng = np.random.default_rng(seed)
    typical = rng.integers(0, 2, (groups, columns))
    group = rng.choice(groups, n, p=rng.dirichlet(np.ones(groups)))
    values = np.where(rng.random((n, columns)) < sharpness, 1 - typical[group], typical[group])
    return lk.Table.from_rows([tuple(map(int, row)) for row in values], columns=[f"t{j}" for j in range(columns)])


SHARP = traits()
EASY = lk.stouffer_toby()


def sharp_problem(states):
    return Problem(f"class[{states}] -> *", SHARP, lk.Prior.bdeu(1.0))


@pytest.mark.parametrize("states", [4, 6, 8])
def test_auto_finds_at_least_what_300_random_starts_find(states):
    auto = fit_problem(sharp_problem(states), "vb", FitOptions())
    many = fit_problem(sharp_problem(states), "vb", FitOptions(restarts=300))
    ten = fit_problem(sharp_problem(states), "vb", FitOptions(restarts=10))
    assert auto.objective >= many.objective - 1e-3
    assert auto.objective > ten.objective + 2.0, "the table must be one on which ten starts fail"


def test_auto_makes_ten_starts_where_they_agree():
    auto = lk.fit("class[2] -> *", EASY)
    ten = lk.fit("class[2] -> *", EASY, restarts=10)
    assert auto.objective == ten.objective
    assert auto.spread == ten.spread
    np.testing.assert_array_equal(auto.network.theta, ten.network.theta)


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_auto_is_never_below_its_first_ten_starts(method):
    for seed in range(3):
        auto = fit_problem(sharp_problem(5), method, FitOptions(seed=seed))
        ten = fit_problem(sharp_problem(5), method, FitOptions(seed=seed, restarts=10))
        assert auto.objective >= ten.objective
        assert all(a >= b for a, b in zip(auto.spread.objectives, ten.spread.objectives, strict=False))


def test_auto_gives_equal_results_for_any_number_of_workers():
    alone, many = (fit_problem(sharp_problem(5), "vb", FitOptions(workers=workers)) for workers in (1, 3))
    assert alone.spread == many.spread
    np.testing.assert_array_equal(alone.network.theta, many.network.theta)


def test_auto_depends_on_the_seed_alone():
    first, again, other = (fit_problem(sharp_problem(6), "vb", FitOptions(seed=seed)) for seed in (1, 1, 2))
    assert first.spread == again.spread
    assert first.spread != other.spread


def test_a_number_of_restarts_means_exactly_that_many():
    for count in (1, 2, 17):
        fit = fit_problem(sharp_problem(6), "vb", FitOptions(restarts=count))
        assert len(fit.spread.objectives) == count


def test_spent_budget_ends_auto_unsettled_and_fit_warns(monkeypatch):
    monkeypatch.setattr(restarts, "EXTRA", 1.0)
    with pytest.warns(LurkingWarning, match="not settled: only 1 of 10 starts found the best; there may be a better"):
        fit = lk.fit("class[8] -> *", SHARP, prior=lk.Prior.bdeu(1.0))
    assert not fit.spread.is_settled
    assert "not settled" in str(fit)


def test_progress_counts_the_first_starts_and_never_runs_back():
    class Counter:
        def __init__(self):
            self.seen = []

        def begin(self, _what, total):
            self.seen.append(0)
            assert total == 10

        def update(self, done):
            self.seen.append(done)

        def end(self):
            pass

    counter = Counter()
    fit = fit_problem(sharp_problem(6), "vb", FitOptions(progress=counter))
    assert counter.seen == sorted(counter.seen)
    assert counter.seen[-1] == 10
    assert fit.spread.is_settled


def test_complete_data_need_one_start_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = lk.fit("A -> B; C; D", EASY)
    assert len(fit.spread.objectives) == 1
    assert fit.spread.is_settled


def test_a_table_with_empty_cells_alone_is_settled_by_plain_starts():
    table = lk.Table.from_rows([(0, 1), (1, None), (None, 0), (1, 1), (0, 0)], columns=["a", "b"])
    fit = lk.fit("a -> b", table)
    assert fit.spread.is_settled
    assert len(fit.spread.objectives) == 10


def test_an_interrupt_during_kicks_keeps_the_best_so_far(monkeypatch):
    options = FitOptions(keep_interrupted=True)
    kicked = restarts.Kicks.kicked
    calls = []

    def stop_at_the_third(self, theta, generator):
        calls.append(None)
        if len(calls) == 3:
            options.stop.set()
        return kicked(self, theta, generator)

    monkeypatch.setattr(restarts.Kicks, "kicked", stop_at_the_third)
    fit = fit_problem(sharp_problem(6), "vb", options)
    assert fit.status is lk.Status.INTERRUPTED
    ten = fit_problem(sharp_problem(6), "vb", FitOptions(restarts=10))
    assert fit.objective >= ten.objective


def test_a_spread_is_settled_from_three_starts_at_the_best():
    assert not Spread((-5.0, -5.0, -7.0)).is_settled
    assert Spread((-5.0, -5.0, -7.0, -5.0005)).is_settled
    assert Spread((-5.0,), enough=1).is_settled
    assert Spread((-5.0, -7.0)).describe() == {"count": 2, "at_best": 1, "range": 2.0, "settled": False}
