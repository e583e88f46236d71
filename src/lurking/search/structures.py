"""Structures over the columns of a table and hidden variables: where searches start, and where moves lead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.errors import OptionError, StructureError, UnknownNameError
from lurking.graph.checks import checked_hidden
from lurking.graph.dag import Dag, as_dag
from lurking.graph.moves import Move, MoveKind
from lurking.inference.binding import check_columns
from lurking.runtime.checks import is_number
from lurking.runtime.rng import Seed, seed_sequence
from lurking.search.constraints import Constraints
from lurking.search.families import FamilyScores
from lurking.search.trees import tree

STARTS = ("empty", "full", "random", "tree", "full tree")


def start_structure(
    table: Any, hidden: Mapping[str, int], kind: str = "full", *, share: float = 0.5, seed: Seed = 0
) -> Dag:
    """Return a structure to start a search from, over hidden variables and all columns.

    kind : "empty" (no arcs: structural EM never leaves it for a hidden variable), "full" (every hidden variable is a
        parent of every column), "random" (each of these arcs with probability `share`), "tree" (the best tree over
        the columns alone, Chow & Liu 1968; rows with an empty cell are left out of it), or "full tree" (both).
    """
    if kind not in STARTS:
        raise UnknownNameError("start", kind, STARTS)
    if not is_number(share) or not 0.0 <= share <= 1.0:
        raise OptionError(f"share is {share!r}; it must be a probability, from 0 to 1")
    if not isinstance(hidden, Mapping):
        raise OptionError(f"hidden is {hidden!r}; it must map names to numbers of states, for example {{'class': 2}}")
    data = as_table(table)
    nodes = (*hidden, *data.columns)
    empty = Dag(nodes, (), checked_hidden(nodes, hidden))
    check_columns(empty, data)
    generator = np.random.Generator(np.random.PCG64(seed_sequence(seed)))
    arcs = [(parent, child) for child in data.columns for parent in hidden]
    if kind == "random":
        is_there = generator.random(len(arcs)) < share
        arcs = [arc for arc, there in zip(arcs, is_there, strict=True) if there]
    elif kind in ("empty", "tree"):
        arcs = []
    if kind.endswith("tree"):
        arcs += _tree(data).edges
    return Dag(nodes, arcs, empty.hidden)


def _tree(table: Table) -> Dag:
    """Return the best tree over the columns, judged by the rows without empty cells."""
    is_whole = np.ones(table.n_rows, np.bool_)
    for name in table.columns:
        is_whole &= table[name].codes >= 0
    whole = table if is_whole.all() else table.take(np.flatnonzero(is_whole))
    return tree(FamilyScores(whole, "bdeu"), Constraints.from_options(table.columns))


def whole_start(start: Dag | str, table: Table) -> Dag:
    """Return the start with the columns that it does not name as further nodes."""
    bound = as_dag(start, "start").bind(table.columns)
    check_columns(bound, table)
    more = [name for name in table.columns if name not in bound.nodes]
    whole = Dag((*bound.nodes, *more), bound.edges, bound.hidden) if more else bound
    check_columns(whole, table)
    return whole


def moved(dag: Dag, move: Move) -> Dag:
    """Return the structure after a move."""
    arc = (move.parent, move.child)
    edges = [edge for edge in dag.edges if edge != arc]
    if move.kind is MoveKind.ADD:
        edges.append(arc)
    elif move.kind is MoveKind.REVERSE:
        edges.append((move.child, move.parent))
    return Dag(dag.nodes, edges, dag.hidden)


def arranged_constraints(constraints: Constraints | None, start: Dag) -> Constraints:
    """Return the constraints over the nodes of a start in their order; without any, everything acyclic is allowed."""
    nodes = start.nodes
    if constraints is not None and not isinstance(constraints, Constraints):
        raise OptionError(
            f"constraints is {constraints!r}; it must be made by lurking.search.constraints.Constraints.from_options"
        )
    if constraints is None:
        return Constraints.from_options(nodes)
    if constraints.variables == nodes:
        return constraints.placed(start)
    if set(constraints.variables) != set(nodes):
        different = sorted(set(constraints.variables) ^ set(nodes))
        raise StructureError(
            f"the constraints and the start differ in {different}; make them over all columns and hidden variables"
        )
    return constraints.restricted(nodes).placed(start)


def from_hidden_only(hidden: Mapping[str, int], columns: tuple[str, ...]) -> Constraints:
    """Return constraints that allow arcs from hidden variables to columns only (beal-ghahramani-2006, section 4)."""
    return Constraints.from_options(
        (*hidden, *columns),
        forbidden=[
            *((a, b) for a in columns for b in columns if a != b),
            *((a, b) for a in hidden for b in hidden if a != b),
            *((column, name) for column in columns for name in hidden),
        ],
    )
