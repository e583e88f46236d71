"""Structures that were judged on the way to the best one, and their posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.learn.loop import Status
from lurking.search.posterior import StructurePosterior

MOST_CONTENDERS = 12


@dataclass(frozen=True)
class Trial:
    """One structure that was judged: how it came about, its evidence, and whether it became the best."""

    dag: Dag
    source: str
    evidence: Evidence
    is_kept: bool

    def __str__(self) -> str:
        verdict = "kept" if self.is_kept else "not kept"
        return f"{hidden_part(self.dag)} ({self.source}): {value_of(self.evidence)}, {verdict}"


@dataclass(frozen=True)
class Invented:
    """Outcome: the structure of highest evidence, all that were judged, and their posterior probabilities."""

    best: Dag
    evidence: Evidence
    posterior: StructurePosterior = field(repr=False)
    history: tuple[Trial, ...] = field(repr=False)
    n_fitted: int
    status: Status


def posterior_over(history: Sequence[Trial]) -> StructurePosterior:
    """Return the posterior over the best structures that were judged, the best of each number of hidden variables too.

    All are exact or sampled, so none is a bound set against a value; the prior is uniform over them.
    """
    ranked = sorted(history, key=lambda trial: -trial.evidence.log_z)
    leaders = {len(trial.dag.hidden): trial for trial in reversed(ranked)}
    kept = ranked[:MOST_CONTENDERS]
    kept += [trial for trial in leaders.values() if trial not in kept]
    dags, evidences = [trial.dag for trial in kept], [trial.evidence for trial in kept]
    return StructurePosterior.from_evidence("ais", contender_names(dags), dags, evidences)


def around(dag: Dag, name: str) -> set[str]:
    """Return the parents and children of a node."""
    return {*dag.parents(name), *dag.children(name)}


def hidden_part(dag: Dag) -> str:
    """Return what a structure says of its hidden variables: parents, states and children of each."""
    parts = []
    for name, states in dag.hidden.items():
        above = " ".join(dag.parents(name))
        parts.append(f"{above + ' -> ' if above else ''}{name}[{states}] -> {' '.join(dag.children(name))}")
    return "; ".join(parts) or "no hidden variable"


def contender_names(dags: Sequence[Dag]) -> list[str]:
    """Return different names: the hidden part, and a number where several share it."""
    names: list[str] = []
    for dag in dags:
        name = base = hidden_part(dag)
        number = 1
        while name in names:
            number += 1
            name = f"{base} ({number})"
        names.append(name)
    return names


def value_of(evidence: Evidence) -> str:
    """Return the value with its error, and whether it is exact or sampled."""
    if not evidence.std_error:
        return f"{evidence.log_z:.2f} exact"
    return f"{evidence.log_z:.2f} ± {evidence.std_error:.2f} sampled"
