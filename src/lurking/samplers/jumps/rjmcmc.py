"""Reversible jumps over structures, parameters and completions: p(m, θ, s | y) ∝ p(m) p(θ | m) p(s, y | θ, m).

One sweep makes

1. arc moves given s. An arc is added, deleted or reversed, and the θ of every changed family is proposed from its full
   conditional Dir(λ + N(s)). Its density is p(θ|m') p(s, y|θ, m') / p(s, y|m'), so that parameters leave the ratio
   of acceptance, which is that of the log evidences of completed data:

       [p(m') p(s, y|m')] / [p(m) p(s, y|m)].

   Pairs and kinds of moves are drawn with the same probabilities whatever the structure, so a move and the one that
   undoes it are equally likely. Nothing else of the step needs θ, which is drawn after it from its full conditional.
2. for every hidden variable that may have several cardinalities, with θ integrated out: an empty state is born or
   dies, which changes nothing but p(s, y|m), and a state is split or two are merged (`samplers.jumps.allocation`);
3. θ | s, m;
4. a split or merge with s summed out, by new parameters made of old ones and auxiliary variables, with their Jacobian
   (`lurking.samplers.jumps.splitting`);
5. s | θ, m, equal rows by one multinomial draw.

States are labelled, as they are in p(y|m): splits put the second half at a random place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from lurking.errors import OptionError
from lurking.graph.dag import Dag
from lurking.graph.moves import ArcSet
from lurking.models.prior import BDeuPrior, SymmetricPrior
from lurking.runtime.checks import is_number
from lurking.samplers.jumps.allocation import Families, cases_of, deal, drawn_tables, launch, log_deal
from lurking.samplers.jumps.cells import Cells, Completed, side_by_side, sums_at
from lurking.samplers.jumps.splitting import Auxiliary, HiddenTables, draw_auxiliary, merge, split
from lurking.types import BoolArray, CodeArray, FloatArray, IntArray

KEPT_CELLS = 8
"""Sets of cells (one for each choice of cardinalities) that a chain keeps."""
MOVES = ("arc", "empty", "allocation", "jump")

Structure = tuple[bytes, tuple[int, ...]]
"""Arcs (p, p) as bytes, and the number of states of every node."""


@dataclass(frozen=True, eq=False)
class Space:
    """The structures that may be visited, their prior, and the rows.

    Attributes
    ----------
    nodes : names, p of them; `is_hidden` (p,) says which are hidden.
    allowed, required : (p, p) arcs that may and that must be there.
    max_parents : the most parents of a node.
    least, most : (p,) bounds on the number of states.
    prior : λ of every table; it never tells states apart.
    log_prior : ln p(m) up to a constant; None for a uniform one.
    rows, weights : (U, p) the different rows, −1 where unobserved, and (U,) their weights.
    """

    nodes: tuple[str, ...]
    is_hidden: BoolArray
    allowed: BoolArray
    required: BoolArray
    max_parents: int
    least: IntArray
    most: IntArray
    prior: SymmetricPrior | BDeuPrior
    log_prior: Callable[[Dag], float] | None
    rows: CodeArray = field(repr=False)
    weights: FloatArray = field(repr=False)

    def dag(self, structure: Structure) -> Dag:
        """Return a structure as a Dag over the nodes in their order."""
        arcs = np.frombuffer(structure[0], np.bool_).reshape(len(self.nodes), -1)
        edges = [(self.nodes[x], self.nodes[y]) for y, x in np.argwhere(arcs.T)]
        hidden = {name: r for name, r, own in zip(self.nodes, structure[1], self.is_hidden, strict=True) if own}
        return Dag(self.nodes, edges, hidden)

    def log_prior_of(self, structure: Structure) -> float:
        """Return ln p(m) up to a constant; −inf is a structure that is ruled out."""
        if self.log_prior is None:
            return 0.0
        dag = self.dag(structure)
        value = self.log_prior(dag)
        if not is_number(value) and not (isinstance(value, float) and value == -math.inf):
            raise OptionError(
                f"the structure prior is {value!r} for {dag}; it must return ln p(m), a finite number, or −inf to "
                "rule a structure out"
            )
        return float(value)


@final
class JumpChain:
    """One chain: the current structure, parameters and completions."""

    def __init__(
        self, space: Space, arcs: BoolArray, cardinalities: tuple[int, ...], generator: np.random.Generator
    ) -> None:
        self.space = space
        self.generator = generator
        self._move_to(ArcSet.from_matrix(arcs))
        self.moves: dict[str, list[int]] = {name: [0, 0] for name in MOVES}
        """Attempts and acceptances of each kind of move."""
        self._pairs = np.argwhere(space.allowed)
        self._several = np.flatnonzero(space.most > space.least)
        self._known_cells: dict[tuple[int, ...], Cells] = {}
        self._known_priors: dict[Structure, float] = {}
        self.cells = self._cells_for(cardinalities)
        self.log_theta: list[FloatArray] = []
        self.completed = Completed(self.cells, np.zeros(len(self.cells)), space.prior)
        self.draw_parameters()
        self.draw_completions()

    @property
    def structure(self) -> Structure:
        """The current structure."""
        return self.arcs.arcs.tobytes(), self.cells.cardinalities

    def sweep(self) -> None:
        """Update everything once."""
        self.move_arcs(len(self._pairs))
        for node in self._several:
            self.renew(int(node))
            self.reallocate(int(node))
        self.draw_parameters()
        for node in self._several:
            self.jump(int(node))
        self.draw_completions()

    def draw_parameters(self) -> None:
        """Draw θ | s, m: every row of every table from Dir(λ + N(s))."""
        counts = [self.completed.table(*family) for family in self._families(range(len(self.space.nodes)))]
        self.log_theta = drawn_tables(counts, self.space.prior, self.cells.cardinalities, self.generator)

    def draw_completions(self) -> None:
        """Draw s | θ, m."""
        counts = self.cells.draw(self._log_mass(self.cells, self.log_theta), self.generator)
        self.completed = Completed(self.cells, counts, self.space.prior)

    def move_arcs(self, count: int) -> None:
        """Propose `count` additions, deletions and reversals given s."""
        if not len(self._pairs):
            return
        picks = self.generator.integers(len(self._pairs), size=count)
        turns = self.generator.integers(2, size=count)
        thresholds = np.log1p(-self.generator.random(count))
        for pick, turn, threshold in zip(picks, turns, thresholds, strict=True):
            x, y = (int(v) for v in self._pairs[pick])
            self.moves["arc"][0] += 1
            after = self._turned(x, y) if turn else self._toggled(x, y)
            if after is None:
                continue
            ratio = sum(
                self.completed.score(node, after.parents(node)) - self.completed.score(node, self._parents[node])
                for node in ((x, y) if turn else (y,))
            )
            structure = after.arcs.tobytes(), self.cells.cardinalities
            if threshold < ratio + self._log_prior(structure) - self._log_prior(self.structure):
                self._move_to(after)
                self.moves["arc"][1] += 1

    def renew(self, node: int) -> None:
        """Propose an empty state of a hidden node at a random place, or to take a random state away if it is empty."""
        self.moves["empty"][0] += 1
        is_birth = bool(self.generator.integers(2))
        chosen = self._chosen_states(node, is_birth)
        if chosen is None or (not is_birth and self.completed.counts[self.cells.codes[node] == chosen[1]].any()):
            return
        other = self._cells_for(self._with_states(node, 1 if is_birth else -1))
        proposed = Completed(other, self._moved_counts(other, node, *chosen), self.space.prior)
        families = self._families([node, *self._children(node)])
        ratio = math.fsum(proposed.score(*family) - self.completed.score(*family) for family in families)
        ratio += self._log_prior((self.structure[0], other.cardinalities)) - self._log_prior(self.structure)
        if math.log1p(-self.generator.random()) < ratio:
            self.cells, self.completed = other, proposed
            self.moves["empty"][1] += 1

    def reallocate(self, node: int) -> None:
        """Propose to split one state of a hidden node or to merge two, θ integrated out."""
        self.moves["allocation"][0] += 1
        is_split = bool(self.generator.integers(2))
        chosen = self._chosen_states(node, is_split)
        if chosen is None:
            return
        a, b = chosen
        other = self._cells_for(self._with_states(node, 1 if is_split else -1))
        large, small = (other, self.cells) if is_split else (self.cells, other)
        whole = a - (a > b)
        occupied = np.flatnonzero(self.completed.counts)
        states = self.cells.codes[node, occupied]
        touched = occupied[states == whole] if is_split else occupied[(states == a) | (states == b)]
        codes = self.cells.codes[:, touched].copy()
        codes[node] = whole
        places, kinds = np.unique(small.places(self.cells.row_of[touched], codes), return_inverse=True)
        totals = sums_at(kinds, self.completed.counts[touched], len(places))
        cases = cases_of(large, small.row_of[places], small.codes[:, places], totals, node, a, b)
        families = self._families([node, *self._children(node)])
        log_odds = launch(large, families, self.space.prior, cases, self.generator)
        counts = self._moved_counts(other, node, a, b)
        if is_split:
            taken = deal(totals, log_odds, self.generator)
            counts[cases.first], counts[cases.second] = taken, totals - taken
        else:
            taken = self.completed.counts[cases.first]
        proposed = Completed(other, counts, self.space.prior)
        ratio = math.fsum(proposed.score(*family) - self.completed.score(*family) for family in families)
        ratio += (-1.0 if is_split else 1.0) * log_deal(totals, taken, log_odds)
        ratio += self._log_prior((self.structure[0], other.cardinalities)) - self._log_prior(self.structure)
        if math.log1p(-self.generator.random()) < ratio:
            self.cells, self.completed = other, proposed
            self.moves["allocation"][1] += 1

    def jump(self, node: int) -> None:
        """Propose to split one state of a hidden node or to merge two with s summed out; s is void afterwards."""
        self.moves["jump"][0] += 1
        is_split = bool(self.generator.integers(2))
        chosen = self._chosen_states(node, is_split)
        if chosen is None:
            return
        before = self._hidden_tables(node)
        auxiliary: Auxiliary
        if is_split:
            auxiliary = draw_auxiliary(before, self.generator)
            after, log_jacobian = split(before, chosen[0] - (chosen[0] > chosen[1]), chosen[1], auxiliary)
        else:
            after, auxiliary, log_jacobian = merge(before, *chosen)
        other = self._cells_for(self._with_states(node, 1 if is_split else -1))
        log_theta = self._with_tables(node, after)
        ratio = (1.0 if is_split else -1.0) * (log_jacobian - auxiliary.log_density)
        ratio += self._log_density(after) - self._log_density(before)
        ratio += other.log_likelihood(self._log_mass(other, log_theta))
        ratio -= self.cells.log_likelihood(self._log_mass(self.cells, self.log_theta))
        ratio += self._log_prior((self.structure[0], other.cardinalities)) - self._log_prior(self.structure)
        if math.log1p(-self.generator.random()) < ratio:
            self.cells, self.log_theta = other, log_theta
            self.moves["jump"][1] += 1

    def _move_to(self, arcs: ArcSet) -> None:
        self.arcs = arcs
        self._parents = [arcs.parents(node) for node in range(len(self.space.nodes))]

    def _chosen_states(self, node: int, is_split: bool) -> tuple[int, int] | None:
        """Return an ordered pair of states of the larger of the two variables; None where bounds rule the move out."""
        states = self.cells.cardinalities[node]
        if states == (self.space.most if is_split else self.space.least)[node]:
            return None
        larger = states + is_split
        b = int(self.generator.integers(larger))
        a = int(self.generator.integers(larger - 1))
        return a + (a >= b), b

    def _with_states(self, node: int, more: int) -> tuple[int, ...]:
        cardinalities = list(self.cells.cardinalities)
        cardinalities[node] += more
        return tuple(cardinalities)

    def _moved_counts(self, other: Cells, node: int, a: int, b: int) -> FloatArray:
        """Return the counts on the other cells: states from b on move up for a split, b joins a for a merge."""
        occupied = np.flatnonzero(self.completed.counts)
        codes = self.cells.codes[:, occupied].copy()
        states = codes[node].astype(np.int64)
        if other.cardinalities[node] > self.cells.cardinalities[node]:
            codes[node] = states + (states >= b)
        else:
            states[states == b] = a
            codes[node] = states - (states > b)
        places = other.places(self.cells.row_of[occupied], codes)
        return sums_at(places, self.completed.counts[occupied], len(other))

    def _toggled(self, x: int, y: int) -> ArcSet | None:
        """Return the structure with x → y deleted if it is there and added if not; None where that is ruled out."""
        arcs = self.arcs.arcs
        if arcs[x, y]:
            if self.space.required[x, y]:
                return None
            after = self.arcs.copy()
            after.delete(x, y)
            return after
        if self.arcs.reaches[y, x] or arcs[:, y].sum() >= self.space.max_parents:
            return None
        after = self.arcs.copy()
        after.add(x, y)
        return after

    def _turned(self, x: int, y: int) -> ArcSet | None:
        """Return the structure with x → y reversed; None where that is ruled out."""
        space, arcs = self.space, self.arcs.arcs
        if not arcs[x, y] or space.required[x, y] or not space.allowed[y, x]:
            return None
        if arcs[:, x].sum() >= space.max_parents or not self.arcs.can_reverse(np.asarray([x]), np.asarray([y]))[0]:
            return None
        after = self.arcs.copy()
        after.reverse(x, y)
        return after

    def _families(self, nodes: Iterable[int]) -> Families:
        return tuple((node, self._parents[node]) for node in nodes)

    def _children(self, node: int) -> list[int]:
        return [int(child) for child in np.flatnonzero(self.arcs.arcs[node])]

    def _hidden_tables(self, node: int) -> HiddenTables:
        """Return the tables in which a hidden node has a part, in the shapes of `lurking.samplers.jumps.splitting`."""
        sizes = self.cells.cardinalities
        children = []
        for child in self._children(node):
            parents = self._parents[child]
            place = parents.index(node)
            before = math.prod(sizes[v] for v in parents[:place])
            children.append(self.log_theta[child].reshape(before, sizes[node], -1, sizes[child]))
        return HiddenTables(self.log_theta[node].reshape(-1, sizes[node]), tuple(children))

    def _with_tables(self, node: int, tables: HiddenTables) -> list[FloatArray]:
        result = list(self.log_theta)
        result[node] = tables.own.ravel()
        for child, table in zip(self._children(node), tables.children, strict=True):
            result[child] = table.ravel()
        return result

    def _log_density(self, tables: HiddenTables) -> float:
        """Return ln p(θ | m) of some tables."""
        return log_density((tables.own, *tables.children), self.space.prior)

    def _log_mass(self, cells: Cells, log_theta: list[FloatArray]) -> FloatArray:
        """Return ln p(completed row | θ, m) of every cell, (T,)."""
        result = np.zeros(len(cells))
        for family, table in zip(self._families(range(len(self.space.nodes))), log_theta, strict=True):
            result += table[cells.index(*family)]
        return result

    def _cells_for(self, cardinalities: tuple[int, ...]) -> Cells:
        known = self._known_cells
        if cardinalities not in known:
            if len(known) >= KEPT_CELLS:
                known.clear()
            known[cardinalities] = Cells(self.space.rows, self.space.weights, cardinalities)
        return known[cardinalities]

    def _log_prior(self, structure: Structure) -> float:
        if self.space.log_prior is None:
            return 0.0
        if structure not in self._known_priors:
            self._known_priors[structure] = self.space.log_prior_of(structure)
        return self._known_priors[structure]


def log_density(tables: Sequence[FloatArray], prior: SymmetricPrior | BDeuPrior) -> float:
    """Return ln p(θ) of tables ln θ (…, states) whose rows are Dir(λ)."""
    shapes = tuple((table.size // table.shape[-1], table.shape[-1]) for table in tables)
    blocks, pseudo = side_by_side(prior, shapes)
    return blocks.log_density(pseudo, np.concatenate([table.ravel() for table in tables]))
