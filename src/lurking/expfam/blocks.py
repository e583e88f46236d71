"""Conjugate families side by side: every row of a flat vector with its family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from lurking.errors import BlockError
from lurking.expfam.base import Conjugate
from lurking.expfam.dirichlet import Dirichlet
from lurking.types import FloatArray, IntArray, read_only


class Part(NamedTuple):
    """Rows of one family, and where their entries are in the flat vector."""

    family: Conjugate
    positions: IntArray | slice
    coordinates: IntArray | slice


@final
class Blocks:
    """The rows of a flat vector (P,), each with its conjugate family.

    All methods do for the whole vector what those of `Conjugate` do for one family; see there.

    Attributes
    ----------
    parts : the families, each with the positions of its rows.
    row_start : (R + 1,) first position of each row, with a closing entry.
    """

    def __init__(self, families: Sequence[Conjugate], row_positions: Sequence[IntArray] = ()) -> None:
        """Put families side by side; `row_positions` holds for each family the numbers of its rows among all.

        The rows of a single family need no numbers.
        """
        self._row_positions = tuple(row_positions)
        self.parts: tuple[Part, ...]
        self.row_start: IntArray
        if len(families) == 1:
            self.parts = (Part(families[0], slice(None), slice(None)),)
            self.row_start = families[0].row_start
            return
        order = np.argsort(np.concatenate(row_positions), kind="stable")
        self.row_start = _starts(np.concatenate([np.diff(family.row_start) for family in families])[order])
        self._coordinate_start = _starts(np.concatenate([np.diff(own.coordinate_start) for own in families])[order])
        self.parts = tuple(
            Part(family, _positions(self.row_start, rows), _positions(self._coordinate_start, rows))
            for family, rows in zip(families, row_positions, strict=True)
        )

    @classmethod
    def of_tables(cls, row_start: IntArray) -> Blocks:
        """Return the rows of conditional tables."""
        return cls([Dirichlet(row_start)])

    @property
    def size(self) -> int:
        """Number of positions, P."""
        return int(self.row_start[-1])

    @property
    def coordinate_start(self) -> IntArray:
        """(R + 1,) first coordinate of each row, with a closing entry."""
        return self.parts[0].family.coordinate_start if len(self.parts) == 1 else self._coordinate_start

    @property
    def dimension(self) -> int:
        """Number of free parameters, which is that of coordinates, C."""
        return int(self.coordinate_start[-1])

    @cached_property
    def row_of(self) -> IntArray:
        """(P,) the row of each position."""
        if len(self.parts) == 1 and isinstance(self.parts[0].family, Dirichlet):
            return self.parts[0].family.row_of
        return read_only(np.repeat(np.arange(len(self.row_start) - 1), self.row_start[1:] - self.row_start[:-1]))

    @property
    def are_tables(self) -> bool:
        """True if all rows are those of conditional tables, which compiled kernels support."""
        return all(isinstance(part.family, Dirichlet) for part in self.parts)

    def at(self, positions: IntArray) -> Blocks:
        """Return the blocks of whole rows, given their flat positions in ascending order."""
        if len(positions) == self.size:
            return self
        rows = self.row_of[positions]
        is_first = np.ones(len(rows), np.bool_)
        np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
        which = rows[is_first]
        if len(self.parts) == 1:
            return Blocks([self.parts[0].family.rows(which)])
        families, numbers = [], []
        for part, own in zip(self.parts, self._row_positions, strict=True):
            kept = np.isin(own, which)
            if kept.any():
                families.append(part.family.rows(np.flatnonzero(kept)))
                numbers.append(np.searchsorted(which, own[kept]))
        return Blocks(families, numbers) if families else Blocks([self.parts[0].family.rows(which)])

    def log_normaliser(self, h: FloatArray) -> float:
        """Return A(h), summed over all rows."""
        return self._total(lambda part: part.family.log_normaliser(h[part.positions]), "log normaliser")

    def log_evidence(self, prior: FloatArray, counts: FloatArray) -> float:
        """Return D(λ, N)."""
        return self._total(
            lambda part: part.family.log_evidence(prior[part.positions], counts[part.positions]), "log evidence"
        )

    def kl_divergence(self, h: FloatArray, reference: FloatArray) -> float:
        """Return KL[p(θ | h) ‖ p(θ | reference)]."""
        return self._total(
            lambda part: part.family.kl_divergence(h[part.positions], reference[part.positions]), "divergence"
        )

    def log_density(self, h: FloatArray, eta: FloatArray) -> float:
        """Return the log density over the families' own parameters; ±inf or NaN on a boundary."""
        return sum(part.family.log_density(h[part.positions], eta[part.positions]) for part in self.parts)

    def log_density_after(self, h: FloatArray, eta: FloatArray, added: FloatArray, power: float = 1.0) -> float:
        """Return the log density at the mode after `added` statistics."""
        return sum(
            part.family.log_density_after(h[part.positions], eta[part.positions], added[part.positions], power)
            for part in self.parts
        )

    def expected(self, h: FloatArray) -> FloatArray:
        """Return E[η(θ)], (P,)."""
        return self._joined(lambda part: part.family.expected(h[part.positions]))

    def mode(self, h: FloatArray, otherwise: FloatArray) -> FloatArray:
        """Return η at the maximum of h·η(θ), (P,)."""
        return self._joined(lambda part: part.family.mode(h[part.positions], otherwise[part.positions]))

    def over_parameters(self, h: FloatArray) -> FloatArray:
        """Return h' of the density over the families' own parameters, (P,)."""
        return self._joined(lambda part: part.family.over_parameters(h[part.positions]))

    def draw(self, h: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return η of one draw, (P,), family after family."""
        if len(self.parts) == 1:
            return self.parts[0].family.draw(h, generator)
        return self._joined(lambda part: part.family.draw(h[part.positions], generator))

    def pack(self, h: FloatArray) -> FloatArray:
        """Return unbounded coordinates of the hyperparameters."""
        return self._joined(lambda part: part.family.pack(h[part.positions]))

    def unpack(self, u: FloatArray) -> FloatArray:
        """Return the hyperparameters."""
        return self._joined(lambda part: part.family.unpack(u[part.positions]))

    def pack_point(self, eta: FloatArray) -> FloatArray:
        """Return unbounded coordinates of a point, (P,), for extrapolation."""
        return self._joined(lambda part: part.family.pack_point(eta[part.positions]))

    def unpack_point(self, u: FloatArray) -> FloatArray:
        """Return η of what `pack_point` returned."""
        return self._joined(lambda part: part.family.unpack_point(u[part.positions]))

    def coordinates(self, eta: FloatArray) -> FloatArray:
        """Return the unbounded coordinates x, (C,) or (m, C)."""
        result = np.empty((*eta.shape[:-1], self.dimension))
        for part in self.parts:
            result[..., part.coordinates] = part.family.coordinates(eta[..., part.positions])
        return result

    def natural(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return η(x), (P,) or (m, P), and the log Jacobian with base measure, a number or (m,)."""
        eta, log_jacobian = np.empty((*x.shape[:-1], self.size)), np.zeros(x.shape[:-1])
        for part in self.parts:
            eta[..., part.positions], own = part.family.natural(x[..., part.coordinates])
            log_jacobian = log_jacobian + own
        return eta, log_jacobian

    def pull_back(self, x: FloatArray, g: FloatArray) -> FloatArray:
        """Return the gradient of g·η(x) + j(x), (C,)."""
        result = np.empty(self.dimension)
        for part in self.parts:
            result[part.coordinates] = part.family.pull_back(x[part.coordinates], g[part.positions])
        return result

    def _joined(self, of_part: Callable[[Part], FloatArray]) -> FloatArray:
        if len(self.parts) == 1:
            return of_part(self.parts[0])
        result = np.empty(self.size)
        for part in self.parts:
            result[part.positions] = of_part(part)
        return result

    def _total(self, of_part: Callable[[Part], float], what: str) -> float:
        """Return the sum over the parts, or raise `BlockError` with the name of the first that has no finite value."""
        total = 0.0
        for part in self.parts:
            value = of_part(part)
            if not math.isfinite(value):
                raise BlockError(part.family.name, what, value)
            total += value
        return total


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _positions(row_start: IntArray, rows: IntArray) -> IntArray:
    """Return the flat positions of some rows."""
    sizes = row_start[rows + 1] - row_start[rows]
    shifts = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(np.repeat(row_start[rows], sizes) + shifts, np.int64)
