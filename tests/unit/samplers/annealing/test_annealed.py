"""Populations, modes and the sharing of the posterior among relabelings: unbiased, and worth their standard error."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

import lurking as lk
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.samplers import aliases
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealing import modes
from lurking.samplers.annealing.annealed import AnnealOptions, annealed_evidence
from lurking.samplers.annealing.modes import variational_modes
from lurking.samplers.annealing.paths import flattened_path, prior_path
from lurking.samplers.annealing.populations import anneal
from lurking.samplers.diagnostics import log_mean, relative_error

ROWS = [(0, 1, 0), (1, 1, 1), (0, 1, 0), (1, 0, None), (0, 0, 1), (None, 1, 0), (1, 1, 1), (0, 0, 1)]
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=dict.fromkeys("abc", (0, 1)), weights=[1, 2, 1, 1, 1, 1, 2, 1])
MODELS = ["s[2] -> a b c", "s[3] -> a b; c", "s[2] -> a b; t[2] -> b c", "s[2] -> t[2]; s -> a b; t -> b c"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_a_population_is_unbiased_however_often_it_is_resampled(model, threshold):
    problem = lk.Problem(model, TABLE, 0.7)
    exact = lk.score(model, TABLE, "exact", prior=0.7).log_z
    seeds = np.random.SeedSequence(4).spawn(400)
    made = anneal(prior_path(problem), np.linspace(0.0, 1.0, 13), seeds, particles=8, threshold=threshold)
    values = made.estimates()
    assert log_mean(values) == pytest.approx(exact, abs=4.0 * relative_error(values))
    assert relative_error(values) < 0.05
    assert values.mean() <= exact + 4.0 * values.std() / math.sqrt(len(values))
    if threshold == 1.0:
        assert made.n_lineages.mean() < 7.0, "resampled at every step: lines die out"
    if threshold == 0.0:
        assert np.all(made.n_lineages == 8)


@pytest.mark.parametrize("power", [0.0, 0.25, 1.0])
def test_shares_of_several_modes_add_up_to_one(power):
    """Σ over modes and relabelings of ρ is 1, so E[Σ_m S ρ_m] over any law that is symmetric is M-independent."""
    problem = lk.Problem("s[2] -> a b; t[2] -> b c", TABLE)
    generator = np.random.default_rng(0)
    size = len(problem.engine.active)
    alphas = [1.0 + 5.0 * generator.random(size) for _ in range(3)]
    sharing = Sharing(problem, alphas)
    theta = problem.layout.normalise(generator.random((6, problem.layout.size))[0])
    everywhere = np.log(theta)[sharing.permutations][:, problem.engine.active]
    total = logsumexp([logsumexp(sharing.log_share(mode, everywhere, power)) for mode in range(3)])
    assert total == pytest.approx(math.log(len(sharing.permutations)), abs=1e-9)


def test_modes_are_distinct_up_to_names():
    table = lk.Table.from_rows([(0, 0, 0)] * 30 + [(1, 1, 1)] * 30 + [(1, 0, 1)] * 3, list("abc"))
    problem = lk.Problem("s[2] -> *", table)
    modes = variational_modes(problem, FitOptions(restarts=12, seed=0), 5)
    assert len(modes) == 1, "twelve starts end in two relabelings of one mode"
    bounds = [mode.bound for mode in variational_modes(lk.Problem("s[4] -> *", table), FitOptions(restarts=20), 4)]
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize("model", MODELS)
def test_evidence_with_an_honest_error(model):
    problem = lk.Problem(model, TABLE)
    exact = lk.score(model, TABLE, "exact").log_z
    found = annealed_evidence(problem, FitOptions(restarts=5, seed=1), AnnealOptions(steps=32, particles=16))
    assert found.log_z == pytest.approx(exact, abs=4.0 * found.std_error)
    assert found.std_error <= 0.2
    assert found.status is Status.SAMPLED
    assert found.log_missing == 0.0


def well_separated():
    """Return 60 rows of two clear classes over six items: a chain never swaps their names."""
    generator = np.random.default_rng(2)
    hidden = np.arange(60) < 25
    cells = (generator.random((60, 6)) < np.where(hidden[:, None], 0.95, 0.05)).astype(int)
    return lk.Table.from_array(cells, columns=list("uvwxyz"))


def test_modes_that_no_chain_leaves_are_all_counted():
    table = well_separated()
    problem = lk.Problem("s[3] -> *", table)
    options = FitOptions(restarts=10, seed=0)
    reference = annealed_evidence(problem, options, AnnealOptions(steps=256))
    mode = variational_modes(problem, options, 1)[0]
    path = flattened_path(problem, mode.counts, mode.potentials, 0.5)
    made = anneal(path, np.linspace(0.0, 1.0, 200), np.random.SeedSequence(0).spawn(40), particles=8, threshold=0.5)
    points = made.log_theta.reshape(-1, made.log_theta.shape[-1])
    share = Sharing(problem, [path.alpha]).log_share(0, points, 1.0).reshape(40, 8)
    with_share, without = log_mean(made.estimates(share)), log_mean(made.estimates())
    assert with_share == pytest.approx(reference.log_z, abs=4.0 * math.hypot(reference.std_error, 0.05))
    assert without < with_share - 0.5, "one relabeling of six is seen, or few"


@pytest.mark.parametrize("form", ["permanents", "assignment"])
def test_relabelings_that_cannot_be_listed_are_shared_all_the_same(monkeypatch, form):
    table = well_separated()
    problem = lk.Problem("s[3] -> *", table)
    options = FitOptions(restarts=10, seed=0)
    whole = annealed_evidence(problem, options, AnnealOptions(steps=256))
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 1)
    if form == "assignment":
        monkeypatch.setattr(aliases, "MOST_OPERATIONS", 0)
    problem = lk.Problem("s[3] -> *", table)
    sharing = Sharing(problem, [np.ones(len(problem.engine.active))])
    assert sharing.permutations is None
    assert sharing.group.form == form
    assert sharing.is_whole, "one hidden variable: all its relabelings are orders of its states"
    found = annealed_evidence(problem, options, AnnealOptions(steps=256))
    assert found.log_z == pytest.approx(whole.log_z, abs=4.0 * math.hypot(found.std_error, whole.std_error))
    two = Sharing(lk.Problem("s[3] -> u v w x; t[2] -> x y z", table), [np.ones(3)] * 0)
    assert two.log_missing == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("form", ["permanents", "assignment"])
def test_states_that_are_alike_are_shared_once(monkeypatch, form):
    """A strong prior leaves nine states alike: every order suits as well, and by assignment exactly one may count."""
    if form == "assignment":
        monkeypatch.setattr(aliases, "MOST_OPERATIONS", 0)
    table = lk.Table.from_rows([(1, 1), (0, 0), (1, 0)], columns=["A", "B"])
    exact = lk.score("class[9] -> *", table, "exact", prior=1e3).log_z
    found = lk.score("class[9] -> *", table, "ais", prior=1e3, seed=1, steps=16, passes=20_000)
    assert found.log_z == pytest.approx(exact, abs=4.0 * found.std_error)
    sharing = Sharing(lk.Problem("class[9] -> *", table, 1e3), [np.full(45, 1e3)])
    assert sharing.group.form == form
    theta = np.log(sharing._layout.normalise(np.random.default_rng(0).random(45)))
    (states,) = sharing.group.orders.states
    points, generator = [theta], np.random.default_rng(1)
    for _ in range(200):
        moved = theta.copy()
        moved[states] = theta[states[generator.permutation(9)]]
        points.append(moved)
    shares = sharing.log_share(0, np.stack(points), 1.0)
    if form == "permanents":
        assert shares == pytest.approx(np.zeros(201), abs=1e-7), "what is alike in α has the same share in every order"
    else:
        assert np.isfinite(shares).sum() <= 1
    best = theta[sharing.best(0, theta)]
    assert np.array_equal(sharing.best(0, best), np.arange(45))


def test_results_do_not_depend_on_workers():
    problem = lk.Problem("s[2] -> a b; t[2] -> b c", TABLE)
    values = {
        workers: annealed_evidence(problem, FitOptions(seed=3, workers=workers), AnnealOptions(steps=16)).log_z
        for workers in (1, 2, 3)
    }
    assert len(set(values.values())) == 1


def test_a_budget_too_small_says_so():
    problem = lk.Problem("s[3] -> *", well_separated())
    found = annealed_evidence(problem, FitOptions(seed=0), AnnealOptions(target=1e-4, budget=10_000, steps=8))
    assert found.status in (Status.BUDGET, Status.UNTRUSTED)
    assert math.isfinite(found.log_z)


def test_a_stop_keeps_finished_replicates():
    problem = lk.Problem("s[3] -> *", well_separated())

    class Impatient:
        def __init__(self, stop):
            self.stop = stop

        def begin(self, what, total): ...

        def update(self, done):
            if done > 60_000:
                self.stop.set()

        def end(self): ...

    options = FitOptions(seed=0, workers=1)
    object.__setattr__(options, "progress", Impatient(options.stop))
    found = annealed_evidence(problem, options, AnnealOptions(target=1e-4))
    assert found.status is Status.INTERRUPTED
    assert math.isfinite(found.log_z)


def test_an_interrupt_during_the_fits_ends_before_relabelings_are_listed(monkeypatch):
    options = FitOptions(keep_interrupted=True, restarts=2)
    climb = modes.climbs_of_starts

    def interrupted(*arguments):
        found = climb(*arguments)
        options.stop.set()
        return found

    def listed(_problem):
        raise AssertionError("listing the relabelings of eight states takes seconds")

    monkeypatch.setattr(modes, "climbs_of_starts", interrupted)
    monkeypatch.setattr(modes, "relabelings_of", listed)
    problem = lk.Problem("s[2] -> a b", lk.Table.from_rows([(0, 1), (1, 1), (0, 0)], ["a", "b"]))
    with pytest.raises(KeyboardInterrupt):
        modes.variational_modes(problem, options, 4)


def test_a_larger_budget_goes_on_to_the_value_of_a_new_run():
    table = lk.Table.from_array(np.random.default_rng(2).integers(0, 2, (200, 4)))
    fits = FitOptions(seed=0, restarts=4)
    problem = Problem("h[2] -> *", table)
    limits = [AnnealOptions(target=target, budget=budget) for target, budget in ((1e-3, 1 << 17), (1e-3, 1 << 18))]
    for limit in [*limits, AnnealOptions(target=0.5, budget=1 << 18)]:
        found, new = annealed_evidence(problem, fits, limit), annealed_evidence(anew(problem), fits, limit)
        assert (found.log_z, found.std_error, found.spent) == (new.log_z, new.std_error, new.spent)
    assert annealed_evidence(problem, fits, limits[0]).spent < annealed_evidence(problem, fits, limits[1]).spent


def anew(problem):
    return Problem(problem.full_dag, problem.table)
