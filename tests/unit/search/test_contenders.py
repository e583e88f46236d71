"""Names of structures that were judged, and why one of them is kept."""

import math
from dataclasses import replace

import pytest

import lurking as lk
from lurking.evidence.base import Evidence, Kind
from lurking.graph.equivalence import cpdag
from lurking.learn.loop import Status
from lurking.search.contenders import Trial, contender_names, hidden_part, posterior_over, why_not_first
from lurking.search.posterior import Candidate


def candidate(log_z, error, log_prior=0.0, status=Status.SAMPLED):
    evidence = Evidence(log_z, 0.0, error, Kind.ESTIMATE, "ais", status=status)
    return Candidate("m", lk.Dag.parse("a"), evidence, log_prior, 0.5, 0.5)


def test_names_show_the_arcs_in_which_structures_with_one_hidden_part_differ():
    texts = ["h[2] -> a b c; d", "h[2] -> a b c; a -> d", "h[2] -> a b c; d -> a b c; b -> c", "d -> a; b; c"]
    dags = [lk.Dag.parse(text) for text in texts]
    assert contender_names([dags[0], *dags]) == [
        "h[2] -> a b c",
        "h[2] -> a b c (2)",
        "h[2] -> a b c (+ a -> d)",
        "h[2] -> a b c (+ b -> c, d -> a, d -> b and 1 more)",
        "no hidden variable",
    ]
    assert contender_names(dags[1:3])[1] == "h[2] -> a b c (+ b -> c, d -> a, d -> b and 1 more; - a -> d)"


def test_edges_of_either_direction_are_lines_in_names():
    dag = lk.Dag.parse("h[2] -> a b c; x y -> c")
    lines = frozenset(map(frozenset, ("ha", "hb")))
    assert hidden_part(dag, lines) == "h[2] -> c; h -- a b"
    assert hidden_part(lk.Dag.parse("h[2] -> a b"), lines) == "h[2] -- a b"
    assert hidden_part(lk.Dag.parse("x -> h[2] -> a b"), lines) == "x -> h[2]; h -- a b"
    other = lk.Dag.parse("h[2] -> a b c; x y -> c; y -> z")
    assert contender_names([dag, other], [lines, lines | {frozenset("yz")}])[1] == "h[2] -> c; h -- a b (+ y -- z)"


def test_a_class_enters_the_posterior_once():
    """Two members with the hidden variable below a column, and the root, which stands for all three."""
    texts = {
        "q2 -> h1[3] -> q1 q7": -10.0,
        "q7 -> h1[3] -> q1 q2": -10.03,
        "h1[3] -> q1 q2 q7": -10.5,
        "q1 q2 q7": -9.5,
    }
    dags = [lk.Dag.parse(text) for text in texts]
    history = [
        Trial(dag, "x", Evidence(value, 0.0, 0.1, Kind.ESTIMATE, "ais"), is_kept=False, lines=cpdag(dag).undirected)
        for dag, value in zip(dags, texts.values(), strict=True)
    ]
    made = posterior_over(history, lambda _: 0.0)
    assert [c.name for c in made] == ["no hidden variable", "h1[3] -- q1 q2 q7"]
    assert made.duplicates == ()
    assert made.candidates[1].evidence.log_z == -10.5
    assert made.candidates[1].probability == pytest.approx(1 / (1 + math.e))
    # What is kept, such as a start that was given, stands for its class.
    kept = replace(history[1], is_kept=True)
    again = posterior_over([history[0], kept, *history[2:]], lambda _: 0.0)
    assert again.candidates[1].dag == dags[1]


def test_why_the_first_row_is_not_kept():
    assert why_not_first(candidate(-10.0, 0.3), candidate(-9.9, 0.4)) == (
        "the first row is ahead by 0.10 nats, and two standard errors are 1.00"
    )
    assert "not to be trusted" in why_not_first(candidate(-10.0, 0.1), candidate(-8.0, 0.1, status=Status.UNTRUSTED))
    assert "prior probability alone" in why_not_first(candidate(-10.0, 0.1, -5.0), candidate(-11.0, 0.1))
