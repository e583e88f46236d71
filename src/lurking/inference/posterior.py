"""The variational posterior over the parameters: one Dirichlet per row of every table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaincinv

from lurking.errors import OptionError, StructureError, nearest_hint
from lurking.models.layout import Layout
from lurking.types import FloatArray, read_only


@dataclass(frozen=True, eq=False)
class DirichletPosterior(Mapping[str, FloatArray]):
    """{node: α[l, k]}; q(θ_jl) = Dir(α_jl) (beal-ghahramani-2006, eq. 56)."""

    layout: Layout = field(repr=False)
    flat: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flat", read_only(self.flat.copy()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DirichletPosterior):
            return NotImplemented
        return self.layout.nodes == other.layout.nodes and np.array_equal(self.flat, other.flat)

    def __hash__(self) -> int:
        return hash((self.layout.nodes, self.flat.tobytes()))

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self.layout.index:
            raise StructureError(f"{name!r} is no variable of the network{nearest_hint(name, self.layout.nodes)}")
        return self.layout.table(self.flat, name).copy()

    def __iter__(self) -> Iterator[str]:
        return iter(self.layout.nodes)

    def __len__(self) -> int:
        return len(self.layout.nodes)

    def mean(self) -> FloatArray:
        """Return E[θ] = α / Σ α, (P,)."""
        return self.layout.normalise(self.flat)

    def interval(self, name: str, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the central credible interval of every θ_jlk of one node: (lower[l, k], upper[l, k]).

        Each entry is marginally Beta(α_jlk, Σ_k α_jlk − α_jlk) under q.
        """
        check_level(level)
        alpha = self[name]
        rest = alpha.sum(axis=1, keepdims=True) - alpha
        if alpha.shape[1] == 1:
            return np.ones_like(alpha), np.ones_like(alpha)
        tail = (1.0 - level) / 2.0
        return betaincinv(alpha, rest, tail), 1.0 - betaincinv(rest, alpha, tail)


def check_level(level: float) -> None:
    """Raise `OptionError` unless the probability of a credible interval lies strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise OptionError(f"level is {level!r}; it must lie strictly between 0 and 1, for example 0.95")
