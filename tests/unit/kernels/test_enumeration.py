"""The compiled E-step kernel itself: every width it has a loop for, and what it must not touch."""

import numpy as np
import pytest

import lurking as lk
from lurking.graph.dag import Dag
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.rows import Rows
from lurking.kernels.cpu.enumeration import CHUNK, expect, expect_into, posterior_of_group
from lurking.models.layout import Layout


def mixture(classes, rows=12, seed=0):
    dag = Dag(["s", "a", "b", "c"], [("s", "a"), ("a", "b"), ("s", "b"), ("b", "c")], {"s": classes})
    layout = Layout(dag, {"s": classes, "a": 2, "b": 3, "c": 2})
    rng = np.random.default_rng(seed)
    codes = np.column_stack([np.full(rows, -1), *(rng.integers(0, r, rows) for r in (2, 3, 2))]).astype(np.int32)
    return layout, codes, rng.gamma(2.0, size=rows)


@pytest.mark.parametrize("shift", [-1.0, 0.0, 3.0, -200.0], ids=["small", "near one", "positive", "underflow"])
@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 8])
def test_every_width_and_domain(classes, shift):
    """1, 2, 4 and other numbers of joint states have loops of their own; so have underflow and positive potentials."""
    layout, codes, weights = mixture(classes)
    potentials = np.random.default_rng(1).normal(shift, 1.0, layout.size)
    if shift == 0.0:
        potentials = -np.abs(potentials)
    fast = EnumerationEngine(layout, Rows.of_codes(codes, weights), False)
    slow = ReferenceEngine(layout, Rows.of_codes(codes, weights), False)
    counts, log_z = fast.expect(potentials)
    expected, expected_log_z = slow.expect(potentials)
    assert log_z == pytest.approx(expected_log_z, rel=1e-12)
    assert counts == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_the_posterior_of_a_group_is_normalised_and_leaves_its_input_alone():
    layout, codes, weights = mixture(3)
    engine = EnumerationEngine(layout, Rows.of_codes(codes, weights), False)
    potentials = np.random.default_rng(2).normal(0.0, 2.0, len(engine.active))
    before = potentials.copy()
    masses, log_z = posterior_of_group(engine.program, potentials, 0)
    assert masses.sum(axis=1) == pytest.approx(1.0, rel=1e-14)
    assert masses.shape == (len(log_z), 3)
    expect(engine.program, potentials)
    assert np.array_equal(potentials, before)


def test_rows_without_weight_count_for_nothing_even_when_impossible():
    layout, codes, weights = mixture(2)
    potentials = np.log(np.random.default_rng(3).uniform(0.1, 0.9, layout.size))
    layout.table(potentials, "b")[:, 0] = -np.inf
    weights = np.where(codes[:, 2] == 0, 0.0, weights)
    assert (weights == 0.0).any()
    counts, log_z = EnumerationEngine(layout, Rows.of_codes(codes, weights), False).expect(potentials)
    expected, expected_log_z = ReferenceEngine(layout, Rows.of_codes(codes, weights), False).expect(potentials)
    assert log_z == pytest.approx(expected_log_z, rel=1e-12)
    assert counts == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("exponent", [-249.9, -250.1, -307.0, -309.0, -316.0, -323.0, -330.0])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_nearly_underflowing_rows_keep_their_digits(classes, exponent):
    """Numbers below 1e-308 are stored with fewer digits, so such rows belong to the log domain too."""
    layout, codes, weights = mixture(classes)
    rng = np.random.default_rng(4)
    potentials = rng.normal(0.0, 0.3, layout.size) - 1.0
    # Three families touch the hidden node; this puts the joint states of every row around 10^exponent.
    potentials += exponent * np.log(10.0) / 3 - potentials.mean()
    fast = EnumerationEngine(layout, Rows.of_codes(codes, weights), False)
    slow = ReferenceEngine(layout, Rows.of_codes(codes, weights), False)
    counts, log_z = fast.expect(potentials)
    expected, expected_log_z = slow.expect(potentials)
    assert log_z == pytest.approx(expected_log_z, rel=1e-13)
    assert counts == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_neutral_factors_write_nowhere():
    """A pruned empty cell is a factor of 1 without a potential: nothing beyond the counts may be touched."""
    layout, codes, weights = mixture(2)
    codes[::2, 3] = -1
    codes[::3, 2] = -1
    codes[::3, 3] = -1
    engine = EnumerationEngine(layout, Rows.of_codes(codes, weights), True)
    size, cells = len(engine.active), len(engine.program.gather)
    assert (engine.program.gather == size).any()
    potentials = np.random.default_rng(5).normal(-1.0, 0.5, layout.size)
    room = np.full(size + 8, -7.0)
    scratch, stop = (np.empty(cells), np.empty(cells)), np.zeros(1, np.int64)
    log_z = expect_into(engine.program, potentials[engine.active], room[:size], scratch, stop)
    assert (room[size:] == -7.0).all()
    counts, expected_log_z = engine.expect_active(potentials[engine.active])
    assert np.array_equal(room[:size], counts)
    assert log_z == expected_log_z


def test_totals_above_one_do_not_overflow():
    """Potentials of 0 make every row's total the number of joint states; a product over thousands of rows is large."""
    rows = np.random.default_rng(0).integers(0, 2, (3000, 14))
    for states in (2, 3, 4):
        problem = lk.Problem(f"class[{states}] -> *", lk.Table.from_array(rows))
        log_z = problem.engine.expect(np.zeros(problem.layout.size))[1]
        assert log_z == pytest.approx(3000 * np.log(states), rel=1e-12)


@pytest.mark.parametrize("states", [2, 3, 4, 5, 7, 8, 9])
def test_every_number_of_states_has_the_right_row_loop(states):
    """Rows of weight 1 share a logarithm; weighted rows have their own; quads have a rest of every length."""
    cards = {"h": states, "a": 3, "b": 2, "c": 50}
    layout = Layout(Dag.parse(f"h[{states}] -> a b c"), cards)
    generator = np.random.default_rng(states)
    seen = np.indices((3, 2, 50)).reshape(3, -1)
    codes = np.stack([np.full(300, -1), *seen], axis=1).astype(np.int32)
    weights = np.where(generator.random(300) < 0.5, 1.0, generator.random(300) * 3.0)
    phi = np.log(layout.normalise(generator.random(layout.size) + 0.01))
    fast, plain = (
        engine(layout, Rows.of_codes(codes, weights), False) for engine in (EnumerationEngine, ReferenceEngine)
    )
    counts, log_z = fast.expect(phi)
    expected_counts, expected_log_z = plain.expect(phi)
    assert log_z == pytest.approx(expected_log_z, rel=1e-12)
    assert counts == pytest.approx(expected_counts, rel=1e-11, abs=1e-11)


def large(rows):
    """Return a component of 4096 states whose pass over 3000 rows is several chunks, some rows underflowing."""
    layout = Layout(Dag.parse("h[4096] -> a b"), {"h": 4096, "a": 64, "b": 64})
    codes = np.full((3000, 3), -1, np.int32)
    codes[:, 1], codes[:, 2] = np.divmod(np.random.default_rng(0).permutation(4096)[:3000], 64)
    weights = np.where(np.arange(3000) % 5 == 0, 2.5, 1.0)
    return EnumerationEngine(layout, Rows.of_codes(codes[rows], weights[rows]), True)


@pytest.fixture(scope="module")
def far_apart():
    """Return potentials of that component with which rows of the first level of a underflow."""
    layout = large(slice(0, 1)).layout
    theta = np.random.default_rng(1).random(layout.size) + 0.1
    theta[layout.offsets[1] :: 64][:4096] = 1e-260
    return np.log(layout.normalise(theta))


def test_rows_taken_in_chunks_are_the_rows(far_apart):
    whole, parts = large(slice(None)), [large(slice(0, 1100)), large(slice(1100, None))]
    assert 3000 * 4096 * 2 > CHUNK > 1100 * 4096 * 3
    counts, log_z = whole.expect(far_apart)
    expected = [part.expect(far_apart) for part in parts]
    assert log_z == pytest.approx(sum(own for _, own in expected), rel=1e-12)
    assert counts == pytest.approx(sum(own for own, _ in expected), rel=1e-9, abs=1e-12)
    assert counts.sum() == pytest.approx(3 * whole.rows.weights.sum(), rel=1e-12)


def test_a_long_pass_over_the_rows_can_be_stopped_and_a_short_one_is_finished(far_apart):
    stop = np.ones(1, np.int64)
    for rows, is_long in ((slice(None), True), (slice(0, 1000), False)):
        engine = large(rows)
        program, cells = engine.program, engine.program.joined.n_cells
        potentials, scratch = far_apart[engine.active], (np.empty(cells), np.empty(cells))
        log_z = expect_into(program, potentials, np.empty(len(potentials)), scratch, stop)
        assert np.isnan(log_z) == is_long
        if not is_long:
            assert log_z == engine.expect_active(potentials)[1]
