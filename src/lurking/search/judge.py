"""The evidence by which structures with hidden variables are accepted, and the cheap score by which they are sorted.

A bound must not be set against an exact value: the variational bound of a structure with a hidden variable is low by an
unknown amount, while a structure over the observed variables alone is known exactly. So the cheap score sorts
candidates with hidden variables among themselves, and sampled evidence, with its standard error, decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.evaluation import evaluate
from lurking.graph.dag import Dag
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, fit_problem
from lurking.learn.loop import Status
from lurking.learn.options import AUTO, FitOptions
from lurking.models.prior import Prior
from lurking.runtime.checks import check_standard_error
from lurking.runtime.executor import StopFlag
from lurking.runtime.rng import Seed, plain_seed
from lurking.runtime.store import Key, Store, digest_of

TARGET = 0.3
MARGIN = 2.0
"""Standard errors of a difference that a difference must exceed."""
UNTRUSTED_MARGIN = 3.0
"""Nats that it must exceed as well when the diagnostics of a sampled value disagree. The weights of an annealed run
have the mean p(y), so by Markov's inequality they exceed it e³-fold with probability 0.05 at most."""
FIT_RESTARTS = 6
SAMPLING_RESTARTS = 10
HASTY_STEPS = 20
ROUGH_PASSES = (1 << 17, 1 << 18)
"""Passes after which a structure that is probably worse than the best so far is given up if it is far below."""
FAR = 3.0
"""Nats by which, beyond four standard errors, such a value must be below the best so far to be the last one."""
LOOSE = 50.0
"""Nats below the evidence of the best so far at which a variational bound is not looked into any further."""

Start = Mapping[str, Any]


@dataclass(frozen=True)
class _Effort:
    """What sampled evidence may cost: the standard error to go on for, and passes over the rows at most."""

    target: float
    passes: int | None = None


@final
class Judge:
    """Evidence and cheap scores of structures on one table, each found once; sampled ones are kept in `store` too.

    Parameters
    ----------
    table, prior : as in `lurking.score`.
    target : standard error of sampled evidence to go on for.
    stop : once it is set, fits and samplers end early and nothing that they leave is kept.
    """

    def __init__(
        self,
        table: Any,
        prior: Prior | float,
        *,
        seed: Seed = 0,
        target: float = TARGET,
        workers: int | None = None,
        stop: StopFlag | None = None,
        store: Store | None = None,
    ) -> None:
        self.table: Table = as_table(table)
        self.prior, self.seed = Prior.of(prior), plain_seed(seed)
        self.target = check_standard_error("target", target, TARGET)
        self.workers, self.stop, self.store = workers, stop or StopFlag(), store
        self._fits: dict[Dag, Fit] = {}
        self._agreed: set[Dag] = set()
        self._evidences: dict[tuple[Dag, _Effort], Evidence] = {}

    def fit(self, dag: Dag, start: Start | None = None, restarts: int = FIT_RESTARTS) -> Fit:
        """Return the variational fit of a structure, the best of those asked for so far; `start` is one more start."""
        known = self._fits.get(dag)
        if known is not None and start is None:
            return known
        options = self._options(restarts, start)
        made = fit_problem(Problem(dag, self.table, self.prior), "vb", options)
        self.remember(made)
        return self._fits.get(dag, made)

    def agreed_fit(self, dag: Dag) -> Fit:
        """Return the variational fit after starts were added until several agree, the best known fit among them."""
        known = self._fits.get(dag)
        if dag not in self._agreed:
            start = None if known is None else known.network.tables
            made = fit_problem(Problem(dag, self.table, self.prior), "vb", self._options(AUTO, start))
            self.remember(made)
            if made.status is not Status.INTERRUPTED:
                self._agreed.add(dag)
        return self.fit(dag)

    def remember(self, fit: Fit) -> None:
        """Keep a variational fit, where it was finished and is better than what is known."""
        dag = fit.problem.full_dag
        known = self._fits.get(dag)
        if fit.status is not Status.INTERRUPTED and (known is None or fit.objective > known.objective):
            self._fits[dag] = fit

    def cheap(self, dag: Dag) -> float:
        """Return the variational bound plus ln S, for sorting; exact where nothing is unobserved."""
        fit = self.fit(dag)
        return fit.objective + fit.problem.log_aliases

    def evidence(self, dag: Dag, rival: Evidence | None = None, log_odds: float = 0.0) -> Evidence:
        """Return ln p(y | structure): in closed form where possible, else sampled.

        With a `rival` the value may be rough where it is far below that, `log_odds` being the prior odds of the
        structure against it. A look that reaches the target is what full sampling would have returned, and what falls
        short of it is gone on from.
        """
        full = _Effort(self.target)
        known = self._known(dag, full)
        if known is not None:
            return known
        problem = Problem(dag, self.table, self.prior)
        if rival is not None:
            for passes in ROUGH_PASSES:
                effort = _Effort(self.target, passes)
                glance = self._known(dag, effort) or self._found(problem, effort)
                if glance.status is Status.SAMPLED or glance.kind is Kind.EXACT:
                    self._note(dag, full, glance)
                    return glance
                if glance.status is Status.INTERRUPTED or is_far_below(glance, rival, log_odds):
                    return glance
        return self._found(problem, full)

    def bound(self, dag: Dag) -> Evidence:
        """Return the variational bound, which stands for the evidence of a structure that is too large to sample."""
        fit = self.fit(dag)
        return Evidence(fit.objective, fit.problem.log_aliases, None, Kind.LOWER_BOUND, "vb", status=fit.status)

    def hasty_bound(self, dag: Dag) -> Evidence:
        """Return the variational bound after a few steps from one start, which nothing cuts short.

        It stands for the evidence of a structure that there was no time to sample.
        """
        options = FitOptions(restarts=1, seed=self.seed, workers=self.workers, max_iter=HASTY_STEPS)
        fit = fit_problem(Problem(dag, self.table, self.prior), "vb", options)
        return Evidence(fit.objective, fit.problem.log_aliases, None, Kind.LOWER_BOUND, "vb", status=Status.INTERRUPTED)

    def is_hopeless(self, dag: Dag, rival: Dag, lift: float = 0.0) -> bool:
        """Whether the bound of a structure is so far below the evidence of another that sampling would not help.

        The bound of the rival is below its evidence too; three times that, and `LOOSE` nats at least, is far. `lift` is
        what else speaks for the structure.
        """
        evidence = self.evidence(rival).log_z
        return self.cheap(dag) + lift < evidence - max(LOOSE, 3.0 * (evidence - self.cheap(rival)))

    def _known(self, dag: Dag, effort: _Effort) -> Evidence | None:
        key = (dag.canonical(), effort)
        if key not in self._evidences and (kept := self._recall(*key)) is not None:
            self._evidences[key] = kept
            if dag.hidden:
                self.agreed_fit(dag)  # as if the value had been sampled now: later steps depend on this fit
        return self._evidences.get(key)

    def _found(self, problem: Problem, effort: _Effort) -> Evidence:
        dag = problem.full_dag
        # The best mode known so far is one of the starts, so that sampling never begins below it.
        start = self.agreed_fit(dag).network.tables if dag.hidden else None
        limits = {"target": effort.target, "passes": effort.passes}
        found = _rightly_named(evaluate(problem, ["ais"], self._options(SAMPLING_RESTARTS, start), limits)["ais"])
        if found.status is not Status.INTERRUPTED:
            self._note(dag, effort, found)
        return found

    def _note(self, dag: Dag, effort: _Effort, found: Evidence) -> None:
        key = (dag.canonical(), effort)
        self._evidences[key] = found
        self._keep(*key, found)

    def _options(self, restarts: int | str, start: Start | None) -> FitOptions:
        return FitOptions(
            restarts=restarts,
            init=start,
            seed=self.seed,
            workers=self.workers,
            stop=self.stop,
            keep_interrupted=True,
            max_iter=500,
        )

    def _key(self, structure: Dag, effort: _Effort) -> Key | None:
        if self.store is None or not isinstance(self.seed, int):
            return None
        configuration = digest_of(self.prior.describe(), effort.target, effort.passes or 0, SAMPLING_RESTARTS, AUTO)
        return Key(self.table.digest, structure.to_text(), "ais", configuration, self.seed)

    def _recall(self, structure: Dag, effort: _Effort) -> Evidence | None:
        key = self._key(structure, effort)
        kept = self.store.get(key) if self.store is not None and key is not None else None
        if kept is None:
            return None
        kind, status = Kind(kept["kind"]), Status[kept["status"]]
        return _rightly_named(Evidence(kept["log_z"], 0.0, kept["std_error"], kind, "ais", status=status))

    def _keep(self, structure: Dag, effort: _Effort, evidence: Evidence) -> None:
        key = self._key(structure, effort)
        if self.store is not None and key is not None:
            content = {"log_z": evidence.log_z, "std_error": evidence.nominal_error}
            self.store.put(key, content | {"kind": evidence.kind.value, "status": evidence.status.name})


def _rightly_named(evidence: Evidence) -> Evidence:
    """Return evidence of the sampler under the name of the exact score where nothing had to be sampled."""
    return replace(evidence, method="exact") if evidence.kind is Kind.EXACT else evidence


def is_far_below(rough: Evidence, rival: Evidence, log_odds: float = 0.0) -> bool:
    """Whether a rough value is so far below a rival that a better one would not change the order.

    `log_odds` are the prior odds of the first against the rival, as in `is_better`.
    """
    errors = 4.0 * math.hypot(rough.nominal_error or 0.0, rival.nominal_error or 0.0)
    if Status.UNTRUSTED in (rough.status, rival.status):  # a wide error speaks for itself, a small one may be wrong
        errors = max(errors, UNTRUSTED_MARGIN)
    margin = FAR + errors
    return rough.log_z + log_odds < rival.log_z - margin


def is_better(candidate: Evidence, current: Evidence, log_odds: float = 0.0) -> bool:
    """Whether the first is more probable than the second by more than the standard errors of evidence leave open.

    `log_odds` are the prior odds of the first against the second, ln p(m₁) − ln p(m₂). A bound is never better, nor
    anything better than a bound.
    """
    if Kind.LOWER_BOUND in (candidate.kind, current.kind):
        return False
    margin = MARGIN * math.hypot(candidate.nominal_error or 0.0, current.nominal_error or 0.0)
    if Status.UNTRUSTED in (candidate.status, current.status):
        margin = max(margin, UNTRUSTED_MARGIN)
    if Status.INTERRUPTED in (candidate.status, current.status):
        return False
    return candidate.log_z - current.log_z + log_odds > margin
