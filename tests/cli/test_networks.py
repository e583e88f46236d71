"""BIF files on the command line: as a model to sample from and predict with, and as a structure to fit."""

import json

import pandas as pd
import pytest

import lurking as lk

NETWORK = lk.Network.from_tables(
    lk.Dag.parse("class[2] -> a b c d"),
    {"class": [[0.4, 0.6]], **{name: [[0.9, 0.1], [0.2, 0.8]] for name in "abcd"}},
    dict.fromkeys("abcd", ("no", "yes")),
)


@pytest.fixture
def files(folder):
    lk.write_network(NETWORK, folder / "causes.bif")
    NETWORK.sample(300, seed=0).to_frame().to_csv(folder / "answers.csv", index=False)
    return folder


def test_a_network_is_sampled_and_asked(done, files):
    drawn = done("sample", "causes.bif", "-n", "5", "--seed", "3")
    assert drawn.out == NETWORK.sample(5, seed=3).to_frame().to_csv(index=False)
    done("predict", "causes.bif", "answers.csv", "--out", "asked.csv")
    expected = NETWORK.hidden_probabilities(lk.read("answers.csv"))["class"]
    assert pd.read_csv("asked.csv")["p(class=1)"].to_numpy() == pytest.approx(expected[:, 1])


def test_a_network_is_a_structure(done, files):
    by_file = json.loads(done("score", "answers.csv", "--model", "causes.bif", "--json").out)
    by_text = json.loads(done("score", "answers.csv", "--model", "class[2] -> a b c d", "--json").out)
    assert by_file == by_text


def test_a_damaged_network_is_refused_with_its_place(refused, files):
    text = (files / "causes.bif").read_text()
    (files / "broken.bif").write_text(text.replace("0.9, 0.1", "0.9, 0.3", 1))
    refused("sample", "broken.bif", says=("line", "column", "sum"))
    (files / "strange.bif").write_text(text.replace("( a | class )", "( a | klass )"))
    refused("fit", "answers.csv", "--model", "strange.bif", says=("'klass'", "'class'", "line"))
    (files / "short.bif").write_text(text[: len(text) // 2])
    refused("score", "answers.csv", "--model", "short.bif", says="line")


def test_a_model_goes_out_and_in_as_bif(done, files):
    done("fit", "answers.csv", "--model", "causes.bif", "--out", "fitted.bif")
    assert (files / "fitted.bif").read_text().startswith("network ")
    assert "class" in lk.read_network("fitted.bif").dag.hidden
    done("predict", "fitted.bif", "answers.csv")


def test_networks_are_compared_as_structures(done, files):
    words = ("--model", "truth: causes.bif", "--model", "causes.bif", "--model", "none: a; b; c; d")
    rows = json.loads(done("compare", "answers.csv", *words, "--scores", "vb", "--json").out)["results"][0]["models"]
    assert [row["name"] for row in rows] == ["truth", "causes.bif", "none"]


def test_a_column_to_keep_must_exist(refused, files):
    refused("predict", "causes.bif", "answers.csv", "--keep", "Id", says=("--keep", "'Id'", "the columns are"))
