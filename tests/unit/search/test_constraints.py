"""Constraints: what they allow, and contradictions in one line each."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingWarning, OptionError, StructureError
from lurking.search.constraints import Constraints

NAMES = ("a", "b", "c", "d")


def made(**options):
    return Constraints.from_options(NAMES, **options)


def test_no_constraint_allows_everything_but_loops():
    rules = made()
    assert np.array_equal(rules.allowed, ~np.eye(4, dtype=bool))
    assert not rules.required.any()
    assert rules.max_parents == 3


def test_arcs_as_pairs_and_as_text():
    for required in ([("a", "b"), ("a", "c")], "a -> b c"):
        rules = made(required=required, forbidden="d -> a; a -> d", max_parents=7)
        assert np.argwhere(rules.required).tolist() == [[0, 1], [0, 2]]
        assert np.argwhere(~rules.allowed & ~np.eye(4, dtype=bool)).tolist() == [[0, 3], [1, 0], [2, 0], [3, 0]]
        assert rules.max_parents == 3


def test_tiers_rule_out_arcs_back_in_time():
    rules = made(tiers=[["a", "b"], ["d"]])
    assert np.argwhere(~rules.allowed & ~np.eye(4, dtype=bool)).tolist() == [[3, 0], [3, 1]]


def test_tiers_hold_through_hidden_variables():
    rules = made(tiers=[["a", "b"], ["c"]])
    late = lk.Dag.parse("a b c d; c -> h[2]; h -> b")
    assert not rules.extended(late).holds(late)
    for text in (
        "a b c d; a -> h[2]; h -> c",
        "a b c d; c -> h[2]; h -> d",
        "a b c d; a -> g[2]; g -> h[2] d; h -> b",
    ):
        dag = lk.Dag.parse(text)
        assert rules.extended(dag).holds(dag)
    chain = lk.Dag.parse("a b c d; c -> g[2]; g -> h[2]; h -> a")
    assert not rules.extended(chain).holds(chain)
    grown = rules.extended(lk.Dag.parse("a b c d; h[2] -> b c"))
    assert not grown.allows("c", "h")
    assert grown.allows("a", "h")
    assert grown.allows("d", "h")


def random_structure(generator):
    """Return a structure over four columns and two hidden variables, its order and its arcs drawn at random."""
    names = list(generator.permutation(["a", "b", "c", "d", "g", "h"]))
    arcs = [(x, y) for k, x in enumerate(names) for y in names[k + 1 :] if generator.random() < 0.35]
    return lk.Dag(["a", "b", "c", "d", "g", "h"], arcs, {"g": 2, "h": 2})


def has_late_ancestor(dag, tiers):
    """Whether a column has an ancestor of a later tier, by itself or through hidden variables alone."""
    for name, tier in tiers.items():
        waiting, seen = list(dag.parents(name)), set()
        while waiting:
            above = waiting.pop()
            if above in dag.hidden and above not in seen:
                seen.add(above)
                waiting += dag.parents(above)
            elif tiers.get(above, tier) > tier:
                return True
    return False


def test_tiers_forbid_late_ancestors_and_whatever_moves_lead_to_them():
    tiers = {"a": 0, "b": 1, "c": 2}
    rules = made(tiers=[["a"], ["b"], ["c"]])
    generator = np.random.default_rng(0)
    dags = [random_structure(generator) for _ in range(300)]
    for dag in dags:
        assert rules.extended(dag).holds(dag) is not has_late_ancestor(dag, tiers)
    kept = [dag for dag in dags if not has_late_ancestor(dag, tiers)]
    assert len(kept) > 30
    # What the rules of one structure allow is allowed by itself: so a search may hold on to those of its start.
    late = [dag for dag in dags if has_late_ancestor(dag, tiers)]
    for frozen in map(rules.extended, kept):
        assert not any(frozen.holds(dag) for dag in late)
    assert sum(rules.extended(start).holds(dag) for start in kept[:10] for dag in kept) > 30
    whole = Constraints.from_options(kept[0].nodes, tiers=[["a"], ["b"], ["c"]])
    for start in kept:
        assert np.array_equal(whole.placed(start).allowed, rules.extended(start).allowed)


def test_a_limit_of_parents_survives_fewer_and_more_variables():
    rules = made(max_parents=2)
    few = rules.restricted(["a", "b", "c"])
    assert few.max_parents == 2
    grown = few.extended(lk.Dag.parse("a b c; h[2] -> a b c"))
    assert grown.max_parents == 2
    all_but_one = made(max_parents=3).extended(lk.Dag.parse("a b c d; h[2] -> a b; a b c -> d"))
    assert all_but_one.max_parents == 3
    assert not all_but_one.holds(lk.Dag.parse("a b c d; h[2] -> d; a b c -> d"))
    assert made().extended(lk.Dag.parse("a b c d; h[2] -> a b c")).max_parents == 4


def test_indicators_are_parents_of_nothing():
    rules = made(indicators=True)
    assert not rules.allowed.any()
    dag = lk.Dag.parse("a b c d; g[2] -> a b h; h[2] -> c d")
    assert rules.extended(dag).holds(dag)
    for text in ("a b c d; a -> h[2]; h -> b c", "a -> b; h[2] -> c d"):
        assert not rules.extended(lk.Dag.parse(text)).holds(lk.Dag.parse(text))
    assert rules.restricted(["b", "a"]).indicators


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"required": "a -> b", "forbidden": "a -> b"}, StructureError, "'a' -> 'b' is required and forbidden"),
        ({"required": "d -> a", "tiers": [["a"], ["d"]]}, StructureError, "its parent is in a later tier"),
        ({"required": "a -> b -> c; c -> a"}, StructureError, "form a cycle: a -> b -> c -> a"),
        ({"required": [("a", "a")]}, StructureError, "joins a variable with itself"),
        ({"tiers": [["a"], ["b", "a"]]}, StructureError, "'a' is in tier 1 and in tier 2"),
        ({"tiers": ["a", "b"]}, OptionError, "list of lists"),
        ({"required": "a -> b", "indicators": True}, StructureError, "required, but columns that are indicators"),
        ({"tiers": [["aa"]]}, StructureError, "tier 1 names 'aa'"),
        ({"required": "a b -> c", "max_parents": 1}, OptionError, "'c' has 2 required parents"),
        ({"max_parents": -1}, OptionError, "max_parents is -1"),
        ({"max_parents": 1.5}, OptionError, "max_parents is 1.5"),
        ({"forbidden": "a -> e"}, StructureError, "names 'e', which is no variable"),
        ({"required": ["ab"]}, StructureError, "is not a pair"),
    ],
)
def test_contradictions_are_one_line(options, error, words):
    with pytest.raises(error) as caught:
        made(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_start_must_keep_the_rules():
    rules = made(required="a -> b", forbidden="c -> d", max_parents=2)
    rules.check(lk.Dag.parse("a -> b; c; d"))
    for text, words in [
        ("a b c d", "lacks the required arc 'a' -> 'b'"),
        ("a -> b; c -> d", "has the arc 'c' -> 'd'"),
        ("a c d -> b", "3 parents"),
    ]:
        with pytest.raises(StructureError, match=words):
            rules.check(lk.Dag.parse(text))


def test_indicators_are_true_or_false():
    with pytest.raises(OptionError, match="indicators is 'no'; it must be True or False"):
        made(indicators="no")


def test_what_is_no_list_of_arcs_is_refused():
    with pytest.raises(StructureError, match="has no arrow"):
        Constraints.from_options(("a", "b"), required="a")
    with pytest.raises(OptionError, match="forbidden is 3; it must be arcs"):
        Constraints.from_options(("a", "b"), forbidden=3)
    assert Constraints.from_options(("a", "b"), required=" ").required.sum() == 0


def test_arcs_among_some_variables_alone_may_change():
    dag = lk.Dag.parse("a -> b; b -> c; c -> d")
    rules = made(forbidden="c -> a").only_among(["a", "b", "c"], dag)
    assert rules.holds(dag)
    assert rules.holds(lk.Dag.parse("a b c d; b -> a c; c -> d"))
    assert not rules.holds(lk.Dag.parse("a b c d; a -> b; b -> c"))
    assert not rules.holds(lk.Dag.parse("a b c d; a -> b d; b -> c; c -> d"))
    assert not rules.allows("c", "a")


def test_one_tier_rules_nothing_out_and_is_told():
    for tiers in ([["a"]], [[], ["a", "b"]]):
        with pytest.warns(LurkingWarning, match="one tier rules nothing out"):
            assert made(tiers=tiers).allowed.sum() == 12


def test_a_name_with_a_space_is_asked_for_in_quotes():
    with pytest.raises(StructureError, match='a name with a space stands in quotes: "question 1"'):
        Constraints.from_options(["age", "question 1"], required="age -> question 1")


def test_arcs_that_may_not_be_turned():
    dag = lk.Dag.parse("a -> b c; b -> d; h[2] -> c d")
    assert made().settled(dag) == []
    assert set(made(tiers=[["a"], ["b"]], required="b -> d").settled(dag)) == {("a", "b"), ("b", "d")}
    assert set(made(indicators=True).settled(lk.Dag.parse("a b; h[2] -> c d"))) == {("h", "c"), ("h", "d")}
