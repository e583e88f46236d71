"""What `lurking search` says: the structure, those that were judged, and hidden variables that are not needed."""

from __future__ import annotations

import textwrap
from typing import Any

from lurking.cli import output as out
from lurking.data.table import Table
from lurking.graph.dag import Dag
from lurking.graph.equivalence import Cpdag
from lurking.graph.structure_priors import StructurePrior
from lurking.learn.loop import Status
from lurking.search.api import SearchResult, advice
from lurking.search.contenders import Trial, hidden_part, value_of, why_not_first
from lurking.search.posterior import StructurePosterior
from lurking.search.summaries import Grouping, Summarised

NAME_WIDTH = 64
MOST_PRINTED = 32
"""Joint states of a summary up to which its groups are printed."""


def result_value(result: SearchResult) -> str:
    """Return ln p(data | structure) of the structure that is kept, in words."""
    return f"{result.score:.2f} exact" if result.evidence is None else value_of(result.evidence)


def print_search(result: SearchResult, table: Table, prior: str, may_invent: bool) -> None:
    """Print the structure that is kept, the prior of its tables (the word of --prior), and all that were judged.

    How many hidden variables there are is told where the search was allowed any.
    """
    out.say(str(result.best))
    out.say(f"prior {prior}: ln p(data | structure) = {result_value(result)}; {result.status.sentence}")
    kept = " that keep the constraints" if result.constraints and result.constraints.settled(result.best) else ""
    if result.best.edges:
        out.say(f"equivalent structures{kept} have the same arrows, and -- both ways: {result.cpdag}")
    if result.posterior is not None:
        if len(result.posterior) > 1:
            _print_posterior(result.posterior, result.best, result.structure_prior)
        if may_invent:
            _print_number(result.posterior, result.status)
    if result.untried is not None:
        out.say(out.in_command_words(result.untried))
    for trial in result.outdone:
        _print_outdone(trial, table)
    if result.suggestion is not None:
        out.say()
        out.say(f"suggestion: {_suggestion(result, table, may_invent)}")


def _suggestion(result: SearchResult, table: Table, may_invent: bool) -> str | None:
    """Return the suggestion of a search with the options of the command."""
    if result.suggestion is None or "try hidden=" in result.suggestion:
        return result.suggestion and out.in_command_words(result.suggestion)
    return advice(table, may_invent=may_invent, for_command=True)


def _print_posterior(posterior: StructurePosterior, best: Dag, prior: StructurePrior | None) -> None:
    out.say()
    ranked = posterior.ranked()
    rows = [
        [
            _wrapped(candidate.name, "* " if candidate.dag == best else "  "),
            str(len(candidate.dag.edges)),
            value_of(candidate.evidence),
            out.probability(candidate.probability),
        ]
        for candidate in ranked
    ]
    header = ["  hidden variables", "arcs", "ln p(data | structure)", "p(structure | data)"]
    weighed = f"structure prior {prior}"
    if len({len(candidate.dag.hidden) for candidate in ranked}) > 1:
        weighed += " and summaries"
    out.print_table(f"structures that were judged, p by {weighed}; * is the one above", header, rows)
    kept = next((candidate for candidate in ranked if candidate.dag == best), None)
    if kept is not None and kept is not ranked[0]:
        out.say(f"* is kept: {why_not_first(kept, ranked[0])}")
    if any(candidate.evidence.status is Status.UNTRUSTED for candidate in ranked):
        out.say("untrusted: the diagnostics of the sampler disagree, and the value may be far off")


def _wrapped(name: str, mark: str) -> str:
    """Return a name in lines that fit the table, the further ones indented."""
    return "\n".join(textwrap.wrap(name, NAME_WIDTH, initial_indent=mark, subsequent_indent="      "))


def _print_number(posterior: StructurePosterior, status: Status) -> None:
    """Print the probabilities of the number of hidden variables, unless there is nothing to compare."""
    shares = posterior.hidden_probabilities()
    out.say()
    if len(shares) > 1:
        rows = [[str(count), out.probability(value)] for count, value in shares.items()]
        out.print_table("number of hidden variables, among these", ["hidden", "probability"], rows)
        return
    when = " before the search ended" if status in (Status.INTERRUPTED, Status.TIME_LIMIT) else ""
    (count,) = shares
    another = "a hidden variable" if count == 0 else "another number of hidden variables"
    out.say(f"no structure with {another} was judged{when}")


def _print_outdone(trial: Trial, table: Table) -> None:
    """Print which hidden variable is not needed, what does without it, and the groups of joint states there."""
    if trial.outdone_by is None:
        return
    out.say()
    out.say(f"not needed: {hidden_part(trial.dag, trial.lines)}, {value_of(trial.evidence)}")
    out.say(f"  {trial.outdone_by}")
    by = trial.outdone_by.by
    for summary in by.summaries:
        out.say(f"  {summary.node} has the parents {', '.join(by.dag.parents(summary.node))}")
        for grouping in summary.groupings:
            if len(grouping.groups) > 1 and sum(map(len, grouping.groups)) <= MOST_PRINTED:
                groups = (
                    f"({', '.join(' '.join(map(str, one)) for one in group)})" for group in _labels(grouping, table)
                )
                out.say(f"    groups of {' × '.join(grouping.parents)}: {' '.join(groups)}")


def _labels(grouping: Grouping, table: Table) -> list[list[list[Any]]]:
    """Return for each group its joint states by the levels of the columns; states of hidden variables are numbers."""
    levels = [table[name].levels if name in table.columns else None for name in grouping.parents]
    return [
        [[code if own is None else own[code] for code, own in zip(one, levels, strict=True)] for one in group]
        for group in grouping.groups
    ]


def search_content(result: SearchResult, table: Table, may_invent: bool) -> dict[str, Any]:
    """Return the result for a JSON document."""
    content: dict[str, Any] = {
        "structure": str(result.best),
        "edges": [list(edge) for edge in result.best.edges],
        "cpdag": str(result.cpdag),
        "hidden": dict(result.best.hidden),
        "score": result.score,
        "scored_by": result.scored_by,
        "status": result.status.name,
        "status_sentence": result.status.sentence,
        "undirected": _pairs(result.cpdag, result.best),
        "untried": None if result.untried is None else out.in_command_words(result.untried),
        "suggestion": _suggestion(result, table, may_invent),
    }
    if result.evidence is None:
        return content
    ranked = [] if result.posterior is None else result.posterior.ranked()
    contenders = [
        {
            "name": candidate.name,
            "structure": str(candidate.dag),
            "hidden_part": hidden_part(candidate.dag, graph.undirected),
            "undirected": _pairs(graph, candidate.dag),
            "probability": candidate.probability,
            "is_kept": candidate.dag == result.best,
            **out.evidence_content(candidate.evidence),
        }
        for candidate in ranked
        for graph in (result.cpdag_of(candidate.dag),)
    ]
    counts = None
    if result.posterior is not None:
        counts = {str(count): value for count, value in result.posterior.hidden_probabilities().items()}
    return content | {
        "evidence": out.evidence_content(result.evidence),
        "structure_prior": str(result.structure_prior),
        "contenders": contenders,
        "hidden_probabilities": counts,
        "outdone": [_outdone(trial, table) for trial in result.outdone],
    }


def _pairs(graph: Cpdag, dag: Dag) -> list[list[str]]:
    """Return the edges of a structure of which neither the data nor the constraints settle the direction."""
    return [[parent, child] for parent, child in dag.edges if frozenset((parent, child)) in graph.undirected]


def _outdone(trial: Trial, table: Table) -> dict[str, Any]:
    """Return a structure that summaries outdo, and what does without it, for a JSON document."""
    content: dict[str, Any] = {"structure": str(trial.dag), **out.evidence_content(trial.evidence)}
    if trial.outdone_by is None:
        return content
    by = _summarised(trial.outdone_by.by, table) | {"log_z": trial.outdone_by.log_z}
    return content | {"by": by, "with_summaries": _summarised(trial.outdone_by.rival, table)}


def _summarised(found: Summarised, table: Table) -> dict[str, Any]:
    summaries = [
        {
            "node": summary.node,
            "gain": summary.gain,
            "groupings": [
                {"parents": list(each.parents), "groups": _labels(each, table)} for each in summary.groupings
            ],
        }
        for summary in found.summaries
    ]
    return {"structure": str(found.dag), "gain": found.gain, "summaries": summaries}
