"""The structures that were judged, one after the other, and the one that is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import final

from lurking.errors import TooLarge
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.graph.structure_priors import StructurePrior
from lurking.learn.loop import Status
from lurking.models.discrete.prior import prior_of_every_structure
from lurking.search.constraints import Constraints
from lurking.search.contenders import START, Trial, posterior_over
from lurking.search.judge import Judge, is_better
from lurking.search.posterior import StructurePosterior
from lurking.search.structural_em import completion_of
from lurking.search.summaries import Summarised, best_summarised
from lurking.search.surgery import dimension


@final
class Contest:
    """Keeps a structure until another one is more probable by more than the errors of evidence leave open.

    Of two with as many hidden variables the one with fewer parameters need only be ahead.
    One with more hidden variables must be so too when the tables of the other one that it does without may be
    summarised (`lurking.search.summaries`).
    """

    def __init__(self, judge: Judge, structure_prior: StructurePrior, constraints: Constraints) -> None:
        self.judge, self.structure_prior, self.constraints = judge, structure_prior, constraints
        self.history: list[Trial] = []
        self.current: Dag | None = None

    @property
    def now(self) -> Dag:
        """The structure that is kept."""
        assert self.current is not None, "nothing was judged"
        return self.current

    @property
    def evidence(self) -> Evidence:
        """The evidence of the structure that is kept."""
        return next(trial.evidence for trial in reversed(self.history) if trial.is_kept)

    def dimension(self, dag: Dag) -> int:
        """Return the number of free parameters of a structure."""
        table = self.judge.table
        return dimension(dag, {name: table[name].cardinality for name in table.columns})

    def log_prior(self, dag: Dag) -> float:
        """Return ln p(m) up to a constant."""
        return self.structure_prior.log_weight(dag, self.dimension(dag))

    def is_known(self, dag: Dag) -> bool:
        """Whether the structure was judged before."""
        return any(dag.same_structure(trial.dag) for trial in self.history)

    def is_below_start(self, evidence: Evidence) -> bool:
        """Whether evidence is below that of one of the starts."""
        return any(trial.source == START and trial.evidence.log_z > evidence.log_z for trial in self.history)

    def enter(self, dag: Dag, source: str, evidence: Evidence, simpler: bool = False) -> None:
        """Take in a structure with its evidence, and keep it if it is more probable than the one that is kept.

        One that is `simpler`, with fewer hidden variables, is kept unless the other one is more probable, and one with
        as many and fewer parameters if it is ahead at all. None with less evidence than a start is, whatever the prior
        says.
        """
        outdone_by: Summarised | None = None
        if self.current is None:
            is_kept = True
        elif self.is_below_start(evidence):
            is_kept = False
        elif simpler and len(dag.hidden) < len(self.now.hidden):
            is_needed, summarised = self._is_needed(self.now, self.evidence, dag, evidence)
            is_kept = not is_needed
            if summarised is not None:
                self._outdo(self.now, summarised)
        else:
            is_kept, outdone_by = self._is_needed(dag, evidence, self.now, self.evidence)
            is_kept = is_kept or self._is_leaner(dag, evidence)
        self.history.append(Trial(dag, source, evidence, is_kept, outdone_by))
        if is_kept:
            self.current = dag

    def _is_leaner(self, dag: Dag, evidence: Evidence) -> bool:
        """Whether a structure has fewer parameters than the one kept, as many hidden variables, and is ahead at all."""
        ahead = evidence.log_z + self.log_prior(dag) - self.evidence.log_z - self.log_prior(self.now)
        is_trusted = not {evidence.status, self.evidence.status} & {Status.UNTRUSTED, Status.INTERRUPTED}
        is_smaller = self.dimension(dag) < self.dimension(self.now)
        return len(dag.hidden) == len(self.now.hidden) and is_smaller and is_trusted and ahead > 0.0

    def _is_needed(self, more: Dag, its: Evidence, less: Dag, evidence: Evidence) -> tuple[bool, Summarised | None]:
        """Whether `more` is more probable than `less`, and the structure with summaries but for which it would be."""
        odds = self.log_prior(more) - self.log_prior(less)
        if not is_better(its, evidence, odds):
            return False, None
        if len(more.hidden) <= len(less.hidden):
            return True, None
        summarised = self._summarised(less, more)
        if summarised is None or is_better(its, evidence, odds - summarised.gain):
            return True, None
        return False, summarised

    def _summarised(self, less: Dag, more: Dag) -> Summarised | None:
        """Return what summaries do for a structure where another one has more hidden variables."""
        prior = prior_of_every_structure(self.judge.prior)
        try:
            completion = completion_of(self.judge.fit(less))
            return best_summarised(completion, less, more, prior, self.constraints, self.judge.stop)
        except TooLarge:
            return None

    def _outdo(self, dag: Dag, summarised: Summarised) -> None:
        """Note that a structure that was kept is not needed after all."""
        self.history = [replace(trial, outdone_by=summarised) if trial.dag == dag else trial for trial in self.history]

    def posterior(self) -> StructurePosterior:
        """Return the posterior over the structures that were judged."""
        return posterior_over(self.history, self.log_prior)
