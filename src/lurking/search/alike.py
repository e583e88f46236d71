"""Notes on models of a comparison that cannot be told apart, and on those with more parameters than data can show."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lurking.graph.dag import Dag
from lurking.graph.model_class import without_idle_hidden
from lurking.inference.dimension.identifiability import unidentified_note
from lurking.learn.degenerate import StateIssue
from lurking.search.bayes_factors import SCALES, BayesFactor
from lurking.search.comparison import Comparison
from lurking.search.posterior import Candidate, StructurePosterior
from lurking.search.scoring import Row

BARE_MENTION = SCALES["kass-raftery"][0][0]
"""Bayes factor up to which a difference is not worth more than a bare mention (Kass & Raftery 1995)."""
SAME = 1.0
"""Nats below the value of a model within which one with fewer states fits as well."""
MOST_EXAMINED = 20
"""Contenders whose effective dimension is looked at, the most probable ones."""
MOST_NAMED = 4


def alike_notes(comparison: Comparison) -> list[str]:
    """Return the notes on equal models, models that the data do not distinguish, spare states and spare parameters."""
    notes = [_same_model(group, comparison.rows) for group in comparison.duplicates]
    notes += _not_distinguished(comparison)
    notes += _spare_states(comparison)
    return notes + _not_identified(comparison)


def quoted(names: Sequence[str], last: str = ", ") -> str:
    """Return at most four names in quotes, `last` before the last one."""
    shown = [repr(name) for name in names[:MOST_NAMED]] + (["…"] if len(names) > MOST_NAMED else [])
    return ", ".join(shown[:-1]) + (last if len(shown) > 1 else "") + shown[-1]


def _same_model(group: Sequence[str], rows: Sequence[Row]) -> str:
    """Name models of one class, and why no data can tell them apart."""
    dags = [row.dag for row in rows if row.name in group]
    if len({dag.canonical() for dag in dags}) == 1:
        why = "they differ only in the names of hidden variables and in order"
    elif len({without_idle_hidden(dag).canonical() for dag in dags}) == 1:
        why = "hidden variables with one state or without an observed descendant add nothing"
    else:
        why = "they are Markov equivalent, so no data can tell them apart"
    names = f"{', '.join(map(repr, group[:-1]))} and {group[-1]!r}"
    return f"{names} are the same model: {why}; it counts once"


def not_distinguished(posterior: StructurePosterior) -> list[Candidate]:
    """Return the best candidate and those that evidence does not set apart from it, each class once.

    These have a Bayes factor of at most 3 against the best, two standard errors taken off. Values that differ in kind
    are omitted, since their difference is not evidence, and so are values that are not trusted.
    """
    best = posterior.best
    found, seen = [best], {best.key}
    for candidate in posterior.ranked():
        key = candidate.key
        if key not in seen and candidate.is_contending and candidate.prior > 0.0:
            factor = posterior.bayes_factor(best.name, candidate.name)
            if not factor.is_mixed and factor.is_trusted and _least(factor) <= math.log(BARE_MENTION):
                seen.add(key)
                found.append(candidate)
    return found


def _least(factor: BayesFactor) -> float:
    """Return the size of a log Bayes factor less two standard errors."""
    return abs(factor.log_factor) - 2.0 * (factor.std_error or 0.0)


def _not_distinguished(comparison: Comparison) -> list[str]:
    """Name the best models if evidence does not set them apart, and the simplest of them."""
    posterior = comparison.posterior
    alike = not_distinguished(posterior)
    if len(alike) < 2:
        return []
    rows = {row.name: row for row in comparison.rows}
    by_simplicity = {candidate.name: _simplicity(rows[candidate.name]) for candidate in alike}
    least = min(by_simplicity.values())
    simplest = [name for name, value in by_simplicity.items() if value == least]
    factors = [posterior.bayes_factor(alike[0].name, other.name) for other in alike[1:]]
    is_clear = all(abs(factor.log_factor) <= math.log(BARE_MENTION) for factor in factors)
    by = "sampled evidence" if comparison.sampled else posterior.score
    limit = f"Bayes factors of at most {BARE_MENTION:g} by {by}"
    limit += "" if is_clear else " within two standard errors"
    named = "the simplest is" if len(simplest) == 1 else "the simplest are"
    parameters = f"{least[0]} parameter{'' if least[0] == 1 else 's'}{'' if len(simplest) == 1 else ' each'}"
    return [
        f"the data do not distinguish {quoted([candidate.name for candidate in alike], ' and ')} ({limit}); "
        f"{named} {quoted(simplest, ' and ')} ({parameters})"
    ]


def _simplicity(row: Row) -> tuple[int, int]:
    """Return the number of free parameters and the effective dimension, where it is known."""
    effective = row.effective_dimension
    return row.pruned_dimension, row.pruned_dimension if effective is None else effective


def _spare_states(comparison: Comparison) -> list[str]:
    """Name models whose best fit has empty or equal hidden states, with the smaller model in the list, if any."""
    rows, class_of = comparison.rows, comparison.class_of
    found = [row for row in rows if row.issues]
    if not found:
        return []
    listed = []
    for row in found[:MOST_NAMED]:
        smaller = _with_used_states(row)
        key, value = class_of(smaller), _first_value(row)
        other = next((each for each in rows if class_of(each.dag) == key and _first_value(each) >= value - SAME), None)
        listed.append(f"{row.name!r} ({_in_words(row.issues)}" + (f"; {other.name!r} fits as well)" if other else ")"))
    more = ", …" if len(found) > MOST_NAMED else ""
    return [
        f"the best fit does not use all hidden states: {', '.join(listed)}{more}; a model with fewer states cannot be "
        "told apart from such a fit and is simpler"
    ]


def _first_value(row: Row) -> float:
    """Return the log evidence by the first score."""
    return next(iter(row.evidences.values())).log_z


def _in_words(issues: Sequence[StateIssue]) -> str:
    """Return such as "class: state 0 is empty, states 1, 3 are equal", each variable once."""
    parts = []
    for node in dict.fromkeys(issue.node for issue in issues):
        own = [issue for issue in issues if issue.node == node]
        empty = [state for issue in own if issue.kind == "empty" for state in issue.states]
        words = [f"{_states(empty)} empty"] if empty else []
        words += [f"{_states(issue.states)} equal" for issue in own if issue.kind == "duplicate"]
        parts.append(f"{node}: {', '.join(words)}")
    return "; ".join(parts)


def _states(states: Sequence[int]) -> str:
    return f"state {states[0]} is" if len(states) == 1 else f"states {', '.join(map(str, states))} are"


def _with_used_states(row: Row) -> Dag:
    """Return the structure of a row with the states alone that its fit uses, equal ones once."""
    hidden = dict(row.dag.hidden)
    for issue in row.issues:
        hidden[issue.node] -= 1 if issue.kind == "empty" else len(issue.states) - 1
    return row.dag.with_hidden({name: max(states, 1) for name, states in hidden.items()})


def _not_identified(comparison: Comparison) -> list[str]:
    """Name contenders with more parameters than effective dimension, where that is cheap to compute."""
    rows = {row.name: row for row in comparison.rows}
    ranked = comparison.posterior.ranked()
    mark = ranked[0].log_prior + ranked[0].evidence.log_z - comparison.within
    near = [rows[c.name] for c in ranked if c.is_contending and c.log_prior + c.evidence.log_z >= mark]
    found = [row for row in near[:MOST_EXAMINED] if row.is_deficient]
    if len(found) == 1:
        (row,) = found
        return [f"{row.name!r} has {unidentified_note(row.dimension, row.effective_dimension)}"]
    if not found:
        return []
    listed = [f"{row.name!r} ({row.dimension}, {row.effective_dimension})" for row in found[:MOST_NAMED]]
    more = ", …" if len(found) > MOST_NAMED else ""
    return [
        f"more parameters than effective dimension: {', '.join(listed)}{more}; the parameters are not identified: "
        "different tables give the same distribution of the observed columns"
    ]
