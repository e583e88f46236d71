"""Progress as an interface handed in: a silent one for libraries, a bar on stderr for people."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any, Protocol


class Progress(Protocol):
    """Receives how many of `total` pieces of work are done."""

    def begin(self, what: str, total: int) -> None:
        """Announce work."""
        ...

    def update(self, done: int) -> None:
        """Say that `done` pieces are finished."""
        ...

    def end(self) -> None:
        """Say that the work is over."""
        ...


class Silent:
    """Progress nobody looks at."""

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def update(self, done: int) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


class Bar:
    """A progress bar on stderr that appears when the work takes longer than `patience` seconds.

    Where stderr is no terminal, a line every `interval` seconds takes its place. `clock()` returns seconds.
    """

    def __init__(self, patience: float = 1.0, interval: float = 60.0, clock: Callable[[], float] | None = None) -> None:
        self.patience, self.interval = patience, interval
        self._clock = monotonic if clock is None else clock
        self._bar: Any = None
        self._task: Any = None
        self._what, self._total, self._started = "", 0, 0.0
        self._said, self._done = 0.0, 0  # when the rate was last looked at, and what was done by then

    def begin(self, what: str, total: int) -> None:
        """Remember the work and when it began."""
        self._what, self._total, self._started = what, total, self._clock()
        self._said, self._done = self._started, 0

    def update(self, done: int) -> None:
        """Show or move the bar once patience has run out."""
        if self._bar is None:
            if self._clock() - self._started < self.patience:
                # What is there at once was kept from an earlier run, and says nothing about the time left.
                self._said, self._done = self._clock(), done
                return
            if done >= self._total:
                return
            if not sys.stderr.isatty():
                self._say(done)
                return
            self._open()
        self._bar.update(self._task, completed=done)

    def _say(self, done: int) -> None:
        """Print how far the work is and how long it may still take, unless that was done a moment ago."""
        now = self._clock()
        if now - self._said < self.interval or done <= self._done:
            return
        left = (now - self._said) / (done - self._done) * (self._total - done)
        self._said, self._done = now, done
        sys.stderr.write(f"{self._what}: {done} of {self._total}, about {left / 60.0:.0f} min left\n")
        sys.stderr.flush()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._what, total=self._total)
        self._bar.start()

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
