"""The curvature of a log posterior by differences of its gradient."""

import numpy as np

import lurking as lk
from lurking.inference.curvature.coordinates import Logits

STEP = 1e-5


def curvature_by_differences(problem, of, positions, chosen=None):
    """Return minus the second derivatives of the log density where the coordinates `of` are, (chosen, d).

    `chosen` are the rows of the matrix that are wanted, all by default.

    `positions` are the flat positions of their rows; all other rows are at equal probabilities. The density is that of
    the coordinates: over probabilities it lacks the factor Π θ that it has over logits.
    """
    posterior, free, references = lk.LogPosterior(problem), positions[of.free], positions[of.reference[of.row_of_free]]
    are_logits, each = isinstance(of, Logits), np.arange(len(of))

    def gradient(m, change):
        """Return the gradient, (d,), with coordinate m changed."""
        theta, slopes = np.ones(problem.layout.size), np.zeros((len(of), problem.layout.size))
        theta[positions] = of.theta
        if are_logits:  # ln θ up to a constant of each row, which the coordinates of the posterior do not depend on
            theta[free[m]] *= np.exp(change)
            slopes[each, free] = 1.0
        else:
            theta[free[m]] += change
            theta[references[m]] -= change
            slopes[each, free], slopes[each, references] = 1.0 / theta[free], -1.0 / theta[references]
        pulled = posterior.coordinates(slopes) @ posterior.gradient(posterior.coordinates(np.log(theta)))
        return pulled if are_logits else pulled - slopes.sum(axis=1)

    steps = STEP * (np.ones(len(of)) if are_logits else of.theta[of.free])
    wanted = each if chosen is None else chosen
    rows = [(gradient(m, -steps[m]) - gradient(m, steps[m])) / (2.0 * steps[m]) for m in wanted]
    return np.asarray(rows).reshape(len(wanted), len(of))
