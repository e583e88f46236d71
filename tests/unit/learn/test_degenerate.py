"""Saddles, symmetric optima, empty and duplicate states."""

import numpy as np
import pytest

import lurking as lk
from lurking.graph.dag import Dag
from lurking.learn.degenerate import StateIssue, is_symmetric, state_issues, state_profiles
from lurking.models.layout import Layout

METHODS = ["ml", "map", "vb"]
ROWS = [(0, 0, 0)] * 4 + [(0, 0, 1), (0, 1, 0)] + [(1, 1, 1)] * 4 + [(1, 1, 0), (1, 0, 1)]
TWELVE = lk.Table.from_rows(ROWS, columns=["a", "b", "c"])
UNIFORM = {"h": [0.5, 0.5], **{name: [[0.5, 0.5], [0.5, 0.5]] for name in "abc"}}


def two_classes(n, seed):
    """Return n rows of five binary answers, nine in ten as the class (40 % and 60 %) says."""
    generator = np.random.default_rng(seed)
    hidden = generator.random(n) < 0.4
    cells = generator.random((n, 5)) < np.where(hidden[:, None], 0.9, 0.1)
    return lk.Table.from_array(cells.astype(int), columns=list("abcde"))


@pytest.mark.parametrize("method", METHODS)
def test_a_uniform_start_does_not_move_and_is_called_a_saddle(method):
    options = {"method": method, "prior": 0.1, "init": UNIFORM, "restarts": 1}
    fit = lk.fit("h[2] -> *", TWELVE, accelerate=False, max_iter=5, tol=0, **options)
    assert fit.status is lk.Status.SADDLE
    assert fit.n_iter == 5
    assert np.ptp(fit.trace[1:]) < 1e-12 * abs(fit.objective)
    assert fit.network.hidden_probabilities(TWELVE)["h"] == pytest.approx(np.full((12, 2), 0.5), abs=1e-12)
    converged = lk.fit("h[2] -> *", TWELVE, **options)
    assert converged.status is lk.Status.SADDLE
    assert converged.objective == pytest.approx(fit.objective, abs=1e-9)
    better = lk.fit("h[2] -> *", TWELVE, method=method, prior=0.1, restarts=5)
    assert better.objective > fit.objective + 1.0
    assert "saddle" in fit.status.sentence


def test_a_saddle_among_the_starts_does_not_win():
    fit = lk.fit("h[2] -> *", TWELVE, prior=0.1, init=UNIFORM, restarts=4)
    assert fit.status is lk.Status.CONVERGED
    assert fit.objective > fit.spread.objectives[0] + 1.0


@pytest.mark.parametrize("method", ["ml", "map", "map-probability"])
def test_a_symmetric_optimum_is_not_called_a_saddle(method):
    table = lk.Table.from_rows([(0,), (1,)], columns=["a"], weights=[7, 3])
    fit = lk.fit("h[2] -> a", table, method=method, init={"h": [0.5, 0.5], "a": [[0.5, 0.5]] * 2}, restarts=1)
    assert fit.status is lk.Status.CONVERGED
    if method == "ml":
        assert fit.objective == pytest.approx(7 * np.log(0.7) + 3 * np.log(0.3), abs=1e-10)


def test_independent_columns_have_a_symmetric_optimum_too():
    table = lk.Table.from_rows([(0, 0), (0, 1), (1, 0), (1, 1)], columns=["a", "b"], weights=[9, 9, 9, 9])
    fit = lk.fit("h[2] -> *", table, method="ml", init={"h": [0.5, 0.5], "a": [[0.5, 0.5]] * 2, "b": [[0.5, 0.5]] * 2})
    assert fit.status is not lk.Status.SADDLE
    assert fit.objective == pytest.approx(36 * np.log(0.25), abs=1e-8)


def test_two_of_three_equal_states_are_a_saddle_too():
    # The third state can never part from the second, though the data hold three classes.
    table = lk.carcinoma()
    init = {"c": [0.4, 0.3, 0.3], **{name: [[0.1, 0.9], [0.8, 0.2], [0.8, 0.2]] for name in "ABCDEFG"}}
    fit = lk.fit("c[3] -> *", table, method="ml", init=init, restarts=1)
    assert fit.objective < lk.fit("c[3] -> *", table, method="ml", seed=0).objective - 1.0
    assert [issue.kind for issue in fit.issues] == ["duplicate"]
    assert fit.status is lk.Status.SADDLE


@pytest.mark.parametrize("method", ["ml", "map", "map-probability", "vb"])
@pytest.mark.parametrize("prior", [1.0, 20.0])
def test_random_starts_never_end_at_the_saddle(method, prior):
    table = two_classes(200, 4)
    for seed in range(15):
        fit = lk.fit("h[2] -> *", table, method=method, prior=prior, restarts=1, seed=seed)
        shares = fit.network.hidden_probabilities(table)["h"]
        assert np.abs(shares[:, 0] - shares[:, 1]).min() > 0.01
        assert np.abs(shares[:, 0] - shares[:, 1]).mean() > 0.8
        assert np.abs(np.diff(fit.network.tables["a"][:, 1]))[0] > 0.3


def test_duplicate_states_are_reported_with_four_states_for_two_classes():
    table = lk.Table.from_rows([(0, 0, 0, 0), (1, 1, 1, 1)], columns=list("abcd"), weights=[60, 40])
    fit = lk.fit("h[4] -> *", table, method="ml", seed=0)
    assert fit.objective == pytest.approx(60 * np.log(0.6) + 40 * np.log(0.4), abs=1e-6)
    named = [state for issue in fit.issues for state in issue.states]
    assert any(issue.kind == "duplicate" for issue in fit.issues)
    assert len(named) == len(set(named))
    # One representative of each of the two classes stays; every other state is empty or a duplicate.
    surplus = sum(len(issue.states) - (issue.kind == "duplicate") for issue in fit.issues)
    assert surplus == 2
    assert "same profile" in str(next(issue for issue in fit.issues if issue.kind == "duplicate"))


def test_empty_states_are_reported_under_vb():
    fit = lk.fit("h[6] -> *", two_classes(400, 1), seed=0)
    empty = [issue for issue in fit.issues if issue.kind == "empty"]
    assert len(empty) == 4
    sizes = fit.posterior["h"][0] - 1.0
    assert sorted(state for issue in empty for state in issue.states) == np.flatnonzero(sizes < 0.5).tolist()
    assert "less than half a row" in str(empty[0])


def test_no_issue_when_every_state_is_used():
    assert lk.fit("h[2] -> *", two_classes(400, 1), seed=0).issues == ()
    assert lk.fit("h[2] -> *", two_classes(400, 1), method="ml", seed=0).issues == ()


def test_profiles_put_the_state_of_the_node_first():
    layout = Layout(Dag.parse("a -> y; h[2] -> y"), {"a": 3, "h": 2, "y": 2})
    theta = layout.normalise(np.arange(1.0, layout.size + 1))
    table = layout.table(theta, "y").reshape(3, 2, 2)
    assert np.array_equal(state_profiles(layout, theta, layout.index["h"])[1], table[:, 1, :].ravel())
    assert np.array_equal(state_profiles(layout, theta, layout.index["a"])[2], table[2].ravel())
    assert state_profiles(layout, theta, layout.index["y"]).shape == (2, 0)


def test_issues_of_hand_made_tables():
    layout = Layout(Dag.parse("h[4] -> y"), {"h": 4, "y": 2})
    theta = layout.join({"h": [0.25] * 4, "y": [[0.5, 0.5], [0.505, 0.495], [0.1, 0.9], [0.5, 0.5]]})
    counts = layout.join({"h": [5.0, 4.0, 3.0, 0.2], "y": np.ones((4, 2))})
    assert state_issues(layout, theta, counts, 12.2) == (
        StateIssue("h", "empty", (3,)),
        StateIssue("h", "duplicate", (0, 1)),
    )
    assert state_issues(layout, theta, counts, 0.0) == ()


def test_symmetry_means_all_states_alike():
    layout = Layout(Dag.parse("h[2] -> y z"), {"h": 2, "y": 2, "z": 2})
    alike = {"h": [0.3, 0.7], "y": [[0.2, 0.8]] * 2, "z": [[0.4, 0.6]] * 2}
    assert is_symmetric(layout, layout.join(alike))
    assert not is_symmetric(layout, layout.join({**alike, "z": [[0.4, 0.6], [0.41, 0.59]]}))


def test_a_hidden_variable_that_nothing_depends_on_is_reported():
    import lurking as lk

    table = lk.Table.from_rows([(0, 1), (1, 0), (1, 1)], columns=["a", "b"])
    (issue,) = lk.fit("c[2] a b", table, seed=0).issues
    assert (issue.node, issue.kind) == ("c", "unconnected")
    assert "check the arrows" in str(issue)
