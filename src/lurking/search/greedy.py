"""Greedy search over structures: hill climbing, tabu search, and restarts from perturbed best structures.

All three are one climb. In every step the single-arc move with the highest gain is made (ties: additions, then
deletions, then reversals, each by parent and child). Plain hill climbing ends when no gain is positive. Tabu search
goes on for `patience` steps without a new best, downhill if need be, and never goes to a structure that the climb has
been at. A restart walks from the best structure to a random equivalent one by reversals of covered arcs (Castelo &
Kočka 2003), takes away all arcs of a few neighbouring variables, and climbs again.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import final

import numpy as np

from lurking.graph.dag import Dag
from lurking.graph.moves import ArcSet, Move, MoveKind, arc_matrix
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import Seed, seed_sequence
from lurking.search.constraints import Constraints
from lurking.search.families import FamilyScorer
from lurking.types import BoolArray, FloatArray, IntArray

LEAST_GAIN = 1e-10
"""Relative to the score: smaller gains are rounding, as between equivalent structures."""
KINDS = (MoveKind.ADD, MoveKind.DELETE, MoveKind.REVERSE)


@dataclass(frozen=True)
class Step:
    """One move, the score of the structure after it, and the climb it belongs to (0, then one for each restart)."""

    move: Move
    score: float
    climb: int


@dataclass(frozen=True)
class Searched:
    """Outcome of a search: the best structure met and how it was found.

    `history` has every move in order; each restart begins at the best structure so far. `n_evaluated` counts the
    families that were scored.
    """

    best: Dag
    score: float
    history: tuple[Step, ...]
    n_evaluated: int
    status: Status


@dataclass(frozen=True)
class ClimbRules:
    """How long to climb.

    patience : steps without a new best before a climb ends; 0 is plain hill climbing, more is tabu search.
    restarts : climbs from perturbed best structures after the first one.
    perturbation : the most variables whose arcs are all taken away at the beginning of a restart.
    time_limit : seconds, or None.
    workers : threads that find the first gains of all moves; later ones are few, and found one after the other.
    """

    patience: int = 0
    restarts: int = 0
    perturbation: int = 10
    time_limit: float | None = None
    seed: Seed = 0
    workers: int | None = 1
    stop: StopFlag = field(default_factory=StopFlag)
    progress: Progress = field(default_factory=Silent)


def climb(scorer: FamilyScorer, start: Dag, constraints: Constraints, rules: ClimbRules) -> Searched:
    """Search from `start`, which keeps the constraints; the outcome is never below it.

    `start` has the variables of the scorer as nodes; the structure found has the nodes and hidden variables of
    `start`, with parents in the order of `scorer.variables`.
    """
    before = scorer.n_evaluated
    search = _Search(scorer, start, constraints, rules)
    status = Status.LOCAL_OPTIMUM
    rules.progress.begin("climbs", rules.restarts + 1)
    try:
        search.rescore_changed(rules.workers)
        search.climb(0)
        seeds = seed_sequence(rules.seed)
        for number in range(1, rules.restarts + 1):
            rules.progress.update(number)
            if search.is_over():
                break
            search.restart(np.random.Generator(np.random.PCG64(seeds.spawn(1)[0])), number)
            search.climb(number)
        status = search.ending or status
    except KeyboardInterrupt:
        rules.stop.set()
        status = Status.INTERRUPTED
    finally:
        rules.progress.end()
    return Searched(search.best(), search.best_score, tuple(search.history), scorer.n_evaluated - before, status)


@final
class _Search:
    """Where a search is: arcs, the score of every family, and what every move would gain.

    gain_of_adding[x, y] is the gain of the parent x for y, whether or not x → y would close a cycle;
    gain_of_deleting[x, y] of taking the arc away. Only the columns of changed families are found again.
    """

    def __init__(self, scorer: FamilyScorer, start: Dag, constraints: Constraints, rules: ClimbRules) -> None:
        self.scorer, self.start, self.constraints, self.rules = scorer, start, constraints, rules
        self.names = scorer.variables
        size = len(self.names)
        self.best_arcs: BoolArray = arc_matrix(start, self.names)
        self.arcs = ArcSet.from_matrix(self.best_arcs)
        self.scores: FloatArray = np.asarray([scorer.score(y, self.arcs.parents(y)) for y in range(size)])
        self.best_score = math.fsum(self.scores)
        self.gain_of_adding: FloatArray = np.full((size, size), -np.inf)
        self.gain_of_deleting: FloatArray = np.full((size, size), -np.inf)
        self.parents_at_gains: list[tuple[int, ...] | None] = [None] * size
        # A structure is known by the exclusive or of its arcs' keys: what a move leads to needs one operation.
        self.keys = np.random.default_rng(0).integers(1, 2**63, (size, size)).tolist()
        self.history: list[Step] = []
        self.ending: Status | None = None
        self.deadline = math.inf if rules.time_limit is None else time.monotonic() + rules.time_limit

    def best(self) -> Dag:
        """Return the best structure so far."""
        pairs = [(self.names[x], self.names[y]) for y, x in np.argwhere(self.best_arcs.T)]
        return Dag(self.start.nodes, pairs, self.start.hidden)

    def rescore_changed(self, workers: int | None = 1) -> None:
        """Find the gains of all moves that change a family whose parents are not those of its last gains."""
        changed = [y for y, parents in enumerate(self.parents_at_gains) if parents != self.arcs.parents(y)]
        map_in_order(self.rescore, changed, workers=workers)

    def rescore(self, y: int) -> None:
        """Find the score of a family and of all that are one arc away from it; nothing once the search is over."""
        if self.is_over():
            return
        parents = self.arcs.parents(y)
        self.parents_at_gains[y] = parents
        score = self.scorer.score(y, parents)
        self.scores[y] = score
        adding, deleting = self.gain_of_adding[:, y], self.gain_of_deleting[:, y]
        adding[:] = deleting[:] = -np.inf
        if len(parents) < self.constraints.max_parents:
            candidates = np.flatnonzero(self.constraints.allowed[:, y] & ~self.arcs.arcs[:, y])
            if candidates.size:
                adding[candidates] = self.scorer.scores_of_additions(y, parents, candidates) - score
        if parents:
            deleting[list(parents)] = self.scorer.scores_of_deletions(y, parents) - score

    def gains(self) -> FloatArray:
        """Return what adding, deleting and reversing each arc would gain, (3, p, p); −inf where it is not allowed."""
        arcs, required = self.arcs.arcs, self.constraints.required
        gains = np.full((3, *arcs.shape), -np.inf)
        np.copyto(gains[0], self.gain_of_adding, where=self.arcs.can_add())
        np.copyto(gains[1], self.gain_of_deleting, where=arcs & ~required)
        xs, ys = self.reversible()
        gains[2, xs, ys] = self.gain_of_deleting[xs, ys] + self.gain_of_adding[ys, xs]
        return gains

    def reversible(self) -> tuple[IntArray, IntArray]:
        """Return the ends of the arcs that may be reversed: no cycle, no rule broken."""
        is_free = self.constraints.allowed.T & ~self.constraints.required
        is_free = is_free & (self.arcs.arcs.sum(axis=0) < self.constraints.max_parents)[:, None]
        xs, ys = np.nonzero(self.arcs.arcs & is_free)
        can = self.arcs.can_reverse(xs, ys)
        return xs[can], ys[can]

    def make(self, kind: MoveKind, x: int, y: int) -> tuple[int, ...]:
        """Make a move and return the variables whose parents changed."""
        if kind is MoveKind.ADD:
            self.arcs.add(x, y)
        elif kind is MoveKind.DELETE:
            self.arcs.delete(x, y)
        else:
            self.arcs.reverse(x, y)
        return (x, y) if kind is MoveKind.REVERSE else (y,)

    def climb(self, number: int) -> None:
        """Make the best moves until `patience` steps bring no new best; keep the best structure of all."""
        key = self.key_of_arcs()
        visited = {key}
        top, waited = math.fsum(self.scores), 0
        while not self.is_over():
            gains = self.gains()
            chosen = self.choose(gains, key, visited)
            if chosen is None:
                return
            flat, key = chosen
            gain = gains.flat[flat]
            kind, x, y = np.unravel_index(flat, gains.shape)
            if gain <= LEAST_GAIN * abs(top) and waited >= self.rules.patience:
                return
            for changed in self.take(KINDS[int(kind)], int(x), int(y), number):
                self.rescore(changed)
            self.keep_best()
            visited.add(key)
            score = self.history[-1].score
            waited = 0 if score > top + LEAST_GAIN * abs(top) else waited + 1
            top = max(top, score)

    def choose(self, gains: FloatArray, key: int, visited: set[int]) -> tuple[int, int] | None:
        """Return the best move to a structure not visited yet and the key of that structure; None if there is none."""
        left = gains.ravel()
        size = len(self.names)
        rounding = LEAST_GAIN * abs(self.best_score)
        while True:
            top = left.max(initial=-np.inf)
            if top == -np.inf:
                return None
            # Equivalent moves gain the same but for rounding, which must not decide where the search goes.
            flat = int((left >= top - rounding).argmax())
            kind, place = divmod(flat, size * size)
            x, y = divmod(place, size)
            after = key ^ self.keys[x][y] ^ (self.keys[y][x] if kind == 2 else 0)
            if after not in visited:
                return flat, after
            left[flat] = -np.inf

    def take(self, kind: MoveKind, x: int, y: int, number: int) -> tuple[int, ...]:
        """Make a move, write it down, and return whose gains are out of date."""
        changed = self.make(kind, x, y)
        for child in changed:
            self.scores[child] = self.scorer.score(child, self.arcs.parents(child))
        self.history.append(Step(Move(kind, self.names[x], self.names[y]), math.fsum(self.scores), number))
        return changed

    def keep_best(self) -> None:
        """Keep the structure if it is the best so far.

        Only climbs do: on the way to where a restart begins there may be a better one, but no local optimum.
        """
        score = self.history[-1].score
        if score > self.best_score + LEAST_GAIN * abs(self.best_score):
            self.best_score, self.best_arcs = score, self.arcs.arcs.copy()

    def restart(self, generator: np.random.Generator, number: int) -> None:
        """Go to the best structure, from there to a random equivalent one, and take a neighbourhood apart.

        What holds a local optimum together is that arcs turned the wrong way are mended by further arcs around them.
        Random single moves do not undo that; building a whole neighbourhood anew does.
        """
        self.arcs = ArcSet.from_matrix(self.best_arcs)
        self.scores[:] = [self.scorer.score(y, self.arcs.parents(y)) for y in range(len(self.names))]
        self.walk_class(generator, number)
        region = self.neighbourhood(generator)
        is_loose = self.arcs.arcs & ~self.constraints.required & (region[:, None] | region[None, :])
        for x, y in np.argwhere(is_loose).tolist():
            self.take(MoveKind.DELETE, x, y, number)
        self.rescore_changed()  # of the structures on the way nobody asks what could be done there

    def walk_class(self, generator: np.random.Generator, number: int) -> None:
        """Reverse covered arcs at random, two tries for each arc.

        The reversal of a covered arc closes no cycle and leaves the largest number of parents as it is, so only the
        constraints on single arcs can forbid it.
        """
        arcs = np.argwhere(self.arcs.arcs).tolist()
        is_free = self.constraints.allowed.T & ~self.constraints.required
        for k in generator.integers(len(arcs), size=2 * len(arcs)).tolist() if arcs else ():
            x, y = arcs[k]
            if is_free[x, y] and self.arcs.is_covered(x, y):
                self.take(MoveKind.REVERSE, x, y, number)
                arcs[k] = [y, x]

    def neighbourhood(self, generator: np.random.Generator) -> BoolArray:
        """Return (p,) a random region of 1 to `perturbation` variables, connected as far as there are neighbours."""
        size = len(self.names)
        joined = self.arcs.arcs | self.arcs.arcs.T
        region = np.zeros(size, np.bool_)
        for _ in range(min(size, int(generator.integers(1, self.rules.perturbation + 1)))):
            near = np.flatnonzero(joined[region].any(axis=0) & ~region)
            region[generator.choice(near if near.size else np.flatnonzero(~region))] = True
        return region

    def key_of_arcs(self) -> int:
        """Return the key of the structure."""
        key = 0
        for x, y in np.argwhere(self.arcs.arcs).tolist():
            key ^= self.keys[x][y]
        return key

    def is_over(self) -> bool:
        """Whether the search must end, and why."""
        if self.rules.stop.is_set:
            self.ending = Status.INTERRUPTED
        elif time.monotonic() >= self.deadline:
            self.ending = Status.TIME_LIMIT
        return self.ending is not None
