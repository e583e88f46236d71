"""The exact engine that enumerates joint states, component by component.

Compilation turns unique rows into a `Program`: families without unobserved variable are counted once; the
unobserved variables of each missingness pattern split into independent components; a component is enumerated over
the unique rows of *its own* observed variables, and components of different missingness patterns over the same
variables are one group: where a pattern lacks a family (its cell is empty and pruned), the row uses a neutral factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from lurking.data.patterns import rank_rows, summed_weights
from lurking.errors import TooLarge
from lurking.inference.engines.base import Engine
from lurking.inference.engines.components import Splitter, openings
from lurking.inference.engines.joining import NOT_JOINED, Choices, JoinedGroup, assemble, join
from lurking.inference.engines.memory_of_rows import remembered, where_unobserved
from lurking.inference.engines.pieces import Piece
from lurking.inference.engines.rows import Rows
from lurking.kernels.program import Program, plain_slots, starts
from lurking.models.layout import Layout
from lurking.runtime.memory import available_bytes, count_in_words, in_words, is_affordable
from lurking.types import BoolArray, FloatArray, IntArray, read_only

BYTES_PER_CELL = 20
STATE_LIMIT = 1 << 26
JOIN_FROM = 4096  # rows × factors from which joining factors is looked at


@dataclass
class Group:
    """Unobserved variables that form a component in some patterns, and all families that touch them there."""

    variables: tuple[int, ...]
    families: set[int] = field(default_factory=set)
    patterns: list[IntArray] = field(default_factory=list)
    row_of_pattern: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    cards: tuple[int, ...] = ()
    states: int = 1

    @property
    def all_patterns(self) -> IntArray:
        """(m,) patterns that contain the component, in the order of `row_of_pattern`."""
        return self.patterns[0] if len(self.patterns) == 1 else np.concatenate(self.patterns)


class EnumerationEngine(Engine):
    """Exact expectations by enumeration; refuses (TooLarge) what does not fit in memory.

    Parameters
    ----------
    layout : where the parameters live.
    rows : codes and weights of the patterns.
    prune : leave unobserved cells without observed descendant out of their row.
    wanted : nodes that are kept even then, with their ancestors.
    families : do only these, which must make up whole components (see `independent_families`); None does all.
    """

    def __init__(
        self,
        layout: Layout,
        rows: Rows,
        prune: bool,
        wanted: Sequence[int] = (),
        families: Sequence[int] | None = None,
    ) -> None:
        super().__init__(layout, rows, prune, wanted)
        self.complete: list[tuple[int, IntArray]] = []
        self.groups: list[Group] = self._collect(Splitter(layout, prune, wanted, families))
        self.complete_counts = self._count_complete()
        self.program, self.active = _Compiler(self).compile()

    def _collect(self, splitter: Splitter) -> list[Group]:
        """Group the patterns by what they leave open and merge components over the same variables."""
        groups: dict[tuple[int, ...], Group] = {}
        families: dict[int, list[IntArray]] = {}
        opened, kept = openings(self.layout, self.rows.codes, splitter)
        for free, keep, rows in opened:
            split = splitter.split(free, keep)
            for j in split.complete:
                families.setdefault(j, []).append(rows if kept is None else rows[kept[rows, j]])
            for component in split.components:
                group = groups.setdefault(component.variables, Group(component.variables))
                group.families.update(component.families)
                group.patterns.append(rows)
        self.complete = [
            (j, parts[0] if len(parts) == 1 else np.concatenate(parts)) for j, parts in sorted(families.items())
        ]
        return list(groups.values())

    def _offsets(self, j: int, rows: IntArray) -> IntArray:
        """Return the flat positions of family j in the given patterns, free variables at state 0."""
        return self.layout.positions(j, self.rows.codes, rows)

    def _count_complete(self) -> FloatArray:
        counts = np.zeros(self.layout.size)
        for j, rows in self.complete:
            counts += np.bincount(self._offsets(j, rows), weights=self.rows.weights[rows], minlength=self.layout.size)
        return counts

    @property
    def pieces(self) -> list[Piece]:
        """One for all compiled rows; none if nothing is active."""
        if self.program is None:
            return []
        return [Piece(self.active, self.program._replace(counts=np.zeros(len(self.active))), self.cost)]

    def _expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z) of the active positions by the compiled kernel."""
        from lurking.kernels.cpu.enumeration import expect

        if self.program is None:
            return np.empty(0), 0.0
        return expect(self.program, potentials)

    def _log_z_active(self, points: FloatArray) -> FloatArray:
        """Return log_z of the active positions at every point, (m,), by one compiled call."""
        from lurking.kernels.cpu.points import log_z_of_points

        return np.zeros(len(points)) if self.program is None else log_z_of_points(self.program, points)

    def _group_posterior(self, potentials: FloatArray, index: int) -> tuple[FloatArray, FloatArray]:
        from lurking.kernels.cpu.enumeration import posterior_of_group

        assert self.program is not None  # groups exist only when a program was compiled
        return posterior_of_group(self.program, potentials[self.active], index)

    def _pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return ln z of every pattern, (u,)."""
        result = np.zeros(len(self.rows))
        for j, rows in self.complete:
            result[rows] += potentials[self._offsets(j, rows)]
        for index, group in enumerate(self.groups):
            result[group.all_patterns] += self._group_posterior(potentials, index)[1][group.row_of_pattern]
        return result

    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return the posterior of one node's states in every pattern, (u, r); NaN rows where it is pruned."""
        result = np.full((len(self.rows), self.layout.cardinalities[node]), np.nan)
        seen = np.flatnonzero(self.rows.codes[:, node] >= 0)
        result[seen] = 0.0
        result[seen, self.rows.codes[seen, node]] = 1.0
        for index, group in enumerate(self.groups):
            if node not in group.variables:
                continue
            axis = group.variables.index(node)
            masses = self._group_posterior(potentials, index)[0].reshape(-1, *group.cards)
            others = tuple(a + 1 for a in range(len(group.cards)) if a != axis)
            result[group.all_patterns] = masses.sum(axis=others)[group.row_of_pattern]
        return result

    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the expected counts of every pattern on its own, (u, P)."""
        result = np.zeros((len(self.rows), self.layout.size))
        for j, rows in self.complete:
            result[rows, self._offsets(j, rows)] += 1.0
        program = self.program
        # One place more takes what the neutral factors receive; it is cut off at the end.
        place = np.append(self.active, self.layout.size)
        for index, group in enumerate(self.groups):
            assert program is not None
            masses = self._group_posterior(potentials, index)[0]
            rows, states = masses.shape
            fixed = program.fixed_start[index] + states * np.arange(program.n_fixed[index])
            slots = np.concatenate([np.broadcast_to(fixed, (rows, len(fixed))), plain_slots(program, index)], axis=1)
            positions = place[program.gather[slots[:, :, None] + np.arange(states)]]
            own = np.zeros((rows, self.layout.size + 1))
            np.add.at(own, (np.arange(rows)[:, None, None], positions), masses[:, None, :])
            np.add.at(result, group.all_patterns, own[group.row_of_pattern, :-1])
        return result


@lru_cache(maxsize=256)
def _moves(cards: tuple[int, ...], strides: tuple[int, ...]) -> IntArray:
    """Return how far each joint state moves the flat index, (S,), the last variable fastest."""
    return read_only(np.tensordot(np.asarray(strides), np.indices(cards).reshape(len(cards), -1), 1))


class _Compiler:
    """Builds the `Program` of an engine; lives only while the engine is made."""

    def __init__(self, engine: EnumerationEngine) -> None:
        self.engine = engine
        self.layout = engine.layout
        self.gather: list[IntArray] = []
        self.choices: list[Choices] = []
        self.weights: list[FloatArray] = []
        self.states: list[int] = []
        self.n_fixed: list[int] = []
        self.n_factors: list[int] = []
        self.fixed_start: list[int] = []
        self.joined: list[JoinedGroup] = []
        self.cells = 0
        self.has_gaps: BoolArray = where_unobserved(engine.rows.codes)[0]

    def compile(self) -> tuple[Program | None, IntArray]:
        """Return the program and the flat positions of its potentials."""
        layout = self.layout
        if not self.engine.groups:
            return None, np.empty(0, np.int64)
        for group in self.engine.groups:
            self._add(group)
        gather = np.concatenate(self.gather)
        neutral = gather == layout.size
        touched = np.zeros(len(layout.row_start) - 1, bool)
        touched[layout.row_of[gather[~neutral]]] = True
        active = np.flatnonzero(touched[layout.row_of])
        position = np.full(layout.size + 1, len(active), np.int32)
        position[active] = np.arange(len(active), dtype=np.int32)
        lengths = np.diff(layout.row_start)[touched]
        rows = [len(weights) for weights in self.weights]
        joined, quick = assemble(self.joined, self.states, len(gather))
        slots = self._slots(quick)
        program = Program(
            row_start=starts(lengths.tolist()),
            counts=self.engine.complete_counts[active],
            gather=position[gather],
            states=np.asarray(self.states, np.int64),
            n_fixed=np.asarray(self.n_fixed, np.int64),
            n_factors=np.asarray(self.n_factors, np.int64),
            fixed_start=np.asarray(self.fixed_start, np.int64),
            slot_start=starts([len(own) for own in slots])[:-1],
            row_begin=starts(rows),
            slots=np.concatenate(slots).astype(np.uint32, copy=False),
            weights=np.concatenate(self.weights),
            joined=joined,
        )
        return program, active

    def _add(self, group: Group) -> None:
        """Append one group: its unique rows, expanded tables and slots."""
        layout = self.layout
        free = set(group.variables)
        group.cards = tuple(layout.cardinalities[v] for v in group.variables)
        group.states = math.prod(group.cards)
        families = sorted(group.families)
        self._check(group.states, len(families), group)
        seen = {j: [v for v in layout.strides[j] if v not in free] for j in families}
        observed = sorted({v for variables in seen.values() for v in variables})
        patterns, rows = group.all_patterns, self.engine.rows
        everywhere = len(group.patterns) == 1 and len(patterns) == len(rows)
        columns = [rows.codes[:, v] if everywhere else rows.codes[patterns, v] for v in observed]
        weights = rows.weights if everywhere else rows.weights[patterns]
        cards = tuple(layout.cardinalities[v] for v in observed)

        def ranked() -> tuple[IntArray, list[IntArray]]:
            row_of_pattern, first_of_row = rank_rows(columns, cards, len(patterns))
            return row_of_pattern, [column[first_of_row].astype(np.int64) for column in columns]

        group.row_of_pattern, distinct = remembered(rows.codes, (*observed, *cards), ranked) if everywhere else ranked()
        codes = dict(zip(observed, distinct, strict=True))
        weights = summed_weights(group.row_of_pattern, weights, int(group.row_of_pattern.max(initial=-1)) + 1)
        fixed = [j for j in families if not seen[j]]
        moving = [j for j in families if seen[j]]
        self.fixed_start.append(self.cells)
        for j in fixed:
            self._append_cells(self._shifts(j, group))
        choices = Choices([], [])
        for j in moving:
            positions, rank = self._configurations(j, seen[j], [codes[v] for v in seen[j]])
            self._check(len(positions) * group.states, 1, group)
            choices.codes.append(rank)
            choices.cells.append(np.arange(self.cells, self.cells + len(positions) * group.states, group.states))
            self._append_cells((positions[:, None] + self._shifts(j, group)).ravel())
        if any(self.has_gaps[v] and codes[v].min(initial=0) < 0 for v in observed):
            for k, j in enumerate(moving):
                absent = np.logical_or.reduce([codes[v] < 0 for v in seen[j]])
                if absent.any():
                    choices.codes[k] = np.where(absent, len(choices.cells[k]), choices.codes[k])
                    choices.cells[k] = np.append(choices.cells[k], self.cells)
            self._append_cells(np.full(group.states, layout.size))
        self.joined.append(join(choices, group.states) if len(weights) * len(moving) >= JOIN_FROM else NOT_JOINED)
        self.choices.append(choices)
        self.states.append(group.states)
        self.n_fixed.append(len(fixed))
        self.n_factors.append(len(moving))
        self.weights.append(weights)

    def _slots(self, quick: list[IntArray]) -> list[IntArray]:
        """Return the slots of every group: the joint ones given in `quick`, or one for each factor."""
        result = []
        for slots, choices in zip(quick, self.choices, strict=True):
            if slots.size or not choices.codes:
                result.append(slots)
                continue
            own = np.empty((len(choices.codes[0]), len(choices.codes)), np.int64)
            for f, (code, cells) in enumerate(zip(choices.codes, choices.cells, strict=True)):
                own[:, f] = cells[code]
            result.append(own.ravel())
        return result

    def _shifts(self, j: int, group: Group) -> IntArray:
        """Return the flat position of family j for every joint state, observed variables at state 0, (S,)."""
        strides = self.layout.strides[j]
        return self.layout.offsets[j] + _moves(group.cards, tuple(strides.get(v, 0) for v in group.variables))

    def _configurations(self, j: int, seen: list[int], codes: list[IntArray]) -> tuple[IntArray, IntArray]:
        """Return the positions of the observed configurations of family j and which one each row has.

        What is returned for a row with an empty cell among `codes` means nothing.
        """
        strides = self.layout.strides[j]
        cards = [self.layout.cardinalities[v] for v in seen]
        if math.prod(cards) > 64 + 2 * len(codes[0]):
            total = np.sum([strides[v] * c for v, c in zip(seen, codes, strict=True)], axis=0)
            positions, rank = np.unique(np.maximum(total, 0), return_inverse=True)
            return positions, np.asarray(rank, np.int64)
        positions, rank = strides[seen[0]] * np.arange(cards[0]), codes[0]
        for variable, card, code in zip(seen[1:], cards[1:], codes[1:], strict=True):
            positions = (positions[:, None] + strides[variable] * np.arange(card)).ravel()
            rank = rank * card + code
        return positions, rank

    def _append_cells(self, positions: IntArray) -> None:
        self.gather.append(positions)
        self.cells += len(positions)

    def _check(self, size: int, copies: int, group: Group) -> None:
        """Refuse a component whose joint states or expanded tables cannot be held."""
        need = (self.cells + size * copies) * BYTES_PER_CELL
        fits = size <= STATE_LIMIT and self.cells + size * copies < 2**31
        if fits and is_affordable(need):
            return
        names = [self.layout.nodes[v] for v in group.variables]
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        raise TooLarge(
            f"{len(names)} unobserved variables that depend on each other ({shown}) have "
            f"{count_in_words(size)} joint states: enumerating them needs {in_words(need)}, available are "
            f"{in_words(available_bytes())} "
            f"(at most {STATE_LIMIT} joint states); use fewer or smaller hidden variables"
        )
