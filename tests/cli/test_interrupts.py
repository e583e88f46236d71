"""Ctrl-C that cannot get lost."""

import signal

import pytest

from lurking.cli import interrupts
from lurking.cli.interrupts import noted_in
from lurking.runtime.executor import StopFlag


def test_an_interrupt_that_somebody_catches_stays_noted():
    before, stop = signal.getsignal(signal.SIGINT), StopFlag()
    with noted_in(stop):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop.is_set
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_was_caught_before_ends_the_work_at_its_beginning(monkeypatch):
    monkeypatch.setattr(interrupts, "noted", [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt), noted_in(StopFlag()):
        pytest.fail("the work began")
