"""An engine that goes through its rows in blocks: for very many rows, in memory or on disk.

Each block is compiled on its own by the method that suits it, and only what the E-step needs is kept. Blocks are
worked on by several threads, their counts are added in the order of the blocks, so results depend on the size of the
blocks but not on the number of threads nor on where the rows are kept.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import numpy as np

from lurking.errors import DataError, OptionError, TooLarge
from lurking.inference.engines.base import Engine
from lurking.inference.engines.choice import MixedEngine
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.junction import JunctionEngine
from lurking.kernels.program import Program, TreeProgram
from lurking.models.layout import Layout
from lurking.runtime.executor import map_in_order
from lurking.runtime.progress import Progress, Silent
from lurking.types import AnyArray, CodeArray, FloatArray, IntArray

BLOCK_ROWS = 1 << 17
"""Rows of one block: the scratch of a block stays small, and there is work for every thread."""


class Shelf(Protocol):
    """Where the rows of compiled blocks are kept."""

    def put(self, array: AnyArray) -> AnyArray:
        """Return the array as it is kept."""
        ...


class MemoryShelf:
    """Keeps arrays where they are."""

    def put(self, array: AnyArray) -> AnyArray:
        """Return the array itself."""
        return array


class DiskShelf:
    """Keeps arrays in files of a folder of its own, mapped into memory; the folder goes with the shelf."""

    def __init__(self, parent: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=parent, prefix="rows-"))
        self.count = 0
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def put(self, array: AnyArray) -> AnyArray:
        """Write the array and return it mapped; private pages, because compiled kernels expect writable arrays."""
        if not array.size:
            return array
        self.count += 1
        path = self.folder / str(self.count)
        try:
            np.ascontiguousarray(array).tofile(path)
        except OSError as error:
            raise DataError(
                f"compiled rows cannot be written to {str(self.folder)!r} ({error.strerror}); "
                "set TMPDIR to a place with more room"
            ) from None
        return np.asarray(np.memmap(path, array.dtype, "c", shape=array.shape))


class Piece:
    """The compiled rows of one block that share one program; `places` are its potentials among all active ones."""

    def __init__(self, active: IntArray, program: Program | TreeProgram, cost: float) -> None:
        self.active, self.program, self.cost = active, program, cost
        self.places: IntArray = np.empty(0, np.int64)

    def expect(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return the counts of the piece's own positions and its share of log_z, given all active potentials."""
        from lurking.kernels.cpu.enumeration import expect
        from lurking.kernels.cpu.junction import expect_rows

        own = potentials[self.places]
        if isinstance(self.program, Program):
            return expect(self.program, own)
        return expect_rows(self.program, own, 0, len(self.program.weights), np.empty(0))


class BlockEngine(Engine):
    """Exact expectations over blocks of rows.

    Parameters
    ----------
    layout : where the parameters live.
    blocks : codes (rows, nodes), −1 where unobserved, and weights (rows,), block after block.
    n_blocks : how many there are.
    prune : leave unobserved cells without observed descendant out of their row.
    make : makes the engine of one block.
    shelf : where compiled rows are kept.
    progress : told how many blocks are compiled, and in every E-step how many are done.
    """

    def __init__(
        self,
        layout: Layout,
        blocks: Iterable[tuple[CodeArray, FloatArray]],
        n_blocks: int,
        prune: bool,
        make: Callable[[Layout, CodeArray, FloatArray, bool], Engine],
        shelf: Shelf,
        progress: Progress | None = None,
    ) -> None:
        self.layout, self.program, self.shelf = layout, None, shelf
        self.complete_counts = np.zeros(layout.size)
        self.pieces: list[Piece] = []
        self.workers: int | None = None
        self.progress = progress or Silent()
        self.progress.begin("blocks compiled", n_blocks)
        try:
            for done, (codes, weights) in enumerate(blocks, 1):
                engine = make(layout, codes, weights, prune)
                self.complete_counts += engine.complete_counts
                self.pieces += [_kept(piece, shelf) for piece in pieces_of(engine)]
                self.progress.update(done)
        finally:
            self.progress.end()
        self.active = np.unique(np.concatenate([np.empty(0, np.int64), *(piece.active for piece in self.pieces)]))
        for piece in self.pieces:
            piece.places = np.searchsorted(self.active, piece.active)

    @property
    def cost(self) -> float:
        """The sum over the pieces."""
        return sum(piece.cost for piece in self.pieces)

    def expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z) of the active positions: constant counts, and each piece's in the order of the blocks."""
        counts = self.complete_counts[self.active]
        used = counts != 0.0
        log_z = float(counts[used] @ potentials[used])
        self.progress.begin("blocks of an E-step", len(self.pieces))
        try:
            results = map_in_order(
                lambda piece: piece.expect(potentials), self.pieces, workers=self.workers, done=self.progress.update
            )
        finally:
            self.progress.end()
        for piece, (own, share) in zip(self.pieces, results, strict=True):
            counts[piece.places] += own
            log_z += share
        return counts, log_z

    def pattern_log_z(self, potentials: FloatArray) -> FloatArray:  # noqa: ARG002
        """Refuse: the rows themselves are not kept."""
        raise _not_kept()

    def pattern_marginals(self, potentials: FloatArray, node: int) -> FloatArray:  # noqa: ARG002
        """Refuse: the rows themselves are not kept."""
        raise _not_kept()

    def pattern_statistics(self, potentials: FloatArray) -> FloatArray:  # noqa: ARG002
        """Refuse: the rows themselves are not kept."""
        raise _not_kept()


def _not_kept() -> TooLarge:
    return TooLarge("rows that are worked on in blocks are not kept; ask the fitted network about a smaller table")


def pieces_of(engine: Engine) -> list[Piece]:
    """Return the programs of an engine without its constant counts, which are added for all blocks together."""
    if isinstance(engine, MixedEngine):
        return [piece for part in engine.parts for piece in pieces_of(part)]
    if isinstance(engine, JunctionEngine):
        return [Piece(engine.active, part.program, engine.cost / len(engine.parts)) for part in engine.parts]
    if isinstance(engine, EnumerationEngine):
        if engine.program is None:
            return []
        program = engine.program._replace(counts=np.zeros(len(engine.active)))
        return [Piece(engine.active, program, engine.cost)]
    raise OptionError("engine='reference' does every row by hand and cannot work in blocks; use engine='auto'")


def _kept(piece: Piece, shelf: Shelf) -> Piece:
    """Return the piece with its rows on the shelf."""
    program = piece.program
    if isinstance(program, Program):
        kept: Program | TreeProgram = program._replace(
            slots=shelf.put(program.slots), weights=shelf.put(program.weights)
        )
    else:
        kept = program._replace(
            bases=shelf.put(program.bases),
            weights=shelf.put(program.weights),
            plan_of=shelf.put(program.plan_of),
            pattern_of=shelf.put(program.pattern_of),
        )
    return Piece(piece.active, kept, piece.cost)
