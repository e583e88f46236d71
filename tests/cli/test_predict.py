"""`lurking predict` and `lurking sample`: they say and write what the library says."""

import io

import numpy as np
import pandas as pd
import pytest

import lurking as lk

MODEL = "class[2] -> *"
QUICK = ("--restarts", "3")


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.fixture
def table(folder):
    return lk.read("survey.csv")


def test_predict_json_says_what_the_library_says(done, table):
    network = lk.Network.load("model.json")
    outcome = done("predict", "model.json", "survey.csv", "--json")
    assert outcome.err == ""
    document = outcome.json
    assert document["command"] == "predict"
    assert document["rows"] == 80
    columns = document["columns"]
    assert columns["ln_p_row"] == close(list(network.loglik(table)))
    probabilities = network.hidden_probabilities(table)["class"]
    assert columns["p(class=0)"] == close(list(probabilities[:, 0]))
    assert columns["p(class=1)"] == close(list(probabilities[:, 1]))
    assert columns["class"] == list(probabilities.argmax(axis=1))


def test_predict_prints_the_first_rows(done, table):
    prediction = lk.Network.load("model.json").predict(table, "class")
    out = done("predict", "model.json", "survey.csv").out
    assert out.startswith("80 rows\n")
    rows = [line.split() for line in out.splitlines()[2:22]]
    for number, row in enumerate(rows):
        assert row[0] == str(number + 1)
        assert row[2] == str(prediction.labels[number])
        assert row[3:] == [f"{value:.4f}" for value in prediction.probabilities[number]]
    assert out.splitlines()[-1] == "… and 60 more rows (with --out FILE or --json)"


def test_predict_a_target_from_the_other_columns(done, folder, table):
    prediction = lk.Network.load("model.json").predict(table, "y2")
    columns = done("predict", "model.json", "survey.csv", "--target", "y2", "--json").json["columns"]
    assert columns["y2"] == prediction.labels
    assert columns["p(y2=1)"] == close(list(prediction.probabilities[:, 1]))
    pd.read_csv("survey.csv", dtype="Int64").drop(columns="y2").to_csv("without.csv", index=False)
    without = done("predict", "model.json", "without.csv", "--target", "y2", "--json").json["columns"]
    assert without == columns


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_predict_writes_all_rows(done, folder, ending):
    name = f"out.{ending}"
    outcome = done("predict", "model.json", "survey.csv", "--out", name)
    assert outcome.out == f"80 rows written to {name}\n"
    assert not list(folder.glob("*.part"))
    frame = pd.read_parquet(name) if ending == "parquet" else pd.read_csv(name, sep="," if ending == "csv" else "\t")
    columns = done("predict", "model.json", "survey.csv", "--json").json["columns"]
    assert list(frame.columns) == list(columns)
    for name, values in columns.items():
        np.testing.assert_allclose(frame[name].astype(float), values, rtol=1e-12)


def test_impute_fills_empty_cells_and_leaves_the_others(done, folder, table):
    given = pd.read_csv("survey.csv", dtype="Int64")
    outcome = done("predict", "model.json", "survey.csv", "--impute", "--out", "filled.csv", "--json")
    filled = pd.read_csv("filled.csv")
    imputation = lk.Network.load("model.json").impute(table)
    columns = outcome.json["columns"]
    assert given.isna().to_numpy().sum() > 10
    for name in given.columns:
        full = given[name].notna()
        assert filled[name].notna().all()
        assert (filled.loc[full, name] == given.loc[full, name]).all()
        assert columns[name] == filled[name].tolist()
        rows, probabilities = imputation.cells[name]
        assert list(rows) == list(np.flatnonzero(~full))
        assert filled.loc[rows, name].tolist() == list(probabilities.argmax(axis=1))
        sure = np.ones(len(given))
        sure[rows] = probabilities.max(axis=1)
        assert columns[f"p({name})"] == close(list(sure))


def test_impute_leaves_columns_alone_that_the_model_does_not_know(done, folder):
    frame = pd.read_csv("survey.csv", dtype="Int64")
    rng = np.random.default_rng(0)
    frame.insert(0, "person", [f"p{k:03d}" for k in rng.permutation(len(frame))])
    frame["height"] = np.where(rng.random(len(frame)) < 0.2, np.nan, rng.normal(1.7, 0.1, len(frame)))
    frame["note"] = [None, "a"] * (len(frame) // 2)
    frame.to_csv("wide.csv", index=False)
    columns = done("predict", "model.json", "wide.csv", "--impute", "--out", "filled.csv", "--json").json["columns"]
    filled = pd.read_csv("filled.csv")
    assert filled["person"].tolist() == frame["person"].tolist()
    assert filled["note"].fillna("").tolist() == frame["note"].fillna("").tolist()
    np.testing.assert_allclose(filled["height"], frame["height"].astype(float), rtol=1e-15)
    assert columns["note"] == [None, "a"] * (len(frame) // 2)
    assert [value is None for value in columns["height"]] == frame["height"].isna().tolist()


def test_predict_knows_the_levels_of_the_model(done, folder):
    (folder / "mixed.csv").write_text("x,y\n1.0,0\n1.5,1\nlow,0\n1.0,1\nlow,1\n01,0\n")
    done("fit", "mixed.csv", "--model", MODEL, *QUICK, "--out", "mixed.json")
    whole = done("predict", "mixed.json", "mixed.csv", "--json").json["columns"]["ln_p_row"]
    for position, line in enumerate((folder / "mixed.csv").read_text().splitlines()[1:]):
        (folder / "row.csv").write_text(f"x,y\n{line}\n")
        alone = done("predict", "mixed.json", "row.csv", "--json").json["columns"]["ln_p_row"]
        assert alone == close([whole[position]]), line


def test_predict_does_not_call_a_cell_of_a_short_file_an_empty_column(done, folder):
    (folder / "row.csv").write_text("y1,y2,y3,y4\n1,,0,1\n")
    outcome = done("predict", "model.json", "row.csv", "--impute", "--json")
    assert outcome.json["columns"]["y2"][0] in (0, 1)
    assert outcome.err == ""


def test_columns_carried_along(done):
    columns = done("predict", "model.json", "survey.csv", "--keep", "y2", "--json").json["columns"]
    assert next(iter(columns)) == "y2"


# sample


def test_sample_prints_what_the_library_draws(done, table):
    drawn = lk.Network.load("model.json").sample(50, seed=9).to_frame()
    outcome = done("sample", "model.json", "-n", "50", "--seed", "9")
    assert outcome.err == ""
    assert outcome.out == drawn.to_csv(index=False)
    document = done("sample", "model.json", "-n", "50", "--seed", "9", "--json").json
    assert document["columns"] == list(table.columns)
    assert document["rows"] == drawn.to_numpy(dtype=object).tolist()
    hidden = done("sample", "model.json", "-n", "50", "--seed", "9", "--hidden").out
    assert list(pd.read_csv(io.StringIO(hidden)).columns) == ["class", *table.columns]
    assert done("sample", "model.json", "-n", "50", "--seed", "10").out != outcome.out


def test_sample_of_no_rows(done):
    assert done("sample", "model.json", "-n", "0").out == "y1,y2,y3,y4\n"
    assert done("sample", "model.json", "-n", "0", "--json").json["rows"] == []


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_round_trip_from_fit_to_sample_to_predict(done, folder, ending):
    done("fit", "survey.csv", "--model", MODEL, *QUICK, "--out", "m.json")
    outcome = done("sample", "m.json", "-n", "30", "--seed", "1", "--out", f"drawn.{ending}")
    assert outcome.out == f"30 rows written to drawn.{ending}\n"
    drawn = lk.Network.load("m.json").sample(30, seed=1)
    assert lk.read(f"drawn.{ending}").to_frame().astype(int).equals(drawn.to_frame().astype(int))
    columns = done("predict", "m.json", f"drawn.{ending}", "--json").json["columns"]
    assert columns["ln_p_row"] == close(list(lk.Network.load("m.json").loglik(drawn)))
