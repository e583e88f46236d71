"""Hidden variables are invented where the evidence speaks for them, and nowhere else."""

import math
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

import lurking as lk
from lurking.errors import TooLarge
from lurking.evidence.base import Evidence, Kind
from lurking.graph.model_class import model_class
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.search import inventing, local_trials
from lurking.search.constraints import Constraints
from lurking.search.contenders import hidden_part
from lurking.search.hidden import check_room, room_for
from lurking.search.judge import Judge, is_better, is_far_below
from lurking.search.local_trials import LocalTrials, thinned
from lurking.search.notebook import Notebook
from lurking.search.proposals import Proposal, Proposer, most_parameters
from lurking.search.representatives import representative
from lurking.search.surgery import with_hidden_instead, with_split_hidden, with_turned_parents

ANSWERS = [[0.85, 0.15], [0.2, 0.8]]


def drawn(text, tables, rows, seed=0):
    dag = lk.Dag.parse(text)
    whole = {**tables, **{name: ANSWERS for name in dag.observed if name not in tables}}
    return lk.Network.from_tables(dag, whole, levels={name: [0, 1] for name in dag.observed}).sample(rows, seed=seed)


def one_cause(rows=600):
    return drawn("h[2] -> a b c d", {"h": [[0.5, 0.5]]}, rows)


@pytest.fixture(scope="module")
def found():
    return lk.search(one_cause(), hidden=1, seed=0, target=0.5)


def test_the_cause_of_four_answers_is_invented(found):
    (name,) = found.best.hidden
    near = {*found.best.parents(name), *found.best.children(name)}
    assert near == {"a", "b", "c", "d"}
    assert found.best.hidden[name] == 2
    assert found.evidence.kind is Kind.ESTIMATE


def test_the_outcome_is_never_below_its_start(found):
    start = found.history[0]
    assert start.evidence.kind is Kind.EXACT
    assert not start.dag.hidden
    assert found.evidence.log_z >= start.evidence.log_z
    exact = lk.score(start.dag, one_cause(), "exact", prior=1.0)
    assert start.evidence.log_z == pytest.approx(exact.log_z)


def test_no_bound_is_ever_judged_and_the_posterior_adds_up(found):
    assert {trial.evidence.kind for trial in found.history} <= {Kind.EXACT, Kind.ESTIMATE}
    assert math.fsum(candidate.probability for candidate in found.posterior) == pytest.approx(1.0)
    assert set(found.posterior.hidden_probabilities()) == {0, 1}
    assert found.posterior.hidden_probabilities()[1] > 0.9


def test_hidden_variables_are_roots_and_a_class_is_judged_once(found):
    rules = Constraints.from_options(one_cause().columns)
    invented = [trial.dag for trial in found.history if trial.dag.hidden]
    assert [representative(dag, rules) for dag in invented] == invented
    assert found.best.parents(*found.best.hidden) == ()
    assert len({model_class(candidate.dag) for candidate in found.posterior}) == len(found.posterior)


def test_equal_seeds_give_equal_results_for_any_number_of_workers(found):
    again = lk.search(one_cause(), hidden=1, seed=0, target=0.5, workers=2)
    assert again.best == found.best
    assert again.score == found.score


def test_nothing_is_invented_on_a_chain_that_is_fully_observed():
    tables = {"a": [[0.5, 0.5]]}
    table = drawn("a -> b -> c -> d", tables, 500)
    result = lk.search(table, hidden=1, seed=0, target=0.5)
    assert not result.best.hidden
    assert result.evidence.kind is Kind.EXACT
    assert len(result.history) > 1, "hidden variables were tried"


def test_empty_cells_are_searched_without_hidden_variables():
    rows = [[0, 0], [0, None], [1, 1], [1, 1], [0, 0], [None, 1], [1, 1], [0, 0]] * 8
    result = lk.search(lk.Table.from_rows(rows, columns=["a", "b"]), hidden=0, seed=0, target=0.5)
    assert len(result.best.edges) == 1
    assert result.evidence.kind is Kind.ESTIMATE


def test_no_more_hidden_variables_than_asked_for_whatever_the_start_has():
    tables = {"g": [[0.5, 0.5]], "h": [[0.5, 0.5]]}
    table = drawn("g[2] -> a b c d; h[2] -> e f i j", tables, 1500)
    result = lk.search(table, 1, seed=0, target=0.5, start="g[2] -> a b c d; e -> f i j; f -> i j; i -> j")
    assert len(result.best.hidden) == 1
    assert max(len(trial.dag.hidden) for trial in result.history) == 1


def test_a_refinement_that_is_too_large_costs_its_proposal_only(monkeypatch):
    monkeypatch.setattr(inventing, "structural_em", Mock(side_effect=TooLarge("too many states")))
    result = lk.search(one_cause(100), 1, seed=0, target=0.5)
    assert not result.best.hidden


def test_an_interrupt_among_the_columns_of_a_proposal_ends_the_search(monkeypatch):
    first = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(local_trials.FamilyScores, "scores_of_additions", first)
    result = lk.search(one_cause(100), 1, seed=0, target=0.5)
    assert first.call_count >= 1
    assert result.status is Status.INTERRUPTED


@pytest.mark.parametrize("seed", range(4))
def test_constraints_hold_for_structures_with_hidden_variables(seed):
    tables = {"g": [[0.5, 0.5]], "d": [[0.9, 0.1], [0.5, 0.5], [0.4, 0.6], [0.05, 0.95]]}
    table = drawn("g[2] -> a b c d; e; e -> d", {**tables, "e": [[0.4, 0.6]]}, 600, seed)
    options = {"required": "a -> b", "forbidden": "c -> d; d -> c", "max_parents": 2, "tiers": [["d"], ["e", "c"]]}
    rules = Constraints.from_options(table.columns, **options)
    result = lk.search(table, hidden=1, seed=0, target=1.0, **options)
    for trial in result.history:
        assert rules.extended(trial.dag).holds(trial.dag)
        assert "a" in trial.dag.parents("b")
        assert not {("c", "d"), ("d", "c")} & set(trial.dag.edges)
        assert max(len(trial.dag.parents(name)) for name in trial.dag.nodes) <= 2


def sampled(value, error, status=Status.SAMPLED):
    return Evidence(value, 0.0, error, Kind.ESTIMATE, "ais", status=status)


def test_a_difference_counts_beyond_its_standard_error():
    exact = Evidence(-100.0, 0.0, 0.0, Kind.EXACT, "ais")
    assert is_better(sampled(-99.0, 0.3), exact)
    assert not is_better(sampled(-99.5, 0.3), exact)
    assert not is_better(sampled(-98.0, 0.3, Status.UNTRUSTED), exact)
    assert is_better(sampled(-96.0, 0.3, Status.UNTRUSTED), exact)
    assert not is_better(sampled(-90.0, 0.3, Status.INTERRUPTED), exact)


def test_decisions_weigh_the_nominal_error_of_a_value_that_is_not_trusted():
    """Its error is not shown, but a wide one must still count for more than the margin of doubt."""
    exact, wide = Evidence(-100.0, 0.0, 0.0, Kind.EXACT, "ais"), sampled(-95.0, 3.0, Status.UNTRUSTED)
    assert (wide.std_error, wide.nominal_error) == (None, 3.0)
    assert not is_better(wide, exact)
    assert is_better(replace(wide, log_z=-93.0), exact)
    assert is_far_below(sampled(-107.5, 1.0, Status.UNTRUSTED), exact)
    assert not is_far_below(sampled(-106.5, 1.0, Status.UNTRUSTED), exact)
    assert is_far_below(sampled(-106.1, 0.2, Status.UNTRUSTED), exact)
    assert not is_far_below(sampled(-105.9, 0.2, Status.UNTRUSTED), exact)


def test_prior_odds_count_as_evidence_does():
    exact = Evidence(-100.0, 0.0, 0.0, Kind.EXACT, "ais")
    assert not is_better(sampled(-97.0, 0.3), exact, -math.log(20.0))
    assert is_better(sampled(-96.0, 0.3), exact, -math.log(20.0))
    assert is_better(sampled(-101.0, 0.1), exact, math.log(20.0))


def test_a_first_look_is_the_last_one_only_far_below():
    rival = sampled(-100.0, 0.1)
    assert is_far_below(sampled(-108.0, 1.0), rival)
    assert not is_far_below(sampled(-106.0, 1.0), rival)
    assert is_far_below(sampled(-106.0, 1.0), rival, -2.0)
    assert not is_far_below(sampled(-108.0, 1.0), rival, 2.0)
    assert not is_far_below(sampled(-90.0, 1.0), rival)


def test_the_structure_prior_decides_and_is_told():
    table = one_cause(300)
    options = {"hidden": 1, "seed": 0, "target": 0.5}
    plain = lk.search(table, **options)
    assert str(plain.structure_prior) == "hidden:0.25"
    against = lk.search(table, **options, structure_prior=("hidden", 1e-30))
    assert plain.best.hidden
    assert not against.best.hidden
    assert against.posterior.hidden_probabilities()[0] == pytest.approx(1.0)
    priors = {len(candidate.dag.hidden): candidate.prior for candidate in plain.posterior}
    assert priors[0] / priors[1] == pytest.approx(4.0)


def test_two_attitudes_need_two_causes_where_answers_are_indicators():
    tables = {"g": [[0.5, 0.5]], "h": [[0.75, 0.25], [0.25, 0.75]]}
    table = drawn("g[2] -> a b h; h[2] -> c d", tables, 1000)
    found = lk.search(table, "auto", seed=0, target=1.0, indicators=True)
    groups = {frozenset(found.best.children(name)) - {*found.best.hidden} for name in found.best.hidden}
    assert groups == {frozenset("ab"), frozenset("cd")}
    assert found.posterior.hidden_probabilities()[1] < 0.1
    for trial in found.history:
        assert not any(parent in table.columns for parent, _ in trial.dag.edges)


def test_turned_parents_and_thinned_arcs():
    dag = lk.Dag.parse("a b c; a -> h[2] b; h -> b c")
    turned = with_turned_parents(dag, "h")
    assert set(turned.edges) == {("h", "a"), ("a", "b"), ("h", "b"), ("h", "c")}
    assert with_turned_parents(turned, "h") is None
    table = one_cause()
    judge = Judge(table, lk.Prior.symmetric(1.0), seed=0)
    rules = Constraints.from_options(table.columns)
    start = lk.Dag.parse("a b c d; h[2] -> a b c d; a -> b; c -> d")
    found = thinned(judge, rules, start, ["h"])
    assert found.edges == lk.Dag.parse("a b c d; h[2] -> a b c d").edges
    kept = Constraints.from_options(table.columns, required="a -> b")
    found = thinned(judge, kept, start, ["h"])
    assert ("a", "b") in found.edges


def test_a_hidden_variable_takes_arcs_over_from_its_neighbours():
    dag = lk.Dag.parse("a b c d e; h[2] -> a b c; a b -> d; e -> b c")
    (below,) = with_hidden_instead(dag, "h", "d")
    assert set(below.edges) == {("h", "a"), ("h", "b"), ("h", "c"), ("h", "d"), ("e", "b"), ("e", "c")}
    (above,) = with_hidden_instead(dag, "h", "e")
    assert set(above.edges) == {("e", "h"), ("h", "a"), ("h", "b"), ("h", "c"), ("a", "d"), ("b", "d")}
    assert with_hidden_instead(dag, "h", "a") == [], "already a neighbour"
    assert with_hidden_instead(lk.Dag.parse("a b c d; h[2] -> a b c; d"), "h", "d") == [], "nothing to take over"
    cyclic = lk.Dag.parse("a b c d; a -> d; d -> c; c -> h[2]; h -> b; a -> h")
    assert [made.parents("h") for made in with_hidden_instead(cyclic, "h", "d")] == [("c", "a", "d")]


def test_a_hopeless_structure_is_not_sampled():
    table = one_cause()
    judge = Judge(table, lk.Prior.symmetric(1.0), seed=0, target=0.5)
    good, bad = lk.Dag.parse("a b c d; h[2] -> a b c d"), lk.Dag.parse("a b c d; h[2] -> a b")
    assert judge.is_hopeless(bad, good)
    assert not judge.is_hopeless(good, bad)


def test_data_that_cannot_carry_hidden_variables_are_refused_with_the_reason():
    few = lk.Table.from_rows([(0, 0, 1), (1, 1, 0)] * 2, columns=["a", "b", "c"])
    with pytest.raises(lk.LurkingError, match=r"3 columns are too few: 2 hidden variables .* need 4"):
        check_room(few, 2)
    with pytest.raises(lk.LurkingError, match="has 7 parameters, and there are 4 rows"):
        check_room(few, 1)
    with pytest.warns(lk.LurkingWarning, match="no hidden variable is tried"):
        assert room_for(few) == 0
    assert room_for(one_cause(100)) == 2


def test_proposals_keep_the_rules_and_differ():
    table = one_cause(200)
    constraints = Constraints.from_options(table.columns, required="a -> b")
    proposer = Proposer(table, constraints)
    made = proposer.proposals(lk.Dag.parse("a -> b c d; b -> c d; c -> d"))
    assert made
    forms = [proposal.dag.canonical() for proposal in made]
    assert len(set(forms)) == len(forms)
    for proposal in made:
        constraints.extended(proposal.dag).check(proposal.dag)
        assert set(proposal.invented) == set(proposal.dag.hidden)
        assert lk.Problem(proposal.dag, table).dimension <= most_parameters(table)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hidden": "many"}, "hidden is 'many'; it must be 'auto' or a whole number"),
        ({"hidden": -1}, "hidden"),
        ({"hidden": 1, "score": "bic"}, "bic"),
        ({"hidden": 1, "method": "exact"}, "knows no hidden variables"),
        ({"hidden": 1, "start": "tree"}, "start is 'tree'"),
        ({"hidden": 1, "start": "g[2] -> *; h[2] -> *"}, "the start has g, h as hidden, and hidden is 1"),
        ({"hidden": 1, "time_limit": 0}, "time_limit is 0"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(lk.LurkingError, match=words):
        lk.search(one_cause(50), **options)


def test_hidden_variables_that_a_proposal_touches_come_with_all_their_neighbours():
    """Without its children the second hidden variable would be dropped as barren, and never come back."""
    current = lk.Dag.parse("h1[4] -> a b c d h2; h2[2] -> e f g")
    rows = np.random.default_rng(0).integers(0, 2, (50, 7)).tolist()
    table = lk.Table.from_rows(rows, columns=list("abcdefg"))
    rules = Constraints.from_options(table.columns)
    trials = LocalTrials(current, rules, Judge(table, 1.0), ("bd", 1.0), 4, Notebook())
    split = with_split_hidden(current, "h1", ["c", "d"], "h3")
    assert trials.concerned(Proposal(split, "test", ("h3",))) == set(current.nodes)


def test_many_states_are_tried_as_two_variables_with_few():
    current = lk.Dag.parse("h1[4] -> a b c d")
    rows = np.random.default_rng(0).integers(0, 2, (50, 4)).tolist()
    table = lk.Table.from_rows(rows, columns=list("abcd"))
    proposals = Proposer(table, Constraints.from_options(table.columns), StopFlag()).proposals(current)
    split = lk.Dag.parse("a b c d h1[2] h2[2]; h1 -> a b h2; h2 -> c d")
    assert any(each.dag.same_structure(split) for each in proposals)


def test_predictions_are_averaged_over_what_was_judged(found):
    rows = one_cause(20)
    predicted = found.posterior.predict(rows, "a", draws=0)
    assert predicted.probabilities.sum(axis=1) == pytest.approx(np.ones(20))
    network = lk.fit(found.best, one_cause(), prior=1.0, seed=0).network
    assert np.abs(predicted.probabilities - network.predict(rows, "a").probabilities).max() < 0.05
    assert len(predicted.structures) >= 1


def test_names_with_spaces_stand_in_quotes():
    dag = lk.Dag.parse('"question 1" -> h[2]; h -> "question 2" b')
    assert hidden_part(dag) == '"question 1" -> h[2] -> "question 2" b'
    assert lk.Dag.parse(hidden_part(dag)).hidden == {"h": 2}
