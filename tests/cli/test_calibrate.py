"""`lurking calibrate`: tables for people, one JSON document, one line for what cannot be done."""

import pytest

from lurking.cli import app as entry
from lurking.cli.calibrate import calibrate
from lurking.search.calibration import calibrate as calibrate_scores

MODEL = ("--model", "s[2] -> a b c")
QUICK = (*MODEL, "-n", "12", "--levels", "2", "--repeats", "2", "--scores", "exact,vb")


@pytest.fixture(autouse=True)
def verb():
    """Make the command known where the application does not list it yet."""
    if "calibrate" not in {command.name for command in entry.app.registered_commands}:
        entry.app.command("calibrate")(calibrate)


def test_the_tables(done):
    outcome = done("calibrate", *QUICK)
    assert outcome.err == ""
    assert "s[2] -> a b c   (n = 12, 2 data sets from prior draws)" in outcome.out
    _, lower, _, upper, _, middle, exact, vb = map(float, outcome.row("1"))
    assert middle == pytest.approx((lower + upper) / 2, abs=0.011)
    assert vb < exact
    assert outcome.row("rule:")[-1] == "off"
    assert "exact is within" in outcome.out
    assert "it can be trusted at this n" in outcome.out
    assert "approximate" not in outcome.out


def test_the_document_says_what_the_library_says(done):
    document = done("calibrate", *QUICK, "--json", "--seed", "3").json
    found = calibrate_scores("s[2] -> a b c", 12, cardinalities=2, repeats=2, scores=["exact", "vb"], seed=3)
    assert document["command"] == "calibrate"
    assert document["upper_is_exact"] is True
    assert [own["score"] for own in document["scores"]] == ["exact", "vb"]
    for own in document["scores"]:
        assert own["rms_error"] == pytest.approx(found[own["score"]].rms_error, rel=1e-12)
        assert own["sentence"] == found[own["score"]].sentence
    for mine, theirs in zip(document["repeats"], found.repeats, strict=True):
        assert (mine["lower"], mine["upper"]) == (theirs.sandwich.lower, theirs.sandwich.upper)
        assert [own["score"] for own in mine["scores"]] == ["exact", "vb"]


def test_data_to_resemble(done):
    outcome = done(
        "calibrate", "--model", "class[2] -> *", "--like-data", "survey.csv", "--repeats", "1", "--scores", "vb"
    )
    assert "n = 80, 1 data sets from posterior draws of the data" in outcome.out
    assert "the upper side is approximate" in outcome.out


def test_levels_of_each_variable(done):
    words = ("--model", "s[2] -> a b", "-n", "9", "--levels", "a:2,b:3", "--repeats", "1", "--scores", "bic", "--json")
    assert done("calibrate", *words).json["model"]["structure"] == "s[2] -> a b"


def test_scores_without_a_value_are_warned_of(done):
    outcome = done("calibrate", *MODEL, "-n", "100", "--levels", "4", "--repeats", "1", "--scores", "exact,bic")
    assert outcome.err.startswith("lurking: warning: exact was left out: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*MODEL, "-n", "12"), "--levels 5"),
        ((*MODEL, "--levels", "2"), "give -n"),
        ((*MODEL, "-n", "12", "--levels", "two"), "'two' is not a whole number"),
        ((*MODEL, "-n", "12", "--levels", "2", "--levels", "a:3"), "stands beside others"),
        ((*MODEL, "-n", "12", "--levels", "a:2,a:3"), "say it once"),
        ((*MODEL, "-n", "12", "--levels", "a:2"), "no number of levels is given for b, c"),
        ((*MODEL, "-n", "12", "--levels", "2", "--like-data", "survey.csv"), "--levels was given beside"),
        ((*MODEL, "-n", "12", "--levels", "2", "--weights", "w"), "--weights names a column of --like-data"),
        ((*MODEL, "-n", "12", "--levels", "2", "--empty", "1"), "share of the cells"),
        ((*MODEL, "-n", "0", "--levels", "2"), "n is 0"),
        ((*MODEL, "-n", "many", "--levels", "2"), "'many' is not a whole number"),
        ((*MODEL, "-n", "12", "--levels", "2", "--scores", "vbb"), "did you mean 'vb'"),
        ((*MODEL, "-n", "12", "--levels", "2", "--prior", "0"), "positive"),
        ((*MODEL, "--like-data", "nowhere.csv"), "'nowhere.csv' does not exist"),
        (("--model", "s[2] -> q", "--like-data", "survey.csv"), "'q' in the model is not a column"),
        (("--model", "s[2] -> *", "-n", "12", "--levels", "2"), "has a '*'"),
    ],
)
def test_refusals(refused, words, says):
    refused("calibrate", *words, says=says)
