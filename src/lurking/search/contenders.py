"""Structures on the way to the best one: which are worth judging, those that were judged, and their posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lurking.evidence.base import Evidence, Kind
from lurking.graph.dag import Dag
from lurking.graph.model_class import ModelClass, model_class
from lurking.graph.parse import quote_name
from lurking.graph.structure_priors import StructurePrior
from lurking.learn.loop import Status
from lurking.search.cardinality import CONTENDER
from lurking.search.judge import MARGIN
from lurking.search.posterior import Candidate, StructurePosterior
from lurking.search.summaries import Summarised

Lines: TypeAlias = frozenset[frozenset[str]]
"""Pairs of nodes that are joined by an edge of either direction."""
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
    lines : edges of either direction: neither the data nor the constraints settle it.
    """

    dag: Dag
    source: str
    evidence: Evidence
    is_kept: bool
    outdone_by: Outdone | None = None
    lines: Lines = frozenset()

    def __str__(self) -> str:
        verdict = "kept" if self.is_kept else "not kept"
        if self.outdone_by is not None:
            verdict = f"{verdict}, not needed: {self.outdone_by}"
        return f"{hidden_part(self.dag, self.lines)} ({self.source}): {value_of(self.evidence)}, {verdict}"


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
    has_dismissed: bool = False
    """True if the bound of some structure with a hidden variable was so low that it was not evaluated."""


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

    All are exact or sampled, so none is a bound set against a value. The prior is over equivalence classes: each enters
    once, by the evidence of the one structure that stands for it (`one_of_each_class`).
    """
    weights = {id(trial): log_weight(trial) for trial in history}
    ranked = sorted(history, key=lambda trial: -(trial.evidence.log_z + weights[id(trial)]))
    ranked = one_of_each_class(ranked, next((trial for trial in reversed(history) if trial.is_kept), None))
    leaders = {len(trial.dag.hidden): trial for trial in reversed(ranked)}
    kept = ranked[:MOST_CONTENDERS]
    kept += [trial for trial in leaders.values() if trial not in kept]
    dags, evidences = [trial.dag for trial in kept], [trial.evidence for trial in kept]
    log_prior = [weights[id(trial)] for trial in kept]
    names = contender_names(dags, [trial.lines for trial in kept])
    return StructurePosterior.from_evidence("ais", names, dags, evidences, log_prior=log_prior)


def one_of_each_class(ranked: Sequence[Trial], kept: Trial | None) -> list[Trial]:
    """Return the trial that stands for each class of structures that no data can tell apart, in the order given.

    This is the one that is `kept`, or else the first of those in which the fewest hidden variables have observed
    parents.
    """
    groups: dict[ModelClass, list[Trial]] = {}
    for trial in ranked:
        groups.setdefault(model_class(trial.dag), []).append(trial)
    chosen = [next((t for t in group if t is kept), min(group, key=_below_columns)) for group in groups.values()]
    return sorted(chosen, key=ranked.index)


def _below_columns(trial: Trial) -> int:
    """Return how many hidden variables have an observed parent."""
    dag = trial.dag
    return sum(any(parent not in dag.hidden for parent in dag.parents(name)) for name in dag.hidden)


def untried(found: Invented, room: int) -> str | None:
    """Return why nothing is known about hidden variables though the search may invent some, or None.

    Structures with hidden variables that were dismissed by their bounds count as known. `room` is the number of hidden
    variables that the data can carry.
    """
    history, status = found.history, found.status
    if any(trial.dag.hidden for trial in history):
        return None
    nothing = "no structure with a hidden variable was evaluated"
    unknown = "so nothing is known about hidden variables"
    if status is Status.TIME_LIMIT:
        return f"{nothing} within the time limit, {unknown}; give a higher time_limit"
    if status is Status.INTERRUPTED:
        return f"{nothing} before the search was stopped, {unknown}; let it run longer"
    if room == 0:
        return f"{nothing}, {unknown}: there are too few columns or rows for one"
    if all(trial.evidence.kind is Kind.LOWER_BOUND for trial in history):
        return f"{nothing}, {unknown}: the structure without one is too large to be sampled"
    if not found.has_dismissed:
        return f"{nothing}, {unknown}: no proposal kept a hidden variable with three neighbours, or all were too large"
    return None


def around(dag: Dag, name: str) -> set[str]:
    """Return the parents and children of a node."""
    return {*dag.parents(name), *dag.children(name)}


def hidden_part(dag: Dag, lines: Lines = frozenset()) -> str:
    """Return what a structure says of its hidden variables: parents, states and children of each.

    Neighbours that are joined by one of the `lines` stand behind ``--``: that direction is not settled.
    """
    parts, done = [], set[str]()
    for name, states in dag.hidden.items():
        above, below = (
            " ".join(quote_name(node) for node in nodes if frozenset((node, name)) not in lines)
            for nodes in (dag.parents(name), dag.children(name))
        )
        near = " ".join(quote_name(node) for node in dag.nodes if frozenset((node, name)) in lines and node not in done)
        done.add(name)
        own = f"{quote_name(name)}[{states}]"
        if above or below:
            parts.append(f"{above + ' -> ' if above else ''}{own}{' -> ' + below if below else ''}")
            own = quote_name(name)
        if near or not (above or below):
            parts.append(f"{own} -- {near}" if near else own)
    return "; ".join(parts) or "no hidden variable"


def contender_names(dags: Sequence[Dag], lines: Sequence[Lines] | None = None) -> list[str]:
    """Return different names: the hidden part, and the edges in which it differs from the first that shares it."""
    names: list[str] = []
    firsts: dict[str, frozenset[str]] = {}
    for place, dag in enumerate(dags):
        own = frozenset() if lines is None else lines[place]
        name, edges = hidden_part(dag, own), _edges_in_words(dag, own)
        if firsts.setdefault(name, edges) is not edges:
            name = f"{name} ({_differences(edges, firsts[name])})" if edges != firsts[name] else name
        base, number = name, 1
        while name in names:
            number += 1
            name = f"{base} ({number})"
        names.append(name)
    return names


def _edges_in_words(dag: Dag, lines: Lines) -> frozenset[str]:
    """Return every edge as text, such as ``a -> b``, or ``a -- b`` in alphabetical order for a line."""
    texts = []
    for edge in dag.edges:
        is_line = frozenset(edge) in lines
        texts.append((" -- " if is_line else " -> ").join(map(quote_name, sorted(edge) if is_line else edge)))
    return frozenset(texts)


def _differences(edges: frozenset[str], others: frozenset[str]) -> str:
    """Return the edges that only one of two structures has, ``+`` of the first, ``-`` of the second, a few of each."""
    parts = []
    for sign, here, there in (("+", edges, others), ("-", others, edges)):
        own = sorted(here - there)
        more = len(own) - MOST_DIFFERENCES
        if own:
            parts.append(f"{sign} {', '.join(own[:MOST_DIFFERENCES])}" + (f" and {more} more" if more > 0 else ""))
    return "; ".join(parts)


def why_not_first(kept: Candidate, first: Candidate) -> str:
    """Say why a structure is kept though another one that was judged has a higher value."""
    ahead = first.log_prior + first.evidence.log_z - kept.log_prior - kept.evidence.log_z
    needed = MARGIN * math.hypot(first.evidence.nominal_error or 0.0, kept.evidence.nominal_error or 0.0)
    is_trusted = first.evidence.is_trusted and kept.evidence.is_trusted
    if ahead <= needed and is_trusted:
        return f"the first row is ahead by {ahead:.2f} nats, and two standard errors are {needed:.2f}"
    if not is_trusted:
        return f"the first row is ahead by {ahead:.2f} nats, and a value here is not to be trusted"
    if first.evidence.log_z <= kept.evidence.log_z:
        return "the first row is ahead by its prior probability alone"
    return f"the first row is ahead by {ahead:.2f} nats, but it is not ahead of others that were judged"


def value_of(evidence: Evidence) -> str:
    """Return the value with its error, and whether it is exact, sampled, not to be trusted, or a bound."""
    if evidence.kind is Kind.LOWER_BOUND:
        return f"{evidence.log_z:.2f} at least"
    if not evidence.nominal_error:
        return f"{evidence.log_z:.2f} exact"
    how = "untrusted" if evidence.status is Status.UNTRUSTED else "sampled"
    return f"{evidence.with_error(2)} {how}"
