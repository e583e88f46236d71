"""--memory on the command line: tables on disk, and sizes that are none."""

import json

import pytest

from lurking.data import files


def test_a_table_on_disk_gives_the_same_numbers(done, monkeypatch):
    words = ("score", "survey.csv", "--model", "class[2] -> *", "--scores", "cs,vb", "--json")
    in_memory = json.loads(done(*words).out)
    monkeypatch.setattr(files, "CELL_BYTES", 1 << 40)
    on_disk = json.loads(done(*words, "--memory", "1GB").out)
    assert on_disk["data"]["digest"].startswith("disk-")
    assert on_disk["data"]["n"] == in_memory["data"]["n"]
    for one, other in zip(on_disk["results"], in_memory["results"], strict=True):
        for mine, theirs in zip(one["scores"], other["scores"], strict=True):
            assert mine["log_z"] == pytest.approx(theirs["log_z"], abs=1e-4)


def test_a_fit_on_disk_says_what_it_leaves_out(done, monkeypatch):
    monkeypatch.setattr(files, "CELL_BYTES", 1 << 40)
    shown = done("fit", "survey.csv", "--model", "class[2] -> *", "--memory", "1GB").out
    assert "states of class" in shown
    assert "too many to be merged: fit statistics" in shown
    document = json.loads(done("fit", "survey.csv", "--model", "class[2] -> *", "--memory", "1GB", "--json").out)
    assert document["statistics"] is None
    compared = done("compare", "survey.csv", "--model", "class[1..2] -> *", "--memory", "1GB")
    assert "class[2]" in compared.out


@pytest.mark.parametrize("size", ["much", "0GB", "-1GB", "12"])
def test_a_size_that_is_none(refused, size):
    refused("fit", "survey.csv", "--model", "class[2] -> *", "--memory", size, says=(repr(size), "500MB"))


def test_a_limit_that_cannot_be_met_tells_the_least(refused):
    refused("score", "survey.csv", "--model", "class[2] -> *", "--memory", "1MB", says=("'1MB'", "160 MiB"))


def test_columns_are_chosen_while_reading(done, folder):
    (folder / "wide.csv").write_text("id,a,b\n" + "".join(f"n{i},{i % 2},{i // 2 % 2}\n" for i in range(200)))
    document = json.loads(done("score", "wide.csv", "--model", "class[2] -> *", "--columns", "a,b", "--json").out)
    assert document["data"]["columns"] == ["a", "b"]
    assert document["data"]["n"] == 200
