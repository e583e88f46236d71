"""The flat layout: order, shapes, row sums."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import StructureError
from lurking.models.layout import Layout


@pytest.fixture
def layout():
    dag = lk.Dag.from_edges([("b", "c"), ("a", "c"), ("a", "b")], nodes=["a", "b", "c"])
    return Layout(dag, {"a": 2, "b": 3, "c": 2})


def test_sizes(layout):
    assert layout.configurations == (1, 2, 6)
    assert layout.offsets == (0, 2, 8)
    assert layout.size == 20
    assert layout.family_dimensions == (1, 2 * 2, 6 * 1)
    assert layout.dimension == layout.blocks.dimension == 1 + 2 * 2 + 6 * 1


def test_first_parent_is_slowest(layout):
    flat = np.arange(20.0)
    table = layout.table(flat, "c").reshape(3, 2, 2)
    for b in range(3):
        for a in range(2):
            for c in range(2):
                assert table[b, a, c] == 8 + (b * 2 + a) * 2 + c
                strides = layout.strides[2]
                assert table[b, a, c] == 8 + strides[1] * b + strides[0] * a + strides[2] * c


def test_rows(layout):
    assert layout.row_start.tolist() == [0, 2, 5, 8, 10, 12, 14, 16, 18, 20]
    assert layout.row_sums(np.ones(20)).tolist() == [2, 3, 3, 2, 2, 2, 2, 2, 2]
    normal = layout.normalise(np.arange(1.0, 21.0))
    assert layout.row_sums(normal) == pytest.approx(np.ones(9), abs=1e-15)
    assert normal[2:5] == pytest.approx(np.asarray([3, 4, 5]) / 12, abs=1e-15)


def test_split_and_join_are_inverse(layout):
    flat = np.random.default_rng(0).random(20)
    assert np.array_equal(layout.join(layout.split(flat)), flat)
    layout.split(flat)["a"][0, 0] = 5.0
    assert flat[0] < 1.0


def test_a_root_may_be_given_as_one_row(layout):
    tables = layout.split(np.arange(20.0))
    assert np.array_equal(layout.join({**tables, "a": [0.0, 1.0]}), np.arange(20.0))


def test_join_refuses_wrong_names_and_shapes(layout):
    tables = layout.split(np.arange(20.0))
    with pytest.raises(StructureError, match=r"missing \['b'\]"):
        layout.join({name: table for name, table in tables.items() if name != "b"})
    with pytest.raises(StructureError, match=r"not in the structure \['z'\]"):
        layout.join({**tables, "z": [[1.0]]})
    with pytest.raises(StructureError, match=r"'c' has shape \(2, 6\); expected \(6, 2\)"):
        layout.join({**tables, "c": tables["c"].T})


def test_a_single_state_has_no_parameter():
    layout = Layout(lk.Dag.parse("h[1] -> a"), {"h": 1, "a": 4})
    assert layout.dimension == 3
    assert layout.size == 5
