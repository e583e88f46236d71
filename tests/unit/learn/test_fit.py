"""`lk.fit`: starts, seeds, workers, spread, tournament, and what a fit holds."""

import concurrent.futures
import math

import numpy as np
import pytest

import lurking as lk
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions

METHODS = ["ml", "map", "map-probability", "vb"]


@pytest.fixture(scope="module")
def carcinoma():
    return lk.carcinoma()


def same(one, other):
    """Whether two fits are equal number by number."""
    return (
        one.objective == other.objective
        and one.n_iter == other.n_iter
        and one.spread == other.spread
        and np.array_equal(one.trace, other.trace)
        and np.array_equal(one.network.theta, other.network.theta)
    )


@pytest.mark.parametrize("method", METHODS)
def test_start_k_does_not_depend_on_the_number_of_starts(carcinoma, method):
    few = lk.fit("c[3] -> *", carcinoma, method=method, restarts=3, seed=5)
    many = lk.fit("c[3] -> *", carcinoma, method=method, restarts=7, seed=5)
    assert len(few.spread.objectives) == 3
    assert many.spread.objectives[:3] == few.spread.objectives
    assert len(set(many.spread.objectives)) > 1


@pytest.mark.parametrize("method", ["ml", "vb"])
def test_the_best_start_is_kept(carcinoma, method):
    fit = lk.fit("c[4] -> *", carcinoma, method=method, restarts=12, seed=3)
    assert fit.objective == max(fit.spread.objectives)
    assert fit.objective == fit.trace[-1]
    first = fit.spread.objectives.index(fit.objective)
    fewer = lk.fit("c[4] -> *", carcinoma, method=method, restarts=first + 1, seed=3)
    assert np.array_equal(fewer.trace, fit.trace)
    assert np.array_equal(fewer.network.theta, fit.network.theta)


def test_of_equal_starts_the_first_is_kept():
    # Rows of weight 0 leave every start where it is, with log-likelihood 0.
    table = lk.Table.from_rows([(0, 1), (1, 1)], columns=["a", "b"], weights=[0.0, 0.0])
    many = lk.fit("h[2] -> *", table, method="ml", restarts=5, seed=0)
    assert many.spread.objectives == (0.0,) * 5
    assert np.array_equal(many.network.theta, lk.fit("h[2] -> *", table, method="ml", restarts=1, seed=0).network.theta)


def test_more_restarts_never_end_lower(carcinoma):
    values = [lk.fit("c[4] -> *", carcinoma, method="ml", restarts=k, seed=1).objective for k in (1, 3, 9, 27)]
    assert values == sorted(values)
    assert values[-1] > values[0]


@pytest.mark.parametrize("method", METHODS)
def test_equal_seeds_give_equal_results_for_any_number_of_workers(carcinoma, method):
    serial = lk.fit("c[3] -> *", carcinoma, method=method, restarts=6, seed=11, workers=1)
    threads = lk.fit("c[3] -> *", carcinoma, method=method, restarts=6, seed=11, workers=2)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        outside = lk.fit("c[3] -> *", carcinoma, method=method, restarts=6, seed=11, executor=pool)
        assert pool.submit(int, "1").result() == 1  # the caller's pool is left open
    assert same(serial, threads)
    assert same(serial, outside)


def test_different_seeds_give_different_starts(carcinoma):
    one = lk.fit("c[3] -> *", carcinoma, restarts=1, max_iter=1, seed=0)
    other = lk.fit("c[3] -> *", carcinoma, restarts=1, max_iter=1, seed=1)
    assert one.objective != other.objective


def test_a_seed_sequence_is_as_good_as_its_number_and_is_left_alone(carcinoma):
    sequence = np.random.SeedSequence(4)
    one = lk.fit("c[2] -> *", carcinoma, seed=sequence, restarts=2)
    again = lk.fit("c[2] -> *", carcinoma, seed=sequence, restarts=2)
    number = lk.fit("c[2] -> *", carcinoma, seed=4, restarts=2)
    assert sequence.n_children_spawned == 0
    assert same(one, again)
    assert same(one, number)


def test_generators_with_equal_state_give_equal_results(carcinoma):
    one = lk.fit("c[2] -> *", carcinoma, seed=np.random.default_rng(4), restarts=2)
    other = lk.fit("c[2] -> *", carcinoma, seed=np.random.default_rng(4), restarts=2)
    assert same(one, other)


def init_for(columns):
    """Return an asymmetric start for two classes."""
    tables = {"c": [[0.3, 0.7]]}
    for k, name in enumerate(columns):
        tables[name] = [[0.8 - 0.05 * k, 0.2 + 0.05 * k], [0.3 + 0.05 * k, 0.7 - 0.05 * k]]
    return tables


def test_init_is_start_one_as_it_is_and_the_other_starts_do_not_move(carcinoma):
    init = init_for("ABCDEFG")
    given = lk.fit("c[2] -> *", carcinoma, method="ml", init=init, restarts=4, seed=2)
    drawn = lk.fit("c[2] -> *", carcinoma, method="ml", restarts=4, seed=2)
    alone = lk.fit("c[2] -> *", carcinoma, method="ml", init=init, restarts=1, seed=99)
    assert given.spread.objectives[0] == alone.objective
    assert given.spread.objectives[1:] == drawn.spread.objectives[1:]
    assert given.spread.objectives[0] != drawn.spread.objectives[0]


def test_one_em_step_from_init_is_bayes_rule(carcinoma):
    init = init_for("ABCDEFG")
    fit = lk.fit("c[2] -> *", carcinoma, method="ml", init=init, restarts=1, max_iter=1, accelerate=False)
    codes = np.column_stack([carcinoma[name].codes for name in carcinoma.columns])
    joint = np.log([init["c"][0]]).repeat(len(codes), axis=0)
    for j, name in enumerate(carcinoma.columns):
        joint += np.log(np.asarray(init[name])[:, codes[:, j]].T)
    share = np.exp(joint - joint.max(axis=1, keepdims=True))
    share *= (carcinoma.weights / share.sum(axis=1))[:, None]
    assert fit.network.tables["c"][0] == pytest.approx(share.sum(axis=0) / carcinoma.n, abs=1e-12)
    for j, name in enumerate(carcinoma.columns):
        second = (share * codes[:, [j]]).sum(axis=0) / share.sum(axis=0)
        assert fit.network.tables[name][:, 1] == pytest.approx(second, abs=1e-12)
    assert fit.objective == pytest.approx(float(carcinoma.weights @ fit.network.loglik(carcinoma)), abs=1e-9)


def test_the_callers_init_is_not_changed(carcinoma):
    init = {name: np.asarray(table) for name, table in init_for("ABCDEFG").items()}
    before = {name: table.copy() for name, table in init.items()}
    lk.fit("c[2] -> *", carcinoma, init=init, restarts=1)
    assert all(np.array_equal(init[name], before[name]) for name in init)


def test_spread_in_numbers_and_words(carcinoma):
    spread = lk.fit("c[4] -> *", carcinoma, method="ml", restarts=20, seed=0, tol=1e-10).spread
    best, worst = max(spread.objectives), min(spread.objectives)
    assert spread.range == best - worst > 0.1
    assert spread.n_at_best == sum(best - value <= 1e-3 for value in spread.objectives)
    assert 1 <= spread.n_at_best < 20
    assert str(spread).startswith(f"{spread.n_at_best} of 20 starts")


@pytest.mark.parametrize("method", ["ml", "vb"])
def test_tournament_is_no_worse_than_the_median_start(carcinoma, method):
    singles = [lk.fit("c[4] -> *", carcinoma, method=method, restarts=1, seed=k).objective for k in range(21)]
    tournament = lk.fit("c[4] -> *", carcinoma, method=method, tournament=64, seed=0)
    assert tournament.objective >= np.median(singles) - 1e-4
    assert tournament.status is lk.Status.CONVERGED


def test_tournament_is_deterministic_and_replaces_restarts(carcinoma):
    one = lk.fit("c[4] -> *", carcinoma, method="ml", tournament=16, seed=7)
    again = lk.fit("c[4] -> *", carcinoma, method="ml", tournament=16, seed=7, restarts=3, workers=2)
    other = lk.fit("c[4] -> *", carcinoma, method="ml", tournament=16, seed=8)
    assert same(one, again)
    assert not np.array_equal(one.trace, other.trace)


def test_tournament_of_one_is_a_single_start(carcinoma):
    one = lk.fit("c[3] -> *", carcinoma, tournament=1, seed=7)
    assert same(one, lk.fit("c[3] -> *", carcinoma, restarts=1, seed=7))


@pytest.mark.parametrize("method", METHODS)
def test_fitted_tables_are_probabilities_and_repeat_the_objective(carcinoma, method):
    fit = lk.fit("c[3] -> *", carcinoma, method=method, prior=1.5, restarts=3, seed=0, tol=1e-10)
    for table in fit.network.tables.values():
        assert np.all(table >= 0)
        assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), abs=1e-12)
    assert (fit.posterior is not None) == (method == "vb")
    log_likelihood = float(carcinoma.weights @ fit.network.loglik(carcinoma))
    if method == "ml":
        assert fit.objective == pytest.approx(log_likelihood, abs=1e-8)
    elif method == "map-probability":
        assert fit.objective == pytest.approx(log_likelihood + log_dirichlet(fit, 1.5, 0.5), abs=1e-7)
    elif method == "map":
        assert fit.objective == pytest.approx(log_likelihood + log_dirichlet(fit, 1.5, 1.5), abs=1e-7)
    else:
        assert fit.objective < log_likelihood


def log_dirichlet(fit, pseudo_count, exponent):
    """Return Σ_jl [lnΓ(λ_jl) − Σ_k lnΓ(λ) + Σ_k exponent · ln θ_jlk]."""
    total = 0.0
    for table in fit.network.tables.values():
        for row in table:
            total += math.lgamma(pseudo_count * len(row)) - len(row) * math.lgamma(pseudo_count)
            total += exponent * float(np.log(row).sum())
    return total


def test_posterior_of_a_vb_fit_is_prior_plus_expected_counts(carcinoma):
    fit = lk.fit("c[3] -> *", carcinoma, prior=0.7, seed=0)
    assert fit.posterior["c"].sum() == pytest.approx(118 + 3 * 0.7, abs=1e-8)
    for name in carcinoma.columns:
        assert fit.posterior[name].sum() == pytest.approx(118 + 6 * 0.7, abs=1e-8)
        rows = fit.posterior[name].sum(axis=1) - 2 * 0.7
        assert rows == pytest.approx(fit.posterior["c"][0] - 0.7, abs=1e-8)
    assert fit.network.theta == pytest.approx(fit.posterior.mean(), abs=0)


def test_complete_data_are_fitted_in_closed_form(carcinoma):
    fit = lk.fit("A -> B", carcinoma, method="ml", restarts=5)
    codes_a, codes_b = carcinoma["A"].codes, carcinoma["B"].codes
    counts = np.zeros((2, 2))
    np.add.at(counts, (codes_a, codes_b), carcinoma.weights)
    assert fit.status is lk.Status.CLOSED_FORM
    assert fit.n_iter == 1
    assert fit.network.tables["A"][0] == pytest.approx(counts.sum(axis=1) / 118, abs=1e-14)
    assert fit.network.tables["B"] == pytest.approx(counts / counts.sum(axis=1, keepdims=True), abs=1e-14)


def test_weights_are_repeated_rows():
    rows = [(0, 0, 1), (0, 0, 0), (1, 1, 0), (1, None, 1)]
    weighted = lk.Table.from_rows(rows, columns=["a", "b", "c"], weights=[3, 2, 4, 1])
    repeated = lk.Table.from_rows(
        [row for row, w in zip(rows, [3, 2, 4, 1], strict=True) for _ in range(w)], columns=["a", "b", "c"]
    )
    assert lk.fit("h[2] -> *", weighted, seed=0).objective == lk.fit("h[2] -> *", repeated, seed=0).objective


@pytest.mark.parametrize("method", METHODS)
def test_no_rows_at_all(method):
    table = lk.Table.from_rows([], columns=["a", "b"], levels={"a": [0, 1], "b": ["x", "y", "z"]})
    fit = lk.fit("h[2] -> *", table, method=method, restarts=2)
    assert np.isfinite(fit.objective)
    assert np.all(np.isfinite(fit.network.theta))
    if method in ("ml", "vb"):
        assert fit.objective == 0.0


def test_equal_options_on_one_problem_are_fitted_once(carcinoma):
    problem = lk.Problem("c[2] -> *", carcinoma)
    first = fit_problem(problem, "vb", FitOptions(seed=3))
    assert fit_problem(problem, "vb", FitOptions(seed=3)) is first
    assert fit_problem(problem, "vb", FitOptions(seed=4)) is not first
    assert fit_problem(problem, "map", FitOptions(seed=3)) is not first


def test_about_says_where_the_network_came_from(carcinoma):
    fit = lk.fit("c[2] -> *", carcinoma, seed=3, restarts=2, prior=0.5)
    about = fit.network.about
    assert (about["method"], about["seed"], about["n"]) == ("vb", 3, 118.0)
    assert about["objective"] == fit.objective
    assert about["options"]["restarts"] == 2
    assert about["prior"] == {"kind": "symmetric", "pseudo_count": 0.5}
    assert about["data_digest"] == carcinoma.digest
