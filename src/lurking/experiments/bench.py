"""Where the pieces of a study are made: kept pieces from the store, the others on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.progress import Progress
from lurking.runtime.store import Key, Store


@dataclass(frozen=True, eq=False)
class Task:
    """One piece of work: the key of its result, how it is made, and how large it is in comparison to others."""

    key: Key
    make: Callable[[], Any] = field(repr=False)
    size: int = 0


@dataclass(frozen=True)
class Workbench:
    """Where pieces of work are done: the store, the workers, the stop flag, and who is told."""

    store: Store
    workers: int | None
    stop: StopFlag
    progress: Progress

    def each(self, what: str, tasks: Sequence[Task]) -> list[Any]:
        """Return the kept or newly made result of every task, in order; the largest are begun first."""

        def one(task: Task) -> Any:
            kept = self.store.get(task.key)
            if kept is None:
                kept = task.make()
                if self.stop.is_set:
                    raise KeyboardInterrupt
                self.store.put(task.key, kept)
            return kept

        order = sorted(range(len(tasks)), key=lambda place: -tasks[place].size)
        self.progress.begin(what, len(tasks))
        try:
            made = map_in_order(
                one, [tasks[k] for k in order], workers=self.workers, stop=self.stop, done=self.progress.update
            )
        finally:
            self.progress.end()
        if self.stop.is_set:
            raise KeyboardInterrupt
        by_place = dict(zip(order, made, strict=True))
        return [by_place[place] for place in range(len(tasks))]


@dataclass(frozen=True)
class Sampled:
    """Evidence of one structure on one data set by the variational path of `ais`; see `Evidence.nominal_error`."""

    log_z: float
    std_error: float
    status: str

    @property
    def is_trusted(self) -> bool:
        """Whether its own diagnostics call it right within its standard error."""
        return self.status not in (Status.UNTRUSTED.name, Status.INTERRUPTED.name)

    @property
    def error_cell(self) -> str:
        """The standard error for a table; nothing for a value that is not trusted."""
        return repr(self.std_error) if self.is_trusted else ""
