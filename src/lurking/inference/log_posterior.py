"""The log posterior density of a problem in unbounded coordinates, hidden variables and missing cells summed out."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import Protocol, final

import numpy as np

from lurking.errors import NotANumber, OptionError
from lurking.inference.problem import Problem
from lurking.types import FloatArray


class Density(Protocol):
    """All that a sampler needs of what it samples."""

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return the log density at points (m, C), up to a constant, (m,); at one point (C,) a number."""
        ...

    def gradient(self, point: FloatArray) -> FloatArray:
        """Return its gradient at one point, (C,)."""
        ...


@final
class LogPosterior:
    """ln p(θ, y | m) over unbounded coordinates x of the parameters, all constants kept.

    Tables have the logits of all states but the last against the last one as coordinates. Tied families have one table,
    and nodes that the problem leaves out have no coordinates. exp(log_density) integrates to the evidence p(y | m).

    Parameters
    ----------
    problem : Problem
        Any problem whose engine can do an E-step.

    Attributes
    ----------
    size : int
        Number of coordinates, C; the dimension of the problem.
    names : tuple of str
        One name for each coordinate, such as ``y(s=1)[0]``: node, states of its parents, number of the coordinate.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._blocks = problem.layout.blocks
        self._normaliser = self._blocks.log_normaliser(problem.pseudo)
        self.size = self._blocks.dimension

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name for each coordinate."""
        layout, levels = self.problem.layout, self.problem.levels
        starts = self._blocks.coordinate_start
        names, row = [], 0
        for j in layout.owners:
            parents = [layout.nodes[parent] for parent in layout.parents[j]]
            given = product(*(levels[parent] for parent in parents)) if layout.shapes[j][0] > 1 else [()]
            for states in given:
                words = ", ".join(f"{parent}={state}" for parent, state in zip(parents, states, strict=False))
                label = f"{layout.nodes[j]}({words})" if words else layout.nodes[j]
                names += [f"{label}[{k}]" for k in range(int(starts[row + 1] - starts[row]))]
                row += 1
        return tuple(names)

    def potentials(self, points: FloatArray) -> FloatArray:
        """Return η(x), for tables ln θ, over the flat vector: (m, P), or (P,) for one point (C,)."""
        return self._natural(points)[0]

    def coordinates(self, potentials: FloatArray) -> FloatArray:
        """Return x of flat vectors η(x): (m, C), or (C,) for one of them."""
        return self._blocks.coordinates(np.asarray(potentials, np.float64))

    def log_prior(self, points: FloatArray) -> FloatArray:
        """Return ln p(x | m) = λ·η(x) + j(x) − A(λ) at points (m, C), (m,); j is the log Jacobian."""
        potentials, log_jacobian = self._natural(points)
        return self._checked("log prior", potentials @ self.problem.pseudo + log_jacobian - self._normaliser)

    def log_likelihood(self, points: FloatArray) -> FloatArray:
        """Return ln p(y | x, m) at points (m, C), (m,): the log_z of one E-step each."""
        potentials = self.potentials(points)
        values = self.problem.engine.log_z(np.atleast_2d(potentials))
        return self._checked("log-likelihood", values if potentials.ndim == 2 else values[0])

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return ln p(x | m) + ln p(y | x, m) at points (m, C), (m,); at one point (C,) a number."""
        return self.log_prior(points) + self.log_likelihood(points)

    def gradient(self, point: FloatArray) -> FloatArray:
        """Return the gradient of the log density at one point, (C,): the pull-back of N + λ, N from one E-step."""
        counts, _ = self.problem.engine.expect(self.potentials(point))
        return self._pulled_back(point, counts + self.problem.pseudo)

    def prior_gradient(self, point: FloatArray) -> FloatArray:
        """Return the gradient of the log prior at one point, (C,)."""
        return self._pulled_back(point, self.problem.pseudo)

    def _pulled_back(self, point: FloatArray, g: FloatArray) -> FloatArray:
        pulled = self._blocks.pull_back(np.asarray(point, np.float64), g)
        if not np.all(np.isfinite(pulled)):
            raise NotANumber("gradient of the log posterior", float(pulled[~np.isfinite(pulled)][0]))
        return pulled

    def _natural(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return η(x) and j(x) after checking the points."""
        x = np.asarray(points, np.float64)
        if x.ndim not in (1, 2) or x.shape[-1] != self.size:
            raise OptionError(
                f"points have shape {x.shape}; the log posterior has {self.size} coordinates, so give ({self.size},) "
                f"or (points, {self.size})"
            )
        if not np.all(np.isfinite(x)):
            raise OptionError(f"points contain {x[~np.isfinite(x)][0]}; coordinates must be finite numbers")
        return self._blocks.natural(x)

    @staticmethod
    def _checked(what: str, values: FloatArray) -> FloatArray:
        if np.isnan(values).any():
            raise NotANumber(what, float("nan"))
        return values
