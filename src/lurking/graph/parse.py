r"""The text of a structure: ``s1[2] -> y1 y2; s2[2] -> y2, y3; a -> b -> c; x <- y; lonely``.

The grammar::

    text    = clause { (";" | newline) clause }
    clause  = [ group { ("->" | "<-") group } ]
    group   = name { [","] name }
    name    = ( bare | quoted ) [ "[" cardinality "]" ]

A bare name is any run of characters without blanks, ``, ; [ ] " ' #`` and arrows; any other name is written in double
quotes, with a backslash before ``"`` and a backslash (``\n``, ``\r`` and ``\t`` mean what they mean in Python). ``#``
begins a comment that ends with its line. Brackets say that the variable is hidden and how many states it has; they
belong to the first mention, and saying the same number again does no harm. The name ``*``, quoted or not, is the star:
every column of the table which is not hidden.

Nodes come in order of first mention. ``a b -> c d`` gives the edges a→c, a→d, b→c, b→d, in this order.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from lurking.errors import StructureError

STAR = "*"
"""The node that stands for every column of the table which is not hidden."""

_TOKEN = re.compile(
    r"""
      (?P<blank>[^\S\n]+|,)
    | (?P<comment>\#[^\n]*)
    | (?P<end>[;\n])
    | (?P<arrow>->|<-)
    | (?P<bracket>\[(?P<cardinality>[^\[\]\n]*)\])
    | (?P<quoted>"(?:[^"\\]|\\.)*")
    | (?P<bare>(?:(?!->|<-)[^\s,;\[\]"'\#])+)
    """,
    re.VERBOSE | re.DOTALL,
)
_BARE_NAME = re.compile(r"""(?:(?!->|<-)[^\s,;\[\]"'#])+""")
# A bare run of these is a mistyped arrow ("-->", "--", "=>", "<->"), which would otherwise become a node unnoticed.
_ARROW_LIKE = re.compile(r"[-=~<>→←]+")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


class ParsedText(NamedTuple):
    """What a text says, unchecked: nodes by first mention, edges in the order written, cardinalities in brackets."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    hidden: dict[str, int]


def quote_name(name: str) -> str:
    """Return the name as the text format writes it: bare where the grammar allows, otherwise in double quotes."""
    if _BARE_NAME.fullmatch(name) and not _ARROW_LIKE.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    for letter, character in _ESCAPES.items():
        escaped = escaped.replace(character, f"\\{letter}")
    return f'"{escaped}"'


def parse_text(text: str) -> ParsedText:
    """Read the text of a structure (grammar at the top of the module); rules of graphs are checked by `Dag`."""
    if not isinstance(text, str):
        raise StructureError(f"a structure is parsed from text, not from {text!r}; write e.g. 's1[2] -> y1 y2'")
    return _Reader(text).read()


class _Reader:
    """One pass over the tokens of a text."""

    __slots__ = ("_arrow", "_edges", "_group", "_hidden", "_left", "_nodes", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._nodes: dict[str, None] = {}
        self._edges: list[tuple[str, str]] = []
        self._hidden: dict[str, int] = {}
        self._left: list[str] = []
        self._arrow = ""
        self._group: list[str] = []

    def read(self) -> ParsedText:
        text, position, previous = self._text, 0, "end"
        while position < len(text):
            match = _TOKEN.match(text, position)
            kind = match.lastgroup if match else None
            if match is None or kind is None:
                raise self._error(position, _rule_for(text[position]))
            position = match.end()
            if kind == "blank" or kind == "comment":
                continue
            if kind == "bare" or kind == "quoted":
                self._add_name(match, kind)
            elif kind == "arrow":
                self._add_arrow(match)
            elif kind == "end":
                self._end_clause(match.start())
            else:
                self._add_cardinality(match, previous)
            previous = kind
        self._end_clause(len(text))
        return ParsedText(tuple(self._nodes), tuple(self._edges), self._hidden)

    def _add_name(self, match: re.Match[str], kind: str) -> None:
        name = match.group()
        if kind == "quoted":
            name = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), name[1:-1], flags=re.DOTALL)
        else:
            start, end = match.span()
            touches_arrow = (name[-1] == "-" and self._text.startswith("->", end)) or (
                name[0] in "->" and self._text.endswith("<-", 0, start)
            )
            if touches_arrow or _ARROW_LIKE.fullmatch(name):
                raise self._error(start, "this is no arrow; write '->' or '<-', or put the name in double quotes")
        self._nodes[name] = None
        self._group.append(name)

    def _add_arrow(self, match: re.Match[str]) -> None:
        if not self._group:
            raise self._error(match.start(), "an arrow needs a name on its left; write e.g. 'a -> b'")
        self._connect()
        self._left, self._group, self._arrow = self._group, [], match.group()

    def _end_clause(self, position: int) -> None:
        if self._arrow and not self._group:
            raise self._error(position, "an arrow needs a name on its right; write e.g. 'a -> b'")
        self._connect()
        self._left, self._group, self._arrow = [], [], ""

    def _connect(self) -> None:
        if not self._arrow:
            return
        sources, targets = (self._left, self._group) if self._arrow == "->" else (self._group, self._left)
        if STAR in sources and STAR in targets:
            raise StructureError(
                f"'*' stands on both sides of one arrow in {_clip(self._text)!r}; it means every column, so every "
                "column would depend on itself: name the columns on one side"
            )
        self._edges.extend((source, target) for source in sources for target in targets)

    def _add_cardinality(self, match: re.Match[str], previous: str) -> None:
        if previous not in ("bare", "quoted"):
            raise self._error(match.start(), "brackets give the number of states of the name before them, e.g. s1[2]")
        name, written = self._group[-1], match["cardinality"].strip()
        if not _WHOLE_NUMBER.fullmatch(written):
            raise StructureError(bad_cardinality(name, written))
        cardinality = int(written)
        if self._hidden.setdefault(name, cardinality) != cardinality:
            raise StructureError(
                f"hidden variable {name!r} has cardinality {self._hidden[name]} at its first mention and {cardinality} "
                "later in the text; say it once"
            )

    def _error(self, position: int, rule: str) -> StructureError:
        line = self._text.count("\n", 0, position) + 1
        column = position - (self._text.rfind("\n", 0, position) + 1) + 1
        piece = self._text[position : position + 20].split("\n", 1)[0]
        shown = f"near {piece!r}" if piece else f"after {self._text[max(0, position - 20) : position]!r}"
        return StructureError(f"cannot read the structure at line {line}, column {column}, {shown}: {rule}")


def bad_cardinality(name: str, cardinality: object) -> str:
    """Return the sentence on a cardinality that is not a whole number of at least 1."""
    return (
        f"hidden variable {name!r} has cardinality {cardinality!r}; it must be a whole number of at least 1, "
        f"e.g. {name}:2"
    ).replace("\n", " ")


def _rule_for(character: str) -> str:
    if character in "[]":
        return "brackets hold one whole number after a name, e.g. s1[2]"
    if character == '"':
        return "the double quote is not closed; put '\"' at the end of the name"
    return "a name with this character must be in double quotes"


def _clip(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def format_text(
    nodes: Sequence[str], edges: Sequence[tuple[str, str]], hidden: dict[str, int], *, keep_edge_order: bool
) -> str:
    """Write the shortest of three forms which `parse_text` reads back to the same nodes and the same order of parents.

    The forms: one clause ``parent -> children`` per parent; the same after a listing of all nodes; and, where the order
    of parents asks for it, the listing and one clause per edge group in the order given. With `keep_edge_order` the
    edges must come back in exactly the order given, not only in the same order within each child.
    """
    children: dict[str, list[str]] = {name: [] for name in nodes}
    has_parent = set()
    for parent, child in edges:
        children[parent].append(child)
        has_parent.add(child)
    by_parent = [((name,), tuple(children[name])) for name in nodes if children[name] or name not in has_parent]
    flat = [(parent, child) for (parent,), group in by_parent for child in group]
    same = flat == list(edges) if keep_edge_order else _parent_order(flat) == _parent_order(edges)
    clauses = by_parent if same else _merged_by_child(edges)
    mentioned = dict.fromkeys(name for sources, targets in clauses for name in (*sources, *targets))
    if tuple(mentioned) != tuple(nodes):
        clauses = [(tuple(nodes), ()), *(clause for clause in clauses if clause[1])]
    return "; ".join(_write_clauses(clauses, hidden))


_Clause = tuple[tuple[str, ...], tuple[str, ...]]


def _parent_order(edges: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    order: dict[str, list[str]] = {}
    for parent, child in edges:
        order.setdefault(child, []).append(parent)
    return order


def _merged_by_child(edges: Sequence[tuple[str, str]]) -> list[_Clause]:
    """Return clauses ``parents -> child`` in the order of the edges, neighbours with one child merged."""
    clauses: list[_Clause] = []
    for parent, child in edges:
        if clauses and clauses[-1][1] == (child,):
            clauses[-1] = ((*clauses[-1][0], parent), (child,))
        else:
            clauses.append(((parent,), (child,)))
    return clauses


def _write_clauses(clauses: Sequence[_Clause], hidden: dict[str, int]) -> list[str]:
    seen: set[str] = set()

    def write(name: str) -> str:
        first = name not in seen
        seen.add(name)
        return f"{quote_name(name)}[{hidden[name]}]" if first and name in hidden else quote_name(name)

    lines = []
    for sources, targets in clauses:
        left = " ".join(write(name) for name in sources)
        lines.append(f"{left} -> {' '.join(write(name) for name in targets)}" if targets else left)
    return lines


_RANGE = re.compile(r"([^\s\[\],;]+)\[([0-9]{1,4})\.\.([0-9]{1,4})\]")
MOST_MODELS = 1000


def expand_ranges(text: str) -> dict[str, str]:
    """Return the structures that ranges of states stand for: ``class[1..3] -> *`` is three texts.

    The keys say which one it is, for example ``class=2``; a text without a range has the key ``""``.
    """
    found = list(_RANGE.finditer(text))
    choices = []
    for match in found:
        low, high = int(match[2]), int(match[3])
        if not 1 <= low <= high:
            raise StructureError(f"{match[0]} is no range of states; write the smaller number, at least 1, first")
        choices.append(range(low, high + 1))
    if math.prod(len(choice) for choice in choices) > MOST_MODELS:
        raise StructureError(f"the ranges in {_clip(text)!r} stand for more than {MOST_MODELS} structures; narrow them")
    texts = {}
    for states in itertools.product(*choices):
        written = text
        for match, count in zip(reversed(found), reversed(states), strict=True):
            written = f"{written[: match.start()]}{match[1]}[{count}]{written[match.end() :]}"
        texts[", ".join(f"{match[1]}={count}" for match, count in zip(found, states, strict=True))] = written
    return texts
