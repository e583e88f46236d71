"""The blocks of a BIF text as they are written, each piece with its place; what they mean is for `lurking.io.bif`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from lurking.data.messages import shown
from lurking.errors import FormatError, nearest_hint
from lurking.graph.parse import STAR

HIDDEN = "lurking_hidden"
"""The property of a variable block that says whether the variable is hidden: yes or no."""

# Possessive repeats (*+, ++) keep a text that fails to match from being tried in exponentially many ways.
_BLANK = r"(?:[\s,]++|//[^\n]*+|/\*.*?\*/)*+"
_BARE = r"""(?:[^\s,;|{}()\[\]"/]|/(?![/*]))+"""
_UNSIGNED = r"(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_TOKEN = re.compile(
    rf"""{_BLANK}(?:(?P<mark>[;|{{}}()\[\]])|(?P<quoted>"(?:[^"\\]++|\\.)*+")|(?P<word>{_BARE})|(?P<end>\Z))""",
    re.DOTALL,
)
_LEADING_BLANK = re.compile(_BLANK, re.DOTALL)
_BARE_NAME = re.compile(_BARE)
_NUMBER = re.compile(rf"[-+]?{_UNSIGNED}")
# Nearly all of a file is long lists of plain non-negative numbers: one match takes a whole list.
_NUMBERS = re.compile(rf"((?:[\s,]*+{_UNSIGNED}(?=[\s,;]))*+)[\s,]*+;")


def quoted(name: str) -> str:
    """Return a name or level as the format writes it: bare where the grammar allows, otherwise in double quotes."""
    if _BARE_NAME.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Token(NamedTuple):
    """One piece of the text: its kind (a mark itself, ``word``, ``quoted`` or ``end``), what it says, and where."""

    kind: str
    text: str
    start: int


class Row(NamedTuple):
    """A list of probabilities, the levels written before it (none for a table or default), and where it begins."""

    labels: list[Token]
    values: list[float]
    start: int


class Variable(NamedTuple):
    """A variable block: {level as written: its number}, whether the variable is hidden, and where it is named."""

    codes: dict[str, int]
    hidden: bool
    start: int


class Block(NamedTuple):
    """A probability block: either a table, or rows and a default for those left out."""

    child: Token
    parents: list[Token]
    table: Row | None
    default: Row | None
    rows: list[Row]


@dataclass
class Content:
    """All blocks of a text, in the order written."""

    name: str | None = None
    variables: dict[str, Variable] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)


class Scanner:
    """Takes one token after another off a text and knows the line and column of each."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.position = 0

    def line_and_column(self, start: int) -> tuple[int, int]:
        """Return where a character stands, both counted from 1."""
        return self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)

    def place(self, start: int, message: str) -> str:
        """Return the message with the source, line and column before it."""
        line, column = self.line_and_column(start)
        return f"{self.source}, line {line}, column {column}: {message}"

    def error(self, start: int, message: str) -> FormatError:
        """Return the error for what stands at `start`."""
        return FormatError(self.place(start, message))

    def unexpected(self, token: Token, wanted: str) -> FormatError:
        """Return the error for a token where something else was `wanted`."""
        found = "the text ends" if token.kind == "end" else f"{shown(token.text)} stands"
        return self.error(token.start, f"{found} where {wanted} is expected; check what is missing just before it")

    def take(self) -> Token:
        """Return the next token; at the end of the text, again and again one of kind ``end``."""
        match = _TOKEN.match(self.text, self.position)
        if match is None or match.lastgroup is None:
            blank = _LEADING_BLANK.match(self.text, self.position)
            start = self.position if blank is None else blank.end()
            what = "quote" if self.text[start] == '"' else "comment"
            raise self.error(start, f"the {what} that begins here is never closed; close it")
        self.position = match.end()
        kind = match.lastgroup
        text, start = match[kind], match.start(kind)
        if kind == "quoted":
            text = re.sub(r'\\(["\\])', r"\1", text[1:-1])
        return Token(text if kind == "mark" else kind, text, start)

    def expect(self, kind: str) -> Token:
        """Take a mark that must come here."""
        token = self.take()
        if token.kind != kind:
            raise self.unexpected(token, repr(kind))
        return token

    def name(self, what: str) -> Token:
        """Take a name or level, quoted or not."""
        token = self.take()
        if token.kind not in ("word", "quoted"):
            raise self.unexpected(token, what)
        return token

    def names_until(self, closing: str, what: str) -> list[Token]:
        """Take names or levels up to the closing mark, which is taken too."""
        names = []
        while (token := self.take()).kind != closing:
            if token.kind not in ("word", "quoted"):
                raise self.unexpected(token, f"{what} or {closing!r}")
            names.append(token)
        return names

    def probabilities(self) -> list[float]:
        """Take the numbers up to the semicolon, which is taken too; each is finite and not negative."""
        match = _NUMBERS.match(self.text, self.position)
        if match is not None:
            values = [float(word) for word in match[1].replace(",", " ").split()]
            if max(values, default=0.0) < math.inf:
                self.position = match.end()
                return values
        values = []
        while (token := self.take()).kind != ";":
            if token.kind != "word":
                raise self.unexpected(token, "a probability or ';'")
            value = float(token.text) if _NUMBER.fullmatch(token.text) else math.nan
            if not 0.0 <= value < math.inf:
                raise self.error(
                    token.start, f"{shown(token.text)} is no probability; write a finite number of at least 0"
                )
            values.append(value)
        return values

    def property(self) -> str:
        """Take the rest of a property up to its semicolon and return it without blanks."""
        words = []
        while (token := self.take()).kind != ";":
            if token.kind in ("{", "}", "end"):
                raise self.unexpected(token, "the ';' of a property")
            words.append(token.text)
        return "".join("".join(words).split())


def read_blocks(scanner: Scanner) -> Content:
    """Return all blocks of a text; no name is looked up yet, since blocks may come in any order."""
    content = Content()
    named = False
    while (token := scanner.take()).kind != "end":
        keyword = token.text if token.kind == "word" else ""
        if keyword == "variable":
            _read_variable(scanner, content)
        elif keyword == "probability":
            _read_probability(scanner, content)
        elif keyword == "network":
            if named:
                raise scanner.error(token.start, "a second network block; a file holds one network, split the file")
            named = True
            content.name = _read_network(scanner)
        else:
            hint = nearest_hint(keyword, ("network", "variable", "probability"))
            raise scanner.error(
                token.start,
                f"{shown(token.text)} begins no block{hint}; a block begins with network, variable or probability, "
                "and text outside of blocks must be a comment",
            )
    return content


def _read_network(scanner: Scanner) -> str | None:
    """Read a network block after its keyword and return its name, if any."""
    token = scanner.take()
    name = None
    if token.kind in ("word", "quoted"):
        name, token = token.text, scanner.take()
    if token.kind != "{":
        raise scanner.unexpected(token, "'{'")
    while (token := scanner.take()).kind != "}":
        if token[:2] != ("word", "property"):
            raise scanner.unexpected(token, "'property' or the '}' of the network block")
        scanner.property()
    return name


def _read_variable(scanner: Scanner, content: Content) -> None:
    """Read a variable block after its keyword."""
    name = scanner.name("the name of a variable")
    if name.text in ("", STAR):
        raise scanner.error(name.start, f"{name.text!r} cannot name a variable (it is empty or the star); rename it")
    if name.text in content.variables:
        line, _ = scanner.line_and_column(content.variables[name.text].start)
        raise scanner.error(
            name.start, f"a second variable {shown(name.text)}, the first is in line {line}; rename or drop one"
        )
    scanner.expect("{")
    codes: dict[str, int] = {}
    hidden = False
    while (token := scanner.take()).kind != "}":
        keyword = token.text if token.kind == "word" else ""
        if keyword == "type":
            if codes:
                raise scanner.error(token.start, f"a second type of {shown(name.text)}; a variable has one, drop one")
            codes = _read_type(scanner, name.text)
        elif keyword == "property":
            key, _, value = scanner.property().partition("=")
            if key == HIDDEN:
                if value not in ("yes", "no"):
                    raise scanner.error(token.start, f"{HIDDEN} is {shown(value)}; it must be yes or no")
                hidden = value == "yes"
        else:
            raise scanner.unexpected(token, "'type', 'property' or the '}' of a variable block")
    if not codes:
        raise scanner.error(
            name.start, f"variable {shown(name.text)} has no type; write 'type discrete [ 2 ] {{ no, yes }};'"
        )
    content.variables[name.text] = Variable(codes, hidden, name.start)


def _read_type(scanner: Scanner, variable: str) -> dict[str, int]:
    """Read ``discrete [ r ] { levels } ;`` and return {level: its number}."""
    kind = scanner.name("'discrete'")
    if kind.text != "discrete":
        raise scanner.error(
            kind.start,
            f"{shown(variable)} has the type {shown(kind.text)}; only 'discrete' variables have tables, make it one",
        )
    scanner.expect("[")
    count = scanner.name("the number of levels")
    scanner.expect("]")
    opening = scanner.expect("{")
    levels = scanner.names_until("}", "a level")
    scanner.expect(";")
    if not levels:
        raise scanner.error(opening.start, f"{shown(variable)} has no levels; list at least one")
    # Compared as text: the number of a damaged file may have more digits than Python converts.
    if (count.text.lstrip("0") or "0") != str(len(levels)):
        raise scanner.error(
            count.start,
            f"{shown(variable)} says [ {shown(count.text)[1:-1]} ] levels and lists {len(levels)}; make them agree "
            "(a level with blanks, commas or brackets stands in double quotes)",
        )
    codes: dict[str, int] = {}
    for level in levels:
        if level.text in codes:
            raise scanner.error(
                level.start,
                f"{shown(variable)} has the level {shown(level.text)} twice; levels must differ, rename one",
            )
        codes[level.text] = len(codes)
    return codes


def _read_probability(scanner: Scanner, content: Content) -> None:
    """Read a probability block after its keyword."""
    scanner.expect("(")
    child = scanner.name("the name of a variable")
    rest = scanner.position
    # The bar may be missing, as in the oldest files: the first name is the child all the same.
    if scanner.take().kind != "|":
        scanner.position = rest
    parents = scanner.names_until(")", "a parent")
    if child.text in content.blocks:
        line, _ = scanner.line_and_column(content.blocks[child.text].child.start)
        raise scanner.error(
            child.start, f"a second probability block of {shown(child.text)}, the first is in line {line}; drop one"
        )
    scanner.expect("{")
    rows: list[Row] = []
    whole: dict[str, Row] = {}
    while (token := scanner.take()).kind != "}":
        keyword = token.text if token.kind == "word" else token.kind
        if keyword == "(":
            labels = scanner.names_until(")", "a level")
            rows.append(Row(labels, scanner.probabilities(), token.start))
        elif keyword in ("table", "default"):
            if keyword in whole:
                raise scanner.error(token.start, f"a second {keyword} of {shown(child.text)}; write it once")
            whole[keyword] = Row([], scanner.probabilities(), token.start)
        elif keyword == "property":
            scanner.property()
        else:
            raise scanner.unexpected(token, "'table', 'default', '(', 'property' or the '}' of a probability block")
    if "table" in whole and (rows or "default" in whole):
        raise scanner.error(
            whole["table"].start,
            f"{shown(child.text)} has a table and also rows or a default; a table says everything, keep one of them",
        )
    if not (whole or rows):
        raise scanner.error(
            child.start, f"the probability block of {shown(child.text)} is empty; write 'table', a row or a 'default'"
        )
    content.blocks[child.text] = Block(child, parents, whole.get("table"), whole.get("default"), rows)
