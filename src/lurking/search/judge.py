"""The evidence by which structures with hidden variables are accepted, and the cheap score by which they are sorted.

A bound must not be set against an exact value: the variational bound of a structure with a hidden variable is low by an
unknown amount, while a structure over the observed variables alone is known exactly. So the cheap score sorts
candidates with hidden variables among themselves, and sampled evidence, with its standard error, decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

from lurking.data.table import Table
from lurking.evidence.base import Evidence, Kind, evaluate
from lurking.graph.dag import Dag
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, FitOptions, fit_problem
from lurking.learn.loop import Status
from lurking.models.discrete.prior import Prior
from lurking.runtime.executor import StopFlag
from lurking.runtime.rng import Seed
from lurking.runtime.store import Key, Store, digest_of

TARGET = 0.3
MARGIN = 2.0
"""Standard errors of a difference that a difference must exceed."""
UNTRUSTED_MARGIN = 3.0
"""Nats that it must exceed as well when the diagnostics of a sampled value disagree. The weights of an annealed run
have the mean p(y), so by Markov's inequality they exceed it e³-fold with probability 0.05 at most."""
FIT_RESTARTS = 6
SAMPLING_RESTARTS = 10

Start = Mapping[str, Any]


@final
class Judge:
    """Evidence and cheap scores of structures on one table, each found once; sampled ones are kept in `store` too.

    Parameters
    ----------
    target : standard error of sampled evidence to go on for.
    stop : once it is set, fits and samplers end early and nothing that they leave is kept.
    """

    def __init__(
        self,
        table: Table,
        prior: Prior,
        *,
        seed: Seed = 0,
        target: float = TARGET,
        workers: int | None = None,
        stop: StopFlag | None = None,
        store: Store | None = None,
    ) -> None:
        self.table, self.prior, self.seed, self.target = table, prior, seed, target
        self.workers, self.stop, self.store = workers, stop or StopFlag(), store
        self._fits: dict[Dag, Fit] = {}
        self._evidences: dict[Dag, Evidence] = {}
        self._configuration = digest_of(prior.describe(), target, SAMPLING_RESTARTS)

    @property
    def evidences(self) -> Mapping[Dag, Evidence]:
        """What was judged so far, by canonical structure."""
        return self._evidences

    def fit(self, dag: Dag, start: Start | None = None, restarts: int = FIT_RESTARTS) -> Fit:
        """Return the variational fit of a structure, the best of those asked for so far; `start` is one more start."""
        known = self._fits.get(dag)
        if known is not None and start is None:
            return known
        options = self._options(restarts, start)
        made = fit_problem(Problem(dag, self.table, self.prior), "vb", options)
        if known is None or made.objective > known.objective:
            self._fits[dag] = made
        return self._fits[dag]

    def remember(self, fit: Fit) -> None:
        """Take over a variational fit that was made elsewhere, where it is better than what is known."""
        dag = fit.problem.full_dag
        known = self._fits.get(dag)
        if fit.status is not Status.INTERRUPTED and (known is None or fit.objective > known.objective):
            self._fits[dag] = fit

    def cheap(self, dag: Dag) -> float:
        """Return the variational bound plus ln S, for sorting; exact where nothing is unobserved."""
        fit = self.fit(dag)
        return fit.objective + fit.problem.log_aliases

    def evidence(self, dag: Dag) -> Evidence:
        """Return ln p(y | structure): in closed form where possible, else sampled."""
        key = dag.canonical()
        known = self._evidences.get(key)
        if known is None:
            kept = self._recall(key)
            known = self._sampled(dag) if kept is None else kept
            if known.status is not Status.INTERRUPTED:
                self._evidences[key] = known
                if kept is None:
                    self._keep(key, known)
        return known

    def _sampled(self, dag: Dag) -> Evidence:
        known = self._fits.get(dag)
        # The best mode known so far is one of the starts, so that sampling never begins below it.
        start = None if known is None or not dag.hidden else known.network.tables
        problem = Problem(dag, self.table, self.prior)
        return evaluate(problem, ["ais"], self._options(SAMPLING_RESTARTS, start), {"target": self.target})["ais"]

    def _options(self, restarts: int, start: Start | None) -> FitOptions:
        return FitOptions(
            restarts=restarts,
            init=start,
            seed=self.seed,
            workers=self.workers,
            stop=self.stop,
            keep_interrupted=True,
            max_iter=500,
        )

    def _key(self, structure: Dag) -> Key | None:
        if self.store is None or not isinstance(self.seed, int):
            return None
        return Key(self.table.digest, structure.to_text(), "ais", self._configuration, self.seed)

    def _recall(self, structure: Dag) -> Evidence | None:
        key = self._key(structure)
        kept = self.store.get(key) if self.store is not None and key is not None else None
        if kept is None:
            return None
        return Evidence(kept["log_z"], 0.0, kept["std_error"], Kind(kept["kind"]), "ais", status=Status[kept["status"]])

    def _keep(self, structure: Dag, evidence: Evidence) -> None:
        key = self._key(structure)
        if self.store is not None and key is not None:
            content = {"log_z": evidence.log_z, "std_error": evidence.std_error}
            self.store.put(key, content | {"kind": evidence.kind.value, "status": evidence.status.name})


def is_better(candidate: Evidence, current: Evidence) -> bool:
    """Whether the first evidence is above the second by more than their standard errors leave open."""
    margin = MARGIN * math.hypot(candidate.std_error or 0.0, current.std_error or 0.0)
    if Status.UNTRUSTED in (candidate.status, current.status):
        margin = max(margin, UNTRUSTED_MARGIN)
    if Status.INTERRUPTED in (candidate.status, current.status):
        return False
    return candidate.log_z - current.log_z > margin
