"""Ordered work on threads: kernels release the GIL, so threads are the local default."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from lurking.runtime.checks import check_whole
from lurking.types import IntArray

Item = TypeVar("Item")
Result = TypeVar("Result")


class StopFlag:
    """A flag that compiled climbs look at in every iteration; set when the user interrupts."""

    def __init__(self) -> None:
        self.array: IntArray = np.zeros(1, np.int64)

    def set(self) -> None:
        """Ask every climb that holds the flag to end at its next iteration."""
        self.array[0] = 1

    @property
    def is_set(self) -> bool:
        """Whether an end was asked for."""
        return bool(self.array[0])


def worker_count(workers: int | None) -> int:
    """Return the number of workers: as asked, or one per core when None."""
    if workers is None:
        # What this process may use, which in a container or batch job is less than what the machine has.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return check_whole("workers", workers, 1)


@contextmanager
def thread_pool(workers: int, executor: Executor | None = None) -> Iterator[Executor | None]:
    """Hold a pool of threads: the executor given, or one for the time of the block; None for no workers."""
    if executor is not None or workers < 1:
        yield executor
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="lurking")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def map_in_order(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    interruptible: bool = False,
    stop: StopFlag | None = None,
    done: Callable[[int], None] = lambda _count: None,
) -> list[Result]:
    """Return [function(item) …] in the order of `items`; serial for one worker or one item unless `interruptible`.

    On KeyboardInterrupt `stop` is set, running work is waited for (it ends early by looking at `stop`), and the
    results so far (a prefix) are returned; without `stop` the interrupt is raised. Only work on a pool can be
    interrupted in the middle of a kernel. `done(k)` is called after k results in order.
    """
    results: list[Result] = []
    if executor is None and not interruptible and (worker_count(workers) == 1 or len(items) <= 1):
        try:
            for item in items:
                if stop is not None and stop.is_set and results:
                    break
                results.append(function(item))
                done(len(results))
        except KeyboardInterrupt:
            if stop is None:
                raise
            stop.set()
        return results
    with thread_pool(worker_count(workers), executor) as pool:
        assert pool is not None
        futures: list[Future[Any]] = []
        try:
            for item in items:  # an interrupt may come here already: work that has begun must end
                futures.append(pool.submit(function, item))
            for future in futures:
                results.append(future.result())
                done(len(results))
        except KeyboardInterrupt:
            for future in futures:
                future.cancel()
            if stop is None:
                raise
            stop.set()
            for future in futures[len(results) :]:
                if future.cancelled() or future.exception() is not None:
                    break
                results.append(future.result())
        except BaseException as ending:
            for future in futures:
                future.cancel()
            if stop is not None and not isinstance(ending, Exception):
                stop.set()  # the program ends (SIGTERM): nobody may have to wait for a long climb
            raise
    return results
