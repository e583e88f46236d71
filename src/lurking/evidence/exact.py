"""The exact evidence: closed form on complete data, otherwise a sum over distinct count tables.

ln p(y|m) = ln Σ_{completions} exp D(λ, N(completion)). Only polynomially many count tables differ, so rows are added
one after the other and completions with equal tables are merged, with their multiplicity. Table rows that share no
data row are independent, so the sum splits into clusters that are done one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln, logsumexp

from lurking.errors import FractionalWeights, OptionError, TooLarge
from lurking.evidence.base import Evidence, Kind
from lurking.inference.engines.base import Engine
from lurking.inference.problem import Problem, refuse_families
from lurking.kernels.program import plain_slots
from lurking.kernels.reference.special import dirichlet_evidence
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag
from lurking.types import FloatArray, IntArray

DEFAULT_BUDGET = 10**6
CHUNK = 4_000_000
MOST_ENTRIES = 10**9  # of all tables held together, two bytes each


def exact(problem: Problem, options: FitOptions, *, budget: int = DEFAULT_BUDGET) -> Evidence:
    """Ln p(y|m) itself, by closed form or by merging equal count tables within `budget` tables held at once."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise OptionError(f"budget is {budget!r}; it must be a whole number of tables, at least 1")
    if not problem.engine.is_convex:
        refuse_families(problem, "exact evidence has a closed form", "use vb or cs")
    if not problem.is_complete:
        refuse_families(problem, "exact evidence with unobserved values is available", "use vb or cs")
    # Barren nodes and cells integrate to 1, so leaving them out changes nothing but the work.
    fits = (
        problem.in_blocks
        or bool(problem.families)
        or (problem.prune and (problem.engine.program is not None or problem.is_complete))
    )
    lean = problem if fits else _enumerated(problem)
    engine, layout = lean.engine, lean.layout
    if engine.program is None and engine.active.size:
        raise TooLarge("exact evidence of so many rows needs more tables than can be held; use vb or cs")
    counts = engine.complete_counts
    complete = layout.blocks.log_evidence(lean.pseudo, counts) + engine.log_base
    parts = {"complete_families": complete}
    held = 1
    if engine.active.size:
        weights = lean.rows.weights
        if not np.array_equal(weights, np.rint(weights)):
            raise FractionalWeights(
                "exact evidence with unobserved values needs whole-number weights (a fraction of a row has no "
                "completions to count); use vb or cs, which take any weights"
            )
        total = 0.0
        for cluster in _clusters(engine):
            value, tables = _cluster_evidence(engine, cluster, lean.pseudo + counts, int(budget), options.stop)
            total += value
            held = max(held, tables)
        parts["incomplete_families"] = total
    return Evidence(
        sum(parts.values()), 0.0, None, Kind.EXACT, "exact", parts, Status.CLOSED_FORM, {"tables_held": held}
    )


def _enumerated(problem: Problem) -> Problem:
    """Return the same problem with everything pruned that can be, by enumeration."""
    return Problem(problem.full_dag, problem.table, problem.prior, engine="enumeration", tied=problem.tied)


@dataclass(frozen=True)
class _Item:
    """One unique row of one group: the flat positions that each joint state adds 1 to, and how often it occurs."""

    positions: IntArray  # (states, factors)
    weight: int


def _items(engine: Engine) -> Iterator[_Item]:
    program = engine.program
    assert program is not None  # the enumeration engine compiles one whenever something is active
    for group, states in enumerate(program.states):
        fixed = program.fixed_start[group] + states * np.arange(program.n_fixed[group])
        for offset, slots in enumerate(plain_slots(program, group)):
            row = program.row_begin[group] + offset
            cells = np.concatenate([fixed, slots])
            cells = cells[program.gather[cells] < len(engine.active)]  # neutral factors count nothing
            positions = engine.active[program.gather[cells[None, :] + np.arange(states)[:, None]]]
            if program.weights[row] > 0:
                yield _Item(positions, round(program.weights[row]))


def _clusters(engine: Engine) -> list[list[_Item]]:
    """Return the items in independent clusters: two items are dependent when they can touch the same table row."""
    items = list(_items(engine))
    if not items:
        return []
    touched = [np.unique(engine.layout.row_of[item.positions]) for item in items]
    owners = np.repeat(np.arange(len(items)), [len(rows) for rows in touched])
    rows = np.concatenate(touched) + len(items)
    size = len(items) + len(engine.layout.row_start)
    links = coo_array((np.ones(len(rows)), (owners, rows)), shape=(size, size))
    _, labels = connected_components(links, directed=False)
    clusters: dict[int, list[_Item]] = {}
    for item, label in zip(items, labels[: len(items)], strict=True):
        clusters.setdefault(int(label), []).append(item)
    return list(clusters.values())


@dataclass(frozen=True)
class _Candidates:
    """Different sums of tables and deltas: hashes (2, m), log multiplicities (m,), (table, delta) (2, m)."""

    hashes: NDArray[np.uint64]
    values: FloatArray
    source: IntArray

    @classmethod
    def none(cls) -> _Candidates:
        """Return no candidate at all."""
        return cls(np.empty((2, 0), np.uint64), np.empty(0), np.empty((2, 0), np.int64))

    def with_more(self, hashes: NDArray[np.uint64], values: FloatArray, source: IntArray) -> _Candidates:
        """Return these and more candidates, equal ones merged by adding their multiplicities."""
        hashes = np.concatenate([self.hashes, hashes], axis=1)
        order = np.argsort(hashes[0], kind="stable")
        hashes = hashes[:, order]
        opens = np.concatenate([[True], hashes[0, 1:] != hashes[0, :-1]])
        if np.any(~opens[1:] & (hashes[1, 1:] != hashes[1, :-1])):
            raise AssertionError("two different count tables share a 64-bit hash")
        starts = np.flatnonzero(opens)
        ordered = np.concatenate([self.values, values])[order]
        tops = np.maximum.reduceat(ordered, starts)
        lengths = np.diff(np.append(starts, len(ordered)))
        sums = np.add.reduceat(np.exp(ordered - np.repeat(tops, lengths)), starts)
        first = np.concatenate([self.source, source], axis=1)[:, order[starts]]
        return _Candidates(hashes[:, starts], tops + np.log(sums), first)


class _Tables:
    """Distinct count tables with the log number of completions that lead to each."""

    def __init__(self, width: int, n: int) -> None:
        kind = np.int16 if n < 2**15 else np.int32
        generator = np.random.default_rng(0)
        self.counts = np.zeros((1, width), kind)
        self.log_multiplicity = np.zeros(1)
        self.keys = generator.integers(0, 2**64, size=(2, width), dtype=np.uint64)
        self.hashes = np.zeros((2, 1), np.uint64)

    def add(self, deltas: IntArray, log_weights: FloatArray, budget: int) -> bool:
        """Replace every table by its sums with the rows of `deltas`, merging equal ones; False beyond `budget` tables.

        Equal tables are found by a 64-bit linear hash; a second one confirms every merge. Candidates are made and
        merged in pieces, so that what is held stays within the budget and not its multiple.
        """
        steps = self.keys @ deltas.astype(np.uint64).T  # modulo 2^64 on purpose
        piece = max(1, CHUNK // len(self))
        merged = _Candidates.none()
        for begin in range(0, len(deltas), piece):
            chosen = slice(begin, begin + piece)
            hashes = (self.hashes[:, :, None] + steps[:, None, chosen]).reshape(2, -1)
            values = (self.log_multiplicity[:, None] + log_weights[None, chosen]).ravel()
            width = len(log_weights[chosen])
            index = np.arange(len(values))
            source = np.stack([index // width, index % width + begin])
            merged = merged.with_more(hashes, values, source)
            if len(merged.values) > budget:
                return False
        table, delta = merged.source
        self.counts = self.counts[table] + deltas.astype(self.counts.dtype)[delta]
        self.log_multiplicity, self.hashes = merged.values, merged.hashes
        return True

    def __len__(self) -> int:
        return len(self.counts)


def _compositions(total: int, parts: int) -> IntArray:
    """Return all ways to write `total` as an ordered sum of `parts` counts, (ways, parts)."""
    if parts == 1:
        return np.asarray([[total]])
    if parts == 2:
        heads = np.arange(total + 1)
        return np.column_stack([heads, total - heads])
    blocks = []
    for head in range(total + 1):
        tail = _compositions(total - head, parts - 1)
        blocks.append(np.column_stack([np.full(len(tail), head), tail]))
    return np.concatenate(blocks)


def _batch(weight: int, states: int, tables: int, width: int) -> int:
    """Return how many repetitions of a row to add at once: candidate tables and their entries stay below `CHUNK`."""
    batch = 1
    while batch < weight and max(4 * tables, width) * math.comb(batch + states, states - 1) <= CHUNK:
        batch += 1
    return batch


def _cluster_evidence(
    engine: Engine, items: list[_Item], base: FloatArray, budget: int, stop: StopFlag
) -> tuple[float, int]:
    """Return ln Σ_tables multiplicity · exp D(base, table) over one cluster, and the most tables held."""
    layout = engine.layout
    positions = np.unique(np.concatenate([item.positions.ravel() for item in items]))
    place = np.zeros(layout.size, np.int64)
    place[positions] = np.arange(len(positions))
    tables = _Tables(len(positions), sum(item.weight for item in items))
    limit = min(budget, MOST_ENTRIES // len(positions))
    done, held = 0, 1
    for item in items:
        states = len(item.positions)
        single = np.zeros((states, len(positions)), np.int64)
        np.add.at(single, (np.arange(states)[:, None], place[item.positions]), 1)
        left = item.weight
        while left:
            if stop.is_set:
                raise KeyboardInterrupt
            batch = _batch(left, states, len(tables), len(positions))
            ways = _compositions(batch, states)
            fits = tables.add(ways @ single, gammaln(batch + 1) - gammaln(ways + 1).sum(axis=1), limit)
            left -= batch
            done += batch
            held = max(held, len(tables))
            if not fits:
                n = sum(i.weight for i in items)
                way_out = "raise the budget, or use" if limit == budget else "that is all that memory allows; use"
                raise TooLarge(
                    f"exact evidence holds more than {limit} count tables after {done} of {n} rows; "
                    f"{way_out} vb or cs (lower bounds)"
                )
    return float(logsumexp(tables.log_multiplicity + _log_evidence(layout.row_of, positions, base, tables))), held


def _log_evidence(row_of: IntArray, positions: IntArray, base: FloatArray, tables: _Tables) -> FloatArray:
    """Return D(base, table) of every table, (T,), in pieces that fit in memory."""
    rows, inverse = np.unique(row_of[positions], return_inverse=True)
    totals = np.asarray(np.bincount(row_of, weights=base)[rows], np.float64)
    member = np.zeros((len(positions), len(rows)))
    member[np.arange(len(positions)), inverse] = 1.0
    result = np.empty(len(tables))
    step = max(1, CHUNK // len(positions))
    for begin in range(0, len(tables), step):
        counts = tables.counts[begin : begin + step].astype(np.float64)
        result[begin : begin + step] = dirichlet_evidence(base[positions], counts, totals, counts @ member)
    return result
