"""A stop flag that a time limit or another flag sets."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import final

from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag

CHECK_SECONDS = 0.05


@final
class Clock:
    """Within the block, `stop` is set when the time is over or the flag given is set; that one is never changed."""

    def __init__(self, time_limit: float | None = None, outer: StopFlag | None = None) -> None:
        self.stop = StopFlag()
        self._outer = outer
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._is_late = False
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_over(self) -> bool:
        """Whether the work must end."""
        self._look()
        return self.stop.is_set

    @property
    def ending(self) -> Status | None:
        """Why it must end: TIME_LIMIT or INTERRUPTED; None while it need not."""
        if not self.is_over:
            return None
        return Status.TIME_LIMIT if self._is_late else Status.INTERRUPTED

    @property
    def left(self) -> float | None:
        """Seconds left, at least a little; None without a limit."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 1e-3)

    def _look(self) -> None:
        if self.stop.is_set:
            return
        if self._outer is not None and self._outer.is_set:
            self.stop.set()
        elif self._deadline is not None and time.monotonic() >= self._deadline:
            self._is_late = True
            self.stop.set()

    def _watch(self) -> None:
        while not self._done.wait(CHECK_SECONDS):
            self._look()

    def __enter__(self) -> Clock:
        self._look()
        if self._deadline is not None or self._outer is not None:
            self._thread = threading.Thread(target=self._watch, name="lurking-clock", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
