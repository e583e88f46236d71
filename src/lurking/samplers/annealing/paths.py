"""Paths from a start that is known exactly to the posterior, for annealing.

The start is a product, Dir(θ; α₀) · Π_i q₀(s_i) with q₀(s_i) ∝ exp Σ_j φ₀_j, and the path is geometric (see
`lurking.kernels.cpu.chains.annealing`). Two choices of it:

- the prior path: α₀ = λ, φ₀ = 0;
- the variational path: α₀ = λ + c (α_VB − λ), φ₀ = c φ_VB, a variational posterior flattened by c in (0, 1]. It begins
  so close to the posterior that a few hundred temperatures do what tens of thousands do on the prior path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lurking.errors import DataError, TooLarge
from lurking.inference.engines.components import Splitter, openings
from lurking.inference.problem import Problem, refuse_families
from lurking.kernels.program import Program
from lurking.learn.fit import Fit
from lurking.runtime.checks import check_whole_weights
from lurking.runtime.memory import count_in_words
from lurking.types import FloatArray


@dataclass(frozen=True, eq=False)
class ProductPath:
    """A geometric path from a product start to the posterior of one problem.

    Attributes
    ----------
    problem : what the posterior is of.
    alpha : (Q,) Dirichlet parameters α₀ of the start over the active positions.
    potentials : (Q,) potentials φ₀ of the start.
    """

    problem: Problem = field(repr=False)
    alpha: FloatArray = field(repr=False)
    potentials: FloatArray = field(repr=False)

    @property
    def program(self) -> Program:
        """The compiled rows."""
        return sampled_program(self.problem)

    @cached_property
    def pseudo(self) -> FloatArray:
        """(Q,) λ over the active positions."""
        return np.ascontiguousarray(self.problem.pseudo[self.problem.engine.active])

    @cached_property
    def constant(self) -> float:
        """What ln w lacks after the increments: normalisers of start and prior, and the evidence of inactive rows."""
        from lurking.kernels.cpu.enumeration import expect

        blocks = self.problem.layout.blocks.at(self.problem.engine.active)
        _, log_normaliser = expect(self.program, self.potentials)
        result = blocks.log_normaliser(self.alpha) - blocks.log_normaliser(self.pseudo)
        return float(result + log_normaliser + inactive_evidence(self.problem))


def inactive_evidence(problem: Problem) -> float:
    """Return the exact log evidence of the table rows that nothing unobserved touches; no sampler needs them."""
    engine = problem.engine
    if not engine.inactive.size:
        return 0.0
    rows, counts = engine.layout.blocks.at(engine.inactive), engine.complete_counts[engine.inactive]
    return rows.log_evidence(problem.pseudo[engine.inactive], counts)


def compiled_program(problem: Problem) -> Program | None:
    """Return the compiled rows, None when nothing is unobserved; a problem without compiled rows is refused."""
    refuse_families(problem, "compiled samplers work", "use vb or cs, or lk.gibbs for draws")
    engine = problem.engine
    if engine.program is None and engine.active.size:
        raise TooLarge(f"sampling needs hidden variables that can be enumerated{_obstacle(problem)}")
    return engine.program


def _obstacle(problem: Problem) -> str:
    """Say why the rows of a problem are not compiled, and what to do about it."""
    if problem.engine.is_in_blocks:
        return (
            f" and all rows in memory at once; these {problem.table.n_rows} rows are taken block by block; "
            "use vb or cs, or fewer rows"
        )
    if problem.engine_name != "auto":
        return f", and engine={problem.engine_name!r} does not enumerate them; leave that option out"
    names, states = _most_joint_states(problem)
    shown = ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])}, … ({len(names)} variables)"
    count = str(states) if states < 10**6 else count_in_words(states)
    return (
        f": {shown} depend on each other and have {count} joint states, too many to go through in every row; "
        "use vb or cs, or fewer and smaller hidden variables"
    )


def _most_joint_states(problem: Problem) -> tuple[list[str], int]:
    """Return the variables that, unobserved together in some row and dependent there, have the most joint states."""
    layout, splitter = problem.layout, Splitter(problem.layout, problem.prune)
    most: tuple[int, tuple[int, ...]] = (0, ())
    for free, keep, _ in openings(layout, problem.rows.codes, splitter)[0]:
        for component in splitter.split(free, keep).components:
            states = math.prod(layout.cardinalities[v] for v in component.variables)
            most = max(most, (states, component.variables))
    return [layout.nodes[v] for v in most[1]], most[0]


def sampled_program(problem: Problem) -> Program:
    """Return the compiled rows of a problem that can be sampled; others are refused with what to do."""
    program = compiled_program(problem)
    if program is None:
        raise DataError("there is nothing to sample: no row has anything unobserved that matters; use exact")
    check_whole_weights(program.weights, "use vb or cs, or ais with path='parameters', which take any weights")
    return program


def variational_path(fit: Fit, flattening: float) -> ProductPath:
    """Return the path from a VB fit flattened by c = `flattening`: 1 is the fit itself, 0 the prior path."""
    active = fit.problem.engine.active
    return flattened_path(fit.problem, fit.counts[active], fit.potentials[active], flattening)


def flattened_path(problem: Problem, counts: FloatArray, potentials: FloatArray, flattening: float) -> ProductPath:
    """Return the path from α₀ = λ + c N, φ₀ = c φ of a mode with counts N and potentials φ, (Q,) each."""
    return ProductPath(problem, problem.pseudo[problem.engine.active] + flattening * counts, flattening * potentials)


def prior_path(problem: Problem) -> ProductPath:
    """Return the path from the prior and uniform completions."""
    active = problem.engine.active
    return ProductPath(problem, problem.pseudo[active].copy(), np.zeros(len(active)))
