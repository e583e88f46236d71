"""Arguments of the wrong type or out of range: one line that says what, which value and which rule."""

import math

import pytest

import lurking as lk
from lurking.errors import LurkingError
from lurking.search.cardinality import choose_states
from lurking.search.constraints import Constraints
from lurking.search.judge import Judge

TABLE = lk.stouffer_toby()
CHAIN = {"chains": 1, "draws": 20, "burn_in": 5, "workers": 1}
MODELS = ["c[2] -> *", "c[3] -> *"]


def refused(call, *arguments, **options) -> str:
    with pytest.raises(LurkingError) as caught:
        call(*arguments, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("target", [math.nan, math.inf, 0, -1.0, "0.3", None, True])
@pytest.mark.parametrize("hidden", [0, 1])
def test_a_target_is_a_standard_error_above_zero(target, hidden):
    words = f"target is {target!r}; it must be a standard error above 0"
    assert words in refused(lk.search, TABLE, hidden=hidden, target=target)
    assert words in refused(Judge, TABLE, 1.0, target=target)


@pytest.mark.parametrize("structure", [5, None, ["A -> B"], {"A": "B"}])
def test_a_structure_is_a_dag_or_its_text(structure):
    rule = "it must be a Dag or its text"
    assert rule in refused(lk.sample_structures, TABLE, structure)
    assert rule in refused(lk.direct_search, TABLE, structure, "bic")
    assert rule in refused(lk.compare, {"a": structure}, TABLE)
    assert rule in refused(lk.calibrate, structure, n=5, cardinalities=2)
    if structure is not None:
        assert rule in refused(lk.search, TABLE, start=structure)
        assert rule in refused(lk.search, TABLE, hidden=1, start=structure)


def test_starts_of_structural_em():
    for start in (5, None, [5], [None]):
        assert "start is" in refused(lk.structural_em, TABLE, start)
        assert "a Dag or its text" in refused(lk.structural_em, TABLE, start)


@pytest.mark.parametrize("tiers", [5, None, "AB", ["A"], [5], {"A": 1}])
def test_tiers_are_lists_of_names(tiers):
    rule = "it must be a list of lists of names"
    assert rule in refused(lk.search, TABLE, tiers=tiers)
    assert rule in refused(lk.edge_posterior, TABLE, tiers=tiers)
    assert rule in refused(lk.sample_structures, TABLE, "c[2] -> *", tiers=tiers)


def test_what_is_no_name_in_a_tier():
    for name in (["A"], 1, None):
        assert f"tier 1 names {name!r}, which is no variable" in refused(lk.search, TABLE, tiers=[[name]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lk.compare(MODELS, TABLE, hidden="c"), "hidden is 'c'; it must map names"),
        (lambda: lk.compare(MODELS, TABLE, hidden=["c"]), "hidden is ['c']; it must map names"),
        (lambda: lk.compare(MODELS, TABLE, scores=5), "scores is 5; it must be a name or a list of names"),
        (lambda: lk.compare(MODELS, TABLE, scores=None), "scores is None"),
        (lambda: lk.compare(5, TABLE), "the models are 5"),
        (lambda: lk.compare({1: "c[2] -> *"}, TABLE), "the model name 1 is not text"),
        (lambda: lk.sample_structures(TABLE, "c[2] -> *", states=5), "states is 5; it must map"),
        (lambda: lk.sample_structures(TABLE, "c[2] -> *", states=["c"]), "states is ['c']"),
        (lambda: lk.search(TABLE, method=["tabu"]), "unknown search method ['tabu']"),
        (lambda: lk.direct_search(TABLE, "c[2] -> *", ["bic"]), "unknown score ['bic']"),
        (lambda: lk.sparse_mixture(TABLE, 2, name=["c"]), "name is ['c']; it must be the text"),
        (lambda: lk.sparse_mixture(TABLE, 1), "states is 1"),
        (lambda: lk.structural_em(TABLE, "c[2] -> *", constraints="A -> B"), "constraints is 'A -> B'"),
        (lambda: lk.direct_search(TABLE, "c[2] -> *", constraints=5), "Constraints.from_options"),
        (lambda: lk.start_structure(5, {"c": 2}), "int is not a table"),
        (lambda: lk.start_structure(TABLE, ["c"]), "hidden is ['c']"),
        (lambda: Constraints.from_options(5), "variables= is 5; it must be a list of names"),
        (lambda: Constraints.from_options(["A", "A"]), "variable 'A' is listed twice"),
        (lambda: lk.search(TABLE, hidden=1, store=5), "store is 5; it must be the path of a file"),
        (lambda: lk.search(TABLE, max_parents=0), "max_parents is 0; it must be a whole number of at least 1"),
        (lambda: lk.search(TABLE, hiden=1), "unknown option of search 'hiden' (did you mean 'hidden'?)"),
    ],
)
def test_arguments_of_the_wrong_type(call, words):
    assert words in refused(call)


@pytest.mark.parametrize("value", ["x", None, math.nan, math.inf])
def test_a_structure_prior_returns_a_number(value):
    assert f"the structure prior is {value!r}" in refused(
        lk.sample_structures, TABLE, "c[2] -> *", log_prior=lambda _dag: value, **CHAIN
    )


def test_functions_of_a_structure():
    assert "log_prior is 5" in refused(lk.sample_structures, TABLE, "c[2] -> *", log_prior=5, **CHAIN)
    found = lk.sample_structures(TABLE.select(["A", "B"]), "A; B", chains=2, draws=200, burn_in=20, seed=0, workers=1)
    assert "was given 5" in refused(found.expectation, 5)
    assert "returned 'x' for" in refused(found.expectation, lambda _dag: "x")
    assert found.expectation(lambda _dag: True).mean == 1.0


@pytest.mark.parametrize("draws", [0, "x", 1.5])
def test_draws_of_probability_ranges(draws):
    posterior = lk.compare(MODELS, TABLE, seed=0, workers=1).posterior
    assert f"draws is {draws!r}" in refused(posterior.probability_ranges, draws=draws)
    assert posterior.probability_ranges().tolist() == posterior.probability_ranges(seed=0).tolist()


def test_a_judge_takes_what_every_call_takes():
    judge = Judge(TABLE, 1.0, seed=0, target=1.0)
    assert judge.prior == lk.Prior.symmetric(1.0)
    assert choose_states(judge, "class[2] -> *", "class", most=2).best == lk.Dag.parse("class[2] -> A B C D")
    assert "is no hidden variable" in refused(choose_states, judge, "class[2] -> *", ["class"])


def test_a_store_by_its_path(tmp_path):
    first = lk.search(TABLE, hidden=1, target=1.0, workers=1, store=tmp_path / "kept.sqlite")
    assert (tmp_path / "kept.sqlite").stat().st_size > 0
    again = lk.search(TABLE, hidden=1, target=1.0, workers=1, store=str(tmp_path / "kept.sqlite"))
    assert again.score == first.score
    (tmp_path / "kept.sqlite").unlink()  # closed, with nothing of it left open
    assert not list(tmp_path.glob("kept.sqlite-*"))


def test_options_of_the_sampler_are_refused_before_anything_is_scored(monkeypatch):
    monkeypatch.setattr("lurking.search.scoring.Scoring.rows", lambda *_: pytest.fail("something was scored"))
    for target in (0, math.nan, "x"):
        assert f"target is {target!r}" in refused(lk.compare, MODELS, TABLE, rescore=True, target=target)
    assert "unknown path 'x'" in refused(lk.compare, MODELS, TABLE, path="x")


def test_every_model_is_checked_against_the_table():
    text = refused(lk.compare, ["c[2] -> A B C D", "c[2] -> A B C DD"], TABLE)
    assert "'DD' in the model is not a column of the data (did you mean 'D'?)" in text


def test_a_score_asked_for_twice_is_one_column():
    found = lk.compare(MODELS, TABLE, scores=["bic", "bic", "vb"], rescore=False, seed=0, workers=1)
    assert found.scores == ("bic", "vb")


def test_fractions_of_rows_are_refused_before_the_search():
    rows = [(0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1), (0, 0, 0)]
    halves = lk.Table.from_rows(rows * 4, columns=list("abc"), weights=[0.5] * 24)
    assert lk.search(halves, hidden=1, target=1.0).evidence is not None  # two halves of equal rows are a row
    table = lk.Table.from_rows(rows * 4, columns=list("abc"), weights=[0.3] * 24)
    text = refused(lk.search, table, hidden=1)
    assert "hidden=0" in text
    assert "lk.compare" in text
    assert lk.search(table, hidden=0).best.nodes == ("a", "b", "c")
