"""Compiled rows that share one program: what the blocks of a large table and the curvature work on."""

from __future__ import annotations

import numpy as np

from lurking.kernels.program import Program, TreeProgram
from lurking.types import FloatArray, IntArray


class Piece:
    """Compiled rows that share one program; `places` are its potentials among all active ones of an engine."""

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

    def log_z(self, points: FloatArray) -> FloatArray:
        """Return the share of log_z, (m,), at each of m points of all active potentials, (m, Q)."""
        from lurking.kernels.cpu.junction import log_z_on_tree
        from lurking.kernels.cpu.points import log_z_of_points

        own = np.take(points, self.places, axis=1)
        if isinstance(self.program, Program):
            return log_z_of_points(self.program, own)
        return log_z_on_tree(self.program, own)
