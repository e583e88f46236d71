"""The canonical form: blind to hidden names and to order, and to nothing else."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from lurking.graph.dag import Dag
from lurking.graph.spaces import bipartite


@st.composite
def dags(draw):
    n_hidden, n_observed = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    names = [f"s{number}" for number in range(n_hidden)] + [f"y{number}" for number in range(n_observed)]
    order = draw(st.permutations(names))
    pairs = [(order[low], order[high]) for low in range(len(order)) for high in range(low + 1, len(order))]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Dag(names, edges, {name: draw(st.integers(1, 3)) for name in names[:n_hidden]})


@settings(deadline=None)
@given(dags(), st.randoms(use_true_random=False))
def test_renaming_hidden_nodes_and_reordering_change_nothing(dag, random):
    new_names = [f"q{number}" for number in range(len(dag.hidden))]
    random.shuffle(new_names)
    renamed = dag.rename(dict(zip(dag.hidden, new_names, strict=True)))
    nodes, edges = list(renamed.nodes), list(renamed.edges)
    random.shuffle(nodes)
    random.shuffle(edges)
    other = Dag(nodes, edges, renamed.hidden)
    assert other.canonical() == dag.canonical()
    assert other.same_structure(dag)


def key_by_brute_force(dag):
    """Return the smallest description over all namings of the hidden nodes."""
    hidden = list(dag.hidden)
    keys = []
    for numbers in itertools.permutations(range(len(hidden))):
        new = dict(zip(hidden, (("hidden", str(number)) for number in numbers), strict=True))
        new |= {name: ("observed", name) for name in dag.observed}
        cards = sorted((new[name], cardinality) for name, cardinality in dag.hidden.items())
        keys.append((cards, sorted((new[parent], new[child]) for parent, child in dag.edges)))
    return min(keys)


@settings(deadline=None, max_examples=200)
@given(dags(), dags())
def test_forms_are_equal_exactly_for_the_same_structure(first, second):
    same = sorted(first.observed) == sorted(second.observed) and key_by_brute_force(first) == key_by_brute_force(second)
    assert (first.canonical() == second.canonical()) == same


@settings(deadline=None)
@given(dags())
def test_the_form_is_the_same_structure_and_its_own_form(dag):
    form = dag.canonical()
    assert key_by_brute_force(form) == key_by_brute_force(dag)
    assert form.canonical() == form


def test_names_and_order_of_the_form():
    dag = Dag.parse("z y; big[5] -> z y; b[2] -> z; a[2] -> y")
    assert dag.canonical() == Dag.parse("h1[2] h2[2] h3[5] y z; h1 h3 -> y; h2 h3 -> z")


def test_observed_names_are_not_taken():
    assert Dag.parse("s[2] t[2] -> h1 h3").canonical().nodes == ("h2", "h4", "h1", "h3")


def test_cardinality_and_direction_matter():
    assert not Dag.parse("s[2] -> y").same_structure(Dag.parse("s[3] -> y"))
    assert not Dag.parse("s[2] -> y").same_structure(Dag.parse("y -> s[2]"))
    assert not Dag.parse("s[2] -> y").same_structure(Dag.parse("s -> y"))


def test_a_class_of_bipartite_structures_has_as_many_forms():
    assert len({dag.canonical() for dag in bipartite(2, ["y1", "y2", "y3", "y4"])}) == 136
    assert len({dag.canonical() for dag in bipartite({"a": 2, "b": 3, "c": 2}, ["y1", "y2"])}) == 40


def test_all_link_matrices_fall_into_136_forms():
    forms = set()
    for bits in itertools.product((0, 1), repeat=8):
        links = [(f"s{place // 4}", f"y{place % 4}") for place, bit in enumerate(bits) if bit]
        forms.add(Dag(["s0", "s1", "y0", "y1", "y2", "y3"], links, {"s0": 2, "s1": 2}).canonical())
    assert len(forms) == 136


def test_the_form_is_kept():
    dag = Dag.parse("s[2] -> y")
    assert dag.canonical() is dag.canonical()
