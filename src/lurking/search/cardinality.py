"""How many states a hidden variable has: a scan with warm starts, and the posterior over the number of states.

The fit with r + 1 states starts from that with r whose worst state is split in two; on the way back the fit with r
states starts from that with r + 1 of which the two nearest states are made one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from lurking.data.table import Table
from lurking.errors import OptionError, TooLarge
from lurking.graph.dag import Dag, as_dag
from lurking.inference.network import Network
from lurking.runtime.checks import check_whole
from lurking.runtime.rng import generators
from lurking.search.judge import Judge, Start
from lurking.search.posterior import StructurePosterior
from lurking.types import FloatArray

MOST_STATES = 8
PATIENCE = 2
"""Numbers of states in a row without a new best before the scan ends."""
CONTENDER = 8.0
"""Nats of the cheap score below the best within which a number of states is judged by sampled evidence."""
MOST_CONTENDERS = 3
WARM_RESTARTS = 3


@dataclass(frozen=True)
class Cardinality:
    """Outcome of the choice of a number of states.

    cheap : {states: variational bound + ln S}, of all that the scan looked at.
    posterior : over the contenders by sampled evidence, candidates named by their number of states.
    """

    name: str
    best: Dag
    cheap: dict[int, float]
    posterior: StructurePosterior = field(repr=False)

    @property
    def states(self) -> int:
        """The most probable number of states."""
        return self.best.hidden[self.name]

    @property
    def probabilities(self) -> dict[int, float]:
        """{states: posterior probability} over the contenders, uniform prior."""
        return {int(candidate.name): candidate.probability for candidate in self.posterior}


def scan_states(
    judge: Judge, dag: Dag | str, name: str, most: int = MOST_STATES, patience: int = PATIENCE
) -> dict[int, float]:
    """Return {states: cheap score} from two states on, up to `patience` in a row without a new best.

    The fits stay with the judge, whose sampled evidence starts from them.
    """
    dag = as_dag(dag).bind(judge.table.columns)
    check_hidden(dag, name)
    check_whole("most", most, 2)
    scores: dict[int, float] = {}
    start: Start | None = None
    for states in range(2, most + 1):
        sized = dag.with_hidden({name: states})
        try:
            fit = judge.fit(sized, start, WARM_RESTARTS)
        except TooLarge:
            break
        scores[states] = judge.cheap(sized)
        best = max(scores, key=lambda count: (scores[count], -count))
        if judge.stop.is_set or states - best >= patience:
            break
        state = worst_state(fit.network, judge.table, name)
        start = split_state(fit.network, name, state, generators(judge.seed, 1)[0])
    for states in sorted(scores, reverse=True)[1:]:
        if judge.stop.is_set:
            break
        larger, sized = dag.with_hidden({name: states + 1}), dag.with_hidden({name: states})
        network = judge.fit(larger).network
        judge.fit(sized, merge_states(network, name, *nearest_states(network, name)), 1)
        scores[states] = judge.cheap(sized)
    return scores


def best_states(
    judge: Judge, dag: Dag, name: str, most: int = MOST_STATES, patience: int = PATIENCE
) -> tuple[Dag, int]:
    """Return the structure with the number of states of highest cheap score, and how many numbers were tried."""
    scores = scan_states(judge, dag, name, most, patience)
    best = max(scores, key=lambda states: (scores[states], -states)) if scores else dag.hidden[name]
    return dag.with_hidden({name: best}), len(scores)


def contenders(scores: dict[int, float]) -> list[int]:
    """Return the numbers of states worth sampling, the best by the cheap score first."""
    top = max(scores.values())
    near = [states for states, value in scores.items() if value >= top - CONTENDER]
    return sorted(near, key=lambda states: (-scores[states], states))[:MOST_CONTENDERS]


def choose_states(judge: Judge, dag: Dag | str, name: str, most: int = MOST_STATES) -> Cardinality:
    """Return the number of states of highest sampled evidence among those near the best by the cheap score."""
    dag = as_dag(dag).bind(judge.table.columns)
    scores = scan_states(judge, dag, name, most)
    for states in scores:
        sized = dag.with_hidden({name: states})
        judge.agreed_fit(sized)
        scores[states] = judge.cheap(sized)
    chosen = sorted(contenders(scores))
    dags = [dag.with_hidden({name: states}) for states in chosen]
    evidences = [judge.evidence(each) for each in dags]
    posterior = StructurePosterior.from_evidence("ais", [str(states) for states in chosen], dags, evidences)
    return Cardinality(name, posterior.best.dag, scores, posterior)


def check_hidden(dag: Dag, name: str) -> None:
    """Refuse a variable that is not hidden."""
    if not isinstance(name, str) or name not in dag.hidden:
        listed = ", ".join(dag.hidden) or "none"
        raise OptionError(f"{name!r} is no hidden variable of the structure; hidden are: {listed}")


def split_state(network: Network, name: str, state: int, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Return starting tables with one state more: `state` is halved, and the halves differ by a random push."""
    tables = dict(network.tables)
    own = tables[name]
    tables[name] = np.column_stack([own, 0.5 * own[:, state]])
    tables[name][:, state] *= 0.5
    for child in network.dag.children(name):
        shaped, axis = _axis_of(network, child, name)
        half = np.take(shaped, [state], axis=axis)
        push = np.exp(0.3 * generator.standard_normal(half.shape))
        pushed, pulled = half * push, half / push
        larger = np.concatenate([shaped, pulled], axis=axis)
        index = [slice(None)] * larger.ndim
        index[axis] = slice(state, state + 1)
        larger[tuple(index)] = pushed
        larger /= larger.sum(axis=-1, keepdims=True)
        tables[child] = larger.reshape(-1, shaped.shape[-1])
    return tables


def merge_states(network: Network, name: str, first: int, second: int) -> dict[str, FloatArray]:
    """Return starting tables with one state less: the second state joins the first, weighted by their sizes."""
    tables = dict(network.tables)
    own = tables[name].copy()
    own[:, first] += own[:, second]
    tables[name] = np.delete(own, second, axis=1)
    sizes = network.joint([name])
    share = float(sizes[first] / max(sizes[first] + sizes[second], 1e-300))
    for child in network.dag.children(name):
        shaped, axis = _axis_of(network, child, name)
        moved = np.moveaxis(shaped.copy(), axis, 0)
        moved[first] = share * moved[first] + (1.0 - share) * moved[second]
        fewer = np.moveaxis(np.delete(moved, second, axis=0), 0, axis)
        tables[child] = fewer.reshape(-1, shaped.shape[-1])
    return tables


def worst_state(network: Network, table: Table, name: str) -> int:
    """Return the state within which the observed children depend on each other most.

    Given the right hidden state, children without arcs among them are independent. The measure of a state is
    Σ_{pairs} N_k I_k(a; b), with the rows weighted by the probability of the state.
    """
    children = [child for child in network.dag.children(name) if child not in network.dag.hidden]
    unique = table.select(network.dag.observed).unique()
    responsibilities = network.hidden_probabilities(unique)[name]
    weights = np.asarray(unique.weights)
    measured = _Within(unique, children, responsibilities * weights[:, None])
    sizes = weights @ responsibilities
    misfits = [measured.dependence(state) for state in range(responsibilities.shape[1])]
    return int(np.lexsort((-sizes, -np.asarray(misfits)))[0])


@final
class _Within:
    """Dependence of pairs of columns within the states of a hidden variable."""

    def __init__(self, table: Table, children: Sequence[str], weights: FloatArray) -> None:
        self.codes = {child: np.asarray(table[child].codes, np.int64) for child in children}
        self.sizes = {child: table[child].cardinality for child in children}
        self.weights = weights

    def dependence(self, state: int) -> float:
        """Return Σ over pairs of N_k times their mutual information within the state."""
        total = 0.0
        for first, second in itertools.combinations(self.codes, 2):
            x, y = self.codes[first], self.codes[second]
            seen = (x >= 0) & (y >= 0)
            shape = (self.sizes[first], self.sizes[second])
            flat = x[seen] * shape[1] + y[seen]
            counts = np.bincount(flat, self.weights[seen, state], shape[0] * shape[1]).reshape(shape)
            expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1e-300)
            here = counts > 1e-12
            total += float((counts[here] * np.log(counts[here] / expected[here])).sum())
        return total


def nearest_states(network: Network, name: str) -> tuple[int, int]:
    """Return the two states whose union loses least: sizes times the divergences of the children's rows, least first.

    For states of sizes a and b the loss of one child is a KL(p_a ‖ m) + b KL(p_b ‖ m), m their weighted mean.
    """
    sizes = network.joint([name])
    tables = []
    for child in network.dag.children(name):
        shaped, axis = _axis_of(network, child, name)
        tables.append(np.moveaxis(shaped, axis, 0).reshape(len(sizes), -1, shaped.shape[-1]))
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    losses = [sum(_loss(table, sizes, pair) for table in tables) for pair in pairs]
    return pairs[int(np.argmin(losses))]


def _loss(table: FloatArray, sizes: FloatArray, pair: tuple[int, int]) -> float:
    """Return the loss of one child, averaged over the configurations of its other parents; table (states, l, k)."""
    first, second = pair
    share = sizes[first] / max(sizes[first] + sizes[second], 1e-300)
    mean = share * table[first] + (1.0 - share) * table[second]
    total = 0.0
    for state in pair:
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(table[state] > 0.0, table[state] * np.log(table[state] / mean), 0.0)
        total += float(sizes[state] * terms.sum(axis=1).mean())
    return total


def _axis_of(network: Network, child: str, name: str) -> tuple[FloatArray, int]:
    """Return a child's table with one axis for each parent and one for itself, and which axis is `name`."""
    layout = network.layout
    parents = network.dag.parents(child)
    shape = [layout.cardinalities[layout.index[parent]] for parent in parents]
    table = network.tables[child]
    return table.reshape(*shape, table.shape[1]), parents.index(name)
