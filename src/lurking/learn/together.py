"""Fitting many small problems at once: Python prepares the next ones while kernels climb on the last ones.

A climb on a small problem takes a fraction of a millisecond, less than it takes to compile the problem and to hand a
thread its work. So problems are compiled on the calling thread, one after the other, while other threads take what is
compiled in *chunks*, each of which is one kernel call without the GIL. When the calling thread has nothing left to
compile it takes chunks too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future

from lurking.errors import TooLarge
from lurking.inference.problem import Problem
from lurking.kernels.program import ClimbResult
from lurking.learn.fit import outcome, remember_fit
from lurking.learn.loop import Climber, Status, climb_together, rule_of
from lurking.learn.options import FitOptions
from lurking.learn.starts import ONE_CALL, climbing_cost, starting_points
from lurking.runtime.executor import thread_pool, worker_count
from lurking.types import FloatArray

CHUNK = 12
"""Problems whose climbs are one kernel call, at most."""
LEAST_CHUNK = 2
"""Compiled problems that are worth waking a thread."""
MOST_TRACE = 1 << 14
"""Iterations up to which fits share kernel calls: their traces are held at once."""


class _Prepared:
    """A compiled problem with its starts, and the ends of its climbs once they are made."""

    def __init__(self, problem: Problem, climber: Climber, starts: list[FloatArray]) -> None:
        self.problem, self.climber = problem, climber
        self.starts = climber.prepare(starts)
        self.ends: list[ClimbResult] | None = None


def can_fit_together(options: FitOptions) -> bool:
    """Whether fits with these options can share kernel calls: plain restarts by EM, traces that can be held."""
    is_plain = options.init is None and not (options.is_auto or options.tournament) and options.optimizer == "em"
    return is_plain and options.max_iter <= MOST_TRACE


def is_small(problem: Problem, options: FitOptions) -> bool:
    """Whether all climbs of a problem are so short that they may be one kernel call on the calling thread.

    An interrupt is noticed only after the call.
    """
    return (
        problem.engine.program is not None and climbing_cost(problem, options.climb, options.first_starts) <= ONE_CALL
    )


def fit_together(
    problems: Iterable[Problem],
    method: str,
    options: FitOptions,
    workers: int | None = None,
    executor: Executor | None = None,
    fitted: Callable[[Problem], None] = lambda _problem: None,
) -> None:
    """Fit the small ones of several problems on the same rows, so that `fit_problem` finds the fits made.

    `fitted(problem)` is called on the calling thread as soon as a problem's fit is there, while others are climbed on.
    Problems that are large, that do not fit in memory, or that have no compiled program are left to `fit_problem`.
    After an interrupt `options.stop` is set and the fits finished by then are there. Results do not depend on
    `workers`.
    """
    others = max(worker_count(workers) - 1, 0 if executor is None else 1)
    with thread_pool(others, executor) as pool:
        work = _Work(method, options, fitted, is_shared=pool is not None)
        try:
            for problem in problems:
                if options.stop.is_set:
                    break
                work.take(problem)
                if pool is not None:
                    work.share(pool, others)
                elif len(work.waiting) >= CHUNK:
                    work.climb()
                work.finish()
            work.climb()
            work.join()
        except KeyboardInterrupt:
            options.stop.set()
            work.waiting.clear()
            work.join()
        except BaseException:
            work.waiting.clear()
            raise


class _Work:
    """The problems of one call of `fit_together`: those that wait for a kernel call, and those whose fit is not made.

    Only the calling thread adds to them and makes fits; any thread may take what waits.
    """

    def __init__(
        self, method: str, options: FitOptions, fitted: Callable[[Problem], None], is_shared: bool = False
    ) -> None:
        self.method, self.options, self.fitted, self.is_shared = method, options, fitted, is_shared
        self.rule = rule_of(method)
        self.waiting: deque[_Prepared] = deque()
        self.unfinished: deque[_Prepared] = deque()
        self.futures: list[Future[None]] = []

    def take(self, problem: Problem) -> None:
        """Compile a problem and let it wait."""
        try:
            engine = problem.engine
        except TooLarge:
            return
        if not is_small(problem, self.options):
            return
        climber = Climber(engine, problem.pseudo, self.rule, problem.n)
        prepared = _Prepared(problem, climber, starting_points(problem, self.options, self.options.first_starts))
        self.unfinished.append(prepared)
        self.waiting.append(prepared)

    def share(self, pool: Executor, others: int) -> None:
        """Have another thread climb if enough is waiting."""
        if len(self.waiting) >= LEAST_CHUNK:
            self.futures = [future for future in self.futures if not future.done() or future.exception() is not None]
            if len(self.futures) < others:
                self.futures.append(pool.submit(self.climb))
        # A kernel that ends waits for the GIL. It is offered here; otherwise it is taken away after 5 ms only.
        time.sleep(0)

    def climb(self) -> None:
        """Climb on what is waiting, chunk by chunk, until nothing is."""
        while chunk := self._next_chunk():
            climber = chunk[0].climber
            starts = [prepared.starts for prepared in chunk]
            ends = climb_together(starts, climber.rule, climber.n, self.options.climb, self.options.stop.array)
            for prepared, own in zip(chunk, ends, strict=True):
                prepared.ends = own

    def _next_chunk(self) -> list[_Prepared]:
        """Take what is waiting; each of several threads takes half, so that all end together."""
        share = len(self.waiting) // 2 if self.is_shared else len(self.waiting)
        wanted = min(CHUNK, max(LEAST_CHUNK, share))
        chunk: list[_Prepared] = []
        cost = 0.0
        while len(chunk) < wanted and cost < ONE_CALL:
            try:
                chunk.append(self.waiting.popleft())
            except IndexError:  # another thread was faster
                break
            cost += climbing_cost(chunk[-1].problem, self.options.climb, self.options.first_starts)
        return chunk

    def join(self) -> None:
        """Wait for the other threads and finish what they have done; what they have not begun is not waited for."""
        for future in self.futures:
            if not future.cancel():
                future.result()
        self.unfinished = deque(prepared for prepared in self.unfinished if prepared.ends is not None)
        self.finish()

    def finish(self) -> None:
        """Let problems remember their fits, in order, as far as the climbs have come."""
        while self.unfinished and self.unfinished[0].ends is not None:
            prepared = self.unfinished[0]
            climbs = prepared.climber.finish(prepared.starts, prepared.ends or [])
            is_whole = all(climb.status is not Status.INTERRUPTED for climb in climbs)
            if is_whole:
                fit = outcome(prepared.problem, self.method, self.options, prepared.climber, climbs)
                remember_fit(prepared.problem, self.options, fit)
            self.unfinished.popleft()
            if is_whole:
                self.fitted(prepared.problem)
