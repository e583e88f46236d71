"""Seeds: one at the entry, one child per piece of work, so that the number of workers never matters."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from lurking.errors import OptionError

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """Return the seed as a SeedSequence: an integer ≥ 0, a SeedSequence, a Generator (drawn from once), or None."""
    if isinstance(seed, np.random.SeedSequence):
        # Spawning changes a SeedSequence; a copy keeps the caller's object as it was.
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(int(seed.integers(0, 2**63)))
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise OptionError(f"seed is {seed!r}; it must be a whole number of at least 0, a Generator, or None")
    return np.random.SeedSequence(int(seed))


def plain_seed(seed: Seed) -> Seed:
    """Return a whole number of NumPy as one of Python, so that results are kept under the same key."""
    return int(seed) if isinstance(seed, np.integer) else seed


def generators(seed: Seed, count: int) -> list[np.random.Generator]:
    """Return `count` independent generators; the k-th does not depend on `count`."""
    return [np.random.Generator(np.random.PCG64(child)) for child in seed_sequence(seed).spawn(count)]


def grandchildren(seed: Seed, count: int) -> list[np.random.Generator]:
    """Return `count` generators that are independent of each other and of those of `generators`."""
    return [np.random.Generator(np.random.PCG64(child.spawn(1)[0])) for child in seed_sequence(seed).spawn(count)]
