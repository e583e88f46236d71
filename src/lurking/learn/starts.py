"""Runs of EM or VB from many starts, and how far their ends agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lurking.inference.problem import Problem
from lurking.learn.ascent import ascend
from lurking.learn.init import draw_starts, given_start
from lurking.learn.loop import Climb, Climber, ClimbOptions
from lurking.learn.options import FitOptions
from lurking.runtime.executor import map_in_order
from lurking.types import FloatArray

SAME_OPTIMUM = 1e-3
"""Nats below the best within which a start counts as having found it."""
ENOUGH = 3
"""Starts that must find the best before it counts as settled."""
ONE_CALL = float(1 << 29)  # multiplications of all starts up to which they are one kernel call: half a second, about
M_STEP = 20.0  # multiplications that the M step of one potential is worth
SERIAL_BELOW = 200_000  # multiplications of one E-step below which threads cost more than they bring


@dataclass(frozen=True)
class Spread:
    """End objectives of all starts, in the order of the starts; the best is the fit."""

    objectives: tuple[float, ...]
    within: float = SAME_OPTIMUM
    """Starts that end closer than this to the best count as having found it; never below what `tol` leaves open."""
    enough: int = ENOUGH
    """Starts that must find the best before it is settled; 1 if nothing is unobserved, so that all starts agree."""

    @property
    def range(self) -> float:
        """Best minus worst."""
        return max(self.objectives) - min(self.objectives)

    @property
    def n_at_best(self) -> int:
        """How many starts ended within `within` nats of the best."""
        best = max(self.objectives)
        return sum(best - value <= self.within for value in self.objectives)

    @property
    def is_settled(self) -> bool:
        """True if several starts found the best; otherwise there may be a better one."""
        return self.n_at_best >= self.enough

    @property
    def advice(self) -> str:
        """What was found if the best is not settled after restarts="auto", and what to do."""
        return (
            f"only {self.n_at_best} of {len(self.objectives)} starts found the best; there may be a better one, so "
            "compare several seeds"
        )

    def describe(self) -> dict[str, float | int | bool]:
        """Return the number of starts, how many found the best, their range and whether the best is settled."""
        return {
            "count": len(self.objectives),
            "at_best": self.n_at_best,
            "range": self.range,
            "settled": self.is_settled,
        }

    def __str__(self) -> str:
        count = len(self.objectives)
        doubt = "" if self.is_settled else "; not settled"
        return f"{self.n_at_best} of {count} starts within {self.within:.1g} of the best, range {self.range:.4g}{doubt}"


def starting_points(problem: Problem, options: FitOptions, count: int) -> list[FloatArray]:
    """Return the starting potentials; the k-th does not depend on how many there are, nor on `init`.

    One is enough where nothing is unobserved.
    """
    count = count if problem.engine.active.size else 1
    starts = draw_starts(problem.layout, problem.pseudo, options.seed, count)
    if options.init is not None:
        starts[0] = given_start(problem.layout, options.init)
    return starts


def climb_from(
    climber: Climber, problem: Problem, starts: list[FloatArray], options: FitOptions, climb: ClimbOptions
) -> list[Climb]:
    """Climb from every start: short climbs one after the other, others on threads that can be interrupted.

    Climbs that an interrupt ended before their first point are left out.
    """
    return [made for made in _climbs_from(climber, problem, starts, options, climb) if not made.is_empty]


def _climbs_from(
    climber: Climber, problem: Problem, starts: list[FloatArray], options: FitOptions, climb: ClimbOptions
) -> list[Climb]:
    cost, by_em = problem.engine.cost, climb.optimizer == "em"
    climb_once = climber.climb if by_em else partial(ascend, climber)
    is_tiny = by_em and cost * len(starts) < SERIAL_BELOW and climbing_cost(problem, climb, len(starts)) <= ONE_CALL
    # After an interrupt one call has nothing to keep; start by start, the finished ones are there.
    if is_tiny and options.executor is None and not options.keep_interrupted and problem.engine.program is not None:
        climbs = climber.climb_all(starts, climb, options.stop)
        options.progress.update(len(climbs))
        return climbs
    is_small, is_short = cost < SERIAL_BELOW, climbing_cost(problem, climb, 1) <= ONE_CALL
    if problem.engine.is_in_blocks:
        # Threads are at work on the blocks of each E-step, whose progress is shown instead. The climb itself runs on
        # one thread, so that an interrupt ends it at its next iteration and what it has reached is kept.
        return map_in_order(
            lambda start: climb_once(start, climb, options.stop),
            starts,
            workers=1,
            interruptible=True,
            stop=options.stop,
        )
    return map_in_order(
        lambda start: climb_once(start, climb, options.stop),
        starts,
        workers=1 if is_small and options.workers is None else options.workers,
        executor=options.executor,
        interruptible=not (is_small and is_short),  # on the calling thread an interrupt waits for the kernel's end
        stop=options.stop,
        done=options.progress.update,
    )


def climbing_cost(problem: Problem, climb: ClimbOptions, starts: int) -> float:
    """Return about how many multiplications the climbs from so many starts take at most."""
    return iteration_cost(problem) * starts * climb.max_iter


def iteration_cost(problem: Problem) -> float:
    """Return about how many multiplications one E-step and one M step take."""
    engine = problem.engine
    return engine.cost + M_STEP * len(engine.active)
