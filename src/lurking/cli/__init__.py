"""The command `lurking`: one file per verb; parses, calls, prints; no mathematics."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["main"]

noted: list[int] = []
"""Interrupts that came since the command began, also those that a module caught while it was imported."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit; the verbs are imported here, so that Ctrl-C ends quietly from the start on."""
    with _noted_interrupts():
        try:
            from lurking.cli.app import main as run

            run(arguments)
        except KeyboardInterrupt:
            pass
        except Exception:
            # An extension module that is interrupted while it is imported may fail with an error of its own.
            if not noted:
                raise
    sys.stderr.write("lurking: interrupted; nothing was finished\n")
    sys.exit(130)


@contextmanager
def _noted_interrupts() -> Iterator[None]:
    """Note every interrupt, each of which raises KeyboardInterrupt as always."""
    noted.clear()

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    is_ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)
