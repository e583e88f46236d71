import math
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lurking.graph.triangulation import clique_tree

SCOPES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), min_size=1, max_size=12)


def graph_of(scopes):
    graph = nx.Graph()
    for scope in scopes:
        graph.add_nodes_from(scope)
        graph.add_edges_from(combinations(scope, 2))
    return graph


@given(SCOPES, st.lists(st.integers(1, 5), min_size=10, max_size=10))
def test_every_scope_is_held_and_every_variable_makes_one_subtree(scopes, cards):
    tree = clique_tree(scopes, dict(enumerate(cards)))
    for scope in scopes:
        assert any(set(scope) <= set(clique) for clique in tree.cliques)
    for clique, parent in enumerate(tree.parent):
        assert parent < clique
    for v in {v for scope in scopes for v in scope}:
        holding = [c for c, clique in enumerate(tree.cliques) if v in clique]
        tops = [c for c in holding if tree.parent[c] < 0 or v not in tree.cliques[tree.parent[c]]]
        assert len(tops) == 1


@given(SCOPES)
def test_cliques_are_maximal_cliques_of_a_chordal_graph_and_parts_are_its_components(scopes):
    tree = clique_tree(scopes, dict.fromkeys(range(10), 2))
    filled = graph_of(tree.cliques)
    assert nx.is_chordal(filled)
    assert {frozenset(c) for c in nx.find_cliques(filled)} == {frozenset(c) for c in tree.cliques}
    parts = [{v for c in part for v in tree.cliques[c]} for part in tree.parts()]
    assert sorted(map(sorted, parts)) == sorted(map(sorted, nx.connected_components(graph_of(scopes))))


@pytest.mark.parametrize("length", [4, 9, 30])
def test_a_cycle_needs_cliques_of_three_and_a_path_of_two(length):
    sizes = dict.fromkeys(range(length), 3)
    path = [(i, i + 1) for i in range(length - 1)]
    assert {len(c) for c in clique_tree(path, sizes).cliques} == {2}
    assert {len(c) for c in clique_tree([*path, (0, length - 1)], sizes).cliques} == {3}


def test_a_chord_is_put_where_states_are_few():
    # A square 0-1-2-3: the chord is either 0-2 (many states) or 1-3 (few).
    square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    tree = clique_tree(square, {0: 50, 1: 2, 2: 50, 3: 2})
    assert sum(math.prod({0: 50, 1: 2, 2: 50, 3: 2}[v] for v in c) for c in tree.cliques) == 2 * 50 * 2 * 2
    assert tree.separator(1) == (1, 3)


def test_a_tree_without_variables_is_empty():
    assert clique_tree([], {}) == ((), ())
