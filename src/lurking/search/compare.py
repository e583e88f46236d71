"""`lurking.compare`: several structures on the same data, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from lurking.data.frames import pandas_frame
from lurking.data.table import Table, as_table
from lurking.errors import (
    OptionError,
    StructureError,
    UnknownNameError,
    nearest_hint,
)
from lurking.evidence.api import split_options
from lurking.evidence.base import Evidence, Kind, get_score
from lurking.graph.dag import Dag
from lurking.graph.parse import expand_ranges
from lurking.inference.problem import Problem, check_columns
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress, Silent
from lurking.search.posterior import StructurePosterior
from lurking.search.scoring import Refusal, Row, Scoring
from lurking.types import Frame

UNBOUND = {Kind.EXACT.value, Kind.ESTIMATE.value}
"""Kinds that may stand side by side: neither is low by construction."""


@dataclass(frozen=True)
class Comparison:
    """Outcome of `compare`: `comparison["vb"]` is the posterior over the models by that score.

    `warnings` says what must not be overlooked: values of different kinds in one column, models given twice, climbs
    that did not converge. `interrupted` is True when the user stopped it; the models finished by then are here.
    """

    rows: tuple[Row, ...]
    scores: tuple[str, ...]
    warnings: tuple[str, ...]
    interrupted: bool = False

    def __getitem__(self, score: str) -> StructurePosterior:
        if score not in self.scores:
            raise UnknownNameError("score", score, self.scores)
        return StructurePosterior.from_evidence(
            score,
            [row.name for row in self.rows],
            [row.dag for row in self.rows],
            [row.evidences[score] for row in self.rows],
        )

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        rows = {row.name: row for row in self.rows}
        has_effective = any(row.is_deficient for row in self.rows)
        more = "  effective" if has_effective else ""
        header = f"{'model':{width}}  {'d':>5}{more}  {'p(model)':>9}  "
        lines = [header + "  ".join(f"{name:>14}" for name in self.scores)]
        for candidate in self[self.scores[0]].ranked():
            row = rows[candidate.name]
            values = "  ".join(f"{_with_error(row.evidences[name]):>14}" for name in self.scores)
            more = f"  {row.effective_in_words:>9}" if has_effective else ""
            lines.append(f"{row.name:{width}}  {row.dimension:5}{more}  {candidate.probability:9.3g}  {values}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.warnings)])

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame, one row per model: each score with error and status, corrected, probabilities."""
        columns: dict[str, list[Any]] = {
            "model": [row.name for row in self.rows],
            "structure": [str(row.dag) for row in self.rows],
            "d": [row.dimension for row in self.rows],
            "d_effective": [row.effective_dimension for row in self.rows],
        }
        for score in self.scores:
            posterior = self[score]
            columns[score] = [c.evidence.log_z for c in posterior]
            columns[f"{score}_corrected"] = [c.evidence.corrected for c in posterior]
            columns[f"{score}_std_error"] = [c.evidence.std_error for c in posterior]
            columns[f"{score}_status"] = [c.evidence.status.name for c in posterior]
            columns[f"{score}_kind"] = [c.evidence.kind.value for c in posterior]
            columns[f"{score}_probability"] = [c.probability for c in posterior]
            columns[f"{score}_corrected_probability"] = [c.corrected_probability for c in posterior]
        return pandas_frame(columns)


def compare(
    models: Sequence[Dag | str] | Mapping[str, Dag | str] | str,
    table: Any,
    *,
    scores: Sequence[str] | str = ("vb",),
    hidden: Mapping[str, int] | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
    **options: Any,
) -> Comparison:
    """Score several structures on the same columns and rows, with a uniform prior over them.

    `models` is a list of structures (named by their text) or {name: structure}; a text with a range of states, such as
    ``"class[1..5] -> *"``, stands for one structure each, and may stand alone. `hidden` gives cardinalities to the
    names in them that carry no brackets; `scores` as in `score`; `workers` threads work across structures (one per
    core by default) and never change a result. After an interrupt (Ctrl-C) `keep_interrupted=True` returns the models
    finished so far instead of raising it. Other options as in `score`.
    """
    data = as_table(table)
    names, dags = _named(models, data, hidden or {})
    chosen = (scores,) if isinstance(scores, str) else tuple(scores)
    if not chosen:
        raise OptionError("no score was asked for; give at least one, for example scores=['vb']")
    for name in chosen:
        get_score(name)
    _check_same_columns(names, dags)
    stop, meter = options.pop("stop", None) or StopFlag(), progress or Silent()
    of_problem, _, _ = split_options(options)
    in_blocks = Problem(dags[0], data, **of_problem).in_blocks
    # Threads work across structures, or on the blocks of one structure after the other.
    inner = {"workers": workers if in_blocks else 1, "stop": stop, "keep_interrupted": True}
    of_problem, fit_options, own = split_options({**options, **inner})  # one seed for all

    check_columns(dags[0], data)
    scoring = Scoring(data, chosen, of_problem, fit_options, own, workers, executor, in_blocks)
    meter.begin("structures", len(dags))
    try:
        rows = scoring.rows(names, dags, meter.update)
    finally:
        meter.end()
    refusals = [row for row in rows if isinstance(row, Refusal)]
    if refusals and len(refusals) == len(dags):
        raise refusals[0].error
    whole = [row for row in rows if isinstance(row, Row)]
    finished = [row for row in whole if all(e.status is not Status.INTERRUPTED for e in row.evidences.values())]
    if stop.is_set and not (finished and keep_interrupted):
        raise KeyboardInterrupt
    left_out = tuple(f"model {refusal.name!r} was left out: {refusal.error}" for refusal in refusals)
    return Comparison(tuple(finished), chosen, left_out + _warnings(finished, chosen), stop.is_set)


def _with_error(evidence: Evidence) -> str:
    """Return the value, with its standard error where it has one."""
    return f"{evidence.log_z:.3f}" if evidence.std_error is None else f"{evidence.log_z:.2f} ± {evidence.std_error:.2f}"


def _no_effect(name: str, states: int, dags: list[Dag]) -> str:
    """Say why an entry of `hidden` changes no model."""
    bracketed = sorted({dag.hidden[name] for dag in dags if name in dag.hidden})
    if bracketed:
        listed = ", ".join(map(str, bracketed))
        return f"hidden gives {name!r} {states} states, but its brackets say {listed} in every model; say it once"
    known = sorted({node for dag in dags for node in dag.nodes})
    return f"hidden names {name!r}, which is in no model{nearest_hint(name, known)}; it must be one of their names"


def _quoted(names: list[str]) -> str:
    """Return at most four names in quotes."""
    return ", ".join(repr(name) for name in names[:4]) + (", …" if len(names) > 4 else "")


def _named(models: Any, table: Table, hidden: Mapping[str, int]) -> tuple[list[str], list[Dag]]:
    """Return unique names and bound structures; a text with a range of states stands for several."""
    if isinstance(models, Dag) or (isinstance(models, str) and len(expand_ranges(models)) == 1):
        raise OptionError("compare takes a list of structures; for a single one use score")
    listed = models if isinstance(models, Mapping) else [models] if isinstance(models, str) else list(models)
    pairs = list(listed.items()) if isinstance(listed, Mapping) else [("", item) for item in listed]
    names: dict[str, None] = {}
    dags: list[Dag] = []
    for given, item in pairs:
        for key, text in expand_ranges(item).items() if isinstance(item, str) else [("", "")]:
            dag = Dag.parse(text) if isinstance(item, str) else item
            marks = {name: states for name, states in hidden.items() if name in dag.nodes and name not in dag.hidden}
            dags.append((dag.with_hidden(marks) if marks else dag).bind(table.columns))
            name = f"{given} ({key})" if given and key else given or text or str(dags[-1])
            number = len(names) + 1
            unique = name
            while unique in names:
                unique, number = f"{name} ({number})", number + 1
            names[unique] = None
    if not dags:
        raise OptionError("no model was given; compare needs at least one structure")
    for name, states in hidden.items():
        if not any(dag.hidden.get(name) == states for dag in dags):
            raise OptionError(_no_effect(name, states, dags))
    return list(names), dags


def _check_same_columns(names: list[str], dags: list[Dag]) -> None:
    """Refuse models that do not explain the same columns: their evidence is about different data."""
    first = set(dags[0].observed)
    for name, dag in zip(names, dags, strict=True):
        different = sorted(first ^ set(dag.observed))
        if different:
            raise StructureError(
                f"models {names[0]!r} and {name!r} do not explain the same columns (they differ in {different}); "
                "evidence can only be compared for the same data, add the missing columns as isolated nodes"
            )


def _edge_of_the_list(rows: list[Row], scores: tuple[str, ...]) -> list[str]:
    """Tell when the winner has the most hidden states of all models with its arrows: a larger one may be better yet."""
    if not rows:
        return []
    best = max(rows, key=lambda row: row.evidences[scores[0]].log_z)
    alike = [row for row in rows if row.dag.edges == best.dag.edges and row.dag.hidden.keys() == best.dag.hidden.keys()]
    largest = max(sum(row.dag.hidden.values()) for row in alike)
    if len(alike) < 3 or sum(best.dag.hidden.values()) < largest:
        return []
    return [f"{best.name!r} has the most hidden states of the models with its arrows and won; try more states"]


def _warnings(rows: list[Row], scores: tuple[str, ...]) -> tuple[str, ...]:
    notes = []
    mixed: dict[str, list[str]] = {}
    for score in scores:
        kinds: dict[str, list[str]] = {}
        for row in rows:
            kinds.setdefault(row.evidences[score].kind.value, []).append(row.name)
        if len(kinds) > 1 and not kinds.keys() <= UNBOUND:
            listed = "; ".join(f"{kind}: {_quoted(names)}" for kind, names in kinds.items())
            mixed.setdefault(listed, []).append(score)
        doubtful = [row.name for row in rows if row.evidences[score].status is Status.UNTRUSTED]
        if doubtful:
            notes.append(f"{score} is not to be trusted for {_quoted(doubtful)}: its diagnostics disagree")
        late = [row.name for row in rows if row.evidences[score].status is Status.MAX_ITER]
        if late:
            notes.append(f"{score} did not converge for {_quoted(late)}; raise max_iter or tol")
    for listed, names in mixed.items():
        notes.append(
            f"under {' and '.join(names)} the values differ in kind ({listed}); an exact value beats a bound unfairly, "
            "so do not read a small difference between kinds as evidence"
        )
    notes += _edge_of_the_list(rows, scores)
    seen: dict[Dag, str] = {}
    for row in rows:
        form = row.dag.canonical()
        if form in seen:
            notes.append(f"{seen[form]!r} and {row.name!r} are the same structure and share its probability")
        seen.setdefault(form, row.name)
    return tuple(notes)
