"""Dense parts of a structure."""

import itertools

import numpy as np

import lurking as lk
from lurking.search.signatures import adjacency, bundles, dense_groups, is_semi_clique, semi_cliques

SIX = lk.Dag.parse("x1 x2 x3 -> y1 y2 y3; y1 -> y2 y3; y2 -> y3")


def test_every_semi_clique_has_members_joined_with_half_of_the_others():
    rng = np.random.default_rng(0)
    for _ in range(20):
        joined = np.triu(rng.random((9, 9)) < 0.4, 1)
        joined = joined | joined.T
        found = semi_cliques(joined)
        for members in found:
            inside = joined[np.ix_(members, members)].sum(axis=1)
            assert (inside >= (len(members) - 1) / 2).all()
        # Nothing found can grow by one: unless it is a seed, every larger set breaks the rule.
        largest = found[0] if found else ()
        others = [k for k in range(9) if k not in largest]
        assert not any(is_semi_clique(joined, tuple(sorted((*largest, k)))) for k in others) or not found


def test_all_triangles_are_there():
    joined = np.ones((5, 5), np.bool_) ^ np.eye(5, dtype=np.bool_)
    assert set(itertools.combinations(range(5), 3)) <= set(semi_cliques(joined))
    assert semi_cliques(joined)[0] == (0, 1, 2, 3, 4)


def test_a_chain_has_no_signature():
    assert dense_groups(lk.Dag.parse("a -> b -> c -> d -> e")) == []


def test_the_children_of_the_lecture_are_a_group():
    assert ("y1", "y2", "y3") in dense_groups(SIX)
    assert dense_groups(SIX)[0] == SIX.nodes


def test_high_fan_in_is_a_signature():
    assert ("a", "b", "c", "d") in dense_groups(lk.Dag.parse("a b c d; a b c -> d"))


def test_bundles_are_shared_parents_with_all_their_children():
    assert (("x1", "x2", "x3"), ("y1", "y2", "y3")) in bundles(SIX)


def test_adjacency_forgets_direction_and_other_nodes():
    joined = adjacency(lk.Dag.parse("h[2] -> a; b -> a"), ("a", "b"))
    assert joined.tolist() == [[False, True], [True, False]]
