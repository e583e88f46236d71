"""What a search may do: required and forbidden arcs, tiers, and how many parents a variable may have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lurking.errors import CycleError, LurkingWarning, OptionError, StructureError, nearest_hint
from lurking.graph.checks import Edge, checked_edges, checked_names, topological_order
from lurking.graph.dag import Dag
from lurking.graph.moves import arc_matrix
from lurking.graph.parse import parse_text, quote_name
from lurking.runtime.checks import check_whole
from lurking.types import BoolArray, IntArray, read_only

Arcs = Iterable[tuple[str, str]] | str


@dataclass(frozen=True, eq=False)
class Constraints:
    """Rules that every structure of a search keeps; made by `from_options`, which refuses contradictions.

    Attributes
    ----------
    variables : names, p of them.
    allowed : bool array, shape (p, p)
        allowed[x, y] when the arc x → y may be there.
    required : bool array, shape (p, p)
        required[x, y] when it must be there.
    most_parents : the most parents of a variable, None when there is no limit.
    tiers : number of the tier of each variable, −1 for a variable in none.
    indicators : whether observed variables are parents of nothing, so that hidden ones alone join them.
    """

    variables: tuple[str, ...]
    allowed: BoolArray
    required: BoolArray
    most_parents: int | None
    tiers: tuple[int, ...]
    indicators: bool = False

    @classmethod
    def from_options(
        cls,
        variables: Sequence[str],
        *,
        required: Arcs = (),
        forbidden: Arcs = (),
        tiers: Sequence[Sequence[str]] = (),
        max_parents: int | None = None,
        indicators: bool = False,
    ) -> Constraints:
        """Return the rules, or say in one line which two of them contradict each other.

        Arcs are (parent, child) pairs or text such as ``"a -> b c"``. Of two variables in different tiers the one in
        the later tier is never a parent of the other; variables in no tier are free. Searches put hidden variables
        that are in none into tiers of their own accord: see `placed`.
        """
        if not isinstance(indicators, bool):
            raise OptionError(f"indicators is {indicators!r}; it must be True or False")
        place = {name: position for position, name in enumerate(checked_names(variables, "variable"))}
        most = None if max_parents is None else check_whole("max_parents", max_parents, 1)
        needed = _matrix("required", required, place)
        banned = _matrix("forbidden", forbidden, place)
        numbers = _tier_numbers(tiers, place)
        late = _is_late(numbers, numbers)
        _refuse_contradictions(tuple(place), needed, banned, late, len(place) if most is None else most)
        if indicators and needed.any():
            x, y = np.argwhere(needed)[0]
            names = tuple(place)
            raise StructureError(
                f"the arc {names[x]!r} -> {names[y]!r} is required, but columns that are indicators are parents of "
                "nothing; give up one of the two constraints"
            )
        allowed = ~(banned | late | needed.T | np.eye(len(place), dtype=np.bool_)) & (not indicators)
        return cls(tuple(place), read_only(allowed), read_only(needed), most, tuple(numbers.tolist()), indicators)

    @property
    def max_parents(self) -> int:
        """The most parents of a variable; p − 1 when there is no limit."""
        free = len(self.variables) - 1
        return free if self.most_parents is None else min(free, self.most_parents)

    def least(self) -> Dag:
        """Return the structure with the required arcs alone, child by child."""
        names = self.variables
        return Dag(names, [(names[x], names[y]) for y, x in np.argwhere(self.required.T)])

    def restricted(self, names: Sequence[str]) -> Constraints:
        """Return the rules that concern some of the variables, in the order given."""
        kept = [self.variables.index(name) for name in names]
        place = np.ix_(kept, kept)
        return Constraints(
            tuple(names),
            read_only(self.allowed[place]),
            read_only(self.required[place]),
            self.most_parents,
            tuple(self.tiers[k] for k in kept),
            self.indicators,
        )

    def only_among(self, names: Iterable[str], dag: Dag) -> Constraints:
        """Return the rules with which the arcs of a structure stay as they are but for those among some variables."""
        chosen = np.isin(self.variables, list(names))
        inside = chosen[:, None] & chosen[None, :]
        fixed = arc_matrix(dag, self.variables) & ~inside
        return replace(
            self, allowed=read_only(self.allowed & inside | fixed), required=read_only(self.required & inside | fixed)
        )

    def extended(self, dag: Dag) -> Constraints:
        """Return the rules for all nodes of a structure whose observed ones have these, hidden ones in tiers.

        So what happens later is no cause of what happened before, by way of hidden variables neither.
        """
        nodes = dag.nodes
        place = {name: position for position, name in enumerate(nodes)}
        kept = [place[name] for name in self.variables]
        numbers = self._tiers_with_hidden(dag)
        allowed = ~(_is_late(numbers, numbers) | np.eye(len(nodes), dtype=np.bool_))
        required = np.zeros_like(allowed)
        allowed[np.ix_(kept, kept)] = self.allowed
        required[np.ix_(kept, kept)] = self.required
        if self.indicators:
            allowed[kept] = False
        return Constraints(
            nodes,
            read_only(allowed),
            read_only(required),
            self.most_parents,
            tuple(numbers.tolist()),
            self.indicators,
        )

    def placed(self, dag: Dag) -> Constraints:
        """Return rules over all nodes of a structure with its hidden variables in tiers, where they are in none.

        Along every arc that these rules allow tiers rise or stay, between hidden variables too, so that no series of
        moves makes something late an ancestor of something earlier through hidden variables.
        """
        numbers = self._tiers_with_hidden(dag)
        if self.tiers == tuple(numbers.tolist()):
            return self
        allowed = self.allowed & ~_is_late(numbers, numbers)
        return replace(self, allowed=read_only(allowed), tiers=tuple(numbers.tolist()))

    def _tiers_with_hidden(self, dag: Dag) -> IntArray:
        """Return (nodes,) tiers that agree with the arcs of a structure that keeps the rules.

        A hidden variable belongs to the earliest tier that it reaches through hidden ones; where it reaches none, to
        the latest that reaches it so; and to the first where there is none either.
        """
        known = dict(zip(self.variables, self.tiers, strict=True))
        if max(self.tiers, default=-1) < 0:
            return np.full(len(dag.nodes), -1, np.int64)
        free = [name for name in dag.topological_order if name in dag.hidden and known.get(name, -1) < 0]
        for name in reversed(free):
            known[name] = min((known[child] for child in dag.children(name) if known[child] >= 0), default=-1)
        for name in free:
            if known[name] < 0:
                known[name] = max([0, *(known[parent] for parent in dag.parents(name))])
        return np.asarray([known[name] for name in dag.nodes], np.int64)

    def settled(self, dag: Dag) -> list[Edge]:
        """Return the arcs of a structure between observed variables, or to indicators, that may not be turned."""
        place = {name: position for position, name in enumerate(self.variables)}
        return [
            (parent, child)
            for parent, child in dag.edges
            if child in place
            and (not self.allowed[place[child], place[parent]] if parent in place else self.indicators)
        ]

    def allows(self, parent: str, child: str) -> bool:
        """Whether an arc may be there."""
        return bool(self.allowed[self.variables.index(parent), self.variables.index(child)])

    def holds(self, dag: Dag) -> bool:
        """Whether a structure keeps the rules."""
        try:
            self.check(dag)
        except StructureError:
            return False
        return True

    def check(self, dag: Dag) -> None:
        """Refuse a structure that breaks one of the rules."""
        have = arc_matrix(dag, self.variables)
        for wrong, why in (
            (have & ~self.allowed, "has the arc {} -> {}, which the constraints rule out"),
            (self.required & ~have, "lacks the required arc {} -> {}"),
        ):
            if wrong.any():
                x, y = np.argwhere(wrong)[0]
                raise StructureError(
                    f"the start {why.format(repr(self.variables[x]), repr(self.variables[y]))}; change one of them"
                )
        counts = have.sum(axis=0)
        if counts.max(initial=0) > self.max_parents:
            name = self.variables[int(counts.argmax())]
            raise StructureError(
                f"the start gives {name!r} {counts.max()} parents, and max_parents is {self.max_parents}; change one"
            )


def _matrix(what: str, arcs: Arcs, place: dict[str, int]) -> BoolArray:
    """Return arcs as a matrix; every name must be a variable."""
    if isinstance(arcs, str):
        text, arcs = arcs, parse_text(arcs).edges if arcs.strip() else ()
        if text.strip() and not arcs:
            raise StructureError(f"{what} is {text!r}, which has no arrow; write arcs as in 'a -> b c'")
    elif not isinstance(arcs, Iterable):
        raise OptionError(f"{what} is {arcs!r}; it must be arcs as pairs (parent, child), or text such as 'a -> b c'")
    matrix = np.zeros((len(place), len(place)), np.bool_)
    for parent, child in checked_edges(arcs):
        for name in (parent, child):
            if name not in place:
                longer = [other for other in place if other.startswith(f"{name} ")]
                hint = f"; a name with a space stands in quotes: {quote_name(longer[0])}" if longer else ""
                raise StructureError(
                    f"the {what} arc {parent!r} -> {child!r} names {name!r}, which is no variable"
                    f"{hint or nearest_hint(name, place)}; the variables are: {', '.join(place)}"
                )
        if parent == child and what == "required":
            raise StructureError(f"the required arc {parent!r} -> {child!r} joins a variable with itself; remove it")
        matrix[place[parent], place[child]] = True
    return matrix


def _tier_numbers(tiers: Sequence[Sequence[str]], place: dict[str, int]) -> IntArray:
    """Return (p,) the tier of every variable, −1 for those in none."""
    is_listed = isinstance(tiers, Iterable) and not isinstance(tiers, str)
    given = list(tiers) if is_listed else []
    if not is_listed or any(isinstance(tier, str) or not isinstance(tier, Iterable) for tier in given):
        raise OptionError(f"tiers is {tiers!r}; it must be a list of lists of names, such as [['age'], ['job', 'pay']]")
    number: IntArray = np.full(len(place), -1, np.int64)
    for k, tier in enumerate(given):
        for name in tier:
            if not isinstance(name, str) or name not in place:
                raise StructureError(
                    f"tier {k + 1} names {name!r}, which is no variable{nearest_hint(str(name), place)}; "
                    f"the variables are: {', '.join(place)}"
                )
            if number[place[name]] >= 0:
                raise StructureError(
                    f"{name!r} is in tier {number[place[name]] + 1} and in tier {k + 1}; a variable has one tier"
                )
            number[place[name]] = k
    if len(set(number[number >= 0].tolist())) == 1:
        warnings.warn(
            "one tier rules nothing out; list the variables that come later, or earlier, in a tier of their own",
            LurkingWarning,
            stacklevel=4,
        )
    return number


def _is_late(parents: IntArray, children: IntArray) -> BoolArray:
    """Return (p, q) where an arc would lead from a later tier to an earlier one, given the tiers of both sides."""
    return np.asarray((children[None, :] >= 0) & (parents[:, None] > children[None, :]))


def _refuse_contradictions(
    variables: tuple[str, ...], required: BoolArray, forbidden: BoolArray, late: BoolArray, max_parents: int
) -> None:
    """Refuse required arcs that are forbidden, against the tiers, in a cycle, or more than a variable may have."""
    for other, why in ((forbidden, "required and forbidden"), (late, "required, but its parent is in a later tier")):
        if (required & other).any():
            x, y = np.argwhere(required & other)[0]
            raise StructureError(
                f"the arc {variables[x]!r} -> {variables[y]!r} is {why}; give up one of the two constraints"
            )
    parents = {name: tuple(variables[x] for x in np.flatnonzero(required[:, y])) for y, name in enumerate(variables)}
    try:
        topological_order(parents)
    except CycleError as error:
        raise StructureError(
            f"the required arcs form a cycle: {' -> '.join(error.cycle)}; a structure is acyclic, require fewer"
        ) from None
    for name, group in parents.items():
        if len(group) > max_parents:
            raise OptionError(
                f"max_parents is {max_parents}, but {name!r} has {len(group)} required parents "
                f"({', '.join(group)}); raise max_parents or require fewer arcs"
            )
