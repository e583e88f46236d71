"""The conditionals of collapsed Gibbs by brute force: the evidence of all rows, once for each state of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lurking.kernels.program import Program, plain_slots
from lurking.kernels.reference.special import dirichlet_evidence
from lurking.types import FloatArray, IntArray


def copies(program: Program) -> Iterator[IntArray]:
    """Yield, for every copy of every row of every group, the potentials it counts in each joint state, (S, factors).

    A row of weight w has w copies. Q is the neutral factor, which counts nothing.
    """
    for group, states in enumerate(program.states):
        fixed = program.fixed_start[group] + states * np.arange(program.n_fixed[group])
        begin, end = program.row_begin[group], program.row_begin[group + 1]
        for slots, weight in zip(plain_slots(program, group), program.weights[begin:end], strict=True):
            cells = np.concatenate([fixed, slots])
            for _ in range(int(weight)):
                yield program.gather[cells + np.arange(states)[:, None]].astype(np.int64)


def counts_of(program: Program, rows: Sequence[IntArray], states: Sequence[int]) -> FloatArray:
    """Return N(s), (Q,), of one completion: the joint state of every copy in `rows`, as `copies` lists them."""
    counts = np.append(program.counts, 0.0)
    for row, state in zip(rows, states, strict=True):
        np.add.at(counts, row[state], 1.0)
    return counts[:-1]


def log_joint(program: Program, pseudo: FloatArray, counts: FloatArray) -> float:
    """Return D(λ, N), ln p(s, y|m) of the active table rows (chickering-heckerman-1996, eq. 5)."""
    begin = program.row_start[:-1]
    return float(dirichlet_evidence(pseudo, counts, np.add.reduceat(pseudo, begin), np.add.reduceat(counts, begin)))


def conditional(
    program: Program, pseudo: FloatArray, rows: Sequence[IntArray], states: Sequence[int], copy: int, temperature: float
) -> FloatArray:
    """Return the probabilities of one copy's joint states given all others, ∝ exp τ D(λ, N(s)), (S,)."""
    scores = []
    for state in range(len(rows[copy])):
        candidate = [*states[:copy], state, *states[copy + 1 :]]
        scores.append(temperature * log_joint(program, pseudo, counts_of(program, rows, candidate)))
    masses = np.exp(np.asarray(scores) - max(scores))
    return np.asarray(masses / masses.sum())
