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
from typing import Protocol, TypeVar

import numpy as np

from lurking.errors import DataError, OptionError, TooLarge
from lurking.inference.engines.base import Engine, Make
from lurking.inference.engines.pieces import Piece
from lurking.inference.engines.rows import Rows
from lurking.kernels.program import Program, TreeProgram
from lurking.models.layout import Layout
from lurking.runtime.executor import map_in_order
from lurking.runtime.progress import Progress, Silent
from lurking.types import AnyArray, FloatArray

Result = TypeVar("Result")

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


class BlockEngine(Engine):
    """Exact expectations over blocks of rows.

    Parameters
    ----------
    layout : where the parameters live.
    blocks : the rows, block after block.
    n_blocks : how many there are.
    prune : leave unobserved cells without observed descendant out of their row.
    make : makes the engine of one block.
    shelf : where compiled rows are kept.
    progress : told how many blocks are compiled, and in every E-step how many are done.
    """

    def __init__(
        self,
        layout: Layout,
        blocks: Iterable[Rows],
        n_blocks: int,
        prune: bool,
        make: Make,
        shelf: Shelf,
        progress: Progress | None = None,
    ) -> None:
        nodes = len(layout.nodes)
        super().__init__(layout, Rows.of_codes(np.empty((0, nodes), np.int32), np.empty(0)), prune)
        self.shelf = shelf
        self.complete_counts = np.zeros(layout.size)
        self.log_base = 0.0
        self._pieces: list[Piece] = []
        self.workers: int | None = None
        self.progress = progress or Silent()
        self.progress.begin("blocks compiled", n_blocks)
        try:
            for done, rows in enumerate(blocks, 1):
                engine = make(layout, rows, prune)
                pieces = engine.pieces
                if pieces is None:
                    raise OptionError(f"{engine.name} compiles no rows and cannot work in blocks; use engine='auto'")
                self.complete_counts += engine.complete_counts
                self.log_base += engine.log_base
                self._pieces += [_kept(piece, shelf) for piece in pieces]
                self.progress.update(done)
        finally:
            self.progress.end()
        self.active = np.unique(np.concatenate([np.empty(0, np.int64), *(piece.active for piece in self._pieces)]))
        for piece in self._pieces:
            piece.places = np.searchsorted(self.active, piece.active)

    @property
    def pieces(self) -> list[Piece]:
        """Those of all blocks, in the order of the blocks."""
        return self._pieces

    @property
    def is_in_blocks(self) -> bool:
        """Always."""
        return True

    def watch(self, progress: Progress, workers: int | None) -> None:
        """Tell `progress` how many blocks of each E-step are done, and work on `workers` threads."""
        self.progress, self.workers = progress, workers

    @property
    def cost(self) -> float:
        """The sum over the pieces."""
        return sum(piece.cost for piece in self._pieces)

    def _expect_active(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """Return (N, log_z) of the active positions: constant counts, and each piece's in the order of the blocks."""
        counts = self.complete_counts[self.active]
        used = counts != 0.0
        log_z = float(counts[used] @ potentials[used])
        results = self._of_pieces(lambda piece: piece.expect(potentials))
        for piece, (own, share) in zip(self._pieces, results, strict=True):
            counts[piece.places] += own
            log_z += share
        return counts, log_z

    def _log_z_active(self, points: FloatArray) -> FloatArray:
        """Return log_z of the active positions at every point, (m,): every block is passed once for all points."""
        counts = self.complete_counts[self.active]
        used = counts != 0.0
        result = np.asarray(np.vecdot(np.compress(used, points, axis=1), counts[used]))
        for share in self._of_pieces(lambda piece: piece.log_z(points)):
            result = result + share
        return result

    def _of_pieces(self, work: Callable[[Piece], Result]) -> list[Result]:
        """Return the result of each piece in the order of the blocks; several threads work on them."""
        self.progress.begin("blocks of an E-step", len(self._pieces))
        try:
            return map_in_order(work, self._pieces, workers=self.workers, done=self.progress.update)
        finally:
            self.progress.end()

    def _pattern_log_z(self, potentials: FloatArray) -> FloatArray:  # noqa: ARG002
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
