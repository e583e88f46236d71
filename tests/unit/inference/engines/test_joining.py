"""Joined factors give what plain ones give; what is joined is what is cheap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lurking as lk
from lurking.inference.engines import enumeration
from lurking.inference.engines.components import Splitter, openings
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.joining import NOT_JOINED, Choices, join
from lurking.inference.engines.reference import ReferenceEngine


def wide_table(rows, columns, levels, empty, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, levels, (rows, columns)).astype(float)
    codes[rng.random(codes.shape) < empty] = np.nan
    names = [f"x{i}" for i in range(columns)]
    weights = rng.choice([1.0, 1.0, 2.5], rows)
    return lk.Table.from_array(codes, names, levels=dict.fromkeys(names, range(levels)), weights=weights)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([2, 3, 5]),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from(["class[2] -> *", "class[3] -> *", "s[2] -> *; t[2] -> x0 x1 x2 x3"]),
    st.sampled_from([-1.0, -120.0, 0.5]),
)
def test_joined_factors_change_nothing(seed, levels, empty, model, mean):
    table = wide_table(60, 9, levels, empty, seed)
    problem = lk.Problem(model, table)
    phi = np.random.default_rng(seed).normal(mean, 1.0, problem.layout.size)
    args = (problem.layout, problem.rows, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "JOIN_FROM", 10**9)
        plain = EnumerationEngine(*args)
        patch.setattr(enumeration, "JOIN_FROM", 1)
        joined = EnumerationEngine(*args)
    assert plain.program.joined.n_cells == len(plain.program.gather)
    slow = ReferenceEngine(*args)
    for engine in (plain, joined):
        counts, log_z = engine.expect(phi)
        expected, expected_log_z = slow.expect(phi)
        assert log_z == pytest.approx(expected_log_z, rel=1e-11)
        assert counts == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_eight_binary_columns_are_read_at_once():
    problem = lk.Problem("class[4] -> *", wide_table(5000, 16, 2, 0.0, 0))
    program = problem.engine.program
    assert program.n_factors.tolist() == [16]
    assert program.joined.width.tolist() == [2]
    assert len(program.joined.part_begin) - 1 == 512
    assert program.joined.n_cells == len(program.gather) + 512 * 4


def test_sixty_four_classes_and_three_hundred_columns():
    """Products over so many columns underflow in most rows, with and without joining; logarithms do not."""
    rng = np.random.default_rng(0)
    rows, columns, classes = 300, 300, 64
    table = lk.Table.from_array(rng.integers(0, 3, (rows, columns)), levels={f"x{i}": range(3) for i in range(columns)})
    problem = lk.Problem(f"class[{classes}] -> *", table)
    assert problem.engine.program.joined.width[0] > 0
    theta = problem.layout.normalise(rng.random(problem.layout.size) ** 8 + 1e-9)
    tables = problem.layout.split(theta)
    scores = np.log(tables["class"][0])[None, :] + sum(
        np.log(tables[name])[:, table[name].codes].T for name in table.columns
    )
    tops = scores.max(axis=1)
    masses = np.exp(scores - tops[:, None])
    assert tops.min() < -745.0  # below the smallest double
    expected = float((tops + np.log(masses.sum(axis=1))).sum())
    counts, log_z = problem.engine.expect(np.log(theta))
    assert log_z == pytest.approx(expected, rel=1e-12)
    posterior = masses / masses.sum(axis=1, keepdims=True)
    assert problem.layout.table(counts, "class")[0] == pytest.approx(posterior.sum(axis=0), rel=1e-9, abs=1e-12)
    by_level = np.stack([posterior[table["x7"].codes == k].sum(axis=0) for k in range(3)], axis=1)
    assert problem.layout.table(counts, "x7") == pytest.approx(by_level, rel=1e-9, abs=1e-12)


def test_a_few_rows_are_left_plain():
    codes = [np.arange(20) % 3 for _ in range(4)]
    cells = [np.arange(3) + 3 * f for f in range(4)]
    assert join(Choices(codes, cells), 2) is NOT_JOINED


def test_large_factors_stay_alone():
    rng = np.random.default_rng(0)
    sizes = [2, 2, 300, 2, 2]
    codes = [rng.integers(0, size, 10_000) for size in sizes]
    cells = [1000 * f + np.arange(size) for f, size in enumerate(sizes)]
    joined = join(Choices(codes, cells), 4)
    assert joined.rows.shape == (10_000, 3)
    assert len(joined.parts) == 4 + 300 + 4
    for row in (0, 77, 9_999):
        parts = np.concatenate([joined.parts[k] for k in joined.rows[row]])
        assert parts.tolist() == [cells[f][codes[f][row]] for f in range(5)]


def test_empty_leaf_cells_do_not_multiply_the_work_of_compiling():
    problem = lk.Problem("class[2] -> *", wide_table(400, 12, 2, 0.3, 1))
    opened, kept = openings(problem.layout, problem.rows.codes, Splitter(problem.layout, True))
    assert len(opened) == 1
    assert kept is not None
    assert kept.sum() == len(problem.rows.codes) + (problem.rows.codes >= 0).sum()


def test_a_cell_that_links_two_open_variables_tells_rows_apart():
    table = lk.Table.from_rows([(0, 0, 0), (1, 1, None)], columns=["a", "b", "c"], levels=dict.fromkeys("abc", (0, 1)))
    problem = lk.Problem("s[2] -> a c; t[2] -> b c", table)
    splitter = Splitter(problem.layout, True)
    opened, _ = openings(problem.layout, problem.rows.codes, splitter)
    components = [len(splitter.split(free, keep).components) for free, keep, _ in opened]
    assert sorted(components) == [1, 2]
