"""Ordered work: order, errors, interrupts."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from lurking.errors import OptionError
from lurking.runtime.executor import StopFlag, map_in_order, worker_count

WAYS = [1, 3]
LONGEST = 300.0
"""Seconds after which something that was waited for has not happened."""


@pytest.mark.parametrize("workers", WAYS)
def test_results_come_in_the_order_of_the_items(workers):
    """With several workers the first item ends only after the second has."""
    second = threading.Event()

    def late_first(item):
        if item == 0 and workers > 1:
            assert second.wait(LONGEST)
        if item == 1:
            second.set()
        return item * item

    assert map_in_order(late_first, range(6), workers=workers) == [0, 1, 4, 9, 16, 25]


def test_an_external_executor_is_used_and_left_open():
    names = set()

    def work(item):
        names.add(threading.current_thread().name)
        return item

    with ThreadPoolExecutor(2, thread_name_prefix="mine") as pool:
        assert map_in_order(work, [3, 1, 2], executor=pool) == [3, 1, 2]
        assert pool.submit(int, "1").result() == 1
    assert all(name.startswith("mine") for name in names)


def test_one_worker_stays_on_the_callers_thread():
    threads = map_in_order(lambda _: threading.current_thread(), range(3), workers=1)
    assert set(threads) == {threading.current_thread()}


@pytest.mark.parametrize("workers", WAYS)
def test_errors_are_raised_as_they_are(workers):
    def work(item):
        if item == 2:
            raise ValueError("item two")
        return item

    with pytest.raises(ValueError, match="item two"):
        map_in_order(work, range(50), workers=workers, stop=StopFlag())


def test_work_that_has_not_begun_is_dropped_after_an_error(monkeypatch):
    begun, are_dropped = [], threading.Event()
    cancel = Future.cancel

    def cancelled(self):
        done = cancel(self)
        if done:
            are_dropped.set()
        return done

    def work(item):
        begun.append(item)
        if item == 0:
            raise ValueError("at once")
        assert are_dropped.wait(LONGEST)

    monkeypatch.setattr(Future, "cancel", cancelled)
    with pytest.raises(ValueError, match="at once"):
        map_in_order(work, range(200), workers=2)
    assert len(begun) < 200


@pytest.mark.parametrize("workers", WAYS)
def test_done_counts_results_in_order(workers):
    heard = []
    map_in_order(str, range(5), workers=workers, done=heard.append)
    assert heard == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("workers", WAYS)
def test_no_items(workers):
    assert map_in_order(str, [], workers=workers) == []


def stop_is_set(stop):
    """Wait until a flag is set; return False if it never is."""
    for _ in range(int(LONGEST / 0.001)):
        if stop.is_set:
            return True
        threading.Event().wait(0.001)
    return False


def interrupt_after(count):
    def done(finished):
        if finished == count:
            raise KeyboardInterrupt

    return done


@pytest.mark.parametrize("workers", WAYS)
def test_an_interrupt_sets_stop_and_returns_a_prefix(workers):
    stop, items = StopFlag(), list(range(40))

    def work(item):
        # The last items end only after the interrupt.
        assert item < 20 or workers == 1 or stop_is_set(stop)
        return item * 10

    results = map_in_order(work, items, workers=workers, stop=stop, done=interrupt_after(2))
    assert stop.is_set
    assert 2 <= len(results) < 40
    assert results == [item * 10 for item in items[: len(results)]]


@pytest.mark.parametrize("workers", WAYS)
def test_an_interrupt_inside_the_work_is_handled_alike(workers):
    stop = StopFlag()

    def work(item):
        if item == 2:
            raise KeyboardInterrupt
        return item

    try:
        results = map_in_order(work, range(6), workers=workers, stop=stop)
    except KeyboardInterrupt:
        pytest.fail("the interrupt got out although a flag was given")
    assert results == [0, 1]
    assert stop.is_set


@pytest.mark.parametrize("workers", WAYS)
def test_without_a_flag_the_interrupt_is_raised(workers):
    with pytest.raises(KeyboardInterrupt):
        map_in_order(str, range(6), workers=workers, done=interrupt_after(2))


def test_when_the_program_ends_running_work_ends_too():
    """SIGTERM raises SystemExit: whoever leaves must not wait for work that only the flag can end."""
    stop, ended = StopFlag(), []

    def work(item):
        ended.append(not item or stop_is_set(stop))
        return item

    def leave(_count):
        raise SystemExit(143)

    with pytest.raises(SystemExit):
        map_in_order(work, range(3), workers=3, stop=stop, done=leave)
    assert stop.is_set
    assert ended[-1]


def test_a_mistake_in_the_work_does_not_set_the_flag():
    stop = StopFlag()

    def work(item):
        raise OptionError(f"item {item}")

    with pytest.raises(OptionError, match="item 0"):
        map_in_order(work, range(3), workers=2, stop=stop)
    assert not stop.is_set


def test_running_work_sees_the_flag():
    stop, seen = StopFlag(), []

    def work(item):
        if item == 0:
            return item
        if stop_is_set(stop):
            seen.append(item)
        return item

    results = map_in_order(work, range(3), workers=3, stop=stop, done=interrupt_after(1))
    assert results == list(range(len(results)))
    assert set(seen) <= {1, 2}
    assert seen


def test_the_flag_is_an_array_that_kernels_can_read():
    stop = StopFlag()
    assert not stop.is_set
    assert stop.array.dtype == np.int64
    stop.set()
    assert stop.is_set
    assert stop.array.tolist() == [1]


def test_worker_count():
    assert worker_count(3) == 3
    assert worker_count(np.int64(2)) == 2
    assert worker_count(None) >= 1


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_worker_count_must_be_a_whole_number(workers):
    with pytest.raises(OptionError, match="workers is"):
        map_in_order(str, range(2), workers=workers)
