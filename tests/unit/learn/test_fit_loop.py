"""The rules of a climb as a fit shows them: n_iter, max_iter, trace, tol, status."""

import numpy as np
import pytest

import lurking as lk
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag

METHODS = ["ml", "map", "map-probability", "vb"]


@pytest.fixture(scope="module")
def carcinoma():
    return lk.carcinoma()


def small_table():
    generator = np.random.default_rng(8)
    hidden = generator.random(40) < 0.4
    cells = (generator.random((40, 4)) < np.where(hidden[:, None], 0.8, 0.25)).astype(float)
    cells[generator.random(cells.shape) < 0.1] = np.nan
    return lk.Table.from_array(cells, columns=list("abcd"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("max_iter", [1, 2, 7, 40])
def test_plain_steps_give_one_trace_entry_per_iteration(carcinoma, method, max_iter):
    fit = lk.fit("c[3] -> *", carcinoma, method=method, restarts=2, max_iter=max_iter, tol=0, accelerate=False)
    assert fit.n_iter == max_iter
    assert len(fit.trace) == max_iter
    assert fit.status is lk.Status.MAX_ITER
    assert fit.objective == fit.trace[-1]


@pytest.mark.parametrize("method", METHODS)
def test_plain_steps_until_converged(carcinoma, method):
    fit = lk.fit("c[3] -> *", carcinoma, method=method, restarts=1, accelerate=False, tol=1e-7)
    assert fit.status is lk.Status.CONVERGED
    assert len(fit.trace) == fit.n_iter < 1000
    gains = np.diff(fit.trace)
    assert gains[-1] < 1e-7 * 118
    assert np.all(gains[:-1] >= 1e-7 * 118)


@pytest.mark.parametrize("method", METHODS)
def test_tol_zero_runs_all_iterations(carcinoma, method):
    fit = lk.fit("c[2] -> *", carcinoma, method=method, restarts=1, max_iter=333, tol=0)
    assert fit.n_iter == 333
    assert fit.status is lk.Status.MAX_ITER
    assert len(fit.trace) <= 333


def test_tol_zero_in_closed_form(carcinoma):
    fit = lk.fit("A -> B", carcinoma, tol=0, max_iter=7)
    assert fit.n_iter == 7
    assert len(fit.trace) == 7
    assert np.ptp(fit.trace) == 0.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("accelerate", [True, False])
def test_trace_never_falls(carcinoma, method, accelerate):
    for seed in range(4):
        fit = lk.fit("c[4] -> *", carcinoma, method=method, restarts=1, seed=seed, accelerate=accelerate, tol=1e-10)
        assert np.all(np.diff(fit.trace) >= -1e-9 * abs(fit.objective))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("accelerate", [True, False])
def test_iterations_are_calls_of_expect(method, accelerate):
    problem = lk.Problem("h[2] -> *", small_table(), engine="reference")
    calls, engine = [0], problem.engine
    inner = engine.expect_active

    def counted(potentials):
        calls[0] += 1
        return inner(potentials)

    engine.expect_active = counted
    options = FitOptions(restarts=1, seed=1, max_iter=25, tol=0, accelerate=accelerate)
    fit = fit_problem(problem, method, options)
    assert fit.n_iter == 25
    assert calls[0] == (25 if method == "vb" else 26)  # EM's closing E-step is not counted


def test_rejected_extrapolations_count_but_leave_no_trace(carcinoma):
    fit = lk.fit("c[3] -> *", carcinoma, method="ml", restarts=1, seed=0, tol=1e-10)
    assert fit.status is lk.Status.CONVERGED
    assert len(fit.trace) < fit.n_iter
    cut = lk.fit("c[3] -> *", carcinoma, method="ml", restarts=1, seed=0, tol=1e-10, max_iter=fit.n_iter - 1)
    assert cut.status is lk.Status.MAX_ITER
    assert cut.n_iter == fit.n_iter - 1


@pytest.mark.parametrize("method", METHODS)
def test_compiled_and_python_loop_take_the_same_steps(method):
    # Few steps: at the optimum itself rounding decides whether an extrapolation is accepted.
    table = small_table()
    options = {"method": method, "restarts": 1, "seed": 3, "tol": 0, "max_iter": 12}
    compiled = lk.fit("h[2] -> *", table, **options)
    python = lk.fit("h[2] -> *", table, engine="reference", **options)
    assert compiled.n_iter == python.n_iter
    assert compiled.trace == pytest.approx(python.trace, rel=1e-9)
    assert compiled.network.theta == pytest.approx(python.network.theta, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_acceleration_ends_at_least_as_high_on_one_mode(carcinoma, method):
    plain = lk.fit("c[2] -> *", carcinoma, method=method, restarts=1, seed=0, accelerate=False, max_iter=2000)
    fast = lk.fit("c[2] -> *", carcinoma, method=method, restarts=1, seed=0, accelerate=True, max_iter=2000)
    assert fast.objective == pytest.approx(plain.objective, abs=1e-4)


def test_converged_says_so_in_words(carcinoma):
    status = lk.fit("c[2] -> *", carcinoma, restarts=1).status
    assert status is lk.Status.CONVERGED
    assert "converged" in status.sentence


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tournament", [0, 8])
def test_a_stop_flag_set_beforehand_ends_every_climb(carcinoma, method, tournament):
    stop = StopFlag()
    stop.set()
    fit = lk.fit("c[3] -> *", carcinoma, method=method, restarts=3, tournament=tournament, stop=stop)
    assert fit.status is lk.Status.INTERRUPTED
    assert fit.n_iter <= 1
    assert np.all(np.isfinite(fit.network.theta))


def test_a_stop_flag_ends_the_python_loop_too():
    stop = StopFlag()
    stop.set()
    fit = lk.fit("h[2] -> *", small_table(), engine="reference", restarts=2, stop=stop)
    assert fit.status is lk.Status.INTERRUPTED


def test_an_interrupted_fit_is_not_remembered(carcinoma):
    problem, stop = lk.Problem("c[2] -> *", carcinoma), StopFlag()
    stop.set()
    assert fit_problem(problem, "vb", FitOptions(stop=stop)).status is lk.Status.INTERRUPTED
    assert fit_problem(problem, "vb", FitOptions()).status is lk.Status.CONVERGED
