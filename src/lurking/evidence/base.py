"""What a score returns, and the registry of scores."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lurking.errors import OptionError, UndefinedScore
from lurking.learn.loop import Status
from lurking.learn.starts import Spread


class Kind(StrEnum):
    """How a value relates to ln p(y|m). Values of different kinds must not be ranked together unawares."""

    EXACT = "exact"
    LOWER_BOUND = "lower_bound"
    ASYMPTOTIC = "asymptotic"
    PLUG_IN = "plug_in"
    ESTIMATE = "estimate"


NOMINAL_ERROR = "nominal_error"
"""Key of `Evidence.info` for the error of a value that is not trusted."""


@dataclass(frozen=True)
class Evidence:
    """ln p(y|m), or an approximation to it: natural log, nats, higher is better, all constants kept.

    Attributes
    ----------
    log_z : the value; never includes ln S.
    log_aliases : ln S over the hidden nodes with an observed descendant, for scores that see one of S equivalent
        modes; 0 for exact and sampled values, which see all of them, and by convention for map-likelihood and mled.
    std_error : standard error of `log_z` for sampled values, else None; always None for a value that is not trusted.
    kind : exact, lower_bound, asymptotic, plug_in or estimate.
    method : name of the score.
    parts : the terms whose combination is `log_z`.
    status : why the computation ended.
    info : what else was learnt on the way.
    """

    log_z: float
    log_aliases: float
    std_error: float | None
    kind: Kind
    method: str
    parts: Mapping[str, float] = field(default_factory=dict)
    status: Status = Status.CONVERGED
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not math.isfinite(self.log_z):
            raise UndefinedScore(
                f"{self.method} has no finite value here ({self.log_z}): {self._parts_text()}; "
                "a probability of exactly 0 is the usual cause, use at='map'"
            )
        if self.status in (Status.UNTRUSTED, Status.INTERRUPTED) and self.std_error is not None:
            object.__setattr__(self, "info", {**self.info, NOMINAL_ERROR: self.std_error})
            object.__setattr__(self, "std_error", None)

    @property
    def is_trusted(self) -> bool:
        """False if the diagnostics of a sampled value disagree, or if it was interrupted before they could agree."""
        return self.status is not Status.UNTRUSTED and NOMINAL_ERROR not in self.info

    @property
    def nominal_error(self) -> float | None:
        """The error that the sampler reports, trusted or not; None for values that are not sampled.

        Do not use it as a standard error: for a value that is not trusted it may be too small by orders of magnitude.
        """
        return self.info.get(NOMINAL_ERROR) if self.std_error is None else self.std_error

    @property
    def corrected(self) -> float:
        """log_z + ln S: right only when the S equivalent modes are well apart, and then no bound any more."""
        return self.log_z + self.log_aliases

    @property
    def starts(self) -> Spread | None:
        """How far the starts of the fit behind the value agree; None if the value is not read off a fit."""
        spread = self.info.get("spread")
        return spread if isinstance(spread, Spread) else None

    @property
    def is_settled(self) -> bool | None:
        """True if several starts found the best fit behind the value; None if the value is not read off a fit."""
        return None if self.starts is None else self.starts.is_settled

    def _parts_text(self) -> str:
        return ", ".join(f"{name} = {value:.6g}" for name, value in self.parts.items())

    def with_error(self, digits: int) -> str:
        """Return the value with its standard error: `-1.20 ± 0.10`, or `-1.20 ± ?` if not trusted."""
        if not self.is_trusted:
            return f"{self.log_z:.{digits}f} ± ?"
        error = "" if self.std_error is None else f" ± {self.std_error:.{digits}f}"
        return f"{self.log_z:.{digits}f}{error}"

    def __str__(self) -> str:
        error, doubt = "" if self.std_error is None else f" ± {self.std_error:.3g}", ""
        if not self.is_trusted:
            error, doubt = " ± ?", ", not trusted"
        if self.status is Status.INAPPLICABLE:
            doubt = f", {self.status.sentence}"
        value = f"{self.log_z:.4f}{error} ({self.kind.value}{doubt})"
        return f"{self.method}: ln p(y|m) = {value}, + ln S = {self.corrected:.4f}"


ScoreFunction = Callable[..., Evidence]


@dataclass(frozen=True)
class Score:
    """A registered score: `function(problem, options, **own options) -> Evidence`."""

    name: str
    function: ScoreFunction
    summary: str
    options: tuple[str, ...]
    """Names of the options that only this score understands (its keyword-only arguments)."""
    fit_of: Callable[[Mapping[str, Any]], str | None]
    """Which fit the score is read off, given the options of all scores; None when it needs anything else."""
    takes: Callable[[Mapping[str, Any]], Iterable[str]]
    """Which of its options have a meaning beside the others that are given."""

    def own_options(self, given: Mapping[str, Any], asked: Iterable[Score]) -> dict[str, Any]:
        """Return those of the options of all scores asked for that this one is called with.

        These are the ones it knows. One that has no meaning to it beside the others is left out if it has one to
        another score asked for; if it has none to any, the score is called with it and refuses it.
        """
        taken = set(self.takes(given))
        elsewhere = {option for score in asked if score is not self for option in score.takes(given)}
        return {
            name: given[name] for name in self.options if name in given and (name in taken or name not in elsewhere)
        }


SCORES: dict[str, Score] = {}
"""All scores by name; `lurking.evidence.registry` fills it."""


def register(
    name: str,
    function: ScoreFunction,
    fit_of: Callable[[Mapping[str, Any]], str | None] = lambda _own: None,
    takes: Callable[[Mapping[str, Any]], Iterable[str]] | None = None,
) -> None:
    """Add a score; its docstring's first line is its summary.

    A score that is read off a fit names the fit's method in `fit_of`, so that fits of many structures can be made
    together before the score is asked. One whose options depend on each other says by `takes` which of them have a
    meaning beside those given; without it, all of them have one.
    """
    if name != name.lower() or name in SCORES:
        raise OptionError(f"score name {name!r} is taken or not in lower case; choose another")
    parameters = inspect.signature(function).parameters.values()
    options = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
    summary = (inspect.getdoc(function) or "").partition("\n")[0]
    SCORES[name] = Score(name, function, summary, options, fit_of, takes or (lambda _own: options))
