"""Uniform random numbers without a call: a stream of SplitMix64, seeded anew by the chain's Generator.

A NumPy Generator is reached through a function pointer, which empties the registers of the loop around it. Within one
loop over the rows numbers come from x_k = mix(x_0 + k · γ) instead (Steele, Lea & Flood 2014), which the compiler
writes into the loop; x_0 is drawn from the Generator, so a chain is still known by the seed of its Generator.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TO_UNIT = 2.0**-53
_HALF_WORD = 2.0**32


@njit(cache=True, nogil=True, error_model="numpy")
def new_stream(generator: np.random.Generator) -> np.uint64:
    """Return the start of a stream, all 64 bits of it drawn from the generator."""
    high = np.uint64(generator.random() * _HALF_WORD)
    low = np.uint64(generator.random() * _HALF_WORD)
    return (high << np.uint64(32)) | low


@njit(cache=True, nogil=True, error_model="numpy")
def moved_on(stream: np.uint64) -> np.uint64:
    """Return the stream moved on by one number."""
    return stream + _GAMMA


@njit(cache=True, nogil=True, error_model="numpy")
def uniform_at(stream: np.uint64) -> float:
    """Return the number in [0, 1), a multiple of 2⁻⁵³, at this place of a stream."""
    mixed = (stream ^ (stream >> _30)) * _FIRST
    mixed = (mixed ^ (mixed >> _27)) * _SECOND
    return float(np.int64((mixed ^ (mixed >> _31)) >> _11)) * _TO_UNIT
