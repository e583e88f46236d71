"""`lurking reproduce chickering1996`: files, options, refusals, interrupts."""

import csv

import pytest

from lurking.experiments.chickering1996 import scores, study
from lurking.experiments.chickering1996.data import Experiment
from lurking.experiments.chickering1996.scores import Protocol, Sampling

WORDS = ("reproduce", "chickering1996")
SMALL = study.Config(
    experiments=(Experiment(8, 4, 400, (2, 3)), Experiment(16, 4, 400, (2, 3))),
    sets=1,
    protocol=Protocol(copies=4),
    epsilon_sets=1,
    sampling=Sampling(target=1.0, passes=1 << 10, most_variables=8),
    timed=Experiment(6, 3, 80),
    timed_states=(2, 3),
    checked=((4, 2, 100),),
    checked_states=(2,),
    repeats=1,
)


@pytest.fixture
def small(monkeypatch):
    """Make the whole study take a moment."""
    monkeypatch.setattr(study, "Config", lambda: SMALL)
    monkeypatch.setattr(study, "quick", lambda config: config)


def test_the_whole_study(done, folder, small):
    outcome = done(*WORDS)
    assert outcome.err == ""
    assert "paper: 549 of 550\n  here:  4 of 4\n  holds" in outcome.out
    assert outcome.out.endswith("pictures and tables in out/chickering1996; begin with summary.md\n")
    made = {path.name: path.read_bytes() for path in (folder / "out" / "chickering1996").iterdir()}
    assert made.keys() >= {"summary.md", "figure1.png", "times.pdf", "table1.csv", "table1-sampled.csv", "reality.csv"}
    assert b"Made by `lurking reproduce chickering1996`." in made["summary.md"]
    assert done(*WORDS).out == outcome.out
    for name, content in made.items():
        if not name.endswith(".pdf"):
            assert (folder / "out" / "chickering1996" / name).read_bytes() == content


def test_parts(done, folder, small):
    done(*WORDS, "--part", "scores", "--sets", 2, "--quick", "--seed", 3)
    made = folder / "out" / "chickering1996-scores-quick"
    assert not (made / "table1-sampled.csv").exists()
    with (made / "scores.csv").open(newline="") as file:
        assert {row["data set"] for row in csv.DictReader(file)} == {"1", "2"}
    command = "Made by `lurking reproduce chickering1996 --part scores --quick --sets 2 --seed 3`."
    assert command in (made / "summary.md").read_text(encoding="utf-8")
    document = done(*WORDS, "--part", "table2", "--json").json
    assert {path.rsplit("/", 1)[1] for path in document["files"]} == {
        "times.png", "times.pdf", "table2.csv", "summary.md"
    }  # fmt: skip
    assert document["result"]["claims"][0]["paper"].startswith("5 to 9 times as long")
    document = done(*WORDS, "--part", "reality", "--json").json
    assert [path.rsplit("/", 1)[1] for path in document["files"]] == ["reality.csv", "summary.md"]


def test_refusals(refused):
    refused(*WORDS, "--part", "figure6", says=("'figure6' is a part of beal2006", "all, scores, table2, reality"))
    refused("reproduce", "beal2006", "--part", "reality", says="'reality' is a part of chickering1996")
    refused(*WORDS, "--part", "tabel2", says=("unknown part of chickering1996 'tabel2'", "did you mean 'table2'?"))
    refused(*WORDS, "--draws", "3", says="--draws belongs to beal2006 and means nothing to chickering1996")
    refused(*WORDS, "--full", says="--full belongs to beal2006")
    refused(*WORDS, "--tol", "1e-8", says="--tol belongs to beal2006")
    refused(*WORDS, "--sets", "0", says="--sets is 0; it must be at least 1")
    refused(*WORDS, "--sets", "x", says="'x' is not a whole number")
    refused(*WORDS, "--part", "table2", "--sets", "2", says="--sets belongs to the experiments of table 1")
    refused("reproduce", "beal2006", "--sets", "2", says="--sets belongs to chickering1996")


def test_an_interrupted_study_keeps_its_pieces(run, folder, small, monkeypatch):
    made = []

    def interrupted(problem, options):
        made.append(problem)
        if len(made) == 4:
            raise KeyboardInterrupt
        return scored(problem, options)

    scored = scores.scored
    monkeypatch.setattr(scores, "scored", interrupted)
    outcome = run(*WORDS, "--workers", "1")
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == (
        "lurking: interrupted; 3 pieces are kept in out/chickering1996.sqlite; the same command goes on from there\n"
    )
    monkeypatch.setattr(scores, "scored", scored)
    assert run(*WORDS, "--workers", "1").code == 0
