"""Many problems fitted together: the same fits as one by one, whatever the number of threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import lurking as lk
from lurking.graph.spaces import bipartite
from lurking.inference.problem import Problem
from lurking.kernels.program import Outcome
from lurking.learn import together
from lurking.learn.fit import fit_problem, has_fit
from lurking.learn.options import FitOptions
from lurking.learn.together import can_fit_together, fit_together


def table_of(n_rows=120, empty=0.1):
    generator = np.random.default_rng(3)
    cause = generator.random((n_rows, 1)) < 0.4
    cells = (generator.random((n_rows, 3)) < np.where(cause, 0.8, 0.3)).astype(object)
    cells[generator.random(cells.shape) < empty] = None
    return lk.Table.from_rows(cells.tolist(), ["a", "b", "c"])


TABLE = table_of()
DAGS = list(bipartite({"s": 2, "t": 3}, ["a", "b", "c"]))


def problems(table=TABLE):
    return [Problem(dag, table) for dag in DAGS]


def options(**given):
    return FitOptions(restarts=3, seed=4, **given)


@pytest.mark.parametrize("method", ["vb", "map", "ml", "map-probability"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_fits_are_those_made_one_by_one(method, workers):
    many, same = problems(), options(tol=1e-6)
    fit_together(many, method, same, workers)
    for problem in many:
        alone = fit_problem(Problem(problem.full_dag, TABLE), method, same)
        if problem.engine.program is None:
            assert not has_fit(problem, method, same), "nothing is unobserved: left to fit_problem"
            continue
        assert has_fit(problem, method, same)
        fit = fit_problem(problem, method, same)
        assert fit.spread == alone.spread
        assert fit.status is alone.status
        assert fit.n_iter == alone.n_iter
        for name in ("trace", "potentials", "counts"):
            assert np.array_equal(getattr(fit, name), getattr(alone, name))


def test_each_problem_is_announced_once_when_its_fit_is_there_and_on_the_calling_thread():
    many, heard = problems(), []

    def fitted(problem):
        assert has_fit(problem, "vb", options())
        heard.append((problem, threading.current_thread()))

    fit_together(many, "vb", options(), 2, fitted=fitted)
    assert [problem for problem, _ in heard] == [p for p in many if p.engine.program is not None]
    assert {thread for _, thread in heard} == {threading.current_thread()}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pool_of_the_user_is_used_and_not_waited_for(monkeypatch, workers):
    seen, release = set(), threading.Event()
    climb = together.climb_together

    def noticed(*arguments):
        seen.add(threading.current_thread().name.partition("_")[0])
        return climb(*arguments)

    monkeypatch.setattr(together, "climb_together", noticed)
    monkeypatch.setattr(together, "LEAST_CHUNK", 1)
    with ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        many = problems()
        fit_together(many, "vb", options(), workers, pool)
        assert "mine" in seen
        busy = pool.submit(release.wait, 60.0)
        others = problems()
        fit_together(others, "vb", options(), workers, pool)
        assert not busy.done()
        release.set()
    for some in (many, others):
        assert all(has_fit(p, "vb", options()) for p in some if p.engine.program is not None)


def test_climbs_of_other_threads_are_kept_when_the_calling_one_is_interrupted(monkeypatch):
    climb, caller, made = together.climb_together, threading.current_thread(), []
    some_are_made, caller_is_here = threading.Event(), threading.Event()

    def interrupts_the_caller(*arguments):
        if threading.current_thread() is caller:
            some_are_made.wait(300.0)
            caller_is_here.set()
            raise KeyboardInterrupt
        ends = climb(*arguments)
        made.extend(ends)
        some_are_made.set()
        caller_is_here.wait(300.0)
        return ends

    monkeypatch.setattr(together, "climb_together", interrupts_the_caller)
    many, same = problems(), options()
    fit_together(many, "vb", same, 2)
    assert same.stop.is_set
    whole = [own for own in made if all(end.outcome != Outcome.INTERRUPTED for end in own)]
    assert sum(has_fit(problem, "vb", same) for problem in many) == len(whole) > 0


def test_nothing_is_compiled_after_a_stop():
    same, made = options(), []

    def one_by_one():
        for problem in problems():
            made.append(problem)
            if len(made) == 3:
                same.stop.set()
            yield problem

    fit_together(one_by_one(), "vb", same, 2)
    assert len(made) <= 4


def test_large_problems_are_left_alone(monkeypatch):
    monkeypatch.setattr(together, "ONE_CALL", 1.0)
    many = problems()
    fit_together(many, "vb", options(), 2)
    assert not any(has_fit(problem, "vb", options()) for problem in many)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_keeps_finished_fits_and_sets_the_flag(workers):
    many, heard = problems(), []

    def fitted(problem):
        heard.append(problem)
        if len(heard) == 5:
            raise KeyboardInterrupt

    same = options()
    fit_together(many, "vb", same, workers, fitted=fitted)
    assert same.stop.is_set
    assert len(heard) < len(many)
    assert all(has_fit(problem, "vb", same) for problem in heard)
    for problem in many:
        if has_fit(problem, "vb", same):
            alone = fit_problem(Problem(problem.full_dag, TABLE), "vb", options())
            assert fit_problem(problem, "vb", same).objective == alone.objective


def test_an_error_on_another_thread_is_raised(monkeypatch):
    def fails(*_arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(together, "climb_together", fails)
    with pytest.raises(MemoryError, match="no room"):
        fit_together(problems(), "vb", options(), 2)


def test_what_cannot_share_a_call():
    assert can_fit_together(options())
    assert not can_fit_together(options(tournament=4))
    assert not can_fit_together(options(max_iter=10**6))
    assert not can_fit_together(options(init={"s": [[0.5, 0.5]]}))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_keeps_structures_with_all_their_fits(monkeypatch, workers):
    monkeypatch.setattr("lurking.search.scoring.SHORT_WINDOW", 8)

    class Impatient:
        def begin(self, what, total): ...

        def update(self, done):
            if done == 12:
                raise KeyboardInterrupt

        def end(self): ...

    given = {"scores": ["vb", "cs"], "restarts": 2, "seed": 1}
    comparison = lk.compare(DAGS, TABLE, **given, workers=workers, progress=Impatient(), keep_interrupted=True)
    assert comparison.interrupted
    assert 12 <= len(comparison.rows) < len(DAGS)
    expected = {row.name: row for row in lk.compare(DAGS, TABLE, **given).rows}
    for row in comparison.rows:
        assert row.evidences["cs"].log_z == expected[row.name].evidences["cs"].log_z


def test_comparison_does_not_depend_on_threads_nor_on_windows(monkeypatch):
    def values(**given):
        comparison = lk.compare(DAGS, TABLE, scores=["vb", "cs"], restarts=2, seed=1, **given)
        return [(row.name, row.evidences["vb"].log_z, row.evidences["cs"].log_z) for row in comparison.rows]

    expected = values(workers=1)
    assert [name for name, _, _ in expected] == [str(dag) for dag in DAGS]
    assert values(workers=3) == expected
    monkeypatch.setattr("lurking.search.scoring.WINDOW", 9)
    assert values(workers=2) == expected
    monkeypatch.setattr("lurking.search.scoring.LEAST_WINDOW", 10)
    assert values(workers=2) == expected
