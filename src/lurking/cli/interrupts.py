"""Ctrl-C that cannot get lost: noted at once, raised only where nothing can swallow it.

Python runs a signal handler between two bytecodes of the main thread, wherever that happens to be. A KeyboardInterrupt
raised while a module is imported may be caught by that module or leave it half imported, one raised in `__del__` or in
a callback from C is dropped with a message, and during a compiled kernel on the main thread no handler runs at all.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Protocol

AGAIN = 0
"""What is written to the pipe beside numbers of signals: the interrupt is to be raised a moment later."""
PAUSE = 0.05
MOST_DELAYS = 60
"""After so many pauses a KeyboardInterrupt is raised inside an import too."""


class Flag(Protocol):
    """What can be asked to end."""

    def set(self) -> None:
        """Ask for an end."""
        ...

    @property
    def is_set(self) -> bool:
        """True if an end was asked for."""
        ...


class Watch:
    """Within the block Ctrl-C is noted, sets the flags of running work, and raises KeyboardInterrupt.

    A thread reads the numbers of signals from a pipe, so that flags are set during a compiled kernel too. An interrupt
    that comes during an import, or that Python drops, is raised a moment later. If Ctrl-C is ignored (as in background
    jobs) or has another handler, nothing is changed. If `is_last`, the process ends after the block, and Ctrl-C is
    ignored from then on.
    """

    def __init__(self, *, is_last: bool = False) -> None:
        self.is_noted = False
        self.is_patient = True
        """False while nothing but an exit can follow an import that was interrupted: it need not end first."""
        self._is_last = is_last
        self._flags: list[Flag] = []
        self._is_taken = self._is_repeated = False
        self._delays = 0
        self._base: FrameType | None = None
        self._over = threading.Event()
        self._reader = self._writer = -1
        self._thread: threading.Thread | None = None
        self._hook = sys.unraisablehook
        self._is_active = False

    def __enter__(self) -> Watch:
        is_main = threading.current_thread() is threading.main_thread()
        self._is_active = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_active:
            self._base = sys._getframe(1)
            signal.signal(signal.SIGINT, self._note)
            self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
            if hasattr(signal, "pthread_kill"):
                self._listen()
        watches.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_active:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._over.set()
            if self._thread is not None:
                signal.set_wakeup_fd(-1)
                os.close(self._writer)
                self._thread.join()
                os.close(self._reader)
            sys.unraisablehook, self._base = self._hook, None
            if not self._is_last:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        watches.remove(self)

    @contextmanager
    def setting(self, flag: Flag) -> Iterator[None]:
        """Within the block Ctrl-C sets a flag besides; one that was noted before is raised now."""
        self._flags.append(flag)
        try:
            if self.is_noted:
                raise KeyboardInterrupt
            yield
        finally:
            self._flags.remove(flag)
            self._is_taken = self._is_taken or flag.is_set

    def _note(self, _number: int, frame: FrameType | None) -> None:
        is_repeated, self._is_repeated = self._is_repeated, False
        if is_repeated and self._is_taken:
            return  # the work ended by its flag meanwhile
        self.is_noted = True
        self._set_flags()
        if self._may_delay and _is_importing(frame, self._base):
            self._delays += 1
            self._raise_later()
            return
        raise KeyboardInterrupt

    @property
    def _may_delay(self) -> bool:
        return self.is_patient and self._thread is not None and self._delays < MOST_DELAYS

    def _set_flags(self) -> None:
        for flag in tuple(self._flags):
            flag.set()

    def _dropped(self, report: sys.UnraisableHookArgs, /) -> None:
        """Raise an interrupt later that Python has dropped; show any other such exception as before."""
        if self.is_noted and issubclass(report.exc_type, KeyboardInterrupt):
            self._raise_later()
        else:
            self._hook(report)

    def _raise_later(self) -> None:
        with suppress(OSError):
            os.write(self._writer, bytes([AGAIN]))

    def _listen(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._follow, name="lurking-interrupts", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        main = threading.main_thread().ident or 0
        while received := os.read(self._reader, 64):
            if signal.SIGINT in received:
                self._set_flags()
            if AGAIN in received and not self._over.wait(PAUSE):
                self._is_repeated = True
                signal.pthread_kill(main, signal.SIGINT)


watches: list[Watch] = []
"""The watch of the command that runs, if there is one."""


def _is_importing(frame: FrameType | None, base: FrameType | None) -> bool:
    """Return True if a module is being imported between two frames."""
    while frame is not None and frame is not base:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def is_noted() -> bool:
    """Return True if Ctrl-C came since the command began."""
    return bool(watches) and watches[-1].is_noted


@contextmanager
def noted_in(flag: Flag) -> Iterator[None]:
    """Within the block Ctrl-C sets a flag besides raising KeyboardInterrupt; one that came before is raised now."""
    if not watches:
        yield
        return
    with watches[-1].setting(flag):
        yield
