"""Gaussian distributions of weight vectors."""

from __future__ import annotations

import math

import numpy as np

from lurking.expfam.base import Conjugate
from lurking.types import FloatArray, IntArray

CUTOFF = 1e-12
"""Eigenvalues of a precision, relative to the largest, up to which a direction counts as flat."""


class GaussianWeights(Conjugate):
    """Independent Gaussian vectors w of D weights, one for each row.

    η = (w, w wᵀ) and h = (Λ m, −½ Λ) for mean m and precision Λ, both with the matrix row by row; then
    A(h) = ½ mᵀ Λ m − ½ ln|Λ| + D/2 · ln 2π. The coordinates are the weights, so j = 0.
    """

    name = "weights"

    def __init__(self, n_rows: int, n_weights: int) -> None:
        self.n_weights = n_weights
        self.row_start: IntArray = (n_weights + n_weights**2) * np.arange(n_rows + 1)
        self.coordinate_start: IntArray = n_weights * np.arange(n_rows + 1)

    def rows(self, which: IntArray) -> GaussianWeights:
        """Return the weight vectors of some of the rows."""
        return GaussianWeights(len(which), self.n_weights)

    def natural_of(self, mean: FloatArray, precision: FloatArray) -> FloatArray:
        """Return h (P,), given means (R, D) and precisions (R, D, D)."""
        return self._flat(np.einsum("rij,rj->ri", precision, mean), -0.5 * precision)

    def moments(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means (R, D) and covariances (R, D, D)."""
        linear, precision = self._parts(h)
        covariance = np.asarray(np.linalg.inv(precision), np.float64)
        return np.einsum("rij,rj->ri", covariance, linear), covariance

    def log_normaliser(self, h: FloatArray) -> float:
        """Return Σ [½ mᵀ Λ m − ½ ln|Λ| + D/2 · ln 2π]; NaN where Λ is not positive definite."""
        linear, precision = self._parts(h)
        with np.errstate(invalid="ignore"):  # a precision that is not a number has no determinant either
            sign, log_determinant = np.linalg.slogdet(precision)
        if not np.all(sign > 0.0):
            return math.nan
        mean = np.linalg.solve(precision, linear[..., None])[..., 0]
        constant = self.n_weights * math.log(2.0 * math.pi)
        return float(0.5 * ((linear * mean).sum(axis=1) - log_determinant + constant).sum())

    def expected(self, h: FloatArray) -> FloatArray:
        """Return (m, m mᵀ + Λ⁻¹) of every row."""
        mean, covariance = self.moments(h)
        return self._flat(mean, covariance + mean[:, :, None] * mean[:, None, :])

    def mode(self, h: FloatArray, otherwise: FloatArray) -> FloatArray:
        """Return η at the maximum of h·η; along directions without one the weights of `otherwise` stay.

        Such directions have an eigenvalue of Λ that is 0 up to rounding, or negative: weights that no data inform.
        """
        linear, precision = self._parts(h)
        before, _ = self._split(otherwise)
        values, vectors = np.linalg.eigh(precision)
        has_maximum = values > CUTOFF * np.maximum(np.abs(values).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        along = np.einsum("rji,rj->ri", vectors, linear)
        kept = np.einsum("rji,rj->ri", vectors, before)
        moved = np.where(has_maximum, along / np.where(has_maximum, values, 1.0), kept)
        return self.natural(np.einsum("rij,rj->ri", vectors, moved).ravel())[0]

    def draw(self, h: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return η of one draw of every vector."""
        mean, covariance = self.moments(h)
        noise = generator.standard_normal(mean.shape)
        weights = mean + np.einsum("rij,rj->ri", np.linalg.cholesky(covariance), noise)
        return self.natural(weights.ravel())[0]

    def pack(self, h: FloatArray) -> FloatArray:
        """Return m and the Cholesky factor of Λ, its diagonal in logarithms."""
        linear, precision = self._parts(h)
        factor = np.asarray(np.linalg.cholesky(precision), np.float64)
        index = np.arange(self.n_weights)
        factor[:, index, index] = np.log(factor[:, index, index])
        return self._flat(np.asarray(np.linalg.solve(precision, linear[..., None])[..., 0], np.float64), factor)

    def unpack(self, u: FloatArray) -> FloatArray:
        """Return h."""
        mean, matrix = self._split(u)
        factor = np.tril(matrix)
        index = np.arange(self.n_weights)
        factor[:, index, index] = np.exp(factor[:, index, index])
        return self.natural_of(mean, factor @ np.swapaxes(factor, 1, 2))

    def coordinates(self, eta: FloatArray) -> FloatArray:
        """Return the weights."""
        shaped = eta.reshape(*eta.shape[:-1], -1, self.n_weights + self.n_weights**2)
        return np.asarray(shaped[..., : self.n_weights].reshape(*eta.shape[:-1], -1))

    def natural(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (w, w wᵀ) of every row; j = 0."""
        weights = x.reshape(*x.shape[:-1], -1, self.n_weights)
        squares = (weights[..., :, None] * weights[..., None, :]).reshape(*weights.shape[:-1], -1)
        flat = np.concatenate([weights, squares], axis=-1).reshape(*x.shape[:-1], -1)
        return np.asarray(flat, np.float64), np.zeros(x.shape[:-1])

    def pull_back(self, x: FloatArray, g: FloatArray) -> FloatArray:
        """Return g₁ + (G + Gᵀ) w."""
        linear, matrix = self._split(g)
        weights = x.reshape(-1, self.n_weights)
        return np.asarray((linear + np.einsum("rij,rj->ri", matrix + np.swapaxes(matrix, 1, 2), weights)).ravel())

    def log_density(self, h: FloatArray, eta: FloatArray) -> float:
        """Return the log density of the weights."""
        return float(h @ eta) - self.log_normaliser(h)

    def _split(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the vectors (R, D) and the matrices (R, D, D) of flat rows."""
        shaped = flat.reshape(-1, self.n_weights + self.n_weights**2)
        matrices = shaped[:, self.n_weights :].reshape(-1, self.n_weights, self.n_weights)
        return shaped[:, : self.n_weights], matrices

    def _parts(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Λ m (R, D) and Λ (R, D, D), made symmetric."""
        linear, matrix = self._split(h)
        return linear, -(matrix + np.swapaxes(matrix, 1, 2))

    def _flat(self, vectors: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return flat rows of vectors (R, D) and matrices (R, D, D)."""
        return np.asarray(np.concatenate([vectors, matrices.reshape(len(vectors), -1)], axis=1).ravel(), np.float64)
