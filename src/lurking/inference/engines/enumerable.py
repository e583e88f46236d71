"""An engine that visits joint states one by one, for what needs pairs of them."""

from __future__ import annotations

from lurking.errors import TooLarge
from lurking.inference.curvature.moments import NEEDS_STATES, has_tree
from lurking.inference.engines.base import Engine
from lurking.inference.engines.choice import enumeration_cost, looked_at
from lurking.inference.engines.components import Splitter, openings
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.problem import Problem

MOST_PAIRS = float(1 << 34)
"""Pairs of potentials, over all rows and joint states, up to which states are enumerated: half a minute, about."""


def enumerated(problem: Problem) -> Engine:
    """Return the engine of the problem, or one that enumerates where it has chosen a junction tree for speed.

    Refuses (TooLarge) where the tree was asked for, or is the only way.
    """
    engine = problem.engine
    if not has_tree(engine):
        return engine
    if problem.engine_name != "auto" or engine.is_in_blocks:
        raise TooLarge(NEEDS_STATES)
    return problem.remember("enumerated", lambda: _made(problem))


def _made(problem: Problem) -> Engine:
    layout, rows = problem.layout, problem.rows
    splitter = Splitter(layout, problem.prune)
    families = range(len(layout.nodes))
    looked = looked_at(layout, openings(layout, rows.codes, splitter)[0])
    if enumeration_cost(layout, looked, splitter, families)[0] * len(families) > MOST_PAIRS:
        raise TooLarge(NEEDS_STATES)
    return EnumerationEngine(layout, rows, problem.prune)
