"""Relabelings of hidden nodes and states as permutations of the flat vector."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import lurking as lk
from lurking.samplers import aliases
from lurking.samplers.aliases import Sharing, group_of, log_share, relabelings

LEVELS = dict.fromkeys("abcd", (0, 1, 2))
TABLE = lk.Table.from_rows([(0, 1, 2, 0), (2, 1, 0, 1), (1, None, 0, 2)], list("abcd"), levels=LEVELS)
MODELS = [
    "s[2] -> a b c d",
    "s[4] -> a b c d",
    "s[2] -> a b c d; t[2] -> a b c d",
    "s[3] -> a b; t[3] -> c d",
    "s[2] -> a b; t[2] -> a b; u[2] -> a b; c; d",
    "s[2] -> t[3]; s -> a b; t -> c d",
    "a -> s[2] -> b; a -> t[2] -> b; c; d",
    "a b c d",
    "s[1] -> a b; t[1] -> a b; c; d",
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prior", [1.0, lk.Prior.bdeu(2.0)], ids=["symmetric", "bdeu"])
def test_there_are_as_many_as_ln_s_says(model, prior):
    problem = lk.Problem(model, TABLE, prior)
    permutations = relabelings(problem.layout, problem.pseudo)
    assert len(permutations) == round(math.exp(problem.log_aliases))
    assert np.array_equal(permutations[0], np.arange(problem.layout.size))
    assert len({row.tobytes() for row in permutations}) == len(permutations)


@pytest.mark.parametrize("model", MODELS)
def test_the_likelihood_does_not_change(model):
    problem = lk.Problem(model, TABLE)
    theta = problem.layout.normalise(np.random.default_rng(0).random(problem.layout.size))
    log_z = problem.engine.expect(np.log(theta))[1]
    for permutation in relabelings(problem.layout, problem.pseudo)[:60]:
        moved = theta[permutation]
        assert problem.layout.row_sums(moved) == pytest.approx(np.ones(len(problem.layout.row_start) - 1))
        assert problem.engine.expect(np.log(moved))[1] == pytest.approx(log_z, rel=1e-12)


def test_a_prior_that_tells_states_apart_has_no_relabelings():
    counts = {"s": [[1.0, 2.0]], **{name: np.ones((2, 3)) for name in "abcd"}}
    problem = lk.Problem("s[2] -> a b c d", TABLE, lk.Prior.from_counts(counts))
    assert len(relabelings(problem.layout, problem.pseudo)) == 1


def test_shares_of_all_relabelings_of_a_point_sum_to_one():
    problem = lk.Problem("s[2] -> a b c d; t[2] -> a b c d", TABLE)
    permutations = relabelings(problem.layout, problem.pseudo)
    rng = np.random.default_rng(0)
    theta = problem.layout.normalise(rng.random(problem.layout.size))
    alpha = 1.0 + 5.0 * rng.random(problem.layout.size)
    points = np.log(np.stack([theta[permutation] for permutation in permutations]))
    for power in (1.0, 0.25, 0.0):
        shares = log_share(permutations, alpha, points, power) - math.log(len(permutations))
        assert logsumexp(shares) == pytest.approx(0.0, abs=1e-12)
    assert log_share(permutations, alpha, points, 0.0) == pytest.approx(np.zeros(len(points)), abs=1e-12)


def test_too_many_are_not_listed(monkeypatch):
    problem = lk.Problem("s[9] -> a b c d", TABLE)
    assert relabelings(problem.layout, problem.pseudo) is None
    layout = lk.Problem("s[3] -> a b c d", TABLE).layout
    monkeypatch.setattr(aliases, "MOST_ENTRIES", 6 * 39)
    assert len(relabelings(layout, np.ones(39))) == 6
    monkeypatch.setattr(aliases, "MOST_ENTRIES", 6 * 39 - 1)
    assert relabelings(layout, np.ones(39)) is None
    monkeypatch.undo()
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 5)
    assert relabelings(layout, np.ones(39)) is None


# Models whose relabelings are a list followed by orders of states: of one variable, of two that share no family, of
# one of two that share one, of two of three in a row, with hidden variables that may be exchanged.
ORDERED = {
    "s[4] -> a b c d": 1,
    "s[3] -> a b; t[3] -> c d": 1,
    "s[3] -> a b c; t[2] -> c d": 2,
    "s[3] -> a b c d; t[3] -> a b c d": 12,
    "s[3] -> t[2]; t -> u[3]; s -> a; t -> b; u -> c d": 2,
    "s[2] -> a b; t[2] -> a b; u[2] -> a b; c; d": 24,
    "a -> s[3] -> b; a -> t[3] -> b; c; d": 12,
    "s[2] -> u[1] -> a b; t[2] -> v[1] -> a b; c; d": 2,
}


def everything(orders):
    """Return every relabeling of a group, orders of states after a listed one, (count, P)."""
    result = []
    for listed in orders.listed:
        for own in itertools.product(*(itertools.permutations(range(len(states))) for states in orders.states)):
            moved = listed.copy()
            for states, order in zip(orders.states, own, strict=True):
                moved[states] = listed[states[list(order)]]
            result.append(moved)
    return np.array(result)


def ordered(monkeypatch, model, prior=1.0):
    """Return a problem whose relabelings are summed by permanents, however cheap a list would be."""
    monkeypatch.setattr(aliases, "LISTED_AT_ONCE", 1e-9)
    return lk.Problem(model, TABLE, prior)


@pytest.mark.parametrize("model", ORDERED)
def test_a_list_followed_by_orders_of_states_is_every_relabeling_once(monkeypatch, model):
    problem = ordered(monkeypatch, model)
    group = group_of(problem)
    assert group.form == "permanents"
    assert len(group.orders.listed) == ORDERED[model]
    found, expected = everything(group.orders), relabelings(problem.layout, problem.pseudo)
    assert {row.tobytes() for row in found} == {row.tobytes() for row in expected}
    assert len(found) == len(expected)
    assert np.array_equal(found[0], np.arange(problem.layout.size))


@pytest.mark.parametrize("model", ORDERED)
def test_permanents_share_as_a_list_does(monkeypatch, model):
    """With two modes and any power, and the same for how many chains have switched."""
    plain = lk.Problem(model, TABLE)
    monkeypatch.setattr(aliases, "LISTED_AT_ONCE", 1e9)
    generator = np.random.default_rng(0)
    alphas = [1.0 + 5.0 * generator.random(len(plain.engine.active)) for _ in range(2)]
    listing = Sharing(plain, alphas)
    assert listing.group.form == "listing"
    permanents = Sharing(ordered(monkeypatch, model), alphas)
    assert permanents.group.form == "permanents"
    assert permanents.permutations is None
    assert permanents.is_whole
    points = np.log(np.stack([plain.layout.normalise(own) for own in generator.random((6, plain.layout.size))]))
    points = points[:, plain.engine.active]
    for mode, power in itertools.product((0, 1), (1.0, 0.25, 0.0)):
        expected = listing.log_share(mode, points, power)
        assert permanents.log_share(mode, points, power) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert permanents.switched(1, points) == listing.switched(1, points)
    alone = [Sharing(problem, alphas[:1]) for problem in (plain, ordered(monkeypatch, model))]
    one, other = (sharing.log_share(0, points, 0.5) for sharing in alone)
    assert one == pytest.approx(other, rel=1e-11, abs=1e-11)


def test_a_prior_that_tells_some_states_apart(monkeypatch):
    """States of s stay as they are; those of t may be put in any order, and only these are counted."""
    counts = {"s": [[1.0, 1.0, 4.0]], "t": [[1.0] * 3], "a": np.ones((3, 3)), "b": np.ones((3, 3))}
    counts |= {"c": np.ones((3, 3)), "d": np.ones((3, 3))}
    problem = ordered(monkeypatch, "s[3] -> a b; t[3] -> c d", lk.Prior.from_counts(counts))
    group = group_of(problem)
    assert group.form == "permanents"
    assert len(group.orders.states) == 1
    found, expected = everything(group.orders), relabelings(problem.layout, problem.pseudo)
    assert len(found) == 12
    assert {row.tobytes() for row in found} == {row.tobytes() for row in expected}


def test_nine_states_are_shared_among_all_their_orders():
    """362 880 orders written out, near a mode where states are apart and far from it."""
    problem = lk.Problem("s[9] -> a b; c; d", TABLE)
    generator = np.random.default_rng(2)
    size = len(problem.engine.active)
    alpha = 1.0 + 20.0 * generator.random(size) ** 4
    sharing = Sharing(problem, [alpha])
    assert (sharing.group.form, sharing.log_missing) == ("permanents", 0.0)
    (states,) = sharing.group.orders.states
    orders = np.array(list(itertools.permutations(range(9))))
    near = np.log(np.stack([generator.dirichlet(own) for own in np.split(alpha[9:], 18)]).ravel())
    near = np.concatenate([np.log(generator.dirichlet(alpha[:9])), near])
    far = np.log(problem.layout.normalise(generator.random(problem.layout.size)))[problem.engine.active]
    for power in (1.0, 0.1):
        found = sharing.log_share(0, np.stack([near, far]), power)
        for point, share in zip((near, far), found, strict=True):
            flat, weights = np.zeros(problem.layout.size), sharing.alphas[0] - 1.0
            flat[problem.engine.active] = point
            gains = power * weights[states] @ flat[states].T
            total = logsumexp(gains[np.arange(9), orders].sum(axis=1))
            assert share == pytest.approx(math.lgamma(10.0) + np.trace(gains) - total, rel=1e-11, abs=1e-11)


def test_many_states_are_shared_by_assignment_and_fewer_by_permanents():
    forms = {states: group_of(lk.Problem(f"s[{states}] -> a b", TABLE)).form for states in (2, 8, 9, 16, 17, 18)}
    assert forms == {2: "listing", **dict.fromkeys((8, 9, 16, 17), "permanents"), 18: "assignment"}
    apart = Sharing(lk.Problem("s[18] -> a b; t[18] -> c d", TABLE), [])
    assert len(apart.group.orders.states) == 2
    assert apart.is_whole
    sharing = Sharing(lk.Problem("s[18] -> a b; t[18] -> b c d", TABLE), [])
    assert sharing.log_missing == pytest.approx(math.lgamma(19.0)), "t has a family in common with s"


def test_what_cannot_be_summed_is_told(monkeypatch):
    """Two variables of one family: orders of one of them are shared, those of the other are missing."""
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 1)
    problem = lk.Problem("s[3] -> a b c; t[2] -> c d", TABLE)
    generator = np.random.default_rng(0)
    sharing = Sharing(problem, [1.0 + 5.0 * generator.random(len(problem.engine.active))])
    assert sharing.group.form == "permanents"
    assert sharing.log_missing == pytest.approx(math.log(2.0))
    theta = np.log(problem.layout.normalise(generator.random(problem.layout.size)))
    points = theta[everything(sharing.group.orders)][:, problem.engine.active]
    assert len(points) == 6
    assert logsumexp(sharing.log_share(0, points, 1.0)) == pytest.approx(math.log(6.0), abs=1e-12)
