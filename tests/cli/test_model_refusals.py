"""Files that are no model, and requests that a model cannot answer: one line each."""

import json

import pytest


def damaged(change):
    def make(text):
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return make


BAD_NETWORKS = {
    "empty": (lambda _: "", "JSON"),
    "cut": (lambda text: text[: len(text) // 2], "JSON"),
    "csv": (lambda _: "y1,y2\n0,1\n", "JSON"),
    "deep": (lambda _: "[" * 100_000, "JSON"),
    "other-json": (lambda _: '{"a": 1}', "lurking-network"),
    "list": (lambda text: f"[{text}]", "lurking-network"),
    "version": (damaged(lambda d: d.update(version=99)), "99"),
    "no-nodes": (damaged(lambda d: d.pop("nodes")), "damaged"),
    "nodes-empty": (damaged(lambda d: d.update(nodes=[])), "damaged"),
    "nodes-number": (damaged(lambda d: d.update(nodes=5)), "damaged"),
    "no-levels": (damaged(lambda d: d["nodes"][1].update(levels=[])), "damaged"),
    "levels-null": (damaged(lambda d: d["nodes"][1].update(levels=None)), "damaged"),
    "levels-lists": (damaged(lambda d: d["nodes"][1].update(levels=[[0], [1]])), "damaged"),
    "levels-repeated": (damaged(lambda d: d["nodes"][1].update(levels=[0, 0])), "damaged"),
    "parent-unknown": (damaged(lambda d: d["nodes"][1].update(parents=["clas"])), "'clas'"),
    "parent-itself": (damaged(lambda d: d["nodes"][1].update(parents=["y1"])), "y1"),
    "table-shape": (damaged(lambda d: d["nodes"][1].update(table=[[0.5, 0.5]])), "damaged"),
    "table-text": (damaged(lambda d: d["nodes"][1].update(table=[["a", "b"], ["c", "d"]])), "damaged"),
    "table-negative": (damaged(lambda d: d["nodes"][1].update(table=[[1.5, -0.5], [0.5, 0.5]])), "damaged"),
    "table-nan": (damaged(lambda d: d["nodes"][1].update(table=[[float("nan"), 1.0], [0.5, 0.5]])), "damaged"),
    "alpha-null": (damaged(lambda d: d["nodes"][1].update(alpha=None)), "damaged"),
    "about-number": (damaged(lambda d: d.update(about=5)), "damaged"),
}


@pytest.mark.parametrize("verb", ["predict", "sample"])
@pytest.mark.parametrize("case", BAD_NETWORKS)
def test_files_that_are_no_model(refused, folder, verb, case):
    make, says = BAD_NETWORKS[case]
    (folder / "bad.json").write_text(make((folder / "model.json").read_text()))
    data = ("survey.csv",) if verb == "predict" else ()
    refused(verb, "bad.json", *data, "--out", "out.csv", says=("bad.json", says))


@pytest.mark.parametrize("verb", ["predict", "sample"])
def test_models_that_cannot_be_read(refused, folder, verb):
    data = ("survey.csv",) if verb == "predict" else ()
    refused(verb, "nowhere.json", *data, says="nowhere.json")
    refused(verb, ".", *data, says="'.'")
    (folder / "latin.json").write_bytes(b'{"caf\xe9": 1}')
    refused(verb, "latin.json", *data, says=("latin.json", "UTF-8"))


def test_predict_refuses_a_level_that_the_model_does_not_know(refused, folder):
    (folder / "new.csv").write_text("y1,y2,y3,y4\n0,1,0,1\n0,1,7,1\n")
    refused("predict", "model.json", "new.csv", says=("'y3'", "row 2", "7", "0, 1"))
    refused("predict", "model.json", "new.csv", "--impute", "--out", "out.csv", says=("'y3'", "row 2"))


def test_predict_refuses_data_without_any_column_of_the_model(refused, folder):
    (folder / "other.csv").write_text("a,b\n0,1\n1,1\n")
    refused("predict", "model.json", "other.csv", says="y1")


def test_predict_refuses_contradictions_and_unknown_names(refused):
    words = ("predict", "model.json", "survey.csv")
    refused(*words, "--impute", "--target", "y1", says=("--impute", "--target"))
    refused(*words, "--target", "y11", says=("'y11'", "did you mean 'y1'"))
    refused(*words, "--drop", "y11", says="'y11'")


def test_sample_refuses_a_negative_number_of_rows_and_seeds(refused):
    refused("sample", "model.json", "-n", "-1", says="-1")
    refused("sample", "model.json", "-n", "3", "--seed", "-1", says=("seed", "-1"))
