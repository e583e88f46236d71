"""Greedy and tabu search: every step is the best one, constraints hold, and nothing ends below its start."""

import itertools

import networkx as nx
import numpy as np
import pytest

import lurking as lk
from lurking.expfam.dirichlet import Dirichlet
from lurking.graph.moves import MoveKind
from lurking.graph.spaces import all_dags
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Silent
from lurking.search.constraints import Constraints
from lurking.search.exhaustive import optimum
from lurking.search.families import FamilyScores, score_of
from lurking.search.greedy import ClimbRules, climb
from lurking.search.trees import tree


@pytest.fixture(scope="module")
def table():
    """Six variables with a collider, a chain and one that stands alone."""
    rng = np.random.default_rng(4)
    n = 400
    a, b = rng.integers(0, 2, n), rng.integers(0, 3, n)
    c = np.where(rng.random(n) < 0.85, (a + b) % 2, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.8, c, rng.integers(0, 2, n))
    e = np.where(rng.random(n) < 0.7, d + b, rng.integers(0, 4, n))
    f = rng.integers(0, 2, n)
    return lk.Table.from_array(np.stack([a, b, c, d, e, f], axis=1), columns=list("abcdef"))


def search(table, score="bdeu", start=None, rules=None, **constraints):
    scorer = FamilyScores(table, score)
    allowed = Constraints.from_options(table.columns, **constraints)
    return climb(scorer, start or lk.Dag(table.columns), allowed, rules or ClimbRules())


def edited(edges, move):
    edges = set(edges)
    arc = (move.parent, move.child)
    if move.kind is MoveKind.ADD:
        return edges | {arc}
    edges -= {arc}
    return edges | {arc[::-1]} if move.kind is MoveKind.REVERSE else edges


def all_neighbours(edges, names):
    for x, y in itertools.permutations(names, 2):
        for changed in (
            edges | {(x, y)},
            edges - {(x, y)},
            (edges - {(x, y)}) | {(y, x)} if (x, y) in edges else edges,
        ):
            if changed != edges and nx.is_directed_acyclic_graph(nx.DiGraph(list(changed))):
                yield changed


@pytest.mark.parametrize("score", ["bd", "bdeu", "bic"])
def test_every_step_is_the_best_one(table, score):
    scorer = FamilyScores(table, score)
    found = search(table, score)
    edges = set()
    for step in found.history:
        best = max(score_of(scorer, lk.Dag(table.columns, sorted(e))) for e in all_neighbours(edges, table.columns))
        edges = edited(edges, step.move)
        assert step.score == pytest.approx(best, rel=1e-12)
        assert step.score == pytest.approx(score_of(scorer, lk.Dag(table.columns, sorted(edges))), rel=1e-12)
    assert set(found.best.edges) == edges
    assert found.status is Status.LOCAL_OPTIMUM
    assert found.score == pytest.approx(score_of(scorer, found.best), rel=1e-12)
    assert not any(
        score_of(scorer, lk.Dag(table.columns, sorted(e))) > found.score + 1e-6
        for e in all_neighbours(edges, table.columns)
    )


def test_only_changed_families_are_scored_again(table):
    found = search(table)
    # At first every pair and every variable alone; then at most one column for each changed family.
    assert found.n_evaluated <= 6 * 5 + 6 + len(found.history) * 2 * 5


def test_tabu_leaves_a_local_optimum_and_never_returns(table):
    plain = search(table)
    found = search(table, rules=ClimbRules(patience=30))
    assert found.history[: len(plain.history)] == plain.history
    assert len(found.history) >= len(plain.history) + 30
    assert found.score >= plain.score
    edges, seen = frozenset(), {frozenset()}
    for step in found.history:
        edges = frozenset(edited(edges, step.move))
        assert edges not in seen
        seen.add(edges)


def test_restarts_are_seeded_and_only_help(table):
    rules = ClimbRules(restarts=6, seed=3)
    found = search(table, rules=rules)
    again = search(table, rules=ClimbRules(restarts=6, seed=3, workers=3))
    assert found.history == again.history
    assert found.n_evaluated == again.n_evaluated
    assert found.best == again.best
    assert found.score >= search(table).score - 1e-9
    assert search(table, rules=ClimbRules(restarts=6, seed=4)).history != found.history
    assert {step.climb for step in found.history} <= set(range(7))


def test_the_best_of_all_structures_of_four_variables(table):
    four = table.select(["a", "b", "c", "e"])
    for score in ("bd", "bdeu"):
        scorer = FamilyScores(four, score)
        best = max(score_of(scorer, dag) for dag in all_dags(four.columns))
        assert search(four, score, rules=ClimbRules(patience=20, restarts=5)).score == pytest.approx(best, rel=1e-12)


def test_never_below_its_start(table):
    best = search(table, rules=ClimbRules(patience=20, restarts=5))
    again = search(table, start=best.best, rules=ClimbRules(patience=5, restarts=3, seed=9))
    assert again.score >= best.score - 1e-9
    stop = StopFlag()
    stop.set()
    full = lk.Dag(table.columns, list(itertools.combinations(table.columns, 2)))
    stopped = search(table, start=full, rules=ClimbRules(stop=stop))
    assert (stopped.best, stopped.status, stopped.history) == (full, Status.INTERRUPTED, ())
    assert stopped.score == pytest.approx(score_of(FamilyScores(table, "bdeu"), full), rel=1e-12)


def test_time_limit_and_stop_return_the_best_so_far(table):
    found = search(table, rules=ClimbRules(time_limit=0.0, restarts=10**6))
    assert found.status is Status.TIME_LIMIT
    assert found.history == ()
    stop = StopFlag()

    class Stopping(Silent):
        def update(self, done):
            if done == 3:
                stop.set()

    found = search(table, rules=ClimbRules(restarts=10**5, stop=stop, progress=Stopping()))
    assert found.status is Status.INTERRUPTED
    assert found.score >= search(table).score - 1e-9


def test_an_interrupt_returns_the_best_so_far(table):
    class Impatient(Silent):
        def update(self, done):
            if done == 2:
                raise KeyboardInterrupt

    found = search(table, rules=ClimbRules(restarts=50, progress=Impatient()))
    assert found.status is Status.INTERRUPTED
    assert found.score >= search(table).score - 1e-9


@pytest.mark.parametrize("patience", [0, 15])
def test_constraints_hold(table, patience):
    required, forbidden = {("f", "a")}, {("c", "d"), ("d", "c")}
    start = lk.Dag(table.columns, [("f", "a")])
    found = search(
        table,
        start=start,
        rules=ClimbRules(patience=patience, restarts=5),
        required=required,
        forbidden=forbidden,
        tiers=[["e"], ["b"]],
        max_parents=2,
    )
    edges = set(found.best.edges)
    assert required <= edges
    assert not forbidden & edges
    assert ("b", "e") not in edges
    assert max(len(found.best.parents(name)) for name in table.columns) <= 2
    assert edges != required


def test_hidden_variables_of_the_start_stay_hidden(table):
    start = lk.Dag(table.columns, (), {"f": 2})
    assert dict(search(table, start=start).best.hidden) == {"f": 2}


def test_no_rows_and_one_variable():
    nothing = lk.Table.from_rows([], ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    assert search(nothing, rules=ClimbRules(restarts=2)).score == 0.0
    single = lk.Table.from_rows([(0,), (1,)], ["a"])
    found = search(single, rules=ClimbRules(patience=3, restarts=2))
    assert found.history == ()
    assert found.status is Status.LOCAL_OPTIMUM


def test_the_best_tree(table):
    scorer = FamilyScores(table, "bdeu")
    found = tree(scorer, Constraints.from_options(table.columns))
    best = max(
        sum(scorer.score(y, (x,)) - scorer.score(y, ()) for x, y in edges)
        for k in range(1, 6)
        for edges in itertools.combinations(itertools.combinations(range(6), 2), k)
        if nx.is_forest(nx.Graph(edges))
    )
    empty = score_of(scorer, lk.Dag(table.columns))
    assert score_of(scorer, found) == pytest.approx(empty + best, rel=1e-12)
    assert all(len(found.parents(name)) <= 1 for name in table.columns)


def test_the_tree_keeps_constraints(table):
    rules = Constraints.from_options(table.columns, required="f -> a", forbidden="c -> d; d -> c", max_parents=1)
    found = tree(FamilyScores(table, "bdeu"), rules)
    rules.check(found)
    assert ("f", "a") in found.edges


def test_a_restart_walks_in_the_class_and_then_takes_arcs_away(table):
    """Under BDeu the reversals at the beginning of a restart keep the best score; deletions follow, then the climb."""
    found = search(table, rules=ClimbRules(restarts=8, perturbation=2))
    walked = 0
    for number in range(1, 9):
        steps = [step for step in found.history if step.climb == number]
        best = max(step.score for step in found.history if step.climb < number)
        turns = list(itertools.takewhile(lambda step: step.move.kind is MoveKind.REVERSE, steps))
        walked += len(turns)
        assert all(step.score == pytest.approx(best, abs=1e-7) for step in turns)
        rest = steps[len(turns) :]
        taken = list(itertools.takewhile(lambda step: step.move.kind is MoveKind.DELETE, rest))
        scores = [step.score for step in rest[len(taken) :]]
        assert scores == sorted(scores)
    assert walked > 0


class SoftScores:
    """A scorer of fractional counts that knows no table: a joint distribution over the variables times n."""

    def __init__(self, joint, n):
        self.joint, self.n = joint, n
        self.variables = tuple(f"v{k}" for k in range(joint.ndim))
        self.cardinalities = joint.shape
        self.n_evaluated = 0

    def score(self, node, parents):
        self.n_evaluated += 1
        others = tuple(k for k in range(self.joint.ndim) if k not in (node, *parents))
        counts = self.n * np.moveaxis(self.joint, node, -1).sum(axis=tuple(k - (k > node) for k in others))
        counts = counts.reshape(-1, self.cardinalities[node])
        rows = np.arange(0, counts.size + 1, counts.shape[1])
        return Dirichlet(rows).log_evidence(np.ones(counts.size), counts.ravel())

    def scores_of_additions(self, node, parents, candidates):
        return np.array([self.score(node, tuple(sorted((*parents, int(c))))) for c in candidates])

    def scores_of_deletions(self, node, parents):
        return np.array([self.score(node, parents[:k] + parents[k + 1 :]) for k in range(len(parents))])


def test_any_scorer_drives_the_search():
    joint = np.random.default_rng(5).dirichlet(np.full(24, 0.5)).reshape(2, 3, 2, 2)
    scorer = SoftScores(joint, 77.7)
    start = lk.Dag(scorer.variables, [("v0", "v1")], {"v0": 2})
    found = climb(scorer, start, Constraints.from_options(scorer.variables), ClimbRules(patience=10, restarts=10))
    best = max(score_of(scorer, dag) for dag in all_dags(scorer.variables))
    assert found.score == pytest.approx(best, rel=1e-12)
    assert dict(found.best.hidden) == {"v0": 2}
    exact = optimum(scorer, Constraints.from_options(scorer.variables))
    assert exact.score == pytest.approx(best, rel=1e-12)
