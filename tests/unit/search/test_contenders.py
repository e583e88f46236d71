"""Names of structures that were judged, and why one of them is kept."""

import lurking as lk
from lurking.evidence.base import Evidence, Kind
from lurking.learn.loop import Status
from lurking.search.contenders import contender_names, why_not_first
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


def test_why_the_first_row_is_not_kept():
    assert why_not_first(candidate(-10.0, 0.3), candidate(-9.9, 0.4)) == (
        "the first row is ahead by 0.10 nats, and two standard errors are 1.00"
    )
    assert "not to be trusted" in why_not_first(candidate(-10.0, 0.1), candidate(-8.0, 0.1, status=Status.UNTRUSTED))
    assert "prior probability alone" in why_not_first(candidate(-10.0, 0.1, -5.0), candidate(-11.0, 0.1))
