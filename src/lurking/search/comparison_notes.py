"""What must not be overlooked in a comparison, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from lurking.evidence.base import Kind
from lurking.learn.loop import Status
from lurking.learn.starts import ENOUGH
from lurking.search.alike import alike_notes, quoted
from lurking.search.bayes_factors import are_mixed
from lurking.search.comparison import Comparison
from lurking.search.posterior import StructurePosterior
from lurking.search.scoring import Row

_KINDS = {
    Kind.LOWER_BOUND: "this is a lower bound",
    Kind.ASYMPTOTIC: "this holds for many rows",
    Kind.PLUG_IN: "this is the fit of one point",
}


def comparison_warnings(comparison: Comparison, refusal: str = "", may_sample: bool = False) -> tuple[str, ...]:
    """Return the notes of a comparison.

    `refusal` says why contenders could not be sampled; where they `may_sample` they were not for want of being asked.
    """
    rows = comparison.rows
    notes = _of_scores(rows, comparison.scores)
    notes += _of_starts(comparison)
    notes += _of_kinds(comparison)
    if may_sample and rows and not refusal and not comparison.sampled:
        notes += _of_bounds(comparison)
    if refusal:
        notes.append(
            f"contenders were not scored again by sampling, their ranking is by {comparison.scores[0]} ({refusal})"
        )
    doubtful = [name for name, evidence in comparison.sampled.items() if evidence.status is Status.UNTRUSTED]
    if doubtful:
        notes.append(f"sampled evidence is not to be trusted for {quoted(doubtful)}: its diagnostics disagree")
    if rows:
        alike = alike_notes(comparison)
        # Do not advise more states if fewer do as well.
        notes += alike or _edge_of_the_list(rows, comparison.posterior)
    return tuple(notes)


def _of_scores(rows: Sequence[Row], scores: Sequence[str]) -> list[str]:
    notes = []
    for score in scores:
        doubtful = [row.name for row in rows if row.evidences[score].status is Status.UNTRUSTED]
        if doubtful:
            notes.append(f"{score} is not to be trusted for {quoted(doubtful)}: its diagnostics disagree")
        late = [row.name for row in rows if row.evidences[score].status is Status.MAX_ITER]
        if late:
            notes.append(f"{score} did not converge for {quoted(late)}; raise max_iter or tol")
    return notes


def _of_starts(comparison: Comparison) -> list[str]:
    """Name the contenders whose starts do not agree, so that their values may still rise."""
    if not comparison.unsettled:
        return []
    is_auto = comparison.fitting is None or comparison.fitting.options.is_auto
    # Random starts alone seldom find what kicks find, so a larger number would not help.
    advice = "compare several seeds" if is_auto else "use restarts='auto'"
    return [
        f"not settled: fewer than {ENOUGH} starts found the best fit of {quoted(comparison.unsettled)}; "
        f"better fits may raise their values and change the order, so {advice}"
    ]


def _of_kinds(comparison: Comparison) -> list[str]:
    """Tell of values of different kinds in one column, and of what was done about the first one."""
    mixed: dict[str, list[str]] = {}
    for score in comparison.scores:
        kinds: dict[Kind, list[str]] = {}
        for row in comparison.rows:
            kinds.setdefault(row.evidences[score].kind, []).append(row.name)
        if are_mixed(kinds):
            listed = "; ".join(f"{kind.value}: {quoted(names)}" for kind, names in kinds.items())
            mixed.setdefault(listed, []).append(score)
    notes = [
        f"under {' and '.join(names)} the values differ in kind ({listed}); an exact value beats a bound unfairly, "
        "so do not read a small difference between kinds as evidence"
        for listed, names in mixed.items()
    ]
    if comparison.sampled:
        count, rest = len(comparison.sampled), len(comparison.rows) - len(comparison.sampled)
        others = f"; {rest} more keep {comparison.scores[0]} and do not contend" if rest else ""
        notes.append(
            f"contenders within {comparison.within:g} nats of the best ({count}) are ranked by sampled evidence{others}"
        )
    return notes


def _of_bounds(comparison: Comparison) -> list[str]:
    """Tell when the first ones are ranked by values that are no evidence, and what would settle their order."""
    first, *others = comparison.posterior.ranked()
    second = next((each for each in others if each.key != first.key), None)
    if second is None or not {first.evidence.kind, second.evidence.kind} <= _KINDS.keys():
        return []
    ahead = first.log_prior + first.evidence.log_z - second.log_prior - second.evidence.log_z
    can_sample = comparison.fitting is None or comparison.fitting.table.has_integer_weights
    if ahead > comparison.within or not can_sample:
        return []
    return [
        f"{first.name!r} is ahead of {second.name!r} by {comparison.scores[0]}: {_KINDS[first.evidence.kind]}, and how "
        "far it is from the evidence differs by model; rescore=True samples the evidence"
    ]


def _edge_of_the_list(rows: Sequence[Row], posterior: StructurePosterior) -> list[str]:
    """Tell when the winner has the most hidden states of all models with its arrows: a larger one may be better yet."""
    best = posterior.best
    alike = [row for row in rows if row.dag.edges == best.dag.edges and row.dag.hidden.keys() == best.dag.hidden.keys()]
    largest = max(sum(row.dag.hidden.values()) for row in alike)
    if len(alike) < 3 or sum(best.dag.hidden.values()) < largest:
        return []
    return [f"{best.name!r} has the most hidden states of the models with its arrows and won; try more states"]
