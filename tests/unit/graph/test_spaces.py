"""Enumeration of bipartite structures."""

import pytest

from lurking.errors import StructureError
from lurking.graph.dag import Dag
from lurking.graph.spaces import bipartite, bipartite_size


def links(dag):
    return [[int(name in dag.parents(child)) for child in dag.observed] for name in dag.hidden]


@pytest.mark.parametrize(
    ("n_hidden", "counts"), [(0, [1, 1, 1, 1]), (1, [2, 4, 8, 16]), (2, [3, 10, 36, 136]), (3, [4, 20, 120, 816])]
)
def test_counts(n_hidden, counts):
    for n_observed, count in enumerate(counts, start=1):
        observed = [f"y{number}" for number in range(n_observed)]
        assert len(set(bipartite(n_hidden, observed))) == count
        assert bipartite_size(n_hidden, n_observed) == count


def test_order_of_the_class_of_beal_and_ghahramani():
    structures = list(bipartite(2, ["y1", "y2", "y3", "y4"]))
    assert links(structures[0]) == [[0, 0, 0, 0], [0, 0, 0, 0]]
    assert links(structures[1]) == [[0, 0, 0, 0], [0, 0, 0, 1]]
    assert links(structures[16]) == [[0, 0, 0, 1], [0, 0, 0, 1]]
    assert links(structures[98]) == [[0, 1, 1, 1], [1, 1, 1, 0]]
    assert links(structures[135]) == [[1, 1, 1, 1], [1, 1, 1, 1]]
    assert [links(dag) for dag in structures] == sorted(links(dag) for dag in structures)


def test_nodes_parents_and_cardinalities():
    last = list(bipartite(2, ["b", "a"], cardinality=3))[-1]
    assert last == Dag(["s1", "s2", "b", "a"], [("s1", "b"), ("s2", "b"), ("s1", "a"), ("s2", "a")], {"s1": 3, "s2": 3})


def test_only_equal_cardinalities_are_exchanged():
    hidden = {"a": 2, "b": 3, "c": 2}
    structures = list(bipartite(hidden, ["y1", "y2"]))
    assert len(structures) == bipartite_size(hidden, 2) == 4 * 10
    assert len({dag.canonical() for dag in structures}) == 40
    for dag in structures:
        assert dict(dag.hidden) == hidden
        rows = links(dag)
        assert rows[0] <= rows[2]


@pytest.mark.parametrize(
    ("hidden", "observed", "message"),
    [
        (2, ["s1"], "node 's1' is listed twice"),
        ({"a": 0}, ["y"], "cardinality 0"),
        (-1, ["y"], "hidden=-1 is neither a mapping nor a number of nodes"),
        (True, ["y"], "hidden=True is neither a mapping nor a number of nodes"),
        ("a", ["y"], "hidden='a' is neither a mapping nor a number of nodes"),
        (0, [], "has no nodes"),
    ],
)
def test_errors_come_at_the_call(hidden, observed, message):
    with pytest.raises(StructureError, match=message):
        bipartite(hidden, observed)
