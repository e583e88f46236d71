"""The structures that were judged, one after the other, and the one that is kept."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import final

from lurking.errors import TooLarge
from lurking.evidence.base import Evidence, Kind
from lurking.graph.dag import Dag
from lurking.graph.equivalence import cpdag
from lurking.graph.model_class import model_class
from lurking.graph.structure_priors import StructurePrior
from lurking.learn.loop import Status
from lurking.models.layout import Layout
from lurking.models.prior import prior_of_every_structure
from lurking.search.constraints import Constraints
from lurking.search.contenders import START, Outdone, Trial, around, posterior_over
from lurking.search.judge import Judge, is_better
from lurking.search.posterior import StructurePosterior
from lurking.search.representatives import representative, turned_tables
from lurking.search.structural_em import completion_of
from lurking.search.summaries import best_summarised, summarised

NEGLIGIBLE = 15.0
"""Nats below the structure that is kept at which one with more hidden variables needs no check of its summaries."""


@final
class Contest:
    """Keeps a structure until another one is more probable by more than the errors of evidence leave open.

    Of two with as many hidden variables the one with fewer parameters need only be ahead. One with more hidden
    variables must be more probable by plain tables, and also when both structures may have summaries in their tables
    (`lurking.search.summaries`); where it is not, the one with fewer takes its place.
    """

    def __init__(self, judge: Judge, structure_prior: StructurePrior, constraints: Constraints) -> None:
        self.judge, self.structure_prior, self.constraints = judge, structure_prior, constraints
        self.history: list[Trial] = []
        self.current: Dag | None = None
        self._advantages: dict[tuple[Dag, Dag], Outdone | None] = {}

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
        return Layout(dag, {**{name: table[name].cardinality for name in table.columns}, **dag.hidden}).dimension

    def log_prior(self, dag: Dag) -> float:
        """Return ln p(m) up to a constant."""
        return self.structure_prior.log_weight(dag, self.dimension(dag))

    def is_known(self, dag: Dag) -> bool:
        """Return True if the structure, or with hidden variables one of its equivalence class, was evaluated before."""
        if dag.hidden:
            key = model_class(dag)
            return any(trial.dag.hidden and model_class(trial.dag) == key for trial in self.history)
        return any(dag.same_structure(trial.dag) for trial in self.history)

    def representative(self, dag: Dag) -> Dag:
        """Return the structure that stands for the class of another one, with its fit carried over as a start."""
        member = representative(dag, self.constraints)
        if member is not dag and not self.is_known(member):
            tables = self.judge.fit(dag).network.tables
            self.judge.fit(member, turned_tables(dag, tables, member))
        return member

    def is_below_start(self, evidence: Evidence) -> bool:
        """Whether evidence is below that of one of the starts."""
        return any(trial.source == START and trial.evidence.log_z > evidence.log_z for trial in self.history)

    def enter(self, dag: Dag, source: str, evidence: Evidence) -> None:
        """Take in a structure with its evidence, and keep it if it is more probable than the one that is kept.

        One with fewer hidden variables is kept unless another one is more probable, and one with as many and fewer
        parameters if it is ahead at all. None with less evidence than a start is, whatever the prior says.
        """
        lines = cpdag(dag, self.constraints.settled(dag)).undirected
        trial = Trial(dag, source, evidence, False, lines=lines)
        if self.current is None:
            is_kept = True
        elif self.is_below_start(evidence) or evidence.status is Status.INTERRUPTED or self._is_bound(evidence):
            is_kept = False
        elif len(dag.hidden) < len(self.now.hidden):
            is_kept = self._is_enough(trial)
        else:
            is_kept, trial = self._challenged(trial)
        self.history.append(replace(trial, is_kept=is_kept))
        if is_kept:
            self.current = dag

    def _is_bound(self, evidence: Evidence) -> bool:
        """Whether this evidence or that of the structure that is kept is a bound, which nothing can be set against."""
        return Kind.LOWER_BOUND in (evidence.kind, self.evidence.kind)

    def _is_enough(self, trial: Trial) -> bool:
        """Whether nothing that was judged is more probable than a simpler structure, but what summaries outdo.

        The one that is kept is not enough to look at: another one may be ahead of both that is ahead of neither by
        more than the errors of the first comparison.
        """
        outdone = {}
        for each in self.history:
            if each.outdone_by is not None or not self._is_ahead(each, trial):
                continue
            found = self._outdone(each, trial) if len(each.dag.hidden) > len(trial.dag.hidden) else None
            if found is None:
                return False
            outdone[id(each)] = found
        self.history = [replace(each, outdone_by=outdone.get(id(each), each.outdone_by)) for each in self.history]
        return True

    def _challenged(self, trial: Trial) -> tuple[bool, Trial]:
        """Whether a structure takes the place of the one that is kept, and the trial with what outdoes it, if any."""
        kept = next(each for each in reversed(self.history) if each.is_kept)
        if not self._is_ahead(trial, kept) and not self._is_leaner(trial, kept):
            return False, trial
        rivals = [each for each in self.history if len(each.dag.hidden) < len(trial.dag.hidden)]
        if rivals:
            rival = max(rivals, key=lambda each: each.evidence.log_z + self.log_prior(each.dag))
            outdone = self._outdone(trial, rival)
            if outdone is not None or self.judge.stop.is_set:
                return False, replace(trial, outdone_by=outdone)
        return True, trial

    def _is_ahead(self, trial: Trial, other: Trial, lift: float = 0.0) -> bool:
        """Whether one is more probable by more than the errors leave open, `lift` being what the other gains."""
        odds = self.log_prior(trial.dag) - self.log_prior(other.dag) - lift
        return is_better(trial.evidence, other.evidence, odds)

    def _is_leaner(self, trial: Trial, kept: Trial) -> bool:
        """Whether a structure has fewer parameters than the one kept, as many hidden variables, and is ahead at all."""
        ahead = trial.evidence.log_z + self.log_prior(trial.dag) - kept.evidence.log_z - self.log_prior(kept.dag)
        is_trusted = not {trial.evidence.status, kept.evidence.status} & {Status.UNTRUSTED, Status.INTERRUPTED}
        is_smaller = self.dimension(trial.dag) < self.dimension(kept.dag)
        return len(trial.dag.hidden) == len(kept.dag.hidden) and is_smaller and is_trusted and ahead > 0.0

    def _outdone(self, more: Trial, less: Trial) -> Outdone | None:
        """Return what outdoes a structure with more hidden variables when both may have summaries; None if nothing."""
        found = self._with_summaries(less.dag, more.dag)
        if found is None or self._is_ahead(more, less, found.advantage):
            return None
        return replace(found, log_z=less.evidence.log_z + found.by.gain)

    def advantage(self, less: Dag, more: Dag) -> float:
        """Return how much more summaries do for the structure with fewer hidden variables, in nats of probability."""
        found = self._with_summaries(less, more)
        return 0.0 if found is None else found.advantage

    def _with_summaries(self, less: Dag, more: Dag) -> Outdone | None:
        """Return both structures with summaries in the tables that they do not share; None where that is too large.

        Arcs among these nodes may change in the one with fewer hidden variables, since it was not searched for with
        summaries.
        """
        key = (less, more)
        if key not in self._advantages:
            self._advantages[key] = self._compared(less, more)
        return self._advantages[key]

    def _compared(self, less: Dag, more: Dag) -> Outdone | None:
        invented = [name for name in more.hidden if name not in less.nodes]
        nodes = {node for name in invented for node in around(more, name)} | set(invented)
        nodes |= {node for node in less.nodes if node not in more.nodes}
        both = [node for node in less.nodes if node in more.nodes]
        nodes |= {node for node in both if set(less.parents(node)) != set(more.parents(node))}
        prior = prior_of_every_structure(self.judge.prior)
        try:
            rival = summarised(completion_of(self.judge.fit(more)), more, nodes, prior)
            completion = completion_of(self.judge.fit(less))
            by = best_summarised(completion, less, nodes, prior, self.constraints, self.judge.stop)
        except TooLarge:
            return None
        odds = self.log_prior(by.dag) - self.log_prior(less)
        advantage = by.gain - rival.gain + odds if math.isfinite(odds) else 0.0
        return Outdone(by, rival, max(advantage, 0.0), math.nan)

    def log_weight(self, trial: Trial) -> float:
        """Return ln of the weight that evidence is multiplied with: p(m), and what summaries do beside the one kept."""
        weight, ours = self.log_prior(trial.dag), self.log_prior(self.now)
        if len(trial.dag.hidden) < len(self.now.hidden):
            return weight + self.advantage(trial.dag, self.now)
        is_near = trial.evidence.log_z + weight > self.evidence.log_z + ours - NEGLIGIBLE
        if len(trial.dag.hidden) > len(self.now.hidden) and is_near:
            return weight - self.advantage(self.now, trial.dag)
        return weight

    def posterior(self) -> StructurePosterior:
        """Return the posterior over the structures that were judged."""
        return posterior_over(self.history, self.log_weight)
