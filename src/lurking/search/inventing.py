"""Inventing hidden variables: propose, refine by structural EM, choose the states, accept by sampled evidence.

The loop begins with the best structure found without hidden variables. Each round proposes hidden variables at
signatures and in canonical places, sorts the proposals by a cheap score, refines the best of them, and compares the
best of those with the current structure by evidence that is exact or sampled, never a bound, and by their prior
probabilities. A difference counts when it exceeds its standard error (`Contest`). The loop ends when none does, so the
outcome is never below the structure it began with.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from lurking.data.table import Table
from lurking.errors import LurkingWarning, TooLarge, UndefinedScore
from lurking.evidence.base import Evidence, Kind
from lurking.graph.dag import Dag
from lurking.graph.model_class import essential
from lurking.graph.structure_priors import UNIFORM, StructurePrior
from lurking.learn.loop import Status
from lurking.runtime.progress import Progress, Silent
from lurking.search.cardinality import CONTENDER, MOST_STATES, best_states
from lurking.search.clock import Clock
from lurking.search.constraints import Constraints
from lurking.search.contenders import START, Invented, Refined, around, distinct, top, worth_sampling
from lurking.search.contest import Contest
from lurking.search.judge import Judge
from lurking.search.local_trials import LocalTrial, LocalTrials, has_enough_neighbours, polished
from lurking.search.notebook import Notebook
from lurking.search.proposals import MOST_SPLIT_MEMBERS, Proposal, Proposer, most_parameters
from lurking.search.structural_em import structural_em
from lurking.search.surgery import with_merged_hidden, without_hidden

REFINING_ROUNDS = 8
REFINING_RESTARTS = 4
GLANCING = 0.3
"""Share of the time left that goes to a first look at all proposals."""


@dataclass(frozen=True)
class InventRules:
    """How far to go.

    most_hidden : the most hidden variables.
    most_states : the most states of each.
    refined : proposals of one and of two hidden variables that structural EM refines among all variables in a round.
    sampled : refined ones of each number of hidden variables that are judged by sampled evidence in a round.
    structure_prior : p(m); it decides between the structures that are judged.
    """

    most_hidden: int
    most_states: int = MOST_STATES
    refined: int = 4
    sampled: int = 2
    structure_prior: StructurePrior = UNIFORM
    scored: tuple[str, float] = ("bd", 1.0)
    """Name and weight of the family score that goes with the prior."""
    progress: Progress = field(default_factory=Silent)
    notebook: Notebook = field(default_factory=Notebook)


def invent(
    starts: Sequence[Dag],
    constraints: Constraints,
    judge: Judge,
    rules: InventRules,
    clock: Clock,
    without: Callable[[Dag], Dag] | None = None,
) -> Invented:
    """Return the best structure with at most `most_hidden` hidden variables that the loop meets.

    starts : structures to begin with, of which the most probable is the current one.
    judge : holds the data, the prior and the stop flag of the clock.
    without : given a structure over the columns, searches on from there without hidden variables; it makes sure that
        a hidden variable is not accepted for what better arcs among the columns do as well.
    """
    work = _Invention(constraints, judge, rules, clock, without)
    work.run(starts)
    return work.outcome()


@final
class _Invention:
    """Where the loop is."""

    def __init__(
        self,
        constraints: Constraints,
        judge: Judge,
        rules: InventRules,
        clock: Clock,
        without: Callable[[Dag], Dag] | None,
    ) -> None:
        self.table: Table = judge.table
        self.constraints, self.judge, self.rules, self.clock = constraints, judge, rules, clock
        self.without = without
        self.contest = Contest(judge, rules.structure_prior, constraints)
        self.n_fitted = 0
        self.has_dismissed = False

    def run(self, starts: Sequence[Dag]) -> None:
        """Judge the starts, then add hidden variables as long as evidence speaks for them."""
        try:
            for start in starts:
                self.consider(start, START)
            if self.rules.most_hidden == 0 or self.clock.is_over or self.contest.evidence.kind is Kind.LOWER_BOUND:
                return
            proposer = Proposer(self.table, self.constraints, self.clock.stop)
            while not self.clock.is_over and self.advanced(proposer):
                pass
        except KeyboardInterrupt:
            self.clock.stop.set()
        finally:
            self.rules.progress.end()

    def advanced(self, proposer: Proposer) -> bool:
        """Do one round; return whether another one has a sense."""
        current = self.now
        room = self.rules.most_hidden - len(current.hidden)
        if room > 0:
            refined = [self.refined(trial) for trial in self.tried(proposer, room)]
            for candidate in worth_sampling(top(distinct(refined), self.rules.sampled)):
                self.consider(candidate.dag, candidate.source)
            if self.now is current:
                return False
        self.simplified()
        self.varied(proposer)
        self.touched_up()
        return len(self.now.hidden) < self.rules.most_hidden and self.now is not current

    def tried(self, proposer: Proposer, room: int) -> list[LocalTrial]:
        """Return the proposals that gain most among their own variables, best first, singles and then pairs."""
        trials = self.local_trials()
        singles = self.best_trials(trials, proposer.proposals(self.now))
        if room < 2:
            return singles
        groups = dict.fromkeys(
            tuple(node for node in self.now.observed if node in around(trial.dag, trial.invented[0]))
            for trial in singles[: self.rules.refined]
        )
        if len(self.now.observed) <= MOST_SPLIT_MEMBERS:
            groups[self.now.observed] = None
        return singles + self.best_trials(trials, proposer.pairs(self.now, groups))

    def best_trials(self, trials: LocalTrials, proposals: Sequence[Proposal]) -> list[LocalTrial]:
        """Return the best different trials of some proposals: all at a glance, the most promising in full.

        With a time limit the glances take three tenths of what is left, so that something is judged at all.
        """
        left = self.clock.left
        enough = math.inf if left is None else time.monotonic() + GLANCING * left
        glances = self.attempts(trials, proposals, enough, quick=True)
        places = sorted(glances, key=lambda place: (-glances[place].gain, place))
        chosen = [proposals[place] for place in places[: 2 * self.rules.refined]]
        full = self.attempts(
            trials, chosen, math.inf if left is None else time.monotonic() + GLANCING * left, quick=False
        )
        found: dict[Dag, LocalTrial] = {}
        for trial in [*full.values(), *(glances[place] for place in places[: self.rules.refined])]:
            key = trial.dag.canonical()
            if key not in found or trial.gain > found[key].gain:
                found[key] = trial
        ranked = sorted(found.values(), key=lambda trial: (-trial.gain, str(trial.dag)))[: self.rules.refined]
        # What is best among few variables need not be best among all, so the trial itself stays beside it.
        found = {trial.dag.canonical(): trial for trial in ranked}
        for trial in ranked:
            if not self.clock.is_over:
                searched = trials.searched(trial)
                found.setdefault(searched.dag.canonical(), searched)
        return list(found.values())

    def attempts(
        self, trials: LocalTrials, proposals: Sequence[Proposal], enough: float, quick: bool
    ) -> dict[int, LocalTrial]:
        """Return {place of the proposal: its trial} of those tried in time."""
        what = "proposals" if quick else "best proposals"
        self.announce(f"{len(self.now.hidden) + 1} hidden, {what}", len(proposals))
        found: dict[int, LocalTrial] = {}
        for place, proposal in enumerate(proposals):
            if self.clock.is_over or time.monotonic() > enough:
                break
            trial = trials.trial(proposal, quick)
            self.n_fitted += 1
            self.rules.progress.update(place + 1)
            if trial is not None:
                found[place] = trial
        return found

    @property
    def now(self) -> Dag:
        """The best structure so far."""
        return self.contest.now

    def candidate(self, dag: Dag, source: str) -> Refined | None:
        """Return a structure with its cheap score; None where it cannot be computed or no hidden variable is left."""
        kept = dag.pruned()
        has_room = len(self.now.hidden) < len(kept.hidden) <= self.rules.most_hidden
        if not has_room or not has_enough_neighbours(kept) or not self.fits_data(kept):
            return None
        if essential(kept).hidden != kept.hidden:  # an equivalent structure does without
            return None
        try:
            cheap = self.judge.cheap(kept)
        except TooLarge:
            return None
        self.n_fitted += 1
        return Refined(kept, source, cheap)

    def refined(self, trial: LocalTrial) -> Refined | None:
        """Return a trial refined among all variables; None where that is too large or leaves nothing of it."""
        if self.clock.is_over:
            return None
        self.announce(f"{len(self.now.hidden) + 1} hidden, refining", 1)
        try:
            return self.candidate(self.settled(trial.dag, trial.invented), trial.source)
        except TooLarge:
            return None

    def settled(self, start: Dag, names: Sequence[str]) -> Dag:
        """Return a structure after structural EM, the choice of states, and again if these changed."""
        dag = sized = self.rearranged(start)
        for name in names:
            if name in sized.hidden and not self.clock.is_over:
                sized, tried = best_states(self.judge, sized, name, self.rules.most_states)
                self.n_fitted += tried
        if sized.hidden != dag.hidden and not self.clock.is_over:
            sized = self.rearranged(sized)
        return polished(self.judge, self.constraints, sized, names, self.rearranged)

    def rearranged(self, dag: Dag) -> Dag:
        """Return the structure after structural EM; as it is when the time is over."""
        if self.clock.is_over:
            return dag
        known = self.rules.notebook.recall("refined", dag) or self._rearranged(dag)
        self.n_fitted += known["moves"]
        best = Dag.parse(known["structure"])
        # From the noted tables also when they are new, so that nothing depends on whether they were noted.
        self.judge.fit(best, {name: np.asarray(table) for name, table in known["tables"].items()}, 1)
        return best.pruned()

    def _rearranged(self, dag: Dag) -> dict[str, Any]:
        found = structural_em(
            self.table,
            dag,
            score="vb",
            prior=self.judge.prior,
            constraints=self.constraints.extended(dag),
            max_rounds=REFINING_ROUNDS,
            restarts=REFINING_RESTARTS,
            patience=3,
            perturbations=0,
            seed=self.judge.seed,
            stop=self.clock.stop,
            time_limit=self.clock.left,
            workers=self.judge.workers,
        )
        tables = {name: table.tolist() for name, table in found.fit.network.tables.items()}
        content = {"structure": found.best.to_text(), "tables": tables, "moves": len(found.history)}
        if not self.clock.is_over:
            self.rules.notebook.note(content, "refined", dag)
        return content

    def varied(self, proposer: Proposer) -> None:
        """Judge the neighbours of the accepted structure: other numbers of states, arcs between hidden variables."""
        dag = self.now
        others = [dag.with_hidden({name: states + step}) for name, states in dag.hidden.items() for step in (-1, 1)]
        others = [other for other in others if all(2 <= r <= self.rules.most_states for r in other.hidden.values())]
        others = [other for other in others if self.fits_data(other)]
        mark = self.judge.cheap(dag)
        for other in others + proposer.variants(dag):
            if self.clock.is_over:
                return
            self.n_fitted += 1
            try:
                is_near = self.judge.cheap(other) > mark - CONTENDER
            except TooLarge:
                continue
            if is_near:
                self.consider(other, "another number of states" if other.edges == dag.edges else "joined")

    def touched_up(self) -> None:
        """Evaluate structures with one other edge at a hidden variable until none is kept."""
        known: Dag | None = None
        while self.now is not known and not self.clock.is_over:
            known = self.now
            trials = self.local_trials()
            for other in [made for name in known.hidden for made in trials.changed(name)]:
                if self.fits_data(other):
                    self.consider(other, "another edge")

    def local_trials(self) -> LocalTrials:
        """Return the trials of proposals for the current structure."""
        rules = self.rules
        return LocalTrials(self.now, self.constraints, self.judge, rules.scored, rules.most_states, rules.notebook)

    def simplified(self) -> None:
        """Keep a hidden variable only if the evidence for it is beyond the error.

        Every structure with one hidden variable less, left out or merged with another one, is refined and judged.
        """
        dag = self.now
        fewer = [without_hidden(dag, name) for name in dag.hidden]
        merged = [with_merged_hidden(dag, *pair) for pair in itertools.combinations(dag.hidden, 2)]
        fewer += [each for each in merged if each is not None and self.constraints.extended(each).holds(each)]
        for start in fewer:
            if self.clock.is_over:
                return
            try:
                if not start.hidden and self.without is not None:
                    other = self.without(Dag(self.table.columns, start.edges))
                else:
                    other = self.settled(start, tuple(start.hidden))
            except TooLarge:
                continue
            if has_enough_neighbours(other):
                self.consider(other, "one hidden variable less")

    def consider(self, dag: Dag, source: str) -> None:
        """Judge a structure, or the one that stands for its class; it may become the current one (`Contest.enter`)."""
        contest = self.contest
        if contest.history and (self.clock.is_over or contest.is_known(dag)):
            return
        self.announce(f"{len(dag.hidden)} hidden, sampling", 1)
        odds = 0.0
        try:
            if contest.history:
                dag = contest.representative(dag)
                if contest.is_known(dag):
                    return
                lift = contest.advantage(dag, self.now) if len(dag.hidden) < len(self.now.hidden) else 0.0
                if self.judge.is_hopeless(dag, self.now, lift):
                    self.has_dismissed = self.has_dismissed or bool(dag.hidden)
                    return
                odds = lift + contest.log_prior(dag) - contest.log_prior(self.now)
            evidence = self.judge.evidence(dag, self.rival(dag, odds), odds)
        except (TooLarge, UndefinedScore) as error:
            if contest.history:
                return
            if self.judge.stop.is_set:  # the sampler ended before its chains said anything
                evidence = self.judge.hasty_bound(dag)
            else:
                told = f"the structure is judged by a bound, and no hidden variable is tried: {error}"
                warnings.warn(told, LurkingWarning, stacklevel=2)
                evidence = self.judge.bound(dag)
        except KeyboardInterrupt:
            if contest.history:
                raise
            self.clock.stop.set()
            evidence = self.judge.hasty_bound(dag)
        if evidence.status is Status.INTERRUPTED and contest.history:
            return
        contest.enter(dag, source, evidence)

    def rival(self, dag: Dag, log_odds: float) -> Evidence | None:
        """Return the evidence of the current structure, unless the bound alone puts another one ahead of it."""
        if not self.contest.history or self.judge.cheap(dag) + log_odds > self.contest.evidence.log_z:
            return None
        return self.contest.evidence

    def fits_data(self, dag: Dag) -> bool:
        """Whether the data can carry the parameters of a structure."""
        return self.contest.dimension(dag) <= most_parameters(self.table)

    def announce(self, what: str, total: int) -> None:
        """Tell the progress what is done next, beside the best so far."""
        contest = self.contest
        has_best = bool(contest.history)
        best = f" (best so far {contest.evidence.log_z:.1f}, {len(self.now.hidden)} hidden)" if has_best else ""
        self.rules.progress.end()
        self.rules.progress.begin(what + best, total)

    def outcome(self) -> Invented:
        """Return the result."""
        contest = self.contest
        if not contest.history:
            raise KeyboardInterrupt
        status = self.clock.ending or Status.LOCAL_OPTIMUM
        posterior, history = contest.posterior(), tuple(contest.history)
        prior = self.rules.structure_prior
        found = (self.now, contest.evidence, posterior, history, self.n_fitted, status, prior)
        return Invented(*found, has_dismissed=self.has_dismissed)
