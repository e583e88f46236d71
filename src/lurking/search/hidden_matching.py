"""Which hidden variable of one structure is which of another: names of hidden variables mean nothing by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from lurking.graph.dag import Dag
from lurking.graph.symmetry.canonical import hidden_order
from lurking.types import FloatArray

CARDINALITY_WEIGHT = 1e-6
"""Differences in the number of states only decide between matches that agree in as many arrows."""


@dataclass
class _Place:
    """A hidden variable that several structures have in common."""

    name: str
    states: int
    """In the first structure that has it."""
    weight: float = 0.0
    arrows: dict[tuple[str, str], float] = field(default_factory=dict)
    """{("to" or "from", observed variable): total weight of the structures with this arrow}."""


def matched(dags: Sequence[Dag], weights: FloatArray) -> list[Dag]:
    """Return the structures with hidden variables renamed so that equal names are, as far as may be, one variable.

    Structures are taken by weight (probability), the heaviest first; equal weights in the order given. The hidden
    variables of the first keep their names. Those of every other are matched one to one with the variables known so
    far such that most arrows agree: an arrow between the hidden variable and an observed one counts by the share of the
    weight that has it there (+ share where both have it, − share where only the others do, − (1 − share) where only
    this one does). Ties go to the nearest number of states, then to the order of the canonical form, so that names and
    order within a structure do not matter. A variable that is left over becomes a new one.
    """
    observed = {name for dag in dags for name in dag.observed}
    places: list[_Place] = []
    result: list[Dag | None] = [None] * len(dags)
    for k in sorted(range(len(dags)), key=lambda k: (-weights[k], k)):
        dag = dags[k]
        names = hidden_order(dag)
        chosen = _assigned(dag, names, places)
        for name in names:
            if name not in chosen:
                new = _Place(_free_name(name, observed, places), dag.hidden[name])
                places.append(new)
                chosen[name] = new
        for name in names:
            place = chosen[name]
            place.weight += float(weights[k])
            for arrow in _arrows(dag, name):
                place.arrows[arrow] = place.arrows.get(arrow, 0.0) + float(weights[k])
        result[k] = dag.rename({name: place.name for name, place in chosen.items()})
    return [dag for dag in result if dag is not None]


def _arrows(dag: Dag, name: str) -> set[tuple[str, str]]:
    """Return the arrows between a hidden variable and observed ones."""
    to = {("to", child) for child in dag.children(name) if child not in dag.hidden}
    return to | {("from", parent) for parent in dag.parents(name) if parent not in dag.hidden}


def _assigned(dag: Dag, names: Sequence[str], places: Sequence[_Place]) -> dict[str, _Place]:
    """Return the known variable of as many of the hidden ones as there are, with the most arrows in common."""
    if not names or not places:
        return {}
    gain = np.empty((len(names), len(places)))
    for i, name in enumerate(names):
        own = _arrows(dag, name)
        for j, place in enumerate(places):
            share = {arrow: weight / max(place.weight, 1e-300) for arrow, weight in place.arrows.items()}
            agreement = sum(2.0 * share.get(arrow, 0.0) - 1.0 for arrow in own)
            missed = sum(value for arrow, value in share.items() if arrow not in own)
            gain[i, j] = agreement - missed - CARDINALITY_WEIGHT * abs(dag.hidden[name] - place.states)
    rows, columns = linear_sum_assignment(-gain)
    return {names[int(i)]: places[int(j)] for i, j in zip(rows, columns, strict=True)}


def _free_name(name: str, observed: set[str], places: Sequence[_Place]) -> str:
    """Return the name itself, or h1, h2, … if that one is taken."""
    taken = observed | {place.name for place in places}
    number = 0
    while name in taken:
        number += 1
        name = f"h{number}"
    return name
