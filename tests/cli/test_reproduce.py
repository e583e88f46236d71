"""`lurking reproduce`: files, tables, JSON, refusals."""

import pytest
import typer.main

from lurking.cli import reproduce as module
from lurking.cli.app import app
from lurking.experiments.beal2006 import figure6

WORDS = ("reproduce", "beal2006", "--part", "figure6")
PNG = b"\x89PNG\r\n\x1a\n"
TINY = figure6.Config(
    rows=40,
    steps=(16, 64),
    chains=3,
    passes=1 << 14,
    sizes=(10, 640),
    acceptance_steps=32,
    structures=4,
    curvatures=(0.2, 1.0),
    hysteresis_steps=(16,),
    burn_in=100,
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Make the experiment take a moment, and know the verb."""
    monkeypatch.setattr(figure6, "Config", lambda: TINY)
    monkeypatch.setattr(figure6, "quick", lambda config: config)
    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
    if "reproduce" not in typer.main.get_command(app).commands:
        app.command("reproduce")(module.reproduce)


def test_picture_and_tables(done, folder):
    outcome = done(*WORDS)
    assert outcome.err == ""
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["beal2006-figure6.png", "beal2006-figure6.txt"]
    picture = (folder / "out" / "beal2006-figure6.png").read_bytes()
    assert picture.startswith(PNG)
    assert picture.endswith(b"IEND\xaeB`\x82")
    text = (folder / "out" / "beal2006-figure6.txt").read_text(encoding="utf-8")
    assert outcome.out.startswith(text)
    assert outcome.out.endswith("picture: out/beal2006-figure6.png\ntables: out/beal2006-figure6.txt\n")
    assert outcome.row("640")[-1] == "0.585"


def test_json(done, folder):
    document = done(*WORDS, "--json", "--quick", "--out", "deep/er", "--seed", 2, "--workers", 1).json
    assert document["command"] == "reproduce"
    assert (document["paper"], document["part"], document["quick"], document["seed"]) == (
        "beal2006",
        "figure6",
        True,
        2,
    )
    assert (folder / document["files"]["picture"]).read_bytes().startswith(PNG)
    assert len(document["result"]["traces"]["prior"]) == 2
    assert document["result"]["references"]["estimate"] < 0.0
    assert len(document["result"]["acceptance"]["quarters"]) == 2


def test_the_same_seed_gives_the_same_picture(done, folder):
    for place, workers in (("one", 1), ("two", 2)):
        done(*WORDS, "--out", place, "--workers", workers)
    for name in ("beal2006-figure6.png", "beal2006-figure6.txt"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


def test_refusals(refused, folder):
    (folder / "taken").write_text("a file")
    refused("reproduce", "beal2003", "--part", "figure6", says=("unknown paper 'beal2003'", "choose from: beal2006"))
    refused("reproduce", "beal2006", "--part", "figure9", says=("unknown part of beal2006 'figure9'", "figure6"))
    refused("reproduce", "beal2006", says=("--part is missing", "figure6"))
    refused(*WORDS, "--out", "taken", says="is a file")
    refused(*WORDS, "--out", "taken/below", says="is a file")
    refused(*WORDS, "--seed", "-1", says="seed is -1")
    refused(*WORDS, "--workers", "0", says="workers is 0")


def test_a_folder_that_cannot_be_written(refused, monkeypatch):
    monkeypatch.setattr(module.os, "access", lambda *_: False)
    refused(*WORDS, says="permission denied")


def test_an_interrupt_leaves_nothing_behind(run, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure6, "run", interrupted)
    outcome = run(*WORDS)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == "lurking: interrupted; nothing was finished\n"
    assert not (folder / "out").exists()
