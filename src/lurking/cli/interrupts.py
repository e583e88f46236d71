"""Ctrl-C that cannot get lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lurking.cli import noted
from lurking.runtime.executor import StopFlag


@contextmanager
def noted_in(stop: StopFlag) -> Iterator[None]:
    """Within the block Ctrl-C sets a flag besides raising KeyboardInterrupt; one that came before is raised now.

    Modules that are imported in the middle of the work may catch every exception, this one too; the flag stays set.
    """
    if noted:
        raise KeyboardInterrupt
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        stop.set()
        if callable(before):
            before(number, frame)

    is_main = threading.current_thread() is threading.main_thread()
    if is_main and callable(before):
        signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if is_main and callable(before):
            signal.signal(signal.SIGINT, before)
