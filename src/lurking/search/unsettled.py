"""More starts for the models of a comparison that may still win, where the first starts do not agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lurking.learn.loop import Status
from lurking.learn.options import FIRST
from lurking.learn.restarts import AGREED
from lurking.runtime.progress import Progress
from lurking.search.scoring import Row, Scoring, copied

AT_A_TIME = 4
"""Models that get more starts before those that may win are chosen again; fixed, so that workers do not matter."""
REACH = 3.0
"""More starts were seen to raise the best of ten by up to one and a half times their range."""
MOST_MODELS = 32
"""Models that get more starts at most; each takes up to a second."""


def first_look(scoring: Scoring) -> Scoring:
    """Return the scoring with the first starts alone, where `with_more_starts` can add more."""
    if scoring.options.is_auto and scoring.is_read_off_fits:
        return replace(scoring, options=replace(scoring.options, restarts=FIRST))
    return scoring


def with_more_starts(
    rows: Sequence[Row], scoring: Scoring, log_prior: Callable[[Row], float], within: float, progress: Progress
) -> list[Row]:
    """Return the rows, scored again with added starts where the first ones disagree and the model may still win.

    Starts are added as `restarts="auto"` does it. A model may win if its ln p(m) + log_z by the first score is at most
    `within` nats below the best, or at most `REACH` times as far as its own starts lie apart. Equal structures share
    one row, whatever they are called.
    """
    if not scoring.options.is_auto or not scoring.is_read_off_fits:
        return list(rows)
    first = scoring.first_of_equals([row.name for row in rows], [row.dag for row in rows])
    found = {row.name: row for row in rows if first[row.name] == row.name}
    again: set[str] = set()
    tried: set[str] = set()
    progress.begin("models with more starts", min(len(found), MOST_MODELS))
    try:
        while len(tried) < MOST_MODELS and not scoring.options.stop.is_set:
            waiting = _may_win(list(found.values()), scoring.scores[0], log_prior, within)
            chosen = [row for row in waiting if row.name not in tried and _disagrees(row)][:AT_A_TIME]
            if not chosen:
                break
            names, dags = [row.name for row in chosen], [row.dag for row in chosen]
            made = scoring.rows(names, dags, lambda _count: None)
            whole = {row.name: row for row in made if isinstance(row, Row) and _is_whole(row)}
            found |= whole
            again.update(whole)
            tried.update(names)
            progress.update(len(tried))
    finally:
        progress.end()
    return [_of_equal(row, found[first[row.name]]) if first[row.name] in again else row for row in rows]


def _of_equal(row: Row, made: Row) -> Row:
    """Return the new row of a structure, or of an equal one under its own name."""
    if row.name == made.name:
        return made
    other = copied(made, row.name, row.dag)
    assert isinstance(other, Row)
    return other


def _may_win(rows: Sequence[Row], score: str, log_prior: Callable[[Row], float], within: float) -> list[Row]:
    """Return the rows that are within reach of the best, the most probable one first."""
    value = {row.name: log_prior(row) + row.evidences[score].log_z for row in rows}
    best = max(value.values(), default=0.0)

    def reach(row: Row) -> float:
        starts = row.evidences[score].starts
        return within if starts is None else max(within, REACH * starts.range)

    near = [row for row in rows if value[row.name] + reach(row) >= best]
    return sorted(near, key=lambda row: -value[row.name])


def _disagrees(row: Row) -> bool:
    """Return True if the starts of some fit disagree so far that `restarts="auto"` would go on."""
    spreads = [evidence.starts for evidence in row.evidences.values() if evidence.starts is not None]
    return any(spread.enough > 1 and spread.n_at_best < AGREED for spread in spreads)


def _is_whole(row: Row) -> bool:
    return all(evidence.status is not Status.INTERRUPTED for evidence in row.evidences.values())
