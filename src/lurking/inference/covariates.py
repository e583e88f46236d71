"""Covariates: observed columns that stand before the hidden variables, and the likelihood given them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lurking.graph.dag import Dag
from lurking.models.layout import Layout


@dataclass(frozen=True)
class ConditionalLikelihood:
    """Log-likelihood of the other columns given the covariates, with its information criteria.

    Attributes
    ----------
    given : tuple of str
        The covariates x.
    loglik : float
        ln p(y | x, θ) = ln p(x, y | θ) − ln p(x | θ), summed over the rows with their weights.
    dimension : int
        Number of free parameters in the tables of all other variables, hidden ones included.
    n : float
        Weight of all rows.
    """

    given: tuple[str, ...]
    loglik: float
    dimension: int
    n: float

    @property
    def aic(self) -> float:
        """−2 ln p(y | x, θ) + 2 d; lower is better."""
        return -2.0 * self.loglik + 2.0 * self.dimension

    @property
    def bic(self) -> float:
        """−2 ln p(y | x, θ) + d ln n; lower is better."""
        return -2.0 * self.loglik + self.dimension * math.log(self.n) if self.n > 0.0 else 0.0

    def __str__(self) -> str:
        return (
            f"log-likelihood conditional on {', '.join(self.given)} = {self.loglik:.4f} ({self.dimension} parameters), "
            f"AIC {self.aic:.2f}, BIC {self.bic:.2f}"
        )


def covariates_of(dag: Dag) -> tuple[str, ...]:
    """Return the observed variables that no hidden variable is an ancestor of, in node order.

    The result is empty if none of them has a child outside the set: then they are independent of everything else, and
    there is nothing to condition on. Hidden variables without observed descendants are disregarded.
    """
    relevant = dag.pruned()
    before = set(relevant.observed) - set(relevant.descendants(relevant.hidden))
    is_linked = any(child not in before for name in before for child in relevant.children(name))
    return tuple(name for name in relevant.observed if name in before) if is_linked else ()


def conditional_dimension(layout: Layout, given: tuple[str, ...]) -> int:
    """Return the number of free parameters of the tables outside `given`; tables shared by tied families count once."""
    others = {layout.offsets[j]: j for j, name in enumerate(layout.nodes) if name not in given}
    return sum(layout.family_dimensions[j] for j in others.values())
