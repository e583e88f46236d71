"""What every exact engine must keep, one check for each property.

A check takes a `Case`: how an engine is made, and for what. It raises AssertionError, or the library's own
`EngineError`, if the engine breaks the property. `CHECKS` has all of them by name; `broken(case)` runs them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lurking.errors import EngineError
from lurking.inference.engines.base import Engine
from lurking.inference.engines.components import kept_nodes
from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.rows import Rows
from lurking.models.layout import Layout

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@dataclass(frozen=True, eq=False)
class Case:
    """How an engine is made, and for what."""

    make: Callable[[Layout, Rows, bool], Engine]
    layout: Layout
    rows: Rows
    prune: bool

    @cached_property
    def engine(self) -> Engine:
        """The engine."""
        return self.make(self.layout, self.rows, self.prune)

    @cached_property
    def reference(self) -> ReferenceEngine:
        """Brute force."""
        return ReferenceEngine(self.layout, self.rows, self.prune)

    def of(self, rows: Rows) -> "Case":
        """Return the case with other rows."""
        return replace(self, rows=rows)

    @property
    def points(self) -> np.ndarray:
        """(4, P) potentials: below 0, on both sides of 0, some −∞, and all −∞, so that no row is possible."""
        generator = np.random.default_rng(0)
        points = generator.normal(-1.0, 1.0, (4, self.layout.size))
        points[0] = -np.abs(points[0])
        points[2, generator.random(self.layout.size) < 0.2] = -np.inf
        points[3] = -np.inf
        return points


def counts_have_the_right_size(case):
    """Counts are (P,), and (Q,) over the active positions; log_z is a number."""
    engine, point = case.engine, case.points[0]
    assert engine.complete_counts.shape == (case.layout.size,)
    counts, log_z = engine.expect(point)
    assert counts.shape == (case.layout.size,)
    assert np.isfinite(log_z)
    active, share = engine.expect_active(point[engine.active])
    assert active.shape == engine.active.shape
    assert np.isfinite(share)
    for impossible in case.points[2:]:
        assert not np.isnan(engine.expect(impossible)[1])


def active_positions_are_what_is_inferred(case):
    """Active positions are whole table rows, none if nothing that stays is unobserved; the others have their counts."""
    engine, layout, point = case.engine, case.layout, case.points[0]
    assert np.array_equal(np.sort(np.concatenate([engine.active, engine.inactive])), np.arange(layout.size))
    assert not set(layout.row_of[engine.active]) & set(layout.row_of[engine.inactive])
    kept = kept_nodes(layout, case.rows.codes, case.prune)
    assert bool(engine.active.size) == bool(np.any(kept & (case.rows.codes < 0)))
    counts, log_z = engine.expect(point)
    active, share = engine.expect_active(point[engine.active])
    np.testing.assert_array_equal(counts[engine.active], active)
    np.testing.assert_array_equal(counts[engine.inactive], engine.complete_counts[engine.inactive])
    rest = engine.complete_counts[engine.inactive] @ point[engine.inactive]
    np.testing.assert_allclose(log_z, share + rest + engine.log_base, **CLOSE)


def counts_are_the_gradient(case):
    """N = ∂ log_z/∂φ, by central differences."""
    engine = case.engine
    for point in case.points[:2]:
        counts = engine.expect(point)[0]
        steps = 1e-5 * np.eye(len(point))
        slopes = [(engine.expect(point + step)[1] - engine.expect(point - step)[1]) / 2e-5 for step in steps]
        np.testing.assert_allclose(counts, slopes, rtol=1e-6, atol=1e-7)


def many_points_are_one_by_one(case):
    """`log_z` over many points is `expect` at each, also at −∞; no point gives no number."""
    engine, points = case.engine, case.points
    expected = [engine.expect(point)[1] for point in points]
    np.testing.assert_allclose(engine.log_z(points), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(engine.log_z(np.asfortranarray(points)), expected, rtol=1e-13, atol=1e-13)
    assert engine.log_z(points[:0]).shape == (0,)


def potentials_are_left_alone(case):
    """No question changes the potentials."""
    engine, points = case.engine, case.points
    before = points.copy()
    engine.expect(points[0])
    engine.log_z(points)
    if not engine.is_in_blocks:
        engine.pattern_log_z(points[0])
        engine.pattern_statistics(points[0])
    np.testing.assert_array_equal(points, before)


def brute_force_agrees(case):
    """Counts and log_z are those of the reference to 1e-12, in logarithms too."""
    for point in case.points:
        counts, log_z = case.engine.expect(point)
        expected, expected_log_z = case.reference.expect(point)
        np.testing.assert_allclose(log_z, expected_log_z, **CLOSE)
        if np.isfinite(log_z):
            np.testing.assert_allclose(counts, expected, **CLOSE)


def patterns_add_up(case):
    """Σ w ln z of the patterns is log_z, and Σ w of their statistics is N."""
    engine = case.engine
    if engine.is_in_blocks:
        return
    for point in case.points[:2]:
        counts, log_z = engine.expect(point)
        np.testing.assert_allclose(case.rows.weights @ engine.pattern_log_z(point), log_z, **CLOSE)
        np.testing.assert_allclose(case.rows.weights @ engine.pattern_statistics(point), counts, **CLOSE)


def patterns_are_those_of_brute_force(case):
    """Every pattern on its own has the ln z and the statistics of the reference; −∞ where it is impossible."""
    engine = case.engine
    if engine.is_in_blocks:
        return
    for point in case.points:
        log_z = case.reference.pattern_log_z(point)
        np.testing.assert_allclose(engine.pattern_log_z(point), log_z, **CLOSE)
        possible = np.isfinite(log_z)
        expected = case.reference.pattern_statistics(point)[possible]
        np.testing.assert_allclose(engine.pattern_statistics(point)[possible], expected, **CLOSE)


def marginals_are_posteriors(case):
    """Rows sum to 1, know what is observed, are NaN exactly where the node is pruned, and are the reference's."""
    engine, codes, point = case.engine, case.rows.codes, case.points[0]
    if engine.is_in_blocks:
        return
    kept = kept_nodes(case.layout, codes, case.prune)
    for node, states in enumerate(case.layout.cardinalities):
        marginals = engine.pattern_marginals(point, node)
        assert marginals.shape == (len(codes), states)
        np.testing.assert_array_equal(np.isnan(marginals).any(axis=1), ~kept[:, node])
        np.testing.assert_allclose(marginals[kept[:, node]].sum(axis=1), 1.0, **CLOSE)
        seen = np.flatnonzero(codes[:, node] >= 0)
        np.testing.assert_allclose(marginals[seen, codes[seen, node]], 1.0, **CLOSE)
        np.testing.assert_allclose(marginals, case.reference.pattern_marginals(point, node), **CLOSE)


def order_and_splitting_do_not_matter(case):
    """Rows in another order, and each row twice with half its weight, give the same."""
    point, rows = case.points[0], case.rows
    counts, log_z = case.engine.expect(point)
    halves = replace(rows.take(np.repeat(np.arange(len(rows)), 2)), weights=np.repeat(rows.weights / 2.0, 2))
    for other in (rows.take(np.arange(len(rows))[::-1]), halves):
        own, own_log_z = case.of(other).engine.expect(point)
        np.testing.assert_allclose(own_log_z, log_z, **CLOSE)
        np.testing.assert_allclose(own, counts, **CLOSE)


def no_rows_give_nothing(case):
    """Without rows log_z is 0, and there is no count and no pattern."""
    engine, layout, point = case.of(case.rows.take(slice(0))).engine, case.layout, case.points[0]
    counts, log_z = engine.expect(point)
    assert log_z == 0.0
    assert not counts.any()
    assert not engine.active.size
    if not engine.is_in_blocks:
        assert engine.pattern_log_z(point).shape == (0,)
        assert engine.pattern_statistics(point).shape == (0, layout.size)
        assert engine.pattern_marginals(point, 0).shape == (0, layout.cardinalities[0])


def base_measure_is_added(case):
    """log_z gains Σ w ln h, and every pattern its ln h; counts do not change."""
    rows, point = case.rows, case.points[0]
    log_base = np.random.default_rng(1).normal(size=len(rows))
    engine, plain = case.of(replace(rows, log_base=log_base)).engine, case.of(replace(rows, log_base=0.0 * log_base))
    counts, log_z = plain.engine.expect(point)
    moved, moved_log_z = engine.expect(point)
    np.testing.assert_array_equal(moved, counts)
    np.testing.assert_allclose(moved_log_z, log_z + rows.weights @ log_base, **CLOSE)
    np.testing.assert_allclose(engine.log_z(point[None, :]), [moved_log_z], **CLOSE)
    if not engine.is_in_blocks:
        gained = engine.pattern_log_z(point) - plain.engine.pattern_log_z(point)
        np.testing.assert_allclose(gained, log_base, rtol=1e-11, atol=1e-11)


def pieces_are_the_compiled_rows(case):
    """What the pieces give, with the constant counts, is the E-step; the covariance is that of the reference."""
    engine = case.engine
    point = case.points[0][engine.active]
    if engine.pieces is None:
        np.testing.assert_allclose(whole_covariance(engine, case), whole_covariance(case.reference, case), **CLOSE)
        return
    counts = engine.complete_counts[engine.active].copy()
    log_z = counts @ point
    for piece in engine.pieces:
        piece.places = np.searchsorted(engine.active, piece.active)
        own, share = piece.expect(point)
        counts[piece.places] += own
        log_z += share
        np.testing.assert_allclose(piece.log_z(point[None, :]), [share], **CLOSE)
    np.testing.assert_allclose(log_z, engine.expect_active(point)[1], **CLOSE)
    np.testing.assert_allclose(counts, engine.expect_active(point)[0], **CLOSE)


def whole_covariance(engine, case):
    """The covariance of an engine over all positions, (P, P)."""
    result = np.zeros((case.layout.size, case.layout.size))
    result[np.ix_(engine.active, engine.active)] = engine.covariance(case.points[0][engine.active])
    return result


CHECKS: dict[str, Callable[[Case], None]] = {
    check.__name__: check
    for check in (
        counts_have_the_right_size,
        active_positions_are_what_is_inferred,
        counts_are_the_gradient,
        many_points_are_one_by_one,
        potentials_are_left_alone,
        brute_force_agrees,
        patterns_add_up,
        patterns_are_those_of_brute_force,
        marginals_are_posteriors,
        order_and_splitting_do_not_matter,
        no_rows_give_nothing,
        base_measure_is_added,
        pieces_are_the_compiled_rows,
    )
}


def broken(case: Case) -> dict[str, str]:
    """Return {check: first line of what it found} of the checks that an engine does not pass."""
    found = {}
    for name, check in CHECKS.items():
        try:
            check(case)
        except (AssertionError, EngineError) as error:
            found[name] = next((line for line in str(error).splitlines() if line), "")
    return found
