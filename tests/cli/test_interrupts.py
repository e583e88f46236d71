"""Ctrl-C that cannot get lost: in an import, in a kernel, in `__del__`, in code that catches everything."""

import importlib
import signal
import sys
import threading
from contextlib import suppress

import numba
import numpy as np
import pytest

from lurking.cli import interrupts
from lurking.cli.interrupts import Watch, is_noted, noted_in
from lurking.errors import DataError
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Bar

LONGEST = 300.0
"""Seconds after which a test gives up on an interrupt that never comes."""
FIT = ("fit", "survey.csv", "--model", "class[2] -> *", "--restarts", "2")


def wait_for_interrupt():
    with pytest.raises(KeyboardInterrupt):
        threading.Event().wait(LONGEST)


def swallowed_interrupt():
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def module_that_interrupts(tmp_path, monkeypatch):
    """Return the name of a module that is interrupted while it is imported, and catches every exception."""
    text = """
import signal
caught = False
try:
    signal.raise_signal(signal.SIGINT)
    for _ in range(100):
        pass
except BaseException:
    caught = True
"""
    (tmp_path / "interrupting_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield "interrupting_module"
    sys.modules.pop("interrupting_module", None)


def test_interrupt_raises_and_sets_the_flag_and_the_handler_comes_back():
    stop, hook = StopFlag(), sys.unraisablehook
    with Watch(), noted_in(stop):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop.is_set
        assert is_noted()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not is_noted()
    assert sys.unraisablehook is hook


def test_interrupt_during_an_import_is_raised_after_it(module_that_interrupts):
    stop = StopFlag()
    with Watch(), noted_in(stop):
        try:
            module = importlib.import_module(module_that_interrupts)
            assert not module.caught
            assert stop.is_set
        finally:
            wait_for_interrupt()


def test_interrupt_during_an_import_is_raised_there_if_the_import_does_not_end(module_that_interrupts, monkeypatch):
    monkeypatch.setattr(interrupts, "MOST_DELAYS", 0)
    with Watch():
        assert importlib.import_module(module_that_interrupts).caught
        assert is_noted()


def test_interrupt_that_python_drops_in_del_is_raised_later():
    class Interrupting:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    stop = StopFlag()
    with Watch(), noted_in(stop):
        thing = Interrupting()
        del thing
        assert stop.is_set
        wait_for_interrupt()


def test_other_exceptions_in_del_are_shown_as_before(monkeypatch):
    class Failing:
        def __del__(self):
            raise ValueError("in del")

    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: shown.append(str(report.exc_value)))
    with Watch():
        thing = Failing()
        del thing
    assert shown == ["in del"]


@numba.njit(nogil=True)
def _spin(stop, turns):
    while stop[0] == 0:
        turns[0] += 1


def test_interrupt_ends_a_kernel_on_the_main_thread():
    """No Python code runs on the main thread before the kernel ends, and nothing but the flag ends it."""
    turns, stop = np.zeros(1, np.int64), StopFlag()
    _spin(np.ones(1, np.int64), turns)
    main = threading.main_thread().ident

    def interrupt():
        while not turns[0]:
            pass
        signal.pthread_kill(main, signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    with Watch(), noted_in(stop):
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            _spin(stop.array, turns)
        sender.join()
        assert turns[0] > 0


def test_interrupt_that_was_swallowed_ends_the_next_work_at_its_beginning():
    with Watch():
        swallowed_interrupt()
        with pytest.raises(KeyboardInterrupt), noted_in(StopFlag()):
            pytest.fail("the work began")


def test_interrupt_is_not_raised_again_after_the_flag_ended_the_work(module_that_interrupts, monkeypatch):
    """Else the report of what was finished would be interrupted."""
    stop = StopFlag()
    monkeypatch.setattr(Watch, "_raise_later", lambda _watch: None)
    with Watch() as watch:
        with noted_in(stop):
            importlib.import_module(module_that_interrupts)
        assert stop.is_set
        watch._is_repeated = True
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ignored_interrupts_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Watch():
            signal.raise_signal(signal.SIGINT)
            assert not is_noted()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupt_is_ignored_once_the_last_work_is_over():
    before = signal.getsignal(signal.SIGINT)
    try:
        with Watch(is_last=True):
            pass
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


# The command.


def test_fit_whose_interrupt_is_swallowed_reports_its_best_point(run, monkeypatch):
    monkeypatch.setattr(Bar, "update", lambda _bar, _done: swallowed_interrupt())
    outcome = run(*FIT, "--json")
    assert outcome.code == 130
    assert outcome.err == "lurking: interrupted; the best point so far is reported\n"
    assert outcome.json["status"] == "INTERRUPTED"


def test_interrupt_that_becomes_an_error_is_reported_as_interrupt(run, monkeypatch):
    def failing(*_arguments, **_options):
        swallowed_interrupt()
        raise DataError("the reader was torn down")

    monkeypatch.setattr("lurking.cli.options.read_data", failing)
    outcome = run(*FIT)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == "lurking: interrupted; nothing was finished\n"


def test_interrupt_that_is_swallowed_after_the_work_does_not_exit_with_success(run, monkeypatch):
    monkeypatch.setattr(sys.modules["lurking.cli.fit"], "print_fit", lambda _result: swallowed_interrupt())
    outcome = run(*FIT)
    assert outcome.code == 130
    assert outcome.err == "lurking: interrupted; the work was already finished\n"
