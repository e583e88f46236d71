"""Random draws of what is unobserved: their mean is the E-step, and their law is that of the brute-force twin."""

import numpy as np
import pytest

import lurking as lk
from lurking.inference.engines.reference import ReferenceEngine
from lurking.kernels.cpu.sampling import draw_into, draw_log_theta
from lurking.kernels.reference.sampling import draw_counts

MODELS = ["s[2] -> a b c", "s[3] -> a b; t[2] -> b c", "s[2] -> t[2]; s -> a; t -> b c", "a -> b -> c"]


def problem_of(model, weights=(1, 4, 30, 2)):
    rows = [(0, 1, 0), (1, None, 1), (None, 1, 0), (1, 0, None)]
    table = lk.Table.from_rows(rows, list("abc"), levels=dict.fromkeys("abc", (0, 1)), weights=list(weights))
    return lk.Problem(model, table)


def draws(problem, phi, count, seed=0):
    """Return counts (draws, Q) and log_z of every draw."""
    program, generator = problem.engine.program, np.random.default_rng(seed)
    scratch = (np.empty(program.joined.n_cells), np.empty(program.joined.n_cells))
    result, log_z = np.empty((count, len(phi))), np.empty(count)
    for k in range(count):
        log_z[k] = draw_into(program, phi, result[k], scratch, generator, True)
    return result, log_z


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shift", [-0.5, -300.0, 1.0], ids=["plain", "underflowing", "positive"])
def test_the_mean_of_draws_is_the_e_step(model, shift):
    problem = problem_of(model)
    phi = np.random.default_rng(1).normal(shift, 1.0, len(problem.engine.active))
    counts, log_z = problem.engine.expect_active(phi)
    drawn, drawn_log_z = draws(problem, phi, 4000)
    assert drawn_log_z == pytest.approx(np.full(4000, log_z), rel=1e-12)
    error = drawn.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(drawn.mean(axis=0) - counts) <= 5.0 * error + 1e-9)
    assert np.array_equal(drawn, np.rint(drawn))


@pytest.mark.parametrize("model", MODELS[:3])
def test_draws_have_the_spread_of_the_twin(model):
    problem = problem_of(model)
    layout, active = problem.layout, problem.engine.active
    potentials = np.log(layout.normalise(np.random.default_rng(2).random(layout.size) + 0.1))
    drawn, _ = draws(problem, np.ascontiguousarray(potentials[active]), 4000)
    reference = ReferenceEngine(layout, problem.rows, True)
    generator = np.random.default_rng(3)
    slow = np.asarray(
        [
            draw_counts(
                layout.cardinalities, layout.parents, layout.offsets, reference.codes, reference.kept,
                problem.rows.weights, potentials, generator,
            )[active]
            for _ in range(1500)
        ]
    )  # fmt: skip
    assert drawn.mean(axis=0) == pytest.approx(slow.mean(axis=0), abs=5 * np.max(slow.std(axis=0)) / np.sqrt(1500))
    assert drawn.var(axis=0) == pytest.approx(slow.var(axis=0), rel=0.25, abs=0.05)


def test_a_repeated_row_is_one_multinomial_draw():
    """Forty rows of weight 1 and one row of weight 40 have the same law."""
    one = lk.Table.from_rows([(0, 1)], list("ab"), levels=dict.fromkeys("ab", (0, 1)), weights=[40])
    problem = lk.Problem("s[3] -> a b", one)
    phi = np.log(problem.layout.normalise(np.random.default_rng(0).random(problem.layout.size)))[problem.engine.active]
    drawn, _ = draws(problem, np.ascontiguousarray(phi), 6000)
    share = problem.engine.expect_active(phi)[0][:3] / 40.0
    states = drawn[:, :3]
    assert np.all(states.sum(axis=1) == 40)
    assert states.var(axis=0) == pytest.approx(40 * share * (1 - share), rel=0.1)
    assert np.cov(states.T)[0, 1] == pytest.approx(-40 * share[0] * share[1], rel=0.15)


def test_impossible_states_are_never_drawn():
    problem = problem_of("s[3] -> a b c")
    phi = np.log(problem.layout.normalise(np.random.default_rng(0).random(problem.layout.size)))
    phi[1] = -np.inf
    drawn, _ = draws(problem, np.ascontiguousarray(phi[problem.engine.active]), 500)
    assert np.all(drawn[:, 1] == 0.0)


@pytest.mark.parametrize("shape", [(2.0, 3.0, 0.5), (0.01, 0.02, 0.03), (1e-6, 1e-6), (50.0, 1.0)])
def test_dirichlet_draws(shape):
    rows, generator = np.asarray([0, len(shape)]), np.random.default_rng(0)
    alpha, out = np.asarray(shape), np.empty(len(shape))
    points = []
    for _ in range(8000):
        draw_log_theta(rows, alpha, generator, out)
        assert np.all(out <= 1e-12)
        points.append(np.exp(out))
    mean = alpha / alpha.sum()
    points = np.asarray(points)
    assert points.sum(axis=1) == pytest.approx(np.ones(8000))
    error = np.sqrt(mean * (1 - mean) / (alpha.sum() + 1) / 8000)
    assert np.all(np.abs(points.mean(axis=0) - mean) < 5 * error + 1e-12)
    variance = mean * (1 - mean) / (alpha.sum() + 1)
    assert points.var(axis=0) == pytest.approx(variance, rel=0.12)


def test_equal_generators_draw_alike():
    problem = problem_of("s[2] -> a b c")
    phi = np.zeros(len(problem.engine.active)) - 1.0
    assert np.array_equal(draws(problem, phi, 20, seed=5)[0], draws(problem, phi, 20, seed=5)[0])
    assert not np.array_equal(draws(problem, phi, 20, seed=5)[0], draws(problem, phi, 20, seed=6)[0])
