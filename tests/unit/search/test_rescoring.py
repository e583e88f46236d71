"""Contenders scored again by sampling where bounds and exact values meet."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError

TWO, NONE = "h[2] -> a b c d", "a; b; c; d"
MODELS = {"two": TWO, "chain": "a -> b -> c -> d", "none": NONE, "full": "a -> b; a b -> c; a b c -> d"}
QUICK = {"seed": 0, "restarts": 3, "target": 0.15}


def make_table(n):
    generator = np.random.default_rng(3)
    hidden = generator.random(n) < 0.5
    cells = (generator.random((n, 4)) < np.where(hidden[:, None], 0.85, 0.15)).astype(int)
    return lk.Table.from_array(cells, columns=list("abcd"))


TABLE = make_table(30)


@pytest.fixture(scope="module")
def comparison():
    return lk.compare(MODELS, TABLE, **QUICK)


def test_contenders_have_sampled_evidence_within_its_error_of_the_exact_one(comparison):
    assert set(comparison.sampled) == set(MODELS)
    for name, text in MODELS.items():
        exact = lk.score(text, TABLE, "exact").log_z
        found = comparison["sampled"][name].evidence
        if name == "two":
            assert found.kind is lk.Kind.ESTIMATE
            assert found == lk.score(text, TABLE, "ais", **QUICK)
            assert abs(found.log_z - exact) < 4.0 * found.std_error
        else:
            assert found.kind is lk.Kind.EXACT
            assert found.log_z == pytest.approx(exact, abs=1e-9)


def test_the_ranking_is_that_of_the_exact_evidence_where_the_bound_has_another(comparison):
    exact = [c.name for c in lk.compare(MODELS, TABLE, scores=["exact"])["exact"].ranked()]
    assert [c.name for c in comparison.posterior.ranked()] == exact
    assert [c.name for c in comparison["vb"].ranked()] != exact
    assert comparison.posterior.score == "sampled"
    assert str(comparison).splitlines()[1].split()[0] == exact[0]


def test_copies_of_one_structure_are_sampled_once():
    models = {"two": TWO, "again": "d c b a <- g[2]", "none": NONE}
    sampled = lk.compare(models, TABLE, **QUICK).sampled
    assert sampled["two"] == sampled["again"]
    assert sampled["two"].std_error > 0.0


def test_columns_and_notes(comparison):
    frame = comparison.to_frame()
    assert list(frame["contends"]) == [True] * 4
    assert (frame["probability_low"] < frame["sampled_probability"]).all()
    assert (frame["probability_high"] > frame["sampled_probability"]).all()
    assert str(comparison).splitlines()[0].split() == ["model", "d", "p(model)", "sampled", "vb"]
    assert any("ranked by sampled evidence" in note for note in comparison.warnings)
    assert any("differ in kind" in note for note in comparison.warnings)


def test_others_keep_the_cheap_score_and_do_not_contend(comparison):
    near = lk.compare(MODELS, TABLE, within=1.5, **QUICK)
    best = max(c.evidence.log_z for c in comparison["vb"])
    expected = {c.name for c in comparison["vb"] if c.evidence.log_z > best - 1.5}
    assert set(near.sampled) == expected
    assert 1 < len(expected) < 4
    for candidate in near["sampled"]:
        assert candidate.is_contending == (candidate.name in expected)
        if not candidate.is_contending:
            assert candidate.evidence == comparison["vb"][candidate.name].evidence
    ranked = [c.is_contending for c in near["sampled"].ranked()]
    assert ranked == sorted(ranked, reverse=True)
    assert any(f"{4 - len(expected)} more keep vb" in note for note in near.warnings)


def test_nothing_is_sampled_without_need():
    assert not lk.compare(MODELS, TABLE, rescore=False, seed=0, restarts=1).sampled
    assert not lk.compare(MODELS, TABLE, scores=["exact"]).sampled
    bounds = [TWO, "h[3] -> a b c d"]
    assert not lk.compare(bounds, TABLE, seed=0, restarts=1).sampled
    with_far = {"far": NONE, "near": TWO}
    large = make_table(400)
    comparison = lk.compare(with_far, large, seed=0, restarts=1)
    assert comparison["vb"]["near"].evidence.log_z - comparison["vb"]["far"].evidence.log_z > 30.0
    assert not comparison.sampled


def test_asked_for_it_is_done_for_bounds_too():
    bounds = {"x": TWO, "y": "h[3] -> a b c d"}
    comparison = lk.compare(bounds, TABLE, rescore=True, **QUICK)
    assert set(comparison.sampled) == {"x", "y"}
    beside = lk.compare(bounds, TABLE, scores=["vb", "ais"], rescore=True, **QUICK)
    assert {row.name: row.evidences["ais"] for row in beside.rows} == dict(beside.sampled) == dict(comparison.sampled)


def test_the_prior_over_structures_takes_part_in_who_contends():
    comparison = lk.compare(MODELS, TABLE, structure_prior=lambda dag: -50.0 * len(dag.hidden), **QUICK)
    assert not comparison.sampled
    assert comparison["vb"]["two"].prior == pytest.approx(math.exp(-50.0) / 3, rel=1e-6)


def test_what_cannot_be_sampled_is_told():
    fractions = lk.Table.from_rows(
        [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 0, 0)], columns=list("abcd"), weights=[2.5, 3.5, 1.0]
    )
    comparison = lk.compare(MODELS, fractions, seed=0, restarts=2)
    assert not comparison.sampled
    (note,) = [note for note in comparison.warnings if "were not scored again" in note]
    assert "whole-number weights" in note


def test_many_contenders_are_sampled_only_when_asked_for(monkeypatch):
    monkeypatch.setattr("lurking.search.rescoring.MOST_UNASKED", 3)
    comparison = lk.compare(MODELS, TABLE, **QUICK)
    assert not comparison.sampled
    assert any("there are 4 of them; rescore=True" in note for note in comparison.warnings)
    assert len(lk.compare(MODELS, TABLE, rescore=True, **QUICK).sampled) == 4


def test_results_do_not_depend_on_workers(comparison):
    again = lk.compare(MODELS, TABLE, workers=2, **QUICK)
    assert dict(again.sampled) == dict(comparison.sampled)
    assert again.to_frame().equals(comparison.to_frame())


class Impatient:
    """Progress that interrupts when sampling begins."""

    def begin(self, what, _total):
        self.is_sampling = what == "sampled evidence"

    def update(self, _done):
        if self.is_sampling:
            raise KeyboardInterrupt

    def end(self):
        pass


def test_an_interrupt_while_sampling_keeps_the_cheap_scores():
    models = {**MODELS, "three": "h[3] -> a b c d"}
    comparison = lk.compare(models, TABLE, workers=1, progress=Impatient(), keep_interrupted=True, **QUICK)
    assert comparison.interrupted
    assert not comparison.sampled
    assert [row.name for row in comparison.rows] == list(models)
    with pytest.raises(KeyboardInterrupt):
        lk.compare(models, TABLE, workers=1, progress=Impatient(), **QUICK)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rescore": "always"}, "rescore is 'always'"),
        ({"rescore": 0}, "rescore is 0"),
        ({"rescore": 1}, "rescore is 1"),
        ({"within": -1.0}, "within is -1"),
        ({"within": math.inf}, "within is inf"),
        ({"rescore": False, "target": 0.15}, "option 'target' is not understood by vb"),
        ({"targt": 0.1}, "option 'targt' is not understood by vb"),
    ],
)
def test_bad_options_are_refused(options, error):
    with pytest.raises(OptionError, match=error):
        lk.compare(MODELS, TABLE, **options)
