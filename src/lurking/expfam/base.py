"""What every conjugate family offers to learning, scoring and sampling."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from lurking.errors import OptionError
from lurking.types import FloatArray, IntArray


class Conjugate(ABC):
    """Rows of one conjugate family, side by side in flat vectors.

    A row has parameters θ with natural parameters η(θ) and natural hyperparameters h of the same size. With the base
    measure chosen so that data add up, a posterior has h = λ + N, λ those of the prior and N the summed statistics:

        p(θ | h) = exp(h·η(θ) − A(h)).

    θ also has unbounded coordinates x of its own dimension, and exp(h·η(x) + j(x) − A(h)) integrates to 1 over x, where
    j is the log Jacobian together with the base measure. Vectors over hyperparameters and natural parameters have shape
    (P,), or (m, P) where m points are meant; vectors of coordinates have shape (C,) or (m, C).

    Attributes
    ----------
    name : what messages call the family.
    row_start : (R + 1,) first flat position of each row, with a closing entry.
    coordinate_start : (R + 1,) the same for the coordinates x.
    """

    name: str
    row_start: IntArray
    coordinate_start: IntArray

    @property
    def dimension(self) -> int:
        """Number of free parameters, over all rows."""
        return int(self.coordinate_start[-1])

    @abstractmethod
    def rows(self, which: IntArray) -> Conjugate:
        """Return the same family for some of its rows, by their numbers in ascending order."""

    @abstractmethod
    def log_normaliser(self, h: FloatArray) -> float:
        """Return A(h), summed over the rows."""

    @abstractmethod
    def expected(self, h: FloatArray) -> FloatArray:
        """Return E[η(θ)] = ∂A/∂h, (P,)."""

    @abstractmethod
    def mode(self, h: FloatArray, otherwise: FloatArray) -> FloatArray:
        """Return η at the maximum of h·η(θ), (P,); rows without a maximum keep those of `otherwise`."""

    @abstractmethod
    def draw(self, h: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return η of one draw θ ~ p(θ | h), (P,)."""

    @abstractmethod
    def pack(self, h: FloatArray) -> FloatArray:
        """Return unbounded coordinates of the hyperparameters, (P,), in which steps are extrapolated."""

    @abstractmethod
    def unpack(self, u: FloatArray) -> FloatArray:
        """Return the hyperparameters, given what `pack` returned."""

    @abstractmethod
    def coordinates(self, eta: FloatArray) -> FloatArray:
        """Return x, given η(x): (m, C) or (C,)."""

    @abstractmethod
    def natural(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return η(x), (m, P) or (P,), and j(x) summed over the rows, (m,) or a number."""

    @abstractmethod
    def pull_back(self, x: FloatArray, g: FloatArray) -> FloatArray:
        """Return the gradient of g·η(x) + j(x), (C,), at one point."""

    @abstractmethod
    def log_density(self, h: FloatArray, eta: FloatArray) -> float:
        """Return the log density over the family's own parameters (probabilities, rates), summed over the rows."""

    def log_density_after(self, h: FloatArray, eta: FloatArray, added: FloatArray, power: float) -> float:  # noqa: ARG002
        """Return the log density at the mode after `added` statistics: power = 0 in natural form, 1 over parameters.

        A family may use `added` for keeping digits where h is enormous; in natural form it is h·η − A(h).
        """
        return self.log_density(h, eta) if power else float(h @ eta) - self.log_normaliser(h)

    def over_parameters(self, h: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return h' for which the log density over the family's own parameters is h'·η(θ) up to a constant."""
        raise OptionError(
            f"the mode over probabilities is defined for tables only, and the model has {self.name} nodes; "
            "use method 'map'"
        )

    def log_evidence(self, prior: FloatArray, counts: FloatArray) -> float:
        """Return D(λ, N) = A(λ + N) − A(λ), the log evidence of statistics N without their base measure."""
        return self.log_normaliser(prior + counts) - self.log_normaliser(prior)

    def kl_divergence(self, h: FloatArray, reference: FloatArray) -> float:
        """Return KL[p(θ | h) ‖ p(θ | reference)] = (h − reference)·E[η] − A(h) + A(reference)."""
        gain = float(((h - reference) * self.expected(h)).sum())
        return self.log_normaliser(reference) - self.log_normaliser(h) + gain

    def pack_point(self, eta: FloatArray) -> FloatArray:
        """Return unbounded coordinates of a point, in which steps of EM are extrapolated, padded with zeros to (P,)."""
        result = np.zeros(len(eta))
        result[: self.dimension] = self.coordinates(eta)
        return result

    def unpack_point(self, u: FloatArray) -> FloatArray:
        """Return η, given what `pack_point` returned."""
        return self.natural(u[: self.dimension])[0]
