"""Posterior probabilities of edges."""

from __future__ import annotations

from dataclasses import dataclass, field

from lurking.data.frames import pandas_frame
from lurking.errors import UnknownNameError
from lurking.types import FloatArray, Frame

SHOWN = 10
"""Arcs that printed probabilities list."""


@dataclass(frozen=True, eq=False)
class EdgePosterior:
    """Posterior probabilities of arcs; `probabilities[x, y]` (p, p) is that of variables[x] → variables[y]."""

    variables: tuple[str, ...]
    probabilities: FloatArray = field(repr=False)
    over: str

    def probability(self, parent: str, child: str) -> float:
        """Return the probability of the arc parent → child."""
        for name in (parent, child):
            if name not in self.variables:
                raise UnknownNameError("variable", name, self.variables)
        return float(self.probabilities[self.variables.index(parent), self.variables.index(child)])

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the ordered pairs of different variables, the most probable arc first."""
        pairs = [(x, y) for x in range(len(self.variables)) for y in range(len(self.variables)) if x != y]
        return sorted(pairs, key=lambda pair: -self.probabilities[pair])

    def __str__(self) -> str:
        pairs = self._pairs()
        lines = [f"probabilities of arcs between {len(self.variables)} variables, summed over {self.over}"]
        for x, y in pairs[:SHOWN]:
            lines.append(f"{self.probabilities[x, y]:.4f}  {self.variables[x]} -> {self.variables[y]}")
        return "\n".join([*lines, *([f"… and {len(pairs) - SHOWN} more"] if len(pairs) > SHOWN else [])])

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame with one row per ordered pair, most probable first."""
        pairs = self._pairs()
        return pandas_frame(
            {
                "parent": [self.variables[x] for x, _ in pairs],
                "child": [self.variables[y] for _, y in pairs],
                "probability": [float(self.probabilities[pair]) for pair in pairs],
            }
        )
