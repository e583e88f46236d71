"""Tables in which parents act through a summary of theirs: what a hidden variable has to do better than.

A table with a row for every configuration of its parents is wasteful where many rows are alike. A hidden variable
between parents and child then saves parameters without being a cause of anything: it stands for a function of the
parents. So where a hidden variable is judged, the structure without it is given tables in which some parents, taken
together, count by the group of their joint states alone. The parameters of such a table are integrated out in closed
form, and the partition into groups has a prior that is paid for. Decision graphs (Chickering, Heckerman & Meek 1997)
are tables of this kind.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import stirling2

from lurking.graph.dag import Dag
from lurking.inference.completion import Completion
from lurking.kernels.reference.special import log_rising
from lurking.models.discrete.prior import BDeuPrior, SymmetricPrior
from lurking.runtime.executor import StopFlag
from lurking.search.constraints import Constraints
from lurking.search.expected import ExpectedScores
from lurking.search.families import Family, OneByOne, score_of
from lurking.search.greedy import ClimbRules, climb
from lurking.types import FloatArray

MOST_JOINT_STATES = 32
"""Joint states of one or two parents that are put into groups; more are left as they are."""
MOST_CONFIGURATIONS = 512
"""Rows of a table that is summarised; larger ones are left as they are."""
PATIENCE = 5


@dataclass(frozen=True)
class Summary:
    """A family whose table has fewer rows, since the joint states of some parents count by their groups alone.

    groups : the parents taken together, and in how many groups their joint states are.
    gain : ln p(counts, groups) − ln p(counts), with the prior of the groups in it.
    """

    node: str
    groups: tuple[tuple[tuple[str, ...], int], ...]
    gain: float

    def __str__(self) -> str:
        parts = [
            f"{' × '.join(names)} in {count} groups" if count > 1 else f"nothing of {' and '.join(names)}"
            for names, count in self.groups
        ]
        return f"{self.node} given {', '.join(parts)} (+{self.gain:.1f})"


@dataclass(frozen=True)
class Summarised:
    """A structure with summaries in its tables, and how much more probable it makes the data than a plain one."""

    dag: Dag
    summaries: tuple[Summary, ...]
    gain: float

    def __str__(self) -> str:
        return f"{'; '.join(map(str, self.summaries))}, +{self.gain:.1f} in all"


def best_summarised(
    completion: Completion,
    dag: Dag,
    other: Dag,
    prior: SymmetricPrior | BDeuPrior,
    constraints: Constraints,
    stop: StopFlag,
) -> Summarised:
    """Return the best structure with summaries that is found from `dag` by arcs among the neighbours of hidden nodes.

    completion : the data completed by a fit of `dag`, so counts are exact where a family is observed, and else the gain
        is an expected one, below the true one.
    other : the structure with more hidden variables. What its new ones are joined with may be joined differently, and
        tables that it has too are left as they are, since it could have their summaries as well.
    """
    invented = [name for name in other.hidden if name not in dag.nodes]
    near = {node for name in invented for node in (*other.parents(name), *other.children(name))}
    changed = {node for node in dag.nodes if node in other.nodes and set(dag.parents(node)) != set(other.parents(node))}
    scorer = SummarisedScores(completion, prior, other)
    plain = score_of(scorer.plain, dag)
    rules = constraints.extended(dag).only_among((near | changed) & set(dag.observed), dag)
    found = climb(scorer, dag, rules, ClimbRules(patience=PATIENCE, stop=stop))
    place = {name: k for k, name in enumerate(scorer.variables)}
    families = (
        (place[name], tuple(sorted(place[parent] for parent in found.best.parents(name)))) for name in dag.nodes
    )
    summaries = (scorer.summary(*family) for family in families)
    return Summarised(found.best, tuple(each for each in summaries if each is not None), found.score - plain)


@final
class SummarisedScores(OneByOne):
    """A `FamilyScorer` whose tables are summarised where that gains and `other` has not the same table."""

    def __init__(self, completion: Completion, prior: SymmetricPrior | BDeuPrior, other: Dag) -> None:
        self.plain = ExpectedScores(completion, "vb", prior)
        self._completion, self._prior = completion, prior
        self._shared = {name: set(other.parents(name)) for name in other.nodes}
        self._summaries: dict[Family, Summary | None] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        """Columns and hidden variables, in the order of the structure."""
        return self.plain.variables

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        return self.plain.cardinalities

    @property
    def n_evaluated(self) -> int:
        """How many families were scored so far."""
        return self.plain.n_evaluated

    def score(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of one family with its best summary."""
        summary = self.summary(node, parents)
        return self.plain.score(node, parents) + (0.0 if summary is None else summary.gain)

    def summary(self, node: int, parents: tuple[int, ...]) -> Summary | None:
        """Return the best summary of the parents in one family, None where none gains or the table is shared."""
        family = (node, parents)
        if family not in self._summaries:
            self._summaries[family] = self._found(node, parents)
        return self._summaries[family]

    def _found(self, node: int, parents: tuple[int, ...]) -> Summary | None:
        name, above = self.variables[node], [self.variables[parent] for parent in parents]
        sizes = [self.cardinalities[k] for k in (*parents, node)]
        is_shared = self._shared.get(name) == set(above)
        if is_shared or not parents or math.prod(sizes[:-1]) > MOST_CONFIGURATIONS:
            return None
        counts = self._completion.table([*parents, node]).reshape(sizes)
        summary = _summarised(name, above, counts, self._prior)
        return summary if summary.gain > 0.0 else None


def _summarised(node: str, parents: Sequence[str], counts: FloatArray, prior: SymmetricPrior | BDeuPrior) -> Summary:
    """Group the states of one parent, or the joint states of two, in the best way, as long as that gains.

    counts : (r of each parent …, r of the node). Groups of states take the place of the parents that they are made of.
    A priori it ends after every step with probability 1/2, and otherwise every choice of parents is as probable.
    """
    names: list[tuple[str, ...]] = [(name,) for name in parents]
    is_grouped = [False] * len(names)
    total = 0.0
    while True:
        choices = [chosen for size in (1, 2) for chosen in itertools.combinations(range(len(names)), size)]
        found = [best_grouping(counts, chosen, prior) for chosen in choices]
        place = max(range(len(choices)), key=lambda k: found[k][0])
        gain = found[place][0] - math.log(2.0 * len(choices))
        if gain <= 0.0:
            break
        total, counts, chosen = total + gain, found[place][1], choices[place]
        others = [k for k in range(len(names)) if k not in chosen]
        names = [tuple(name for k in chosen for name in names[k]), *(names[k] for k in others)]
        is_grouped = [True, *(is_grouped[k] for k in others)]
    groups = zip(names, counts.shape[:-1], is_grouped, strict=True)
    return Summary(node, tuple((together, count) for together, count, grouped in groups if grouped), total)


def best_grouping(
    counts: FloatArray, chosen: Sequence[int], prior: SymmetricPrior | BDeuPrior
) -> tuple[float, FloatArray]:
    """Return ln p(counts, groups) − ln p(counts) of the best grouping met, and the counts by group.

    counts : (parents …, node); chosen : the axes whose J joint states are put into k < J groups. The two groups that
    gain most are merged, again and again (J − 1 merges). Every k is as probable a priori as every other, and so is
    every partition into k groups: ln p(groups) = −ln (J − 1) − ln S(J, k), S the Stirling number of the second kind.
    """
    width = counts.shape[-1]
    groups = np.moveaxis(counts, chosen, range(len(chosen)))
    rest = groups.shape[len(chosen) : -1]
    groups = groups.reshape(-1, math.prod(rest), width)
    n_states = len(groups)
    if not 1 < n_states <= MOST_JOINT_STATES:
        return -math.inf, counts
    others = groups.shape[1]

    def value(cells: FloatArray, n_groups: int) -> FloatArray:
        """Return Σ over the rows of ln p(counts of a row), (…,) of cells (…, rows, states)."""
        pseudo = _pseudo_count(prior, width, n_groups * others)
        rows = log_rising(np.full(cells.shape[:-1], width * pseudo), cells.sum(axis=-1))
        return np.asarray((log_rising(np.full(cells.shape, pseudo), cells).sum(axis=-1) - rows).sum(axis=-1))

    start = float(value(groups, n_states).sum())
    best, best_groups = -math.inf, groups
    while len(groups) > 1:
        first, second = np.triu_indices(len(groups), 1)
        alone = value(groups, len(groups) - 1)
        merged = value(groups[first] + groups[second], len(groups) - 1) - alone[first] - alone[second]
        place = int(merged.argmax())
        groups = np.concatenate([groups, (groups[first[place]] + groups[second[place]])[None]])
        groups = np.delete(groups, [first[place], second[place]], axis=0)
        log_prior = -math.log(n_states - 1.0) - math.log(float(stirling2(n_states, len(groups))))
        gain = float(value(groups, len(groups)).sum()) - start + log_prior
        if gain > best:
            best, best_groups = gain, groups
    return best, best_groups.reshape(len(best_groups), *rest, width)


def _pseudo_count(prior: SymmetricPrior | BDeuPrior, states: int, rows: int) -> float:
    """Return λ of a cell of a table with so many rows."""
    if isinstance(prior, BDeuPrior):
        return prior.equivalent_sample_size / (rows * states)
    return prior.pseudo_count
