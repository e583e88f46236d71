"""Structures on the way to the best one: which are worth judging, those that were judged, and their posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lurking.evidence.base import Evidence, Kind
from lurking.graph.dag import Dag
from lurking.graph.parse import quote_name
from lurking.graph.structure_priors import StructurePrior
from lurking.learn.loop import Status
from lurking.search.cardinality import CONTENDER
from lurking.search.judge import MARGIN
from lurking.search.posterior import Candidate, StructurePosterior
from lurking.search.summaries import Summarised

START = "start"
"""Source of a structure that the search began with."""
MOST_CONTENDERS = 12
MOST_DIFFERENCES = 3
"""Arcs of each kind that a name shows."""


@dataclass(frozen=True)
class Outdone:
    """Why a structure with more evidence is not kept: one with fewer hidden variables is as probable with summaries.

    by : that structure, its summaries and what they gain; rival : the same for the structure that is outdone.
    advantage : how much more `by` gains, its prior probability counted in; log_z : ln p(data) of the plain structure
    with fewer hidden variables plus what `by` gains.
    """

    by: Summarised
    rival: Summarised
    advantage: float
    log_z: float

    def __str__(self) -> str:
        against = f", {self.rival.gain:+.1f} nats with the hidden variable" if self.rival.gain else ""
        return f"{self.log_z:.2f} without it by {self.by}{against}"


@dataclass(frozen=True)
class Trial:
    """One structure that was judged: how it came about, its evidence, and whether it became the best.

    outdone_by : a structure with fewer hidden variables that summaries of parents make as probable. What is outdone is
        not kept, or was kept for a while.
    """

    dag: Dag
    source: str
    evidence: Evidence
    is_kept: bool
    outdone_by: Outdone | None = None

    def __str__(self) -> str:
        verdict = "kept" if self.is_kept else "not kept"
        if self.outdone_by is not None:
            verdict = f"{verdict}, not needed: {self.outdone_by}"
        return f"{hidden_part(self.dag)} ({self.source}): {value_of(self.evidence)}, {verdict}"


@dataclass(frozen=True)
class Refined:
    """A proposal after structural EM, with its cheap score."""

    dag: Dag
    source: str
    cheap: float


@dataclass(frozen=True)
class Invented:
    """Outcome: the structure that was kept, all that were judged, and their posterior probabilities.

    Another structure may be more probable than the one kept, but not by more than the errors.
    """

    best: Dag
    evidence: Evidence
    posterior: StructurePosterior = field(repr=False)
    history: tuple[Trial, ...] = field(repr=False)
    n_fitted: int
    status: Status
    structure_prior: StructurePrior


def distinct(candidates: Iterable[Refined | None]) -> list[Refined]:
    """Return each structure once, with the best cheap score it got."""
    found: dict[Dag, Refined] = {}
    for candidate in candidates:
        if candidate is not None:
            key = candidate.dag.canonical()
            if key not in found or candidate.cheap > found[key].cheap:
                found[key] = candidate
    return list(found.values())


def top(candidates: Iterable[Refined], count: int) -> list[Refined]:
    """Return the best of each number of hidden variables, the best of all first."""
    taken: dict[int, int] = {}
    result = []
    for candidate in sorted(candidates, key=lambda candidate: (-candidate.cheap, str(candidate.dag))):
        number = len(candidate.dag.hidden)
        taken[number] = taken.get(number, 0) + 1
        if taken[number] <= count:
            result.append(candidate)
    return result


def worth_sampling(ranked: Sequence[Refined]) -> list[Refined]:
    """Return the best of each number of hidden variables, and of the others those near the best of all."""
    seen: set[int] = set()
    result = []
    for candidate in ranked:
        is_first = len(candidate.dag.hidden) not in seen
        seen.add(len(candidate.dag.hidden))
        if is_first or candidate.cheap > ranked[0].cheap - CONTENDER:
            result.append(candidate)
    return result


def posterior_over(history: Sequence[Trial], log_weight: Callable[[Trial], float]) -> StructurePosterior:
    """Return the posterior over the best structures that were judged, the best of each number of hidden variables too.

    All are exact or sampled, so none is a bound set against a value.
    """
    weights = {id(trial): log_weight(trial) for trial in history}
    ranked = sorted(history, key=lambda trial: -(trial.evidence.log_z + weights[id(trial)]))
    leaders = {len(trial.dag.hidden): trial for trial in reversed(ranked)}
    kept = ranked[:MOST_CONTENDERS]
    kept += [trial for trial in leaders.values() if trial not in kept]
    dags, evidences = [trial.dag for trial in kept], [trial.evidence for trial in kept]
    log_prior = [weights[id(trial)] for trial in kept]
    return StructurePosterior.from_evidence("ais", contender_names(dags), dags, evidences, log_prior=log_prior)


def around(dag: Dag, name: str) -> set[str]:
    """Return the parents and children of a node."""
    return {*dag.parents(name), *dag.children(name)}


def hidden_part(dag: Dag) -> str:
    """Return what a structure says of its hidden variables: parents, states and children of each."""
    parts = []
    for name, states in dag.hidden.items():
        above, below = (" ".join(map(quote_name, names)) for names in (dag.parents(name), dag.children(name)))
        parts.append(f"{above + ' -> ' if above else ''}{quote_name(name)}[{states}] -> {below}")
    return "; ".join(parts) or "no hidden variable"


def contender_names(dags: Sequence[Dag]) -> list[str]:
    """Return different names: the hidden part, and the arcs in which it differs from the first that shares it."""
    names: list[str] = []
    firsts: dict[str, Dag] = {}
    for dag in dags:
        name = hidden_part(dag)
        first = firsts.setdefault(name, dag)
        if first is not dag:
            name = f"{name} ({_differences(dag, first)})"
        base, number = name, 1
        while name in names:
            number += 1
            name = f"{base} ({number})"
        names.append(name)
    return names


def _differences(dag: Dag, other: Dag) -> str:
    """Return the arcs that only one of two structures has, ``+`` of the first, ``-`` of the second, a few of each."""
    parts = []
    for sign, here, there in (("+", dag, other), ("-", other, dag)):
        arcs = sorted(set(here.edges) - set(there.edges))
        shown = ", ".join(f"{quote_name(parent)} -> {quote_name(child)}" for parent, child in arcs[:MOST_DIFFERENCES])
        more = len(arcs) - MOST_DIFFERENCES
        if arcs:
            parts.append(f"{sign} {shown}" + (f" and {more} more" if more > 0 else ""))
    return "; ".join(parts)


def why_not_first(kept: Candidate, first: Candidate) -> str:
    """Say why a structure is kept though another one that was judged has a higher value."""
    ahead = first.log_prior + first.evidence.log_z - kept.log_prior - kept.evidence.log_z
    needed = MARGIN * math.hypot(first.evidence.std_error or 0.0, kept.evidence.std_error or 0.0)
    if ahead <= needed:
        return f"the first row is ahead by {ahead:.2f} nats, and two standard errors are {needed:.2f}"
    if Status.UNTRUSTED in (first.evidence.status, kept.evidence.status):
        return f"the first row is ahead by {ahead:.2f} nats, and a value here is not to be trusted"
    if first.evidence.log_z <= kept.evidence.log_z:
        return "the first row is ahead by its prior probability alone"
    return f"the first row is ahead by {ahead:.2f} nats, but it is not ahead of others that were judged"


def value_of(evidence: Evidence) -> str:
    """Return the value with its error, and whether it is exact, sampled, not to be trusted, or a bound."""
    if evidence.kind is Kind.LOWER_BOUND:
        return f"{evidence.log_z:.2f} at least"
    if not evidence.std_error:
        return f"{evidence.log_z:.2f} exact"
    how = "untrusted" if evidence.status is Status.UNTRUSTED else "sampled"
    return f"{evidence.log_z:.2f} ± {evidence.std_error:.2f} {how}"
