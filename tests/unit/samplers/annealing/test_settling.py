"""Starts of paths from Gibbs runs: moments of the posterior, under one naming of the hidden states."""

import numpy as np
import pytest

import lurking as lk
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag
from lurking.samplers.annealing import settling
from lurking.samplers.annealing.modes import Mode, variational_modes
from lurking.samplers.annealing.settling import passes_of, settled, thinning
from lurking.samplers.gibbs import gibbs

SEEDS = np.random.SeedSequence(5).spawn(3)


@pytest.fixture(scope="module")
def problem():
    """Two clear classes over five items: names of states are never swapped by a chain of this length."""
    generator = np.random.default_rng(3)
    first = np.arange(80) < 30
    cells = (generator.random((80, 5)) < np.where(first[:, None], 0.85, 0.15)).astype(int)
    return lk.Problem("s[2] -> *", lk.Table.from_array(cells, columns=list("abcde")))


def test_moments_are_those_of_a_long_run_up_to_names(problem):
    (mode,) = variational_modes(problem, FitOptions(), 1)
    (found,) = settled(problem, [mode], 10, SEEDS[:1], StopFlag())
    # One chain, so that all its points have the same names; ordered by the size of the first class.
    theta = np.exp(gibbs(problem, chains=1, draws=4000, burn_in=500, seed=1).log_theta[0])
    size = problem.layout.table(theta.mean(axis=0), "s")[0]
    share = found.counts[:2] / problem.n
    # E[θ_s] = (λ + E[N]) / (2λ + n); the chain's standard error is below 0.005.
    assert np.sort((1.0 + problem.n * share) / (2.0 + problem.n)) == pytest.approx(np.sort(size), abs=0.02)
    assert share.sum() == pytest.approx(1.0, abs=1e-9)
    own = np.exp(found.potentials)
    assert own[:2].sum() < 1.0, "a mean of logarithms is sub-normalised"


def test_swapped_names_are_put_back(problem, monkeypatch):
    """The same points, every other one with swapped names, give the same moments."""
    (mode,) = variational_modes(problem, FitOptions(), 1)
    drawn = settling._points(problem, mode, 2, np.random.default_rng(0), StopFlag())
    swap = settling.relabelings_of(problem)[1][problem.engine.active]
    mixed = drawn.copy()
    mixed[1::2] = drawn[1::2][:, swap]
    monkeypatch.setattr(settling, "_points", lambda *_: drawn)
    (plain,) = settled(problem, [mode], 2, SEEDS[:1], StopFlag())
    monkeypatch.setattr(settling, "_points", lambda *_: mixed)
    (renamed,) = settled(problem, [mode], 2, SEEDS[:1], StopFlag())
    assert renamed.counts == pytest.approx(plain.counts, rel=1e-12)
    assert renamed.potentials == pytest.approx(plain.potentials, rel=1e-12)


def test_runs_that_end_in_one_place_count_once(problem):
    (mode,) = variational_modes(problem, FitOptions(), 1)
    swap = settling.relabelings_of(problem)[1][problem.engine.active]
    twin = Mode(mode.bound, mode.counts[swap], mode.potentials[swap])
    assert len(settled(problem, [mode, twin, mode], 2, SEEDS, StopFlag())) == 1


def test_a_cause_that_the_bound_switches_off_is_found():
    """Two binary causes of four items: the variational mode leaves one unused, the posterior does not."""
    from lurking.experiments.beal2006.contenders import contenders, true_place
    from lurking.experiments.beal2006.data import true_table

    problem = lk.Problem(contenders()[true_place()].dag, true_table(480))
    (mode,) = variational_modes(problem, FitOptions(seed=0), 1)
    (found,) = settled(problem, [mode], 10, SEEDS[:1], StopFlag())
    causes = [problem.layout.offsets[problem.layout.index[name]] for name in ("s1", "s2")]
    least = [min(counts[k : k + 2].min() for k in causes) for counts in (mode.counts, found.counts)]
    assert least[0] < 1.0
    assert least[1] > 20.0


@pytest.mark.parametrize(("passes", "thin"), [(0, 1), (100, 1), (700, 5), (10**6, 10)])
def test_scarce_passes_make_short_runs(passes, thin):
    assert thinning(passes) == thin
    assert thin in (1, 10) or passes_of(thin) == passes


def test_an_interrupt_ends_a_run(problem):
    stop = StopFlag()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        settled(problem, [Mode(0.0, np.zeros(12), np.zeros(12))], 1, SEEDS[:1], stop)
