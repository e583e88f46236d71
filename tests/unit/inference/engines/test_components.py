"""How the unobserved variables of a row fall apart."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lurking.graph.dag import Dag
from lurking.inference.engines.components import Component, Splitter, bits
from lurking.models.layout import Layout


def splitter(text, prune, **cards):
    dag = Dag.parse(text)
    return Splitter(Layout(dag, {name: cards.get(name, 2) for name in dag.nodes}), prune), dag


def mask(dag, *names):
    return sum(1 << dag.nodes.index(name) for name in names)


def test_bits_are_listed_upwards():
    assert list(bits(0b101001)) == [0, 3, 5]
    assert list(bits(0)) == []


def test_an_observed_node_between_cuts_a_chain_in_two():
    split, dag = splitter("a -> b -> c -> d -> e", False)
    result = split.split(mask(dag, "a", "b", "d"))
    assert result.complete == ()
    assert result.components == (Component((0, 1), (0, 1, 2)), Component((3,), (3, 4)))


def test_a_common_observed_child_joins_its_parents():
    split, dag = splitter("a -> c; b -> c", False)
    assert split.split(mask(dag, "a", "b")).components == (Component((0, 2), (0, 1, 2)),)
    assert dag.nodes == ("a", "c", "b")


def test_observed_parents_do_not_join():
    split, dag = splitter("p -> a; p -> b", False)
    result = split.split(mask(dag, "a", "b"))
    assert result.complete == (0,)
    assert [component.variables for component in result.components] == [(1,), (2,)]


def test_pruning_leaves_out_what_has_no_observed_descendant():
    split, dag = splitter("a -> b -> c; b -> d", True)
    result = split.split(mask(dag, "a", "c", "d"))
    assert result.complete == ()
    assert result.components == (Component((0,), (0, 1)),)
    everything = split.split(mask(dag, "a", "b", "c", "d"))
    assert everything.complete == ()
    assert everything.components == ()


def test_wanted_nodes_and_their_ancestors_stay():
    dag = Dag.parse("a -> b -> c; b -> d")
    split = Splitter(Layout(dag, dict.fromkeys(dag.nodes, 2)), True, [dag.nodes.index("c")])
    everything = mask(dag, "a", "b", "c", "d")
    assert split.kept(everything) == mask(dag, "a", "b", "c")


@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
@settings(max_examples=60)
@given(data=st.data())
def test_components_are_those_of_the_graph_of_shared_families(small_problems, prune, data):
    small = data.draw(small_problems())
    names = small.dag.nodes
    unobserved = data.draw(st.sets(st.sampled_from(names)))
    result = Splitter(small.layout, prune).split(mask(small.dag, *unobserved))
    kept = set(names)
    if prune:
        seen = set(names) - unobserved
        kept = {name for name in names if name in seen or seen & set(small.dag.descendants(name))}
    graph = nx.Graph()
    graph.add_nodes_from(kept & unobserved)
    complete = []
    for j, name in enumerate(names):
        if name not in kept:
            continue
        free = [v for v in (name, *small.dag.parents(name)) if v in unobserved]
        if not free:
            complete.append(j)
        graph.add_edges_from((free[0], other) for other in free[1:])
    expected = {frozenset(part) for part in nx.connected_components(graph)}
    assert result.complete == tuple(complete)
    assert {frozenset(names[v] for v in part.variables) for part in result.components} == expected
    families = [j for part in result.components for j in part.families]
    assert sorted([*families, *complete]) == [j for j, name in enumerate(names) if name in kept]
    for part in result.components:
        for j in part.families:
            assert {names[v] for v in part.variables} & {names[j], *small.dag.parents(names[j])}
