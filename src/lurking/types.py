"""Array aliases and the small protocols that let low layers speak of things defined above them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
CodeArray: TypeAlias = NDArray[np.int32]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the array, which from now on cannot be written to: results share memory and must not change."""
    array.flags.writeable = False
    return array


Level: TypeAlias = Hashable
"""One state of a categorical variable as the user knows it: text, integer, float or bool."""

Frame: TypeAlias = Any
"""A pandas, polars or Arrow table; which one is the caller's choice, so the type stays open."""


class JointDistribution(Protocol):
    """What a prior may ask of a network: the joint distribution of any of its variables."""

    def joint(self, names: Sequence[str]) -> FloatArray:
        """Return p(names) with one axis per name, in the order given."""
        ...

    def levels_of(self, name: str) -> tuple[Level, ...]:
        """Return the states of one variable in the order of the axis of `joint`."""
        ...
