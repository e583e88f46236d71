"""What a hidden variable gains among the variables it concerns, found on these columns alone.

A proposal takes arcs away that the data may need, so its score before anything is repaired says little; and repairing
it among all variables takes long. Among the few variables that it touches both are cheap: the best structure without
the new variable is searched again on their columns, and the proposal is refined there by structural EM.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

from lurking.data.table import Table
from lurking.errors import CycleError, StructureError, TooLarge
from lurking.graph.dag import Dag
from lurking.graph.model_class import model_class
from lurking.search.cardinality import best_states
from lurking.search.constraints import Constraints
from lurking.search.contenders import around
from lurking.search.direct import DirectSearcher, neighbours
from lurking.search.exhaustive import Optima
from lurking.search.families import FamilyScores
from lurking.search.greedy import ClimbRules, climb
from lurking.search.judge import Judge
from lurking.search.notebook import Notebook
from lurking.search.proposals import Proposal
from lurking.search.splits import splits
from lurking.search.structural_em import structural_em
from lurking.search.surgery import with_hidden_instead, with_turned_children, with_turned_parents

MOST_COLUMNS = 12
LEAST_NEIGHBOURS = 3
"""A hidden variable with two neighbours only restates their table."""
ROUNDS = 8
RESTARTS = 3
MOST_DIRECT = 8
"""Neighbours of a new variable up to which all single moves among them are tried fit by fit."""
SPLITS = 2
"""Splits of the neighbours into parents and children from which direct search begins."""
CLOSE, MOST_CHANGED = 4.0, 3
"""Nats of the bound below a structure within which structures with one other edge are worth sampling, and how many."""
QUICK_ROUNDS = 3
QUICK_STATES = 3


@dataclass(frozen=True)
class LocalTrial:
    """A proposal refined among its own variables: the gain there in nats, and the structure put back in its place."""

    dag: Dag
    source: str
    invented: tuple[str, ...]
    gain: float


@final
class LocalTrials:
    """Tries proposals for one current structure; columns and outcomes that come again are looked up."""

    def __init__(
        self,
        current: Dag,
        constraints: Constraints,
        judge: Judge,
        scored: tuple[str, float],
        most: int,
        notebook: Notebook,
    ) -> None:
        self.current, self.constraints, self.judge, self.notebook = current, constraints, judge, notebook
        self.score, self.weight = scored
        self.most_states = most
        self._bases: dict[frozenset[str], float] = {}
        self._tables: dict[tuple[str, ...], Table] = {}
        # New ones for every trial: fits that another trial has left would make it matter which of them were looked up.
        self._judges: dict[tuple[str, ...], Judge] = {}
        # Direct search fits a structure in the same way whoever asks for it, so its fits may be looked up.
        self._searchers: dict[tuple[str, ...], DirectSearcher] = {}

    def trial(self, proposal: Proposal, quick: bool = False) -> LocalTrial | None:
        """Return the refined proposal; None where nothing is left of it or it is too large.

        A `quick` one has three states and a few rounds of structural EM, enough to see which proposals are worth more.
        """
        task = "glance" if quick else "trial"
        known = self.notebook.recall(task, self.current, proposal.dag)
        if known is None:
            found = self._trial(proposal, quick)
            known = {} if found is None else {"structure": found[0].to_text(), "gain": found[1]}
            if not self.judge.stop.is_set:
                self.notebook.note(known, task, self.current, proposal.dag)
        if not known:
            return None
        dag = Dag.parse(known["structure"])
        left = tuple(name for name in proposal.invented if name in dag.hidden)
        return LocalTrial(dag, proposal.source, left, known["gain"])

    def _trial(self, proposal: Proposal, quick: bool) -> tuple[Dag, float] | None:
        """Return the structure and what it gains."""
        nodes = self.concerned(proposal)
        inside = _restricted(proposal.dag, {*nodes, *proposal.invented})
        try:
            base = self.base(nodes)
            self._judges.clear()
            found = self.glanced(inside, proposal.invented) if quick else self.refined(inside, proposal.invented)
        except (TooLarge, StructureError):
            return None
        if found is None or not any(name in found[0].hidden for name in proposal.invented):
            return None
        dag, cheap = found
        whole = self.transplanted(dag, nodes)
        if whole is None or not self.constraints.extended(whole).holds(whole):
            return None
        return whole, cheap - base

    def searched(self, trial: LocalTrial) -> LocalTrial:
        """Return a trial after direct search among the neighbours of its hidden variable, where they are few.

        A hidden variable that structural EM lets say one thing seldom learns to say another one, since all expected
        counts speak for the first. So every move is fitted anew, from the arcs of the trial and from the hidden
        variable as the only parent of all its neighbours.
        """
        name = trial.invented[0]
        near = around(trial.dag, name)
        if len(trial.invented) > 1 or len(near) > MOST_DIRECT or any(node in trial.dag.hidden for node in near):
            return trial
        known = self.notebook.recall("direct", self.current, trial.dag)
        if known is None:
            best = self._searched(trial.dag, name, near)
            known = {} if best is None else {"structure": best[0].to_text(), "gain": best[1]}
            if not self.judge.stop.is_set:
                self.notebook.note(known, "direct", self.current, trial.dag)
        if not known or not known["gain"] > 0.0:
            return trial
        return replace(trial, dag=Dag.parse(known["structure"]), gain=trial.gain + known["gain"])

    def _searched(self, dag: Dag, name: str, near: set[str]) -> tuple[Dag, float] | None:
        """Return the structure with the best arcs found among some columns and a hidden variable, and their gain."""
        nodes = _wider(dag, near)
        inside = _restricted(dag, {*nodes, name})
        self._judges.clear()
        judge = self.judge_of(inside)
        rules = _restricted_rules(self.constraints, inside)
        searcher = self._searcher(judge, inside)
        found = []
        for start in self._starts(searcher, rules, inside, name, near):
            if judge.stop.is_set:
                break
            found.append(searcher.climb(start, rules.extended(start), patience=0).best)
        found = [each for each in found if has_enough_neighbours(each)]
        best = max(found, key=judge.cheap, default=None)
        whole = None if best is None else self.transplanted(best, nodes)
        if best is None or whole is None or not self.constraints.extended(whole).holds(whole):
            return None
        return whole, judge.cheap(best) - judge.cheap(inside)

    def changed(self, name: str) -> list[Dag]:
        """Return the current structure with one edge at a hidden variable changed, if the score allows it to be better.

        The variational bound is further below the evidence for larger tables, so structures that are up to `CLOSE` nats
        below the current one are returned too, the best first, and not more than `MOST_CHANGED`.
        """
        near = around(self.current, name)
        if len(near) > MOST_DIRECT or any(node in self.current.hidden for node in near):
            return []
        nodes = _wider(self.current, near)
        inside = _restricted(self.current, {*nodes, name})
        self._judges.clear()
        rules = _restricted_rules(self.constraints, inside).extended(inside)
        # One of each equivalence class: the others would only be turned into it.
        made = {model_class(dag): dag for move, dag in neighbours(inside, rules) if name in (move.parent, move.child)}
        made.pop(model_class(inside), None)
        values = self._searcher(self.judge_of(inside), inside).values([inside, *made.values()])
        close = [dag for dag in values if dag != inside and values[dag] > values.get(inside, math.inf) - CLOSE]
        whole = [self.transplanted(dag, {*nodes, name}) for dag in close if has_enough_neighbours(dag)]
        return [dag for dag in whole if dag is not None and self.constraints.extended(dag).holds(dag)][:MOST_CHANGED]

    def _searcher(self, judge: Judge, dag: Dag) -> DirectSearcher:
        """Return direct search over the nodes of a structure, on the columns of their judge."""
        if dag.nodes not in self._searchers:
            self._searchers[dag.nodes] = DirectSearcher(
                judge.table, prior=judge.prior, restarts=RESTARTS, seed=judge.seed, stop=judge.stop, workers=1
            )
        return self._searchers[dag.nodes]

    def _starts(
        self, searcher: DirectSearcher, rules: Constraints, inside: Dag, name: str, near: set[str]
    ) -> list[Dag]:
        """Return where direct search begins: the trial, its variable as the only parent, and the best splits."""
        members = [node for node in inside.nodes if node in near]
        star = Dag(inside.nodes, [(name, node) for node in members], inside.hidden)
        starts = [inside, star, star.with_hidden({name: 2})]
        optima = None
        if searcher.table.is_complete:
            optima = Optima(FamilyScores(searcher.table, self.score, self.weight), rules)
        made = splits(inside, name, inside.observed, optima)
        starts += list(searcher.values([each for each in made if rules.extended(each).holds(each)]))[:SPLITS]
        return [start for start in dict.fromkeys(starts) if rules.extended(start).holds(start)]

    def concerned(self, proposal: Proposal) -> set[str]:
        """Return the nodes of the current structure that a proposal touches, and those joined with two of them.

        Of hidden variables among them all neighbours come too.
        """
        before, after = set(self.current.edges), set(proposal.dag.edges)
        touched = {name for arc in before ^ after for name in arc if name not in proposal.invented}
        near = set(touched)
        for name in self.current.nodes:
            joined = {*self.current.parents(name), *self.current.children(name)}
            if len(joined & touched) >= 2:
                near.add(name)
        if len(near) > MOST_COLUMNS:
            near = touched
        # A hidden variable without all its neighbours would say something else here, or nothing.
        waiting = [name for name in near if name in self.current.hidden]
        while waiting:
            more = around(self.current, waiting.pop()) - near
            near |= more
            waiting += [name for name in more if name in self.current.hidden]
        return near

    def base(self, nodes: set[str]) -> float:
        """Return the score without the new variable: the best structure over these columns, exact where it can be."""
        key = frozenset(nodes)
        if key not in self._bases:
            self._judges.clear()
            start = _restricted(self.current, nodes)
            judge = self.judge_of(start)
            if start.hidden or not judge.table.is_complete:
                found = self.rearranged(start)
                self._bases[key] = judge.cheap(found)
            else:
                scorer = FamilyScores(judge.table, self.score, self.weight)
                rules = _restricted_rules(self.constraints, start).extended(start)
                ordered = Dag(judge.table.columns, start.edges)
                climbing = ClimbRules(patience=10, stop=self.judge.stop)
                self._bases[key] = climb(scorer, ordered, rules.restricted(ordered.nodes), climbing).score
        return self._bases[key]

    def refined(self, start: Dag, invented: tuple[str, ...]) -> tuple[Dag, float] | None:
        """Return the structure after the choice of states and structural EM, and its cheap score.

        Before arcs are repaired, further states stand in for them; so from the start fewer states are tried as well.
        """
        judge = self.judge_of(start)
        dag = start
        for name in invented:
            if judge.stop.is_set:
                return None
            dag, _ = best_states(judge, dag, name, self.most_states, patience=1)
        dag = self.resized(self.rearranged(dag), invented)
        for name in invented:
            while dag.hidden.get(name, 0) > 2 and not judge.stop.is_set:
                states = {**dag.hidden, name: dag.hidden[name] - 1}
                fewer = self.rearranged(start.with_hidden({one: states.get(one, 2) for one in start.hidden}))
                if not judge.cheap(fewer) > judge.cheap(dag):
                    break
                dag = fewer
        dag = polished(judge, _restricted_rules(self.constraints, dag), dag, invented, self.rearranged)
        return (dag, judge.cheap(dag)) if has_enough_neighbours(dag) else None

    def glanced(self, start: Dag, invented: tuple[str, ...]) -> tuple[Dag, float] | None:
        """Return the structure after a few rounds of structural EM with three states, and its cheap score."""
        states = min(QUICK_STATES, self.most_states)
        dag = self.rearranged(start.with_hidden(dict.fromkeys(invented, states)), QUICK_ROUNDS)
        return (dag, self.judge_of(dag).cheap(dag)) if has_enough_neighbours(dag) else None

    def resized(self, dag: Dag, invented: tuple[str, ...]) -> Dag:
        """Return the structure with the best numbers of states of the new variables that are left."""
        judge = self.judge_of(dag)
        for name in invented:
            if name in dag.hidden and not judge.stop.is_set:
                dag, _ = best_states(judge, dag, name, self.most_states, patience=1)
        return dag

    def rearranged(self, dag: Dag, rounds: int = ROUNDS) -> Dag:
        """Return the structure after structural EM on its own columns."""
        judge = self.judge_of(dag)
        found = structural_em(
            judge.table,
            dag,
            score="vb",
            prior=judge.prior,
            constraints=_restricted_rules(self.constraints, dag).extended(dag),
            max_rounds=rounds,
            restarts=RESTARTS,
            patience=3,
            perturbations=0,
            seed=judge.seed,
            stop=judge.stop,
            workers=1,
        )
        judge.remember(found.fit)
        return found.best.pruned()

    def transplanted(self, inside: Dag, nodes: set[str]) -> Dag | None:
        """Return the current structure with the arcs among some nodes replaced; None where that closes a cycle."""
        edges = [pair for pair in self.current.edges if not (pair[0] in nodes and pair[1] in nodes)]
        kept = {
            name: states for name, states in self.current.hidden.items() if name not in nodes or name in inside.hidden
        }
        more = [name for name in inside.hidden if name not in self.current.hidden]
        names = [name for name in self.current.nodes if name not in self.current.hidden or name in kept]
        edges = [pair for pair in edges if pair[0] in names and pair[1] in names]
        hidden = {**kept, **inside.hidden}
        try:
            return Dag((*names, *more), [*edges, *inside.edges], hidden)
        except CycleError:
            return None

    def judge_of(self, dag: Dag) -> Judge:
        """Return the judge of the columns of a structure."""
        columns = tuple(name for name in self.judge.table.columns if name in dag.nodes)
        whole = self.judge
        if columns not in self._tables:
            self._tables[columns] = whole.table.select(columns).unique()
        if columns not in self._judges:
            table = self._tables[columns]
            self._judges[columns] = Judge(table, whole.prior, seed=whole.seed, workers=1, stop=whole.stop)
        return self._judges[columns]


def polished(
    judge: Judge, constraints: Constraints, dag: Dag, invented: Sequence[str], rearranged: Callable[[Dag], Dag]
) -> Dag:
    """Return what the single moves of structural EM do not find.

    Fewer edges around new variables, the variables themselves instead of their neighbours at the ends of edges, their
    own parents turned into children, and, where they have too many neighbours for direct search, children with edges
    among them turned into parents. `rearranged` is structural EM from a structure, `constraints` are those on the
    columns.
    """
    if judge.stop.is_set or not has_enough_neighbours(dag):
        return dag
    dag = thinned(judge, constraints, dag, invented)
    for name in invented:
        if name in dag.hidden:
            dag = _with_more_neighbours(judge, constraints, dag, name)
        for other in _turned(dag, name):
            if judge.stop.is_set or not constraints.extended(other).holds(other):
                continue
            found = rearranged(other)
            if has_enough_neighbours(found):
                found = thinned(judge, constraints, found, invented)
                dag = found if judge.cheap(found) > judge.cheap(dag) else dag
    return dag


def _turned(dag: Dag, name: str) -> list[Dag]:
    """Return the structures with a hidden variable turned round: parents as children, linked children as parents."""
    if name not in dag.hidden:
        return []
    is_wide = len(around(dag, name)) > MOST_DIRECT
    made = [with_turned_parents(dag, name), with_turned_children(dag, name) if is_wide else None]
    return [other for other in made if other is not None]


def _with_more_neighbours(judge: Judge, constraints: Constraints, dag: Dag, name: str) -> Dag:
    """Return the structure in which a hidden variable takes arcs over from its neighbours, where the bound rises."""
    for other in dag.observed:
        for made in with_hidden_instead(dag, name, other):
            if judge.stop.is_set or not constraints.extended(made).holds(made):
                continue
            if judge.cheap(made) > judge.cheap(dag):
                dag = made
                break
    return dag


def thinned(judge: Judge, constraints: Constraints, dag: Dag, invented: Sequence[str]) -> Dag:
    """Return the structure without arcs among neighbours of the new variables, as far as the bound rises.

    With such an arc the new variable learns to say something else, and then expected counts speak for the arc. So every
    arc is left out in turn, and the bound found anew.
    """
    rules = constraints.extended(dag)
    while not judge.stop.is_set:
        near = [around(dag, name) for name in invented if name in dag.hidden]
        inner = [arc for arc in dag.edges if any(set(arc) <= members for members in near)]
        fewer = [Dag(dag.nodes, [arc for arc in dag.edges if arc != left], dag.hidden) for left in inner]
        best = max((other for other in fewer if rules.holds(other)), key=judge.cheap, default=dag)
        if not judge.cheap(best) > judge.cheap(dag):
            break
        dag = best
    return dag


def has_enough_neighbours(dag: Dag) -> bool:
    """Whether every hidden variable has at least three neighbours; with two it only restates what they share."""
    return all(
        len(dag.parents(name)) + len(dag.children(name)) >= LEAST_NEIGHBOURS and name not in dag.barren
        for name in dag.hidden
    )


def _wider(dag: Dag, near: set[str]) -> set[str]:
    """Return some columns and those that are linked with two of them, unless these are too many for direct search.

    In a small table with one hidden variable they are all columns: a parent that is linked with nothing else shows only
    in the table of the hidden variable.
    """
    if len(dag.observed) <= MOST_DIRECT and len(dag.hidden) <= 1:
        return set(dag.observed)
    wider = {node for node in dag.observed if len(around(dag, node) & near) >= 2} | near
    return wider if len(wider) <= MOST_DIRECT else near


def _restricted(dag: Dag, nodes: set[str]) -> Dag:
    """Return the structure on some of its nodes with the arcs among them."""
    edges = [pair for pair in dag.edges if pair[0] in nodes and pair[1] in nodes]
    hidden = {name: states for name, states in dag.hidden.items() if name in nodes}
    return Dag([name for name in dag.nodes if name in nodes], edges, hidden)


def _restricted_rules(constraints: Constraints, dag: Dag) -> Constraints:
    """Return the constraints on the columns of a structure."""
    return constraints.restricted([name for name in constraints.variables if name in dag.nodes])
