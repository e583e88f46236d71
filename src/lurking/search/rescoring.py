"""Sampled evidence for the structures that contend, where cheap scores of different kinds cannot rank them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lurking.errors import LurkingError, OptionError
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.evaluation import get_score
from lurking.graph.dag import Dag
from lurking.learn.loop import Status
from lurking.runtime.checks import is_number
from lurking.runtime.progress import Progress
from lurking.search.bayes_factors import UNBOUND, are_mixed
from lurking.search.posterior import WITHIN
from lurking.search.scoring import Refusal, Row, Scoring

SAMPLED = "sampled"
"""Name of the column: sampled evidence of contenders, the first score of the others."""
SAMPLER = "ais"
MOST_UNASKED = 32
"""Contenders that are sampled without having been asked for; each takes about a second."""


@dataclass(frozen=True)
class Rescoring:
    """Which structures are scored again: `rescore` "auto", True or False, those `within` so many nats of the best."""

    rescore: bool | str = "auto"
    within: float = WITHIN

    def __post_init__(self) -> None:
        # 0 == False, but only False itself is looked for below.
        if not isinstance(self.rescore, bool) and self.rescore != "auto":
            raise OptionError(f"rescore is {self.rescore!r}; it must be 'auto', True or False")
        if not is_number(self.within) or self.within < 0:
            raise OptionError(f"within is {self.within!r}; it must be a number of nats of at least 0, for example 30")

    def contenders(self, rows: Sequence[Row], score: str, log_prior: Sequence[float]) -> list[Row]:
        """Return the rows whose ln p(m) + log_z is within reach of the best, or none where nothing is to be sampled.

        With "auto" something is to be done when the contenders are of mixed kinds: a bound that wins by more than
        `within` against every exact value has won, and bounds among themselves are ranked as bounds.
        """
        values = [prior + row.evidences[score].log_z for row, prior in zip(rows, log_prior, strict=True)]
        near = [row for row, value in zip(rows, values, strict=True) if value >= max(values) - self.within]
        kinds = {row.evidences[score].kind for row in near}
        if self.rescore is False or kinds <= UNBOUND or (self.rescore == "auto" and not are_mixed(kinds)):
            return []
        return near

    def is_too_much(self, contenders: Sequence[Row]) -> bool:
        """Whether there are more contenders than are sampled unless it was asked for."""
        return self.rescore == "auto" and len(contenders) > MOST_UNASKED


def split_sampler_options(
    scores: Sequence[str], own: Mapping[str, Any], rescoring: Rescoring
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the scores asked for, and those of the sampler that scores contenders again.

    An option that only the sampler understands is for it alone; without re-scoring it is refused as any other.
    """
    asked = {option for name in scores for option in get_score(name).options}
    sampler = get_score(SAMPLER)
    of_sampler = {name: value for name, value in own.items() if name in sampler.options}
    if rescoring.rescore is not False:
        own = {name: value for name, value in own.items() if name in asked or name not in of_sampler}
    taken = set(sampler.takes(of_sampler))
    return dict(own), {name: value for name, value in of_sampler.items() if name in taken or name not in asked}


@dataclass(frozen=True)
class Sampled:
    """Evidence {model: Evidence} of the contenders; or, where one could not be sampled, why."""

    evidences: Mapping[str, Evidence]
    refusal: str = ""


def sample_contenders(contenders: Sequence[Row], score: str, scoring: Scoring, progress: Progress) -> Sampled | None:
    """Return sampled (or exact) evidence of all contenders, or why there is none; None after an interrupt.

    What the rows have already, an exact or sampled value, is taken as it is.
    """
    known = {row.name: _settled(row, score) for row in contenders}
    missing = [row for row in contenders if known[row.name] is None]
    found: dict[str, Evidence] = {name: evidence for name, evidence in known.items() if evidence is not None}
    if missing:
        progress.begin("sampled evidence", len(missing))
        try:
            made = _scored(missing, replace(scoring, scores=(SAMPLER,)), progress.update)
        except LurkingError as error:
            return Sampled({}, f"{missing[0].name!r}: {error}")
        finally:
            progress.end()
        refusals = [each for each in made if isinstance(each, Refusal)]
        if refusals:
            return Sampled({}, f"{refusals[0].name!r}: {refusals[0].error}")
        found |= {row.name: row.evidences[SAMPLER] for row in made if isinstance(row, Row)}
        if len(found) < len(contenders) or any(e.status is Status.INTERRUPTED for e in found.values()):
            return None
    return Sampled({row.name: found[row.name] for row in contenders})


def _scored(rows: Sequence[Row], scoring: Scoring, done: Callable[[int], None]) -> list[Row | Refusal]:
    names: list[str] = [row.name for row in rows]
    dags: list[Dag] = [row.dag for row in rows]
    return scoring.rows(names, dags, done)


def _settled(row: Row, score: str) -> Evidence | None:
    """Return the value that needs no sampling: exact, or sampled by a score that was asked for anyway."""
    if row.evidences[score].kind in UNBOUND:
        return row.evidences[score]
    own = row.evidences.get(SAMPLER)
    exact = [evidence for evidence in row.evidences.values() if evidence.kind is Kind.EXACT]
    return exact[0] if exact else own
