"""The Laplace approximation: a Gaussian at the mode of the posterior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lurking.errors import PriorError, UnknownNameError
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.point import point_estimate
from lurking.inference.curvature.coordinates import Coordinates, Logits, Probabilities, row_starts
from lurking.inference.curvature.determinant import Determinant, Factor, of_blocks, of_matrix
from lurking.inference.curvature.hessian import by_table_row, complete_matrix, full, on_the_diagonal
from lurking.inference.engines.base import Engine
from lurking.inference.engines.enumerable import enumerated
from lurking.inference.problem import Problem, refuse_families, refuse_ties
from lurking.learn.loop import Status
from lurking.learn.newton import Mode, climb_to_mode
from lurking.learn.options import FitOptions
from lurking.types import BoolArray, FloatArray, IntArray

BASES = {"logit": "map", "probability": "map-probability", "logits": "map", "probabilities": "map-probability"}
"""The fit whose mode belongs to each basis."""
CURVATURES = ("full", "blocks", "diagonal")
RARE = 1e-3
"""Probabilities below this that EM goes on shrinking are on their way to 0."""
SHRINKING = 0.99
"""One more step of EM multiplies such a probability by less than this."""
LOG_ZERO = -70.0
"""Log probabilities below this count as 0: what is divided by their squares would overflow."""
BOUNDARIES = 3
"""How often the boundary is looked for on the way to a mode."""


@dataclass(frozen=True)
class Place:
    """Where the Gaussian sits: ln θ̂ and N̂ over all positions (P,), and ln p(y|θ̂)."""

    problem: Problem
    engine: Engine
    over_logits: bool
    potentials: FloatArray
    counts: FloatArray
    log_z: float

    @cached_property
    def added(self) -> FloatArray:
        """(P,) what the prior adds to N: the mode is θ ∝ N + λ over logits, θ ∝ N + λ − 1 over probabilities."""
        return np.asarray(self.problem.pseudo if self.over_logits else self.problem.pseudo - 1.0)

    @cached_property
    def log_prior(self) -> float:
        """The prior density at θ̂: Dir(θ; λ) over probabilities, Dir(θ; λ) · Π θ over logits."""
        power = 0.0 if self.over_logits else 1.0
        blocks, pseudo = self.problem.layout.blocks, self.problem.pseudo
        return blocks.log_density_after(pseudo, self.potentials, self.counts - power, power)

    @cached_property
    def vanishing(self) -> BoolArray:
        """(P,) probabilities on their way to 0, where the mode lies if λ = 1 and no row of the data asks for more.

        EM comes near it without end, shrinking the entry by a constant factor in every step.
        """
        layout, theta = self.problem.layout, np.exp(self.potentials)
        wanted = self.counts + self.added
        totals = layout.row_sums(wanted)[layout.row_of]
        shrinks = (theta > 0.0) & (theta < RARE) & (wanted < SHRINKING * theta * totals)
        return np.asarray(shrinks & (self.added == 0.0))

    @cached_property
    def left_out(self) -> BoolArray:
        """(P,) entries over which there is no Gaussian: θ at 0, and rows that nothing is known of. Over logits none."""
        if self.over_logits:
            return np.zeros(len(self.counts), bool)
        return np.asarray((self.counts + self.added <= 0.0) | (self.potentials < LOG_ZERO) | self.vanishing)

    def at(self, potentials: FloatArray) -> Place:
        """Return the place with other parameters."""
        counts, log_z = self.engine.expect(potentials)
        return Place(self.problem, self.engine, self.over_logits, potentials, counts, log_z)

    def without_vanishing(self) -> Place:
        """Return the place on the boundary that EM was approaching: what vanishes set to 0."""
        place = self
        while place.vanishing.any():
            theta = np.where(place.vanishing, 0.0, np.exp(place.potentials))
            with np.errstate(divide="ignore"):
                place = place.at(np.log(self.problem.layout.normalise(theta)))
        return place

    def coordinates(self, positions: IntArray) -> Coordinates:
        """Return the free coordinates of some whole table rows."""
        make = Logits if self.over_logits else Probabilities
        row_start = row_starts(self.problem.layout.row_of[positions])
        return make(row_start, np.exp(self.potentials[positions]), self.left_out[positions])

    @property
    def gradient(self) -> float:
        """The largest derivative of the log posterior over all free coordinates: 0 at a mode."""
        whole = self.coordinates(np.arange(len(self.counts)))
        return float(np.abs(whole.along(self.counts + self.added)).max(initial=0.0))


def mode_of(own: Mapping[str, Any]) -> str | None:
    """Return the fit that the score begins with; None when there is no such basis."""
    return BASES.get(own.get("basis", "logit"))


def laplace(problem: Problem, options: FitOptions, *, basis: str = "logit", curvature: str = "full") -> Evidence:
    """Ln p(y|θ̂) + ln p(θ̂|m) + d/2 · ln 2π − ½ ln |A|: a Gaussian at the mode (chickering-heckerman-1996, eq. 8).

    A is the negative Hessian of the log posterior at θ̂. basis="logit": mode, density and A over free logits;
    "probability": over free probabilities, with the mode θ ∝ λ − 1 + N, which needs λ ≥ 1. curvature="full": all of A;
    "blocks": one block for each row of each table; "diagonal": its diagonal. Directions in which A is not positive are
    left out: rank/2 · ln 2π takes the place of d/2 · ln 2π, and the status is SINGULAR.
    """
    refuse_families(problem, "laplace works", "use vb or cs")
    if basis not in BASES:
        raise UnknownNameError("basis", basis, BASES)
    if curvature not in CURVATURES:
        raise UnknownNameError("curvature", curvature, CURVATURES)
    if curvature != "full":
        refuse_ties(problem, f"curvature={curvature!r}", "curvature='full'")
    over_logits = BASES[basis] == "map"
    _check_prior(problem, over_logits)
    engine = enumerated(problem) if curvature == "full" else problem.engine
    estimate = point_estimate(problem, options, BASES[basis])
    fit = estimate.fit
    place = Place(problem, engine, over_logits, fit.potentials, fit.counts, fit.log_z)
    mode = None
    # With tol = 0 exactly max_iter steps were asked for, and the point is taken as it is.
    if options.tol > 0.0 and fit.status is not Status.INTERRUPTED and not problem.is_complete:
        place, mode = _at_mode(place, curvature == "full")
    determinant = _determinant(place, curvature, mode)
    parts = {
        "loglik": place.log_z,
        "log_prior": place.log_prior,
        "constant": 0.5 * determinant.rank * math.log(2.0 * math.pi),
        "curvature": -0.5 * determinant.log_determinant,
    }
    return Evidence(
        log_z=sum(parts.values()),
        log_aliases=problem.relevant_log_aliases,
        std_error=None,
        kind=Kind.ASYMPTOTIC,
        method="laplace",
        parts=parts,
        status=_status(fit.status, mode, determinant.rank < problem.dimension),
        info={
            **estimate.info,
            "basis": "logit" if over_logits else "probability",
            "curvature": curvature,
            "rank": determinant.rank,
            "dimension": problem.dimension,
            "gradient": place.gradient,
            "newton_steps": 0 if mode is None else mode.n_steps,
        },
    )


def _check_prior(problem: Problem, over_logits: bool) -> None:
    smallest = problem.pseudo.min(initial=1.0)
    if not over_logits and smallest < 1.0:
        raise PriorError(
            f"laplace in the basis probability needs λ ≥ 1, and the prior has λ = {smallest:g}: the posterior has no "
            "mode over probabilities then; use λ ≥ 1, or the basis logit, which takes every λ > 0"
        )


def _at_mode(place: Place, with_newton: bool) -> tuple[Place, Mode | None]:
    """Take the last steps to the mode, inside or on the boundary, and return the place reached."""
    active, mode = place.engine.active, None
    for _ in range(BOUNDARIES):
        place = place if place.over_logits else place.without_vanishing()
        if not with_newton:
            break
        mode = climb_to_mode(place.engine, place.added[active], place.potentials[active], place.left_out[active])
        potentials = place.potentials.copy()
        potentials[active] = mode.point.potentials
        place = place.at(potentials)
        if place.over_logits or not place.vanishing.any():
            break
    return place, mode


def _determinant(place: Place, curvature: str, mode: Mode | None) -> Determinant:
    """Return ln |A| and its rank, over active and inactive table rows; the latter are complete."""
    active, inactive = place.engine.active, place.engine.inactive
    wanted = place.counts + place.added
    rest, own = place.coordinates(inactive), place.coordinates(active)
    constant = rest.log_diagonal if curvature == "diagonal" else rest.log_determinant
    if curvature == "full":
        found = _of_all(place, own, mode) if len(own) else Determinant(0.0, 0)
    else:
        make = by_table_row if curvature == "blocks" else on_the_diagonal
        found = of_blocks(make(place.engine, place.potentials[active], own, wanted[active]))
    return Determinant(constant(wanted[inactive]) + found.log_determinant, len(rest) + found.rank)


def _of_all(place: Place, own: Coordinates, mode: Mode | None) -> Determinant:
    """Return the determinant of all of A over the active table rows."""
    if mode is not None and place.over_logits and mode.factor.is_definite:
        return Determinant(mode.factor.log_determinant, len(own))
    active = place.engine.active
    wanted = (place.counts + place.added)[active]
    matrix, complete = full(place.engine, place.potentials[active], own, wanted), complete_matrix(own, wanted)
    return of_matrix(Factor(matrix, np.diagonal(complete)), matrix, complete, own.log_determinant(wanted))


def _status(status: Status, mode: Mode | None, is_singular: bool) -> Status:
    """Return what to say of the value: the fit's own status, unless more is known."""
    if status is Status.INTERRUPTED:
        return status
    if is_singular:
        return Status.SINGULAR
    if mode is None:
        return status
    return Status.CONVERGED if mode.is_settled else Status.MAX_ITER
