"""The damped climb on tables, where the plain one is known to be right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.rows import Rows
from lurking.learn.loop import Climber, ClimbOptions, Status, rule_of


class NotConvex(ReferenceEngine):
    """The same E-step, without the promise that B is a bound."""

    is_convex = False


class Overshooting(NotConvex):
    """Statistics three times too far from those of the prior mean, so that undamped steps overshoot."""

    centre = None

    def expect_active(self, potentials):
        counts, log_z = super().expect_active(potentials)
        if self.centre is None:
            self.centre = counts
        return np.maximum(self.centre + 3.0 * (counts - self.centre), 0.0), log_z


def ends(small, method, kind=NotConvex, **options):
    given = (small.layout, Rows.of_codes(small.codes, small.weights), False)
    start = np.log(small.theta())
    found = []
    for engine in (ReferenceEngine(*given), kind(*given)):
        climber = Climber(engine, small.pseudo, rule_of(method), float(small.weights.sum()))
        found.append(climber.climb(start, ClimbOptions(**{"max_iter": 4000, "tol": 1e-12} | options)))
    return found


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
@given(data=st.data())
def test_rises_and_ends_at_a_fixed_point_of_plain_steps(small_problems, method, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, max_states=40, least_lambda=0.1))
    plain, damped = ends(small, method)
    assert np.all(np.diff(damped.trace) >= 0.0)
    if plain.status is Status.CLOSED_FORM:
        assert damped.objective == pytest.approx(plain.objective, rel=1e-9)
        return
    # From there the plain climb, whose objective equals the other one at fixed points, has nothing to gain.
    given_ = (small.layout, Rows.of_codes(small.codes, small.weights), False)
    climber = Climber(ReferenceEngine(*given_), small.pseudo, rule_of(method), float(small.weights.sum()))
    after = climber.climb(climber.resume(damped), ClimbOptions(200, 1e-12))
    slack = 1e-6 * max(1.0, abs(damped.objective))
    assert after.objective >= damped.objective - slack
    if damped.status is Status.CONVERGED and method == "vb":
        assert after.trace[0] == pytest.approx(damped.objective, abs=slack)


@given(data=st.data())
def test_variational_posterior_belongs_to_the_objective(small_problems, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, max_states=40, least_lambda=0.1))
    _, damped = ends(small, "vb", max_iter=7)
    if damped.status is Status.CLOSED_FORM:
        return
    engine = ReferenceEngine(small.layout, Rows.of_codes(small.codes, small.weights), False)
    blocks = small.layout.blocks
    alpha = small.pseudo + damped.counts
    _, log_z = engine.expect(blocks.expected(alpha))
    assert damped.objective == pytest.approx(log_z - blocks.kl_divergence(alpha, small.pseudo), rel=1e-9, abs=1e-9)


@given(data=st.data())
def test_overshooting_steps_are_halved(small_problems, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, max_states=40, least_lambda=0.1))
    _, damped = ends(small, "vb", Overshooting, max_iter=60)
    assert np.all(np.diff(damped.trace) >= 0.0)


@given(data=st.data())
def test_iterations_are_counted_and_limited(small_problems, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, max_states=40, least_lambda=0.1))
    _, damped = ends(small, "vb", max_iter=3, tol=0.0)
    assert damped.n_iter <= 3
    assert damped.status in (Status.MAX_ITER, Status.CLOSED_FORM, Status.CONVERGED)
