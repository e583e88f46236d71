"""What the lecture prints: one table, two numbers of parameters, and the arcs of its drawings."""

from __future__ import annotations

from typing import Final, NamedTuple


class Gain(NamedTuple):
    """What arcs bring over the first network: log likelihood at the best parameters, and the Cheeseman-Stutz score."""

    loglik: float
    cs: float


GAINS: Final = {"X3": Gain(3.0, -0.4), "X4": Gain(10.6, 7.2), "X3 X4": Gain(24.1, 17.4)}
"""{variables that C gets an arc to: the gain}, slide "Illustration of non-decomposability"."""
WITH_HIDDEN: Final = 17
"""Parameters of the network with the hidden variable, slide "Structural signatures"."""
WITHOUT_HIDDEN: Final = 59
"""Parameters of the network that takes its place when the hidden variable is left out."""
