"""The loop behind EM and VBEM: monotone traces, fixed points, options, objectives from their definition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import lurking as lk
from lurking.errors import OptionError, PriorError, UnknownNameError
from lurking.expfam.blocks import Blocks
from lurking.kernels.program import Rule
from lurking.learn.loop import METHODS, Climber, ClimbOptions, Status, added_counts, rule_of

RULES = pytest.mark.parametrize("method", METHODS)
SPEED = pytest.mark.parametrize("accelerate", [False, True], ids=["plain", "accelerated"])


def least_lambda(method):
    return 1.0 if method == "map-probability" else 1e-3


def objective_of(method, small, engine, bound, potentials):
    """The objective at one point, from its definition."""
    layout, pseudo = small.layout, small.pseudo
    if method == "vb":
        return bound(layout, engine, pseudo, potentials)
    log_z = engine.expect(potentials)[1]
    exponent = {"ml": 0.0 * pseudo, "map-probability": pseudo - 1.0, "map": pseudo}[method]
    used = exponent != 0.0
    if method != "ml":
        log_z += gammaln(layout.row_sums(pseudo)).sum() - gammaln(pseudo).sum()
    return float(log_z + exponent[used] @ potentials[used])


def assert_monotone(trace):
    slack = 1e-9 * np.maximum(1.0, np.abs(trace[1:]))
    assert (np.diff(trace) >= -slack).all()
    assert np.isfinite(trace).all()


@RULES
@SPEED
@settings(max_examples=30)
@given(data=st.data())
def test_traces_rise_and_end_at_the_objective(small_problems, bound, method, accelerate, data):
    small = data.draw(small_problems(least_lambda=least_lambda(method)))
    engine = small.engine(prune=data.draw(st.booleans()))
    climber = Climber(engine, small.pseudo, METHODS[method], small.weights.sum())
    result = climber.climb(np.log(small.theta()), ClimbOptions(60, 1e-9, accelerate))
    assert_monotone(result.trace)
    assert result.objective == result.trace[-1]
    expected = objective_of(method, small, engine, bound, result.potentials)
    assert result.objective == pytest.approx(expected, rel=1e-9, abs=1e-8)
    counts, log_z = engine.expect(result.potentials)
    assert result.counts == pytest.approx(counts, rel=1e-9, abs=1e-9)
    if method != "vb":
        assert result.log_z == pytest.approx(log_z, rel=1e-9, abs=1e-9)


def survey(seed=0, rows=80, classes=2):
    rng = np.random.default_rng(seed)
    member = rng.integers(0, classes, rows)
    chance = rng.uniform(0.1, 0.9, (classes, 5))
    cells = (rng.random((rows, 5)) < chance[member]).astype(float)
    cells[rng.random(cells.shape) < 0.1] = np.nan
    return lk.Table.from_array(cells, [f"y{k}" for k in range(5)])


@RULES
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_accelerated_end_point_is_a_fixed_point_of_the_plain_map(method, seed):
    table = survey(seed)
    options = {"method": method, "prior": 1.3, "restarts": 1, "seed": seed}
    fast = lk.fit("s[2] -> *", table, tol=1e-15, max_iter=50_000, accelerate=True, **options)
    assert fast.status is Status.CONVERGED
    problem = fast.problem
    climber = Climber(problem.engine, problem.pseudo, METHODS[method], problem.n)
    start = climber.resume(climber.climb(fast.potentials, ClimbOptions(1, 0.0, False)))
    after = climber.climb(start, ClimbOptions(50, 0.0, False))
    assert after.objective - fast.objective == pytest.approx(0.0, abs=1e-8)
    assert np.exp(after.potentials) == pytest.approx(np.exp(fast.potentials), abs=1e-4)
    assert len(fast.trace) < fast.n_iter + 1 + (method != "vb")


@pytest.mark.parametrize("method", ["map", "vb"])
def test_acceleration_saves_steps_and_ends_no_lower(method):
    table = survey(5, rows=300)
    options = {"method": method, "restarts": 1, "seed": 1, "tol": 1e-12, "max_iter": 100_000}
    plain = lk.fit("s[3] -> *", table, accelerate=False, **options)
    fast = lk.fit("s[3] -> *", table, accelerate=True, **options)
    assert fast.n_iter < plain.n_iter
    assert fast.objective >= plain.objective - 1e-6


@RULES
def test_plain_iterations_give_as_many_entries_as_asked(method):
    fit = lk.fit("s[2] -> *", survey(), method=method, restarts=1, tol=0.0, max_iter=17, accelerate=False)
    assert fit.n_iter == len(fit.trace) == 17
    assert fit.status is Status.MAX_ITER


@RULES
def test_accelerated_iterations_count_rejected_extrapolations(method):
    fit = lk.fit("s[2] -> *", survey(), method=method, restarts=1, tol=0.0, max_iter=40, accelerate=True)
    assert fit.n_iter == 40
    assert len(fit.trace) <= 40


@RULES
def test_the_stopping_rule_is_a_gain_per_row(method):
    table = survey()
    tolerance = 1e-4
    fit = lk.fit("s[2] -> *", table, method=method, restarts=1, tol=tolerance, accelerate=False)
    gains = np.diff(fit.trace)
    assert fit.status is Status.CONVERGED
    assert gains[-1] < tolerance * table.n
    assert (gains[:-1] >= tolerance * table.n).all()


@RULES
def test_a_longer_run_begins_like_a_shorter_one(method):
    options = {"method": method, "restarts": 1, "tol": 0.0, "accelerate": False, "seed": 4}
    short = lk.fit("s[2] -> *", survey(), max_iter=6, **options)
    long = lk.fit("s[2] -> *", survey(), max_iter=12, **options)
    assert np.array_equal(short.trace, long.trace[:6])


@RULES
def test_resuming_goes_on_where_the_climb_stopped(method):
    problem = lk.Problem("s[2] -> *", survey(), 1.5)
    climber = Climber(problem.engine, problem.pseudo, METHODS[method], problem.n)
    start = np.log(problem.layout.normalise(np.random.default_rng(0).gamma(1.0, size=problem.layout.size) + 0.1))
    whole = climber.climb(start, ClimbOptions(10, 0.0, False))
    half = climber.climb(start, ClimbOptions(4, 0.0, False))
    rest = climber.climb(climber.resume(half), ClimbOptions(6, 0.0, False))
    assert [*half.trace, *rest.trace] == pytest.approx(whole.trace, rel=1e-12)


@RULES
def test_complete_data_are_done_in_closed_form(method):
    table = lk.Table.from_rows([(0, 1), (1, 1), (0, 0), (0, 1)], ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    fit = lk.fit("a -> b", table, method=method, prior=2.0)
    added = {"ml": 0.0, "map-probability": 1.0, "map": 2.0, "vb": 2.0}[method]
    assert fit.status is Status.CLOSED_FORM
    assert fit.n_iter == len(fit.trace) == 1
    assert fit.network.tables["a"] == pytest.approx(np.asarray([[3 + added, 1 + added]]) / (4 + 2 * added))
    counts = np.asarray([[1.0, 2.0], [0.0, 1.0]]) + added
    assert fit.network.tables["b"] == pytest.approx(counts / counts.sum(axis=1, keepdims=True))
    repeated = lk.fit("a -> b", table, method=method, prior=2.0, tol=0.0, max_iter=7)
    assert repeated.trace == pytest.approx([fit.objective] * 7)


def test_a_row_without_counts_keeps_its_value_in_ml():
    rows = [(0, None), (0, 1)]
    table = lk.Table.from_rows(rows, ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    init = {"a": [[0.5, 0.5]], "b": [[0.4, 0.6], [0.3, 0.7]]}
    fit = lk.fit("a -> b", table, method="ml", init=init, restarts=1, prune=False, max_iter=5, tol=0.0)
    assert fit.network.tables["b"][1] == pytest.approx([0.3, 0.7], rel=1e-12)
    assert fit.network.tables["a"][0] == pytest.approx([1.0, 0.0], abs=1e-15)


@RULES
def test_a_harmless_zero_in_init_is_accepted(method):
    """No row becomes impossible, so the start is used as it is."""
    rows = [(0, 0, 0), (1, 1, 0), (0, 1, 1), (1, 0, 1)]
    table = lk.Table.from_rows(rows, ["a", "b", "c"])
    init = {
        "s": [[0.5, 0.5]],
        "a": [[0.0, 1.0], [0.6, 0.4]],
        "b": [[0.3, 0.7], [0.6, 0.4]],
        "c": [[0.2, 0.8], [0.7, 0.3]],
    }
    fit = lk.fit("s[2] -> a b c", table, method=method, prior=2.0, init=init, restarts=1, max_iter=20)
    assert_monotone(fit.trace)


@RULES
def test_an_init_that_excludes_a_row_is_refused_in_one_line(method):
    table = lk.Table.from_rows([(0, 0), (1, 1)], ["a", "b"])
    init = {"s": [[0.5, 0.5]], "a": [[0.0, 1.0], [0.0, 1.0]], "b": [[0.3, 0.7], [0.6, 0.4]]}
    with pytest.raises(OptionError, match="probability 0 to some row") as caught:
        lk.fit("s[2] -> a b", table, method=method, init=init, restarts=1)
    assert "\n" not in str(caught.value)


def test_rules_add_their_own_counts():
    pseudo, blocks = np.asarray([1.0, 2.5]), Blocks.of_tables(np.asarray([0, 2]))
    assert added_counts(Rule.ML, blocks, pseudo).tolist() == [0.0, 0.0]
    assert added_counts(Rule.MAP_PROBABILITY, blocks, pseudo).tolist() == [0.0, 1.5]
    assert added_counts(Rule.MAP, blocks, pseudo).tolist() == [1.0, 2.5]
    with pytest.raises(PriorError, match=r"0\.999"):
        added_counts(Rule.MAP_PROBABILITY, blocks, np.asarray([1.0, 0.999]))


def test_unknown_methods_list_the_choices():
    with pytest.raises(UnknownNameError, match="vb, map, map-probability, ml"):
        rule_of("vbem")


@pytest.mark.parametrize(
    "options",
    [{"max_iter": 0}, {"max_iter": 2.5}, {"max_iter": True}, {"tol": -1.0}, {"tol": math.nan}, {"tol": "small"}],
    ids=str,
)
def test_bad_options_name_the_value(options):
    with pytest.raises(OptionError, match=next(iter(options))) as caught:
        ClimbOptions(**options)
    assert repr(next(iter(options.values()))) in str(caught.value)


def test_every_status_is_a_sentence():
    for status in Status:
        assert len(status.sentence.split()) >= 4
