"""The score `ais`: every path against exact values, statuses, refusals, interrupts."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, OptionError, UnknownNameError
from lurking.evidence.base import Kind
from lurking.learn.loop import Status

ROWS = [(0, 1, 0, 1), (1, 1, 1, 0), (0, 1, 0, 1), (1, 0, None, 0), (0, 0, 1, 1), (None, 1, 0, 0), (1, 1, 1, 0)]
TABLE = lk.Table.from_rows(ROWS, list("abcd"), levels=dict.fromkeys("abcd", (0, 1)))
MODELS = ["s[2] -> a b c d", "s[2] -> a b c; t[2] -> b c d", "a -> s[3] -> b; s -> c d"]
QUICK = {"variational": {"steps": 32}, "prior": {"steps": 200, "chains": 200}}
QUICK |= {"parameters": {"steps": 300, "chains": 400, "sweep": "family"}, "completions": {"steps": 60, "chains": 200}}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("path", list(QUICK))
def test_within_four_standard_errors_of_exact(model, path):
    exact = lk.score(model, TABLE, "exact").log_z
    evidence = lk.score(model, TABLE, "ais", path=path, seed=2, restarts=4, **QUICK[path])
    assert evidence.log_z == pytest.approx(exact, abs=4.0 * evidence.std_error)
    assert evidence.std_error <= 0.2
    assert evidence.kind is Kind.ESTIMATE
    assert evidence.status is Status.SAMPLED
    assert evidence.info["path"] == path
    if path != "variational":
        assert evidence.info["mean_log_weight"] <= exact + 0.2


def test_it_settles_hidden_against_observed():
    """Data from two independent halves: the bound of a hidden cause loses more than the truth does."""
    hidden, plain = "s[2] -> a b c d", "a b c d"
    vb = lk.score(hidden, TABLE, "vb", seed=0)
    ais = lk.score(hidden, TABLE, "ais", seed=0)
    assert ais.log_z - 4.0 * ais.std_error > vb.log_z
    assert lk.score(plain, TABLE, "ais").kind is Kind.EXACT


def test_chains_that_disagree_are_not_trusted():
    generator = np.random.default_rng(0)
    cells = (generator.random((300, 5)) < np.where(generator.random((300, 1)) < 0.5, 0.9, 0.2)).astype(int)
    table = lk.Table.from_array(cells, columns=list("abcde"))
    evidence = lk.score("s[3] -> *", table, "ais", path="prior", steps=4, chains=20, seed=0)
    assert evidence.status is Status.UNTRUSTED


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "b"}, "choose from: variational, prior, parameters, completions"),
        ({"path": "prior", "steps": 0}, "steps is 0"),
        ({"path": "prior", "chains": 0}, "chains is 0"),
        ({"path": "prior", "curvature": 0.0}, "curvature is 0.0"),
        ({"path": "prior", "temperatures": [0.0, 0.5]}, "begins with 0 and ends with 1"),
        ({"path": "prior", "temperatures": [0.0, 0.7, 0.5, 1.0]}, "must not turn back"),
        ({"temperatures": [0.0, 1.0]}, "spaces its own"),
        ({"target": 0.0}, "target is 0.0"),
        ({"passes": 0}, "passes is 0"),
        ({"particles": 1}, "particles is 1"),
        ({"resample": 2.0}, "resample is 2.0"),
    ],
)
def test_refusals(options, words):
    with pytest.raises((OptionError, UnknownNameError), match=words) as caught:
        lk.score(MODELS[0], TABLE, "ais", **options)
    assert "\n" not in str(caught.value)


def test_fractional_weights_are_refused_and_the_parameter_path_takes_them():
    table = lk.Table.from_rows(ROWS, list("abcd"), levels=dict.fromkeys("abcd", (0, 1)), weights=np.full(7, 1.5))
    for path in ("variational", "prior", "completions"):
        with pytest.raises(DataError, match=r"whole-number weights.*path='parameters'"):
            lk.score(MODELS[0], table, "ais", path=path)
    evidence = lk.score(MODELS[0], table, "ais", path="parameters", sweep="family", steps=200, chains=50)
    assert np.isfinite(evidence.log_z)


def test_too_little_budget_returns_what_it_has():
    evidence = lk.score(MODELS[1], TABLE, "ais", target=1e-6, passes=5000, steps=8, seed=0)
    assert evidence.status in (Status.BUDGET, Status.UNTRUSTED)
    assert np.isfinite(evidence.log_z)


def test_comparison_with_sampled_values():
    comparison = lk.compare({"hidden": MODELS[0], "plain": "a b c d"}, TABLE, scores=["ais"], seed=0)
    assert {c.evidence.kind for c in comparison["ais"]} == {Kind.ESTIMATE, Kind.EXACT}
