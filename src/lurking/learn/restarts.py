"""`restarts="auto"`: add starts, and kick the best ones, until several of them agree on the best."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from lurking.inference.problem import Problem
from lurking.learn.kicks import Kicks
from lurking.learn.loop import Climb, Climber
from lurking.learn.options import FIRST, FitOptions
from lurking.learn.starts import ENOUGH, climb_from, iteration_cost, starting_points
from lurking.runtime.progress import Silent
from lurking.runtime.rng import grandchildren
from lurking.types import FloatArray

AGREED = 8
"""Of the first starts: if so many find the best, nothing else is tried."""
CHECKS = 10
"""Kicks of the best that must fail if only `ENOUGH` of the first starts found it."""
CHAINS = 5
"""Starts that are kicked at the same time."""
PATIENCE = 30
"""Kicks in a row without a better end after which a start is done."""
MOST_STARTS = 100
EXTRA = float(1 << 29)
"""Multiplications that a fit may spend after its first starts: about a second."""
PER_RUN = float(1 << 16)
"""Multiplications that the overhead of one run is worth."""


def climb_until_settled(climber: Climber, problem: Problem, options: FitOptions, within: float) -> list[Climb]:
    """Return one climb for each start; of a start that was kicked, the best end of its kicks.

    Ten starts are run first. If fewer than eight of them end within `within` nats of the best, the best one
    is kicked (`Kicks`), and while fewer than three starts agree the five best different ones and then five new starts
    at a time, each until thirty kicks in a row have not improved it. `EXTRA` bounds the work after the first ten, in
    multiplications and not in seconds, so that the result does not depend on the machine or the number of workers.
    """
    work = _Work(climber, problem, options, within)
    work.add(FIRST)
    if work.is_over or work.n_at_best >= AGREED:
        return work.climbs
    if work.n_at_best < ENOUGH or work.kick([work.best], CHECKS):
        work.kick(work.leaders(), PATIENCE)
        while work.n_at_best < ENOUGH and not work.is_over and len(work.climbs) < MOST_STARTS:
            work.kick(work.add(CHAINS), PATIENCE)
    return work.climbs


@final
class _Work:
    """The climbs so far, one for each start, and what was spent on them."""

    def __init__(self, climber: Climber, problem: Problem, options: FitOptions, within: float) -> None:
        self.climber, self.problem, self.options, self.within = climber, problem, options, within
        self.climbs: list[Climb] = []
        self._quiet = replace(options, progress=Silent())
        self._kicks = Kicks(problem.layout)
        self._generators = grandchildren(options.seed, MOST_STARTS)
        self._unit = iteration_cost(problem)
        self._left = EXTRA

    @property
    def is_over(self) -> bool:
        """True if nothing more can or may be done."""
        return self.options.stop.is_set or self._left <= 0.0 or not self.problem.engine.active.size

    @property
    def best(self) -> int:
        """The start whose climb ended highest, the first of equals."""
        return max(range(len(self.climbs)), key=lambda k: (self.climbs[k].objective, -k))

    @property
    def n_at_best(self) -> int:
        """How many starts found the best."""
        if not self.climbs:
            return 0
        mark = self.climbs[self.best].objective - self.within
        return sum(climb.objective >= mark for climb in self.climbs)

    def add(self, count: int) -> list[int]:
        """Climb from more starts and return which they are; the first ones are free."""
        known = len(self.climbs)
        starts = starting_points(self.problem, self.options, min(known + count, MOST_STARTS))[known:]
        self.climbs += self._climbed(starts, is_free=known == 0)
        return list(range(known, len(self.climbs)))

    def leaders(self) -> list[int]:
        """Return the starts with the best different ends."""
        chosen: list[int] = []
        for k in sorted(range(len(self.climbs)), key=lambda k: (-self.climbs[k].objective, k)):
            if not chosen or self.climbs[chosen[-1]].objective - self.climbs[k].objective > self.within:
                chosen.append(k)
            if len(chosen) == CHAINS:
                break
        return chosen

    def kick(self, chosen: list[int], patience: int) -> bool:
        """Kick each start until `patience` kicks in a row have failed; return True if any of them improved."""
        if self._kicks.is_empty:
            return False
        failed = dict.fromkeys(chosen, 0)
        improved = False
        while (going := [k for k in chosen if failed[k] < patience]) and not self.is_over:
            made = self._climbed([self._kicked(k) for k in going])
            if len(made) < len(going):  # interrupted: which of them are missing is not known
                break
            for k, climb in zip(going, made, strict=True):
                is_better = climb.objective > self.climbs[k].objective + self.within
                if is_better:  # otherwise the end is kept, and with it the order of the hidden states
                    self.climbs[k] = climb
                failed[k] = 0 if is_better else failed[k] + 1
                improved = improved or is_better
        return improved

    def _kicked(self, k: int) -> FloatArray:
        """Return the potentials from which the end of a start is climbed again."""
        theta = self.problem.layout.normalise(self.problem.pseudo + self.climbs[k].counts)
        return np.asarray(np.log(self._kicks.kicked(theta, self._generators[k])))

    def _climbed(self, starts: list[FloatArray], *, is_free: bool = False) -> list[Climb]:
        # Progress counts the first starts; how many follow is not known.
        options = self.options if is_free else self._quiet
        made = climb_from(self.climber, self.problem, starts, options, options.climb)
        if not is_free:
            self._left -= sum(climb.n_iter * self._unit + PER_RUN for climb in made)
        return made
