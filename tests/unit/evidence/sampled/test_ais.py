"""The score `ais`: every path against exact values, statuses, refusals, interrupts."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, OptionError, UnknownNameError
from lurking.evidence.base import Kind
from lurking.kernels.cpu.chains import collapsed
from lurking.learn.loop import Status
from lurking.runtime.executor import StopFlag
from lurking.samplers import metropolis

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
        ({"path": "prior", "temperatures": [0.0, 1.0], "steps": 3}, "steps=3 was given beside temperatures"),
        ({"path": "prior", "temperatures": [0.0, 1.0], "curvature": 1.0}, "curvature=1.0 was given beside"),
        ({"path": "prior", "temperatures": ["a", 1.0]}, "list of numbers"),
        ({"target": True}, "target is True"),
        ({"target": np.nan}, "target is nan"),
        ({"resample": True}, "resample is True"),
        ({"resample": -0.1}, r"resample is -0\.1"),
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


OF_PATH = {
    "passes": (1000, ["variational"]),
    "particles": (8, ["variational"]),
    "resample": (0.0, ["variational"]),
    "chains": (8, ["prior", "parameters", "completions"]),
    "curvature": (0.3, ["prior", "parameters", "completions"]),
    "temperatures": ([0.0, 0.5, 1.0], ["prior", "parameters", "completions"]),
    "sweep": ("family", ["parameters"]),
    "strength": ((20.0, 1.0), ["parameters"]),
}


@pytest.mark.parametrize("path", list(QUICK))
@pytest.mark.parametrize("option", list(OF_PATH))
def test_an_option_of_another_path_is_refused(option, path):
    value, paths = OF_PATH[option]
    few = {} if option == "temperatures" else {"steps": 4}
    few |= {} if path == "variational" or option == "chains" else {"chains": 8}
    if path in paths:
        assert np.isfinite(lk.score(MODELS[0], TABLE, "ais", path=path, restarts=2, **few, **{option: value}).log_z)
        return
    with pytest.raises(OptionError, match="has no meaning with") as caught:
        lk.score(MODELS[0], TABLE, "ais", path=path, **{option: value})
    text = str(caught.value)
    assert text.startswith(f"{option}={value!r} has no meaning with path={path!r}; leave it out, or use it with ")
    assert text.endswith(" or ".join(f"path={own!r}" for own in paths))
    assert "\n" not in text


def test_an_option_that_another_score_takes_is_for_that_one():
    """`chains` means nothing to ais on its usual path, and something to chib."""
    found = lk.score(MODELS[0], TABLE, ["ais", "chib"], chains=5, steps=16, restarts=2, seed=0)
    assert found["chib"].info["chains"] == 5
    assert found["ais"].log_z == lk.score(MODELS[0], TABLE, "ais", steps=16, restarts=2, seed=0).log_z
    with pytest.raises(OptionError, match=r"chains=5 has no meaning with path='variational'"):
        lk.score(MODELS[0], TABLE, ["vb", "ais"], chains=5)
    both = lk.score(MODELS[0], TABLE, ["ais", "chib"], path="prior", chains=5, steps=16, restarts=2)
    assert (both["ais"].info["chains"], both["chib"].info["chains"]) == (5, 5)


@pytest.mark.parametrize("number", [np.int64(1), np.float32(1.0), 1])
def test_any_real_number_is_a_number(number):
    evidence = lk.score(MODELS[0], TABLE, "ais", target=number, resample=number, steps=16, restarts=2, seed=0)
    plain = lk.score(MODELS[0], TABLE, "ais", target=1.0, resample=1.0, steps=16, restarts=2, seed=0)
    assert evidence.log_z == plain.log_z


@pytest.mark.parametrize("path", ["parameters", "completions"])
def test_the_chains_finished_before_an_interrupt_are_the_estimate(path, monkeypatch):
    """The flag is set while the third chain runs, which is given up at its next temperature."""
    options = {"path": path, "steps": 50, "chains": 5, "seed": 3, "workers": 1}
    stop, begun = StopFlag(), []
    first_two = lk.score(MODELS[0], TABLE, "ais", **(options | {"chains": 2})).log_z

    def counted(original):
        def function(*arguments):
            begun.append(None)
            if len(begun) == 3:
                stop.set()
            return original(*arguments)

        return function

    if path == "parameters":
        monkeypatch.setattr(metropolis.Walk, "run", counted(metropolis.Walk.run))
    else:
        monkeypatch.setattr(collapsed, "empty_completion", counted(collapsed.empty_completion))
    evidence = lk.score(MODELS[0], TABLE, "ais", **options, stop=stop, keep_interrupted=True)
    assert evidence.status is Status.INTERRUPTED
    assert evidence.info["chains"] == 2
    assert evidence.log_z == pytest.approx(first_two, rel=1e-12)
    assert "finished chains" in evidence.status.sentence
    with pytest.raises(KeyboardInterrupt):
        lk.score(MODELS[0], TABLE, "ais", **options, stop=stop)


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
