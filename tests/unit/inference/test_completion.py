"""Expected counts of any variables: brute force over all completions, and the statistics of the engines."""

import itertools

import numpy as np
import pytest

import lurking as lk
from lurking.errors import TooLarge
from lurking.inference import completion
from lurking.inference.completion import Completion
from lurking.kernels.reference.completion import expected_counts
from lurking.models.layout import Layout
from lurking.search.structural_em import completion_of

STRUCTURES = (
    "h[2] -> a b c; a -> b; g[3] -> c d; b -> d; e",
    "a -> h[3]; h -> b c; e[2]; d -> c; d -> e",
    "h[2]; a -> b -> c -> d; a -> e",
)


def example(text, seed, share=0.3, n=6):
    """Random tables and rows with empty cells, some rows with nothing observed."""
    dag = lk.Dag.parse(text)
    rng = np.random.default_rng(seed)
    cards = {name: dag.hidden.get(name, 2 + k % 2) for k, name in enumerate(dag.nodes)}
    layout = Layout(dag, cards)
    potentials = rng.normal(-1.0, 1.0, layout.size)
    means = np.log(layout.normalise(rng.random(layout.size) + 0.1))
    codes = np.stack([rng.integers(0, cards[name], n) for name in dag.nodes], axis=1).astype(np.int32)
    codes[rng.random(codes.shape) < share] = -1
    codes[:, [dag.nodes.index(name) for name in dag.hidden]] = -1
    codes[0] = -1
    return layout, potentials, means, codes, rng.random(n) + 0.5


def all_completions(layout, codes, weights, weight_of):
    """Return every joint state of all variables of every row, and what it weighs."""
    states, values = [], []
    for row, w in zip(codes, weights, strict=True):
        choices = [range(r) if code < 0 else [code] for code, r in zip(row, layout.cardinalities, strict=True)]
        own = np.asarray(list(itertools.product(*choices)))
        share = np.asarray([weight_of(row, state) for state in own])
        states.append(own)
        values.append(w * share / share.sum())
    return np.concatenate(states), np.concatenate(values)


def brute_force(layout, completions, scope):
    """Return the counts of some variables, one axis each."""
    states, values = completions
    result = np.zeros([layout.cardinalities[v] for v in scope])
    np.add.at(result, tuple(states[:, v] for v in scope), values)
    return result


def joint(layout, vector, state):
    positions = [layout.positions(j, state[None, :], np.zeros(1, int))[0] for j in range(len(layout.nodes))]
    return [vector[position] for position in positions]


@pytest.mark.parametrize("in_context", [0, 1, 2])
@pytest.mark.parametrize("text", STRUCTURES)
def test_expected_counts_are_those_of_all_completions(text, in_context):
    layout, potentials, means, codes, weights = example(text, 1)
    context = tuple(layout.index[name] for name in layout.dag.hidden)[:in_context]
    made = Completion(layout, potentials, means, codes, weights, False, context)

    def weight_of(_row, state):
        return np.exp(sum(joint(layout, potentials, state)))

    completions = all_completions(layout, codes, weights, weight_of)
    for size in (1, 2, 3):
        for scope in itertools.permutations(range(len(layout.nodes)), size):
            exact = brute_force(layout, completions, scope)
            found, n_empty = made.counts(scope)
            assert n_empty == 0
            np.testing.assert_allclose(found.ravel(), exact.ravel(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("context", [(), (1,), (1, 4)])
def test_cells_that_the_fit_left_out_follow_their_parents(context):
    layout, potentials, means, codes, weights = example(STRUCTURES[1], 2)
    made = Completion(layout, potentials, means, codes, weights, True, context)
    dag = layout.dag

    def weight_of(row, state):
        seen = [name for name, code in zip(dag.nodes, row, strict=True) if code >= 0]
        kept = {*seen, *(dag.ancestors(seen) if seen else ())}
        pairs = zip(dag.nodes, joint(layout, potentials, state), joint(layout, means, state), strict=True)
        return np.exp(sum(phi if name in kept else mean for name, phi, mean in pairs))

    completions = all_completions(layout, codes, weights, weight_of)
    for scope in [(0, 1), (1, 3, 4), (4, 2), (5, 0, 3)]:
        exact = brute_force(layout, completions, scope)
        np.testing.assert_allclose(made.counts(scope)[0].ravel(), exact.ravel(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("method", ["map", "vb"])
def test_own_families_have_the_statistics_of_the_fit(method, prune):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (60, 4))
    rows = [[None if rng.random() < 0.2 else int(x) for x in row] for row in codes]
    table = lk.Table.from_rows(rows, columns=list("abcd"))
    fit = lk.fit("h[2] -> a b c; c -> d", table, method=method, prune=prune, restarts=1)
    made = completion_of(fit)
    layout = made.layout
    for name in ("a", "b") if prune else layout.nodes:
        scope = [layout.index[parent] for parent in layout.dag.parents(name)] + [layout.index[name]]
        found = made.table(scope)
        expected = fit.problem.layout.table(fit.counts, name)
        if prune:  # a leaf's empty cells are left out of the fit; what is left agrees
            assert np.all(found >= expected - 1e-9)
            assert found.sum() == pytest.approx(60.0)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("context", [(), (0,), (0, 4)])
def test_kernel_agrees_with_its_twin(context):
    layout, potentials, means, codes, weights = example(STRUCTURES[0], 3)
    made = Completion(layout, potentials, means, codes, weights, False, context)
    parts = (made._instance_of, made._digits_at, made._begin, made._n_states, made._tables, made._digits)
    parts += (made._context, made._context_states)
    for scope in [(0,), (5, 1), (0, 4, 2), (4, 5, 0, 3)]:
        sizes = [layout.cardinalities[v] for v in scope]
        slow = expected_counts(made.codes, weights, *parts, scope, sizes)
        np.testing.assert_allclose(made.counts(scope)[0].ravel(), slow.ravel(), rtol=1e-12, atol=1e-14)


def test_a_context_is_chosen_where_it_makes_tables_small():
    layout, potentials, means, codes, weights = example("h[2] -> a b c d e; g[2] -> a", 6, share=0.8)
    plain = Completion(layout, potentials, means, codes, weights, False, context=())
    made = Completion(layout, potentials, means, codes, weights, prune=False)
    assert made.context == (layout.index["h"],)
    assert len(made._tables) < len(plain._tables) / 2
    for scope in [(0, 1, 2), (6, 0), (3, 4, 5), (2, 6)]:
        np.testing.assert_allclose(made.table(scope), plain.table(scope), rtol=1e-12, atol=1e-14)


def test_large_tables_keep_only_what_occurs(monkeypatch):
    layout, potentials, means, codes, weights = example(STRUCTURES[0], 4)
    made = Completion(layout, potentials, means, codes, weights, prune=False)
    whole, _ = made.counts((0, 1, 2, 3))
    monkeypatch.setattr(completion, "DENSE_CELLS", 0)
    monkeypatch.setattr(completion, "DENSE_CELLS_PER_ROW", 0)
    found, n_empty = made.counts((0, 1, 2, 3))
    assert n_empty == (whole.sum(axis=1) == 0.0).sum()
    np.testing.assert_allclose(found, whole[whole.sum(axis=1) > 0.0], rtol=1e-12)
    np.testing.assert_array_equal(made.table((0, 1, 2, 3)), whole)


def test_too_many_joint_states_are_refused(monkeypatch):
    monkeypatch.setattr(completion, "MOST_STATES", 4)
    layout, potentials, means, codes, weights = example(STRUCTURES[0], 5)
    with pytest.raises(TooLarge, match="joint states"):
        Completion(layout, potentials, means, codes, weights, prune=False)
