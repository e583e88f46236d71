"""Every score of one test model on one data set, read off the paper's way of running EM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.evidence.base import Evidence
from lurking.evidence.evaluation import evaluate
from lurking.experiments.bench import Sampled, Task, Workbench
from lurking.experiments.chickering1996.data import Parameters, naive_bayes
from lurking.experiments.chickering1996.paper import RELATIVE_CHANGE
from lurking.inference.problem import Problem
from lurking.learn.fit import Fit, fit_problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole, is_positive
from lurking.runtime.executor import StopFlag
from lurking.runtime.store import Key, digest_of

VERSION: Final = 2
"""Part of every key: raised when the same configuration would give other numbers."""
POINTS: Final = ("laplace", "cs", "mled", "draper", "bic")
"""Scores that are read off a mode."""
PAPER: Final = ("laplace-probability", "cs", "mled", "draper", "bic")
"""The paper's columns: all at the mode over probabilities."""
SOFTMAX: Final = ("laplace", "cs-softmax", "mled-softmax", "draper-softmax", "bic-softmax")
"""The same at the mode over logits, the basis that the library takes by default."""
COLUMNS: Final = (*PAPER, *SOFTMAX, "vb")
ROUNDING: Final = 1e-13
"""Tolerance per row: a run ends before its last iteration only when rounding is all that is left to gain."""


@dataclass(frozen=True)
class Protocol:
    """How EM is run (section 3): prior α = 1 + epsilon, so many copies halved to one, then so many iterations."""

    epsilon: float = 0.01
    copies: int = 64
    iterations: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if not is_positive(self.epsilon):
            raise OptionError(f"epsilon is {self.epsilon!r}; it must be a number above 0, for example 0.01")
        check_whole("copies", self.copies, 1)
        check_whole("iterations", self.iterations, 1)

    def options(self, stop: StopFlag) -> FitOptions:
        """Return the options of a fit: plain iterations, as the paper's."""
        return FitOptions(
            tournament=self.copies,
            max_iter=self.iterations,
            tol=ROUNDING,
            accelerate=False,
            seed=self.seed,
            workers=1,
            stop=stop,
        )

    def problem(self, states: int, table: Table) -> Problem:
        """Return a test model on a data set."""
        return Problem(naive_bayes(states), table, 1.0 + self.epsilon)


@dataclass(frozen=True)
class Scored:
    """One test model on one data set.

    values : {column: ln p(D|m)}; `log_aliases` is ln c!, which is in none of them.
    has_converged : whether the last plain iteration of EM changed the log posterior by less than 1e-5 of it.
    statuses : {column of Laplace: how it ended}.
    """

    values: Mapping[str, float]
    log_aliases: float
    has_converged: bool
    statuses: Mapping[str, str]


@dataclass(frozen=True)
class Sampling:
    """Sampled evidence: standard error to reach, and budget in passes over the rows.

    most_variables, most_states : largest n and c of experiments that have it.
    beyond : test models have it up to so many states more than the generating model.
    """

    target: float = 0.3
    passes: int = 1 << 17
    most_variables: int = 32
    most_states: int = 8
    beyond: int = 2


@dataclass(frozen=True)
class Bench(Workbench):
    """The workbench, and the tasks of this study."""

    def scoring(self, table: Table, states: int, protocol: Protocol) -> Task:
        """Return the task whose result is the content of a `Scored`."""
        return Task(
            Key(table.digest, str(naive_bayes(states)), "all", digest_of(VERSION, asdict(protocol)), protocol.seed),
            lambda: asdict(scored(protocol.problem(states, table), protocol.options(self.stop))),
            states * len(table.columns),
        )

    def scoring_from(self, table: Table, truth: Parameters, protocol: Protocol) -> Task:
        """Return the task whose result is the content of a `Scored` with EM begun at the generating parameters."""
        states = len(truth.weights)
        start = digest_of(truth.weights.tobytes(), truth.ones.tobytes())
        setting = digest_of(VERSION, asdict(protocol), start)
        return Task(
            Key(table.digest, str(naive_bayes(states)), "from the truth", setting, protocol.seed),
            lambda: asdict(scored_from(truth, protocol.problem(states, table), protocol.options(self.stop))),
            states * len(table.columns),
        )

    def sampling(self, table: Table, states: int, protocol: Protocol, setting: Sampling) -> Task:
        """Return the task whose result is the content of a `Sampled`."""
        own = {"target": setting.target, "passes": setting.passes}

        def make() -> dict[str, Any]:
            options = FitOptions(restarts=10, seed=protocol.seed, workers=1, stop=self.stop, keep_interrupted=True)
            found = evaluate(protocol.problem(states, table), ["ais"], options, own)["ais"]
            return asdict(Sampled(found.log_z, found.nominal_error or 0.0, found.status.name))

        configuration = digest_of(VERSION, protocol.epsilon, own)
        return Task(
            Key(table.digest, str(naive_bayes(states)), "ais", configuration, protocol.seed),
            make,
            states * len(table.columns),
        )


def scored(problem: Problem, options: FitOptions) -> Scored:
    """Return every column of one test model; EM runs once over probabilities and once over logits, VB once."""
    found = _at_mode(problem, options, "map-probability", "probability")
    softmax = _at_mode(problem, options, "map", "logit")
    bound = evaluate(problem, ["vb"], options, {})["vb"]
    evidences = dict(zip(PAPER, found, strict=True)) | dict(zip(SOFTMAX, softmax, strict=True)) | {"vb": bound}
    return _scored(evidences, fit_problem(problem, "map-probability", options))


def scored_from(truth: Parameters, problem: Problem, options: FitOptions) -> Scored:
    """Return the paper's columns with EM begun at the generating parameters in place of the tournament."""
    begun = FitOptions(
        restarts=1,
        init=truth.tables(),
        max_iter=options.max_iter,
        tol=options.tol,
        accelerate=False,
        seed=options.seed,
        workers=1,
        stop=options.stop,
    )
    found = _at_mode(problem, begun, "map-probability", "probability")
    return _scored(dict(zip(PAPER, found, strict=True)), fit_problem(problem, "map-probability", begun))


def _at_mode(problem: Problem, options: FitOptions, at: str, basis: str) -> list[Evidence]:
    found = evaluate(problem, POINTS, options, {"at": at, "basis": basis})
    return [found[name] for name in POINTS]


def _scored(evidences: Mapping[str, Evidence], fit: Fit) -> Scored:
    return Scored(
        {column: evidence.log_z for column, evidence in evidences.items()},
        fit.problem.relevant_log_aliases,
        has_converged(fit),
        {column: evidence.status.name for column, evidence in evidences.items() if evidence.method == "laplace"},
    )


def has_converged(fit: Fit) -> bool:
    """Whether the paper would have called a run of plain iterations converged (section 3)."""
    if fit.status is Status.CONVERGED:  # only rounding was left to gain
        return True
    before, last = np.asarray(fit.trace[-2:]) if len(fit.trace) > 1 else (-np.inf, fit.objective)
    return bool(abs(last - before) < RELATIVE_CHANGE * abs(last))
