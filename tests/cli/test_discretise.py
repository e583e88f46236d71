"""The option --discretise, and raw numbers for a model that was fitted on classes."""

import numpy as np
import pandas as pd
import pytest

import lurking as lk

LEARN = ("fit", "score", "compare")
MODEL = "class[2] -> *"
QUICK = ("--restarts", "2")


def clinic_frame():
    """Return 120 patients of two kinds: whole ages, body-mass indices with empty cells, doses, a diagnosis."""
    rng = np.random.default_rng(12)
    ill = rng.random(120) < 0.4
    frame = pd.DataFrame(
        {
            "age": np.where(ill, rng.normal(62, 8, 120), rng.normal(45, 9, 120)).round().astype(int),
            "bmi": np.where(ill, rng.normal(29, 3, 120), rng.normal(24, 3, 120)).round(1),
            "dose": np.where(ill, rng.gamma(9.0, 1.0, 120), rng.gamma(2.0, 1.0, 120)).round(2),
            "ill": np.where(ill, "yes", "no"),
        }
    )
    frame.loc[::17, "bmi"] = None
    return frame


@pytest.fixture
def clinic(folder):
    """Return the table of clinic.csv, which is written into the folder."""
    clinic_frame().to_csv(folder / "clinic.csv", index=False)
    return lk.read(folder / "clinic.csv")


def digest_of(outcome):
    return outcome.json["data"]["digest"]


def rules(*texts):
    return [word for text in texts for word in ("--discretise", text)]


@pytest.mark.parametrize("verb", LEARN)
def test_every_verb_cuts_as_the_library_does(done, clinic, verb):
    texts = ("age:4", "bmi:18.5,25,30", "dose:evidence:ill")
    outcome = done(verb, "clinic.csv", "--model", MODEL, *rules(*texts), *QUICK, "--json")
    table = lk.discretise(clinic, {"age": 4, "bmi": [18.5, 25, 30], "dose": "evidence"}, target="ill")
    assert digest_of(outcome) == table.digest
    assert outcome.json["data"]["n"] == 120.0
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("text", "columns", "options"),
    [
        ("dose:3", {"dose": 3}, {}),
        (" dose : 3 ", {"dose": 3}, {}),
        ("dose:quantile:3", {"dose": 3}, {}),
        ("dose:quantile", {"dose": 4}, {}),
        ("dose:width:5", {"dose": 5}, {"method": "width"}),
        ("dose:width", {"dose": 4}, {"method": "width"}),
        ("dose:2.5", {"dose": [2.5]}, {}),
        ("dose:2,", {"dose": [2]}, {}),
        ("dose:2.0, 4", {"dose": [2, 4]}, {}),
        ("dose:evidence", {"dose": "evidence"}, {}),
        ("dose:evidence:ill", {"dose": "evidence"}, {"target": "ill"}),
    ],
)
def test_rules(done, clinic, text, columns, options):
    words = ("--columns", "dose,ill", *rules(text), *QUICK, "--scores", "bic", "--json")
    outcome = done("score", "clinic.csv", "--model", MODEL, *words)
    assert digest_of(outcome) == lk.discretise(clinic, columns, **options).select(["dose", "ill"]).digest


def test_a_column_name_with_a_colon(done, folder):
    (folder / "odd.csv").write_text("a:b,y\n" + "".join(f"{k}.5,{k % 2}\n" for k in range(12)))
    outcome = done("score", "odd.csv", "--model", MODEL, *rules("a:b:3"), *QUICK, "--json")
    assert digest_of(outcome) == lk.discretise(lk.read("odd.csv"), {"a:b": 3}).digest


def test_the_star_takes_the_continuous_columns_that_are_left(done, clinic):
    """Also when it stands first; whole ages are categories, and only a rule of their own cuts them."""
    words = ("--model", MODEL, *rules("*:3", "bmi:25,30"), *QUICK, "--scores", "bic", "--json")
    table = lk.discretise(clinic, {"bmi": [25, 30], "dose": 3})
    assert digest_of(done("score", "clinic.csv", *words)) == table.digest
    outcome = done("score", "clinic.csv", *words, "--columns", "bmi,dose")
    assert digest_of(outcome) == table.select(["bmi", "dose"]).digest
    outcome = done("score", "clinic.csv", "--continuous", "age", *words)
    assert digest_of(outcome) == lk.discretise(table, {"age": 3}).digest


def test_the_star_on_nothing_tells(done):
    outcome = done("score", "survey.csv", "--model", MODEL, *rules("*:3"), *QUICK)
    assert outcome.err == "lurking: warning: --discretise: no column is continuous, so nothing was cut\n"


@pytest.mark.parametrize("column", ["dose", "*"])
def test_the_target_may_be_left_out_of_the_model(done, clinic, column):
    words = ("--columns", "age,dose", *rules(f"{column}:evidence:ill"), *QUICK, "--json")
    outcome = done("fit", "clinic.csv", "--model", MODEL, *words)
    table = lk.discretise(clinic, {"dose": "evidence"}, target="ill")
    assert digest_of(outcome) == table.select(["age", "dose"]).digest


def test_weights_count(done, folder):
    (folder / "few.csv").write_text("x,y,n\n1.5,a,6\n2.5,b,1\n3.5,a,1\n4.5,b,2\n")
    outcome = done("fit", "few.csv", "--weights", "n", "--model", MODEL, *rules("x:2"), *QUICK, "--out", "m.json")
    assert "n = 10)" in outcome.out
    assert lk.Network.load("m.json").levels["x"] == ("< 2", ">= 2")


def test_the_report_shows_the_intervals_in_order(done, clinic):
    out = done("fit", "clinic.csv", "--model", MODEL, *rules("bmi:18.5,25,30", "*:2"), *QUICK).out
    lines = [" ".join(line.split()[:-2]) for line in out.splitlines()]
    begin = lines.index("bmi < 18.5")
    assert lines[begin : begin + 4] == ["bmi < 18.5", "[18.5, 25)", "[25, 30)", ">= 30"]


def test_fewer_classes_are_told_on_stderr(done, folder):
    (folder / "ties.csv").write_text("x,y\n" + "0.5,1\n" * 8 + "1.5,0\n2.5,0\n")
    outcome = done("score", "ties.csv", "--model", MODEL, *rules("x:4"), *QUICK)
    (line,) = outcome.err.splitlines()
    assert line.startswith("lurking: warning: column 'x' became 2 classes instead of 4")


# Raw numbers for a fitted model.


@pytest.fixture
def fitted(done, clinic):
    """Return the cut table; model.json is the model fitted on it."""
    texts = ("age:4", "bmi:18.5,25,30", "dose:evidence")
    done("fit", "clinic.csv", "--model", MODEL, *rules(*texts), *QUICK, "--out", "clinic.json")
    return lk.discretise(clinic, {"age": 4, "bmi": [18.5, 25, 30], "dose": "evidence"})


@pytest.mark.parametrize("more", [(), ("--target", "ill"), ("--target", "dose"), ("--impute",)])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict_on_raw_numbers_is_predict_on_classes(done, folder, fitted, more, ending):
    fitted.to_frame().to_csv(folder / "classes.csv", index=False)
    raw = clinic_frame()
    raw.to_csv(folder / "raw.csv", index=False) if ending == "csv" else raw.to_parquet(folder / "raw.parquet")
    on_raw = done("predict", "clinic.json", f"raw.{ending}", *more, "--json")
    on_classes = done("predict", "clinic.json", "classes.csv", *more, "--json")
    assert on_raw.err == on_classes.err == ""
    assert on_raw.json["columns"] == on_classes.json["columns"]


def test_predict_says_what_the_library_says(done, fitted):
    network = lk.Network.load("clinic.json")
    columns = done("predict", "clinic.json", "clinic.csv", "--keep", "bmi", "--json").json["columns"]
    assert columns["ln_p_row"] == network.loglik(fitted).tolist()
    assert columns["p(class=1)"] == network.predict(fitted, "class").probabilities[:, 1].tolist()
    assert columns["bmi"][1:4] == clinic_frame()["bmi"][1:4].tolist()  # carried along as it was


def test_predict_on_one_new_row(done, folder, fitted):
    (folder / "new.csv").write_text("age,bmi,dose\n70,24,1e2\n")
    columns = done("predict", "clinic.json", "new.csv", "--target", "ill", "--json").json["columns"]
    network = lk.Network.load("clinic.json")
    levels = {name: network.levels[name] for name in ("age", "bmi", "dose")}
    row = {"age": [levels["age"][-1]], "bmi": ["[18.5, 25)"], "dose": [levels["dose"][-1]]}
    assert columns["p(ill=yes)"] == network.predict(row, "ill").probabilities[:, 1].tolist()


def test_predict_on_an_empty_column_is_predict_without_it(done, folder, fitted):
    raw = clinic_frame()
    raw.assign(bmi=None).to_csv(folder / "empty.csv", index=False)
    raw.drop(columns="bmi").to_csv(folder / "absent.csv", index=False)
    empty, absent = (done("predict", "clinic.json", name, "--json") for name in ("empty.csv", "absent.csv"))
    assert empty.err == ""
    assert empty.json["columns"] == absent.json["columns"]


def test_predict_refuses_what_is_no_number(refused, folder, fitted):
    rows = [*(f"70,{20 + k / 2},1.5,no\n" for k in range(20)), "60,thin,2.5,no\n"]
    (folder / "new.csv").write_text("age,bmi,dose,ill\n" + "".join(rows))
    refused("predict", "clinic.json", "new.csv", says="column 'bmi', row 21: 'thin' is not a declared level")


# Refusals.


@pytest.mark.parametrize("verb", LEARN)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dose", ("--discretise 'dose'", "COLUMN:4", "COLUMN:evidence:TARGET")),
        ("", ("--discretise ''",)),
        (":4", ("--discretise ':4'",)),
        ("dose:", ("'dose'", "cut points is empty")),
        ("dose:evidnce", ("'evidnce' is no rule", "did you mean 'evidence'")),
        ("dose:width:many", ("'many' is not a whole number",)),
        ("dose:width:2.5", ("'2.5' is not a whole number",)),
        ("dose:evidence:", ("no column behind 'evidence:'",)),
        ("dose:1", ("'dose'", "classes is 1", "from 2 to 1000")),
        ("dose:-3", ("'dose'", "-3")),
        ("dose:3,2", ("'dose'", "the cut point 2.0 comes after 3.0")),
        ("dose:1,nan", ("'dose'", "nan")),
        ("dose:1,inf", ("'dose'", "inf")),
        ("doze:4", ("'doze'", "did you mean 'dose'")),
        ("ill:2", ("'ill' is categorical already", "'no', 'yes'")),
        ("dose:evidence:il", ("target names 'il'", "did you mean 'ill'")),
        ("dose:evidence:bmi", ("target 'bmi' is continuous", "cut it first")),
        ("*:evidence:bmi", ("target 'bmi' is continuous",)),
    ],
)
def test_rules_that_are_none(refused, clinic, verb, text, says):
    refused(verb, "clinic.csv", "--model", MODEL, *rules(text), *QUICK, says=says)


def test_two_rules_for_one_column(refused, clinic):
    refused("score", "clinic.csv", "--model", MODEL, *rules("dose:3", "dose:4"), says=("two rules", "'dose'"))
    refused("score", "clinic.csv", "--model", MODEL, *rules("*:3", "*:4"), says="two rules")


def test_rules_are_read_before_the_data(refused):
    refused("score", "nowhere.csv", "--model", MODEL, *rules("dose"), says="--discretise 'dose'")


def test_a_continuous_column_names_the_option(refused, clinic):
    words = ("score", "clinic.csv", "--model", MODEL)
    refused(*words, says=("lk.discretise(table, {'bmi': 4})", "--discretise bmi:4"))
