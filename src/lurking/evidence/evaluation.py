"""Scores by name, and the values of several scores of one problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lurking.errors import LurkingError, OptionError, TooLarge, UndefinedScore, UnknownNameError
from lurking.evidence.base import Evidence, Score
from lurking.evidence.limits import checked
from lurking.evidence.registry import SCORES
from lurking.inference.problem import Problem
from lurking.learn.options import FitOptions


def score_names() -> tuple[str, ...]:
    """Return the names of all scores, in order of registration."""
    return tuple(SCORES)


def get_score(name: str) -> Score:
    """Return a score by name; an unknown name lists the choices."""
    if not isinstance(name, str) or name not in SCORES:
        raise UnknownNameError("score", name, SCORES)
    return SCORES[name]


def chosen_scores(names: Iterable[str], own: Mapping[str, Any]) -> list[Score]:
    """Return the scores by name, refusing options that none of them understands."""
    scores = [get_score(name) for name in names]
    if not scores:
        raise OptionError(f"no score was asked for; choose from: {', '.join(SCORES)}")
    known = {option for score in scores for option in score.options}
    for option in own:
        if option not in known:
            raise OptionError(
                f"option {option!r} is not understood by {', '.join(score.name for score in scores)}; "
                f"their own options are: {', '.join(sorted(known)) or 'none'}"
            )
    return scores


def evaluate(
    problem: Problem,
    names: Iterable[str],
    options: FitOptions,
    own: Mapping[str, Any],
    refused: dict[str, LurkingError] | None = None,
) -> dict[str, Evidence]:
    """Return {name: Evidence}; fits are shared, and each score gets the `own` options that it supports.

    Where `refused` is given, scores after the first that have no value for this problem go there with the reason.
    """
    scores = chosen_scores(names, own)
    result: dict[str, Evidence] = {}
    for score in scores:
        try:
            # Extreme priors overflow on the way; the value is checked in the end.
            with np.errstate(over="ignore", invalid="ignore"):
                found = score.function(problem, options, **score.own_options(own, scores))
            result[score.name] = checked(found, problem.n)
        except (TooLarge, UndefinedScore) as refusal:
            if refused is None or score is scores[0]:
                raise
            refused[score.name] = refusal
    return result
