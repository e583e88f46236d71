"""Runs of the command inside the test process, in a folder of their own with a few small files."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import lurking as lk
from lurking.cli.entry import main

MODEL = "class[2] -> *"
QUICK = ("--restarts", "3")


@dataclass(frozen=True)
class Outcome:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON document on stdout."""
        return json.loads(self.out)

    def row(self, first: str) -> list[str]:
        """Return the cells of the only table row that begins with the word `first`."""
        (cells,) = [line.split() for line in self.out.splitlines() if line.split()[:1] == [first]]
        return cells


def survey_rows() -> list[list[int | None]]:
    """Return 80 rows of four yes/no answers that two kinds of people gave, a few left empty."""
    rng = np.random.default_rng(7)
    kind = rng.random(80) < 0.4
    answers = rng.random((80, 4)) < np.where(kind[:, None], 0.85, 0.2)
    empty = rng.random((80, 4)) < 0.06
    return [
        [None if e else int(a) for a, e in zip(row, gone, strict=True)]
        for row, gone in zip(answers, empty, strict=True)
    ]


def as_text(columns, rows, separator: str = ",") -> str:
    """Return a text table; None is an empty cell."""
    lines = [columns, *(["" if cell is None else str(cell) for cell in row] for row in rows)]
    return "".join(separator.join(line) + "\n" for line in lines)


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory):
    """Return the path of a fitted model of the survey."""
    folder = tmp_path_factory.mktemp("model")
    data = folder / "survey.csv"
    data.write_text(as_text(["y1", "y2", "y3", "y4"], survey_rows()))
    path = folder / "model.json"
    lk.fit(MODEL, lk.read(data), seed=0, restarts=3).network.save(path)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch, saved_model) -> Path:
    """Return the current folder, with survey.csv and model.json in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "survey.csv").write_text(as_text(["y1", "y2", "y3", "y4"], survey_rows()))
    shutil.copy(saved_model, tmp_path / "model.json")
    return tmp_path


@pytest.fixture(autouse=True)
def no_time_for_progress(monkeypatch):
    """Stop the clock of progress bars, so that a busy machine cannot make one appear."""
    monkeypatch.setattr("lurking.runtime.progress.monotonic", lambda: 0.0)


@pytest.fixture
def run(folder, capsys):
    """Return a function that runs the command with the given words."""

    def run_command(*words) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(leaving.value.code, captured.out, captured.err)

    return run_command


def content(folder: Path) -> dict[str, bytes | None]:
    """Return every path below a folder with what the file holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def refused(run, folder):
    """Return a function that runs the command and expects one line, exit code 2, and nothing else."""

    def expect_refusal(*words, says=()) -> str:
        before = content(folder)
        outcome = run(*words)
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.startswith("lurking: error: ")
        assert outcome.err.endswith("\n")
        assert len(outcome.err.splitlines()) == 1
        for word in (says,) if isinstance(says, str) else says:
            assert word in outcome.err
        assert content(folder) == before
        return outcome.err

    return expect_refusal


@pytest.fixture
def done(run):
    """Return a function that runs the command and expects it to succeed."""

    def expect_success(*words) -> Outcome:
        outcome = run(*words)
        assert outcome.code == 0, outcome.err
        return outcome

    return expect_success
