"""The compiled exact engine against brute force, finite differences and closed forms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from lurking.errors import TooLarge
from lurking.graph.dag import Dag
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.rows import Rows
from lurking.inference.problem import ENGINES
from lurking.models.layout import Layout

PRUNE = pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
KINDS = ["probabilities", "any", "zeros", "impossible"]


def potentials_of(small, kind):
    if kind == "probabilities":
        return np.log(small.theta(0.5))
    rng = small.generator
    values = rng.normal(0.0, 4.0, small.layout.size)
    if kind == "zeros":
        values[rng.random(len(values)) < 0.15] = -np.inf
    if kind == "impossible":
        values[rng.random(len(values)) < 0.7] = -np.inf
    return values


@PRUNE
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_enumeration_equals_brute_force(small_problems, prune, kind, data):
    small = data.draw(small_problems())
    potentials = potentials_of(small, kind)
    fast, slow = small.engine("enumeration", prune), small.engine("reference", prune)
    counts, log_z = fast.expect(potentials)
    expected, expected_log_z = slow.expect(potentials)
    assert log_z == pytest.approx(expected_log_z, rel=1e-10, abs=1e-10)
    if math.isfinite(log_z):
        assert counts == pytest.approx(expected, rel=1e-10, abs=1e-10)
    per_row = fast.pattern_log_z(potentials)
    assert per_row == pytest.approx(slow.pattern_log_z(potentials), rel=1e-10, abs=1e-10)
    possible = np.isfinite(per_row)
    for node in range(len(small.dag.nodes) if len(small.codes) else 0):
        marginals = fast.pattern_marginals(potentials, node)[possible]
        reference = slow.pattern_marginals(potentials, node)[possible]
        assert marginals == pytest.approx(reference, rel=1e-10, abs=1e-10, nan_ok=True)
        kept = ~np.isnan(marginals).any(axis=1)
        assert marginals[kept].sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    statistics = fast.pattern_statistics(potentials)[possible]
    assert statistics == pytest.approx(slow.pattern_statistics(potentials)[possible], rel=1e-10, abs=1e-10)
    if possible.all():
        assert small.weights @ statistics == pytest.approx(counts, rel=1e-10, abs=1e-10)
        assert small.weights @ per_row == pytest.approx(log_z, rel=1e-10, abs=1e-9)


@settings(max_examples=40)
@given(data=st.data())
def test_counts_of_every_node_sum_to_n(small_problems, data):
    small = data.draw(small_problems())
    counts = small.engine().expect(potentials_of(small, "any"))[0]
    for table in small.layout.split(counts).values():
        assert table.sum() == pytest.approx(small.weights.sum(), rel=1e-12, abs=1e-12)
        assert table.min() >= 0.0


@settings(max_examples=40)
@given(data=st.data())
def test_children_agree_with_their_parents_on_the_counts(small_problems, data):
    small = data.draw(small_problems())
    layout = small.layout
    counts = layout.split(small.engine().expect(potentials_of(small, "any"))[0])
    for name in layout.nodes:
        parents = small.dag.parents(name)
        table = counts[name].sum(axis=1).reshape([small.cards[p] for p in parents])
        for axis, parent in enumerate(parents):
            others = tuple(a for a in range(len(parents)) if a != axis)
            assert table.sum(axis=others) == pytest.approx(counts[parent].sum(axis=0), rel=1e-10, abs=1e-10)


@PRUNE
@settings(max_examples=25)
@given(data=st.data())
def test_counts_are_the_gradient_of_log_z(small_problems, prune, data):
    small = data.draw(small_problems(max_nodes=4))
    engine = small.engine(prune=prune)
    potentials = small.generator.normal(-0.5, 1.0, small.layout.size)
    counts = engine.expect(potentials)[0]
    step = 1e-5
    for position in small.generator.permutation(small.layout.size)[:8]:
        up, down = potentials.copy(), potentials.copy()
        up[position] += step
        down[position] -= step
        slope = (engine.expect(up)[1] - engine.expect(down)[1]) / (2 * step)
        assert slope == pytest.approx(counts[position], rel=1e-6, abs=1e-6)


@settings(max_examples=40)
@given(data=st.data())
def test_row_order_and_repetition_do_not_matter(small_problems, data):
    small = data.draw(small_problems(whole_weights=True))
    potentials = potentials_of(small, "any")
    counts, log_z = small.engine().expect(potentials)
    repeated = np.repeat(np.arange(len(small.codes)), small.weights.astype(int))
    shuffled = small.generator.permutation(repeated)
    long = small.changed(codes=small.codes[shuffled], weights=np.ones(len(shuffled)))
    for name in ("enumeration", "reference"):
        other, other_log_z = long.engine(name).expect(potentials)
        assert other == pytest.approx(counts, rel=1e-11, abs=1e-11)
        assert other_log_z == pytest.approx(log_z, rel=1e-11, abs=1e-11)


@settings(max_examples=40)
@given(data=st.data())
def test_pruning_changes_nothing_for_probabilities(small_problems, data):
    small = data.draw(small_problems())
    potentials = np.log(small.theta())
    kept, pruned = small.engine(prune=False), small.engine(prune=True)
    assert pruned.expect(potentials)[1] == pytest.approx(kept.expect(potentials)[1], rel=1e-11, abs=1e-11)


def latent_class(children, classes=2):
    names = [f"y{k}" for k in range(children)]
    dag = Dag(["s", *names], [("s", name) for name in names], {"s": classes})
    return Layout(dag, {"s": classes, **dict.fromkeys(names, 2)})


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 7])
def test_products_that_underflow_are_done_in_the_log_domain(classes):
    """3000 children: every row's probability is about e^−2000, far below the smallest double."""
    layout = latent_class(3000, classes)
    rng = np.random.default_rng(classes)
    theta = layout.normalise(rng.gamma(1.0, size=layout.size) + 1e-3)
    codes = np.full((4, 3001), -1, np.int32)
    codes[:, 1:] = rng.integers(0, 2, (4, 3000))
    codes[3, 1:1500] = -1
    weights = np.asarray([1.0, 2.5, 1e6, 3.0])
    engine = EnumerationEngine(layout, Rows.of_codes(codes, weights), True)
    counts, log_z = engine.expect(np.log(theta))
    tables = np.log(theta[classes:]).reshape(3000, classes, 2)
    scores = np.tile(np.log(theta[:classes]), (4, 1))
    for row in range(4):
        for child in range(3000):
            if codes[row, child + 1] >= 0:
                scores[row] += tables[child, :, codes[row, child + 1]]
    per_row = logsumexp(scores, axis=1)
    assert per_row.max() < -700.0
    assert log_z == pytest.approx(float(weights @ per_row), rel=1e-12)
    posterior = np.exp(scores - per_row[:, None])
    assert layout.table(counts, "s")[0] == pytest.approx(weights @ posterior, rel=1e-9, abs=1e-9)
    expected = (weights * (codes[:, 3000] == 1)) @ posterior
    assert layout.table(counts, "y2999")[:, 1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_only_the_underflowing_rows_change_domain():
    """Rows on both sides of the smallest double in one group, each right."""
    layout = latent_class(300)
    theta = np.where(np.arange(layout.size) % 2 == 0, 1 - 1e-4, 1e-4)
    theta[:2] = [0.25, 0.75]
    rows = np.zeros((3, 301), np.int32)
    rows[:, 0] = -1
    rows[1, 1:] = 1
    rows[2, 1:151] = 1
    engine = EnumerationEngine(layout, Rows.of_codes(rows, np.asarray([1.0, 1.0, 2.0])), True)
    ones = np.asarray([0, 300, 150])
    expected = ones * math.log(1e-4) + (300 - ones) * math.log1p(-1e-4)
    assert engine.pattern_log_z(np.log(theta)) == pytest.approx(expected, rel=1e-12)
    counts, log_z = engine.expect(np.log(theta))
    assert log_z == pytest.approx(expected @ [1.0, 1.0, 2.0], rel=1e-12)
    assert layout.table(counts, "s")[0] == pytest.approx([1.0, 3.0], rel=1e-12)


@pytest.mark.parametrize("engine_class", ENGINES.values(), ids=list(ENGINES))
def test_no_rows(engine_class):
    layout = latent_class(2)
    engine = engine_class(layout, Rows.of_codes(np.empty((0, 3), np.int32), np.empty(0)), True)
    counts, log_z = engine.expect(np.log(np.full(layout.size, 0.5)))
    assert log_z == 0.0
    assert not counts.any()
    assert engine.pattern_log_z(np.zeros(layout.size)).shape == (0,)
    assert engine.pattern_marginals(np.zeros(layout.size), 0).shape == (0, 2)
    assert engine.pattern_statistics(np.zeros(layout.size)).shape == (0, layout.size)


def test_independent_components_are_enumerated_apart():
    """40 binary hidden nodes, each with its own child: 2^40 joint states, 40 components of 2."""
    names = [f"s{k}" for k in range(40)] + [f"y{k}" for k in range(40)]
    dag = Dag(names, [(f"s{k}", f"y{k}") for k in range(40)], {f"s{k}": 2 for k in range(40)})
    layout = Layout(dag, dict.fromkeys(names, 2))
    codes = np.full((3, 80), -1, np.int32)
    codes[:, 40:] = np.random.default_rng(0).integers(0, 2, (3, 40))
    engine = EnumerationEngine(layout, Rows.of_codes(codes, np.ones(3)), True)
    assert set(engine.program.states) == {2}
    counts, log_z = engine.expect(np.full(layout.size, math.log(0.5)))
    assert log_z == pytest.approx(120 * math.log(0.5), rel=1e-12)
    assert layout.table(counts, "s7")[0] == pytest.approx([1.5, 1.5], rel=1e-12)


def test_dependent_variables_beyond_the_limit_are_refused_in_one_line():
    names = [f"s{k}" for k in range(60)]
    dag = Dag([*names, "y"], [*itertools.pairwise(names), (names[-1], "y")], dict.fromkeys(names, 2))
    layout = Layout(dag, dict.fromkeys([*names, "y"], 2))
    codes = np.full((1, 61), -1, np.int32)
    codes[0, 60] = 0
    with pytest.raises(TooLarge, match="60 unobserved variables") as caught:
        EnumerationEngine(layout, Rows.of_codes(codes, np.ones(1)), True)
    assert "\n" not in str(caught.value)


def test_cost_depends_on_distinct_rows_only():
    layout = latent_class(3)
    cells = np.indices((2, 2, 2)).reshape(3, -1).T
    codes = np.column_stack([np.full(8, -1), cells]).astype(np.int32)
    once = EnumerationEngine(layout, Rows.of_codes(codes, np.full(8, 1000.0)), True)
    often = EnumerationEngine(layout, Rows.of_codes(np.tile(codes, (1000, 1)), np.ones(8000)), True)
    assert len(often.program.weights) == len(once.program.weights) == 8
    potentials = np.log(np.random.default_rng(0).dirichlet([1, 1], layout.size // 2).ravel())
    assert often.expect(potentials)[0] == pytest.approx(once.expect(potentials)[0], rel=1e-12)


@PRUNE
@pytest.mark.parametrize("rows", [6, 200], ids=["few rows", "many rows"])
def test_empty_cells_of_large_families(rows, prune):
    """A child with four observed parents of three states: only the configurations that occur are expanded."""
    parents = [f"p{k}" for k in range(4)]
    dag = Dag(["s", *parents, "y", "z"], [("s", "y"), *((p, "y") for p in parents), ("s", "z")], {"s": 2})
    cards = {"s": 2, **dict.fromkeys(parents, 3), "y": 3, "z": 2}
    layout = Layout(dag, cards)
    rng = np.random.default_rng(rows)
    codes = np.column_stack([rng.integers(0, cards[name], rows) for name in dag.nodes]).astype(np.int32)
    codes[:, 0] = -1
    codes[rng.random(rows) < 0.4, 5] = -1
    codes[rng.random(rows) < 0.2, 6] = -1
    codes[rng.random(rows) < 0.1, 2] = -1
    weights = rng.gamma(1.0, size=rows)
    potentials = rng.normal(-1.0, 1.0, layout.size)
    fast, slow = (ENGINES[name](layout, Rows.of_codes(codes, weights), prune) for name in ("enumeration", "reference"))
    counts, log_z = fast.expect(potentials)
    expected, expected_log_z = slow.expect(potentials)
    assert log_z == pytest.approx(expected_log_z, rel=1e-12)
    assert counts == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert fast.pattern_log_z(potentials) == pytest.approx(slow.pattern_log_z(potentials), rel=1e-11)
    assert fast.pattern_statistics(potentials) == pytest.approx(slow.pattern_statistics(potentials), abs=1e-11)


def test_patterns_over_the_same_hidden_variables_share_a_group():
    """Pruned empty cells leave a neutral factor behind, not a group of their own."""
    layout = latent_class(6)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (40, 7)).astype(np.int32)
    codes[rng.random(codes.shape) < 0.4] = -1
    codes[:, 0] = -1
    codes[:, 1] = 0
    engine = EnumerationEngine(layout, Rows.of_codes(codes, np.ones(40)), True)
    assert len(engine.groups) == 1
    assert engine.program.states.tolist() == [2]


@settings(max_examples=30)
@given(data=st.data())
def test_wanted_nodes_are_kept_with_the_same_marginals(small_problems, data):
    small = data.draw(small_problems())
    wanted = data.draw(st.integers(0, len(small.dag.nodes) - 1))
    lean = EnumerationEngine(small.layout, Rows.of_codes(small.codes, small.weights), True, [wanted])
    potentials = np.log(small.theta())
    marginals = lean.pattern_marginals(potentials, wanted)
    assert not np.isnan(marginals).any()
    assert marginals == pytest.approx(small.engine().pattern_marginals(potentials, wanted), rel=1e-10, abs=1e-10)
