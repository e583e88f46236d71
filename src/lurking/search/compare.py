"""`lurking.compare`: several structures on the same data, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from lurking.data.files import as_table
from lurking.data.table import Table
from lurking.errors import (
    OptionError,
    StructureError,
    nearest_hint,
)
from lurking.evidence.api import split_options
from lurking.evidence.evaluation import get_score
from lurking.evidence.sampled.ais import check_options
from lurking.graph.dag import Dag, as_dag
from lurking.graph.parse import expand_ranges
from lurking.graph.structure_priors import StructurePrior, StructurePriorOption
from lurking.inference.binding import check_columns
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress, Silent
from lurking.search.averaging import Fitting
from lurking.search.comparison import Comparison
from lurking.search.comparison_notes import comparison_warnings
from lurking.search.posterior import WITHIN
from lurking.search.rescoring import Rescoring, Sampled, sample_contenders, split_sampler_options
from lurking.search.scoring import Refusal, Row, Scoring
from lurking.search.unsettled import first_look, with_more_starts


def compare(
    models: Sequence[Dag | str] | Mapping[str, Dag | str] | str,
    table: Any,
    *,
    scores: Sequence[str] | str = ("vb",),
    hidden: Mapping[str, int] | None = None,
    structure_prior: StructurePriorOption = "uniform",
    rescore: bool | str = "auto",
    within: float = WITHIN,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
    **options: Any,
) -> Comparison:
    """Score several structures on the same columns and rows, and find their posterior probabilities.

    `models` is a list of structures (named by their text) or {name: structure}; a text with a range of states, such as
    ``"class[1..5] -> *"``, stands for one structure each, and may stand alone. `hidden` gives cardinalities to the
    names in them that carry no brackets; `scores` as in `score`, the first one ranks. `structure_prior` is p(m):
    "uniform", ("edges", κ), ("edge-probability", π), ("parameters", ρ), ("hidden", κ), or a function of a Dag that
    returns ln p(m); structures that no data can tell apart count once. `rescore`: whether the models `within` so many
    nats of the best are scored again by sampled evidence ("auto": when exact values and bounds meet among at most 32 of
    them). `workers` threads work across structures (one per core by default) and never change a result. After an
    interrupt (Ctrl-C) `keep_interrupted=True` returns the models finished so far instead of raising it. Other options
    as in `score`.
    """
    data = as_table(table)
    chosen = _chosen(scores)
    prior, again = StructurePrior.from_option(structure_prior), Rescoring(rescore, within)
    names, dags = _named(models, data, {} if hidden is None else hidden)
    for dag in dags:
        check_columns(dag, data, with_values=True)
    _check_same_columns(names, dags)
    are_tables = not options.get("families") and all(data[name].is_categorical for name in dags[0].observed)
    if rescore == "auto" and not are_tables:
        again = Rescoring(False, within)  # samplers support tables only
    stop, meter = options.pop("stop", None) or StopFlag(), progress or Silent()
    of_problem, _, _ = split_options(options)
    in_blocks = Problem(dags[0], data, **of_problem).in_blocks
    # Threads work across structures, or on the blocks of one structure after the other.
    inner = {"workers": workers if in_blocks else 1, "stop": stop, "keep_interrupted": True}
    of_problem, fit_options, own = split_options({**options, **inner})  # one seed for all
    own, of_sampler = split_sampler_options(chosen, own, again)
    check_options(of_sampler)
    scoring = Scoring(data, chosen, of_problem, fit_options, own, workers, executor, in_blocks)
    finished, left_out = _scored(names, dags, first_look(scoring), meter)
    if not stop.is_set:
        finished = with_more_starts(
            finished, scoring, lambda row: prior.log_weight(row.dag, row.pruned_dimension), within, meter
        )
    if stop.is_set and not (finished and keep_interrupted):
        raise KeyboardInterrupt
    fitting = Fitting(data, of_problem, fit_options.at_rest, 1 if in_blocks else workers)
    chosen = (chosen[0], *(score for score in chosen[1:] if not any(score in row.refused for row in finished)))
    made = Comparison(tuple(finished), chosen, (), stop.is_set, prior, within=float(within), fitting=fitting)
    made = replace(made, are_tables=are_tables)
    sampled = Sampled({})
    contenders = again.contenders(finished, chosen[0], [c.log_prior for c in made.posterior]) if finished else []
    if again.is_too_much(contenders):
        sampled = Sampled({}, f"there are {len(contenders)} of them; rescore=True samples them all")
    elif contenders and not stop.is_set:
        outcome = sample_contenders(contenders, chosen[0], replace(scoring, own=of_sampler), meter)
        if stop.is_set and not keep_interrupted:
            raise KeyboardInterrupt
        sampled = outcome or sampled
    made = replace(made, sampled=sampled.evidences, interrupted=stop.is_set)
    return replace(made, warnings=left_out + comparison_warnings(made, sampled.refusal, again.rescore == "auto"))


def _chosen(scores: object) -> tuple[str, ...]:
    """Return the names of the scores, each once."""
    names = (scores,) if isinstance(scores, str) else scores
    if not isinstance(names, Iterable):
        raise OptionError(f"scores is {scores!r}; it must be a name or a list of names, for example ['vb', 'bic']")
    chosen = tuple(dict.fromkeys(get_score(name).name for name in names))
    if not chosen:
        raise OptionError("no score was asked for; give at least one, for example scores=['vb']")
    return chosen


def _scored(
    names: Sequence[str], dags: Sequence[Dag], scoring: Scoring, meter: Progress
) -> tuple[list[Row], tuple[str, ...]]:
    """Return the rows of the models that were finished, and notes on models and scores that were left out.

    A model without a value of the first score is left out. A further score that has no value for some model is left
    out for all: every model that can be ranked must be in the ranking.
    """
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
    notes = [f"model {refusal.name!r} was left out: {refusal.error}" for refusal in refusals]
    for score in scoring.scores[1:]:
        lacking = [row for row in finished if score in row.refused]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            notes.append(f"{score} was left out: no value for {lacking[0].name!r}{more}: {lacking[0].refused[score]}")
    return finished, tuple(notes)


def _no_effect(name: str, states: int, dags: list[Dag]) -> str:
    """Say why an entry of `hidden` changes no model."""
    bracketed = sorted({dag.hidden[name] for dag in dags if name in dag.hidden})
    if bracketed:
        listed = ", ".join(map(str, bracketed))
        return f"hidden gives {name!r} {states} states, but its brackets say {listed} in every model; say it once"
    known = sorted({node for dag in dags for node in dag.nodes})
    return f"hidden names {name!r}, which is in no model{nearest_hint(name, known)}; it must be one of their names"


def _named(models: Any, table: Table, hidden: Mapping[str, int]) -> tuple[list[str], list[Dag]]:
    """Return unique names and bound structures; a text with a range of states stands for several."""
    if isinstance(models, Dag) or (isinstance(models, str) and len(expand_ranges(models)) == 1):
        raise OptionError("compare takes a list of structures; for a single one use score")
    if not isinstance(models, Iterable):
        raise OptionError(f"the models are {models!r}; give a list of structures, or {{name: structure}}")
    if not isinstance(hidden, Mapping):
        raise OptionError(f"hidden is {hidden!r}; it must map names to numbers of states, for example {{'class': 2}}")
    listed = models if isinstance(models, Mapping) else [models] if isinstance(models, str) else list(models)
    pairs = list(listed.items()) if isinstance(listed, Mapping) else [("", item) for item in listed]
    names: dict[str, None] = {}
    dags: list[Dag] = []
    for given, item in pairs:
        if not isinstance(given, str):
            raise OptionError(f"the model name {given!r} is not text; names must be str, e.g. {str(given)!r}")
        for key, text in expand_ranges(item).items() if isinstance(item, str) else [("", "")]:
            dag = as_dag(text or item, f"model {given!r}" if given else "a model")
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
