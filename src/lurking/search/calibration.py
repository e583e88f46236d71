"""`calibrate`: how far scores are off for a structure and a size of the data, on data whose evidence is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lurking.data.files import as_table
from lurking.data.frames import pandas_frame
from lurking.errors import OptionError, StructureError, TooLarge, UndefinedScore, nearest_hint
from lurking.evidence.base import Evidence
from lurking.evidence.evaluation import evaluate, get_score, score_names
from lurking.graph.dag import Dag, as_dag
from lurking.inference.problem import Problem, refuse_families
from lurking.learn.options import FitOptions
from lurking.models.prior import Prior
from lurking.runtime.checks import check_whole
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.annealing.paths import compiled_program
from lurking.samplers.annealing.sandwich import Case, Sandwich, SandwichOptions, draw_alike, draw_case, sandwich
from lurking.types import Frame, Level

DEFAULT_SCORES = ("bic", "cs", "vb", "ais")
TRUSTED, CAUTION = 1.0, 3.0
"""Root-mean-square errors in nats up to which a score is trusted, or used with caution; 3 nats are odds of 20 to 1."""


@dataclass(frozen=True)
class Repeat:
    """One simulated data set: its evidence from both sides, what the scores say, and why some say nothing."""

    sandwich: Sandwich
    evidences: Mapping[str, Evidence]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class Judgement:
    """How far one score was off over the repeats, in nats; `corrected_*` with ln S added.

    The better of both is judged: root-mean-square error up to `TRUSTED` is trusted, up to `CAUTION` to be used with
    caution, and beyond that off. Where the sandwich itself is known less well than `TRUSTED` and the error is not
    larger than that, nothing can be told.
    """

    score: str
    count: int
    mean_error: float
    rms_error: float
    corrected_mean_error: float
    corrected_rms_error: float
    uncertainty: float
    """Root-mean-square of `Sandwich.error`: how well the true value is known."""

    @property
    def needs_aliases(self) -> bool:
        """Whether the score is nearer to the truth with ln S added."""
        return self.corrected_rms_error < self.rms_error

    @property
    def best_rms(self) -> float:
        """Root-mean-square error of the better of the score and the score with ln S added."""
        return min(self.rms_error, self.corrected_rms_error)

    @property
    def word(self) -> str:
        """The verdict in a word: trusted, caution, off or unknown."""
        if self.uncertainty > TRUSTED and self.best_rms <= self.uncertainty:
            return "unknown"
        if self.best_rms <= TRUSTED:
            return "trusted"
        return "caution" if self.best_rms <= CAUTION else "off"

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        name = f"{self.score} + ln S" if self.needs_aliases else self.score
        return {
            "trusted": f"{name} is within {self.best_rms:.2f} nats: it can be trusted at this n",
            "caution": f"{name} is within {self.best_rms:.2f} nats: use it with caution, for large differences only",
            "off": f"{name} is off by {self.best_rms:.2f} nats, more than most differences one cares about",
            "unknown": f"{name}: the truth is only known to within {self.uncertainty:.2f} nats; nothing can be told",
        }[self.word]


@dataclass(frozen=True)
class Calibration:
    """Outcome of `calibrate`.

    `is_exact` is False when parameters came from the posterior of given data: the upper side is approximate then.
    `interrupted` is True when the user stopped it; the repeats finished by then are here.
    """

    dag: Dag
    n: int
    prior: Prior = field(repr=False)
    scores: tuple[str, ...]
    repeats: tuple[Repeat, ...] = field(repr=False)
    is_exact: bool
    interrupted: bool = False

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """One for every score that has a value, in the order asked."""
        return tuple(self[name] for name in self.scores if any(name in repeat.evidences for repeat in self.repeats))

    def __getitem__(self, score: str) -> Judgement:
        own = [repeat for repeat in self.repeats if score in repeat.evidences]
        if not own:
            raise UndefinedScore(f"{score!r} has no value in this calibration; ask for it with scores=[{score!r}]")
        middles = np.asarray([repeat.sandwich.middle for repeat in own])
        plain = np.asarray([repeat.evidences[score].log_z for repeat in own]) - middles
        corrected = np.asarray([repeat.evidences[score].corrected for repeat in own]) - middles
        known = np.asarray([repeat.sandwich.error for repeat in own])
        return Judgement(
            *(score, len(own), float(plain.mean()), _rms(plain)),
            *(float(corrected.mean()), _rms(corrected), _rms(known)),
        )

    @property
    def left_out(self) -> dict[str, str]:
        """Scores that have no value in some repeat, and why."""
        return {name: why for repeat in self.repeats for name, why in repeat.left_out.items()}

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame, one row per repeat and score."""
        rows = [
            {
                "repeat": k,
                "score": name,
                "lower": repeat.sandwich.lower,
                "upper": repeat.sandwich.upper,
                "log_z": evidence.log_z,
                "log_aliases": evidence.log_aliases,
                "error": evidence.log_z - repeat.sandwich.middle,
                "corrected_error": evidence.corrected - repeat.sandwich.middle,
            }
            for k, repeat in enumerate(self.repeats)
            for name, evidence in repeat.evidences.items()
        ]
        return pandas_frame({name: [row[name] for row in rows] for name in (rows[0] if rows else ())})

    def __str__(self) -> str:
        lines = [f"{'score':14}  {'mean error':>10}  {'rms':>8}  {'with ln S':>10}  {'rms':>8}"]
        for own in self.judgements:
            numbers = f"{own.mean_error:10.3f}  {own.rms_error:8.3f}"
            corrected = f"{own.corrected_mean_error:10.3f}  {own.corrected_rms_error:8.3f}"
            lines.append(f"{own.score:14}  {numbers}  {corrected}")
        return "\n".join([*lines, *(own.sentence for own in self.judgements)])


def _rms(values: Any) -> float:
    return math.sqrt(float(np.mean(np.square(values))))


def calibrate(
    dag: Dag | str,
    n: int | None = None,
    *,
    cardinalities: int | Mapping[str, int] | None = None,
    prior: Prior | float = 1.0,
    repeats: int = 5,
    scores: Sequence[str] | str | None = None,
    seed: Seed = 0,
    empty: float = 0.0,
    like: Any = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    stop: StopFlag | None = None,
    keep_interrupted: bool = False,
    effort: SandwichOptions | None = None,
) -> Calibration:
    """Simulate `repeats` data sets of n rows from a structure, and compare every score with the evidence they have.

    Parameters are drawn from the prior, and the evidence is enclosed from both sides
    (`lurking.samplers.annealing.sandwich`). `cardinalities` of the observed variables: one number for all, or {name:
    number}. `empty` is the share of cells emptied at random. `like` is a table: its levels, its n unless one is given,
    its patterns of empty cells, and parameters drawn from its posterior; the upper side is approximate then. `scores`
    defaults to those of `DEFAULT_SCORES` that exist. `workers` threads work across repeats and never change a result.
    """
    names = _chosen(scores)
    count = check_whole("repeats", repeats, 1)
    rule, flag, meter = Prior.of(prior), stop or StopFlag(), progress or Silent()
    structure, levels, source = _origin(dag, cardinalities, like, rule)
    rows = check_whole("n", n if n is not None or source is None else round(source.n), 1)

    def one(child: np.random.SeedSequence) -> Repeat | None:
        own, fits, scoring = child.spawn(3)
        if source is None:
            case = draw_case(structure, levels, rule, n=rows, seed=own, empty=empty)
        else:
            case = draw_alike(source, n=rows, seed=own, empty=empty)
        inner: dict[str, Any] = {"workers": 1, "stop": flag, "keep_interrupted": True}
        found = _repeat(case, rule, names, FitOptions(seed=fits, **inner), FitOptions(seed=scoring, **inner), effort)
        return None if flag.is_set else found

    meter.begin("repeats", count)
    try:
        children = seed_sequence(seed).spawn(count)
        made = map_in_order(one, children, workers=workers, executor=executor, stop=flag, done=meter.update)
    finally:
        meter.end()
    finished = tuple(repeat for repeat in made if repeat is not None)
    if flag.is_set and not (finished and keep_interrupted):
        raise KeyboardInterrupt
    if not any(repeat.evidences for repeat in finished):
        raise UndefinedScore("; ".join(f"{name}: {why}" for name, why in finished[0].left_out.items()))
    return Calibration(structure, rows, rule, names, finished, source is None, flag.is_set)


def _origin(
    dag: Dag | str, cardinalities: int | Mapping[str, int] | None, like: Any, prior: Prior
) -> tuple[Dag, dict[str, tuple[Level, ...]], Problem | None]:
    """Return the structure with its star bound, and either levels for draws of the prior or the problem to resemble."""
    structure = as_dag(dag)
    if like is None:
        levels = _levels(structure, cardinalities)
        return structure.bind(tuple(levels)), levels, None
    if cardinalities is not None:
        raise OptionError(
            "cardinalities were given beside like, whose columns have their levels; leave one of them out"
        )
    source = Problem(structure, as_table(like), prior)
    refuse_families(source, "calibration works", "declare the columns categorical, or leave them out (drop)")
    return source.full_dag, {}, source


def _repeat(
    case: Case,
    prior: Prior,
    names: Sequence[str],
    fits: FitOptions,
    scoring: FitOptions,
    effort: SandwichOptions | None,
) -> Repeat:
    """Enclose the evidence of one case, and score it; the scores have random numbers of their own."""
    problem = Problem(case.dag, case.table, prior)
    compiled_program(problem)  # what cannot be sampled is refused before anything is fitted
    enclosed = sandwich(problem, case, fits, effort)
    evidences: dict[str, Evidence] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            evidences |= evaluate(problem, [name], scoring, {})
        except (TooLarge, UndefinedScore) as refusal:
            left_out[name] = str(refusal)
    return Repeat(enclosed, evidences, left_out)


def _chosen(scores: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the names of the scores, checked."""
    known = score_names()
    if scores is None:
        return tuple(name for name in DEFAULT_SCORES if name in known)
    names = (scores,) if isinstance(scores, str) else tuple(dict.fromkeys(scores))
    if not names:
        raise OptionError("no score was asked for; give at least one, for example scores=['vb']")
    return tuple(get_score(name).name for name in names)


def _levels(dag: Dag, cardinalities: int | Mapping[str, int] | None) -> dict[str, tuple[Level, ...]]:
    """Return the states 0 … r − 1 of every observed variable; the order of an open structure is that of the mapping."""
    if cardinalities is None:
        raise OptionError("the number of levels of the observed variables is not known; give cardinalities, or like")
    if not isinstance(cardinalities, Mapping):
        if dag.is_open:
            raise StructureError("the model has a '*' but no columns; name them: cardinalities={'y1': 2, …}, or like")
        cardinalities = dict.fromkeys(dag.observed, cardinalities)
    bound = dag.bind(tuple(cardinalities))
    for name in cardinalities:
        if name not in bound.observed:
            raise StructureError(
                f"levels are given for {name!r}, which is no observed variable of the model"
                f"{nearest_hint(name, bound.observed)}; these are: {', '.join(bound.observed)}"
            )
    missing = [name for name in bound.observed if name not in cardinalities]
    if missing:
        raise StructureError(
            f"no number of levels is given for {', '.join(missing)}; every observed variable needs one"
        )
    return {name: tuple(range(check_whole(f"levels of {name}", own, 1))) for name, own in cardinalities.items()}
