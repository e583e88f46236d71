"""Tables in which parents count by groups of their states."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import stirling2

import lurking as lk
from lurking.graph.structure_priors import UNIFORM
from lurking.models.discrete.prior import Prior
from lurking.runtime.executor import StopFlag
from lurking.search.constraints import Constraints
from lurking.search.contest import Contest
from lurking.search.families import FamilyScores, score_of
from lurking.search.judge import Judge
from lurking.search.structural_em import completion_of
from lurking.search.summaries import SummarisedScores, Summary, best_grouping, best_summarised

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
    gain, grouped = best_grouping(counts_of(table, "abdc"), (0, 1), prior)
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


def test_the_prior_of_the_groups_sums_to_one():
    """Every gain carries −ln (J − 1) − ln S(J, k); without data only that is left, and k = 1 is the cheapest."""
    gain, grouped = best_grouping(np.zeros((3, 2, 2)), (0, 1), K2)
    assert (gain, grouped.shape) == (pytest.approx(-math.log(5.0)), (1, 2))
    masses = [stirling2(6, k) * math.exp(-math.log(5.0) - math.log(stirling2(6, k))) for k in range(1, 6)]
    assert sum(masses) == pytest.approx(1.0)


def summaries_of(table: lk.Table, structure: str, nodes: str = "abcd") -> list[Summary]:
    judge = Judge(table, 1.0)
    dag = lk.Dag.parse(structure)
    scores = SummarisedScores(completion_of(judge.fit(dag)), K2, lk.Dag(["elsewhere"]))
    place = {name: k for k, name in enumerate(scores.variables)}
    found = (scores.summary(place[name], tuple(sorted(map(place.get, dag.parents(name))))) for name in nodes)
    return [summary for summary in found if summary is not None]


def test_a_function_of_the_parents_is_recognised():
    (found,) = summaries_of(function_of_parents(2000, 1), "a b d -> c")
    assert (found.node, found.groups) == ("c", ((("d",), 1), (("a", "b"), 2)))
    assert found.gain > 20.0
    assert str(found) == f"c given nothing of d, a × b in 2 groups (+{found.gain:.1f})"


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


def test_a_hidden_variable_must_do_better_than_a_summary():
    """The mediator of a function of the parents has the higher evidence, and is not kept all the same."""
    table = function_of_parents(2000, 1).drop(["d"])
    judge = Judge(table, 1.0, target=0.2)
    plain, hidden = lk.Dag.parse("a b -> c"), lk.Dag.parse("a b -> h[2] -> c")
    contest = Contest(judge, UNIFORM, Constraints.from_options(table.columns))
    contest.enter(plain, "start", judge.evidence(plain))
    contest.enter(hidden, "trial", judge.evidence(hidden))
    assert judge.evidence(hidden).log_z > judge.evidence(plain).log_z + 3.0
    assert contest.now == plain
    assert "summaries do as well: c given a × b in 2 groups" in str(contest.history[1])
    assert [candidate.dag for candidate in contest.posterior()] == [plain]


def test_one_kept_at_first_can_be_outdone_later():
    table = function_of_parents(2000, 1).drop(["d"])
    judge = Judge(table, 1.0, target=0.2)
    plain, hidden = lk.Dag.parse("a b -> c"), lk.Dag.parse("a b -> h[2] -> c")
    contest = Contest(judge, UNIFORM, Constraints.from_options(table.columns))
    contest.enter(hidden, "trial", judge.evidence(hidden))
    contest.enter(plain, "less", judge.evidence(plain), simpler=True)
    assert contest.now == plain
    assert [trial.outdone_by is not None for trial in contest.history] == [True, False]
    assert [candidate.dag for candidate in contest.posterior()] == [plain]


def test_other_arcs_are_found_for_a_summary():
    """Whichever way the arcs among the neighbours of the hidden variable point, a and b are the parents in the end."""
    table = function_of_parents(2000, 1)
    dag, other = lk.Dag.parse("d; b c -> a"), lk.Dag.parse("d; c -> h[3] -> a b")
    completion = completion_of(Judge(table, 1.0).fit(dag))
    rules = Constraints.from_options(table.columns)
    found = best_summarised(completion, dag, other, K2, rules, StopFlag())
    assert sorted(found.dag.edges) == [("a", "c"), ("b", "c")]
    assert [summary.node for summary in found.summaries] == ["c"]
    scores = FamilyScores(table, "bd", 1.0)
    plain = score_of(scores, found.dag) - score_of(scores, dag)
    assert found.gain == pytest.approx(plain + found.summaries[0].gain, abs=1e-6)
    bound = Constraints.from_options(table.columns, required="c -> a")
    assert ("c", "a") in best_summarised(completion, dag, other, K2, bound, StopFlag()).dag.edges


def test_a_table_that_both_structures_have_is_left_as_it_is():
    table = function_of_parents(2000, 1)
    dag, other = lk.Dag.parse("a b -> c; d"), lk.Dag.parse("a b -> c; h[2] -> a b d")
    completion = completion_of(Judge(table, 1.0).fit(dag))
    rules = Constraints.from_options(table.columns, forbidden="c -> a b; a -> b d; b -> a d; d -> a b c")
    found = best_summarised(completion, dag, other, K2, rules, StopFlag())
    assert (found.dag, found.summaries, found.gain) == (dag, (), 0.0)
