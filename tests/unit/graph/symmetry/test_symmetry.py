"""Automorphisms, canonical labellings and aliases, against counting by hand and by brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lurking.errors import PriorError
from lurking.graph.dag import Dag
from lurking.graph.spaces import bipartite
from lurking.graph.symmetry.actions import (
    ColoredGraph,
    automorphism_order,
    canonical_labelling,
    hidden_automorphisms,
    refine,
)
from lurking.graph.symmetry.aliases import alias_count, log_aliases


@st.composite
def colored_graphs(draw):
    order = draw(st.integers(1, 6))
    colors = draw(st.lists(st.sampled_from(["red", "blue"]), min_size=order, max_size=order))
    vertices = st.integers(0, order - 1)
    edges = draw(st.lists(st.tuples(vertices, vertices, st.sampled_from("ab")), max_size=12))
    return colors, edges


def renumbered(edges, mapping):
    return sorted((mapping[source], mapping[target], label) for source, target, label in edges)


@settings(deadline=None)
@given(colored_graphs())
def test_automorphisms_of_random_graphs_against_all_permutations(graph):
    colors, edges = graph
    expected = sum(
        all(colors[vertex] == colors[image] for vertex, image in enumerate(mapping))
        and renumbered(edges, mapping) == sorted(edges)
        for mapping in itertools.permutations(range(len(colors)))
    )
    assert automorphism_order(ColoredGraph(colors, edges)) == expected


@settings(deadline=None)
@given(colored_graphs(), st.randoms(use_true_random=False))
def test_canonical_labelling_does_not_depend_on_vertex_numbers(graph, random):
    colors, edges = graph
    shuffle = list(range(len(colors)))
    random.shuffle(shuffle)
    moved_colors = [colors[shuffle.index(vertex)] for vertex in range(len(colors))]
    moved_edges = [(shuffle[source], shuffle[target], label) for source, target, label in edges]
    random.shuffle(moved_edges)
    places = canonical_labelling(ColoredGraph(colors, edges))
    moved_places = canonical_labelling(ColoredGraph(moved_colors, moved_edges))
    assert sorted(places) == list(range(len(colors)))
    assert renumbered(edges, places) == renumbered(moved_edges, moved_places)
    assert sorted(zip(places, colors, strict=True)) == sorted(zip(moved_places, moved_colors, strict=True))


def two_way(pairs):
    return [edge for low, high in pairs for edge in ((low, high, 0), (high, low, 0))]


PETERSEN = (
    [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)] + [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
)
CUBE = [(i, i ^ bit) for i in range(8) for bit in (1, 2, 4) if i < i ^ bit]


@pytest.mark.parametrize(
    ("order", "edges", "size"),
    [
        (5, [(i, (i + 1) % 5, 0) for i in range(5)], 5),
        (6, two_way([(i, (i + 1) % 6) for i in range(6)]), 12),
        (10, two_way(PETERSEN), 120),
        (8, two_way(CUBE), 48),
        (12, two_way([(i, (i + 1) % 3 + 3 * (i // 3)) for i in range(12)]), math.factorial(4) * 6**4),
        (12, [], math.factorial(12)),
    ],
)
def test_known_groups(order, edges, size):
    assert automorphism_order(ColoredGraph([0] * order, edges)) == size


def test_regular_graphs_that_refinement_cannot_tell_apart_get_different_labellings():
    hexagon = two_way([(i, (i + 1) % 6) for i in range(6)])
    triangles = two_way([(i, (i + 1) % 3 + 3 * (i // 3)) for i in range(6)])
    graphs = [ColoredGraph([0] * 6, edges) for edges in (hexagon, triangles)]
    assert refine(graphs[0]) == refine(graphs[1]) == [0] * 6
    forms = [renumbered(edges, canonical_labelling(g)) for edges, g in zip((hexagon, triangles), graphs, strict=True)]
    assert forms[0] != forms[1]


def test_refine_orders_cells_and_is_stable():
    path = ColoredGraph(["b", "a", "b", "b"], [(0, 1, "x"), (1, 2, "x"), (2, 3, "x")])
    colors = refine(path)
    assert sorted(colors) == [0, 1, 2, 3]
    assert colors[1] == 0
    star = refine(ColoredGraph(["b", "a", "b", "b"], [(1, 0, "x"), (1, 2, "x"), (1, 3, "y")]))
    assert star[0] == star[2] != star[3]
    assert star[1] == 0


def test_twelve_interchangeable_nodes_cost_no_factorial_work(count_calls):
    """About 11 000 calls, and a good third of that for six nodes."""

    def look():
        hidden = {f"s{number}": 2 for number in range(12)}
        dag = Dag.from_edges([(name, child) for child in ("y", "z") for name in hidden], hidden=hidden)
        assert hidden_automorphisms(dag) == math.factorial(12)
        assert alias_count(dag) == math.factorial(12) * 2**12
        assert len(dag.canonical().nodes) == 14

    assert count_calls(look) < 30_000


@pytest.mark.parametrize(
    ("text", "automorphisms", "aliases"),
    [
        ("s1[2] -> y1 y2 y3; s2[2] -> y2 y3 y4", 1, 4),
        ("s1[2] s2[2] -> y1 y2 y3 y4", 2, 8),
        ("a[3] b[3] c[4] -> y", 2, 1728),
        ("a[2] b[2] -> c[2] -> y z", 2, 16),
        ("a[3] -> b[3]; a -> y; b -> z", 1, 36),
        ("root[2] -> l[2] r[2]; l r -> y", 2, 16),
        ("a[2] -> y; b[3] -> y", 1, 12),
        ("x -> y", 1, 1),
        ("class[1] -> y", 1, 1),
        ("y; s[2]; t[2]", 2, 8),
    ],
)
def test_aliases_under_a_symmetric_prior(text, automorphisms, aliases):
    dag = Dag.parse(text)
    assert hidden_automorphisms(dag) == automorphisms
    assert alias_count(dag) == aliases
    assert log_aliases(dag) == pytest.approx(math.log(aliases), abs=1e-12)


def test_nodes_of_one_state_have_nothing_to_exchange():
    dag = Dag.parse("a[1] b[1] -> y")
    assert hidden_automorphisms(dag) == 2
    assert alias_count(dag) == 1
    carried = Dag.parse("a[1] -> c[2] -> y; b[1] -> d[2] -> y")
    assert alias_count(carried) == 2 * 2 * 2


def test_a_prior_key_keeps_nodes_apart():
    dag = Dag.parse("s1[2] s2[2] s3[2] -> y1")
    assert hidden_automorphisms(dag, {"s1": 0.5, "s2": 1.0, "s3": 0.5}) == 2


def test_pruned_structures_lose_the_aliases_of_barren_nodes():
    dag = Dag.parse("y1 y2 s1[2] s2[2]; s1 -> y1")
    assert alias_count(dag) == 4
    assert alias_count(dag.pruned()) == 2


def ones(dag, observed_states=2):
    states = {name: dag.hidden.get(name, observed_states) for name in dag.nodes}
    return {name: np.ones((math.prod(states[p] for p in dag.parents(name)), states[name])) for name in dag.nodes}


def test_an_asymmetric_root_prior_leaves_no_alias():
    dag = Dag.parse("x0[2] -> x1 x2")
    tables = {"x0": [[1.3, 0.2]], "x1": [[1.3, 1.0], [0.2, 2.5]], "x2": [[0.2, 2.5, 2.0], [2.0, 1.0, 2.0]]}
    assert alias_count(dag, tables, {"x1": 2, "x2": 3}) == 1
    assert alias_count(dag, {**ones(dag), "x0": [[1.3, 0.2]]}) == 1


def test_two_equal_of_three_states():
    dag = Dag.parse("root[3] -> x y")
    tables = ones(dag) | {"root": np.array([[1.0, 1.0, 2.0]])}
    assert alias_count(dag, tables) == 2


def test_an_asymmetric_child_that_is_exchanged_with_its_twin():
    dag = Dag.parse("s[2] t[2] -> y")
    tables = ones(dag) | {"s": np.array([[1.0, 3.0]]), "t": np.array([[3.0, 1.0]])}
    assert alias_count(dag, tables) == 2


def test_observed_asymmetry_is_no_obstacle():
    dag = Dag.parse("s[2] -> y")
    assert alias_count(dag, ones(dag) | {"y": np.array([[1.0, 4.0], [1.0, 4.0]])}) == 2
    assert alias_count(dag, ones(dag) | {"y": np.array([[1.0, 4.0], [4.0, 1.0]])}) == 1


def test_a_chain_in_which_states_move_together():
    dag = Dag.parse("a[3] -> b[3] -> y")
    cyclic = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    assert alias_count(dag, ones(dag) | {"b": cyclic}) == 6


def test_pseudo_counts_equal_to_twelve_digits_are_equal():
    dag = Dag.parse("s[2] -> y")
    assert alias_count(dag, ones(dag) | {"s": np.array([[0.1 * 3, 0.3]])}) == 2
    assert alias_count(dag, ones(dag) | {"s": np.array([[0.3000001, 0.3]])}) == 1


def test_equal_families_with_different_constants_are_not_exchanged():
    dag = Dag.parse("s[2] t[2] -> y")
    assert alias_count(dag, ones(dag)) == 8
    assert alias_count(dag, ones(dag) | {"s": np.full((1, 2), 0.5)}) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"y": np.ones((2, 3))},
            "the table of 'y' has 3 columns, but the node has 2 states; give one column per state",
        ),
        (
            {"y": np.ones((3, 2))},
            "the table of 'y' has 3 rows, but its parents have 2 configurations; give one row per configuration",
        ),
        (
            {"s": np.ones(2)},
            "the table of 's' has shape (2,); give one row per parent configuration and one column per state",
        ),
        (
            {"s": np.ones((1, 3))},
            "the table of 's' has 3 columns, but the node has 2 states; give one column per state",
        ),
    ],
)
def test_tables_must_fit(change, message):
    dag = Dag.parse("s[2] -> y")
    with pytest.raises(PriorError) as caught:
        alias_count(dag, ones(dag) | change, {"y": 2})
    assert str(caught.value) == message


def test_every_node_needs_a_table():
    with pytest.raises(PriorError, match="no table for node 'y'"):
        alias_count(Dag.parse("s[2] -> y"), {"s": np.ones((1, 2))})


def brute_force_count(dag, tables):
    """Try every permutation of hidden nodes with every permutation of their states on the tables themselves."""
    hidden = list(dag.hidden)
    states = {name: tables[name].shape[1] for name in dag.nodes}
    cubes = {name: tables[name].reshape([states[axis] for axis in (*dag.parents(name), name)]) for name in dag.nodes}
    actions = set()
    for images in itertools.permutations(hidden):
        node_map = dict(zip(hidden, images, strict=True)) | {name: name for name in dag.observed}
        if any(states[name] != states[image] for name, image in node_map.items()):
            continue
        if any({node_map[p] for p in dag.parents(name)} != set(dag.parents(node_map[name])) for name in dag.nodes):
            continue
        for choice in itertools.product(*(itertools.permutations(range(states[name])) for name in hidden)):
            state_map = dict(zip(hidden, choice, strict=True)) | {name: range(states[name]) for name in dag.observed}
            if all(same_table(dag, cubes, name, node_map, state_map) for name in dag.nodes):
                actions.add(tuple((n, node_map[n], state_map[n]) for n in hidden if states[n] > 1))
    return len(actions)


def same_table(dag, cubes, name, node_map, state_map):
    axes = (*dag.parents(name), name)
    image_axes = (*dag.parents(node_map[name]), node_map[name])
    for place in np.ndindex(*cubes[name].shape):
        moved = {node_map[axis]: state_map[axis][state] for axis, state in zip(axes, place, strict=True)}
        if cubes[name][place] != cubes[node_map[name]][tuple(moved[axis] for axis in image_axes)]:
            return False
    return True


@st.composite
def small_problems(draw):
    n_hidden, n_observed = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    hidden = [f"s{number}" for number in range(n_hidden)]
    observed = [f"y{number}" for number in range(n_observed)]
    order = draw(st.permutations(hidden + observed))
    pairs = [(order[low], order[high]) for low in range(len(order)) for high in range(low + 1, len(order))]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=5)) if pairs else []
    dag = Dag(hidden + observed, edges, {name: draw(st.integers(1, 3)) for name in hidden})
    tables = ones(dag)
    values = draw(st.sampled_from([[1.0], [1.0, 2.0], [1.0, 1.0, 1.0, 2.0]]))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    for name in draw(st.lists(st.sampled_from(dag.nodes), unique=True)):
        tables[name] = generator.choice(values, size=tables[name].shape)
    return dag, tables


@settings(deadline=None, max_examples=150)
@given(small_problems())
def test_aliases_of_random_priors_against_brute_force(problem):
    dag, tables = problem
    assert alias_count(dag, tables) == brute_force_count(dag, tables)


@settings(deadline=None, max_examples=50)
@given(small_problems())
def test_aliases_of_symmetric_priors_against_brute_force(problem):
    dag, _ = problem
    assert alias_count(dag) == brute_force_count(dag, ones(dag))


def test_exchange_of_nodes_with_permuted_states_against_brute_force():
    generator = np.random.default_rng(0)
    dag = Dag.parse("s[3] t[3] -> y; s -> z; t -> z")
    half = generator.choice([1.0, 2.0], size=(3, 3, 2))
    symmetric = half + half.transpose(1, 0, 2)
    tables = ones(dag) | {"y": symmetric.reshape(9, 2)}
    expected = brute_force_count(dag, tables)
    assert expected >= 2
    assert alias_count(dag, tables) == expected


@pytest.mark.parametrize(("links", "aliases"), [(0, 8), (1, 4), (58, 8), (98, 4), (135, 8)])
def test_aliases_in_the_class_of_beal_and_ghahramani(links, aliases):
    structures = list(bipartite(2, ["y1", "y2", "y3", "y4"]))
    assert alias_count(structures[links]) == aliases
