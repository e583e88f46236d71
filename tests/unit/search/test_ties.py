"""Names of levels and the order of rows must not decide where a search goes."""

import numpy as np
import pytest

import lurking as lk


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    columns = [rng.integers(0, 3, 500)]
    for _ in range(7):
        copied = columns[rng.integers(len(columns))]
        columns.append(np.where(rng.random(500) < 0.7, copied, rng.integers(0, 3, 500)))
    return np.stack(columns, axis=1)


def test_other_names_of_levels_give_the_same_moves(rows):
    names = [f"x{k}" for k in range(8)]
    first = lk.search(lk.Table.from_array(rows, columns=names), restarts=5)
    turned = lk.search(lk.Table.from_array(2 - rows[::-1], columns=names), restarts=5)
    assert [step.move for step in first.history] == [step.move for step in turned.history]
    assert first.best == turned.best
    assert first.score == pytest.approx(turned.score, rel=1e-12)


def test_weights_count_rows(rows):
    names = [f"x{k}" for k in range(8)]
    repeated = lk.search(lk.Table.from_array(np.repeat(rows[:100], 3, axis=0), columns=names), method="greedy")
    weighted = lk.search(lk.Table.from_array(rows[:100], columns=names, weights=np.full(100, 3.0)), method="greedy")
    assert repeated.best == weighted.best
    assert repeated.score == pytest.approx(weighted.score, rel=1e-12)
