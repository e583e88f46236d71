"""Hidden variables of different structures, matched by what they act on."""

import itertools

import numpy as np
import pytest

import lurking as lk
from lurking.search.hidden_matching import matched


def parsed(*texts):
    return [lk.Dag.parse(text) for text in texts]


def test_names_do_not_matter_but_arrows_do():
    dags = parsed("s[2] -> a b; t[2] -> c d", "t[2] -> a b; s[2] -> c d", "u[2] -> c d a; v[2] -> b a")
    first, second, third = matched(dags, np.asarray([0.5, 0.3, 0.2]))
    assert first == dags[0]
    assert set(second.edges) == set(first.edges)
    assert set(third.children("t")) == {"a", "c", "d"}
    assert set(third.children("s")) == {"a", "b"}


def test_more_hidden_variables_get_names_of_their_own():
    dags = parsed("s[2] -> a b c", "g[2] -> a b; s[2] -> c d")
    _, second = matched(dags, np.asarray([0.6, 0.4]))
    assert set(second.children("s")) == {"a", "b"}
    assert set(second.hidden) == {"s", "h1"}
    (_, other) = matched(parsed("s[2] -> a b c", "s[2] -> a b; g[2] -> c d"), np.asarray([0.6, 0.4]))
    assert set(other.children("g")) == {"c", "d"}


def test_the_number_of_states_breaks_ties():
    dags = parsed("s[2] -> a b; t[3] -> a b", "x[3] -> a b; y[2] -> a b")
    _, second = matched(dags, np.asarray([0.6, 0.4]))
    assert second.hidden == {"s": 2, "t": 3}


def test_edges_between_hidden_variables_follow():
    dags = parsed("s[2] -> a b; t[2] -> c d; s -> t", "q[2] -> c d; p[2] -> a b; p -> q")
    first, second = matched(dags, np.asarray([0.6, 0.4]))
    assert set(second.edges) == set(first.edges)


@pytest.mark.parametrize("weights", [[0.5, 0.3, 0.2], [0.0, 0.0, 1.0], [1 / 3] * 3])
def test_the_result_does_not_depend_on_names_within_a_structure(weights):
    texts = ["s[2] -> a b; t[2] -> c d", "s[2] -> a c; t[2] -> b d", "s[2] -> a; t[2] -> b c d; s -> t"]
    plain = matched(parsed(*texts), np.asarray(weights))
    heaviest = int(np.argmax(weights))
    for swapped in itertools.product([False, True], repeat=3):
        if swapped[heaviest]:
            continue
        dags = [
            dag.rename({"s": "t", "t": "s"}) if swap else dag for dag, swap in zip(parsed(*texts), swapped, strict=True)
        ]
        for one, other in zip(matched(dags, np.asarray(weights)), plain, strict=True):
            assert set(one.edges) == set(other.edges)
