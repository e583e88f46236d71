"""Formats, weights and odd columns of data files."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import lurking as lk

MODEL = "class[2] -> *"
QUICK = ("--restarts", "3")


def assert_same(left, right):
    """Compare two JSON documents, numbers up to rounding."""
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, float):
        assert left == pytest.approx(right, rel=1e-9, abs=1e-9)
    else:
        assert left == right


def test_every_format_gives_equal_scores(done, folder):
    frame = pd.read_csv("survey.csv", dtype="Int64").assign(word=["ja", "nein"] * 39 + ["ja", None])
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    frame.to_csv("a.csv", index=False)
    frame.to_csv("a.tsv", index=False, sep="\t")
    frame.to_csv("semicolon.csv", index=False, sep=";")
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    (folder / "a.json").write_text(frame.to_json(orient="records"))
    (folder / "a.jsonl").write_text(frame.to_json(orient="records", lines=True))
    pa.parquet.write_table(arrow, "a.parquet")
    pa.feather.write_feather(arrow, "a.arrow")
    documents = {}
    for path in ("a.csv", "a.tsv", "semicolon.csv", "a.csv.gz", "a.json", "a.jsonl", "a.parquet", "a.arrow"):
        document = done("score", path, "--model", MODEL, "--scores", "bic,cs,vb", *QUICK, "--json").json
        assert document["data"].pop("path") == path
        documents[path] = document
    for path, document in documents.items():
        assert document == documents["a.csv"], path


def test_weights_equal_repeated_rows(done, folder):
    frame = pd.read_csv("survey.csv", dtype="Int64")
    weights = np.random.default_rng(3).integers(0, 4, len(frame))
    frame.loc[frame.index.repeat(weights)].to_csv("repeated.csv", index=False)
    frame.assign(times=weights).to_csv("weighted.csv", index=False)
    for verb in ("fit", "score", "compare"):
        repeated = done(verb, "repeated.csv", "--model", MODEL, *QUICK, "--json").json
        weighted = done(verb, "weighted.csv", "--model", MODEL, *QUICK, "--weights", "times", "--json").json
        assert weighted["data"].pop("path") == "weighted.csv"
        assert repeated["data"].pop("path") == "repeated.csv"
        assert_same(weighted, repeated)


def test_an_empty_column_is_accepted_with_one_warning(done, folder):
    rows = (folder / "survey.csv").read_text().splitlines()
    (folder / "gap.csv").write_text("\n".join([rows[0] + ",void", *(row + "," for row in rows[1:])]) + "\n")
    for verb in ("fit", "score", "compare"):
        outcome = done(verb, "gap.csv", "--model", MODEL, *QUICK, "--json")
        assert len(outcome.err.splitlines()) == 1
        assert outcome.err.startswith("lurking: warning: column 'void' is entirely empty")
        assert outcome.json["data"]["columns"][-1] == "void"


def test_a_column_of_many_levels_in_many_rows_is_no_identifier(done, folder):
    days = "".join(f"d{k % 120},{k // 120 % 2}\n" for k in range(4800))
    (folder / "days.csv").write_text("day,rain\n" + days)
    expected = lk.score("day -> rain", lk.read("days.csv"), "exact")
    document = done("score", "days.csv", "--model", "day -> rain", "--scores", "exact", "--json").json
    assert document["results"][0]["scores"][0]["log_z"] == pytest.approx(expected.log_z, rel=1e-12)


def test_one_row_one_level_one_state(done, folder):
    (folder / "one.csv").write_text("y1\nx\n")
    for verb in ("fit", "score", "compare"):
        done(verb, "one.csv", "--model", "class[1] -> *", "--json")
    done("fit", "one.csv", "--model", "class[2] -> *")


def test_forgotten_weights_are_told(done, folder):
    lk.carcinoma().to_frame(weights="count").to_csv("slides.csv", index=False)
    told = "column 'count' holds whole numbers"
    fit = ("fit", "slides.csv", "--model", MODEL, *QUICK)
    warning = done(*fit).err.splitlines()[0]
    assert told in warning
    assert warning.endswith("use --weights count")
    assert told not in done(*fit, "--weights", "count", "--out", "model.json").err
    assert told not in done("predict", "model.json", "slides.csv").err
