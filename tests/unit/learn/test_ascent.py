"""Gradient ascent beside EM: right gradients, the same optima, honest counts and traces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import lurking as lk
from lurking.errors import LurkingError
from lurking.inference.problem import Problem
from lurking.learn.ascent import CLOSING, COORDINATES, WARM_UP, ascend
from lurking.learn.fit import fit_problem
from lurking.learn.loop import METHODS, Climber, ClimbOptions, rule_of
from lurking.learn.options import FitOptions
from lurking.learn.python_loop import evaluate
from lurking.runtime.executor import StopFlag

BOTH = pytest.mark.parametrize("optimizer", ["lbfgs", "cg"])
EVERY = pytest.mark.parametrize("method", list(METHODS))


def overlapping(rows=400, items=6, empty=0.0, seed=0):
    """Return binary items of three classes that hardly differ: EM creeps."""
    rng = np.random.default_rng(seed)
    ones = np.clip(0.5 + 0.25 * rng.standard_normal((3, items)), 0.05, 0.95)
    values = (rng.random((rows, items)) < ones[rng.integers(0, 3, rows)]).astype(float)
    values[rng.random(values.shape) < empty] = np.nan
    rows = [[None if np.isnan(v) else int(v) for v in row] for row in values]
    names = [f"y{i}" for i in range(items)]
    return lk.Table.from_rows(rows, names, levels={name: [0, 1] for name in names})


def climber_of(problem, method):
    return Climber(problem.engine, problem.pseudo, rule_of(method), problem.n)


@EVERY
@given(data=st.data())
@hypothesis_settings(max_examples=12)
def test_gradients_are_those_of_finite_differences(small_problems, method, data):
    small = data.draw(small_problems(least_lambda=0.05))
    if method == "map-probability":
        small = small.changed(pseudo=small.pseudo + 1.0)
    problem = small.problem()
    climber = climber_of(problem, method)
    active = problem.engine.active
    if not active.size:
        return
    coordinates = COORDINATES[climber.rule](climber, evaluate(climber, np.log(small.theta())[active], None))
    rng = small.generator
    x = coordinates.begin() + 0.1 * rng.standard_normal(len(coordinates.begin()))

    def value(at):
        return coordinates.value_and_gradient(at, evaluate(climber, coordinates.potentials(at), None))

    direction = rng.standard_normal(len(x))
    step = 1e-5 / np.abs(direction * coordinates.scale).max()
    ahead, behind = value(x + step * direction)[0], value(x - step * direction)[0]
    slope = float(value(x)[1] @ direction)
    rounding = 1e-12 * max(abs(ahead), 1.0) / step
    assert (ahead - behind) / (2.0 * step) == pytest.approx(slope, rel=1e-4, abs=1e-6 * max(1.0, slope) + rounding)


@EVERY
@pytest.mark.parametrize("empty", [0.0, 0.2])
@BOTH
def test_the_optimum_is_that_of_em(method, empty, optimizer):
    table = overlapping(150, empty=empty)
    options = {"method": method, "restarts": 1, "seed": 3, "prior": 1.5}
    em = lk.fit("c[2] -> *", table, tol=1e-14, max_iter=200_000, **options)
    fit = lk.fit("c[2] -> *", table, tol=1e-12, max_iter=50_000, optimizer=optimizer, **options)
    assert fit.status is lk.Status.CONVERGED
    assert fit.objective == pytest.approx(em.objective, abs=1e-6)
    assert fit.network.loglik(table) == pytest.approx(em.network.loglik(table), abs=1e-3)


@EVERY
@BOTH
def test_the_trace_never_falls_and_goes_on_where_em_stopped(method, optimizer):
    table = overlapping(empty=0.1)
    options = {"method": method, "restarts": 1, "seed": 5}
    fit = lk.fit("c[3] -> *", table, optimizer=optimizer, tol=1e-10, max_iter=20_000, **options)
    assert np.all(np.diff(fit.trace) >= -1e-10 * abs(fit.objective))
    assert fit.trace[-1] == fit.objective
    assert len(fit.trace) <= fit.n_iter
    warm_up = lk.fit("c[3] -> *", table, tol=1e-10, max_iter=WARM_UP - (method != "vb"), **options)
    assert fit.trace[: len(warm_up.trace)] == pytest.approx(warm_up.trace)
    assert fit.objective >= warm_up.objective


@pytest.mark.parametrize("method", ["ml", "map", "vb"])
@BOTH
def test_fewer_e_steps_than_plain_em_on_a_slow_problem(method, optimizer):
    table = overlapping()
    options = {"method": method, "restarts": 1, "seed": 2, "tol": 1e-10, "max_iter": 50_000}
    plain = lk.fit("c[3] -> *", table, accelerate=False, **options)
    fast = lk.fit("c[3] -> *", table, optimizer=optimizer, **options)
    assert fast.objective >= plain.objective - 1e-6
    assert 2 * fast.n_iter < plain.n_iter


@EVERY
@BOTH
@pytest.mark.parametrize("max_iter", [1, 2, WARM_UP, WARM_UP + 1, WARM_UP + CLOSING + 1, 60])
def test_iterations_are_calls_of_expect(method, optimizer, max_iter):
    problem = Problem("c[2] -> *", overlapping(30, 4), engine="reference")
    calls, inner = [0], problem.engine.expect_active

    def counted(potentials):
        calls[0] += 1
        return inner(potentials)

    problem.engine.expect_active = counted
    fit = fit_problem(problem, method, FitOptions(restarts=1, tol=0, max_iter=max_iter, optimizer=optimizer))
    assert fit.n_iter == max_iter
    assert fit.status is lk.Status.MAX_ITER
    assert calls[0] == (max_iter if method == "vb" else max_iter + 1)  # EM's closing E-step is not counted


@BOTH
def test_probabilities_that_go_to_zero_are_no_obstacle(optimizer):
    rows = [(0, 0, 0)] * 8 + [(1, 1, 1)] * 7 + [(0, 0, 1)] * 2 + [(1, 1, 0)]
    table = lk.Table.from_rows(rows, ["a", "b", "c"])
    options = {"method": "ml", "restarts": 5, "max_iter": 20_000}
    em = lk.fit("h[2] -> *", table, tol=1e-14, **options)
    fit = lk.fit("h[2] -> *", table, tol=1e-12, optimizer=optimizer, **options)
    assert np.all(np.isfinite(fit.network.theta))
    assert fit.network.theta.min() < 1e-6
    assert fit.objective == pytest.approx(em.objective, abs=1e-6)
    assert np.isfinite(fit.statistics.g_squared)


def test_zeros_of_the_start_stay_zero():
    table = lk.Table.from_rows([(0, 0), (0, 1), (1, 0), (1, 1), (0, 0)], ["a", "b"])
    init = {"h": [0.5, 0.5], "a": [[1.0, 0.0], [0.3, 0.7]], "b": [[0.4, 0.6], [0.6, 0.4]]}
    fit = lk.fit("h[2] -> *", table, method="ml", init=init, restarts=1, tol=0, max_iter=100, optimizer="lbfgs")
    assert fit.network.tables["a"][0].tolist() == [1.0, 0.0]
    assert np.isfinite(fit.objective)


@EVERY
@BOTH
def test_workers_never_change_a_result(method, optimizer):
    table = overlapping(60, 4)
    one, two = (
        lk.fit("c[2] -> *", table, method=method, optimizer=optimizer, restarts=3, seed=1, workers=workers)
        for workers in (1, 2)
    )
    assert one.spread == two.spread
    assert one.trace.tolist() == two.trace.tolist()
    assert one.network == two.network


@EVERY
@BOTH
def test_the_last_of_a_tournament_is_finished_by_the_optimizer(method, optimizer):
    table = overlapping(120, 5)
    fit = lk.fit("c[2] -> *", table, method=method, optimizer=optimizer, tournament=4, tol=1e-11, max_iter=20_000)
    em = lk.fit("c[2] -> *", table, method=method, tournament=4, tol=1e-13, max_iter=50_000)
    assert fit.objective == pytest.approx(em.objective, abs=1e-6)
    assert len(fit.spread.objectives) == 1


def test_complete_data_need_no_optimizer():
    table = lk.Table.from_rows([(0, 1), (1, 1), (0, 0)], ["a", "b"])
    fit = lk.fit("a -> b", table, method="map", optimizer="cg", tol=0, max_iter=40)
    assert fit.status is lk.Status.CLOSED_FORM
    assert fit.n_iter == 40


@EVERY
@BOTH
@pytest.mark.parametrize("after", [0, WARM_UP + 2, WARM_UP + 10])
def test_a_stop_flag_ends_the_climb_with_the_best_point(method, optimizer, after):
    problem = Problem("c[2] -> *", overlapping(40, 4), engine="reference")
    stop, calls, inner = StopFlag(), [0], problem.engine.expect_active

    def counted(potentials):
        calls[0] += 1
        if calls[0] > after:
            stop.set()
        return inner(potentials)

    problem.engine.expect_active = counted
    climb = ascend(
        climber_of(problem, method),
        np.log(problem.layout.normalise(np.random.default_rng(0).gamma(1.0, size=problem.layout.size))),
        ClimbOptions(1000, 0.0, True, optimizer),
        stop,
    )
    assert climb.status is lk.Status.INTERRUPTED
    assert np.isfinite(climb.objective)
    assert np.all(np.diff(climb.trace) >= -1e-10 * abs(climb.objective))
    assert climb.n_iter <= after + 1


def test_scores_and_comparisons_take_the_optimizer():
    table = overlapping(100, 4)
    options = {"seed": 0, "tol": 1e-11, "max_iter": 20_000, "restarts": 2}
    em = lk.score("c[2] -> *", table, ["bic", "vb"], **options)
    fast = lk.score("c[2] -> *", table, ["bic", "vb"], optimizer="lbfgs", **options)
    assert [e.log_z for e in fast] == pytest.approx([e.log_z for e in em], abs=1e-5)
    models = {f"m{k}": f"c[{k}] -> *" for k in (1, 2)}
    rows = lk.compare(models, table, scores=["vb"], optimizer="cg", **options).rows
    assert rows[1].evidences["vb"].log_z == pytest.approx(em["vb"].log_z, abs=1e-5)


def test_an_unknown_optimizer_lists_the_choices():
    with pytest.raises(LurkingError, match="lbfgs"):
        lk.fit("c[2] -> *", overlapping(10, 3), optimizer="newton")


def test_fits_by_different_optimizers_are_kept_apart():
    assert FitOptions(optimizer="lbfgs").key != FitOptions().key
    assert FitOptions(optimizer="lbfgs").describe()["optimizer"] == "lbfgs"
