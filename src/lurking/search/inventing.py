"""Inventing hidden variables: propose, refine by structural EM, choose the states, accept by sampled evidence.

The loop begins with the best structure found without hidden variables. Each round proposes hidden variables at
signatures and in canonical places, sorts the proposals by a cheap score, refines the best of them, and compares the
best of those with the current structure by evidence that is exact or sampled, never a bound. A difference counts when
it exceeds its standard error. The loop ends when none does, so the outcome is never below the structure it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

from lurking.data.table import Table
from lurking.errors import TooLarge
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.learn.loop import Status
from lurking.runtime.progress import Progress, Silent
from lurking.search.cardinality import CONTENDER, MOST_STATES, scan_states
from lurking.search.clock import Clock
from lurking.search.constraints import Constraints
from lurking.search.judge import Judge, is_better
from lurking.search.posterior import StructurePosterior
from lurking.search.proposals import Proposal, Proposer, extended
from lurking.search.structural_em import structural_em

MOST_CONTENDERS = 12
REFINING_ROUNDS = 12
REFINING_RESTARTS = 4


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


@dataclass(frozen=True)
class InventRules:
    """How far to go.

    most_hidden : the most hidden variables.
    most_states : the most states of each.
    refined : proposals of each number of hidden variables that structural EM refines in a round.
    sampled : refined ones of each number of hidden variables that are judged by sampled evidence in a round.
    """

    most_hidden: int
    most_states: int = MOST_STATES
    refined: int = 4
    sampled: int = 2
    progress: Progress = field(default_factory=Silent)


@dataclass(frozen=True)
class _Candidate:
    """A proposal on its way, with its cheap score."""

    dag: Dag
    source: str
    invented: tuple[str, ...]
    cheap: float


def invent(
    starts: Sequence[Dag],
    constraints: Constraints,
    judge: Judge,
    rules: InventRules,
    clock: Clock,
    without: Callable[[Dag], Dag] | None = None,
) -> Invented:
    """Return the best structure with at most `most_hidden` hidden variables that the loop meets.

    starts : structures to begin with, of which that of highest evidence is the current one.
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
        self.history: list[Trial] = []
        self.current: Dag | None = None
        self.n_fitted = 0

    def run(self, starts: Sequence[Dag]) -> None:
        """Judge the starts, then add hidden variables as long as evidence speaks for them."""
        try:
            for start in starts:
                self.consider(start, "start")
            if self.rules.most_hidden == 0 or self.clock.is_over:
                return
            proposer = Proposer(self.table, self.constraints)
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
        candidates = self.screened(proposer.proposals(current, room), room) if room > 0 else []
        refined = self.distinct([self.refined(candidate) for candidate in self.top(candidates, self.rules.refined)])
        judged = self.top(refined, self.rules.sampled)
        for candidate in judged:
            for dag in self.sizes(candidate, proposer):
                self.consider(dag, candidate.source)
        if self.now is current:
            return False
        self.reconsidered()
        return len(self.now.hidden) < self.rules.most_hidden and self.now is not current

    @property
    def now(self) -> Dag:
        """The best structure so far."""
        assert self.current is not None, "nothing was judged"
        return self.current

    def screened(self, proposals: Sequence[Proposal], room: int) -> list[_Candidate]:
        """Return the proposals with their cheap scores."""
        self.announce(f"{len(self.now.hidden) + 1} hidden, proposals", len(proposals))
        result = []
        for number, proposal in enumerate(proposals):
            if self.clock.is_over:
                break
            made = self.candidate(proposal.dag, proposal.source, proposal.invented)
            if made is not None and len(proposal.invented) <= room:
                result.append(made)
            self.rules.progress.update(number + 1)
        return result

    def candidate(self, dag: Dag, source: str, invented: tuple[str, ...]) -> _Candidate | None:
        """Return a structure with its cheap score; None where it cannot be computed or no hidden variable is left."""
        kept = dag.pruned()
        if len(kept.hidden) <= len(self.now.hidden):
            return None
        try:
            cheap = self.judge.cheap(kept)
        except TooLarge:
            return None
        self.n_fitted += 1
        return _Candidate(kept, source, tuple(name for name in invented if name in kept.hidden), cheap)

    def top(self, candidates: Iterable[_Candidate | None], count: int) -> list[_Candidate]:
        """Return the best of each number of hidden variables, the best of all first."""
        known = [candidate for candidate in candidates if candidate is not None]
        known.sort(key=lambda candidate: (-candidate.cheap, str(candidate.dag)))
        taken: dict[int, int] = {}
        result = []
        for candidate in known:
            number = len(candidate.dag.hidden)
            taken[number] = taken.get(number, 0) + 1
            if taken[number] <= count:
                result.append(candidate)
        return result

    def distinct(self, candidates: Iterable[_Candidate | None]) -> list[_Candidate]:
        """Return each structure once, with the best cheap score it got."""
        found: dict[Dag, _Candidate] = {}
        for candidate in candidates:
            if candidate is not None:
                key = candidate.dag.canonical()
                if key not in found or candidate.cheap > found[key].cheap:
                    found[key] = candidate
        return list(found.values())

    def refined(self, candidate: _Candidate) -> _Candidate | None:
        """Return the candidate after structural EM, the choice of states, and structural EM again if these changed."""
        self.announce(f"{len(self.now.hidden) + 1} hidden, refining", 1)
        dag = self.rearranged(candidate.dag)
        sized = dag
        for name in candidate.invented:
            if name in sized.hidden and not self.clock.is_over:
                sized = self.resized(sized, name)
        if sized.hidden != dag.hidden and not self.clock.is_over:
            sized = self.rearranged(sized)
        return self.candidate(sized, candidate.source, candidate.invented)

    def rearranged(self, dag: Dag) -> Dag:
        """Return the structure after structural EM; as it is when the time is over."""
        if self.clock.is_over:
            return dag
        found = structural_em(
            self.table,
            dag,
            score="vb",
            prior=self.judge.prior,
            constraints=extended(self.constraints, dag),
            max_rounds=REFINING_ROUNDS,
            restarts=REFINING_RESTARTS,
            seed=self.judge.seed,
            stop=self.clock.stop,
            time_limit=self.clock.left,
            workers=self.judge.workers,
        )
        self.n_fitted += len(found.history)
        self.judge.remember(found.fit)
        return found.best.pruned()

    def resized(self, dag: Dag, name: str) -> Dag:
        """Return the structure with the number of states of highest cheap score."""
        scores = scan_states(self.judge, dag, name, self.rules.most_states)
        self.n_fitted += len(scores)
        best = max(scores, key=lambda states: (scores[states], -states)) if scores else dag.hidden[name]
        return dag.with_hidden({name: best})

    def sizes(self, candidate: _Candidate, proposer: Proposer) -> list[Dag]:
        """Return what is judged of a candidate: itself, arcs between hidden variables, and near numbers of states."""
        variants = [candidate.dag]
        for dag in proposer.variants(candidate.dag):
            joined = self.candidate(dag, candidate.source, candidate.invented)
            if joined is not None and joined.cheap > candidate.cheap:
                variants.append(joined.dag)
        for name in candidate.invented:
            states = candidate.dag.hidden[name]
            for other in (states - 1, states + 1):
                sized = candidate.dag.with_hidden({name: other}) if 2 <= other <= self.rules.most_states else None
                if sized is not None and self.is_near(sized, candidate):
                    variants.append(sized)
        return variants

    def is_near(self, dag: Dag, candidate: _Candidate) -> bool:
        """Whether the cheap score is near enough for sampling to decide."""
        made = None if self.clock.is_over else self.candidate(dag, candidate.source, candidate.invented)
        return made is not None and made.cheap > candidate.cheap - CONTENDER

    def consider(self, dag: Dag, source: str) -> None:
        """Judge a structure, and make it the current one when its evidence is above by more than the errors."""
        if self.clock.is_over and self.current is not None:
            return
        if any(dag.same_structure(trial.dag) for trial in self.history):
            return
        self.announce(f"{len(dag.hidden)} hidden, sampling", 1)
        try:
            evidence = self.judge.evidence(dag)
        except TooLarge:
            return
        if evidence.status is Status.INTERRUPTED and self.current is not None:
            return
        is_kept = self.current is None or is_better(evidence, self.best_evidence)
        self.history.append(Trial(dag, source, evidence, is_kept))
        if is_kept:
            self.current = dag

    def reconsidered(self) -> None:
        """Search on from the accepted structure less its hidden variables: better arcs alone may do as well."""
        if self.without is None or self.clock.is_over:
            return
        dag = self.now
        edges = [pair for pair in dag.edges if not set(pair) & set(dag.hidden)]
        self.consider(self.without(Dag(dag.observed, edges)), "arcs alone")

    @property
    def best_evidence(self) -> Evidence:
        """The evidence of the current structure."""
        return next(trial.evidence for trial in reversed(self.history) if trial.is_kept)

    def announce(self, what: str, total: int) -> None:
        """Tell the progress what is done next, beside the best so far."""
        best = f" (best so far {self.best_evidence.log_z:.1f}, {len(self.now.hidden)} hidden)" if self.current else ""
        self.rules.progress.end()
        self.rules.progress.begin(what + best, total)

    def outcome(self) -> Invented:
        """Return the result."""
        if self.current is None:
            raise KeyboardInterrupt
        ranked = sorted(self.history, key=lambda trial: -trial.evidence.log_z)
        leaders = {len(trial.dag.hidden): trial for trial in reversed(ranked)}
        kept = ranked[:MOST_CONTENDERS]
        kept += [trial for trial in leaders.values() if trial not in kept]
        names = contender_names([trial.dag for trial in kept])
        dags, evidences = [trial.dag for trial in kept], [trial.evidence for trial in kept]
        posterior = StructurePosterior.from_evidence("ais", names, dags, evidences)
        status = self.clock.ending or Status.LOCAL_OPTIMUM
        return Invented(self.now, self.best_evidence, posterior, tuple(self.history), self.n_fitted, status)


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
