"""Both sides of the evidence: reverse chains have the mean of 1/w right, and the sandwich holds what is exact."""

import math
from dataclasses import replace

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag
from lurking.samplers import aliases
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealing.paths import prior_path, variational_path
from lurking.samplers.annealing.reverse import (
    Way,
    correlated_error,
    posterior_draws,
    relabelled,
    reverse,
    reverse_values,
)
from lurking.samplers.annealing.sandwich import SandwichOptions, draw_alike, draw_case, sandwich
from lurking.samplers.diagnostics import log_mean, relative_error
from lurking.samplers.gibbs import gibbs

ROWS = [(0, 1, 0), (1, 1, 1), (0, 1, 0), (1, 0, None), (0, 0, 1), (None, 1, 0), (1, 1, 1)]
LEVELS = dict.fromkeys("abc", (0, 1))
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS)
MODELS = [
    "s[2] -> a b c",
    "s[3] -> a b; c",
    "s[2] -> a b; t[2] -> b c",
    "s[2] -> a b c; t[2] -> a b c",
    "s[2] -> t[2]; s -> a b; t -> b c",
]
QUICK = SandwichOptions(steps=64, most_steps=64, populations=4, particles=8, chains=8, spacing=10)


def path_of(problem, flattening):
    if flattening == 0.0:
        return prior_path(problem)
    return variational_path(fit_problem(problem, "vb", FitOptions(restarts=5, seed=0)), flattening)


def way_of(path, power, steps):
    sharing = Sharing(path.problem, [path.alpha])
    return Way(path, sharing, 0.0, power, np.linspace(0.0, 1.0, steps + 1))


def draws_of(problem, count):
    """Return nearly independent posterior draws, (count, Q)."""
    drawn = gibbs(problem, chains=4, draws=count // 4, thin=10, seed=1).log_theta[:, :, problem.engine.active]
    return np.ascontiguousarray(drawn.reshape(count, -1))


# Two of the five are left to the long tests.
MOST = [pytest.param(model, marks=[pytest.mark.long] if place in (0, 3) else []) for place, model in enumerate(MODELS)]


@pytest.mark.parametrize("model", MOST)
def test_the_mean_of_one_over_the_reverse_weight_is_one_over_the_evidence(model):
    """To within four standard errors, on short and longer schedules, from the prior and from a variational start."""
    problem = lk.Problem(model, TABLE, 0.8)
    exact = lk.score(model, TABLE, "exact", prior=0.8).log_z
    points = draws_of(problem, 2000)
    for flattening in (0.0, 0.5, 1.0):
        for steps in (1, 2, 12):
            values = reverse(
                *(path_of(problem, flattening), np.linspace(0.0, 1.0, steps + 1), points),
                np.random.SeedSequence(steps).spawn(len(points)),
            )
            error = relative_error(-values)
            assert error < 0.2
            assert -log_mean(-values) == pytest.approx(exact, abs=4.0 * error)
            assert values.mean() >= exact - 4.0 * values.std() / math.sqrt(len(values))


@pytest.mark.parametrize("model", MOST)
def test_aliases_are_shared_exactly_in_reverse(model):
    problem = lk.Problem(model, TABLE, 0.8)
    exact = lk.score(model, TABLE, "exact", prior=0.8).log_z
    points = draws_of(problem, 2000)
    for power, steps in ((0.25, 2), (0.25, 12), (1.0, 2)):
        way = way_of(path_of(problem, 0.5), power, steps)
        values = reverse_values(way, way.temperatures, points, np.random.SeedSequence(7))
        assert -log_mean(-values) == pytest.approx(exact, abs=4.0 * relative_error(-values))
        assert values.mean() >= exact - 4.0 * values.std() / math.sqrt(len(values))


def test_the_factor_without_the_share_would_be_wrong():
    """1/(w S) has a mean below 1/p(y) where modes overlap: S·ρ is needed, S alone is not enough."""
    problem = lk.Problem("s[2] -> a b c", TABLE)
    exact = lk.score("s[2] -> a b c", TABLE, "exact").log_z
    way = way_of(path_of(problem, 0.5), 0.25, 12)
    points = draws_of(problem, 2000)
    values = reverse_values(way, way.temperatures, points, np.random.SeedSequence(7))
    generator = np.random.default_rng(0)
    moved = np.stack([relabelled(way.sharing, problem, own, way.power, generator) for own in points])
    plain = reverse(way.path, way.temperatures, moved, np.random.SeedSequence(7).spawn(len(points))) + math.log(2.0)
    assert -log_mean(-plain) - exact > 10.0 * relative_error(-plain)
    assert abs(-log_mean(-values) - exact) < 4.0 * relative_error(-values)


def test_the_whole_way_from_the_prior_is_exact():
    """Over cases (θ*, y) drawn together, with empty cells, p(y)/V has the mean 1, to within four standard errors."""
    dag = lk.Dag.parse("s[2] -> a b c; t[2] -> c d")
    ratios = []
    for seed in range(250):
        case = draw_case(dag, dict.fromkeys("abcd", range(2)), 0.7, n=5, seed=seed, empty=0.15)
        problem = lk.Problem(case.dag, case.table, 0.7)
        exact = lk.score(dag, case.table, "exact", prior=0.7).log_z
        way = way_of(path_of(problem, 0.3), 0.25, 8)
        points = posterior_draws(problem, case.log_theta, 4, 3, np.random.SeedSequence(seed))
        values = reverse_values(way, way.temperatures, points, np.random.SeedSequence(seed))
        ratios.append(np.exp(exact - values).mean())
    assert np.mean(ratios) == pytest.approx(1.0, abs=4.0 * np.std(ratios) / math.sqrt(len(ratios)))
    assert np.std(ratios) / math.sqrt(len(ratios)) < 0.1


@pytest.mark.parametrize(
    "model", ["s[2] -> a b c d", pytest.param("s[2] -> a b c; t[2] -> c d", marks=pytest.mark.long)]
)
def test_the_sandwich_holds_the_exact_value_in_mean(model):
    """Over 16 cases, to within three standard errors of the differences."""
    below, above = [], []
    for seed in range(16):
        case = draw_case(lk.Dag.parse(model), dict.fromkeys("abcd", range(2)), n=12, seed=seed)
        exact = lk.score(model, case.table, "exact").log_z
        found = sandwich(lk.Problem(case.dag, case.table), case, FitOptions(seed=100 + seed, workers=1), QUICK)
        below.append(exact - found.lower)
        above.append(found.upper - exact)
        assert abs(found.middle - exact) <= 4.0 * found.error
    for gaps in (below, above):
        assert np.mean(gaps) > -3.0 * np.std(gaps) / math.sqrt(len(gaps))
        assert abs(np.mean(gaps)) < 0.15


def test_relabelings_are_chosen_by_their_share(monkeypatch):
    problem = lk.Problem("s[3] -> a b c", TABLE)
    way = way_of(path_of(problem, 1.0), 1.0, 4)
    point = draws_of(problem, 4)[0]
    generator = np.random.default_rng(2)
    moved = np.stack([relabelled(way.sharing, problem, point, 1.0, generator) for _ in range(4000)])
    found, counts = np.unique(moved, axis=0, return_counts=True)
    expected = np.exp(way.sharing.log_share(0, found, 1.0)) / 6.0
    assert counts / 4000 == pytest.approx(expected, abs=4.0 * 0.5 / math.sqrt(4000))
    assert np.array_equal(relabelled(way.sharing, problem, point, 0.0, generator), point)
    # Too many to list: drawn by permanents, or the best order of the states, whose share is then 1.
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 1)
    problem = lk.Problem(problem.full_dag, problem.table, problem.prior)
    sharing = Sharing(problem, [way.path.alpha])
    assert sharing.group.form == "permanents"
    moved = np.stack([relabelled(sharing, problem, point, 1.0, generator) for _ in range(4000)])
    again = np.array([(moved == own).all(axis=1).mean() for own in found])
    assert again == pytest.approx(expected, abs=4.0 * 0.5 / math.sqrt(4000))
    monkeypatch.setattr(aliases, "MOST_OPERATIONS", 0)
    problem = lk.Problem(problem.full_dag, problem.table, problem.prior)
    sharing = Sharing(problem, [way.path.alpha])
    assert sharing.group.form == "assignment"
    best = relabelled(sharing, problem, point, 1.0, generator)
    assert sharing.log_share(0, best[None, :], 1.0)[0] == pytest.approx(math.log(6.0))
    (place,) = np.flatnonzero((found == best).all(axis=1))
    assert expected[place] == pytest.approx(expected.max(), rel=0.02), "the best order, but for ties that are broken"


def test_many_relabelings_still_bound_from_above(monkeypatch):
    """By permanents nothing is lost; with ρ of 0 and 1 the mean of 1/V lacks the forward chains that ρ drops."""
    exact = lk.score("s[2] -> a b c", TABLE, "exact").log_z
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 1)
    for form, most in (("permanents", aliases.MOST_OPERATIONS), ("assignment", 0)):
        monkeypatch.setattr(aliases, "MOST_OPERATIONS", most)
        problem = lk.Problem("s[2] -> a b c", TABLE)
        way = way_of(path_of(problem, 0.5), 1.0, 12)
        assert way.sharing.group.form == form
        values = reverse_values(way, way.temperatures, draws_of(problem, 2000), np.random.SeedSequence(0))
        assert -log_mean(-values) > exact - 4.0 * relative_error(-values)
        assert values.mean() > exact
        if form == "permanents":
            assert -log_mean(-values) == pytest.approx(exact, abs=4.0 * relative_error(-values))


def test_nine_states_from_both_sides():
    """Six rows and nine states: 362 880 relabelings, and the exact value in between."""
    case = draw_case(lk.Dag.parse("s[9] -> a b"), dict.fromkeys("ab", range(2)), n=6, seed=3)
    exact = lk.score("s[9] -> a b", case.table, "exact").log_z
    found = sandwich(lk.Problem(case.dag, case.table), case, FitOptions(seed=1, workers=1), QUICK)
    assert found.middle == pytest.approx(exact, abs=4.0 * found.error)
    assert found.error < 0.3


HARD = draw_case(lk.Dag.parse("s[3] -> a b c d; t[2] -> c d e"), dict.fromkeys("abcde", range(3)), n=60, seed=6)
GROWING = SandwichOptions(target=0.4, steps=8, most_steps=256, populations=4, particles=6, chains=12, spacing=5)


def test_what_is_reported_are_fresh_runs_at_the_steps_chosen():
    """The same value comes out when the steps are given: nothing of the rehearsal is in it."""
    problem, options = lk.Problem(HARD.dag, HARD.table), FitOptions(seed=2, workers=1)
    found = sandwich(problem, HARD, options, GROWING)
    assert found.steps > 8, "eight steps are too few"
    given = replace(GROWING, steps=found.steps, most_steps=found.steps)
    assert sandwich(problem, HARD, options, given) == found
    assert sandwich(problem, HARD, options, replace(GROWING, target=0.0)).steps == 256
    assert sandwich(problem, HARD, options, replace(GROWING, target=1e9)).steps == 8


def test_the_choice_of_steps_does_not_look_at_the_parameters():
    """θ* is an exact posterior draw given the data only as long as nothing that is chosen depends on it."""
    problem, options = lk.Problem(HARD.dag, HARD.table), FitOptions(seed=2, workers=1)
    found = sandwich(problem, HARD, options, GROWING)
    other = problem.layout.normalise(np.random.default_rng(0).random(problem.layout.size) ** 3 + 1e-9)
    elsewhere = sandwich(problem, replace(HARD, log_theta=np.log(other)), options, GROWING)
    assert (elsewhere.steps, elsewhere.flattening, elsewhere.lower) == (found.steps, found.flattening, found.lower)
    assert elsewhere.upper != found.upper


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.75])
def test_errors_of_a_chain_know_its_autocorrelation(correlation):
    """Means of 400 chains of 64 log-normal weights: their spread is the error told, to within a quarter."""
    generator = np.random.default_rng(0)
    series = np.empty((400, 64))
    series[:, 0] = generator.standard_normal(400)
    for t in range(1, 64):
        fresh = math.sqrt(1.0 - correlation**2) * generator.standard_normal(400)
        series[:, t] = correlation * series[:, t - 1] + fresh
    series *= 0.2
    spread = np.std([log_mean(own) for own in series])
    told = math.sqrt(np.mean([correlated_error(own) ** 2 for own in series]))
    assert told == pytest.approx(spread, rel=0.25)
    plain = math.sqrt(np.mean([relative_error(own) ** 2 for own in series]))
    assert (plain < 0.6 * spread) == (correlation > 0.0), "what ignores it is too small"


def test_errors_of_short_chains():
    assert correlated_error(np.zeros(1)) == math.inf
    assert correlated_error(np.zeros(8)) == 0.0
    assert correlated_error(np.array([0.0, 1.0])) == pytest.approx(relative_error(np.array([0.0, 1.0])))


def test_the_upper_side_is_worth_its_error():
    """Twelve cases, reverse chains from a Gibbs chain without gaps: deviations are as large as the errors told."""
    ratios = []
    effort = SandwichOptions(steps=32, most_steps=32, populations=2, particles=2, chains=64, spacing=1)
    for seed in range(12):
        case = draw_case(lk.Dag.parse("s[2] -> a b c d"), dict.fromkeys("abcd", range(2)), n=12, seed=seed)
        exact = lk.score("s[2] -> a b c d", case.table, "exact").log_z
        found = sandwich(lk.Problem(case.dag, case.table), case, FitOptions(seed=100 + seed, workers=1), effort)
        ratios.append((found.upper - exact) / found.upper_error)
    assert 0.4 < math.sqrt(np.mean(np.square(ratios))) < 1.7


def test_cases():
    dag = lk.Dag.parse("s[2] -> a b; a -> c; b -> idle[3]")
    case = draw_case(dag, {"a": "xyz", "b": (0, 1), "c": (0, 1, 2)}, n=2000, seed=3, empty=0.25)
    assert case.is_exact
    assert "idle" not in case.dag.nodes
    assert case.table.columns == ("a", "b", "c")
    assert case.table["a"].levels == ("x", "y", "z")
    assert sum(case.table[name].n_missing for name in "abc") == pytest.approx(1500, abs=4 * math.sqrt(6000 * 0.1875))
    again = draw_case(dag, {"a": "xyz", "b": (0, 1), "c": (0, 1, 2)}, n=2000, seed=3, empty=0.25)
    assert again.table.digest == case.table.digest
    assert np.array_equal(again.log_theta, case.log_theta)
    for empty in (-0.1, 1.0, float("nan")):
        with pytest.raises(OptionError, match="share of the cells"):
            draw_case(dag, {"a": (0, 1), "b": (0, 1), "c": (0, 1)}, n=5, seed=0, empty=empty)


def test_cases_like_given_data_have_their_levels_and_their_empty_cells():
    problem = lk.Problem("s[2] -> a b c", TABLE)
    case = draw_alike(problem, n=700, seed=0)
    assert not case.is_exact
    assert case.table["a"].levels == (0, 1)
    assert case.table["b"].n_missing == 0
    assert case.table["a"].n_missing == pytest.approx(100, abs=4 * math.sqrt(700 * 6 / 49))
    assert not np.any((case.table["a"].codes < 0) & (case.table["c"].codes < 0))
    found = sandwich(lk.Problem(case.dag, case.table), case, FitOptions(workers=1))
    annealed = lk.score(case.dag, case.table, "ais", seed=5)
    assert found.error < 0.5
    assert found.middle == pytest.approx(annealed.log_z, abs=4.0 * math.hypot(found.error, annealed.std_error))


def test_complete_data_need_no_sampling():
    case = draw_case(lk.Dag.parse("a -> b"), {"a": (0, 1), "b": (0, 1)}, n=30, seed=1)
    found = sandwich(lk.Problem(case.dag, case.table), case, FitOptions())
    exact = lk.score("a -> b", case.table, "exact").log_z
    assert (found.lower, found.upper) == pytest.approx((exact, exact), rel=1e-12)
    assert found.error == found.width == 0.0


def test_results_do_not_depend_on_the_number_of_workers():
    case = draw_case(lk.Dag.parse("s[2] -> a b c"), dict.fromkeys("abc", range(3)), n=40, seed=1)
    problem = lk.Problem(case.dag, case.table)
    one, many = (sandwich(problem, case, FitOptions(seed=4, workers=workers), QUICK) for workers in (1, 3))
    assert one == many


def test_an_interrupt_ends_a_sandwich():
    case = draw_case(lk.Dag.parse("s[2] -> a b c"), dict.fromkeys("abc", range(3)), n=40, seed=1)
    stop = StopFlag()
    stop.set()
    problem = lk.Problem(case.dag, case.table)
    with pytest.raises(KeyboardInterrupt):
        sandwich(problem, case, FitOptions(workers=1, stop=stop), QUICK)
    assert len(reverse(prior_path(problem), np.linspace(0, 1, 3), draws_of(problem, 4), [None] * 4, stop=stop)) == 0
