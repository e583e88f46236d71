"""Options of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from lurking.errors import OptionError, UnknownNameError
from lurking.learn.loop import ClimbOptions
from lurking.runtime.checks import check_whole
from lurking.runtime.executor import StopFlag, worker_count
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import Seed, seed_sequence

AUTO = "auto"
FIRST = 10
"""Starts that every fit makes."""
TABLE_OPTIONS = ("weights", "drop", "levels", "categorical", "continuous", "na_values", "columns")


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit; every score passes them through.

    restarts : number of starts, the best one is kept; "auto" adds and varies starts until several find the best
        (`lurking.learn.restarts`).
    init : {node: table[l, k]}, used as start 1 as it is.
    tournament : 0 for independent restarts; 64 for the 64 → 32 → … → 1 scheme of chickering-heckerman-1996 §3,
        which replaces them.
    max_iter, tol, accelerate, optimizer : see `ClimbOptions`.
    seed : integer, Generator, SeedSequence or None.
    workers : threads across starts; None lets the size of the problem decide. Results do not depend on it.
    executor : a pool of threads (`concurrent.futures.ThreadPoolExecutor`) to use instead of one of its own.
    stop : set it from another thread, or by an interrupt, to end the climbs early.
    progress : told how many starts are done.
    keep_interrupted : after an interrupt (Ctrl-C) return the best point so far instead of raising it.
    """

    restarts: int | str = AUTO
    init: Mapping[str, Any] | None = None
    tournament: int = 0
    max_iter: int = 1000
    tol: float = 1e-8
    accelerate: bool = True
    optimizer: str = "em"
    seed: Seed = 0
    workers: int | None = None
    executor: Executor | None = field(default=None, repr=False)
    stop: StopFlag = field(default_factory=StopFlag, repr=False)
    progress: Progress = field(default_factory=Silent, repr=False)
    keep_interrupted: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.restarts, str) and self.restarts != AUTO:
            raise OptionError(f"restarts must be 'auto' or an integer >= 1, got {self.restarts!r}")
        check_whole("restarts", self.first_starts, 1)
        check_whole("tournament", self.tournament, 0)
        if self.init is not None and not isinstance(self.init, Mapping):
            raise OptionError(f"init is {self.init!r}; it must be {{node: table[l, k]}}")
        worker_count(self.workers)
        if isinstance(self.seed, np.random.Generator):
            # Drawn from once, here: later draws would make results depend on the order of the work.
            object.__setattr__(self, "seed", seed_sequence(self.seed))
        elif np.issubdtype(type(self.seed), np.integer):
            object.__setattr__(self, "seed", int(self.seed))  # type: ignore[arg-type]
        _ = self.climb

    @property
    def is_auto(self) -> bool:
        """True if starts are added until several find the best."""
        return isinstance(self.restarts, str) and not self.tournament

    @property
    def first_starts(self) -> int:
        """Number of starts that are made in any case."""
        return FIRST if isinstance(self.restarts, str) else self.restarts

    @cached_property
    def climb(self) -> ClimbOptions:
        """The options of each start's climb."""
        return ClimbOptions(self.max_iter, self.tol, self.accelerate, self.optimizer)

    @cached_property
    def at_rest(self) -> FitOptions:
        """The same without what only matters while a fit runs."""
        return replace(self, executor=None, stop=StopFlag(), progress=Silent())

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all options."""
        return tuple(entry.name for entry in fields(cls))

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> FitOptions:
        """Return the options given by name; an unknown name lists the choices."""
        for name in options:
            if name not in cls.names():
                if name in TABLE_OPTIONS:
                    raise OptionError(
                        f"{name!r} belongs to the table, not to the fit: lk.read(path, {name}=…) or "
                        f"lk.Table.from_frame(frame, {name}=…)"
                    )
                raise UnknownNameError("option", name, cls.names())
        return cls(**options)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What tells two fits of one problem apart."""
        init = None if self.init is None else tuple((k, np.asarray(v).tobytes()) for k, v in sorted(self.init.items()))
        sequence = self.seed if isinstance(self.seed, np.random.SeedSequence) else None
        seed = self.seed if sequence is None else (str(sequence.entropy), sequence.spawn_key)
        return (self.restarts, init, self.tournament, self.max_iter, self.tol, self.accelerate, self.optimizer, seed)

    def describe(self) -> dict[str, Any]:
        """Return the options as plain values, for files and reports."""
        return {
            "restarts": AUTO if isinstance(self.restarts, str) else int(self.restarts),
            "tournament": int(self.tournament),
            "max_iter": int(self.max_iter),
            "tol": float(self.tol),
            "accelerate": bool(self.accelerate),
            "optimizer": self.optimizer,
            "init": self.init is not None,
        }
