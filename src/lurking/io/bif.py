r"""Networks in the Bayesian Interchange Format, the text format of most published discrete networks.

The grammar (a subset of version 0.15; a comma is a blank wherever it stands, comments are ``//`` and ``/* */``)::

    file        = [ network ] { variable | probability }
    network     = "network" [ name ] "{" { property } "}"
    variable    = "variable" name "{" { type | property } "}"
    type        = "type" "discrete" "[" count "]" "{" level { level } "}" ";"
    probability = "probability" "(" name [ "|" ] { parent } ")" "{" { table | default | row | property } "}"
    table       = "table" { number } ";"
    default     = "default" { number } ";"
    row         = "(" { level of each parent } ")" { number } ";"
    property    = "property" anything without braces ";"

A name or level is a run of characters without blanks and ``, ; | { } ( ) [ ] "``, or stands in double quotes with a
backslash before ``"`` and a backslash. Levels stay text exactly as written. Blocks may come in any order.

**The order of a table.** The numbers of a ``table`` run over the child and its parents as the block names them, the
child slowest and the last parent fastest: for ``( x | a, b )`` number x·|a|·|b| + a·|b| + b is p(x | a, b). JavaBayes,
which introduced the format, and the readers of pgmpy and pyAgrum count the same way. ``format_bif`` writes a ``table``
only for variables without parents and labelled rows for all others, which no reader can take in another order.

**Rounded rows.** A row must sum to 1 within `ROUNDING`; it is divided by its sum unless that is 1 to within `EXACT`,
so that what ``format_bif`` wrote comes back bit for bit.

**Hidden variables** carry ``property lurking_hidden = yes ;``. They have the levels 0 … r − 1 whatever the file calls
them. Every other property is left out.
"""

from __future__ import annotations

import gzip
import itertools
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lurking.data.messages import listed, one_line, shown, shown_path
from lurking.errors import CycleError, DataError, FormatError, TooLarge, nearest_hint
from lurking.graph.dag import Dag
from lurking.graph.parse import STAR
from lurking.inference.network import Network
from lurking.io.bif_blocks import HIDDEN, Block, Row, Scanner, Variable, quoted, read_blocks
from lurking.runtime.memory import is_affordable
from lurking.types import FloatArray, Level

ROUNDING = 0.01
"""How far from 1 a row may sum: what numbers of two or more printed digits leave of a row of a few states."""
EXACT = 1e-12
"""A row that sums to 1 within this is kept as written."""


def parse_bif(text: str, source: str = "the text") -> Network:
    """Return the network in a BIF text (grammar and rules at the top of the module).

    Nodes come in the order of the variable blocks, parents and levels in the order written, levels as text. The name of
    the network block is ``about["name"]``.

    Parameters
    ----------
    text : the content of a BIF file.
    source : what errors call it.

    Raises
    ------
    FormatError : the text breaks a rule; the line says which, with line and column (both from 1) and what to do.
    TooLarge : a ``default`` would fill more memory than there is.
    """
    scanner = Scanner(text, source)
    content = read_blocks(scanner)
    variables, blocks = content.variables, content.blocks
    if not variables:
        raise FormatError(f"{source} holds no variable; write 'variable x {{ type discrete [ 2 ] {{ no, yes }}; }}'")
    for block in blocks.values():
        _check_names(block, variables, scanner)
    for name, variable in variables.items():
        if name not in blocks:
            raise scanner.error(variable.start, f"variable {shown(name)} has no probability block; add one for it")
    dag = _dag_of(variables, blocks, scanner)
    _refuse_too_large(blocks, variables, scanner)
    tables = [_table_of(blocks[name], variables, scanner).ravel() for name in variables]
    levels: dict[str, tuple[Level, ...]] = {
        name: tuple(range(len(variable.codes))) if variable.hidden else tuple(variable.codes)
        for name, variable in variables.items()
    }
    about = {} if content.name is None else {"name": content.name}
    # Network.from_tables would divide every row by its sum once more and move the last bit of some.
    return Network(dag, levels, np.concatenate(tables), about=about)


def _check_names(block: Block, variables: Mapping[str, Variable], scanner: Scanner) -> None:
    """Refuse a block that names a variable there is not, or one parent twice."""
    for token in (block.child, *block.parents):
        if token.text not in variables:
            raise scanner.error(
                token.start,
                f"{shown(token.text)} is no variable of the file{nearest_hint(token.text, variables)}; "
                "declare it in a variable block or correct the name",
            )
    listed_before: set[str] = set()
    for token in block.parents:
        if token.text in listed_before:
            raise scanner.error(
                token.start,
                f"{shown(token.text)} is listed twice among the parents of {shown(block.child.text)}; list it once",
            )
        listed_before.add(token.text)


def _dag_of(variables: Mapping[str, Variable], blocks: Mapping[str, Block], scanner: Scanner) -> Dag:
    """Return the structure; a cycle is reported where its first edge is written."""
    edges = [(parent.text, block.child.text) for block in blocks.values() for parent in block.parents]
    hidden = {name: len(variable.codes) for name, variable in variables.items() if variable.hidden}
    try:
        return Dag.from_edges(edges, nodes=variables, hidden=hidden)
    except CycleError as error:
        parent, child = error.cycle[:2]
        start = next(token.start for token in blocks[child].parents if token.text == parent)
        raise scanner.error(start, one_line(str(error))) from None


def _shape(block: Block, variables: Mapping[str, Variable]) -> tuple[int, int]:
    """Return (parent configurations, states) of a block's table."""
    rows = math.prod(len(variables[parent.text].codes) for parent in block.parents)
    return rows, len(variables[block.child.text].codes)


def _refuse_too_large(blocks: Mapping[str, Block], variables: Mapping[str, Variable], scanner: Scanner) -> None:
    """Refuse files whose defaults stand for more numbers than fit: a short text can name 2^1000 rows.

    Tables without a default are as long as their text and need no such rule.
    """
    entries = 0
    for block in blocks.values():
        if block.default is None:
            continue
        rows, width = _shape(block, variables)
        entries += rows * width
        # Three copies: the tables, the vector of all of them, and the network's own.
        need = 3 * 8 * entries
        if not is_affordable(need):
            raise TooLarge(
                scanner.place(
                    block.default.start,
                    f"the default of {shown(block.child.text)} stands for {_count_text(rows)} rows, more than fit in "
                    "memory; give the variable fewer parents",
                )
            )


def _table_of(block: Block, variables: Mapping[str, Variable], scanner: Scanner) -> FloatArray:
    """Return p(child | parents), (parent configurations, states), the first parent slowest."""
    rows, width = _shape(block, variables)
    child = shown(block.child.text)
    if block.table is not None:
        _check_count(block.table, rows * width, f"the table of {child}", "state of the child and its parents", scanner)
        table = np.array(block.table.values).reshape(width, rows).T
        return _normalised(table, {}, block.table, block, variables, scanner)
    written = _rows_of(block, variables, scanner)
    if block.default is None and len(written) < rows:
        missing = next(index for index in itertools.count() if index not in written)
        raise scanner.error(
            block.child.start,
            f"the probability block of {child} has no row{_configuration(block, missing, variables)}; "
            "add the row, or a 'default' for all that are left out",
        )
    table = np.empty((rows, width))
    if block.default is not None:
        _check_count(block.default, width, f"the default of {child}", "state", scanner)
        table[:] = block.default.values
    if written:
        table[list(written)] = [row.values for row in written.values()]
    return _normalised(table, written, block.default or block.rows[0], block, variables, scanner)


def _normalised(
    table: FloatArray,
    written: Mapping[int, Row],
    otherwise: Row,
    block: Block,
    variables: Mapping[str, Variable],
    scanner: Scanner,
) -> FloatArray:
    """Return the table with rounded rows divided by their sums; row l comes from written[l] or from `otherwise`."""
    with np.errstate(over="ignore"):
        sums = table.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > ROUNDING + EXACT)
    if wrong.size:
        index = int(wrong[0])
        order = " (the numbers of a table run with the child slowest)" if block.table and block.parents else ""
        raise scanner.error(
            written.get(index, otherwise).start,
            f"the probabilities of {shown(block.child.text)}{_configuration(block, index, variables)} sum to "
            f"{sums[index]:.6g}; a row must sum to 1 within {ROUNDING}, correct it{order}",
        )
    rounded = np.abs(sums - 1.0) > EXACT
    table[rounded] /= sums[rounded, None]
    return table


def _rows_of(block: Block, variables: Mapping[str, Variable], scanner: Scanner) -> dict[int, Row]:
    """Return {parent configuration: its row}, each row with the right levels and number of probabilities."""
    codes = [variables[parent.text].codes for parent in block.parents]
    width = len(variables[block.child.text].codes)
    child = shown(block.child.text)
    written: dict[int, Row] = {}
    for row in block.rows:
        if len(row.labels) != len(codes):
            raise scanner.error(
                row.start,
                f"the row names {len(row.labels)} levels, and {child} has {len(codes)} parents; write one level for "
                "each parent, in their order",
            )
        index = 0
        for label, states, parent in zip(row.labels, codes, block.parents, strict=True):
            if label.text not in states:
                raise scanner.error(
                    label.start,
                    f"{shown(label.text)} is no level of {shown(parent.text)}{nearest_hint(label.text, states)}; "
                    f"its levels are: {listed(states)}",
                )
            index = index * len(states) + states[label.text]
        if index in written:
            line = scanner.line_and_column(written[index].start)[0]
            raise scanner.error(
                row.start,
                f"a second row of {child}{_configuration(block, index, variables)}, the first is in line {line}; "
                "write every row once",
            )
        _check_count(row, width, f"the row of {child}", "state", scanner)
        written[index] = row
    return written


def _check_count(row: Row, count: int, what: str, each: str, scanner: Scanner) -> None:
    """Refuse a list of probabilities that has not one for `each`."""
    if len(row.values) != count:
        raise scanner.error(
            row.start,
            f"the number of probabilities in {what} is {len(row.values)}; it must be {_count_text(count)}, "
            f"one for each {each}",
        )


def _count_text(count: int) -> str:
    """Return a count as text, beyond the numbers of everyday as a power: Python writes no integer of 5000 digits."""
    return str(count) if count < 2**40 else f"2^{math.log2(count):.0f}"


def _configuration(block: Block, index: int, variables: Mapping[str, Variable]) -> str:
    """Return the levels of the parents in one configuration, as in `` for ('yes', 'no')``; nothing without parents."""
    labels: list[str] = []
    for parent in reversed(block.parents):
        levels = tuple(variables[parent.text].codes)
        index, code = divmod(index, len(levels))
        labels.append(levels[code])
    return f" for ({listed(reversed(labels))})" if labels else ""


def format_bif(network: Network) -> str:
    """Return the BIF text of a network; ``parse_bif`` reads it back bit for bit where rows sum to 1 within `EXACT`.

    Levels that are not text (numbers, truth values) are written as text and come back as text; those of hidden
    variables come back as 0 … r − 1. The format has no place for the Dirichlet parameters `alpha` nor for `about`, of
    which only the name is kept: `Network.save` keeps all.

    Raises
    ------
    FormatError : two levels of a variable look the same as text, or the structure still has the star.
    """
    dag = network.dag
    if dag.is_open:
        raise FormatError(f"the network has the node {STAR!r}, which stands for columns; bind the structure to a table")
    written = {name: _level_texts(name, network.levels[name]) for name in dag.nodes}
    title = network.about.get("name")
    lines = [f"network {quoted(title) if isinstance(title, str) else 'unknown'} {{", "}"]
    for name in dag.nodes:
        lines.append(f"variable {quoted(name)} {{")
        lines.append(f"  type discrete [ {len(written[name])} ] {{ {', '.join(written[name])} }};")
        if name in dag.hidden:
            lines.append(f"  property {HIDDEN} = yes ;")
        lines.append("}")
    for name, table in network.tables.items():
        parents = dag.parents(name)
        given = f" | {', '.join(map(quoted, parents))}" if parents else ""
        lines.append(f"probability ( {quoted(name)}{given} ) {{")
        configurations = itertools.product(*(written[parent] for parent in parents))
        for labels, row in zip(configurations, table.tolist(), strict=True):
            beginning = f"({', '.join(labels)})" if parents else "table"
            lines.append(f"  {beginning} {', '.join(map(repr, row))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _level_texts(name: str, levels: Sequence[Level]) -> list[str]:
    """Return the levels of a variable as the file writes them."""
    texts: dict[str, Level] = {}
    for level in levels:
        text = quoted(str(level))
        if text in texts:
            raise FormatError(
                f"the levels {shown(texts[text])} and {shown(level)} of {shown(name)} are the same text, and BIF knows "
                "no other; rename one"
            )
        texts[text] = level
    return list(texts)


def read_bif(path: str | Path) -> Network:
    """Read a BIF file; a path that ends in ``.gz`` is decompressed."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {shown_path(file)}: {error.strerror}; check the path") from None
    if file.suffix.lower() == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise FormatError(
                f"{shown_path(file)} is no gzip file, or is cut short; compress it again, or take .gz off its name"
            ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = Scanner(error.object[: error.start].decode("utf-8"), shown_path(file))
        raise before.error(len(before.text), "this byte is no UTF-8 text; save the file as UTF-8") from None
    return parse_bif(text, shown_path(file))


def write_bif(network: Network, path: str | Path) -> None:
    """Write a BIF file, compressed if the path ends in ``.gz``: beside its place first, then renamed.

    A crash never leaves half a file, and one network always gives the same bytes.
    """
    target = Path(path)
    try:
        data = format_bif(network).encode("utf-8")
    except UnicodeEncodeError as error:
        raise FormatError(
            f"a name or level holds {shown(error.object[error.start])}, which UTF-8 cannot write; rename it"
        ) from None
    if target.suffix.lower() == ".gz":
        data = gzip.compress(data, mtime=0)
    temporary = target.with_name(target.name + ".part")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(f"cannot write {shown_path(target)}: {error.strerror}; choose another place") from None
