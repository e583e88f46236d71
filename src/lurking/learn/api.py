"""`lurking.fit`: from a structure and a table to a fitted network."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from lurking.errors import LurkingWarning
from lurking.graph.dag import Dag
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, fit_problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.models.prior import Prior


def fit(
    dag: Dag | str,
    table: Any,
    *,
    method: str = "vb",
    prior: Prior | float = 1.0,
    hidden: Mapping[str, int] | None = None,
    prune: bool = True,
    engine: str = "auto",
    tied: Sequence[Sequence[str]] | None = None,
    families: Mapping[str, Any] | None = None,
    **options: Any,
) -> Fit:
    """Fit the parameters of one structure with hidden variables and empty cells.

    Parameters
    ----------
    dag : a Dag or its text form, for example ``"class[3] -> *"``.
    table : a Table, a pandas/polars/Arrow frame, a 2-d array, or the path of a file.
    method : "vb" (variational Bayes), "map" (mode over logits), "map-probability" (mode over probabilities) or "ml".
    prior : a Prior, or λ for `Prior.symmetric(λ)`.
    hidden : {name: states} of hidden variables that carry no brackets in the text.
    prune : leave out unobserved nodes and cells without observed descendant.
    engine : "auto" or the name of an exact method.
    tied : groups of variables whose families share one table, for example [["y1", "y2"]].
    families : {name: family} of observed variables that are to have another one than their column's kind gives them.
    options : restarts="auto", init=None, tournament=0, max_iter=1000, tol=1e-8, accelerate=True,
        optimizer="em", seed=0, workers=None (see `FitOptions`).
    """
    problem = Problem(dag, table, prior, hidden=hidden, prune=prune, engine=engine, tied=tied, families=families)
    chosen = FitOptions.from_mapping(options)
    fitted = fit_problem(problem, method, chosen)
    if chosen.is_auto and not fitted.spread.is_settled and fitted.status is not Status.INTERRUPTED:
        warnings.warn(f"the fit is not settled: {fitted.spread.advice}", LurkingWarning, stacklevel=2)
    return fitted
