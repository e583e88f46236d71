"""The posterior density of one point: right for chains that stay in a mode and for chains that change it."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, OptionError
from lurking.expfam.dirichlet import Dirichlet
from lurking.kernels.cpu.chains.gibbs import counts_into, gibbs_into
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.samplers import aliases
from lurking.samplers.aliases import relabelings
from lurking.samplers.candidate import CandidateDensity, candidate_density

LEVELS = dict.fromkeys("abcd", (0, 1, 2))
ROWS = [(0, 1, 2, 0), (2, 1, 0, 1), (1, None, 0, 2), (0, 0, 2, 0), (2, None, 0, 1)]
TABLE = lk.Table.from_rows(ROWS, list("abcd"), levels=LEVELS)

# Hidden states that chains do not exchange, and some rows that might belong to either.
APART = {
    2: lk.Table.from_rows(
        [(0,) * 5, (1,) * 5, (0, 0, 0, 1, 1), (1, 1, 1, 0, 0)], list("abcde"), weights=[20, 20, 3, 2]
    ),
    3: lk.Table.from_rows([(0,) * 6, (1,) * 6, (2,) * 6, (0, 0, 0, 1, 1, 1)], list("abcdef"), weights=[6, 6, 6, 1]),
}


def mode(problem):
    return fit_problem(problem, "map", FitOptions(seed=0))


def evidence(problem, density):
    """Return ln p(y|θ*) + ln p(θ*) − ln p(θ*|y) at the mode."""
    fit = mode(problem)
    prior = Dirichlet(problem.layout.row_start).log_density(problem.pseudo, fit.potentials)
    return fit.log_z + prior - density.log_density


@pytest.mark.parametrize("states", [2, 3])
def test_averaging_repairs_what_chains_in_one_mode_get_wrong(states):
    problem = lk.Problem(f"s[{states}] -> *", APART[states], 0.5)
    exact = lk.score(f"s[{states}] -> *", APART[states], "exact", prior=0.5, budget=10**7).log_z
    point = mode(problem).potentials
    plain, shared = (candidate_density(problem, point, average=average, seed=1) for average in (False, True))
    assert set(shared.near) == {0}
    assert shared.switched == 0.0
    assert shared.n_relabelings == math.factorial(states)
    assert shared.is_trusted
    assert shared.std_error < 0.05
    assert evidence(problem, shared) == pytest.approx(exact, abs=4.0 * shared.std_error)
    assert evidence(problem, plain) == pytest.approx(exact - math.lgamma(states + 1.0), abs=4.0 * plain.std_error)


def test_the_mode_that_chains_stay_in_does_not_matter():
    problem = lk.Problem("s[3] -> *", APART[3], 0.5)
    point = mode(problem).potentials
    own = candidate_density(problem, point, seed=1)
    for place, permutation in enumerate(relabelings(problem.layout, problem.pseudo)):
        other = candidate_density(problem, point, starts=point[permutation], seed=2)
        assert other.near == {place: 1.0}
        error = math.hypot(own.std_error, other.std_error)
        assert other.log_density == pytest.approx(own.log_density, abs=4.0 * error)


def test_chains_that_switch_agree_with_chains_that_do_not():
    """Chains change names about once in a thousand sweeps here: some stay, some do not, and their means agree."""
    table = lk.Table.from_rows(
        [(1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0), (0, None, 0, 1)], list("abcd"), weights=[5, 4, 2, 1]
    )
    problem = lk.Problem("s[2] -> *", table)
    density = candidate_density(problem, mode(problem).potentials, chains=40, draws=1000, seed=3)
    stays = np.asarray([len(np.unique(own)) == 1 for own in density.nearest])
    assert 5 <= stays.sum() <= 35
    groups = [np.exp(density.chain_means[chosen] - density.log_ratio) for chosen in (stays, ~stays)]
    errors = [group.std(ddof=1) / math.sqrt(len(group)) for group in groups]
    assert abs(groups[0].mean() - groups[1].mean()) < 4.0 * math.hypot(*errors)
    exact = lk.score("s[2] -> *", table, "exact").log_z
    assert evidence(problem, density) == pytest.approx(exact, abs=4.0 * density.std_error)


def test_any_point_will_do():
    """The identity holds at every θ*, not only at the mode."""
    problem = lk.Problem("s[2] -> a b; c; d", TABLE, 2.0)
    exact = lk.score("s[2] -> a b; c; d", TABLE, "exact", prior=2.0).log_z
    rng = np.random.default_rng(0)
    for _ in range(3):
        theta = problem.layout.normalise(rng.dirichlet(np.ones(problem.layout.size)) + 0.5 / problem.layout.size)
        density = candidate_density(problem, np.log(theta), draws=4000, seed=1)
        prior = Dirichlet(problem.layout.row_start).log_density(problem.pseudo, np.log(theta))
        value = problem.engine.expect(np.log(theta))[1] + prior - density.log_density
        assert value == pytest.approx(exact, abs=4.0 * density.std_error)


@pytest.mark.parametrize("average", [True, False])
def test_densities_of_sweeps_by_their_definition(average):
    problem = lk.Problem("s[2] -> a b; t[2] -> b c; d", TABLE, 0.7)
    layout, engine, point = problem.layout, problem.engine, mode(problem).potentials
    density = candidate_density(problem, point, chains=4, draws=20, burn_in=3, average=average, seed=5)
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5).spawn(1)[0]))
    kept = np.empty((20, len(engine.active)))
    pseudo = np.ascontiguousarray(problem.pseudo[engine.active])
    counts_into(engine.program, pseudo, point[engine.active], 3, generator, np.zeros(1, np.int64), kept)
    permutations = relabelings(layout, problem.pseudo) if average else np.arange(layout.size)[None]
    for k, own in enumerate(kept):
        counts = engine.complete_counts.copy()
        counts[engine.active] = own
        values = [
            Dirichlet(layout.row_start).log_density(problem.pseudo + counts, point[moved]) for moved in permutations
        ]
        expected = np.logaddexp.reduce(values) - math.log(len(permutations))
        assert density.log_prior + density.log_densities[0, k] == pytest.approx(expected, rel=1e-11)
        assert density.nearest[0, k] == int(np.argmax(values))


def test_the_kernel_takes_the_steps_of_gibbs_sampling():
    problem = lk.Problem("s[3] -> a b c d", TABLE)
    program, size = problem.engine.program, problem.layout.size
    start = np.log(problem.layout.normalise(np.random.default_rng(0).random(size)))
    ends, counts = [start.copy(), start.copy()], np.empty((5, size))
    made = counts_into(
        program, problem.pseudo.copy(), ends[0], 4, np.random.default_rng(7), np.zeros(1, np.int64), counts
    )
    gibbs_into(
        program, problem.pseudo.copy(), ends[1], 9, 1, np.random.default_rng(7), np.empty((9, size)), np.empty(9)
    )
    assert made == 5
    assert np.array_equal(*ends)
    assert np.array_equal(counts, np.rint(counts))
    assert counts[:, :3].sum(axis=1) == pytest.approx(np.full(5, 5.0))
    assert (
        counts_into(program, problem.pseudo.copy(), ends[0], 4, np.random.default_rng(7), np.ones(1, int), counts) == 0
    )


def test_too_many_relabelings_are_said(monkeypatch):
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 1)
    problem = lk.Problem("s[2] -> *", APART[2], 0.5)
    density = candidate_density(problem, mode(problem).potentials, chains=4, draws=200)
    assert density.n_relabelings == 1
    assert density.log_missing == pytest.approx(math.log(2.0))


def test_equal_seeds_give_equal_densities_for_any_number_of_workers():
    problem = lk.Problem("s[2] -> a b c d", TABLE)
    point = mode(problem).potentials
    one, two = (candidate_density(problem, point, draws=50, seed=4, workers=workers) for workers in (1, 3))
    assert np.array_equal(one.log_densities, two.log_densities)
    assert len(np.unique(one.chain_means)) == len(one.chain_means)


def made_up(log_densities):
    log_densities = np.asarray(log_densities, float)
    means = np.logaddexp.reduce(log_densities, axis=1) - math.log(log_densities.shape[1])
    return CandidateDensity(means, log_densities, np.zeros(log_densities.shape, np.int64), 1, 0.0)


def test_what_is_not_trusted():
    noise = np.random.default_rng(0).normal(0.0, 0.3, (8, 400))
    assert made_up(noise).is_trusted
    apart = noise + np.linspace(-1.0, 1.0, 8)[:, None]
    assert made_up(apart).spread > 3.0 * made_up(apart).own_error
    assert not made_up(apart).is_trusted
    few = noise.copy()
    few[:, 0] += 12.0
    assert made_up(few).effective_share < 0.1
    assert not made_up(few).is_trusted
    single = np.full((4, 20), -40.0)
    single[0, 0] = single[2, 3] = 0.0
    assert made_up(single).carriers == 1
    assert not made_up(single).is_trusted


def test_standard_errors_cover():
    """Over 60 seeds the value divided by its standard error has about unit spread and no bias."""
    problem = lk.Problem("s[2] -> a b c d", TABLE)
    exact = lk.score("s[2] -> a b c d", TABLE, "exact").log_z
    point = mode(problem).potentials
    scores = []
    for seed in range(60):
        density = candidate_density(problem, point, draws=500, burn_in=100, seed=seed)
        scores.append((evidence(problem, density) - exact) / density.std_error)
    assert abs(np.mean(scores)) < 0.5
    assert 0.5 < np.std(scores) < 1.4
    assert np.max(np.abs(scores)) < 4.5


@pytest.mark.parametrize(("option", "value"), [("chains", 3), ("chains", 4.5), ("draws", 10), ("burn_in", -1)])
def test_options_out_of_range_are_refused(option, value):
    problem = lk.Problem("s[2] -> a b c d", TABLE)
    with pytest.raises(OptionError, match=f"{option} is {value}; it must be a whole number of at least") as caught:
        candidate_density(problem, mode(problem).potentials, **{option: value})
    assert "\n" not in str(caught.value)


def test_points_that_are_none_are_refused():
    problem = lk.Problem("s[2] -> a b c d", TABLE)
    with pytest.raises(OptionError, match=r"log_theta has shape \(3,\)"):
        candidate_density(problem, np.zeros(3))
    for value in (0.0, -np.inf):
        with pytest.raises(OptionError, match="log_theta must hold logarithms of positive probabilities"):
            candidate_density(problem, np.full(problem.layout.size, value))


def test_fractions_of_rows_are_refused():
    table = lk.Table.from_rows([(0, 1), (1, 0)], list("ab"), weights=[0.5, 2.0])
    problem = lk.Problem("s[2] -> a b", table)
    with pytest.raises(DataError, match="whole-number weights"):
        candidate_density(problem, mode(problem).potentials)
