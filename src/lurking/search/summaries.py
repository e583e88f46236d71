"""Tables in which parents act through a summary of theirs: what a hidden variable has to do better than.

A table with a row for every configuration of its parents is wasteful where many rows are alike. A hidden variable
between parents and child then saves parameters without being a cause of anything: it stands for a function of the
parents. So where a hidden variable is judged, the structures with and without it are also compared with tables in which
some parents, taken together, count by the group of their joint states alone. The parameters of such a table are
integrated out in closed form, and the partition into groups has a prior that is paid for. Decision graphs (Chickering,
Heckerman & Meek 1997) are tables of this kind.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import stirling2

from lurking.graph.dag import Dag
from lurking.inference.completion import Completion
from lurking.kernels.reference.special import table_evidence
from lurking.models.prior import BDeuPrior, SymmetricPrior, pseudo_count_of
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
"""Steps without a new best before the climb among structures with summaries ends."""

Configuration = tuple[int, ...]


@dataclass(frozen=True)
class Grouping:
    """Parents taken together, and the groups of their joint states, each a tuple of (state of each parent …)."""

    parents: tuple[str, ...]
    groups: tuple[tuple[Configuration, ...], ...]

    def __str__(self) -> str:
        if len(self.groups) == 1:
            return f"nothing of {' and '.join(self.parents)}"
        return f"{' × '.join(self.parents)} in {len(self.groups)} groups"


@dataclass(frozen=True)
class Summary:
    """A family whose table has fewer rows, since the joint states of some parents count by their groups alone.

    gain : ln p(counts | groupings) − ln p(counts) + ln of the prior odds of the groupings against none.
    """

    node: str
    groupings: tuple[Grouping, ...]
    gain: float

    def __str__(self) -> str:
        return f"{self.node} given {', '.join(map(str, self.groupings))}"


@dataclass(frozen=True)
class Summarised:
    """A structure with summaries in its tables, and how much more probable it makes the data than the plain one.

    `gain` counts arcs that differ from those of the plain structure as well.
    """

    dag: Dag
    summaries: tuple[Summary, ...]
    gain: float

    def __str__(self) -> str:
        what = "; ".join(map(str, self.summaries)) or "other arcs"
        return f"{what} ({self.gain:+.1f} nats)"


def summarised(
    completion: Completion, dag: Dag, nodes: Collection[str], prior: SymmetricPrior | BDeuPrior
) -> Summarised:
    """Return a structure with the best summaries in the tables of some nodes.

    completion : the data completed by a fit of the structure. Counts are exact where a family is observed; else the
        gain is that of the completed data.
    """
    scorer = SummarisedScores(completion, prior, nodes)
    found = scorer.summaries_of(dag)
    return Summarised(dag, found, math.fsum(summary.gain for summary in found))


def best_summarised(
    completion: Completion,
    dag: Dag,
    nodes: Collection[str],
    prior: SymmetricPrior | BDeuPrior,
    constraints: Constraints,
    stop: StopFlag,
) -> Summarised:
    """Return the best structure with summaries in the tables of some nodes that changed arcs among them lead to.

    constraints : those on the columns.
    """
    scorer = SummarisedScores(completion, prior, nodes)
    rules = constraints.extended(dag).only_among(set(nodes) & set(dag.observed), dag)
    found = climb(scorer, dag, rules, ClimbRules(patience=PATIENCE, stop=stop))
    return Summarised(found.best, scorer.summaries_of(found.best), found.score - score_of(scorer.plain, dag))


@final
class SummarisedScores(OneByOne):
    """A `FamilyScorer` on expected counts that summarises the tables of `nodes` where that gains."""

    def __init__(self, completion: Completion, prior: SymmetricPrior | BDeuPrior, nodes: Collection[str]) -> None:
        self.plain = ExpectedScores(completion, "vb", prior)
        self._completion, self._prior, self._nodes = completion, prior, frozenset(nodes)
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
        """Return the best summary of the parents in one family, None where none gains."""
        family = (node, parents)
        if family not in self._summaries:
            self._summaries[family] = self._found(node, parents)
        return self._summaries[family]

    def summaries_of(self, dag: Dag) -> tuple[Summary, ...]:
        """Return the summaries of all tables of a structure."""
        place = {name: k for k, name in enumerate(self.variables)}
        families = ((place[name], tuple(sorted(place[parent] for parent in dag.parents(name)))) for name in dag.nodes)
        found = (self.summary(*family) for family in families)
        return tuple(summary for summary in found if summary is not None)

    def _found(self, node: int, parents: tuple[int, ...]) -> Summary | None:
        name = self.variables[node]
        sizes = [self.cardinalities[k] for k in (*parents, node)]
        if name not in self._nodes or not parents or math.prod(sizes[:-1]) > MOST_CONFIGURATIONS:
            return None
        counts = self._completion.table([*parents, node]).reshape(sizes)
        summary = best_summary(name, [self.variables[parent] for parent in parents], counts, self._prior)
        return summary if summary.gain > 0.0 else None


def best_summary(node: str, parents: Sequence[str], counts: FloatArray, prior: SymmetricPrior | BDeuPrior) -> Summary:
    """Group the states of one parent, or the joint states of two, in the best way, as long as that gains.

    counts : (r of each parent …, r of the node). Groups of states take the place of the parents that they are made of.
    Each step has the factor 1 / (2 C (J − 1) S(J, k)): it is made with probability 1/2, each of the C choices of one or
    two parents is as probable, and so is every k < J and every partition of their J joint states into k groups. The
    other 1/2, that of ending, belongs to the plain table too, so a gain, being relative to that, has none of it.
    """
    # Names of the parents that each axis stands for, and for each of its states the configurations behind it.
    names: list[tuple[str, ...]] = [(name,) for name in parents]
    cells: list[list[tuple[Configuration, ...]]] = [[((k,),) for k in range(size)] for size in counts.shape[:-1]]
    is_grouped = [False] * len(names)
    total = 0.0
    while True:
        choices = [chosen for size in (1, 2) for chosen in itertools.combinations(range(len(names)), size)]
        found = [best_grouping(counts, chosen, prior) for chosen in choices]
        place = max(range(len(choices)), key=lambda k: found[k][0])
        gain = found[place][0] - math.log(2.0 * len(choices))
        if gain <= 0.0:
            break
        _, groups, counts = found[place]
        total, chosen = total + gain, choices[place]
        rest = [k for k in range(len(names)) if k not in chosen]
        joint = [_together(states) for states in itertools.product(*(cells[k] for k in chosen))]
        cells = [
            [tuple(sorted(itertools.chain(*(joint[state] for state in group)))) for group in groups],
            *(cells[k] for k in rest),
        ]
        names = [tuple(name for k in chosen for name in names[k]), *(names[k] for k in rest)]
        is_grouped = [True, *(is_grouped[k] for k in rest)]
    made = zip(names, cells, is_grouped, strict=True)
    return Summary(
        node, tuple(Grouping(together, tuple(groups)) for together, groups, grouped in made if grouped), total
    )


def _together(states: Sequence[tuple[Configuration, ...]]) -> tuple[Configuration, ...]:
    """Return the configurations behind a joint state, those of its parts put one after the other."""
    return tuple(tuple(itertools.chain(*parts)) for parts in itertools.product(*states))


def best_grouping(
    counts: FloatArray, chosen: Sequence[int], prior: SymmetricPrior | BDeuPrior
) -> tuple[float, list[list[int]], FloatArray]:
    """Return ln p(counts, groups) − ln p(counts) of the best grouping met, the groups, and the counts by group.

    counts : (parents …, node); chosen : the axes whose J joint states are put into k < J groups. The two groups that
    gain most are merged, again and again (J − 1 merges). ln p(groups) = −ln (J − 1) − ln S(J, k), S the Stirling number
    of the second kind.
    """
    width = counts.shape[-1]
    cells = np.moveaxis(counts, chosen, range(len(chosen)))
    other_parents = cells.shape[len(chosen) : -1]
    cells = cells.reshape(-1, math.prod(other_parents), width)
    n_states, n_others = cells.shape[:2]
    groups = [[state] for state in range(n_states)]
    if not 1 < n_states <= MOST_JOINT_STATES:
        return -math.inf, groups, counts

    def value(rows: FloatArray, n_groups: int) -> FloatArray:
        """Return the log evidence of tables (…, other parents, states), (…,)."""
        return table_evidence(pseudo_count_of(prior, width, n_groups * n_others), rows)

    plain = float(value(cells, n_states).sum())
    best, best_groups, best_cells = -math.inf, groups, cells
    while len(cells) > 1:
        first, second = np.triu_indices(len(cells), 1)
        alone = value(cells, len(cells) - 1)
        merged = value(cells[first] + cells[second], len(cells) - 1) - alone[first] - alone[second]
        one, two = (int(index[merged.argmax()]) for index in (first, second))
        left = [k for k in range(len(cells)) if k not in (one, two)]
        groups = [*(groups[k] for k in left), groups[one] + groups[two]]
        cells = np.concatenate([cells[left], (cells[one] + cells[two])[None]])
        log_prior = -math.log(n_states - 1.0) - math.log(float(stirling2(n_states, len(cells))))
        gain = float(value(cells, len(cells)).sum()) - plain + log_prior
        if gain > best:
            best, best_groups, best_cells = gain, groups, cells
    return best, best_groups, best_cells.reshape(len(best_cells), *other_parents, width)
