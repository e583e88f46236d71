"""The structure of a model: an immutable directed acyclic graph with hidden nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, final

from lurking.errors import OptionError, StructureError, clipped, nearest_hint
from lurking.graph.checks import (
    Edge,
    checked_edges,
    checked_hidden,
    checked_names,
    merged_hidden,
    parents_of,
    topological_order,
)
from lurking.graph.parse import STAR, format_text, parse_text, quote_name

if TYPE_CHECKING:
    import networkx as nx

_store = object.__setattr__


@final
class Dag:
    """Ordered nodes, the ordered parents of each, and which nodes are hidden with how many states.

    A hidden node has no column in the data at all; an empty cell of an observed column is another thing, of which a
    structure knows nothing. The layout of parameters follows the order of nodes and of parents, so two structures that
    differ in either order are different values; `same_structure` and `canonical` look past order and hidden names.

    A structure with the node ``*`` is *open*: the star stands for every column which is not hidden, and `bind` puts the
    columns in. Until then every query treats ``*`` as one node of that name.

    Attributes are read-only; what is derived (children, topological order, hash, canonical form) is kept once computed.
    """

    __slots__ = (
        "_as_written",
        "_canonical",
        "_children",
        "_hash",
        "_hidden",
        "_nodes",
        "_observed",
        "_order",
        "_parents",
        "_text",
    )

    _nodes: tuple[str, ...]
    _parents: dict[str, tuple[str, ...]]
    _hidden: Mapping[str, int]
    _observed: tuple[str, ...]
    _order: tuple[str, ...]
    _as_written: tuple[Edge, ...]
    _children: dict[str, tuple[str, ...]] | None
    _hash: int | None
    _canonical: Dag | None
    _text: str | None

    def __init__(self, nodes: Iterable[str], edges: Iterable[Edge] = (), hidden: Mapping[str, int] | None = None):
        names = checked_names(nodes, "node")
        if not names:
            raise StructureError("the structure has no nodes; name at least one, e.g. 's1[2] -> y1 y2'")
        pairs = checked_edges(edges)
        parents = parents_of(names, pairs)
        _store(self, "_nodes", names)
        _store(self, "_parents", parents)
        _store(self, "_hidden", MappingProxyType({} if hidden is None else checked_hidden(names, hidden)))
        _store(self, "_observed", tuple(name for name in names if name not in self._hidden))
        _store(self, "_order", topological_order(parents))
        # Only the star needs the order in which edges of different children were written: it decides where the
        # parents that come by the star stand among the parents a column has by name.
        _store(self, "_as_written", pairs if STAR in parents else ())
        _store(self, "_children", None)
        _store(self, "_hash", None)
        _store(self, "_canonical", None)
        _store(self, "_text", None)

    @classmethod
    def from_edges(
        cls, edges: Iterable[Edge], nodes: Iterable[str] | None = None, hidden: Mapping[str, int] | None = None
    ) -> Dag:
        """Build from (parent, child) pairs; without `nodes` these are the names in the edges, by first mention."""
        pairs = checked_edges(edges)
        if nodes is None:
            nodes = dict.fromkeys(name for pair in pairs for name in pair)
        return cls(nodes, pairs, hidden)

    @classmethod
    def parse(cls, text: str, hidden: Mapping[str, int] | None = None) -> Dag:
        """Read ``s1[2] -> y1 y2; s2[2] -> y2, y3; a <- b; lonely`` (grammar: `lurking.graph.parse`)."""
        parsed = parse_text(text)
        return cls(parsed.nodes, parsed.edges, merged_hidden(parsed.hidden, hidden, "text"))

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph[Any], hidden: Mapping[str, int] | None = None) -> Dag:
        """Build from a directed networkx graph; node attributes ``hidden`` and ``cardinality`` are understood."""
        from lurking.graph.convert import read_networkx

        nodes, edges, inside = read_networkx(graph)
        return cls(nodes, edges, merged_hidden(inside, hidden, "node attributes"))

    @classmethod
    def from_modelstring(cls, text: str, hidden: Mapping[str, int] | None = None) -> Dag:
        """Read bnlearn's ``[A][C][B|A:C]``; nodes keep the order of the brackets."""
        from lurking.graph.convert import read_modelstring

        nodes, edges = read_modelstring(text)
        return cls(nodes, edges, hidden)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All names, in order."""
        return self._nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        """(parent, child) pairs: by child in node order, then by the order of the child's parents."""
        return tuple((parent, child) for child, group in self._parents.items() for parent in group)

    @property
    def hidden(self) -> Mapping[str, int]:
        """Read-only {hidden name: cardinality}, in node order."""
        return self._hidden

    @property
    def observed(self) -> tuple[str, ...]:
        """The nodes which are not hidden, in node order."""
        return self._observed

    @property
    def topological_order(self) -> tuple[str, ...]:
        """The nodes, parents before children; of several ready nodes the one listed first comes first."""
        return self._order

    @property
    def is_open(self) -> bool:
        """Whether the star is still to be replaced by columns (`bind`)."""
        return STAR in self._parents

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the parents of a node in edge order (the order of the axes of its table)."""
        try:
            return self._parents[name]
        except KeyError:
            self._refuse(name)

    def children(self, name: str) -> tuple[str, ...]:
        """Return the children of a node in node order."""
        children = self._children
        if children is None:
            lists: dict[str, list[str]] = {node: [] for node in self._nodes}
            for child, group in self._parents.items():
                for parent in group:
                    lists[parent].append(child)
            children = {node: tuple(group) for node, group in lists.items()}
            _store(self, "_children", children)
        try:
            return children[name]
        except KeyError:
            self._refuse(name)

    def ancestors(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Return, in node order, every node with a path of at least one edge to one of the names."""
        return self._reached(names, self.parents)

    def descendants(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Return, in node order, every node with a path of at least one edge from one of the names."""
        return self._reached(names, self.children)

    @property
    def barren(self) -> tuple[str, ...]:
        """The hidden nodes without an observed descendant: exact evidence does not depend on them."""
        if not self._hidden:
            return ()
        relevant = set(self.ancestors(self.observed))
        return tuple(name for name in self._hidden if name not in relevant)

    def without(self, names: str | Iterable[str]) -> Dag:
        """Drop nodes on which no remaining node depends."""
        dropped = self._known(names)
        for name in self._nodes:
            staying = [child for child in self.children(name) if child not in dropped] if name in dropped else []
            if staying:
                raise StructureError(
                    f"cannot drop {name!r}: its child {staying[0]!r} stays and depends on it; drop {staying[0]!r} too"
                )
        if not dropped:
            return self
        return Dag(
            (name for name in self._nodes if name not in dropped),
            (pair for pair in self._written_edges() if pair[1] not in dropped),
            {name: cardinality for name, cardinality in self._hidden.items() if name not in dropped},
        )

    def pruned(self) -> Dag:
        """Drop the barren nodes; a structure without any is returned as it is."""
        return self.without(self.barren)

    def with_hidden(self, cardinalities: Mapping[str, int]) -> Dag:
        """Set cardinalities of the named nodes, of which observed ones become hidden; other nodes stay as they are."""
        return Dag(self._nodes, self._written_edges(), {**self._hidden, **cardinalities})

    def rename(self, names: Mapping[str, str]) -> Dag:
        """Give nodes other names, {old: new}; everything else, order included, stays."""
        if STAR in self._known(names) or STAR in names.values():
            raise StructureError(
                "'*' is not a name but stands for the columns of a table; bind() the structure instead"
            )
        new = {name: names.get(name, name) for name in self._nodes}
        return Dag(
            new.values(),
            [(new[parent], new[child]) for parent, child in self._written_edges()],
            {new[name]: cardinality for name, cardinality in self._hidden.items()},
        )

    def bind(self, columns: Sequence[str]) -> Dag:
        """Replace the star by every column which is not hidden; a closed structure is returned as it is.

        Nodes named before the star keep their place and the other columns come where the star stood, in column order.
        An edge from or to the star becomes one edge per column, in column order, except the column itself and edges
        which are already there.
        """
        if not self.is_open:
            return self
        free = tuple(name for name in checked_names(columns, "column") if name not in self._hidden)
        nodes = dict.fromkeys(name for node in self._nodes for name in (free if node == STAR else (node,)))
        edges = dict.fromkeys(
            (source, target)
            for parent, child in self._as_written
            for source in (free if parent == STAR else (parent,))
            for target in (free if child == STAR else (child,))
            if source != target
        )
        return Dag(nodes, edges, self._hidden)

    def canonical(self) -> Dag:
        """Return the representative of all structures that differ only in hidden names and in order."""
        form = self._canonical
        if form is None:
            from lurking.graph.symmetry.canonical import canonical_parts

            form = Dag(*canonical_parts(self))
            _store(self, "_canonical", form)
        return form

    def same_structure(self, other: Dag) -> bool:
        """Return whether the two are one structure up to the names of hidden nodes and the order of anything."""
        return self.canonical() == other.canonical()

    def to_text(self) -> str:
        """Return one line of arrows which `parse` reads back to an equal structure."""
        text = self._text
        if text is None:
            text = format_text(self._nodes, self._written_edges(), dict(self._hidden), keep_edge_order=self.is_open)
            _store(self, "_text", text)
        return text

    def to_dot(self) -> str:
        """Return Graphviz source; hidden nodes are dashed and show their cardinality."""
        from lurking.graph.draw import dot_source

        return dot_source(self)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return a networkx DiGraph; every node has the attribute ``hidden``, hidden nodes also ``cardinality``."""
        from lurking.graph.convert import write_networkx

        return write_networkx(self)

    def to_modelstring(self) -> str:
        """Return bnlearn's ``[A][B|A:C]`` in node order; it has no place for cardinalities of hidden nodes."""
        from lurking.graph.convert import write_modelstring

        return write_modelstring(self)

    def _repr_html_(self) -> str:
        from lurking.graph.draw import svg_drawing

        return svg_drawing(self)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Dag.parse({self.to_text()!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dag):
            return NotImplemented
        return self is other or (
            self._nodes == other._nodes
            and self._parents == other._parents
            and self._hidden == other._hidden
            and self._as_written == other._as_written
        )

    def __hash__(self) -> int:
        value = self._hash
        if value is None:
            key = (self._nodes, tuple(self._parents.values()), tuple(self._hidden.items()), self._as_written)
            value = hash(key)
            _store(self, "_hash", value)
        return value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Dag is immutable; {name!r} cannot be set, build another one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Dag is immutable; {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Callable[..., Dag], tuple[object, ...]]:
        return Dag, (self._nodes, self._written_edges(), dict(self._hidden))

    def _written_edges(self) -> tuple[Edge, ...]:
        return self._as_written or self.edges

    def _known(self, names: str | Iterable[str]) -> set[str]:
        chosen = {names} if isinstance(names, str) else set(names)
        for name in sorted(chosen - self._parents.keys(), key=repr):
            self._refuse(name)
        return chosen

    def _refuse(self, name: str) -> NoReturn:
        shown = ", ".join(map(quote_name, self._nodes[:12])) + (", ..." if len(self._nodes) > 12 else "")
        raise StructureError(
            f"{name!r} is not a node of the structure{nearest_hint(name, self._nodes)}; the nodes are: {shown}"
        )

    def _reached(self, names: str | Iterable[str], neighbours: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
        reached: set[str] = set()
        waiting = list(self._known(names))
        while waiting:
            for neighbour in neighbours(waiting.pop()):
                if neighbour not in reached:
                    reached.add(neighbour)
                    waiting.append(neighbour)
        return tuple(name for name in self._nodes if name in reached)


def as_dag(given: object, what: str = "the model") -> Dag:
    """Return a structure that is a Dag or its text; `what` names it where it is neither."""
    if isinstance(given, str):
        return Dag.parse(given)
    if not isinstance(given, Dag):
        raise OptionError(f"{what} is {clipped(given)}; it must be a Dag or its text, such as 'class[2] -> a b c'")
    return given
