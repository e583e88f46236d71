"""`lurking compare --prequential` writes a picture and leaves stdout alone."""

import json

import pytest

MODELS = ("--model", "two: class[2] -> *", "--model", "one: class[1] -> *")
QUICK = ("--restarts", "2")


def test_the_picture_is_written_beside_the_table(done, folder):
    words = ("compare", "survey.csv", *MODELS, "--scores", "vb,bic", *QUICK)
    plain = done(*words)
    drawn = done(*words, "--prequential", "rows.png")
    assert drawn.out == plain.out
    assert "picture written to rows.png" in drawn.err
    assert (folder / "rows.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_json_stays_one_document(done, folder):
    outcome = done("compare", "survey.csv", *MODELS, *QUICK, "--prequential", "rows.svg", "--json", "--prior", "1,2")
    assert len(json.loads(outcome.out)["results"]) == 2
    assert (folder / "rows.svg").exists()


def test_what_cannot_be_drawn_is_refused_before_any_work(refused):
    assert "unknown score of growing data 'bic'" in refused(
        "compare", "survey.csv", *MODELS, "--scores", "bic,vb", "--prequential", "rows.png"
    )


def test_a_place_where_nothing_can_be_drawn_is_refused_before_any_work(refused, folder, monkeypatch):
    monkeypatch.setattr("lurking.cli.compare.compare_structures", lambda *_, **__: pytest.fail("models were compared"))
    words = ("compare", "survey.csv", *MODELS, "--prequential")
    assert "'rows.bmp': unknown kind of picture; use .png, .pdf or .svg" in refused(*words, "rows.bmp")
    assert "'nodir/rows.png': there is no folder 'nodir'" in refused(*words, "nodir/rows.png")
    (folder / "rows.png").mkdir()
    assert "'rows.png': it is a directory" in refused(*words, "rows.png")
