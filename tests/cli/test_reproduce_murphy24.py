"""`lurking reproduce murphy24`: files, parts, refusals, interrupts."""

import pytest

from lurking.experiments.murphy24 import sparse, study
from lurking.experiments.murphy24.decomposability import GainConfig
from lurking.experiments.murphy24.evidence import EvidenceConfig, Size
from lurking.experiments.murphy24.signature import SignatureConfig
from lurking.experiments.murphy24.sparse import SparseConfig

WORDS = ("reproduce", "murphy24")
SMALL = study.Config(
    evidence=EvidenceConfig(sizes=(Size(2, 4, 40),), sets=1, beyond=0, restarts=2, draws=40, target=1.0, passes=1 << 9),
    decomposability=GainConfig(sets=0, restarts=4),
    sparse=SparseConfig(items=3, relevant=2, rows=60, sets=3, restarts=2, random_starts=0),
    signature=SignatureConfig(rows=(50,), sets=1, target=1.0, passes=1 << 9),
)


@pytest.fixture
def small(monkeypatch):
    """Make the whole study take a moment."""
    monkeypatch.setattr(study, "Config", lambda: SMALL)
    monkeypatch.setattr(study, "quick", lambda config: config)


def test_the_whole_study(done, folder, small):
    outcome = done(*WORDS)
    assert "paper: 17 and 59\n  here:  17 and 59\n  holds" in outcome.out
    assert outcome.out.endswith("pictures and tables in out/murphy24; begin with summary.md\n")
    made = {path.name: path.read_bytes() for path in (folder / "out" / "murphy24").iterdir()}
    assert made.keys() >= {"summary.md", "evidence.png", "gains.csv", "sparse.pdf", "signature.csv"}
    assert b"Made by `lurking reproduce murphy24`." in made["summary.md"]
    assert done(*WORDS).out == outcome.out


def test_parts(done, small):
    document = done(*WORDS, "--part", "signature", "--quick", "--seed", 3, "--json").json
    assert {path.rsplit("/", 1)[1] for path in document["files"]} == {
        "signature.png", "signature.pdf", "signature.csv", "summary.md"
    }  # fmt: skip
    assert all("murphy24-signature-quick" in path for path in document["files"])
    assert document["result"]["claims"][0]["here"] == "17 and 59"


def test_refusals(refused):
    refused(*WORDS, "--part", "table2", says=("'table2' is a part of chickering1996", "all, evidence, decomposability"))
    refused(*WORDS, "--part", "signatur", says="did you mean 'signature'?")
    refused(*WORDS, "--draws", "3", says="--draws belongs to beal2006 and means nothing to murphy24")
    refused(*WORDS, "--sets", "3", says="--sets belongs to chickering1996 and means nothing to murphy24")


def test_an_interrupted_study_keeps_its_pieces(run, small, monkeypatch):
    made = []

    def interrupted(*arguments):
        made.append(arguments)
        if len(made) == 3:
            raise KeyboardInterrupt
        return scores(*arguments)

    scores = sparse.subset_scores
    monkeypatch.setattr(sparse, "subset_scores", interrupted)
    outcome = run(*WORDS, "--part", "sparse", "--workers", "1")
    assert (outcome.code, outcome.out) == (130, "")
    assert "2 pieces are kept in out/murphy24.sqlite; the same command goes on from there" in outcome.err
    monkeypatch.setattr(sparse, "subset_scores", scores)
    assert run(*WORDS, "--part", "sparse", "--workers", "1").code == 0
