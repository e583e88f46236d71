"""Progress meters and sizes in words."""

import contextlib

import pytest

from lurking.runtime.memory import available_bytes, in_words
from lurking.runtime.progress import Bar, Silent


@pytest.mark.parametrize("meter", [Silent(), Bar(patience=1000.0), Bar(patience=0.0)])
def test_every_meter_takes_the_same_calls_and_leaves_stdout_alone(meter, capsys):
    for _ in range(2):
        meter.begin("structures", 3)
        for done in (1, 2, 3):
            meter.update(done)
        meter.end()
        meter.end()
    assert capsys.readouterr().out == ""


def test_a_patient_bar_says_nothing(capsys):
    with Bar(patience=1000.0) as bar:
        bar.begin("structures", 3)
        bar.update(1)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_where_there_is_no_terminal_a_line_now_and_then(capsys):
    with Bar(patience=0.0, interval=0.0) as bar:
        bar.begin("structures", 4)
        for done in (0, 2, 4):
            bar.update(done)
    with Bar(patience=0.0, interval=1000.0) as bar:
        bar.begin("more", 4)
        bar.update(2)
    captured = capsys.readouterr()
    assert captured.err == "structures: 2 of 4, about 0 min left\n"
    assert captured.out == ""


def test_lines_follow_the_rate_since_the_last_one(capsys):
    """Nothing within the patience, a line once the interval is over, and what was kept does not count as fast."""
    seconds = iter([0.0, 0.5, 0.5, 30.0, 30.0, 61.0, 61.0, 100.0, 100.0, 181.0, 181.0])
    bar = Bar(clock=lambda: next(seconds))
    bar.begin("chains", 100)
    told = []
    for done in (10, 20, 30, 40, 60):
        bar.update(done)
        told.append(capsys.readouterr().err)
    assert told == ["", "", "chains: 30 of 100, about 4 min left\n", "", "chains: 60 of 100, about 3 min left\n"]
    assert list(seconds) == []


def test_a_bar_closes_after_an_error():
    bar = Bar(patience=0.0)
    with contextlib.suppress(ValueError), bar:
        bar.begin("structures", 3)
        bar.update(1)
        raise ValueError("stop")
    bar.begin("more", 2)
    bar.update(1)
    bar.end()


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (3 * 2**30, "3 GiB"),
        (2**52, "4.1e+03 TiB"),
    ],
)
def test_sizes_in_words(size, words):
    assert in_words(size) == words


def test_there_is_memory():
    assert available_bytes() > 2**20
