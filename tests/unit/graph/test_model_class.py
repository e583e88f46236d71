"""Classes of structures that no data can tell apart, against all matchings of hidden variables."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from lurking.graph.dag import Dag
from lurking.graph.equivalence import are_equivalent
from lurking.graph.model_class import essential, model_class, without_idle_hidden
from lurking.graph.spaces import all_dags


@st.composite
def dags(draw):
    names = ["s0", "s1", "s2", "y0", "y1"]
    order = draw(st.permutations(names))
    pairs = [(order[low], order[high]) for low in range(len(order)) for high in range(low + 1, len(order))]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True))
    return Dag(names, edges, {name: draw(st.integers(2, 3)) for name in names[:3]})


def are_one_class(first, second):
    """Return True if some matching of the hidden variables makes the two Markov equivalent."""
    if len(first.hidden) != len(second.hidden):
        return False
    for names in itertools.permutations(first.hidden):
        new = dict(zip(second.hidden, names, strict=True))
        if all(first.hidden[new[name]] == states for name, states in second.hidden.items()) and are_equivalent(
            first, second.rename(new)
        ):
            return True
    return False


@settings(deadline=None, max_examples=300)
@given(dags(), st.permutations(["s0", "s1", "s2"]), dags())
def test_keys_are_equal_exactly_for_equivalent_structures(first, names, second):
    renamed = first.rename(dict(zip(("s0", "s1", "s2"), names, strict=True)))
    assert model_class(renamed) == model_class(first)
    expected = are_one_class(without_idle_hidden(first), without_idle_hidden(second))
    assert (model_class(first) == model_class(second)) == expected


def members(dag):
    """Return all equivalent structures: those that turns of covered edges lead to (Chickering 1995)."""
    found, waiting = {frozenset(dag.edges)}, [dag]
    while waiting:
        here = waiting.pop()
        for x, y in here.edges:
            if set(here.parents(y)) - {x} == set(here.parents(x)):
                edges = frozenset({*here.edges, (y, x)} - {(x, y)})
                if edges not in found:
                    found.add(edges)
                    waiting.append(Dag(here.nodes, sorted(edges), here.hidden))
    return [Dag(dag.nodes, sorted(edges), dag.hidden) for edges in found]


def fewest_hidden(dag):
    """Return the least number of hidden variables that any member, pruned, and any member of that one … has."""
    pruned = {without_idle_hidden(each) for each in members(dag)}
    smaller = [each for each in pruned if len(each.hidden) < len(dag.hidden)]
    return min((fewest_hidden(each) for each in smaller), default=len(dag.hidden))


@settings(deadline=None, max_examples=40)
@given(dags())
def test_essential_structures_have_the_fewest_hidden_variables_of_the_class(dag):
    assert len(essential(dag).hidden) == fewest_hidden(without_idle_hidden(dag))


def test_a_hidden_root_that_an_equivalent_structure_has_as_a_leaf_is_idle():
    root, leaf = Dag.parse("h[2] -> x; x -> y"), Dag.parse("x -> h[2]; x -> y")
    assert essential(root).hidden == essential(leaf).hidden == {}
    assert model_class(leaf) == model_class(Dag.parse("x -> y")) != model_class(root)
    sink = Dag.parse("h[2] -> a b c; a -> b c; b -> c")
    assert essential(sink).hidden == {}
    assert essential(Dag.parse("h[2] -> a b c; a -> b")).hidden == {"h": 2}


def test_all_structures_of_four_nodes_fall_into_their_equivalence_classes():
    assert len({model_class(dag) for dag in all_dags(list("abcd"))}) == 185
    # With one binary hidden variable in place of d, those in which it is barren are the 11 classes over a, b and c.
    keys = {model_class(dag.with_hidden({"d": 2})) for dag in all_dags(list("abcd"))}
    assert {model_class(dag) for dag in all_dags(list("abc"))} <= keys
    assert len({model_class(dag) for dag in all_dags(list("abc"))}) == 11


def test_a_hidden_root_and_a_hidden_child_of_one_item_are_one_class():
    one, other = Dag.parse("q2 -> h1[3] -> q1 q3 q7"), Dag.parse("q7 -> k[3]; k -> q3 q2 q1")
    root = Dag.parse("h[3] -> q1 q2 q3 q7")
    assert model_class(one) == model_class(other) == model_class(root)
    assert not one.same_structure(other)
    assert model_class(Dag.parse("h[2] -> q1 q2 q3 q7")) != model_class(root)
    # A second item with an arrow into the hidden variable makes a v-structure.
    assert model_class(Dag.parse("q2 q7 -> h[3] -> q1 q3")) != model_class(root)


def test_hidden_variables_that_add_nothing_are_dropped():
    plain = Dag.parse("a -> b")
    for text in ("a -> b -> h[2]", "h[1] -> a b; a -> b", "g[2] -> h[1]; h -> a; a -> b", "b -> a; a -> g[2] -> h[3]"):
        assert model_class(Dag.parse(text)) == model_class(plain)
    assert without_idle_hidden(plain) is plain
    assert without_idle_hidden(Dag.parse("g[2] -> h[1] a; h -> b")) == Dag.parse("g[2] -> a; b")
