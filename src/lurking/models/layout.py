"""One flat vector for the parameters of all nodes of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from lurking.errors import StructureError
from lurking.expfam.base import Conjugate
from lurking.expfam.blocks import Blocks
from lurking.expfam.dirichlet import Dirichlet
from lurking.graph.dag import Dag
from lurking.models.families.base import Family
from lurking.models.ties import Ties
from lurking.types import AnyArray, BoolArray, CodeArray, FloatArray, IntArray, read_only

Size = TypeVar("Size", int, float, FloatArray)


def free_parameters(states: int, configurations: Size) -> Size:
    """Return (r − 1) q, the number of free parameters of a table with q rows of r states."""
    return (states - 1) * configurations


class Layout:
    """Where each θ_jlk lives: node order; then parent configuration l; then state k.

    Configuration l is row-major over the parents in listed order, first parent slowest. The same layout serves
    potentials φ, statistics N, pseudo-counts λ and probabilities θ. Families that are `tied` (`checked_ties`) share the
    place of the first of them, their *owner*; rows of tables are those of owners.

    Nodes of another family than the table have rows of parameters in its place; `families` names them. A node with
    values has cardinality 1 and no children.
    """

    def __init__(
        self,
        dag: Dag,
        cardinalities: Mapping[str, int],
        tied: Ties = (),
        families: Mapping[str, Family] | None = None,
    ) -> None:
        self.dag = dag
        self.tied = tied
        self.families: dict[str, Family] = {name: own for name, own in (families or {}).items() if name in dag.nodes}
        self.nodes: tuple[str, ...] = dag.nodes
        self.index = {name: j for j, name in enumerate(self.nodes)}
        self.cardinalities: tuple[int, ...] = tuple(int(cardinalities[name]) for name in self.nodes)
        self.parents: tuple[tuple[int, ...], ...] = tuple(
            tuple(self.index[parent] for parent in dag.parents(name)) for name in self.nodes
        )
        first = {name: self.index[group[0]] for group in tied for name in group}
        self.owners: tuple[int, ...] = tuple(j for j, name in enumerate(self.nodes) if first.get(name, j) == j)
        offsets: list[int] = []
        shapes: list[tuple[int, int]] = []
        configurations, total = [], 0
        for j, parents in enumerate(self.parents):
            count = 1
            for parent in parents:
                count *= self.cardinalities[parent]
            configurations.append(count)
            family = self.families.get(self.nodes[j])
            shapes.append((count, self.cardinalities[j]) if family is None else family.shape(count))
            owner = first.get(self.nodes[j], j)
            if owner == j:
                offsets.append(total)
                total += shapes[j][0] * shapes[j][1]
            else:
                offsets.append(offsets[owner])
        self.offsets: tuple[int, ...] = tuple(offsets)
        self.configurations: tuple[int, ...] = tuple(configurations)
        self.shapes: tuple[tuple[int, int], ...] = tuple(shapes)
        self.size: int = total

    @cached_property
    def family_dimensions(self) -> tuple[int, ...]:
        """Number of free parameters of each family, for tables (r_j − 1) Π_{p ∈ pa(j)} r_p."""
        own = tuple(map(free_parameters, self.cardinalities, self.configurations))
        if not self.families:
            return own
        blocks = {name: family.block(self.shapes[self.index[name]][0]) for name, family in self.families.items()}
        return tuple(blocks[name].dimension if name in blocks else d for name, d in zip(self.nodes, own, strict=True))

    @cached_property
    def dimension(self) -> int:
        """Number of free parameters, d = Σ_j (r_j − 1) Π_{p ∈ pa(j)} r_p (beal-ghahramani-2006, eq. 23), j owners.

        Equal to `blocks.dimension`, but no vector is made, so that d of structures too large to fit is known as well.
        """
        return sum(self.family_dimensions[j] for j in self.owners)

    @property
    def are_tables(self) -> bool:
        """True if every node has a table."""
        return not self.families

    @cached_property
    def strides(self) -> tuple[dict[int, int], ...]:
        """For each family, how far one state of each of its variables moves the flat index."""
        result = []
        for j, parents in enumerate(self.parents):
            stride = self.cardinalities[j]
            family = {j: 1}
            for parent in reversed(parents):
                family[parent] = stride
                stride *= self.cardinalities[parent]
            result.append(family)
        return tuple(result)

    @cached_property
    def row_start(self) -> IntArray:
        """(R + 1,) first flat position of each row (node, parent configuration); a last entry closes the list."""
        widths = np.asarray([self.shapes[j][1] for j in self.owners], np.int64)
        lengths = np.repeat(widths, [self.shapes[j][0] for j in self.owners])
        starts = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        return read_only(starts)

    @cached_property
    def blocks(self) -> Blocks:
        """Every row of the flat vector with its conjugate family."""
        if not self.families:
            return Blocks.of_tables(self.row_start)
        counts = [self.shapes[j][0] for j in self.owners]
        first = np.cumsum([0, *counts])
        rows = [np.arange(first[k], first[k + 1]) for k in range(len(counts))]
        own = [self.families.get(self.nodes[j]) for j in self.owners]
        of_tables = np.concatenate([rows[k] for k, family in enumerate(own) if family is None] or [rows[0][:0]])
        parts: list[Conjugate] = [] if not len(of_tables) else [Dirichlet(_starts(np.diff(self.row_start)[of_tables]))]
        numbers = [of_tables] if len(of_tables) else []
        for k, family in enumerate(own):
            if family is not None:
                parts.append(family.block(counts[k]))
                numbers.append(rows[k])
        return Blocks(parts, numbers)

    @cached_property
    def row_of(self) -> IntArray:
        """(P,) the row of each flat position."""
        return self.blocks.row_of

    @cached_property
    def untied(self) -> Layout:
        """The layout of the same tables in which every family has a place of its own."""
        cardinalities = dict(zip(self.nodes, self.cardinalities, strict=True))
        return Layout(self.dag, cardinalities, families=self.families) if self.tied else self

    def apart(self, flat: FloatArray) -> FloatArray:
        """Return the vector over `untied`: shared tables once for every family that has them."""
        return self.untied.join(self.split(flat)) if self.tied else flat

    def positions(self, j: int, codes: CodeArray, rows: IntArray) -> IntArray:
        """Return the flat positions of family j in some rows of codes (u, nodes), unobserved variables at state 0."""
        result = np.full(len(rows), self.offsets[j], np.int64)
        for variable, stride in self.strides[j].items():
            result += stride * np.maximum(codes[rows, variable], 0).astype(np.int64)
        return result

    def row_sums(self, flat: FloatArray) -> FloatArray:
        """Return the sum of each row, (R,)."""
        return np.asarray(np.add.reduceat(flat, self.row_start[:-1]), np.float64)

    def normalise(self, flat: FloatArray) -> FloatArray:
        """Return the flat vector with every row divided by its sum."""
        return np.asarray(flat / self.row_sums(flat)[self.row_of], np.float64)

    def table(self, flat: AnyArray, name: str) -> AnyArray:
        """Return one family's table [l, k] as a view of the flat vector; of another family its rows of parameters."""
        j = self.index[name]
        count, width = self.shapes[j]
        return flat[self.offsets[j] : self.offsets[j] + width * count].reshape(count, width)

    def table_positions(self) -> BoolArray:
        """Return which flat positions belong to tables, (P,)."""
        result = np.ones(self.size, np.bool_)
        for name in self.families:
            self.table(result, name)[:] = False
        return result

    def probabilities(self, potentials: FloatArray) -> FloatArray:
        """Return exp of the potentials of tables; those of other families stay as they are."""
        return (
            np.asarray(np.exp(potentials))
            if self.are_tables
            else np.where(self.table_positions(), np.exp(np.minimum(potentials, 0.0)), potentials)
        )

    def split(self, flat: FloatArray) -> dict[str, FloatArray]:
        """Return {node: table[l, k]} (copies)."""
        return {name: self.table(flat, name).copy() for name in self.nodes}

    def join(self, tables: Mapping[str, Sequence[Sequence[float]] | FloatArray], what: str = "tables") -> FloatArray:
        """Return the flat vector of {node: table[l, k]}, checking names and shapes."""
        unknown = [name for name in tables if name not in self.index]
        missing = [name for name in self.nodes if name not in tables]
        if unknown or missing:
            raise StructureError(
                f"{what} must have one entry per node: "
                f"missing {missing or 'none'}, not in the structure {unknown or 'none'}"
            )
        result = np.empty(self.size)
        for j, name in enumerate(self.nodes):
            try:
                table = np.asarray(tables[name], np.float64)
            except (TypeError, ValueError):
                raise StructureError(f"{what} of {name!r} are not a table of numbers [l, k]") from None
            shape = self.shapes[j]
            if table.shape == (shape[1],) and shape[0] == 1:
                table = table[None, :]
            if table.shape != shape:
                raise StructureError(
                    f"{what} of {name!r} has shape {table.shape}; expected {shape} = (parent configurations, states)"
                )
            own = self.table(result, name)
            if j in self.owners:
                own[:] = table
            elif not np.allclose(own, table, rtol=1e-9, atol=1e-12):
                first = self.nodes[self.offsets.index(self.offsets[j])]
                raise StructureError(f"{what} of {first!r} and {name!r} differ; tied families share one table")
        return result


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
