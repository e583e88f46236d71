"""The exact engine that passes messages on a junction tree.

One tree serves all rows. It is made over the variables that some row leaves unobserved; what a row observes only moves
the place where a table is read, so a row costs the joint states that it leaves open in each clique, not those of the
whole clique. Unconnected parts of the tree have their own unique rows. An unobserved cell without observed descendant
is absent from its row (with `prune`): its factor is skipped there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lurking.data.patterns import rank_rows, summed_weights
from lurking.errors import TooLarge
from lurking.graph.triangulation import CliqueTree, clique_tree
from lurking.inference.engines.base import Engine
from lurking.inference.engines.components import kept_nodes
from lurking.inference.engines.pieces import Piece
from lurking.inference.engines.plans import Plans
from lurking.inference.engines.rows import Rows
from lurking.kernels.program import TreeProgram, starts
from lurking.models.layout import Layout
from lurking.runtime.memory import available_bytes, count_in_words, in_words, is_affordable
from lurking.types import BoolArray, FloatArray, IntArray

STATE_LIMIT = 1 << 28


class Part(NamedTuple):
    """One connected part of the tree: its program, and which of its rows belongs to each pattern (−1: none)."""

    program: TreeProgram
    row_of_pattern: IntArray
    cliques: tuple[int, ...]


class JunctionEngine(Engine):
    """Exact expectations by message passing; refuses (TooLarge) a tree that does not fit in memory.

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
        codes = rows.codes
        self.kept = kept_nodes(layout, codes, prune, wanted)
        considered = np.isin(np.arange(len(layout.nodes)), range(len(layout.nodes)) if families is None else families)
        self.free: BoolArray = (codes < 0) & self.kept
        scopes = [[*layout.parents[j], j] for j in range(len(layout.nodes))]
        present = self.kept & considered
        self.touched: BoolArray = np.stack([self.free[:, scope].any(axis=1) for scope in scopes], axis=1) & present
        self.complete: BoolArray = present & ~self.touched
        self.complete_counts = self._count_complete()
        inferred = np.flatnonzero(self.touched.any(axis=0))
        open_variables = set(np.flatnonzero(self.free.any(axis=0)).tolist())
        self.scopes = {int(j): tuple(v for v in sorted(scopes[j]) if v in open_variables) for j in inferred}
        sizes = dict(enumerate(layout.cardinalities))
        self.tree: CliqueTree = clique_tree(self.scopes.values(), sizes)
        self.active, self._compact = self._positions(inferred)
        self.home = self._homes()
        self.parts: list[Part] = [self._part(cliques) for cliques in self.tree.parts()]

    @property
    def width(self) -> int:
        """Tree width: the number of variables of the largest clique, less one; −1 when nothing is unobserved."""
        return max((len(clique) for clique in self.tree.cliques), default=0) - 1

    @cached_property
    def cost(self) -> float:
        """Multiplications of one E-step, about: joint states visited, times factors and messages of their clique."""
        total = 0.0
        for part in self.parts:
            tree = part.program
            degree = np.diff(tree.factor_begin) + np.diff(tree.child_begin) + 2.0
            states = np.append(tree.plan_states, 0)[tree.plan_of]
            visits = np.bincount(tree.pattern_of, minlength=len(states))
            total += float(visits @ (states * degree + 8.0 * (tree.plan_of >= 0)).sum(axis=1))
        return total

    @property
    def pieces(self) -> list[Piece]:
        """One for each unconnected part of the tree."""
        return [Piece(self.active, part.program, self.cost / len(self.parts)) for part in self.parts]

    def _count_complete(self) -> FloatArray:
        counts = np.zeros(self.layout.size)
        for j in range(len(self.layout.nodes)):
            rows = np.flatnonzero(self.complete[:, j])
            if rows.size:
                counts += np.bincount(
                    self._offsets(j, rows), weights=self.rows.weights[rows], minlength=self.layout.size
                )
        return counts

    def _offsets(self, j: int, rows: IntArray) -> IntArray:
        """Return the flat positions of family j in the given patterns, free variables at state 0."""
        return self.layout.positions(j, self.rows.codes, rows)

    def _positions(self, families: IntArray) -> tuple[IntArray, IntArray]:
        """Return the flat positions of all tables that meet a free variable, and the place of each among them."""
        layout = self.layout
        blocks = [
            np.arange(layout.offsets[j], layout.offsets[j] + layout.cardinalities[j] * layout.configurations[j])
            for j in families
        ]
        active = np.unique(np.concatenate(blocks)) if blocks else np.empty(0, np.int64)
        compact = np.full(layout.size, -1, np.int64)
        compact[active] = np.arange(len(active))
        return active, compact

    def _homes(self) -> dict[int, list[int]]:
        """Return the families of each clique: a family lives in the smallest clique that holds its open variables."""
        cards = self.layout.cardinalities
        sizes = [math.prod(cards[v] for v in clique) for clique in self.tree.cliques]
        holding: dict[int, list[int]] = {}
        for index, clique in enumerate(self.tree.cliques):
            for v in clique:
                holding.setdefault(v, []).append(index)
        homes: dict[int, list[int]] = {index: [] for index in range(len(self.tree.cliques))}
        for j, scope in self.scopes.items():
            fitting = [c for c in holding[scope[0]] if set(scope) <= set(self.tree.cliques[c])]
            homes[min(fitting, key=lambda c: (sizes[c], c))].append(j)
        return homes

    def _part(self, cliques: list[int]) -> Part:
        """Compile one connected part: plans of its cliques, its unique rows and where they read the tables."""
        variables = sorted({v for c in cliques for v in self.tree.cliques[c]})
        rows = np.flatnonzero(self.free[:, variables].any(axis=1))
        packed = np.packbits(self.free[rows][:, variables], axis=1)
        _, first, pattern = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        factors = [j for c in cliques for j in self.home[c]]
        plans = Plans(self.layout, self.tree, cliques, self.home)
        plan_of = plans.assign(self.free[rows[first]])
        self._check(plans, len(rows) * len(factors))
        bases = np.empty((len(factors), len(rows)), np.int64)
        for k, j in enumerate(factors):
            bases[k] = np.where(self.touched[rows, j], self._compact[self._offsets(j, rows)], -1)
        columns = [pattern.ravel(), *bases]
        inverse, representative = rank_rows(columns, [len(first), *[len(self.active)] * len(factors)], len(rows))
        row_of_pattern = np.full(len(self.rows), -1, np.int64)
        row_of_pattern[rows] = inverse
        place = {c: k for k, c in enumerate(cliques)}
        children = [[place[d] for d in cliques if self.tree.parent[d] == c] for c in cliques]
        program = TreeProgram(
            factor_begin=starts([len(self.home[c]) for c in cliques]),
            parent=np.asarray([place.get(self.tree.parent[c], -1) for c in cliques], np.int64),
            child_begin=starts([len(below) for below in children]),
            children=np.asarray([d for below in children for d in below], np.int64),
            state_begin=starts(plans.most_states),
            message_begin=starts(plans.longest_message),
            plan_states=np.asarray(plans.states, np.int64),
            plan_message=np.asarray(plans.message, np.int64),
            plan_begin=starts(plans.lengths)[:-1],
            maps=plans.maps(),
            plan_of=plan_of,
            pattern_of=pattern.ravel()[representative].astype(np.int32),
            bases=np.ascontiguousarray(bases[:, representative].T.astype(np.int32)),
            weights=summed_weights(inverse, self.rows.weights[rows], len(representative)),
        )
        return Part(program, row_of_pattern, tuple(cliques))

    def _check(self, plans: Plans, n_bases: int) -> None:
        """Refuse a tree whose plans, with what is made on the way to them, and rows cannot be held."""
        need = 8 * sum(plans.lengths) + 8 * sum(plans.most_states) + 16 * sum(plans.longest_message) + 16 * n_bases
        largest = max(plans.states, default=0)
        if largest <= STATE_LIMIT and is_affordable(need):
            return
        raise TooLarge(
            f"the junction tree has width {self.width} and a clique of {count_in_words(largest)} joint states, "
            f"and needs {in_words(need)}; available are {in_words(available_bytes())}, at most {STATE_LIMIT} states; "
            "use fewer arrows into the unobserved variables, or fewer states"
        )

    def _expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z) of the active positions by the compiled kernel."""
        from lurking.kernels.cpu.junction import expect_rows

        counts = self.complete_counts[self.active]
        used = counts != 0.0
        log_z = float(counts[used] @ potentials[used])
        for part in self.parts:
            own, share = expect_rows(part.program, potentials, 0, len(part.program.weights), np.empty(0))
            counts += own
            log_z += share
        return counts, log_z

    def _log_z_active(self, points: FloatArray) -> FloatArray:
        """Return log_z of the active positions at every point, (m,), by one compiled call for each part."""
        from lurking.kernels.cpu.junction import log_z_on_tree

        counts = self.complete_counts[self.active]
        used = counts != 0.0
        result = np.asarray(np.vecdot(np.compress(used, points, axis=1), counts[used]))
        for part in self.parts:
            result = result + log_z_on_tree(part.program, points)
        return result

    def _pattern_log_z(self, potentials: FloatArray) -> FloatArray:
        """Return ln z of every pattern, (u,)."""
        from lurking.kernels.cpu.junction import expect_rows

        result = np.zeros(len(self.rows))
        for j in range(len(self.layout.nodes)):
            rows = np.flatnonzero(self.complete[:, j])
            result[rows] += potentials[self._offsets(j, rows)]
        for part in self.parts:
            rows = np.flatnonzero(part.row_of_pattern >= 0)
            log_z = np.empty(len(part.program.weights))
            expect_rows(part.program, potentials[self.active], 0, len(log_z), log_z)
            result[rows] += log_z[part.row_of_pattern[rows]]
        return result

    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:
        """Return the posterior of one node's states in every pattern, (u, r); NaN rows where it is pruned."""
        from lurking.kernels.cpu.junction import marginals

        width = self.layout.cardinalities[node]
        result = np.full((len(self.rows), width), np.nan)
        seen = np.flatnonzero(self.rows.codes[:, node] >= 0)
        result[seen] = 0.0
        result[seen, self.rows.codes[seen, node]] = 1.0
        rows = np.flatnonzero(self.free[:, node])
        for part in self.parts if rows.size else []:
            factors = [j for c in part.cliques for j in self.home[c]]
            if node in factors:
                first = int(self._compact[self.layout.offsets[node]])
                own = marginals(part.program, potentials[self.active], factors.index(node), first, width)
                result[rows] = own[part.row_of_pattern[rows]]
        return result

    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:
        """Return the expected counts of every pattern on its own, (u, P)."""
        from lurking.kernels.cpu.junction import expect_rows

        result = np.zeros((len(self.rows), self.layout.size))
        for j in range(len(self.layout.nodes)):
            rows = np.flatnonzero(self.complete[:, j])
            result[rows, self._offsets(j, rows)] += 1.0
        for part in self.parts:
            single = part.program._replace(weights=np.ones(len(part.program.weights)))
            for i in np.flatnonzero(part.row_of_pattern >= 0):
                row = int(part.row_of_pattern[i])
                result[i, self.active] += expect_rows(single, potentials[self.active], row, row + 1, np.empty(0))[0]
        return result
