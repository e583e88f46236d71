"""Structures with one hidden variable more."""

import lurking as lk
from lurking.models.layout import Layout
from lurking.search import surgery

SIX = lk.Dag.parse("x1 x2 x3 -> y1 y2 y3; y1 -> y2 y3; y2 -> y3")
BINARY = dict.fromkeys(SIX.nodes, 2)


def test_fifty_nine_parameters_become_seventeen():
    made = surgery.with_hidden_parent(SIX, ["y1", "y2", "y3"], "h")
    assert Layout(SIX, BINARY).dimension == 59
    assert Layout(made, {**BINARY, "h": 2}).dimension == 17
    assert made.same_structure(lk.Dag.parse("x1 x2 x3 -> h; h[2] -> y1 y2 y3"))


def test_an_outside_parent_of_one_member_stays_its_parent():
    dag = lk.Dag.parse("p -> a; a -> b c; b -> c")
    made = surgery.with_hidden_parent(dag, ["a", "b", "c"], "h")
    assert made.same_structure(lk.Dag.parse("p -> a; h[2] -> a b c"))


def test_a_shared_parent_below_a_member_does_not_close_a_cycle():
    dag = lk.Dag.parse("a -> p; p -> b c; b -> c")
    made = surgery.with_hidden_parent(dag, ["a", "b", "c"], "h")
    assert made.parents("h") == ()
    assert set(made.parents("b")) == {"p", "h"}


def test_mediator_takes_all_arcs_between_and_among_the_children():
    made = surgery.with_mediator(SIX, ["x1", "x2", "x3"], ["y1", "y2", "y3"], "h")
    assert made.same_structure(surgery.with_hidden_parent(SIX, ["y1", "y2", "y3"], "h"))


def test_confounder_takes_common_children_along():
    dag = lk.Dag.parse("a -> b c; b -> c")
    assert surgery.with_confounder(dag, "a", "b", "h").same_structure(lk.Dag.parse("h[2] -> a b c"))


def test_split_and_merge_are_inverse():
    one = lk.Dag.parse("h1[2] -> a b c d")
    two = surgery.with_split_hidden(one, "h1", ["c", "d"], "h2")
    assert two.same_structure(lk.Dag.parse("h1[2] -> a b h2; h2[2] -> c d"))
    merged = surgery.with_merged_hidden(two, "h1", "h2")
    assert merged is not None
    assert merged.same_structure(one)


def test_merging_around_an_observed_variable_between_would_close_a_cycle():
    dag = lk.Dag.parse("h1[2] -> a; a -> h2; h2[2] -> b c")
    assert surgery.with_merged_hidden(dag, "h1", "h2") is None


def test_arcs_between_hidden_variables_are_tried_in_both_directions_once():
    dag = lk.Dag.parse("h1[2] -> a b; h2[2] -> b c")
    made = surgery.with_joined_hidden(dag)
    assert {tuple(set(each.edges) - set(dag.edges)) for each in made} == {(("h1", "h2"),), (("h2", "h1"),)}
    assert surgery.with_joined_hidden(made[0]) == []


def test_names_avoid_columns_and_nodes():
    assert surgery.new_hidden_name(lk.Dag.parse("h1[2] -> a"), ["h2", "a"]) == "h3"
