"""A chain in parameter space as the definition has it, row by row: twin of `lurking.kernels.cpu.chains.metropolis`."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from lurking.types import BoolArray, FloatArray, IntArray


class Point(NamedTuple):
    """ln θ of all rows (Q,), the log prior density of its logits up to a constant, and ln p(y|θ)."""

    log_theta: FloatArray
    log_prior: float
    log_likelihood: float


def log_dirichlet(alpha: FloatArray, log_theta: FloatArray) -> float:
    """Return ln Dir(θ; α) of one table row, the density over logits."""
    return float(gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha * log_theta).sum())


def log_acceptance(row_start: IntArray, setting: tuple[float, float, float], here: Point, there: Point) -> float:
    """Return ln of the ratio of beal-ghahramani-2006, eq. 67, at f_τ(θ) = p(θ) p(y|θ)^τ, not cut off at 0.

        ln f_τ(θ') + Σ_jl ln Dir(θ_jl; a θ'_jl + ε) − ln f_τ(θ) − Σ_jl ln Dir(θ'_jl; a θ_jl + ε)

    `setting` = (τ, a, ε). All densities are those over logits. Rows that are equal in both have no part.
    """
    temperature, strength, floor = setting
    result = there.log_prior - here.log_prior + temperature * (there.log_likelihood - here.log_likelihood)
    for first, end in pairwise(row_start):
        old, new = here.log_theta[first:end], there.log_theta[first:end]
        result += log_dirichlet(strength * np.exp(new) + floor, old)
        result -= log_dirichlet(strength * np.exp(old) + floor, new)
    return result


def draw_log_dirichlet(alpha: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return ln θ of one row drawn from Dir(α), with the random numbers of the compiled twin in its order."""
    logs = np.empty(len(alpha))
    for k, shape in enumerate(alpha):
        if shape < 1.0:
            logs[k] = math.log(generator.standard_gamma(shape + 1.0)) + math.log(1.0 - generator.random()) / shape
        else:
            logs[k] = math.log(generator.standard_gamma(shape))
    return np.asarray(logs - logs.max() - math.log(np.exp(logs - logs.max()).sum()))


def anneal_parameters(
    target: Callable[[FloatArray], Point],
    row_start: IntArray,
    blocks: IntArray,
    schedule: tuple[FloatArray, FloatArray, float],
    n_sweeps: int,
    generator: np.random.Generator,
    log_theta: FloatArray,
) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray]:
    """Return (increments (K,), ln p(y|θ_k) (K,), accepted (K, sweeps, B), last ln θ (Q,)).

    `target` evaluates the parts of the posterior at ln θ (Q,); the other arguments are those of the twin.
    """
    temperatures, strengths, floor = schedule
    increments, log_likelihoods = np.empty(len(strengths)), np.empty(len(strengths))
    accepted = np.zeros((len(strengths), n_sweeps, len(blocks) - 1), bool)
    here = target(log_theta.copy())
    for k, strength in enumerate(strengths):
        increments[k] = (temperatures[k + 1] - temperatures[k]) * here.log_likelihood
        for sweep in range(n_sweeps):
            for block in range(len(blocks) - 1):
                proposal = here.log_theta.copy()
                for row in range(blocks[block], blocks[block + 1]):
                    own = slice(row_start[row], row_start[row + 1])
                    alpha = strength * np.exp(here.log_theta[own]) + floor
                    proposal[own] = draw_log_dirichlet(alpha, generator)
                there = target(proposal)
                ratio = log_acceptance(row_start, (temperatures[k + 1], strength, floor), here, there)
                if math.log(1.0 - generator.random()) < ratio:
                    here, accepted[k, sweep, block] = there, True
        log_likelihoods[k] = here.log_likelihood
    return increments, log_likelihoods, accepted, here.log_theta
