"""Moves between structures: what may be done is decided as if every candidate were tried out."""

import networkx as nx
import numpy as np
import pytest

from lurking.graph.dag import Dag
from lurking.graph.moves import ArcSet, Move, MoveKind, arc_matrix


def graph_of(arcs):
    return nx.from_numpy_array(arcs, create_using=nx.DiGraph)


def is_acyclic(arcs):
    return nx.is_directed_acyclic_graph(graph_of(arcs))


def reaches_of(arcs):
    graph = graph_of(arcs)
    matrix = np.eye(len(arcs), dtype=bool)
    for x in graph:
        matrix[x, list(nx.descendants(graph, x))] = True
    return matrix


def legal(moves):
    additions = moves.can_add()
    xs, ys = np.nonzero(moves.arcs)
    reversals = moves.can_reverse(xs, ys)
    choices = [("add", x, y) for x, y in np.argwhere(additions)]
    choices += [("delete", x, y) for x, y in zip(xs, ys, strict=True)]
    return choices + [("reverse", x, y) for x, y, can in zip(xs, ys, reversals, strict=True) if can]


def test_a_long_random_walk():
    rng = np.random.default_rng(0)
    moves = ArcSet(9)
    for step in range(600):
        choices = legal(moves)
        growing = [choice for choice in choices if choice[0] != "delete"]
        pool = growing if growing and (step // 40) % 2 == 0 else choices
        kind, x, y = pool[rng.integers(len(pool))]
        getattr(moves, kind)(int(x), int(y))
        assert np.array_equal(moves.reaches, reaches_of(moves.arcs))
        if step % 20 == 0:
            check_legal(moves)


def check_legal(moves):
    """Every arc is tried out in every way."""
    additions = moves.can_add()
    xs, ys = np.nonzero(moves.arcs)
    reversals = dict(zip(zip(xs.tolist(), ys.tolist(), strict=True), moves.can_reverse(xs, ys), strict=True))
    for x in range(9):
        for y in range(9):
            trial = moves.arcs.copy()
            trial[x, y] = True
            assert additions[x, y] == (x != y and not moves.arcs[x, y] and is_acyclic(trial))
            if moves.arcs[x, y]:
                trial[x, y], trial[y, x] = False, True
                assert reversals[x, y] == is_acyclic(trial)


def test_from_matrix_copy_and_covered():
    arcs = np.zeros((4, 4), bool)
    arcs[0, 1] = arcs[0, 2] = arcs[1, 2] = arcs[3, 2] = True
    moves = ArcSet.from_matrix(arcs)
    other = moves.copy()
    other.delete(0, 1)
    assert np.array_equal(moves.reaches, reaches_of(arcs))
    assert moves.arcs[0, 1]
    assert moves.is_covered(0, 1)
    assert not moves.is_covered(1, 2)
    assert moves.parents(2) == (0, 1, 3)
    with pytest.raises(AssertionError, match="cycle"):
        moves.add(2, 0)


def test_a_move_in_words():
    assert str(Move(MoveKind.REVERSE, "a", "b")) == "reverse a -> b"


def test_the_matrix_of_arcs_follows_the_names_given():
    dag = Dag.parse("h[2] -> a b; a -> c")
    matrix = arc_matrix(dag, ("c", "b", "a", "h"))
    assert set(zip(*(axis.tolist() for axis in np.nonzero(matrix)), strict=True)) == {(3, 2), (3, 1), (2, 0)}
    assert np.argwhere(arc_matrix(dag, ("a", "c"))).tolist() == [[0, 1]]
