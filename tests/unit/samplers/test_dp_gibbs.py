"""The Dirichlet-process mixture agrees with sums over all partitions, and with the Chinese restaurant without data."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2, ks_2samp

import lurking as lk
from lurking.errors import DataError, LurkingWarning, OptionError, TooLarge
from lurking.kernels.cpu.chains.dp_gibbs import empty_mixture, log_joint, log_predictive, sweep
from lurking.kernels.reference import dp_gibbs as reference
from lurking.samplers import dp_gibbs
from lurking.samplers.dp_gibbs import drawn_concentration

LEVELS = {"a": (0, 1), "b": (0, 1), "c": (0, 1, 2)}
ROWS = [(0, 1, 0), (1, 1, None), (0, 0, 0), (1, None, 2), (None, None, None)]
WEIGHTS = [1, 2, 1, 1, 1]
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS, weights=WEIGHTS)
CASES = np.repeat(np.stack([TABLE[name].codes for name in "abc"], axis=1), WEIGHTS, axis=0)
SIZES, PSEUDO = (2, 2, 3), (0.8, 0.8, 0.8)


def mixture_of(states, slots=8):
    """Return the kernel's counts of a partition; −1 is a case in no state."""
    offsets = np.asarray([0, 2, 4, 7])
    mixture = empty_mixture(np.ascontiguousarray(CASES, np.int32), offsets, np.repeat(PSEUDO, SIZES), slots)
    mixture.slots[:] = states
    for case, state in enumerate(states):
        if state >= 0:
            mixture.sizes[state] += 1
            for c, code in enumerate(CASES[case]):
                if code >= 0:
                    mixture.counts[state, offsets[c] + code] += 1
                    mixture.totals[state, c] += 1
    return mixture


def all_partitions(concentration):
    """Return all partitions of the cases and their posterior probabilities."""
    states = list(reference.partitions(len(CASES)))
    scores = np.asarray([reference.log_joint(CASES, SIZES, PSEUDO, z, concentration) for z in states])
    return states, np.exp(scores - logsumexp(scores))


def stirling(n):
    """Return the unsigned Stirling numbers of the first kind |s(n, k)|, k = 0 … n."""
    numbers = [1]
    for m in range(n):
        numbers = [(numbers[k - 1] if k else 0) + (m * numbers[k] if k < len(numbers) else 0) for k in range(m + 2)]
    return np.asarray(numbers, float)


def test_there_are_bell_many_partitions():
    assert [len(list(reference.partitions(n))) for n in range(7)] == [1, 1, 2, 5, 15, 52, 203]


@pytest.mark.parametrize("states", [(0, 0, 1, 2, 1, 0), (0, 0, 0, 0, 0, 0), (3, 1, 4, 0, 5, 2)])
def test_the_kernel_agrees_with_its_twin(states):
    assert log_joint(mixture_of(states), 0.7) == pytest.approx(
        reference.log_joint(CASES, SIZES, PSEUDO, states, 0.7), rel=1e-12
    )
    for case in range(6):
        without = mixture_of([-1 if k == case else z for k, z in enumerate(states)])
        occupied = np.flatnonzero(without.sizes)
        free = int(np.flatnonzero(without.sizes == 0)[0])
        mass = [math.log(without.sizes[k]) + log_predictive(without, case, k) for k in occupied]
        mass.append(math.log(0.7) + log_predictive(without, case, free))
        found = np.exp(mass - logsumexp(mass))
        np.testing.assert_allclose(found, reference.conditional(CASES, SIZES, PSEUDO, states, case, 0.7), rtol=1e-10)


def test_a_sweep_stops_where_no_slot_is_free_and_keeps_its_counts():
    mixture = mixture_of([-1] * 6, slots=1)
    assert sweep(mixture, 1.0, 0, np.random.default_rng(0), np.empty(1)) == 1
    assert mixture.slots.tolist() == [0, -1, -1, -1, -1, -1]
    mixture = mixture_of([-1] * 6)
    for _ in range(5):
        assert sweep(mixture, 1.0, 0, np.random.default_rng(1), np.empty(8)) == 6
    again = mixture_of(mixture.slots)
    for ours, theirs in ((mixture.sizes, again.sizes), (mixture.counts, again.counts), (mixture.totals, again.totals)):
        assert np.array_equal(ours, theirs)


def test_many_columns_do_not_underflow():
    codes = np.zeros((2, 5000), np.int32)
    table = lk.Table.from_codes({f"x{c}": (codes[:, c], (0, 1)) for c in range(5000)})
    found = lk.dirichlet_process(table, chains=1, draws=20, burn_in=0)
    assert np.isfinite(found.log_joint).all()
    assert found.probabilities[1].probability == 1.0


def test_the_posterior_is_the_sum_over_all_partitions():
    states, exact = all_partitions(0.7)
    assert len(states) == 203
    found = lk.dirichlet_process(
        TABLE, concentration=0.7, prior=0.8, draws=1500, burn_in=20, partitions=1500, thin=2, seed=3
    )
    for k in range(1, 7):
        expected = exact[[max(z) + 1 == k for z in states]].sum()
        share = found.probabilities.get(k)
        least = math.sqrt(expected * (1 - expected) / 6000)
        error = least if share is None else max(share.std_error, least)
        assert abs((0.0 if share is None else share.probability) - expected) < 4 * error
    assert 0.99 < found.agreement.r_hat < 1.03
    assert found.agreement.ess_bulk > 1000
    # Partitions themselves, not only their number of states.
    place = {z: k for k, z in enumerate(states)}
    counts = np.bincount([place[tuple(z)] for z in found.partitions.reshape(-1, 6).tolist()], minlength=203)
    expected = 6000 * exact
    common = expected > 20
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    # Draws two sweeps apart are nearly independent; half as much again allows for what is left of dependence.
    assert statistic < 1.5 * chi2.isf(1e-4, int(common.sum()))


def test_rows_share_states_as_often_as_over_all_partitions():
    states, exact = all_partitions(0.7)
    found = lk.dirichlet_process(TABLE, concentration=0.7, prior=0.8, draws=1000, partitions=1000, burn_in=20, seed=4)
    together = found.co_clustering
    cases = {0: [0], 1: [1, 2], 2: [3], 3: [4], 4: [5]}
    for i, j in itertools.product(range(5), repeat=2):
        pairs = [(x, y) for x in cases[i] for y in cases[j] if x != y]
        if pairs:
            x, y = pairs[0]
            assert together[i, j] == pytest.approx(exact[[z[x] == z[y] for z in states]].sum(), abs=0.04)
        else:
            assert together[i, j] == 1.0
    # The point partition is the kept one that is nearest to the pairs' probabilities.
    flat = found.partitions.reshape(-1, 6)
    share = np.mean([z[:, None] == z for z in flat], axis=0)
    costs = {tuple(z): (((z[:, None] == z) - share) ** 2).sum() for z in flat}
    assert costs[tuple(found.partition)] == pytest.approx(min(costs.values()))


@pytest.mark.parametrize("concentration", [0.5, 3.0])
def test_without_the_likelihood_the_number_of_states_is_that_of_the_chinese_restaurant(concentration):
    n, count = 12, 2000
    table = lk.Table.from_rows([(k % 2,) for k in range(n)], ["a"])
    found = lk.dirichlet_process(
        table, concentration=concentration, chains=2, draws=count // 2, burn_in=10, thin=5, likelihood=False, seed=5
    )
    k = np.arange(n + 1)
    log_rising = gammaln(concentration + n) - gammaln(concentration)
    exact = stirling(n) * concentration**k / math.exp(log_rising)
    assert exact.sum() == pytest.approx(1.0)
    counts = np.bincount(found.n_states.ravel(), minlength=n + 1)
    common = count * exact > 5
    statistic = ((counts - count * exact)[common] ** 2 / (count * exact)[common]).sum()
    assert statistic < chi2.isf(1e-4, int(common.sum()) - 1)


def test_the_concentration_is_drawn_from_its_posterior():
    # Draw α ~ Gamma(2, rate 1.5), then the number of states of a Chinese restaurant, then α anew: its law stays.
    generator = np.random.default_rng(6)
    before, after = [], []
    for _ in range(3000):
        alpha = generator.gamma(2.0, 1 / 1.5)
        occupied = int((generator.random(15) < alpha / (alpha + np.arange(15))).sum())
        before.append(alpha)
        after.append(drawn_concentration(alpha, (2.0, 1.5), occupied, 15, generator))
    assert ks_2samp(generator.gamma(2.0, 1 / 1.5, 3000), after).pvalue > 1e-4
    assert np.corrcoef(before, after)[0, 1] < 0.9
    found = lk.dirichlet_process(TABLE, concentration=(2.0, 1.5), draws=20, burn_in=0)
    assert len(np.unique(found.concentration)) == found.concentration.size


@pytest.mark.filterwarnings("ignore:the chains have not settled")
def test_results_depend_on_the_seed_and_not_on_the_number_of_workers():
    runs = [lk.dirichlet_process(TABLE, draws=30, burn_in=5, seed=s, workers=w) for s, w in ((0, 1), (0, 3), (1, 1))]
    assert np.array_equal(runs[0].log_joint, runs[1].log_joint)
    assert not np.array_equal(runs[0].log_joint, runs[2].log_joint)
    assert lk.dirichlet_process(TABLE, ["a", "b"], draws=2, burn_in=0).table.columns == ("a", "b")


def test_no_rows_have_no_states():
    found = lk.dirichlet_process(TABLE.take(np.asarray([], np.int64)), draws=5, burn_in=0, chains=1)
    assert found.probabilities[0].probability == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concentration": 0.0}, "concentration is 0.0"),
        ({"concentration": (1.0, -1.0)}, "concentration is"),
        ({"prior": lk.Prior.bdeu(1.0)}, "prior is 'bdeu'"),
        ({"partitions": 0}, "partitions is 0"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(OptionError, match=words):
        lk.dirichlet_process(TABLE, **options)


def test_fractions_of_rows_and_too_many_pairs_are_refused(monkeypatch):
    with pytest.raises(DataError, match="whole-number"):
        lk.dirichlet_process(lk.Table.from_rows([(0,), (1,)], ["a"], weights=[0.5, 1.0]))
    found = lk.dirichlet_process(TABLE, draws=2, burn_in=0, chains=1)
    monkeypatch.setattr(dp_gibbs, "MOST_PAIRS", 4)
    with pytest.raises(TooLarge, match="5 rows"):
        found.co_clustering  # noqa: B018


def test_too_many_cases_are_refused_before_any_memory_is_taken():
    heavy = lk.Table.from_rows([(0, 1), (1, 0)], ["a", "b"], weights=[1e12, 1.0])
    with pytest.raises(TooLarge, match=r"add up to 1e\+12 cases.*at most 1e\+07"):
        lk.dirichlet_process(heavy, draws=1, burn_in=0, chains=1)


def test_an_outcome_prints_the_number_of_states():
    found = lk.dirichlet_process(TABLE, chains=2, draws=300, burn_in=50, seed=0, workers=1)
    top = max(found.probabilities, key=lambda k: found.probabilities[k].probability)
    assert f"2 chains of 300 draws; probabilities of the number of states: {top}: " in str(found)
    assert repr(found) == str(found)
    assert len(str(found)) < 400


def test_chains_that_have_not_settled_are_told_of():
    with pytest.warns(LurkingWarning, match="have not settled on the number of states: R-hat") as told:
        lk.dirichlet_process(lk.stouffer_toby(), chains=2, draws=6, burn_in=0, seed=0, workers=1)
    assert len(told) == 1
    assert told[0].filename == __file__
