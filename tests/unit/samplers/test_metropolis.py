"""Chains in parameter space: steps leave their target as it is, and the mean weight is the evidence."""

import itertools
import math
import threading

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError, TooLarge, UndefinedScore, UnknownNameError
from lurking.kernels.cpu.chains.metropolis import anneal_parameters_into, log_balance
from lurking.kernels.reference import metropolis as reference
from lurking.runtime.executor import StopFlag
from lurking.samplers.diagnostics import log_mean, relative_error
from lurking.samplers.metropolis import Walk, anneal_parameters, schedule, thermodynamic, wbic

ROWS = [(0, 1, 0), (1, 1, 1), (0, 1, 0), (1, 0, None), (0, 0, 1), (None, 1, 0), (1, 1, 1)]
LEVELS = dict.fromkeys("abc", (0, 1))
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS)
MODELS = [
    "s[2] -> a b c",
    "s[3] -> a b; c",
    "s[2] -> a b; t[2] -> b c",
    "s[2] -> t[2]; s -> a b; t -> b c",
    "a -> b -> c",
]
SWEEPS = ["joint", "family"]
LONG = pytest.mark.long

FRACTIONS = [((0, 1), 0.5), ((None, 1), 1.5), ((1, 0), 0.7), ((None, 0), 2.3), ((1, 1), 3.0)]


def fractional_problem(prior=2.0):
    rows, weights = [list(row) for row, _ in FRACTIONS], [weight for _, weight in FRACTIONS]
    return lk.Problem(
        "a -> b", lk.Table.from_rows(rows, list("ab"), levels=dict.fromkeys("ab", (0, 1)), weights=weights), prior
    )


def quadrature(temperature):
    """Return ln ∫ p(θ) p(y|θ)^τ dθ and E_τ[ln p(y|θ)] of `fractional_problem` by Gauss-Legendre, priors Beta(2, 2)."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    x = 0.5 * (nodes + 1.0)
    w = 0.5 * weights * 6.0 * x * (1.0 - x)
    root, first, second = np.meshgrid(x, x, x, indexing="ij")
    mass = w[:, None, None] * w[None, :, None] * w[None, None, :]
    log_likelihood = np.zeros_like(root)
    for (a, b), weight in FRACTIONS:
        given = [table if b == 0 else 1.0 - table for table in (first, second)]
        parts = [root * given[0], (1.0 - root) * given[1]]
        log_likelihood += weight * np.log(parts[0] + parts[1] if a is None else parts[a])
    tempered = mass * np.exp(temperature * log_likelihood)
    return math.log(tempered.sum()), float((tempered * log_likelihood).sum() / tempered.sum())


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("model", MODELS)
def test_the_mean_weight_is_the_evidence(model, sweep):
    problem = lk.Problem(model, TABLE, 0.8)
    exact = lk.score(model, TABLE, "exact", prior=0.8).log_z
    chains = anneal_parameters(
        problem, schedule(40), np.random.SeedSequence(1).spawn(1000), sweep=sweep, strength=(8.0, 1.0)
    )
    error = relative_error(chains.log_weights)
    assert error < 0.14
    assert log_mean(chains.log_weights) == pytest.approx(exact, abs=4.0 * error)
    assert chains.log_weights.mean() <= exact + 4.0 * chains.log_weights.std() / math.sqrt(1000)
    assert np.nanmin(chains.acceptance.mean(axis=0)) > 0.05


@pytest.mark.parametrize("sweep", [pytest.param("joint", marks=LONG), "family"])
def test_fractional_weights_by_quadrature(sweep):
    """Evidence, thermodynamic integral and WBIC of a problem whose parameters can be integrated on a grid."""
    problem, moves = fractional_problem(), {"sweep": sweep, "strength": (8.0, 1.0)}
    exact, _ = quadrature(1.0)
    chains = anneal_parameters(problem, schedule(100), np.random.SeedSequence(2).spawn(1500), **moves)
    assert log_mean(chains.log_weights) == pytest.approx(exact, abs=4.0 * relative_error(chains.log_weights))
    # Few sweeps per temperature lag behind it, and the thermodynamic integral shows it.
    chains = anneal_parameters(problem, schedule(100), np.random.SeedSequence(4).spawn(300), proposals=40, **moves)
    integral = thermodynamic(chains)
    assert integral.std_error < 0.02
    assert integral.value == pytest.approx(exact, abs=4.0 * integral.std_error)
    estimate = wbic(problem, chains=16, draws=4000, burn_in=200, seed=3, **moves).estimate
    assert estimate.std_error < 0.05
    assert estimate.value == pytest.approx(quadrature(1.0 / math.log(problem.n))[1], abs=4.0 * estimate.std_error)


def test_more_sweeps_and_steps_raise_the_mean_log_weight():
    problem = lk.Problem("s[2] -> a b c", TABLE)
    means = [
        anneal_parameters(problem, schedule(steps), np.random.SeedSequence(0).spawn(400), proposals=sweeps)
        .log_weights.mean()
        for steps, sweeps in ((3, 1), (30, 1), (300, 3))
    ]  # fmt: skip
    assert means[0] < means[1] < means[2]


def completed_moments(model, prior):
    """Return E[θ] and E[θ²] given ROWS by summing over completions of the empty cells, weighed by their evidence."""
    empty = [(i, j) for i, row in enumerate(ROWS) for j, cell in enumerate(row) if cell is None]
    total, first, second = 0.0, 0.0, 0.0
    for values in itertools.product((0, 1), repeat=len(empty)):
        rows = [list(row) for row in ROWS]
        for (i, j), value in zip(empty, values, strict=True):
            rows[i][j] = value
        problem = lk.Problem(model, lk.Table.from_rows(rows, list("abc"), levels=LEVELS), prior)
        weight = math.exp(lk.score(model, problem.table, "exact", prior=prior).log_z)
        alpha = problem.pseudo + problem.engine.complete_counts
        sums = problem.layout.row_sums(alpha)[problem.layout.row_of]
        total += weight
        first = first + weight * alpha / sums
        second = second + weight * alpha * (alpha + 1.0) / (sums * (sums + 1.0))
    return first / total, second / total


@pytest.mark.parametrize(
    ("temperature", "sweep", "floor"),
    [
        (0.0, "joint", 0.5),
        (1.0, "family", 1e-3),
        *(
            pytest.param(*case, marks=LONG)
            for case in itertools.product([0.0, 1.0], SWEEPS, [1e-3, 0.5])
            if case not in ((0.0, "joint", 0.5), (1.0, "family", 1e-3))
        ),
    ],
)
def test_long_chains_have_the_moments_of_prior_and_posterior(temperature, sweep, floor):
    model, prior = "a -> b -> c", 0.9
    walk = Walk(lk.Problem(model, TABLE, prior, prune=False), sweep, (4.0, 1.0), floor)
    steps = np.full(201, temperature)
    ends = np.exp([walk.run(steps, seed).log_theta for seed in np.random.SeedSequence(5).spawn(1500)])
    active = walk.problem.engine.active
    if temperature == 1.0:
        first, second = (moment[active] for moment in completed_moments(model, prior))
    else:  # Beta(0.9, 0.9) in every row
        first, second = 0.5, 0.9 * 1.9 / (1.8 * 2.8)
    for sample, expected in ((ends, first), (ends**2, second)):
        error = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
        assert np.all(np.abs(sample.mean(axis=0) - expected) < 4.0 * error)


@pytest.mark.parametrize(
    ("model", "sweep"),
    [
        ("s[2] -> a b c", "joint"),
        ("s[2] -> a b; t[2] -> b c", "family"),
        pytest.param("s[2] -> a b c", "family", marks=LONG),
        pytest.param("s[2] -> a b; t[2] -> b c", "joint", marks=LONG),
    ],
)
def test_joint_distribution(model, sweep):
    """θ from the prior, y | θ, then θ' by steps at τ = 1 given y: (θ', y) has the law of (θ, y) (Geweke 2004)."""
    generator, n, rounds = np.random.default_rng(0), 12, 800
    layout = lk.Problem(model, TABLE).layout
    before, after = np.empty((rounds, layout.size + 1)), np.empty((rounds, layout.size + 1))
    moved = 0
    for k, seed in enumerate(np.random.SeedSequence(1).spawn(rounds)):
        theta = layout.normalise(generator.standard_gamma(np.full(layout.size, 1.5)))
        levels = dict.fromkeys(layout.nodes, (0, 1))
        rows = lk.Network.from_tables(layout.dag, layout.split(theta), levels).sample(n, seed=int(k))
        problem = lk.Problem(model, lk.Table.from_codes({c: (rows[c].codes, (0, 1)) for c in "abc"}), 1.5)
        track = Walk(problem, sweep, (5.0, 1.0)).run(np.ones(16), seed, np.log(theta))
        before[k] = *theta, problem.engine.expect_active(np.log(theta))[1]
        after[k] = *np.exp(track.log_theta), track.log_likelihoods[-1]
        moved += int(track.tally[1].sum() > 0)
    assert moved > 0.9 * rounds
    # Paired differences of θ, θ² and ln p(y|θ) have mean 0.
    for difference in (after - before, after**2 - before**2):
        error = difference.std(axis=0, ddof=1) / math.sqrt(rounds)
        assert np.all(np.abs(difference.mean(axis=0)) < 4.0 * error)


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("model", [*MODELS, "fractions"])
def test_kernel_and_reference_take_the_same_steps(model, sweep):
    problem = fractional_problem() if model == "fractions" else lk.Problem(model, TABLE, 0.7)
    walk, engine = Walk(problem, sweep), problem.engine
    slow = lk.Problem(problem.full_dag, problem.table, problem.prior, engine="reference")
    posterior = lk.LogPosterior(slow)

    def target(log_theta):
        """Table rows that nothing unobserved touches stay at equal probabilities, and have no part."""
        potentials = np.zeros(problem.layout.size)
        potentials[engine.active] = log_theta
        point = posterior.coordinates(potentials)
        known = engine.complete_counts[engine.inactive] @ posterior.potentials(point)[engine.inactive]
        return reference.Point(log_theta, posterior.log_prior(point), posterior.log_likelihood(point) - known)

    row_start = engine.program.row_start
    steps = schedule(12)
    moves = (steps, 5.0 + 2.0 * problem.n * steps[1:], 0.05)
    sums = np.add.reduceat(walk.pseudo, row_start[:-1])
    start = np.log(walk.pseudo / np.repeat(sums, np.diff(row_start)))
    expected = reference.anneal_parameters(target, row_start, walk.blocks, moves, 2, np.random.default_rng(4), start)
    point, out = start.copy(), (np.empty(12), np.empty(12), np.empty((2, 4), np.int64))
    stop = np.zeros(1, np.int64)
    arguments = engine.program, walk.pseudo, walk.blocks, moves, 2, np.random.default_rng(4), stop, point, out
    is_whole, total = anneal_parameters_into(*arguments)
    assert is_whole
    assert out[0] == pytest.approx(expected[0], rel=1e-9)
    assert out[1] == pytest.approx(expected[1], rel=1e-9)
    assert point == pytest.approx(expected[3], rel=1e-9)
    assert total == pytest.approx(expected[0].sum(), rel=1e-12)
    assert np.array_equal(out[2][0], np.full(4, 3 * 2 * (len(walk.blocks) - 1)))
    assert np.array_equal(out[2][1], expected[2].reshape(4, -1).sum(axis=1))


@pytest.mark.parametrize("lowest", [0.0, -50.0, -700.0, -5000.0])
def test_the_hastings_correction_of_very_small_probabilities(lowest):
    row_start = np.asarray([0, 3, 5], np.int64)
    pseudo = np.asarray([0.3, 1.0, 2.0, 5.0, 0.01])
    points = []
    for seed in (0, 1):
        weights = np.log(np.random.default_rng(seed).random(5)) + np.asarray(
            [lowest * (1 + seed), 0.0, 0.0, lowest, 0.0]
        )
        points.append(np.concatenate([row - np.logaddexp.reduce(row) for row in (weights[:3], weights[3:])]))
    here, there = points
    # Over logits the density of the prior is Π θ^λ.
    old, new = (
        reference.Point(point, pseudo @ point, value) for point, value in zip(points, (-3.0, -5.0), strict=True)
    )
    for strength, floor in ((0.5, 1e-3), (40.0, 0.1), (3000.0, 1.0)):
        expected = reference.log_acceptance(row_start, (0.0, strength, floor), old, new)
        assert log_balance(pseudo, (0, 5), (strength, floor), here, there) == pytest.approx(expected, rel=1e-9)
        back = log_balance(pseudo, (0, 5), (strength, floor), there, here)
        assert back == pytest.approx(-expected, rel=1e-9)
        tempered = reference.log_acceptance(row_start, (0.5, strength, floor), old, new)
        assert tempered == pytest.approx(expected - 1.0, rel=1e-9)


def test_families_are_the_blocks():
    problem = lk.Problem(
        "s[2] -> a b; t[2] -> b c", lk.Table.from_rows([(0, 1, 0), (1, 1, 1)], list("abc"), levels=LEVELS)
    )
    rows_of = {name: problem.layout.configurations[problem.layout.index[name]] for name in problem.layout.nodes}
    assert np.array_equal(np.diff(Walk(problem, "family").blocks), list(rows_of.values()))
    assert np.array_equal(Walk(problem, "joint").blocks, [0, sum(rows_of.values())])


def test_results_do_not_depend_on_the_number_of_workers():
    problem = lk.Problem("s[2] -> a b; t[2] -> b c", TABLE)
    one, two = (
        anneal_parameters(problem, schedule(20), np.random.SeedSequence(3).spawn(8), workers=workers)
        for workers in (1, 3)
    )
    assert len(one) == 8
    for name in ("log_weights", "increments", "log_likelihoods", "acceptance", "log_theta"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert len(set(one.log_weights)) == 8
    one, two = (wbic(problem, chains=3, draws=50, seed=1, workers=workers).log_likelihoods for workers in (1, 3))
    assert one.shape == (3, 50)
    assert np.array_equal(one, two)
    assert math.isnan(wbic(problem, chains=1, draws=50).estimate.std_error)


def test_complete_data_are_exact():
    rows = [row for row in ROWS if None not in row]
    problem = lk.Problem("a -> b -> c", lk.Table.from_rows(rows, list("abc"), levels=LEVELS), 0.8)
    exact = lk.score("a -> b -> c", problem.table, "exact", prior=0.8).log_z
    chains = anneal_parameters(problem, schedule(5), np.random.SeedSequence(0).spawn(3))
    assert chains.log_weights == pytest.approx(np.full(3, exact), rel=1e-12)
    assert thermodynamic(chains).value == pytest.approx(exact, rel=1e-12)
    assert np.isnan(chains.acceptance).all()
    assert chains.log_theta.shape == (3, 0)
    # E[Σ N ln θ] under Dir(λ + τ N) is the slope of D(λ, τ N) in τ.
    tau, step = 1.0 / math.log(problem.n), 1e-5
    sides = []
    for share in (tau - step, tau + step):
        table = lk.Table.from_rows(rows, list("abc"), levels=LEVELS, weights=[share] * len(rows))
        sides.append(lk.score("a -> b -> c", table, "exact", prior=0.8).log_z)
    value = wbic(problem, chains=2, draws=1).estimate.value
    assert value == pytest.approx((sides[1] - sides[0]) / (2.0 * step), rel=1e-6)


def test_starts_replace_the_draw_of_the_prior():
    problem = lk.Problem("s[2] -> a b c", TABLE)
    theta = problem.layout.normalise(np.random.default_rng(1).random(problem.layout.size))
    start = np.log(theta)[problem.engine.active]
    seeds = np.random.SeedSequence(0).spawn(4)
    chains = anneal_parameters(problem, schedule(10), seeds, starts=start)
    log_likelihood = problem.engine.expect_active(start)[1]
    assert chains.increments[:, 0] == pytest.approx(np.full(4, schedule(10)[1] * log_likelihood), rel=1e-12)
    assert not np.array_equal(chains.log_theta[0], chains.log_theta[1])
    again = anneal_parameters(problem, schedule(10), seeds, starts=np.tile(start, (4, 1)))
    assert np.array_equal(chains.log_weights, again.log_weights)
    for bad, words in (
        (start[:-1], "starts has shape"),
        (np.tile(start, (3, 1)), "starts has shape"),
        (start - 0.1, "a table row that sums to 0.90"),
        (np.where(np.arange(len(start)) == 0, -math.inf, start), "not finite"),
        (-start, "above 0"),
    ):
        with pytest.raises(OptionError, match=words):
            anneal_parameters(problem, schedule(10), seeds, starts=bad)


def test_the_schedule_of_the_paper():
    assert schedule(4) == pytest.approx([0.0, 0.05 / 0.95, 0.1 / 0.7, 0.15 / 0.45, 1.0])
    assert schedule(2, 1e9) == pytest.approx([0.0, 0.5, 1.0])
    for steps, curvature in ((1, 0.2), (7, 1e-12), (16384, 0.2), (1000, 3.7)):
        taus = schedule(steps, curvature)
        assert len(taus) == steps + 1
        assert taus[0] == 0.0
        assert taus[-1] == 1.0
        assert np.all(np.diff(taus) > 0.0)


@pytest.mark.parametrize("steps", [0, -1, 2.5, True, "4"])
def test_steps_must_be_whole_and_positive(steps):
    with pytest.raises(OptionError, match=r"steps is .* whole number of at least 1"):
        schedule(steps)


@pytest.mark.parametrize("curvature", [0.0, -0.2, math.inf, math.nan, True, "0.2"])
def test_curvature_must_be_positive(curvature):
    with pytest.raises(OptionError, match=r"curvature is .* above 0, for example 0.2"):
        schedule(10, curvature)


@pytest.mark.parametrize(
    "strength", [(0.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (math.inf, 0.0), (1.0,), 5.0, "ab", (1, None)]
)
def test_strengths_must_be_two_numbers(strength):
    with pytest.raises(OptionError, match=r"strength is .* two finite numbers"):
        Walk(lk.Problem("s[2] -> a b c", TABLE), strength=strength)


def test_refusals():
    problem = lk.Problem("s[2] -> a b c", TABLE)
    seeds = np.random.SeedSequence(0).spawn(1)
    with pytest.raises(UnknownNameError, match=r"unknown sweep 'families'.*'family'"):
        anneal_parameters(problem, schedule(4), seeds, sweep="families")
    with pytest.raises(OptionError, match="proposals is 0"):
        anneal_parameters(problem, schedule(4), seeds, proposals=0)
    with pytest.raises(OptionError, match=r"floor is 0\.0; it must be a finite number above 0"):
        anneal_parameters(problem, schedule(4), seeds, floor=0.0)
    with pytest.raises(OptionError, match="schedule of temperatures"):
        anneal_parameters(problem, np.asarray([0.0, 0.5]), seeds)
    for option in ("chains", "draws", "burn_in"):
        with pytest.raises(OptionError, match=f"{option} is 0"):
            wbic(problem, **{option: 0})
    with pytest.raises(UndefinedScore, match="n = 2"):
        wbic(lk.Problem("s[2] -> a b c", lk.Table.from_rows(ROWS[:2], list("abc"), levels=LEVELS)))
    chain = "; ".join(f"h{i}[2] -> h{i + 1}[2]; h{i} -> y{i}" for i in range(12))
    signals = lk.Table.from_array(np.arange(48).reshape(4, 12) % 2, [f"y{i}" for i in range(12)])
    with pytest.raises(TooLarge, match="sampling needs hidden variables that can be enumerated"):
        anneal_parameters(lk.Problem(chain, signals), schedule(4), seeds)


def test_a_chain_that_is_stopped_is_given_up(monkeypatch):
    """The first of two long chains is stopped soon after it began, or it would be kept."""
    problem = lk.Problem("s[2] -> a b c", TABLE)
    stop, run = StopFlag(), Walk.run
    long, seeds = np.linspace(0.0, 1.0, 3_000_001), np.random.SeedSequence(0).spawn(2)

    def stopped_soon(*arguments):
        threading.Timer(0.05, stop.set).start()
        return run(*arguments)

    monkeypatch.setattr(Walk, "run", stopped_soon)
    chains = anneal_parameters(problem, long, seeds, workers=1, stop=stop)
    monkeypatch.undo()
    assert len(chains) == 0
    assert chains.increments.shape == (0, 3_000_000)
    assert not Walk(problem).run(schedule(4), seeds[0], stop=stop).is_whole
    assert Walk(problem).run(schedule(4), seeds[0]).is_whole
