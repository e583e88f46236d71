"""Where numbers are cut: exact cut points, levels that can be read back, and the search against every subset."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln

import lurking as lk
from lurking.data.cuts import (
    MOST_CANDIDATES,
    best_partition,
    candidate_boundaries,
    histogram_cuts,
    histogram_scores,
    histogram_terms,
    log_ways,
    separating_number,
    target_cuts,
    target_scores,
    width_cuts,
)
from lurking.data.intervals import class_codes, interval_bounds, interval_levels
from lurking.data.table import Table
from lurking.errors import LurkingWarning

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.lists(st.integers(-40, 40), min_size=1, max_size=40)
ONE_CLASS = "(-inf, inf)"


def table_of(values, weights=None, **others):
    return Table.from_columns({"x": values, **others}, weights=weights, continuous=["x"])


def cut(values, rule, weights=None, **options):
    return lk.discretise(table_of(values, weights), {"x": rule}, **options)["x"]


# Levels.


def test_levels_exactly():
    assert interval_levels([18.5, 25, 30]) == ("< 18.5", "[18.5, 25)", "[25, 30)", ">= 30")
    assert interval_levels([-0.0]) == ("< 0", ">= 0")
    assert interval_levels([0.1, 1e22]) == ("< 0.1", "[0.1, 1e+22)", ">= 1e+22")
    assert interval_levels([]) == (ONE_CLASS,)


@given(st.lists(FINITE, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_levels_are_read_back_exactly_in_any_order(cuts, random):
    cuts = sorted({cut + 0.0 for cut in cuts})
    levels = interval_levels(cuts)
    bounds = list(itertools.pairwise([-math.inf, *cuts, math.inf]))
    assert interval_bounds(levels) == bounds
    order = random.sample(range(len(levels)), len(levels))
    assert interval_bounds([levels[k] for k in order]) == [bounds[k] for k in order]


@pytest.mark.parametrize(
    "levels",
    [
        (),
        ("f", "m"),
        (0, 1),
        ("< 1", 1),
        ("< 1",),
        (">= 1",),
        ("[1, 2)",),
        ("< 1", ">= 2"),
        ("< 2", ">= 1"),
        ("< 1", "[1, 1)", ">= 1"),
        ("< 1", "[1, 2)", "[1, 3)", ">= 3"),
        ("< 1", "[1, 3)", "[2, 3)", ">= 3"),
        ("< 1", "< 1", ">= 1"),
        ("< 1e999", ">= 1e999"),
        ("< nan", ">= nan"),
        (ONE_CLASS, "< 1", ">= 1"),
        ("< 1", "[1, 2]", ">= 2"),
    ],
)
def test_what_is_no_complete_set_of_intervals(levels):
    assert interval_bounds(levels) is None


def test_numbers_on_a_cut_point_belong_above_it():
    assert class_codes(np.array([0.9, 1.0, 1.1, np.nan, 2.0, -9.0, 9.0]), [1.0, 2.0]).tolist() == [
        0, 1, 1, -1, 2, 0, 2,
    ]  # fmt: skip


# Cut points.


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (23, 24, 24),
        (24, 25, 25),
        (-24, -23, -23),
        (19, 21, 20),
        (10, 100, 60),
        (1234.5, 1239.7, 1237),
        (24.9, 25.2, 25),
        (2.4, 2.5, 2.5),
        (24.9, 25.0, 25),
        (0.1, 0.2, 0.2),
        (4.1, 4.2, 4.2),
        (0.123, 0.129, 0.126),
        (-0.3, 0.001, 0),
        (-1, 0, 0),
        (0, 1, 0.5),
        (0.0, 5e-324, 5e-324),
        (1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 2.0)),
        (-1.7e308, -1.6e308, -1.6e308),
        (1.6e308, 1.7e308, 1.7e308),
    ],
)
def test_cut_points_are_short(low, high, expected):
    assert separating_number(low, high) == expected


@given(FINITE, FINITE)
def test_cut_points_separate(one, other):
    low, high = sorted([one, other])
    if low < high:
        assert low < separating_number(low, high) <= high


def test_quantiles_exactly():
    column = cut([1, 2, 3, 4, 5, 6, 7, 8], 4)
    assert column.levels == ("< 3", "[3, 5)", "[5, 7)", ">= 7")
    assert column.codes.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert column.declared
    assert cut([0.31, 5.5, 2.25, None], 3).codes.tolist() == [0, 2, 1, -1]


def test_quantiles_count_weights():
    assert cut([1, 2, 3, 4], 2, weights=[6, 1, 1, 2]).levels == ("< 2", ">= 2")
    assert cut([1, 2, 3, 4], 2, weights=[1, 1, 1, 3]).levels == ("< 4", ">= 4")
    assert cut([1, 2, 3, 50], 2, weights=[1, 0, 1, 0]).levels == ("< 2", ">= 2")


def test_ties_stay_together_and_do_not_spoil_their_neighbours():
    values = [1] * 2 + [5] * 6 + [9] * 2
    with pytest.warns(LurkingWarning, match=r"'x' became 3 classes instead of 4: it has 3 distinct numbers, and equal"):
        column = cut(values, 4)
    assert column.levels == ("< 3", "[3, 7)", ">= 7")
    assert np.bincount(column.codes).tolist() == [2, 6, 2]


@given(NUMBERS, st.integers(2, 6))
@pytest.mark.filterwarnings("ignore::lurking.LurkingWarning")
def test_quantile_classes_are_as_even_as_ties_allow(values, states):
    """Every cut is the boundary nearest to its share, found here by looking at all boundaries."""
    column = cut(values, states)
    distinct = sorted(set(values))
    below = [sum(value <= last for value in values) for last in distinct[:-1]]
    wanted = (
        {min(below, key=lambda n: (abs(n * states - k * len(values)), n)) for k in range(1, states)} if below else []
    )
    found = [sum(value < low for value in values) for low, _ in interval_bounds(column.levels)[1:]]
    assert found == sorted(wanted)


@given(NUMBERS, st.integers(2, 6))
@pytest.mark.filterwarnings("ignore::lurking.LurkingWarning")
def test_a_monotone_transform_leaves_quantile_classes_alone(values, states):
    codes = cut(values, states).codes.tolist()
    for transform in (lambda x: 3.7 * x - 11, lambda x: math.exp(x / 7), lambda x: x**3):
        assert cut([transform(value) for value in values], states).codes.tolist() == codes


def test_equal_width_exactly():
    column = cut([0, 1, 2, 10], 4, method="width")
    assert column.levels == ("< 2.5", "[2.5, 5)", "[5, 7.5)", ">= 7.5")
    assert column.codes.tolist() == [0, 0, 0, 3]
    assert column.unseen_levels == ("[2.5, 5)", "[5, 7.5)")
    assert cut([0.0, 0.1, 0.2, 0.3], "width", states=3).codes.tolist() == [0, 1, 2, 2]
    assert cut([0.0, 1.0], 3, method="width").levels == ("< 0.3333333", "[0.3333333, 0.6666667)", ">= 0.6666667")


@given(FINITE, FINITE, st.integers(2, 9))
def test_equal_width_at_any_scale(one, other, states):
    low, high = sorted([one, other])
    cuts = width_cuts(np.array([high, low]), states)
    assert all(low < cut <= high for cut in cuts)
    assert cuts == sorted(set(cuts))
    if high / 1e3 - low / 1e3 > 1e-12 * max(abs(low), abs(high)) + 1e-300:
        expected = [low * (1 - k / states) + high * (k / states) for k in range(1, states)]
        np.testing.assert_allclose(cuts, expected, rtol=0, atol=1e-6 * (high / states - low / states))


def test_given_cuts_take_whatever_lies_outside():
    column = cut([17.2, 18.5, 24.99, None, 31, -1e9, 1e9], [18.5, 25, 30])
    assert column.levels == ("< 18.5", "[18.5, 25)", "[25, 30)", ">= 30")
    assert column.codes.tolist() == [0, 1, 1, -1, 3, 0, 3]
    assert column.unseen_levels == ("[25, 30)",)
    assert cut([1.5, 2.5], np.array([2, 3])).levels == ("< 2", "[2, 3)", ">= 3")
    assert cut([1.5, 2.5], (np.float32(2),)).levels == ("< 2", ">= 2")


# Evidence.


def log_choose(n, k):
    return math.log(math.comb(n, k))


def ways(n_cells, limit):
    """Yield the edges, 0 and E included, of every way to join the cells to at most `limit` classes."""
    for n_classes in range(1, limit + 1):
        for inner in itertools.combinations(range(1, n_cells), n_classes - 1):
            yield (0, *inner, n_cells)


def histogram_evidence(edges, below, chosen, strength=1.0):
    """Return ln p(x | cuts) − ln C(E−1, K−1), written down from the definition."""
    n, n_classes = below[-1], len(chosen) - 1
    value = math.lgamma(n_classes * strength) - math.lgamma(n + n_classes * strength)
    for i, j in itertools.pairwise(chosen):
        count = below[j] - below[i]
        value += math.lgamma(count + strength) - math.lgamma(strength) - count * math.log(edges[j] - edges[i])
    return value - log_choose(len(edges) - 2, n_classes - 1)


def target_evidence(below, chosen):
    """Return ln p(target | classes) − ln C(E−1, K−1) by the chain rule: each case given those before it in a class."""
    n_states, value = below.shape[1], 0.0
    for i, j in itertools.pairwise(chosen):
        seen = np.zeros(n_states)
        for state, count in enumerate(below[j] - below[i]):
            for _ in range(int(count)):
                value += math.log((seen[state] + 1) / (seen.sum() + n_states))
                seen[state] += 1
    return value - log_choose(len(below) - 2, len(chosen) - 2)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("strength", [1.0, 0.3])
def test_the_best_histogram_is_the_best_of_all_subsets(seed, strength):
    rng = np.random.default_rng(seed)
    n_cells = int(rng.integers(1, 10))
    edges = np.cumsum(rng.gamma(0.5, 2.0, n_cells + 1) + 1e-3) - 3
    below = np.append(0.0, np.cumsum(rng.gamma(0.4, 12.0, n_cells) + 0.1))
    limit = min(int(rng.integers(1, 7)), n_cells)
    values = {chosen: histogram_evidence(edges, below, chosen, strength) for chosen in ways(n_cells, limit)}
    found, value = best_partition(
        histogram_scores(edges, below, strength), histogram_terms(below[-1], n_cells, limit, strength)
    )
    best = max(values, key=values.get)
    assert (0, *(found + 1).tolist(), n_cells) == best
    assert value == pytest.approx(values[best], rel=1e-12)


@pytest.mark.parametrize("seed", range(25))
def test_the_best_classes_for_a_target_are_the_best_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    n_cells, n_states = int(rng.integers(1, 10)), int(rng.integers(2, 5))
    counts = rng.poisson(rng.gamma(0.7, 3.0, (n_cells, n_states)))
    counts[:, rng.integers(n_states)] = 0
    below = np.concatenate([np.zeros((1, n_states)), np.cumsum(counts, axis=0)])
    limit = min(int(rng.integers(1, 7)), n_cells)
    values = {chosen: target_evidence(below, chosen) for chosen in ways(n_cells, limit)}
    found, value = best_partition(target_scores(below), -log_ways(n_cells, limit))
    assert value == pytest.approx(max(values.values()), rel=1e-12, abs=1e-12)
    assert values[(0, *(found + 1).tolist(), n_cells)] == pytest.approx(value, rel=1e-12, abs=1e-12)


def test_the_evidence_of_a_histogram_is_an_integral_over_its_density():
    edges, below = np.array([0.0, 0.5, 2.0]), np.array([0.0, 3.0, 7.0])
    integral, _ = quad(lambda p: (p / 0.5) ** 3 * ((1 - p) / 1.5) ** 4, 0, 1)
    two = histogram_scores(edges, below)[[0, 1], [1, 2]].sum() + histogram_terms(7.0, 2, 2)[1]
    assert two == pytest.approx(math.log(integral), rel=1e-10)  # C(1, 1) = 1
    one = histogram_scores(edges, below)[0, 2] + histogram_terms(7.0, 2, 2)[0]
    assert one == pytest.approx(-7 * math.log(2.0), rel=1e-12)


def test_ways_are_counted():
    np.testing.assert_allclose(log_ways(9, 9), [log_choose(8, k) for k in range(9)], atol=1e-12)


def brute_histogram(values, limit):
    """Return how many of the sorted values lie below each cut of the best histogram over all midpoints."""
    distinct, counts = np.unique(values, return_counts=True)
    edges = np.concatenate([distinct[:1], (distinct[1:] + distinct[:-1]) / 2, distinct[-1:]])
    below = np.append(0, np.cumsum(counts)).astype(float)
    best = max(ways(len(distinct), limit), key=lambda chosen: histogram_evidence(edges, below, chosen))
    return [int(below[k]) for k in best[1:-1]]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.filterwarnings("ignore::lurking.LurkingWarning")
def test_by_evidence_from_numbers_to_classes(seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(0, 0.1, 6), rng.normal(5, 2.0, 5)]).round(2)
    column = cut(values, "evidence", states=4)
    found = np.bincount(column.codes, minlength=column.cardinality)
    assert np.cumsum(found)[:-1].tolist() == brute_histogram(values, 4)
    assert (np.diff(column.codes[np.argsort(values)]) >= 0).all()


def test_evidence_finds_a_step_in_the_density():
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.uniform(0, 1, 900), rng.uniform(1, 4, 300)])
    (step,) = (high for _, high in interval_bounds(cut(values, "evidence").levels)[:-1])
    assert step == pytest.approx(1.0, abs=0.02)


def test_evidence_for_a_target_finds_where_it_changes():
    rng = np.random.default_rng(5)
    values = rng.normal(size=250)
    target = np.where(values < -0.5, "a", np.where(values < 0.8, "b", "a"))
    column = lk.discretise(table_of(values, y=target), {"x": "evidence"}, target="y")["x"]
    assert [high for _, high in interval_bounds(column.levels)[:-1]] == pytest.approx([-0.5, 0.8], abs=0.05)


@pytest.mark.parametrize("more", [{}, {"target": "y"}])
def test_one_class_when_no_cut_is_worth_it(more):
    rng = np.random.default_rng(6)
    table = table_of(rng.uniform(size=200), y=rng.integers(0, 2, 200))
    with pytest.warns(LurkingWarning, match=r"'x' became one class, which tells nothing: by evidence no cut is worth"):
        column = lk.discretise(table, {"x": "evidence"}, **more)["x"]
    assert column.levels == (ONE_CLASS,)
    assert set(column.codes.tolist()) == {0}


def test_rows_without_a_target_have_no_say_but_stay():
    values = [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    target = ["a"] * 6 + ["b"] * 6
    plain = lk.discretise(table_of(values, y=target), {"x": "evidence"}, target="y")
    assert plain["x"].levels == ("< 7", ">= 7")
    more = table_of([*values, 6.4, 6.6, None], y=[*target, None, None, "a"])
    column = lk.discretise(more, {"x": "evidence"}, target="y")["x"]
    assert column.levels == ("< 7", ">= 7")
    assert column.codes.tolist() == [0] * 6 + [1] * 6 + [0, 0, -1]


def test_unseen_states_of_a_target_count_as_possible():
    counts = np.array([[0, 0, 0], [2, 0, 0], [2, 3, 0]], dtype=float)
    expected = gammaln(3) - gammaln(8) + gammaln(3) + gammaln(4)
    assert target_scores(counts)[0, 2] == pytest.approx(expected, rel=1e-12)


def test_target_scores_in_pieces_match_those_in_one_go(monkeypatch):
    below = np.cumsum(np.random.default_rng(0).poisson(2.0, (9, 3)), axis=0).astype(float)
    whole = target_scores(below)
    monkeypatch.setattr("lurking.data.cuts.COUNTS_AT_ONCE", 12)
    assert np.array_equal(target_scores(below), whole)


def test_many_distinct_numbers_are_thinned_evenly():
    weights = np.random.default_rng(0).gamma(1.0, 1.0, 5000)
    boundaries = candidate_boundaries(weights)
    assert len(boundaries) == MOST_CANDIDATES
    cells = np.diff(np.concatenate([[0], np.cumsum(weights)[boundaries], [weights.sum()]]))
    assert np.abs(cells - weights.sum() / (MOST_CANDIDATES + 1)).max() < 2 * weights.max()
    assert candidate_boundaries(np.ones(MOST_CANDIDATES + 1)).tolist() == list(range(MOST_CANDIDATES))
    assert candidate_boundaries(np.ones(1)).tolist() == []


def test_evidence_at_the_edges_of_floating_point():
    huge = np.array([-1.7e308, -1.6e308, 1.6e308, 1.7e308])
    tiny = np.array([0.0, 5e-324, 1e-323, 1.0])
    near = np.array([1.0, math.nextafter(1.0, 2.0), 2.0])
    for values in (huge, tiny, near):
        for cuts in (
            histogram_cuts(values, np.full(len(values), 50.0), 4),
            target_cuts(values, np.full(len(values), 50.0), np.arange(len(values)) % 2, 2, 4),
        ):
            assert cuts == sorted(set(cuts))
            assert np.isfinite(cuts).all()
