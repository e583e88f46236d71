"""Starting points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lurking.errors import OptionError
from lurking.models.discrete.layout import Layout
from lurking.types import FloatArray

LEAST_SHAPE = 0.1


def draw_start(layout: Layout, pseudo: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return ln θ drawn from the prior, kept away from the symmetric saddle and from the vertices, (P,).

    Each row is drawn from a Dirichlet with the prior's mean and its strength Σ_k λ_jlk held between r/2 and r: a
    strong prior would draw nearly equal rows (the saddle where hidden states are the same), a weak one would draw
    zeros that EM can never leave. For ½ ≤ λ ≤ 1 (symmetric) this is the prior itself.
    """
    strength = layout.row_sums(pseudo)
    width = np.diff(layout.row_start).astype(np.float64)
    held = np.clip(strength, 0.5 * width, width)
    shape = np.maximum(pseudo * (held / strength)[layout.row_of], LEAST_SHAPE)
    theta = layout.normalise(np.maximum(generator.standard_gamma(shape), 1e-100))
    return np.asarray(np.log(theta))


def given_start(layout: Layout, tables: Mapping[str, Any]) -> FloatArray:
    """Return ln θ of the user's tables {node: array[l, k]}, used as they are."""
    known = {name: table for name, table in tables.items() if name in layout.index}
    theta = layout.join(known, "init")
    if not (np.all(np.isfinite(theta)) and np.all(theta >= 0.0)):
        raise OptionError("init contains a negative or non-finite entry; every row must be a probability vector")
    sums = layout.row_sums(theta)
    if not np.allclose(sums, 1.0, rtol=0.0, atol=1e-6):
        raise OptionError(f"a row of init sums to {sums[np.argmax(np.abs(sums - 1.0))]:.6g}; every row must sum to 1")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(theta))
