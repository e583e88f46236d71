"""Gibbs sampling for nodes of any family, in NumPy: slow, obvious, and the reference of the compiled sampler.

A sweep draws completions s | θ, y by one multinomial draw for each row, then θ | s family by family. Let L(η; s) be the
log-likelihood of one family's cells at completions s, and N its gradient there. The conjugate distribution at
h = λ + N is proposed, θ' ~ p(θ | h(θ)), and accepted with probability

    min(1, exp[λ·(η' − η) + L(η') − L(η)] · p(η | h(θ')) / p(η' | h(θ))).

Where cells are affine N does not depend on θ, and the proposal is the conditional itself. Elsewhere it is the Gaussian
of one Newton step (Gamerman 1997), which overshoots far from the mode, so symmetric steps of four sizes come before it.
"""

from __future__ import annotations

import math
from typing import NamedTuple, final

import numpy as np

from lurking.errors import FractionalWeights, OptionError
from lurking.expfam.base import Conjugate
from lurking.inference.engines.completions import CompletionEngine, Factor
from lurking.inference.problem import Problem
from lurking.types import FloatArray

SCALES = (0.03, 0.1, 0.3, 1.0)
"""Standard deviations of the symmetric steps."""


@final
class ReferenceGibbs:
    """The sampler of one problem, for any number of chains; a state is η of all families, (P,)."""

    def __init__(self, problem: Problem) -> None:
        if problem.tied:
            raise OptionError("the reference Gibbs sampler does not support tied families; leave tied out")
        weights = problem.rows.weights
        if not np.array_equal(weights, np.rint(weights)):
            raise FractionalWeights(
                "sampling needs whole-number weights (a fraction of a row has no hidden state to draw); use vb or cs"
            )
        self.problem, self.pseudo = problem, problem.pseudo
        self.engine = CompletionEngine(problem.layout, problem.rows, problem.prune)
        self.blocks: list[tuple[Factor, Conjugate]] = [
            (factor, factor.family.block(problem.layout.shapes[j][0]))
            for j, factor in self.engine.factors_by_node.items()
        ]

    def first(self, generator: np.random.Generator) -> FloatArray:
        """Return η of a draw from the prior."""
        return self.problem.layout.blocks.draw(self.pseudo, generator)

    def sweep(self, eta: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return η after one sweep."""
        occurrences = self.engine.draw(eta, generator)
        # Families without a part in any row have the prior.
        result = self.problem.layout.blocks.draw(self.pseudo, generator)
        for factor, block in self.blocks:
            result[factor.own] = self._moved(factor, block, eta[factor.own], occurrences[factor.places], generator)
        return result

    def log_likelihood(self, eta: FloatArray) -> float:
        """Return ln p(y | θ)."""
        return self.engine.expect(eta)[1]

    def _moved(
        self, factor: Factor, block: Conjugate, eta: FloatArray, masses: FloatArray, generator: np.random.Generator
    ) -> FloatArray:
        """Return η of one family, drawn given its completions."""
        prior = self.pseudo[factor.own]
        if factor.family.is_affine:
            return block.draw(prior + factor.family.statistics(eta, factor.cells, masses), generator)
        target = _Target(factor, block, prior, masses)
        for scale in SCALES:
            eta = self._walked(target, eta, scale, generator)
        return self._proposed(target, eta, generator)

    def _walked(self, target: _Target, eta: FloatArray, scale: float, generator: np.random.Generator) -> FloatArray:
        """Return η after one symmetric step in the coordinates."""
        here = target.block.coordinates(eta)
        there = here + scale * generator.standard_normal(len(here))
        other, log_jacobian = target.block.natural(there)
        log_ratio = target.log_posterior(other) + float(log_jacobian)
        log_ratio -= target.log_posterior(eta) + float(target.block.natural(here)[1])
        return other if math.log(1.0 - generator.random()) < log_ratio else eta

    def _proposed(self, target: _Target, eta: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return η after a proposal from the conjugate distribution at λ + N."""
        h = target.hyperparameters(eta)
        other = target.block.draw(h, generator)
        back = target.hyperparameters(other)
        log_ratio = target.log_posterior(other) - target.log_posterior(eta)
        log_ratio += float(back @ eta) - target.block.log_normaliser(back)
        log_ratio -= float(h @ other) - target.block.log_normaliser(h)
        return other if math.log(1.0 - generator.random()) < log_ratio else eta


class _Target(NamedTuple):
    """The conditional of one family given completions."""

    factor: Factor
    block: Conjugate
    prior: FloatArray
    masses: FloatArray

    def hyperparameters(self, eta: FloatArray) -> FloatArray:
        """Return λ + N(η)."""
        return self.prior + self.factor.family.statistics(eta, self.factor.cells, self.masses)

    def log_posterior(self, eta: FloatArray) -> float:
        """Return λ·η + L(η), the log density in natural form up to a constant."""
        used = self.masses != 0.0
        cells = self.factor.family.cells(eta, self.factor.cells)[used]
        return float(self.prior @ eta) + float(self.masses[used] @ cells)
