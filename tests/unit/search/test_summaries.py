"""Tables in which parents count by groups of their states."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import stirling2

import lurking as lk
from lurking.graph.structure_priors import UNIFORM, StructurePrior
from lurking.models.prior import Prior
from lurking.runtime.executor import StopFlag
from lurking.search.constraints import Constraints
from lurking.search.contest import Contest
from lurking.search.families import FamilyScores, score_of
from lurking.search.judge import Judge
from lurking.search.structural_em import completion_of
from lurking.search.summaries import (
    Grouping,
    SummarisedScores,
    Summary,
    best_grouping,
    best_summarised,
    best_summary,
)

K2, BDEU = Prior.symmetric(1.0), Prior.bdeu(2.0)


def function_of_parents(rows: int, seed: int) -> lk.Table:
    """Draw c, of four values, by whether the three-valued a and b are equal; d goes its own way."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, (2, rows))
    c = np.where(a == b, rng.integers(1, 4, rows), rng.integers(0, 2, rows))
    d = rng.integers(0, 2, rows)
    return lk.Table.from_rows(
        list(zip(a.tolist(), b.tolist(), c.tolist(), d.tolist(), strict=True)), columns=list("abcd")
    )


def counts_of(table: lk.Table, names: str) -> np.ndarray:
    cells = np.zeros([table[name].cardinality for name in names])
    np.add.at(cells, tuple(table[name].codes for name in names), 1.0)
    return cells


@pytest.mark.parametrize(("prior", "score", "weight"), [(K2, "bd", 1.0), (BDEU, "bdeu", 2.0)])
def test_gain_is_that_of_a_table_with_the_groups_as_a_column(prior, score, weight):
    table = function_of_parents(400, 0)
    gain, groups, grouped = best_grouping(counts_of(table, "abdc"), (0, 1), prior)
    assert sorted(sorted(group) for group in groups) == [[0, 4, 8], [1, 2, 3, 5, 6, 7]]
    assert grouped.shape == (2, 2, 4)
    same = table["a"].codes == table["b"].codes
    rows = zip(same.tolist(), *(table[name].codes.tolist() for name in "abcd"), strict=True)
    scores = FamilyScores(lk.Table.from_rows(list(rows), columns=["g", "a", "b", "c", "d"]), score, weight)
    expected = scores.score(3, (0, 4)) - scores.score(3, (1, 2, 4)) - math.log(8.0) - math.log(stirling2(9, 2))
    assert gain == pytest.approx(expected, abs=1e-9)
    assert np.array_equal(np.sort(grouped.sum(axis=(1, 2))), np.sort([same.sum(), (~same).sum()]))


def test_no_partition_of_few_states_gains_more():
    """Merging two groups at a time finds the best of all partitions of four states here."""
    counts = np.asarray([[9.0, 2.0], [7.0, 3.0], [1.0, 6.0], [2.0, 12.0]])

    def log_evidence(cells: np.ndarray) -> float:
        return sum(math.lgamma(2) - math.lgamma(2 + row.sum()) + sum(map(math.lgamma, 1 + row)) for row in cells)

    best = -math.inf
    for labels in itertools.product(range(4), repeat=4):
        if sorted(set(labels)) == list(range(max(labels) + 1)) and max(labels) < 3:
            k = max(labels) + 1
            cells = np.asarray([counts[np.asarray(labels) == group].sum(axis=0) for group in range(k)])
            best = max(best, log_evidence(cells) - log_evidence(counts) - math.log(3 * stirling2(4, k)))
    assert best_grouping(counts, (0,), K2)[0] == pytest.approx(best, abs=1e-9)


def test_the_prior_of_the_groups():
    """Without data only −ln (J − 1) − ln S(J, k) is left of a gain, and k = 1 is the cheapest."""
    gain, _, grouped = best_grouping(np.zeros((3, 2, 2)), (0, 1), K2)
    assert (gain, grouped.shape) == (pytest.approx(-math.log(5.0)), (1, 2))


def test_every_step_pays_for_its_prior():
    """Two steps, d into one group and a × b into two, in either order: the gain is found anew from the groups."""
    table = function_of_parents(2000, 1)
    summary = best_summary("c", ["a", "b", "d"], counts_of(table, "abdc"), K2)
    assert sorted((each.parents, len(each.groups)) for each in summary.groupings) == [(("a", "b"), 2), (("d",), 1)]
    same = table["a"].codes == table["b"].codes
    rows = zip(same.tolist(), *(table[name].codes.tolist() for name in "abcd"), strict=True)
    scores = FamilyScores(lk.Table.from_rows(list(rows), columns=["g", "a", "b", "c", "d"]), "bd", 1.0)
    more_evidence = scores.score(3, (0,)) - scores.score(3, (1, 2, 4))
    # 3 + 3 choices of one or two of three parents, 2 + 1 of two; 8 numbers of groups of 9 joint states, 1 of 2 states.
    pairs = math.log(8.0 * stirling2(9, 2))
    first_d, first_pair = math.log(2 * 6) + math.log(2 * 6) + pairs, math.log(2 * 6) + pairs + math.log(2 * 3)
    differences = [abs(summary.gain - (more_evidence - paid)) for paid in (first_d, first_pair)]
    assert min(differences) < 1e-8


def summaries_of(table: lk.Table, structure: str, nodes: str = "abcd") -> list[Summary]:
    judge = Judge(table, 1.0)
    dag = lk.Dag.parse(structure)
    scores = SummarisedScores(completion_of(judge.fit(dag)), K2, nodes)
    return list(scores.summaries_of(dag))


def test_a_function_of_the_parents_is_recognised():
    (found,) = summaries_of(function_of_parents(2000, 1), "a b d -> c")
    assert str(found) == "c given nothing of d, a × b in 2 groups"
    assert found.gain > 20.0
    alone, both = found.groupings
    assert alone == Grouping(("d",), (((0,), (1,)),))
    assert sorted(sorted(group) for group in both.groups)[0] == [(0, 0), (1, 1), (2, 2)]


def test_rows_that_differ_are_left_alone():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 3000)
    rows = [(int(x), bool(y)) for x, y in zip(a, rng.random(3000) < np.asarray([0.1, 0.5, 0.9])[a], strict=True)]
    table = lk.Table.from_rows(rows, columns=["a", "c"])
    assert summaries_of(table, "a -> c", "ac") == []


def test_empty_cells_count_as_expected():
    """Half the cells of a parent are emptied: the summary is still found, with a smaller gain."""
    table = function_of_parents(2000, 1)
    rows = [list(row) for row in zip(*(table[name].codes.tolist() for name in "abcd"), strict=True)]
    full = summaries_of(lk.Table.from_rows(rows, columns=list("abcd")), "a b -> c; d")
    for row in rows[::2]:
        row[0] = None
    holes = summaries_of(lk.Table.from_rows(rows, columns=list("abcd")), "a b -> c; d")
    assert [each.node for each in holes] == ["c"]
    assert 0.0 < holes[0].gain < full[0].gain


PLAIN, MEDIATED = lk.Dag.parse("a b -> c"), lk.Dag.parse("a b -> h[2] -> c")


@pytest.fixture(scope="module")
def judge():
    return Judge(function_of_parents(2000, 1).drop(["d"]), 1.0, target=0.2)


def contest_of(judge: Judge, prior: StructurePrior = UNIFORM) -> Contest:
    return Contest(judge, prior, Constraints.from_options(judge.table.columns))


def test_a_hidden_variable_must_do_better_than_a_summary(judge):
    """The mediator of a function of the parents has the higher evidence, and is not kept all the same."""
    contest = contest_of(judge)
    contest.enter(PLAIN, "start", judge.evidence(PLAIN))
    contest.enter(MEDIATED, "trial", judge.evidence(MEDIATED))
    assert judge.evidence(MEDIATED).log_z > judge.evidence(PLAIN).log_z + 3.0
    assert contest.now == PLAIN
    assert "without it by c given a × b in 2 groups" in str(contest.history[1])
    assert contest.posterior().best.dag == PLAIN
    assert contest.posterior().hidden_probabilities()[0] > 0.99


def test_one_kept_at_first_can_be_outdone_later(judge):
    contest = contest_of(judge)
    contest.enter(MEDIATED, "trial", judge.evidence(MEDIATED))
    contest.enter(PLAIN, "less", judge.evidence(PLAIN))
    assert contest.now == PLAIN
    assert [trial.outdone_by is not None for trial in contest.history] == [True, False]
    assert contest.posterior().best.dag == PLAIN


def test_arcs_that_summaries_need_are_paid_for(judge):
    """With one arc alone there is nothing to group; b -> c is added for the summary, and has its prior probability."""
    alone = lk.Dag.parse("b; a -> c")
    free, dear = contest_of(judge), contest_of(judge, StructurePrior.parse("edges:1e-3"))
    assert free.advantage(alone, MEDIATED) > 50.0
    lost = free.advantage(alone, MEDIATED) - dear.advantage(alone, MEDIATED)
    assert lost == pytest.approx(-math.log(1e-3), abs=1e-9)


def test_other_arcs_are_found_for_a_summary():
    """Whichever way the arcs point at the beginning, a and b are the parents in the end."""
    table = function_of_parents(2000, 1)
    dag = lk.Dag.parse("d; b c -> a")
    completion = completion_of(Judge(table, 1.0).fit(dag))
    rules = Constraints.from_options(table.columns)
    found = best_summarised(completion, dag, "abc", K2, rules, StopFlag())
    assert sorted(found.dag.edges) == [("a", "c"), ("b", "c")]
    assert [summary.node for summary in found.summaries] == ["c"]
    scores = FamilyScores(table, "bd", 1.0)
    plain = score_of(scores, found.dag) - score_of(scores, dag)
    assert found.gain == pytest.approx(plain + found.summaries[0].gain, abs=1e-6)
    bound = Constraints.from_options(table.columns, required="c -> a")
    assert ("c", "a") in best_summarised(completion, dag, "abc", K2, bound, StopFlag()).dag.edges


def test_both_structures_may_have_summaries():
    """A hidden cause of d, e, f and c is kept, though c has a table with a summary in either structure."""
    rng = np.random.default_rng(1)
    n = 1000
    a, b = rng.integers(0, 4, (2, n))
    h = rng.random(n) < 0.5
    raised = (np.maximum(a, b) > 1) ^ (h & (rng.random(n) < 0.7))
    c = np.where(rng.random(n) < 0.7, np.where(raised, 3, 0), rng.integers(0, 4, n))
    others = [np.where(rng.random(n) < 0.8, h, ~h).astype(int) for _ in range(3)]
    rows = np.stack([a, b, c, *others], axis=1).tolist()
    table = lk.Table.from_rows(rows, columns=list("abcdef"))
    judge = Judge(table, 1.0)
    plain, truth = lk.Dag.parse("a b -> c; d -> e f c; e -> f"), lk.Dag.parse("a b h[2] -> c; h -> d e f")
    contest = Contest(judge, UNIFORM, Constraints.from_options(table.columns))
    contest.enter(plain, "start", judge.evidence(plain))
    contest.enter(truth, "trial", judge.evidence(truth))
    assert contest.now == truth
    assert (
        judge.evidence(truth).log_z - judge.evidence(plain).log_z
        < best_summarised(completion_of(judge.fit(plain)), plain, "abcdef", K2, contest.constraints, StopFlag()).gain
    )
