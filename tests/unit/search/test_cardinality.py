"""How many states a hidden variable has."""

import numpy as np
import pytest

import lurking as lk
from lurking.search.cardinality import (
    choose_states,
    contenders,
    merge_states,
    nearest_states,
    scan_states,
    split_state,
    worst_state,
)
from lurking.search.judge import Judge

STRUCTURE = lk.Dag.parse("p -> h; h[3] -> a b c; p -> a")
LEVELS = {name: [0, 1] for name in "pabc"}
NETWORK = lk.Network.from_tables(
    STRUCTURE,
    {
        "p": [[0.4, 0.6]],
        "h": [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]],
        "a": [[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.4, 0.6], [0.1, 0.9], [0.2, 0.8]],
        "b": [[0.9, 0.1], [0.85, 0.15], [0.1, 0.9]],
        "c": [[0.1, 0.9], [0.9, 0.1], [0.5, 0.5]],
    },
    levels=LEVELS,
)


def joint(tables, states):
    return lk.Network.from_tables(STRUCTURE.with_hidden({"h": states}), tables, levels=LEVELS).joint(
        ["p", "a", "b", "c"]
    )


def test_a_split_without_push_changes_nothing_that_is_observed():
    class Still:
        def standard_normal(self, shape):
            return np.zeros(shape)

    tables = split_state(NETWORK, "h", 1, Still())
    assert tables["h"].shape == (2, 4)
    assert joint(tables, 4) == pytest.approx(NETWORK.joint(["p", "a", "b", "c"]))


def test_split_rows_are_distributions_and_merging_the_halves_comes_close():
    tables = split_state(NETWORK, "h", 2, np.random.default_rng(0))
    for table in tables.values():
        assert table.sum(axis=1) == pytest.approx(1.0)
        assert (table >= 0.0).all()
    larger = lk.Network.from_tables(STRUCTURE.with_hidden({"h": 4}), tables, levels=LEVELS)
    back = merge_states(larger, "h", 2, 3)
    assert back["h"] == pytest.approx(NETWORK.tables["h"])
    assert back["b"][:2] == pytest.approx(NETWORK.tables["b"][:2])


def test_merged_states_keep_the_weighted_mean():
    tables = merge_states(NETWORK, "h", 0, 2)
    sizes = NETWORK.joint(["h"])
    share = sizes[0] / (sizes[0] + sizes[2])
    assert tables["b"][0] == pytest.approx(share * np.asarray([0.9, 0.1]) + (1 - share) * np.asarray([0.1, 0.9]))
    assert tables["h"] == pytest.approx(np.asarray([[0.7, 0.3], [0.7, 0.3]]))


def test_nearest_states_are_those_that_differ_least():
    tables = dict(NETWORK.tables)
    tables["c"] = np.asarray([[0.1, 0.9], [0.12, 0.88], [0.5, 0.5]])
    tables["a"] = np.repeat([[0.9, 0.1], [0.88, 0.12], [0.1, 0.9]], 2, axis=0)[[0, 2, 4, 1, 3, 5]]
    near = lk.Network.from_tables(STRUCTURE, tables, levels=LEVELS)
    assert near.dag.parents("a") == ("h", "p") or near.dag.parents("a") == ("p", "h")
    assert nearest_states(near, "h") == (0, 1)


def three_classes():
    dag = lk.Dag.parse("h[3] -> a b c d e")
    tables = {"h": [[0.4, 0.3, 0.3]]}
    patterns = [(0.9, 0.1, 0.1), (0.9, 0.1, 0.2), (0.9, 0.9, 0.1), (0.1, 0.9, 0.1), (0.1, 0.9, 0.9)]
    tables |= {name: [[p, 1 - p] for p in row] for name, row in zip("abcde", patterns, strict=True)}
    return lk.Network.from_tables(dag, tables, levels={name: [0, 1] for name in "abcde"}).sample(800, seed=0)


def test_the_worst_state_is_the_one_that_stands_for_two():
    table = three_classes()
    fit = lk.fit("h[2] -> *", table, seed=0)
    state = worst_state(fit.network, table, "h")
    sizes = fit.network.joint(["h"])
    assert sizes[state] == max(sizes)


def test_three_classes_are_found_and_their_probabilities_add_up():
    judge = Judge(three_classes(), lk.Prior.symmetric(1.0), seed=0, target=1.0)
    found = choose_states(judge, lk.Dag.parse("h[2] -> a b c d e"), "h", most=5)
    assert found.states == 3
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    assert found.probabilities[3] > 0.5
    assert max(found.cheap) <= 5
    # The scan ended early: nothing beyond two numbers of states past the best.
    assert max(found.cheap) - max(found.cheap, key=found.cheap.get) <= 2


def test_a_scan_never_lowers_what_restarts_alone_find():
    table = three_classes()
    judge = Judge(table, lk.Prior.symmetric(1.0), seed=0)
    scores = scan_states(judge, lk.Dag.parse("h[2] -> a b c d e"), "h", most=3)
    assert scores[2] >= lk.score("h[2] -> *", table, "vb", seed=0, restarts=3).corrected - 1e-3


def test_contenders_are_near_the_best_and_at_most_three():
    assert contenders({2: -100.0, 3: -90.0, 4: -91.0, 5: -97.0, 6: -92.0}) == [3, 4, 6]


def test_an_observed_variable_has_no_number_of_states_to_choose():
    judge = Judge(three_classes(), lk.Prior.symmetric(1.0))
    with pytest.raises(lk.LurkingError, match="'a' is no hidden variable"):
        scan_states(judge, lk.Dag.parse("h[2] -> a b c d e"), "a")
