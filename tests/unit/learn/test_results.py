"""Results cannot be changed by their reader, can be pickled, and survive interrupts."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError, StructureError
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag

TABLE = lk.Table.from_rows([(0, 0, 1), (1, 1, 0), (1, None, 0), (0, 0, 0)], columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def fit():
    return lk.fit("h[2] -> *", TABLE, seed=0, restarts=2)


def test_arrays_of_results_are_read_only(fit):
    arrays = [fit.trace, fit.counts, fit.potentials, fit.posterior.flat, fit.problem.pseudo, fit.problem.layout.row_of]
    arrays += [fit.network.theta, fit.network.alpha, fit.network.tables["a"]]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


def test_a_network_keeps_its_own_copy():
    theta = np.full(2, 0.5)
    network = lk.Network(lk.Dag.parse("a"), {"a": (0, 1)}, theta)
    theta[0] = 9.0
    assert network.theta.tolist() == [0.5, 0.5]
    with pytest.raises(StructureError, match="theta has shape"):
        lk.Network(lk.Dag.parse("a"), {"a": (0, 1)}, np.full(3, 0.5))


def test_explicit_counts_are_copied():
    counts = np.ones((1, 2))
    prior = lk.Prior.from_counts({"a": counts})
    counts[:] = 7.0
    problem = lk.Problem("a", TABLE, prior)
    assert problem.pseudo.tolist() == [1.0, 1.0]


def test_a_fit_made_on_a_pool_can_be_pickled():
    with ThreadPoolExecutor(2) as pool:
        fit = lk.fit("h[2] -> *", TABLE, seed=np.int64(3), restarts=2, executor=pool)
    again = pickle.loads(pickle.dumps(fit))
    assert again.objective == fit.objective
    assert again.network == fit.network
    assert again.posterior == fit.posterior
    assert fit.network.about["seed"] == 3


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_an_interrupt_before_the_first_step_still_gives_a_finite_point(method):
    stop = StopFlag()
    stop.set()
    fit = lk.fit("h[2] -> *", TABLE, method=method, seed=0, restarts=1, stop=stop)
    assert fit.status is Status.INTERRUPTED
    assert np.isfinite(fit.objective)
    assert len(fit.trace) == 1


def test_an_interrupt_within_the_first_pass_over_many_rows_leaves_nothing():
    codes = np.stack(np.divmod(np.arange(3000), 64), axis=1)
    stop = StopFlag()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        lk.fit("h[4096] -> *", lk.Table.from_array(codes, ["a", "b"]), restarts=2, stop=stop, keep_interrupted=True)


def test_data_options_are_sent_to_the_table():
    with pytest.raises(OptionError, match="belongs to the table"):
        lk.fit("h[2] -> *", TABLE, weights="c")
    with pytest.raises(OptionError, match="at most"):
        FitOptions(max_iter=10**12)


def test_model_and_data_in_the_wrong_order():
    with pytest.raises(OptionError, match="give the model first"):
        lk.fit("h[2] -> *", "h[2] -> *")
    with pytest.raises(OptionError, match="the model is a Table"):
        lk.fit(TABLE, "h[2] -> *")


def test_hidden_states_beside_a_structure():
    dag = lk.Dag.parse("h -> a b c")
    assert lk.fit(dag, TABLE, hidden={"h": 2}, seed=0, restarts=1).objective == pytest.approx(
        lk.fit("h[2] -> a b c", TABLE, seed=0, restarts=1).objective
    )
    with pytest.raises(StructureError, match="say it once"):
        lk.fit(lk.Dag.parse("h[2] -> a b c"), TABLE, hidden={"h": 3})


def test_an_exact_value_is_not_corrected_for_dimension():
    rows = [(0, None, None), (1, None, None), (1, None, None)]
    table = lk.Table.from_rows(rows, columns=["A", "B", "C"], levels={c: [0, 1] for c in "ABC"})
    evidence = lk.score("A; h[3] -> B C", table, "cs", dimension="effective")
    assert evidence.kind == "exact"
    assert evidence.log_z == pytest.approx(lk.score("A; h[3] -> B C", table, "exact").log_z, abs=1e-12)


def test_exact_refuses_many_states_without_filling_memory():
    generator = np.random.default_rng(0)
    table = lk.Table.from_array(generator.integers(0, 2, (300, 6)))
    with pytest.raises(lk.LurkingError, match="count tables after"):
        lk.score("h[16] -> *", table, "exact", budget=20_000)


def test_statistics_of_a_wide_table_are_finite_or_absent():
    generator = np.random.default_rng(0)
    table = lk.Table.from_array(generator.integers(0, 40, (50, 220)))  # more cells than a float can count
    statistics = lk.fit("h[2] -> *", table, seed=0, restarts=1, max_iter=5).statistics
    assert np.isfinite(statistics.g_squared)
    assert statistics.p_value is None
    assert "over 1e9 degrees of freedom" in str(statistics)


def test_fit_of_unidentified_structure_prints_a_note():
    lines = str(lk.fit("class[3] -> *", lk.stouffer_toby(), restarts=1)).splitlines()
    assert "14 parameters, 13 effective" in lines[0]
    assert any(line.startswith("note: 14 parameters but effective dimension 13;") for line in lines)
    assert "not identified" not in str(lk.fit("class[2] -> *", lk.stouffer_toby(), restarts=1))
