"""What every score of the registry keeps, by name; a new score adds one line to `KINDS`."""

import functools
import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import FractionalWeights, LurkingError, OptionError, UndefinedScore, UnknownNameError
from lurking.evidence import registry  # noqa: F401 - fills the registry
from lurking.evidence.base import Evidence, Kind, register
from lurking.evidence.evaluation import get_score, score_names
from lurking.learn.loop import Status

KINDS = {
    "exact": Kind.EXACT,
    "map-likelihood": Kind.PLUG_IN,
    "bic": Kind.ASYMPTOTIC,
    "bicp": Kind.ASYMPTOTIC,
    "draper": Kind.ASYMPTOTIC,
    "adjusted-bic": Kind.ASYMPTOTIC,
    "mled": Kind.PLUG_IN,
    "cs": Kind.LOWER_BOUND,
    "laplace": Kind.ASYMPTOTIC,
    "vb": Kind.LOWER_BOUND,
    "ais": Kind.ESTIMATE,
    "chib": Kind.ESTIMATE,
    "importance": Kind.ESTIMATE,
    "thermodynamic": Kind.ESTIMATE,
    "wbic": Kind.ASYMPTOTIC,
}
SAMPLED = {"ais", "chib", "importance", "thermodynamic", "wbic"}
SEES_EVERY_MODE = {"exact", "map-likelihood", "mled", *SAMPLED}
EXACT_ON_COMPLETE_DATA = {"exact", "cs", "vb", "mled", *SAMPLED}
UNDEFINED_WITHOUT_DATA = {"bic", "bicp", "draper", "adjusted-bic"}
NARROW = {"adjusted-bic"}  # for complete rows of a hidden binary class with binary features alone

SCORES = pytest.mark.parametrize("name", score_names())
GENERAL_NAMES = [name for name in score_names() if name not in NARROW]
GENERAL = pytest.mark.parametrize("name", GENERAL_NAMES)
MODEL = "s[2] -> a b c; d"


def survey(rows=14, seed=0, empty=0.15):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 2, (rows, 4)).astype(float)
    cells[rng.random(cells.shape) < empty] = np.nan
    return lk.Table.from_array(cells, list("abcd"), levels={key: [0, 1] for key in "abcd"})


HIDDEN = survey()
COMPLETE = survey(empty=0.0)
CLASSES = lk.Table.from_rows(
    [(0, 0, 0, 0), (1, 1, 1, 1), (0, 0, 1, 0), (1, 0, 1, 1)],
    list("abcd"),
    levels={key: [0, 1] for key in "abcd"},
    weights=[20, 20, 4, 4],
)
NOTHING = lk.Table.from_rows([], list("abcd"), levels={key: [0, 1] for key in "abcd"})


def example(name):
    """Return a structure and data that the score is for."""
    return ("s[2] -> a b c d", CLASSES) if name in NARROW else (MODEL, HIDDEN)


@functools.cache
def evidence_of(name):
    """Return the score of its example, computed once for all tests."""
    return lk.score(*example(name), name, seed=0, restarts=3)


IN_A_LIST = {"seed": 1, "restarts": 2, "max_iter": 60}


@functools.cache
def all_together():
    """Return all general scores of one structure, computed once for all tests."""
    return lk.score(MODEL, HIDDEN, GENERAL_NAMES, **IN_A_LIST)


def test_the_table_of_kinds_is_the_registry():
    assert set(KINDS) == set(score_names())


@SCORES
def test_the_outcome_is_complete(name):
    evidence = evidence_of(name)
    assert isinstance(evidence, Evidence)
    assert evidence.method == name
    assert evidence.kind is KINDS[name]
    assert isinstance(evidence.log_z, float)
    assert math.isfinite(evidence.log_z)
    assert isinstance(evidence.status, Status)
    if name in SAMPLED:
        assert evidence.nominal_error > 0.0
        assert evidence.std_error == (None if evidence.status is Status.UNTRUSTED else evidence.nominal_error)
        assert evidence.status in (Status.SAMPLED, Status.BUDGET, Status.UNTRUSTED)
        exact = lk.score(MODEL, HIDDEN, "exact").log_z
        if evidence.kind is Kind.ESTIMATE and evidence.status is Status.SAMPLED:
            assert evidence.log_z == pytest.approx(exact, abs=4.0 * evidence.std_error)
    else:
        assert evidence.std_error is None
        assert evidence.status in (Status.CONVERGED, Status.CLOSED_FORM)
    assert evidence.corrected == evidence.log_z + evidence.log_aliases
    assert evidence.log_aliases == (0.0 if name in SEES_EVERY_MODE else pytest.approx(math.log(2)))
    assert all(math.isfinite(part) for part in evidence.parts.values())
    assert evidence.parts
    assert name in str(evidence)
    assert "\n" not in str(evidence)


@SCORES
def test_the_parts_add_up(name):
    evidence = evidence_of(name)
    sign = {"completed_loglik": -1.0}
    total = sum(sign.get(part, 1.0) * value for part, value in evidence.parts.items())
    assert total == pytest.approx(evidence.log_z, rel=1e-12)


@GENERAL
def test_aliases_count_relevant_hidden_nodes_whatever_pruning_says(name):
    model = "s[2] -> a b c; d; u[3]"
    for prune in (False, True):
        evidence = lk.score(model, HIDDEN, name, prune=prune, seed=0, restarts=2, max_iter=20)
        assert evidence.log_aliases == (0.0 if name in SEES_EVERY_MODE else pytest.approx(math.log(2)))


@GENERAL
def test_complete_data(name):
    exact = lk.score("a -> b; a -> c; d", COMPLETE, "exact")
    evidence = lk.score("a -> b; a -> c; d", COMPLETE, name)
    assert evidence.log_aliases == 0.0
    if name in EXACT_ON_COMPLETE_DATA:
        assert evidence.kind is Kind.EXACT
        assert evidence.log_z == pytest.approx(exact.log_z, rel=1e-13)
        assert evidence.status is Status.CLOSED_FORM
    else:
        assert evidence.kind is KINDS[name]


@SCORES
@pytest.mark.parametrize("model", [MODEL, "a -> b; c; d"], ids=["hidden", "complete"])
def test_no_data(name, model):
    if name in UNDEFINED_WITHOUT_DATA:
        with pytest.raises(UndefinedScore, match=f"{name}.*n = 0") as caught:
            lk.score(model, NOTHING, name)
        assert "\n" not in str(caught.value)
    else:
        evidence = lk.score(model, NOTHING, name)
        # The formula of the Gaussian at the mode of the prior is not 0, and its status says so.
        assert evidence.log_z == 0.0 or (name, evidence.status) == ("laplace", lk.Status.INAPPLICABLE)


FEW = {"chib": {"draws": 400}, "ais": {"passes": 20_000}, "importance": {"draws": 300}}
FEW |= {"thermodynamic": {"steps": 200, "chains": 4}, "wbic": {"chains": 4, "draws": 100, "burn_in": 50}}
HAVE_A_VALUE_UNDER_EVERY_PRIOR = {"exact", "map-likelihood", "mled", "cs", "vb", "laplace", "chib"}
WEIGHTS = np.array([3, 4, 1, 2, 1, 2.0])


def outcome(model, table, name, **options):
    """Return the evidence, or the reason why there is none."""
    try:
        return lk.score(model, table, name, **options)
    except (UndefinedScore, FractionalWeights) as refusal:
        return refusal


@SCORES
@pytest.mark.parametrize("total", [0.0, 1e-3, 1.0, 13.0])
@pytest.mark.parametrize("pseudo", [1e-300, 1e-12, 1.0, 1e12, 1e100, 1e300])
def test_extremes_have_a_possible_value_or_a_reason(name, total, pseudo):
    """A log evidence of discrete data is at most 0, and a bound is at most the exact value."""
    weights = np.eye(6)[1] if total == 1.0 else WEIGHTS * total / 13.0
    rows = [(0, 0, 0, 0), (1, 1, 1, 1), (0, 0, 1, 0), (1, 0, 1, 1), (0, 1, 0, 0), (1, 1, 0, 1)]
    table = lk.Table.from_rows(rows, list("abcd"), levels={key: [0, 1] for key in "abcd"}, weights=weights)
    for model in ("s[2] -> a b c d", "a -> b c; d"):
        for prior in (lk.Prior.symmetric(pseudo), lk.Prior.bdeu(pseudo)):
            exact = outcome(model, table, "exact", prior=prior)
            found = outcome(model, table, name, prior=prior, seed=0, restarts=2, max_iter=200, **FEW.get(name, {}))
            if isinstance(found, LurkingError):
                assert "\n" not in str(found)
                assert name not in HAVE_A_VALUE_UNDER_EVERY_PRIOR or isinstance(found, FractionalWeights)
                continue
            is_above = found.log_z > 2e-6 + 5.0 * (found.nominal_error or 0.0)
            assert not is_above or found.status is lk.Status.INAPPLICABLE
            if isinstance(exact, LurkingError):
                continue
            slack = 1e-6 * (1.0 + abs(exact.log_z))
            if found.kind is Kind.LOWER_BOUND:
                assert found.log_z <= exact.log_z + slack
            if found.kind is Kind.EXACT:
                assert found.log_z == pytest.approx(exact.log_z, abs=slack)
            if found.kind is Kind.ESTIMATE and found.is_trusted:
                assert found.log_z == pytest.approx(exact.log_z, abs=slack + 6.0 * found.std_error)


@pytest.mark.parametrize("name", ["bic", "bicp", "draper"])
@pytest.mark.parametrize("total", [1e-3, 0.999])
def test_less_than_one_row_leaves_large_sample_scores_undefined(name, total):
    """ln n is negative there, and a penalty of d/2 · ln n would be a reward for parameters."""
    table = lk.Table.from_rows([(0, 1), (1, 1)], ["a", "b"], weights=[0.5 * total, 0.5 * total])
    with pytest.raises(UndefinedScore, match=rf"{name} is undefined on less than one row \(n = {total:g}\)"):
        lk.score("s[9] -> a b", table, name)
    with pytest.raises(UndefinedScore, match="cs with its dimension term"):
        lk.score("s[9] -> a b", table, "cs", dimension="effective")


def test_a_value_above_0_is_left_out_with_its_reason():
    table = lk.Table.from_rows([(0, 1), (1, 1)], ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    formula = lk.score("s[9] -> a b", table, "draper")
    assert formula.status is lk.Status.INAPPLICABLE
    assert formula.log_z > 0.0
    assert "no log evidence of these data can have this value" in str(formula)
    with pytest.raises(UndefinedScore, match="draper is above 0 here") as caught:
        lk.compare(["s[9] -> a b", "s[8] -> a b"], table, scores=["draper"])
    assert "\n" not in str(caught.value)
    left_out = lk.compare(["s[9] -> a b", "s[8] -> a b"], table, scores=["vb", "draper"], rescore=False)
    assert left_out.scores == ("vb",)
    assert any(note.startswith("draper was left out") and "above 0" in note for note in left_out.warnings)


@SCORES
def test_an_option_that_is_not_understood_lists_the_choices(name):
    with pytest.raises(OptionError, match="'colour' is not understood") as caught:
        lk.score(*example(name), name, colour="red")
    for option in get_score(name).options:
        assert option in str(caught.value)
    assert "\n" not in str(caught.value)


@SCORES
def test_own_options_with_bad_values_are_refused(name):
    for option in get_score(name).options:
        with pytest.raises(LurkingError) as caught:
            lk.score(*example(name), name, **{option: "nonsense"})
        assert "nonsense" in str(caught.value)


@SCORES
def test_the_summary_is_one_sentence_of_documentation(name):
    summary = get_score(name).summary
    assert len(summary.split()) >= 4
    assert summary.endswith(".") or ":" in summary or ";" in summary
    assert name == name.lower()


@SCORES
def test_equal_seeds_give_equal_values_for_any_number_of_workers(name):
    again = lk.score(*example(name), name, seed=0, restarts=3, workers=4)
    assert again.log_z == evidence_of(name).log_z


@SCORES
def test_asked_in_a_list_and_alone(name):
    names = ["bic", name] if name in NARROW else GENERAL_NAMES
    together = lk.score(*example(name), names, **IN_A_LIST) if name in NARROW else all_together()
    assert together[name].log_z == lk.score(*example(name), name, **IN_A_LIST).log_z
    assert together.keys() == tuple(names)


@pytest.mark.parametrize("name", sorted(NARROW))
def test_a_score_for_some_structures_refuses_the_others_in_one_line(name):
    for model, table in ((MODEL, COMPLETE), ("a -> b; c; d", COMPLETE), ("s[2] -> *", HIDDEN), ("s[3] -> *", COMPLETE)):
        with pytest.raises(UndefinedScore, match=name) as caught:
            lk.score(model, table, name)
        assert "\n" not in str(caught.value)


def test_bounds_and_exact_are_in_order():
    scores = lk.score(MODEL, HIDDEN, ["exact", "cs", "vb"], seed=0)
    assert scores["cs"].log_z <= scores["exact"].log_z
    assert scores["vb"].log_z <= scores["exact"].log_z


def test_unknown_scores_offer_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'bicp'") as caught:
        lk.score(MODEL, HIDDEN, "bicpp")
    for name in score_names():
        assert name in str(caught.value)


def test_a_taken_name_cannot_be_registered():
    with pytest.raises(OptionError, match="'vb' is taken"):
        register("vb", get_score("vb").function)


def test_an_infinite_value_never_leaves():
    with pytest.raises(UndefinedScore):
        Evidence(-math.inf, 0.0, None, Kind.PLUG_IN, "test")
    with pytest.raises(UndefinedScore):
        Evidence(math.nan, 0.0, None, Kind.PLUG_IN, "test")
