"""`lurking.score`: how much evidence the data hold for one structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from lurking.errors import UnknownNameError
from lurking.evidence.base import Evidence
from lurking.evidence.evaluation import evaluate
from lurking.graph.dag import Dag
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions

PROBLEM_OPTIONS: tuple[str, ...] = ("prior", "hidden", "prune", "engine", "tied", "families")


@dataclass(frozen=True)
class Scores(Sequence[Evidence]):
    """Evidence by several scores, in the order asked; taken by position or by name."""

    problem: Problem = field(repr=False)
    by_name: dict[str, Evidence]

    @overload
    def __getitem__(self, key: int | str) -> Evidence: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Evidence]: ...
    def __getitem__(self, key: int | str | slice) -> Evidence | Sequence[Evidence]:
        if isinstance(key, str):
            if key not in self.by_name:
                raise UnknownNameError("score", key, self.by_name)
            return self.by_name[key]
        return list(self.by_name.values())[key]

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[Evidence]:
        return iter(self.by_name.values())

    def keys(self) -> tuple[str, ...]:
        """Return the names of the scores."""
        return tuple(self.by_name)


@overload
def score(dag: Dag | str, table: Any, scores: str = "vb", **options: Any) -> Evidence: ...
@overload
def score(dag: Dag | str, table: Any, scores: Sequence[str], **options: Any) -> Scores: ...
def score(dag: Dag | str, table: Any, scores: str | Sequence[str] = "vb", **options: Any) -> Evidence | Scores:
    """Score one structure: one name gives an Evidence, a list of names gives them all from shared fits.

    `options`: prior=1.0, hidden=None, prune=True, engine="auto", tied=None (groups of variables that share one table),
    families=None ({name: family} of nodes without a table);
    those of `fit` (restarts, max_iter, tol, seed, …); and those of the scores: at="map" | "map-probability" | "ml"
    (the point estimate behind map-likelihood, bic, bicp, draper, adjusted-bic, mled, cs), dimension="standard" |
    "effective" (bic, bicp, draper, cs), basis="logit" | "probability" and curvature="full" | "blocks" | "diagonal"
    (laplace), start="prior" | "map" (vb), point="map" | "vb" | "draws" or tables (chib), budget=10**6 (tables held by
    exact).
    """
    of_problem, fit_options, own = split_options(options)
    problem = Problem(dag, table, **of_problem)
    if isinstance(scores, str):
        return evaluate(problem, [scores], fit_options, own)[scores]
    return Scores(problem, evaluate(problem, scores, fit_options, own))


def split_options(options: dict[str, Any]) -> tuple[dict[str, Any], FitOptions, dict[str, Any]]:
    """Return the options of the problem, those of its fits, and what is left for the scores themselves."""
    rest = dict(options)
    of_problem = {name: rest.pop(name) for name in PROBLEM_OPTIONS if name in rest}
    of_fit = {name: rest.pop(name) for name in FitOptions.names() if name in rest}
    return of_problem, FitOptions.from_mapping(of_fit), rest
