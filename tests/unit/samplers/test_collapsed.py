"""Collapsed Gibbs leaves p(s | y)^τ as it is, and annealing along it has the evidence for its mean weight."""

import itertools
import threading

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2

import lurking as lk
from lurking.errors import DataError, OptionError
from lurking.expfam.dirichlet import Dirichlet
from lurking.inference.engines import enumeration
from lurking.kernels.cpu.chains.collapsed import conditional_into, empty_completion, log_joint, sweep
from lurking.kernels.reference import collapsed as reference
from lurking.runtime.executor import StopFlag
from lurking.samplers.collapsed import anneal_completions, collapsed_gibbs
from lurking.samplers.diagnostics import log_mean, relative_error

LEVELS = dict.fromkeys("abc", (0, 1))
ROWS = [(0, 1, 0), (1, None, 1), (None, 1, 0), (1, 0, None), (0, 0, 1), (None, None, 1)]
WEIGHTS = [1, 2, 3, 1, 2, 1]
MODELS = [
    "s[2] -> a b c",
    "s[3] -> a b; c",
    "s[2] -> a b; t[2] -> b c",
    "s[2] -> t[2]; s -> a b; t -> b c",
    "a -> b -> c",
    "s[2] -> a; t[3] -> b c",
]


def table_of(rows=ROWS, weights=WEIGHTS):
    return lk.Table.from_rows(rows, list("abc"), levels=LEVELS, weights=weights)


def compiled(problem):
    """Return the program, the active λ and what each copy of a row counts in each of its states."""
    program = problem.engine.program
    return program, np.ascontiguousarray(problem.pseudo[problem.engine.active]), list(reference.copies(program))


def all_completions(problem):
    """Return every completion (C, copies) and ln p(s, y|m) of each."""
    program, pseudo, rows = compiled(problem)
    inactive = problem.engine.complete_counts.copy()
    inactive[problem.engine.active] = 0.0
    constant = Dirichlet(problem.layout.row_start).log_evidence(problem.pseudo, inactive)
    states = list(itertools.product(*(range(len(row)) for row in rows)))
    scores = [reference.log_joint(program, pseudo, reference.counts_of(program, rows, s)) + constant for s in states]
    return np.asarray(states), np.asarray(scores)


def kernel_conditional(tally, row, state, temperature):
    """Return the kernel's probabilities of the states of one row that is in the tally in `state`."""
    without = tally._replace(counts=tally.counts.copy(), row_counts=tally.row_counts.copy())
    own = row[state][row[state] < len(tally.counts)]
    np.subtract.at(without.counts, own, 1.0)
    np.subtract.at(without.row_counts, tally.row_of[own], 1.0)
    # The row's candidates as a table of its own: one vector over joint states for each factor.
    gather, mass = np.ascontiguousarray(row.T.astype(np.int32)), np.empty(len(row))
    total = conditional_into(gather.ravel(), without, np.arange(len(gather)) * len(row), temperature, mass)
    return mass / total


def check_against_reference(problem, n_copies):
    """Compare counts, joint density and some conditionals of a random completion with the slow twin."""
    program, pseudo, rows = compiled(problem)
    generator = np.random.default_rng(0)
    tally, states = empty_completion(program, pseudo)
    for _ in range(2):
        sweep(program, tally, states, 0.5, generator)
    assert len(states) == len(rows)
    assert np.array_equal(tally.counts, reference.counts_of(program, rows, states))
    assert np.array_equal(tally.row_counts, np.add.reduceat(tally.counts, program.row_start[:-1]))
    assert log_joint(tally) == pytest.approx(reference.log_joint(program, pseudo, tally.counts), rel=1e-12)
    for copy in generator.choice(len(rows), min(len(rows), n_copies), replace=False):
        for temperature in (0.0, 0.3, 1.0):
            slow = reference.conditional(program, pseudo, rows, list(states), copy, temperature)
            assert kernel_conditional(tally, rows[copy], states[copy], temperature) == pytest.approx(slow, abs=1e-10)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize(("prior", "scale"), [(0.7, 1), (1e-9, 1), (1e5, 1), (1.0, 40)])
def test_conditionals_are_those_of_the_evidence_of_all_rows(model, prune, prior, scale):
    table = table_of(weights=[weight * scale for weight in WEIGHTS])
    check_against_reference(lk.Problem(model, table, prior, prune=prune), 6)


def test_conditionals_survive_underflow():
    """Forty columns that disagree with all rows seen before: products of predictive probabilities near 1e-360."""
    codes = np.repeat([[0, 1], [1, 0]], 20, axis=1)
    problem = lk.Problem("s[2] -> *", lk.Table.from_array(codes, [f"y{i}" for i in range(40)]), 1e-9)
    check_against_reference(problem, 2)


def test_joined_factors_change_nothing(monkeypatch):
    codes = np.random.default_rng(0).integers(0, 2, (800, 10))
    table = lk.Table.from_array(codes, [f"y{i}" for i in range(10)])
    found = []
    for join_from in (10**9, 1):
        monkeypatch.setattr(enumeration, "JOIN_FROM", join_from)
        problem = lk.Problem("s[3] -> *", table)
        program, pseudo, rows = compiled(problem)
        tally, states = empty_completion(program, pseudo)
        for _ in range(3):
            sweep(program, tally, states, 0.8, np.random.default_rng(1))
        assert np.array_equal(tally.counts, reference.counts_of(program, rows, states))
        found.append((program.joined.width.max(), states))
    assert found[0][0] == 0 < found[1][0]
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("model", MODELS)
def test_all_completions_together_are_the_evidence(model):
    table = table_of(ROWS[:3], [1, 2, 1])
    _, scores = all_completions(lk.Problem(model, table, 0.6))
    assert logsumexp(scores) == pytest.approx(lk.score(model, table, "exact", prior=0.6).log_z, rel=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
@pytest.mark.parametrize(
    ("model", "weights", "prune"),
    [
        ("s[2] -> a b c", [1, 2, 3, 0], True),
        ("s[2] -> a b c", [1, 1, 0, 1], False),
        ("s[2] -> a; t[3] -> b c", [1, 2, 0, 0], True),
        ("a -> b -> c", [1, 2, 3, 1], False),
    ],
)
def test_long_runs_visit_completions_by_their_probability(model, weights, prune, temperature):
    """Pearson's χ² of 8000 visits, some sweeps apart, against p(s, y|m)^τ of every completion."""
    rows = [row for row, weight in zip(ROWS, weights, strict=False) if weight]
    problem = lk.Problem(model, table_of(rows, [weight for weight in weights if weight]), 0.8, prune=prune)
    program, pseudo, copies = compiled(problem)
    _, scores = all_completions(problem)
    expected = 8000 * np.exp(temperature * scores - logsumexp(temperature * scores))
    tally, states = empty_completion(program, pseudo)
    generator, sizes = np.random.default_rng(5), [len(row) for row in copies]
    visits = np.zeros(len(scores))
    for _ in range(8000):
        for _ in range(6):
            sweep(program, tally, states, temperature, generator)
        visits[np.ravel_multi_index(tuple(states), sizes)] += 1
    # Seldom visited completions are one class.
    often = expected >= 8.0
    visits, expected = (np.append(v[often], v[~often].sum()) for v in (visits, expected))
    used = expected > 0.0
    statistic = ((visits - expected)[used] ** 2 / expected[used]).sum()
    assert 1e-3 < chi2.sf(statistic, used.sum() - 1) < 1.0 - 1e-4


def simulated(layout, theta, codes, names, generator):
    """Return complete rows (n, nodes) with the columns of some nodes, in topological order, drawn anew."""
    codes, n = codes.copy(), len(codes)
    for name in names:
        j = layout.index[name]
        codes[:, j] = 0
        first = layout.positions(j, codes, np.arange(n))
        cumulated = np.cumsum(theta[first[:, None] + np.arange(layout.cardinalities[j])], axis=1)
        codes[:, j] = (generator.random((n, 1)) > cumulated[:, :-1]).sum(axis=1)
    return codes


def places_of(problem, codes):
    """Return (variables, cards, row of `codes`, place in the joint states) of everything unobserved."""
    engine, result, begin = problem.engine, [], 0
    pattern = [int(np.flatnonzero((problem.rows.codes == row).all(axis=1))[0]) for row in codes]
    for group, weights in zip(
        engine.groups, np.split(engine.program.weights, engine.program.row_begin[1:-1]), strict=True
    ):
        free = begin + np.concatenate([[0], np.cumsum(weights)]).astype(int)
        row_of = dict(zip(group.all_patterns.tolist(), group.row_of_pattern.tolist(), strict=True))
        for i, u in enumerate(pattern):
            if u in row_of:
                result.append((list(group.variables), group.cards, i, free[row_of[u]]))
                free[row_of[u]] += 1
        begin += int(weights.sum())
    return result


def statistics_of(codes):
    """Return squared numbers of ones in every column and of agreements of every two columns."""
    pairs = itertools.combinations(range(codes.shape[1]), 2)
    numbers = [*codes.sum(axis=0), *((codes[:, j] == codes[:, k]).sum() for j, k in pairs)]
    return np.square(numbers, dtype=float)


@pytest.mark.parametrize("model", ["s[2] -> a b; t[2] -> b c", pytest.param("s[2] -> a b c", marks=pytest.mark.long)])
def test_geweke(model):
    """θ | s, y, then y | s, θ, then sweeps of s | y leave the joint law as it is (Geweke 2004).

    The hidden roots are moved by the sweeps alone, so that an error of theirs is not washed out.
    """
    generator, n, rounds = np.random.default_rng(0), 5, 2400
    layout = lk.Problem(model, table_of(), 0.5).layout
    gaps = np.zeros((n, len(layout.nodes)), bool)
    gaps[:, [layout.index[name] for name in layout.dag.hidden]] = True
    gaps[[0, 1, 1, 2], [layout.index[name] for name in "babc"]] = True

    def draw(shape, codes, names):
        return simulated(layout, layout.normalise(generator.standard_gamma(shape)), codes, names, generator)

    prior, nodes = np.full(layout.size, 0.5), layout.dag.topological_order
    codes, seen = np.zeros(gaps.shape, np.int64), []
    forward = np.asarray([statistics_of(draw(prior, codes, nodes)) for _ in range(10_000)])
    codes = draw(prior, codes, nodes)
    for _ in range(rounds):
        counts = np.zeros(layout.size)
        for j in range(len(layout.nodes)):
            np.add.at(counts, layout.positions(j, codes, np.arange(n)), 1.0)
        codes = draw(prior + counts, codes, [name for name in nodes if name not in layout.dag.hidden])
        masked = np.where(gaps, -1, codes)
        rows = [[None if row[layout.index[c]] < 0 else int(row[layout.index[c]]) for c in "abc"] for row in masked]
        problem = lk.Problem(model, table_of(rows, None), 0.5, prune=False)
        places = places_of(problem, masked)
        tally, states = empty_completion(problem.engine.program, problem.pseudo[problem.engine.active])
        assert sorted(place for *_, place in places) == list(range(len(states)))
        for variables, cards, i, place in places:
            states[place] = np.ravel_multi_index(tuple(codes[i, variables]), cards)
        entered = reference.counts_of(problem.engine.program, list(reference.copies(problem.engine.program)), states)
        tally.counts[:] = entered
        tally.row_counts[:] = np.add.reduceat(entered, problem.engine.program.row_start[:-1])
        for _ in range(3):
            sweep(problem.engine.program, tally, states, 1.0, generator)
        for variables, cards, i, place in places:
            codes[i, variables] = np.unravel_index(states[place], cards)
        seen.append(statistics_of(codes))
    batches = np.asarray(seen).reshape(40, -1, forward.shape[1]).mean(axis=1)
    variance = batches.var(axis=0, ddof=1) / 40 + forward.var(axis=0) / len(forward)
    assert np.all(np.abs(batches.mean(axis=0) - forward.mean(axis=0)) < 4.0 * np.sqrt(variance))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prune", [True, False])
def test_the_mean_weight_is_the_evidence(model, prune):
    problem = lk.Problem(model, table_of(), 0.8, prune=prune)
    exact = lk.score(model, table_of(), "exact", prior=0.8).log_z
    chains = anneal_completions(problem, np.linspace(0.0, 1.0, 26), np.random.SeedSequence(1).spawn(2000))
    weights = chains.log_weights
    assert log_mean(weights) == pytest.approx(exact, abs=4.0 * relative_error(weights) + 1e-12)
    assert relative_error(weights) < 0.05
    assert weights.mean() <= exact + 1e-9
    assert chains.counts.shape == (2000, len(problem.engine.active))


def test_posterior_means():
    """Counts, joint density and θ by both samplers and by summing over all completions."""
    problem = lk.Problem("a -> b -> c", table_of(), 0.8, prune=False)
    program, _, copies = compiled(problem)
    completions, scores = all_completions(problem)
    shares = np.exp(scores - logsumexp(scores))
    counts = np.tile(problem.engine.complete_counts, (len(scores), 1))
    counts[:, problem.engine.active] = [reference.counts_of(program, copies, s) for s in completions]
    theta = np.asarray([problem.layout.normalise(problem.pseudo + own) for own in counts])
    draws = collapsed_gibbs(problem, chains=8, sweeps=6000, burn_in=20, thin=3, seed=2)
    assert draws.counts.shape == (8, 2000, problem.layout.size)
    assert draws.counts.mean(axis=(0, 1)) == pytest.approx(shares @ counts, abs=0.06)
    assert draws.log_joint.mean() == pytest.approx(shares @ scores, abs=0.04)
    assert draws.mean == pytest.approx(shares @ theta, abs=0.005)
    chains = anneal_completions(problem, np.linspace(0.0, 1.0, 16), np.random.SeedSequence(3).spawn(8000))
    weights = np.exp(chains.log_weights - log_mean(chains.log_weights))
    assert weights @ chains.counts / 8000 == pytest.approx((shares @ counts)[problem.engine.active], abs=0.06)


def test_results_do_not_depend_on_the_number_of_workers():
    problem = lk.Problem("s[2] -> a b; t[2] -> b c", table_of())
    schedule = np.linspace(0.0, 1.0, 9)
    one = anneal_completions(problem, schedule, np.random.SeedSequence(3).spawn(8), workers=1)
    many = anneal_completions(problem, schedule, np.random.SeedSequence(3).spawn(8), workers=3)
    assert len(one) == 8
    assert np.array_equal(one.log_weights, many.log_weights)
    assert np.array_equal(one.increments, many.increments)
    assert np.array_equal(one.counts, many.counts)
    assert np.ptp(one.log_weights - one.increments.sum(axis=1)) == pytest.approx(0.0, abs=1e-12)
    options = {"chains": 3, "sweeps": 21, "burn_in": 0, "thin": 4, "seed": 4}
    first, second = (collapsed_gibbs(problem, workers=workers, **options) for workers in (1, 3))
    assert np.array_equal(first.counts, second.counts)
    assert np.array_equal(first.log_joint, second.log_joint)
    assert first.log_joint.shape == (3, 5)
    assert not np.array_equal(first.counts[0], first.counts[1])
    everything = Dirichlet(problem.layout.row_start).log_evidence(problem.pseudo, first.counts[1, 2])
    assert first.log_joint[1, 2] == pytest.approx(everything, rel=1e-12)


def test_fractional_weights_are_refused():
    problem = lk.Problem("s[2] -> a b c", table_of(weights=[0.5] * 6))
    with pytest.raises(DataError, match="whole-number weights"):
        collapsed_gibbs(problem)
    with pytest.raises(DataError, match="whole-number weights"):
        anneal_completions(problem, np.linspace(0.0, 1.0, 5), np.random.SeedSequence(0).spawn(1))


@pytest.mark.parametrize("option", ["chains", "sweeps", "thin", "burn_in"])
def test_options_must_be_whole_and_large_enough(option):
    problem = lk.Problem("s[2] -> a b c", table_of())
    for value in (-1, 1.5, True):
        with pytest.raises(OptionError, match=f"{option} is"):
            collapsed_gibbs(problem, **{option: value})
    with pytest.raises(OptionError, match="sweeps is 2; it must be a whole number of at least 3"):
        collapsed_gibbs(problem, sweeps=2, thin=3)
    with pytest.raises(OptionError, match="schedule of temperatures"):
        anneal_completions(problem, np.asarray([0.0, 0.9]), np.random.SeedSequence(0).spawn(1))


def test_chains_that_are_stopped_are_given_up():
    problem = lk.Problem("s[2] -> a b c", table_of())
    for sampler in (
        lambda stop: (
            anneal_completions(
                problem, np.linspace(0.0, 1.0, 5_000_001), np.random.SeedSequence(0).spawn(2), workers=1, stop=stop
            ).log_weights
        ),
        lambda stop: collapsed_gibbs(problem, sweeps=5_000_000, thin=1000, chains=2, workers=1, stop=stop).log_joint,
    ):
        stop = StopFlag()
        threading.Timer(0.05, stop.set).start()
        assert len(sampler(stop)) == 0, "ten million sweeps would take minutes and be kept"
