"""`lurking reproduce`: files, tables, JSON, refusals."""

import csv

import pytest
import typer.main

from lurking.cli import reproduce as module
from lurking.cli.app import app
from lurking.experiments.beal2006 import figure6, study
from lurking.experiments.beal2006.sampled import Annealing, Reference

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
    assert (folder / document["files"][0]).read_bytes().startswith(PNG)
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
    refused(*WORDS, "--draws", "3", says=("--draws belongs to the whole study", "--part figure6"))
    refused(*WORDS, "--full", says="--full belongs to the whole study")
    refused("reproduce", "beal2006", "--draws", "-1", says="--draws is -1; it must be at least 0")
    refused("reproduce", "beal2006", "--steps", "0", says="--steps is 0")
    refused("reproduce", "beal2006", "--tol", "0", says="--tol is 0; it must be above 0")
    refused(*WORDS, "--tol", "1e-8", says="--tol belongs to the scores")
    refused("reproduce", "beal2006", "--chains", "x", says="'x' is not a whole number")
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


WHOLE = ("reproduce", "beal2006")
SMALL = study.Config(
    sizes=(10, 40),
    annealing=Annealing(steps=8, chains=5),
    annealed_sizes=(10,),
    reference=Reference(target=1.0, passes=1 << 12),
    reference_sizes=(40,),
    draws=1,
    sampled_draws=1,
    sampled_sizes=(10,),
    most=2,
    timed_size=10,
)


@pytest.fixture
def small(monkeypatch):
    """Make the whole study take a moment."""
    monkeypatch.setattr(study, "Config", lambda: SMALL)
    monkeypatch.setattr(study, "quick", lambda config: config)


def test_the_whole_study(done, folder, small):
    outcome = done(*WHOLE)
    assert outcome.err == ""
    assert "here:  136, 18 to 66, 50\n  holds" in outcome.out
    assert outcome.out.endswith("pictures and tables in out/beal2006; begin with summary.md\n")
    made = {path.name: path.read_bytes() for path in (folder / "out" / "beal2006").iterdir()}
    assert made.keys() >= {"summary.md", "figure2.png", "figure6.pdf", "table2.csv", "table3.csv"}
    assert (folder / "out" / "beal2006.sqlite").exists()
    assert b"Made by `lurking reproduce beal2006`." in made["summary.md"]
    assert done(*WHOLE).out == outcome.out
    for name, content in made.items():
        if name.endswith((".csv", ".md", ".txt", ".png")):
            assert (folder / "out" / "beal2006" / name).read_bytes() == content


def test_options_of_the_whole_study(done, folder, small):
    document = done(*WHOLE, "--draws", 1, "--chains", 0, "--json", "--seed", 5).json
    assert document["result"]["claims"][0]["holds"] is True
    names = {path.name for path in (folder / "out" / "beal2006").iterdir()}
    assert "figure6.png" not in names
    page = (folder / "out" / "beal2006" / "summary.md").read_text(encoding="utf-8")
    assert "Made by `lurking reproduce beal2006 --draws 1 --chains 0 --seed 5`." in page
    assert "The sampler was not run." not in page  # the variational path was
    done(*WHOLE, "--part", "scores", "--out", "scores", "--tol", "1e-4")
    made = {path.name: path for path in (folder / "scores" / "beal2006-scores").iterdir()}
    assert "figure2.png" in made
    assert "figure4.png" not in made
    assert "AIS" not in made["times.csv"].read_text()


@pytest.mark.long
def test_all_structures_and_very_short_chains(done, folder, small):
    outcome = done(*WHOLE, "--full", "--draws", 0, "--steps", 1, "--quick")
    assert outcome.err == ""
    with (folder / "out" / "beal2006-quick" / "scores.csv").open(newline="") as file:
        sampled = [row for row in csv.DictReader(file) if row["n"] == "40" and row["sampled"]]
    assert len(sampled) == 136


def test_an_interrupted_study_keeps_its_pieces(run, folder, small, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "reference", interrupted)
    outcome = run(*WHOLE)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == (
        "lurking: interrupted; 138 pieces are kept in out/beal2006.sqlite; the same command goes on from there\n"
    )
