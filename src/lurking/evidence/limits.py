"""Values that cannot be right: what no log evidence of discrete data can be, and priors that leave too few digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lurking.errors import UndefinedScore
from lurking.evidence.base import Evidence
from lurking.inference.problem import Problem
from lurking.learn.loop import Status

FORMULAS = ("asymptotic", "plug_in")
"""Kinds of scores that are formulas rather than computations of the evidence."""
ROUNDING = 1e-6
MOST_ERRORS = 5.0
"""Standard errors by which a sampled value may lie above 0."""
MOST_DOUBT = 1.0
"""Nats by which it may if its standard error is not trusted."""
WORTHLESS = 1e3
"""Nats that the error of a sampled value may have, whatever the value."""
MOST_PSEUDO = 1e9
"""Pseudo-counts of a table row up to which differences of their ln Γ keep four digits behind the point."""


def checked(evidence: Evidence, n: float) -> Evidence:
    """Return a log evidence that may be right, or raise `UndefinedScore` with the reason.

    ln p(y) <= 0 for discrete y: p(y|θ)^w <= 1 for every row, θ and weight w >= 0, and so is its mean over the prior.
    With rows of total weight n = 0 it is 0. Sampled values may lie above 0 by their errors. The formula of an
    asymptotic score may have another value if there are few rows; it is returned with the status `INAPPLICABLE` and
    refused where values are reported (`refuse_inapplicable`).
    """
    error = evidence.nominal_error or 0.0
    allowed = MOST_ERRORS * error if evidence.is_trusted else min(MOST_ERRORS * error, MOST_DOUBT)
    allowed += ROUNDING + 1e-12 * max((abs(part) for part in evidence.parts.values()), default=0.0)
    if evidence.log_z > allowed or (n <= 0.0 and evidence.log_z < -allowed):
        found = replace(evidence, status=Status.INAPPLICABLE)
        return found if evidence.kind.value in FORMULAS else refuse_inapplicable(found)
    # The error of a single chain is not known, which does not speak against it.
    is_alone = evidence.info.get("chains") == 1
    if not evidence.is_trusted and not is_alone and error > max(WORTHLESS, abs(evidence.log_z)):
        raise UndefinedScore(
            f"{evidence.method} has no value here: its chains leave it open by {error:.2g} nats; use exact, cs or vb"
        )
    return evidence


def refuse_inapplicable(evidence: Evidence) -> Evidence:
    """Return a log evidence; raise `UndefinedScore` if its status is `INAPPLICABLE`."""
    if evidence.status is not Status.INAPPLICABLE:
        return evidence
    is_sampled = evidence.nominal_error is not None
    why = "the sampler failed" if is_sampled else "the approximation is for many rows and a weak prior"
    wrong = (
        f"is above 0 here ({evidence.log_z:.4g}), which no log evidence of discrete data can be"
        if evidence.log_z > 0.0
        else f"is {evidence.log_z:.4g} on no data, whose log evidence is 0"
    )
    raise UndefinedScore(f"{evidence.method} {wrong}: {why}; use exact, cs or vb")


def refuse_strong_priors(problem: Problem, score: str) -> None:
    """Refuse pseudo-counts whose ln Γ have too few digits, for a score that needs differences of them."""
    strongest = float(problem.layout.row_sums(problem.pseudo).max(initial=0.0))
    if not np.isfinite(strongest) or strongest > MOST_PSEUDO:
        raise UndefinedScore(
            f"{score} has no value with pseudo-counts that sum to {strongest:.2g} in a table row: the differences that "
            f"it is computed from have too few digits beyond {MOST_PSEUDO:g}; use exact, cs, vb or laplace"
        )
