"""Calibration: errors are against the sandwich, verdicts follow their rule, results do not depend on workers."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingError, OptionError, StructureError, UnknownNameError
from lurking.evidence.base import Evidence, Kind
from lurking.evidence.evaluation import score_names
from lurking.runtime.executor import StopFlag
from lurking.samplers.annealing.sandwich import Sandwich, SandwichOptions
from lurking.search.calibration import DEFAULT_SCORES, Calibration, Judgement, Repeat, calibrate

MODEL = "s[2] -> a b c"
QUICK = SandwichOptions(steps=64, most_steps=256, populations=4, particles=8, chains=12, spacing=10)
CHOICES = {"cardinalities": 2, "repeats": 3, "scores": ["exact", "bic", "vb"], "seed": 2, "effort": QUICK}


@pytest.fixture(scope="module")
def small():
    return calibrate(MODEL, 12, **CHOICES)


def test_the_exact_score_is_found_exact(small):
    """Three cases of twelve rows: the sandwich is within 0.3 nats of the exact evidence."""
    exact = small["exact"]
    assert exact.count == 3
    assert exact.rms_error < 0.3
    assert exact.word == "trusted"
    assert not exact.needs_aliases
    assert small.is_exact
    assert not small.interrupted
    assert [own.score for own in small.judgements] == ["exact", "bic", "vb"]


def test_errors_are_scores_minus_the_middle(small):
    frame = small.to_frame()
    assert list(frame["score"]) == ["exact", "bic", "vb"] * 3
    own = frame[frame["score"] == "vb"]
    middle = (own["lower"] + own["upper"]) / 2
    assert own["error"].to_numpy() == pytest.approx((own["log_z"] - middle).to_numpy())
    assert small["vb"].mean_error == pytest.approx(own["error"].mean())
    assert small["vb"].rms_error == pytest.approx(math.sqrt((own["error"] ** 2).mean()))
    assert small["vb"].corrected_mean_error == pytest.approx(own["error"].mean() + math.log(2.0))
    exact = frame[frame["score"] == "exact"]["log_z"].to_numpy()
    assert np.all(own["log_z"].to_numpy() <= exact)


def test_one_worker_equals_many(small):
    many = calibrate(MODEL, 12, **CHOICES, workers=3)
    assert many == small


def test_more_repeats_begin_with_the_same_cases(small):
    fewer = calibrate(MODEL, 12, **{**CHOICES, "repeats": 1})
    assert fewer.repeats == small.repeats[:1]


def case_of(log_z, log_aliases, side_error=0.0):
    evidence = Evidence(log_z, log_aliases, None, Kind.ASYMPTOTIC, "bic")
    return Repeat(Sandwich(-10.0 - side_error, 0.0, -10.0 + side_error, 0.0), {"bic": evidence}, {})


@pytest.mark.parametrize(
    ("values", "log_aliases", "side_error", "word", "needs"),
    [
        ((-10.5, -10.5), 0.0, 0.0, "trusted", False),
        ((-12.5, -12.5), 0.0, 0.0, "caution", False),
        ((-14.0, -14.0), 0.0, 0.0, "off", False),
        ((-12.5, -12.5), 2.0, 0.0, "trusted", True),
        ((-9.0, -11.0), 0.0, 0.0, "trusted", False),
        ((-11.0, -11.0), 0.0, 2.0, "unknown", False),
        ((-14.0, -14.0), 0.0, 2.0, "off", False),
    ],
)
def test_verdicts_follow_the_rule(values, log_aliases, side_error, word, needs):
    repeats = tuple(case_of(value, log_aliases, side_error) for value in values)
    found = Calibration(lk.Dag.parse(MODEL), 5, lk.Prior.symmetric(), ("bic",), repeats, True)
    judgement = found["bic"]
    assert isinstance(judgement, Judgement)
    assert judgement.word == word
    assert judgement.needs_aliases == needs
    assert judgement.sentence.startswith("bic + ln S" if needs else "bic")
    assert judgement.sentence in str(found)
    assert judgement.uncertainty == pytest.approx(side_error)


def test_data_to_resemble():
    table = lk.Table.from_rows(
        [("x", 0, 1), ("y", 1, None), ("x", 0, 0), ("z", 1, 1)] * 5,
        ["a", "b", "c"],
        levels={"a": ["x", "y", "z"], "b": (0, 1), "c": (0, 1)},
    )
    found = calibrate("s[2] -> *", like=table, repeats=1, scores="vb", effort=QUICK)
    assert found.n == 20
    assert not found.is_exact
    assert found.dag.observed == ("a", "b", "c")
    assert calibrate("s[2] -> *", 7, like=table, repeats=1, scores="vb", effort=QUICK).n == 7


def test_scores_without_a_value_are_told():
    found = calibrate(MODEL, 100, cardinalities=4, repeats=1, scores=["exact", "bic"], effort=QUICK)
    assert "exact" in found.left_out
    assert [own.score for own in found.judgements] == ["bic"]
    with pytest.raises(LurkingError, match="no value in this calibration"):
        found["exact"]
    with pytest.raises(LurkingError, match="exact: "):
        calibrate(MODEL, 100, cardinalities=4, repeats=1, scores="exact", effort=QUICK)


def test_the_default_scores_exist():
    assert set(DEFAULT_SCORES) <= set(score_names())


@pytest.mark.parametrize(
    ("model", "options", "kind", "says"),
    [
        (MODEL, {}, OptionError, "cardinalities, or like"),
        (MODEL, {"cardinalities": 0}, OptionError, "levels of a is 0"),
        (MODEL, {"cardinalities": {"a": 2, "b": 2}}, StructureError, "no number of levels is given for c"),
        (MODEL, {"cardinalities": {"a": 2, "b": 2, "c": 2, "cc": 2}}, StructureError, "did you mean 'c'"),
        (MODEL, {"cardinalities": {"a": 2, "b": 2, "c": 2, "s": 2}}, StructureError, "no observed variable"),
        ("s[2] -> *", {"cardinalities": 2}, StructureError, "has a '\\*'"),
        (MODEL, {"cardinalities": 2, "repeats": 0}, OptionError, "repeats is 0"),
        (MODEL, {"cardinalities": 2, "n": 0}, OptionError, "n is 0"),
        (MODEL, {"cardinalities": 2, "n": None}, OptionError, "n is None"),
        (MODEL, {"cardinalities": 2, "scores": ["vbb"]}, UnknownNameError, "did you mean 'vb'"),
        (MODEL, {"cardinalities": 2, "scores": []}, OptionError, "no score"),
        (MODEL, {"cardinalities": 2, "empty": 1.5}, OptionError, "share of the cells"),
        (MODEL, {"cardinalities": 2, "like": {"a": [0, 1], "b": [0, 1], "c": [0, 1]}}, OptionError, "beside like"),
    ],
)
def test_refusals(model, options, kind, says):
    with pytest.raises(kind, match=says):
        calibrate(model, **{"n": 10, "repeats": 1, "scores": ["vb"], "effort": QUICK, **options})


def test_the_star_is_the_variables_with_levels():
    found = calibrate("s[2] -> *", 10, cardinalities={"u": 2, "v": 3}, repeats=1, scores="vb", effort=QUICK)
    assert str(found.dag) == "s[2] -> u v"


def test_an_interrupt_leaves_nothing_unfinished():
    stop = StopFlag()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        calibrate(MODEL, 12, **CHOICES, stop=stop, keep_interrupted=True)


def test_an_interrupt_keeps_what_is_finished():
    stop = StopFlag()

    class Impatient:
        def begin(self, _what, total):
            assert total == 3

        def update(self, _done):
            stop.set()

        def end(self):
            pass

    found = calibrate(MODEL, 12, **CHOICES, workers=1, stop=stop, progress=Impatient(), keep_interrupted=True)
    assert found.interrupted
    assert len(found.repeats) == 1
