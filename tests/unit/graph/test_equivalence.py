"""Equivalence classes against all structures of four nodes, written out."""

import itertools

import numpy as np
import pytest

import lurking as lk
from lurking.errors import StructureError
from lurking.graph.equivalence import (
    Cpdag,
    are_equivalent,
    consistent_extension,
    cpdag,
    structural_hamming_distance,
    v_structures,
)
from lurking.graph.spaces import all_dags
from lurking.search.families import FamilyScores, score_of

NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def dags():
    return list(all_dags(NAMES))


@pytest.fixture(scope="module")
def classes(dags):
    """Return the classes by skeleton and v-structures, found from the definitions alone."""
    found = {}
    for dag in dags:
        edges = set(dag.edges)
        joined = {frozenset(edge) for edge in edges}
        meetings = {
            (frozenset((a, b)), c)
            for c in NAMES
            for a, b in itertools.combinations(NAMES, 2)
            if (a, c) in edges and (b, c) in edges and frozenset((a, b)) not in joined
        }
        found.setdefault((frozenset(joined), frozenset(meetings)), []).append(dag)
    return list(found.values())


def test_numbers_of_structures_and_classes(dags, classes):
    assert [len(list(all_dags(NAMES[:count]))) for count in (1, 2, 3)] == [1, 3, 25]
    assert len(dags) == len(set(dags)) == 543
    assert len(classes) == 185


def test_the_cpdag_has_the_arcs_that_all_members_share(classes):
    for members in classes:
        shared = frozenset.intersection(*(frozenset(dag.edges) for dag in members))
        lines = frozenset(frozenset(edge) for edge in members[0].edges if edge not in shared)
        expected = Cpdag(NAMES, shared, lines)
        assert all(cpdag(dag) == expected for dag in members)
        assert expected.skeleton == frozenset(map(frozenset, members[0].edges))


@pytest.mark.parametrize("count", [1, 2])
def test_known_arcs_leave_what_the_members_with_them_share(classes, count):
    for members in classes:
        for dag in members[:6]:
            for known in itertools.combinations(dag.edges, count):
                left = [other for other in members if set(known) <= set(other.edges)]
                shared = frozenset.intersection(*(frozenset(other.edges) for other in left))
                assert cpdag(dag, known).directed == shared
                assert cpdag(dag, known).skeleton == frozenset(map(frozenset, dag.edges))
    with pytest.raises(StructureError, match="not in the structure"):
        cpdag(lk.Dag.parse("a -> b"), [("b", "a")])


def test_equivalence_is_membership(classes):
    firsts = [members[0] for members in classes]
    for members in classes:
        assert all(are_equivalent(members[0], dag) for dag in members)
        assert all(v_structures(members[0]) == v_structures(dag) for dag in members)
    assert sum(are_equivalent(a, b) for a in firsts for b in firsts) == len(firsts)


def test_extensions_lie_in_their_class(classes):
    for members in classes:
        assert consistent_extension(cpdag(members[0])) in members


def test_distances(classes):
    rng = np.random.default_rng(0)
    forms = [cpdag(members[0]) for members in classes]
    for i, j in rng.integers(0, len(forms), (60, 2)):
        expected = 0
        for a, b in itertools.combinations(NAMES, 2):
            states = [
                ((a, b) in form.directed, (b, a) in form.directed, frozenset((a, b)) in form.undirected)
                for form in (forms[i], forms[j])
            ]
            expected += states[0] != states[1]
        assert structural_hamming_distance(forms[i], forms[j]) == expected
        assert structural_hamming_distance(classes[i][-1], classes[j][0]) == expected
    assert all(structural_hamming_distance(members[0], members[-1]) == 0 for members in classes)


@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_equivalent_structures_score_the_same(classes, score):
    rows = np.random.default_rng(1).integers(0, [2, 3, 2, 4], (80, 4))
    rows[:, 1] = (rows[:, 0] + rows[:, 1] // 2) % 3
    scorer = FamilyScores(lk.Table.from_array(rows, columns=list(NAMES)), score)
    values = []
    for members in classes:
        scores = [score_of(scorer, dag) for dag in members]
        assert np.ptp(scores) < 1e-9
        values.append(scores[0])
    # A symmetric prior is not score equivalent, so the test above could fail.
    other = FamilyScores(lk.Table.from_array(rows, columns=list(NAMES)), "bd")
    assert max(np.ptp([score_of(other, dag) for dag in members]) for members in classes) > 0.1
    assert len(np.unique(np.round(values, 6))) > 150


def test_larger_random_structures():
    """Reversing a covered arc stays in the class; the graph of the class does not change."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        names = [f"x{k}" for k in range(8)]
        order = rng.permutation(8)
        arcs = [(names[order[a]], names[order[b]]) for a in range(8) for b in range(a + 1, 8) if rng.random() < 0.35]
        dag = lk.Dag(names, arcs)
        form = cpdag(dag)
        assert are_equivalent(dag, consistent_extension(form))
        for x, y in dag.edges:
            if set(dag.parents(y)) == {*dag.parents(x), x}:
                assert frozenset((x, y)) in form.undirected
                other = lk.Dag(names, [(y, x) if edge == (x, y) else edge for edge in dag.edges])
                assert cpdag(other) == form


def test_text_and_refusals():
    assert str(cpdag(lk.Dag.parse("a b -> c -> d; e"))) == "e; a -> c; b -> c; c -> d"
    assert str(cpdag(lk.Dag.parse("a -> b"))) == "a -- b"
    assert Cpdag.from_edges(["a", "b"], undirected=[("b", "a")]) == cpdag(lk.Dag.parse("a -> b"))
    for edges in ({"directed": [("a", "x")]}, {"directed": [("a", "b")], "undirected": [("b", "a")]}):
        with pytest.raises(StructureError):
            Cpdag.from_edges(["a", "b"], **edges)
    square = Cpdag.from_edges(NAMES, undirected=[("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    with pytest.raises(StructureError, match="no CPDAG"):
        consistent_extension(square)
    with pytest.raises(StructureError, match=r"differ in the nodes \['c'\]"):
        are_equivalent(lk.Dag.parse("a -> b"), lk.Dag.parse("a -> b; c"))
