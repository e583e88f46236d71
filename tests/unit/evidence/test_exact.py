"""The exact evidence against sums over all completions, exact fractions and closed forms."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import betaln, gammaln, logsumexp

import lurking as lk
from lurking.errors import DataError, OptionError, TooLarge
from lurking.evidence.exact import _compositions

MANY = 3000


def expanded(small):
    return np.repeat(small.codes, small.weights.astype(int), axis=0)


def n_completions(small):
    sizes = np.asarray([small.cards[name] for name in small.dag.nodes])
    return math.prod(int(np.where(row < 0, sizes, 1).prod()) for row in expanded(small))


def completions(small):
    """Yield the count vector of every completion of every row."""
    layout = small.layout
    rows = []
    for row in expanded(small):
        free = [j for j, code in enumerate(row) if code < 0]
        options = []
        for states in itertools.product(*(range(layout.cardinalities[j]) for j in free)):
            filled = row.copy()
            filled[free] = states
            counts = np.zeros(layout.size, int)
            for j, strides in enumerate(layout.strides):
                counts[layout.offsets[j] + sum(stride * filled[v] for v, stride in strides.items())] += 1
            options.append(counts)
        rows.append(options)
    for choice in itertools.product(*rows):
        yield sum(choice, np.zeros(layout.size, int))


def brute_force(small):
    layout, pseudo = small.layout, small.pseudo
    values = []
    for counts in completions(small):
        value = (gammaln(pseudo + counts) - gammaln(pseudo)).sum()
        value -= (gammaln(layout.row_sums(pseudo + counts)) - gammaln(layout.row_sums(pseudo))).sum()
        values.append(value)
    return float(logsumexp(values))


def rising(base, count):
    product = Fraction(1)
    for i in range(int(count)):
        product *= base + i
    return product


@settings(max_examples=60)
@given(data=st.data())
def test_random_problems_against_all_completions(small_problems, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, whole_weights=True, max_weight=2))
    assume(n_completions(small) <= MANY)
    expected = brute_force(small)
    for prune in (False, True):
        value = lk.score(small.dag, small.table, "exact", prior=small.prior, prune=prune).log_z
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("pseudo", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(10**6)], ids=str)
@settings(max_examples=12)
@given(data=st.data())
def test_random_problems_against_exact_fractions(small_problems, pseudo, data):
    """No rounding on the other side: rising factorials of fractions, λ from 1e-6 to 1e6."""
    small = data.draw(small_problems(max_nodes=4, max_rows=4, whole_weights=True, max_weight=2))
    assume(n_completions(small) <= 400)
    layout = small.layout
    bounds = list(itertools.pairwise(layout.row_start))
    total = Fraction(0)
    for counts in completions(small):
        term = Fraction(1)
        for begin, end in bounds:
            for count in counts[begin:end]:
                term *= rising(pseudo, count)
            term /= rising(pseudo * int(end - begin), counts[begin:end].sum())
        total += term
    value = lk.score(small.dag, small.table, "exact", prior=float(pseudo)).log_z
    expected = math.log(total.numerator) - math.log(total.denominator)
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-11)


@settings(max_examples=40)
@given(data=st.data())
def test_weights_equal_repetition_in_any_order(small_problems, data):
    small = data.draw(small_problems(max_nodes=4, max_rows=4, whole_weights=True))
    value = lk.score(small.dag, small.table, "exact", prior=small.prior).log_z
    shuffled = small.generator.permutation(expanded(small))
    long = small.changed(codes=shuffled, weights=np.ones(len(shuffled)))
    assert lk.score(long.dag, long.table, "exact", prior=small.prior).log_z == pytest.approx(
        value, rel=1e-11, abs=1e-11
    )


def hidden_cause_of_one(n, first):
    """ln p(y) of s[2] -> a with n rows, `first` of them a = 0, λ = 1: a sum over how many of each kind have s = 0."""
    i, j = np.meshgrid(np.arange(first + 1), np.arange(n - first + 1), indexing="ij")
    choose = gammaln(first + 1) - gammaln(i + 1) - gammaln(first - i + 1)
    choose += gammaln(n - first + 1) - gammaln(j + 1) - gammaln(n - first - j + 1)
    terms = betaln(1 + i + j, 1 + n - i - j) + betaln(1 + i, 1 + j) + betaln(1 + first - i, 1 + n - first - j)
    return float(logsumexp(choose + terms))


@pytest.mark.parametrize(("n", "first"), [(1, 1), (10, 4), (300, 100), (9_000, 9_000), (40_000, 40_000)])
def test_many_repetitions_are_added_by_composition(n, first):
    """40 000 rows need wider counters than 30 000 do."""
    rows, weights = [(0,), (1,)], [first, n - first]
    table = lk.Table.from_rows(rows, ["a"], levels={"a": [0, 1]}, weights=weights)
    evidence = lk.score("s[2] -> a", table, "exact")
    # lnΓ of numbers around n carries its own rounding on both sides.
    assert evidence.log_z == pytest.approx(hidden_cause_of_one(n, first), rel=1e-9)
    # p(y) of one binary variable under this prior mixture lies below certainty and above the least likely sequence.
    assert -n * math.log(2) - math.log(n + 1) - 1.0 < evidence.log_z <= 0.0


@pytest.mark.parametrize(("total", "parts"), [(0, 1), (5, 1), (4, 2), (3, 4), (6, 3)])
def test_compositions_are_all_there_once(total, parts):
    rows = _compositions(total, parts)
    expected = [c for c in itertools.product(range(total + 1), repeat=parts) if sum(c) == total]
    assert sorted(map(tuple, rows)) == expected
    assert len(rows) == math.comb(total + parts - 1, parts - 1)


def pair_table(rows=40, seed=0):
    cells = np.random.default_rng(seed).integers(0, 2, (rows, 4))
    return lk.Table.from_rows(cells.tolist(), ["a", "b", "c", "d"])


def test_independent_submodels_are_summed_apart():
    table = pair_table()
    left = lk.score("s[2] -> a b", table, "exact")
    right = lk.score("t[2] -> c d", table, "exact")
    held = max(left.info["tables_held"], right.info["tables_held"])
    # Held together, every table of one side would meet every table of the other.
    assert left.info["tables_held"] * right.info["tables_held"] > 1000 * held
    both = lk.score("s[2] -> a b; t[2] -> c d", table, "exact", budget=held)
    assert both.log_z == pytest.approx(left.log_z + right.log_z, rel=1e-12)
    assert both.info["tables_held"] == held
    with pytest.raises(TooLarge):
        lk.score("s[2] -> a b c d", table, "exact", budget=held)


def test_rows_with_different_observed_parents_are_apart():
    """Given an observed parent of everything, its two states are two independent problems."""
    table = pair_table(30, 1)
    codes = np.column_stack([table[name].codes for name in "abc"])
    whole = lk.score("a -> s[2] -> b c; a -> b; a -> c", table, "exact")
    parts = lk.score("a", table, "exact").log_z
    for state in (0, 1):
        rows = codes[codes[:, 0] == state][:, 1:]
        part = lk.Table.from_rows(rows.tolist(), ["b", "c"], levels={"b": [0, 1], "c": [0, 1]})
        parts += lk.score("s[2] -> b c", part, "exact").log_z
    assert whole.log_z == pytest.approx(parts, rel=1e-12)


def test_beyond_the_budget_is_refused_in_one_line():
    with pytest.raises(TooLarge, match="more than 10 count tables") as caught:
        lk.score("s[2] -> a b c d", pair_table(), "exact", budget=10)
    text = str(caught.value)
    assert "\n" not in text
    assert "budget" in text
    assert "vb" in text


@pytest.mark.parametrize("budget", [0, -1, 2.5, True, "many"])
def test_bad_budgets(budget):
    with pytest.raises(OptionError, match="budget") as caught:
        lk.score("s[2] -> a b", pair_table(), "exact", budget=budget)
    assert repr(budget) in str(caught.value)


def test_fractional_weights_are_refused_unless_nothing_is_unobserved():
    rows = [(0, 1), (1, 1), (0, 0)]
    table = lk.Table.from_rows(rows, ["a", "b"], weights=[1.0, 2.5, 1.0])
    with pytest.raises(DataError, match="whole-number weights") as caught:
        lk.score("s[2] -> a b", table, "exact")
    assert "\n" not in str(caught.value)
    value = lk.score("a -> b", table, "exact").log_z
    assert value == pytest.approx(lk.score("a -> b", table, "mled").log_z, rel=1e-13)


def test_zero_weights_are_no_rows():
    rows = [(0, 1), (1, 1), (0, 0)]
    with_zero = lk.Table.from_rows(rows, ["a", "b"], weights=[1, 0, 2], levels={"a": [0, 1], "b": [0, 1]})
    without = lk.Table.from_rows(rows[::2], ["a", "b"], weights=[1, 2], levels={"a": [0, 1], "b": [0, 1]})
    value = lk.score("s[2] -> a b", with_zero, "exact").log_z
    assert value == pytest.approx(lk.score("s[2] -> a b", without, "exact").log_z, rel=1e-13)


def test_all_weights_zero_are_no_data():
    table = lk.Table.from_rows([(0, 1)], ["a", "b"], weights=[0], levels={"a": [0, 1], "b": [0, 1]})
    assert lk.score("s[2] -> a b", table, "exact").log_z == 0.0


def test_evidence_of_all_tables_sums_to_one():
    """p(y|m) is a distribution over data: summed over every table of three rows it is 1."""
    total = 0.0
    cells = list(itertools.product([0, 1], repeat=2))
    for rows in itertools.product(cells, repeat=3):
        table = lk.Table.from_rows(rows, ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
        total += math.exp(lk.score("s[2] -> a b; a -> b", table, "exact", prior=0.7).log_z)
    assert total == pytest.approx(1.0, rel=1e-12)


def test_one_class_is_independence():
    table = pair_table()
    one = lk.score("s[1] -> a b c d", table, "exact").log_z
    assert one == pytest.approx(lk.score("a; b; c; d", table, "exact").log_z, rel=1e-13)
