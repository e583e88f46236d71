"""Notes on models that cannot be told apart."""

import math

import pytest

import lurking as lk
from lurking.evidence.base import Evidence, Kind
from lurking.search.alike import not_distinguished
from lurking.search.posterior import StructurePosterior

TOBY = lk.stouffer_toby()


def posterior(*values, texts=("c[1] -> *", "c[2] -> *", "c[3] -> *", "c[4] -> *"), errors=None, kind=Kind.ESTIMATE):
    dags = [lk.Dag.parse(text).bind(["a", "b", "d"]) for text in texts]
    errors = errors or [None] * len(values)
    evidences = [Evidence(v, 0.0, e, kind, "x", status=lk.Status.SAMPLED) for v, e in zip(values, errors, strict=True)]
    return StructurePosterior.from_evidence("x", list("wxyz"[: len(values)]), dags[: len(values)], evidences)


def names(made):
    return [candidate.name for candidate in not_distinguished(made)]


def test_models_within_a_bayes_factor_of_three_are_not_distinguished():
    assert names(posterior(-10.0, -10.0 - math.log(2.99), -10.0 - math.log(3.01))) == ["w", "x"]
    assert names(posterior(-12.0, -10.0, -14.0)) == ["x"]


def test_two_standard_errors_widen_the_set():
    assert names(posterior(-10.0, -12.0, errors=[0.3, 0.4])) == ["w", "x"]  # 2 − 2 · 0.5 = 1 < ln 3
    assert names(posterior(-10.0, -12.0, errors=[0.03, 0.04])) == ["w"]


def test_a_class_is_named_once():
    made = posterior(-10.0, -10.1, -10.9, texts=("h[2] -> a b d", "a -> h[2] -> b d", "h[3] -> a b d"))
    assert names(made) == ["w", "y"]
    assert [c.prior for c in made] == pytest.approx([1 / 4, 1 / 4, 1 / 2])


def note(comparison, begin):
    found = [text for text in comparison.warnings if text.startswith(begin)]
    assert len(found) <= 1
    return found[0] if found else None


def test_the_simplest_of_the_best_is_named():
    comparison = lk.compare({"three": "c[3] -> *", "two": "c[2] -> *", "one": "c[1] -> *"}, TOBY, seed=0, rescore=True)
    assert note(comparison, "the data do not distinguish") == (
        "the data do not distinguish 'two' and 'three' (Bayes factors of at most 3 by sampled evidence); "
        "the simplest is 'two' (9 parameters)"
    )
    clear = lk.compare({"two": "c[2] -> *", "one": "c[1] -> *"}, TOBY, seed=0, rescore=True)
    assert note(clear, "the data do not distinguish") is None


def test_parameters_that_are_not_identified_are_named():
    comparison = lk.compare("c[2..3] -> *", TOBY, seed=0, rescore=False)
    assert note(
        comparison, "'c[3] -> *' has 14 parameters but effective dimension 13; the parameters are not identified"
    )
    several = lk.compare("c[2..4] -> *", TOBY, seed=0, rescore=False)
    text = note(several, "more parameters than effective dimension: 'c[3] -> *' (14, 13), 'c[4] -> *' (19, 15);")
    assert "the parameters are not identified" in text
    assert "c[2]" not in text


def test_a_fit_with_unused_states_names_the_smaller_model():
    comparison = lk.compare("c[2..3] -> *", TOBY, seed=0, rescore=False)
    text = note(comparison, "the best fit does not use all hidden states: 'c[3] -> *' (c: state ")
    assert text is not None
    assert " is empty; 'c[2] -> *' fits as well)" in text
    alone = lk.compare(["c[3] -> *", "A B C D"], TOBY, seed=0, rescore=False)
    assert "fits as well" not in note(alone, "the best fit does not use all hidden states: 'c[3] -> *' (c: state ")


@pytest.mark.parametrize(
    ("twin", "why"),
    [
        ("A -> B; C; D; B -> k[2]", "hidden variables with one state or without an observed descendant add nothing"),
        ("k[1] -> A B C D; A -> B", "hidden variables with one state or without an observed descendant add nothing"),
        ("D C; A -> B", "they differ only in the names of hidden variables and in order"),
        ("B -> A; C; D", "they are Markov equivalent, so no data can tell them apart"),
    ],
)
def test_one_model_in_two_forms_counts_once(twin, why):
    models = {"x": "A -> B; C; D", "twin": twin, "z": "A B C D"}
    comparison = lk.compare(models, TOBY, seed=0, prior=lk.Prior.bdeu(1.0), structure_prior=("edges", 0.5))
    assert comparison.duplicates == (("x", "twin"),)
    assert f"'x' and 'twin' are the same model: {why}; it counts once" in comparison.warnings
    prior = {candidate.name: candidate.prior for candidate in comparison.posterior}
    assert prior == pytest.approx({"x": 1 / 6, "twin": 1 / 6, "z": 2 / 3})
    alone = lk.compare(
        {name: models[name] for name in "xz"}, TOBY, prior=lk.Prior.bdeu(1.0), structure_prior=("edges", 0.5)
    )
    assert comparison.posterior["z"].probability == pytest.approx(alone.posterior["z"].probability, rel=1e-9)
