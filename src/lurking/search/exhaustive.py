"""Exact answers over all structures of a few variables, by programmes over subsets.

`optimum` is the best structure of all (Silander & Myllymäki 2006). `edge_probabilities` is the posterior probability of
every arc: with a prior that is uniform over *orders* of the variables and over the parent sets that agree with them
(Koivisto & Sood 2004), or for at most five variables with a prior uniform over structures, one by one. The prior over
orders favours structures that agree with many orders: of two equivalent structures it need not think the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from lurking.errors import OptionError, TooLarge, UnknownNameError
from lurking.graph.dag import Dag
from lurking.graph.spaces import all_dags
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.memory import in_words, is_affordable
from lurking.runtime.progress import Progress, Silent
from lurking.search.constraints import Constraints
from lurking.search.families import FamilyScorer
from lurking.search.greedy import Searched
from lurking.types import AnyArray, FloatArray

MOST_VARIABLES = 30
MOST_ENUMERATED = 5
PRIORS = ("orders", "structures")


def optimum(
    scorer: FamilyScorer, constraints: Constraints, stop: StopFlag | None = None, progress: Progress | None = None
) -> Searched:
    """Return the structure with the highest score of all that keep the constraints."""
    before = scorer.n_evaluated
    optima = Optima(scorer, constraints, stop, progress)
    dag = Dag(scorer.variables, optima.edges(scorer.variables))
    return Searched(dag, optima.value(scorer.variables), (), scorer.n_evaluated - before, Status.OPTIMUM)


@final
class Optima:
    """The structures with the highest scores over all subsets of a few variables, by dynamic programming.

    Every allowed family is scored once, at most p · Σ_{k ≤ max_parents} C(p − 1, k) of them; then come p · 2^(p−1)
    steps over subsets.
    """

    def __init__(
        self,
        scorer: FamilyScorer,
        constraints: Constraints,
        stop: StopFlag | None = None,
        progress: Progress | None = None,
    ) -> None:
        from lurking.kernels.cpu.sums.subsets import best_parents_into, best_sinks_into

        self.variables = scorer.variables
        self._place = {name: position for position, name in enumerate(self.variables)}
        size = len(self.variables)
        _check_memory("an exact search", size, 12 * size * 2 ** (size - 1) + 9 * 2**size)
        families = family_table(scorer, constraints, stop, progress)
        self._choices: AnyArray = np.empty(families.shape, np.int32)
        for v in range(size):
            best_parents_into(families[v], self._choices[v])
        self._values, self._sinks = np.empty(2**size), np.empty(2**size, np.int8)
        best_sinks_into(families, self._values, self._sinks)

    def value(self, names: Iterable[str]) -> float:
        """Return the score of the best structure over some of the variables; −inf if the constraints allow none."""
        return float(self._values[self._members(names)])

    def edges(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the edges of the best structure over some of the variables, by child and then by parent."""
        edges, members = [], self._members(names)
        while members:
            v = int(self._sinks[members])
            members ^= 1 << v
            chosen = int(self._choices[v, (members & ((1 << v) - 1)) | (members >> (v + 1) << v)])
            edges += [(self.variables[x], self.variables[v]) for x in _members_of(chosen, v)]
        return sorted(edges, key=lambda edge: (self._place[edge[1]], self._place[edge[0]]))

    def _members(self, names: Iterable[str]) -> int:
        return sum(1 << self._place[name] for name in names)


def edge_probabilities(
    scorer: FamilyScorer,
    constraints: Constraints,
    over: str = "orders",
    workers: int | None = 1,
    stop: StopFlag | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Return p(x → y | data), (p, p), x by y.

    over="orders": p(structure) ∝ the number of orders of the variables that agree with it; any number of variables
    that memory allows. over="structures": p(structure) uniform; at most five variables.
    """
    if over not in PRIORS:
        raise UnknownNameError("prior over structures", over, PRIORS)
    if over == "structures":
        return _over_structures(scorer, constraints)
    from lurking.kernels.cpu.sums.subsets import parents_of_into, sum_orders_into, sum_subsets_into

    size = len(scorer.variables)
    _check_memory("an exact posterior", size, (16 * size + 16) * 2 ** (size - 1) + 16 * 2**size)
    scores = family_table(scorer, constraints, stop, progress)
    sums = scores.copy()
    map_in_order(lambda v: sum_subsets_into(sums[v]), range(size), workers=workers)
    forward, backward = np.empty(2**size), np.empty(2**size)
    sum_orders_into(sums, forward, backward)
    found = np.empty((size, size))
    for v in range(size):
        # What was summed over subsets is not needed any more: its rows are the room to work in.
        parents_of_into(v, scores[v], forward, backward, sums[v], found[v])
    return np.minimum(found.T, 1.0)


def family_table(
    scorer: FamilyScorer, constraints: Constraints, stop: StopFlag | None = None, progress: Progress | None = None
) -> FloatArray:
    """Return the scores of all parent sets of all variables, (p, 2^(p−1)); −inf where the constraints rule one out."""
    size = len(scorer.variables)
    meter = progress or Silent()
    table = np.full((size, 2 ** (size - 1)), -np.inf)
    meter.begin("variables", size)
    try:
        for v in range(size):
            _fill(scorer, constraints, v, table[v], stop or StopFlag())
            meter.update(v + 1)
    finally:
        meter.end()
    return table


def _fill(scorer: FamilyScorer, constraints: Constraints, v: int, row: FloatArray, stop: StopFlag) -> None:
    """Write the scores of the allowed parent sets of v to `row`, depth first; sets grow by later variables only."""
    required = tuple(np.flatnonzero(constraints.required[:, v]).tolist())
    allowed = np.flatnonzero(constraints.allowed[:, v] & ~constraints.required[:, v])
    bits = np.asarray([0 if x == v else _bit(x, v) for x in range(len(scorer.variables))], np.int64)
    base = int(bits[list(required)].sum())
    row[base] = scorer.score(v, required)
    waiting: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while waiting:
        if stop.is_set:
            raise KeyboardInterrupt
        chosen, first = waiting.pop()
        later = allowed[first:]
        if not later.size or len(chosen) + len(required) >= constraints.max_parents:
            continue
        parents = tuple(sorted((*required, *chosen)))
        here = base + int(bits[list(chosen)].sum())
        row[here + bits[later]] = scorer.scores_of_additions(v, parents, later)
        waiting += [((*chosen, int(x)), first + k + 1) for k, x in enumerate(later)]


def _over_structures(scorer: FamilyScorer, constraints: Constraints) -> FloatArray:
    """Return the probabilities of arcs by adding up all structures."""
    size = len(scorer.variables)
    if size > MOST_ENUMERATED:
        raise OptionError(
            f"over is 'structures', which adds up all structures of at most {MOST_ENUMERATED} variables; there are "
            f"{size}: use over='orders'"
        )
    table = family_table(scorer, constraints)
    place = {name: position for position, name in enumerate(scorer.variables)}
    logs, matrices = [], []
    for dag in all_dags(scorer.variables):
        matrix = np.zeros((size, size))
        total = 0.0
        for v, name in enumerate(scorer.variables):
            parents = [place[parent] for parent in dag.parents(name)]
            matrix[parents, v] = 1.0
            total += table[v, sum(_bit(x, v) for x in parents)]
        logs.append(total)
        matrices.append(matrix)
    weights = np.exp(np.asarray(logs) - max(logs))
    return np.asarray(np.tensordot(weights / weights.sum(), np.asarray(matrices), 1), np.float64)


def _bit(x: int, v: int) -> int:
    """Return the bit of x in the parent sets of v."""
    return 1 << (x if x < v else x - 1)


def _members_of(parents: int, v: int) -> list[int]:
    """Return the variables of a parent set of v given by its place in the table."""
    return [j if j < v else j + 1 for j in range(parents.bit_length()) if parents >> j & 1]


def _check_memory(what: str, size: int, need: int) -> None:
    """Refuse what does not fit, before anything is allocated."""
    if size > MOST_VARIABLES or not is_affordable(need):
        raise TooLarge(
            f"{what} over {size} variables holds {in_words(need)} in memory, which is too much here (it doubles with "
            "every variable); leave some out, or use method='tabu'"
        )
