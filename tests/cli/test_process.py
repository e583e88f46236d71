"""The command as a process of its own: exit codes, the two streams, interrupts, pipes, the progress bar."""

import io
import itertools
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lurking as lk
from lurking.kernels.cpu.chains import collapsed
from lurking.learn.loop import Climber
from lurking.runtime.executor import StopFlag
from lurking.samplers.metropolis import Walk

COMMAND = str(Path(sys.executable).with_name("lurking"))
MODEL = "class[2] -> *"
# One climb of this takes far longer than any test waits.
ENDLESS = ("--tol", "0", "--max-iter", "50000000", "--restarts", "2")
LONGEST = 300.0
"""Seconds after which a process that does not end has failed: on any machine far more than it needs."""
SOON = 0.05
"""Seconds from the beginning of a climb to the signal, so that it comes while the kernel runs."""
# Runs the command and sends itself the signal of Ctrl-C soon after the first climb began.
INTERRUPTED = """
import os, signal, sys, threading
from lurking.cli.entry import main
from lurking.learn.loop import Climber

climb, begun = Climber.climb_all, []

def counted(self, *arguments):
    begun.append(None)
    if len(begun) == 1:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    return climb(self, *arguments)

Climber.climb_all = counted
main(sys.argv[1:])
"""


def start(words, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    return subprocess.Popen([str(word) for word in words], **(pipes | options))


def finish(words, **options):
    with start(words, **options) as process:
        try:
            out, err = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail(f"still running after {LONGEST:g} s")
    return process.returncode, out, err


@pytest.fixture
def interrupted(run, monkeypatch):
    """Return a function that runs the command and interrupts it soon after the climb of the given number began."""

    def run_interrupted(*words, climb=1):
        original, begun = Climber.climb_all, []

        def counted(self, *arguments):
            begun.append(None)
            if len(begun) == climb:
                threading.Timer(SOON, os.kill, (os.getpid(), signal.SIGINT)).start()
            return original(self, *arguments)

        monkeypatch.setattr(Climber, "climb_all", counted)
        outcome = run(*words)
        return outcome.code, outcome.out, outcome.err

    return run_interrupted


@pytest.fixture
def many_rows(folder):
    rows = np.random.default_rng(0).integers(0, 2, (1000, 10))
    lines = [",".join(f"y{j}" for j in range(10)), *(",".join(map(str, row)) for row in rows)]
    (folder / "many.csv").write_text("\n".join(lines) + "\n")
    return "many.csv"


# Exit codes and streams.


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "lurking"]])
def test_the_command_and_the_module_are_one(folder, command):
    code, out, err = finish([*command, "score", "survey.csv", "--model", MODEL, "--json"])
    assert (code, err) == (0, "")
    expected = lk.score(MODEL, lk.read("survey.csv"), "vb", seed=0)
    assert json.loads(out)["results"][0]["scores"][-1]["log_z"] == pytest.approx(expected.log_z, rel=1e-12)


def test_warnings_go_to_stderr_and_the_document_to_stdout(done, folder):
    (folder / "gap.csv").write_text("a,b,void\n0,1,\n1,0,\n1,1,\n0,0,\n")
    outcome = done("fit", "gap.csv", "--model", MODEL, "--json")
    assert outcome.json["command"] == "fit"
    assert outcome.err.startswith("lurking: warning: column 'void'")
    assert len(outcome.err.splitlines()) == 1


def test_a_hidden_variable_larger_than_memory_is_one_line_on_stderr(folder):
    limited = f"ulimit -v 8000000; exec {COMMAND} fit survey.csv --model 'class -> y1 y2' --hidden class:3000000000"
    code, out, err = finish(["sh", "-c", limited], env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    assert (code, out) == (2, "")
    assert err.startswith("lurking: error: ")
    assert len(err.splitlines()) == 1
    assert "iB" in err, "it must say how much is needed"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_in_any_encoding(run, folder, encoding, monkeypatch):
    (folder / "words.csv").write_text("größe,b\nä,1\nö,0\nä,0\n", encoding="utf-8")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    outcome = run("fit", "words.csv", "--model", MODEL)
    assert outcome.code == 0
    assert "Traceback" not in outcome.err
    text = written.getvalue().decode(encoding)
    assert "AIC" in text
    assert ("gr??e" if encoding == "ascii" else "größe") in text


# Pipes.


@pytest.mark.parametrize(
    "words",
    [
        ("sample", "model.json", "-n", "200000"),
        ("score", "survey.csv", "--model", MODEL),
        ("score", "survey.csv", "--model", MODEL, "--json"),
        ("fit", "survey.csv", "--model", MODEL),
        ("--help",),
    ],
)
def test_a_reader_that_goes_away_is_no_error(run, words, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        outcome = run(*words)
    assert (outcome.code, outcome.err) == (0, "")


def test_a_reader_of_a_process_that_goes_away_is_no_error(folder):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        code, _, err = finish([COMMAND, "sample", "model.json", "-n", "20"], stdout=gone)
    assert (code, err) == (0, "")


def test_head(folder):
    script = f"set -o pipefail; {COMMAND} sample model.json -n 200000 | head -n 3"
    code, out, err = finish(["bash", "-c", script])
    assert out == lk.Network.load("model.json").sample(200000, seed=0).to_frame().head(2).to_csv(index=False)
    assert (code, err) == (0, "")


# Interrupts.


def one_line(err, begin):
    assert err.startswith(begin)
    assert len(err.splitlines()) == 1


def test_interrupted_process_reports_its_best_point(folder, many_rows):
    words = ("fit", many_rows, "--model", "class[4] -> *", *ENDLESS, "--json")
    code, out, err = finish([sys.executable, "-c", INTERRUPTED, *words])
    assert code == 130
    one_line(err, "lurking: interrupted; the best point so far is reported")
    assert json.loads(out)["status"] == "INTERRUPTED"


def test_interrupted_fit_reports_its_best_point(interrupted, many_rows):
    code, out, err = interrupted("fit", many_rows, "--model", "class[4] -> *", *ENDLESS, "--json", "--out", "best.json")
    assert code == 130
    one_line(err, "lurking: interrupted; ")
    document = json.loads(out)
    assert document["status"] == "INTERRUPTED"
    assert document["objective"] < 0
    network = lk.Network.load("best.json")
    assert network.about["status"] == "INTERRUPTED"
    np.testing.assert_allclose(network.tables["y3"], document["tables"]["y3"])


# The last climb follows the rounds of the knock-out: none for one copy, two short climbs for two copies.
@pytest.mark.parametrize(("copies", "climb"), [(1, 1), (2, 3)])
def test_interrupted_fit_with_a_tournament(interrupted, many_rows, copies, climb):
    words = ("fit", many_rows, "--model", "class[4] -> *", "--tol", "0", "--max-iter", "5000000")
    code, _, err = interrupted(*words, "--tournament", copies, climb=climb)
    assert code == 130
    assert err.splitlines()[-1:] != []
    assert err.splitlines()[-1].startswith("lurking: interrupted; ")


def test_an_interrupt_of_a_serial_fit_in_the_library_does_not_crash(many_rows, monkeypatch):
    """A long climb is on another thread, for on the calling one an interrupt is not noticed before its end."""
    climb = Climber.climb_all

    def interrupted_soon(self, *arguments):
        assert threading.current_thread() is not threading.main_thread()
        threading.Timer(SOON, os.kill, (os.getpid(), signal.SIGINT)).start()
        return climb(self, *arguments)

    monkeypatch.setattr(Climber, "climb_all", interrupted_soon)
    table = lk.read(many_rows)
    with pytest.raises(KeyboardInterrupt):
        lk.fit("class[4] -> *", table, seed=0, restarts=1, workers=1, tol=0, max_iter=5_000_000)


def test_a_comparison_in_the_library_notices_an_interrupt_with_one_thread_and_with_two(many_rows):
    """All climbs together would take an hour, and the process is given a few minutes."""
    script = """
import os, signal, threading
import lurking as lk
from lurking.search import scoring
fit_together = scoring.fit_together

def interrupted_soon(*arguments):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    return fit_together(*arguments)

table = lk.read("many.csv")
models = [f"class[{k}] -> *" for k in range(2, 12)]
lk.compare(models[:2], table, seed=0, restarts=1, max_iter=1)  # an interrupt within an import leaves half a module
scoring.fit_together = interrupted_soon
for workers in (1, 2):
    try:
        lk.compare(models, table, seed=0, restarts=200, tol=0, max_iter=4000, workers=workers)
    except KeyboardInterrupt:
        print("interrupted", workers)
"""
    code, out, _ = finish([sys.executable, "-c", script])
    assert (code, out) == (0, "interrupted 1\ninterrupted 2\n")


def test_an_interrupt_of_a_tiny_fit_keeps_finished_starts(many_rows, monkeypatch):
    table = lk.read(many_rows, columns=["y0", "y1", "y2"])
    climb, begun = Climber.climb, []

    def counted(self, *arguments):
        begun.append(1)
        if len(begun) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return climb(self, *arguments)

    monkeypatch.setattr(Climber, "climb", counted)
    options = {"restarts": 2000, "workers": 1, "tol": 0, "max_iter": 4000, "keep_interrupted": True}
    fit = lk.fit("class[2] -> *", table, seed=0, **options)
    assert fit.status is lk.Status.INTERRUPTED
    assert 0 < len(fit.spread.objectives) < 2000


def test_interrupted_score_says_so(interrupted, many_rows):
    code, out, err = interrupted("score", many_rows, "--model", "class[4] -> *", *ENDLESS, "--scores", "vb", "--json")
    assert code == 130
    one_line(err, "lurking: interrupted; ")
    if out:
        assert json.loads(out)["results"][0]["scores"][0]["status"] == "INTERRUPTED"


def test_interrupted_compare_reports_what_was_finished(interrupted, many_rows):
    words = ("--model", "one: class[1] -> *", "--model", "four: class[4] -> *", "--scores", "vb", "--workers", "1")
    options = ("--max-iter", "5000000", "--tol", "0", "--restarts", "1")
    code, out, err = interrupted("compare", many_rows, *words, *options, "--json", climb=2)
    assert code == 130
    one_line(err, "lurking: interrupted; 1 of 2 models were finished")
    (result,) = json.loads(out)["results"]
    assert result["interrupted"] is True
    (model,) = result["models"]
    assert model["name"] == "one"
    expected = lk.score("class[1] -> *", lk.read(many_rows), "vb").log_z
    assert model["scores"][0]["log_z"] == pytest.approx(expected, rel=1e-12)


def test_interrupted_compare_with_nothing_finished(interrupted, many_rows):
    code, out, err = interrupted("compare", many_rows, "--model", "class[4] -> *", *ENDLESS, "--scores", "vb")
    assert (code, out) == (130, "")
    one_line(err, "lurking: interrupted; nothing was finished")


def test_interrupted_while_sampling(run, folder, monkeypatch):
    monkeypatch.setattr(lk.Network, "sample", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    outcome = run("sample", "model.json", "--out", "drawn.csv")
    assert (outcome.code, outcome.out) == (130, "")
    one_line(outcome.err, "lurking: interrupted; nothing was finished")
    assert not list(Path().glob("drawn*"))


CHAINS = {"parameters": (Walk, "run"), "completions": (collapsed, "empty_completion")}
"""What is called when a chain begins."""


@pytest.fixture
def interrupted_chain(run, monkeypatch):
    """Return a function that runs the command and interrupts it when the chain of the given number begins."""

    def run_interrupted(path, chain, *words):
        owner, name = CHAINS[path]
        begin, begun = getattr(owner, name), []

        def counted(*arguments):
            begun.append(None)
            if len(begun) == chain:
                noticed = threading.Event()
                monkeypatch.setattr(StopFlag, "set", lambda self: (set_flag(self), noticed.set()))
                os.kill(os.getpid(), signal.SIGINT)
                # The chains of one thread follow each other: nobody may begin the next before the flag is set.
                assert noticed.wait(LONGEST)
            return begin(*arguments)

        set_flag = StopFlag.set
        monkeypatch.setattr(owner, name, counted)
        outcome = run(*words)
        return outcome.code, outcome.out, outcome.err

    return run_interrupted


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("path", list(CHAINS))
def test_one_endless_chain_is_given_up_at_once(interrupted_chain, many_rows, path, workers):
    words = ("--scores", "ais", "--path", path, "--steps", "2000000", "--chains", "1", "--workers", workers)
    code, out, err = interrupted_chain(path, 1, "score", many_rows, "--model", "class[4] -> *", *words)
    assert (code, out) == (130, "")
    one_line(err, "lurking: interrupted; nothing was finished")


@pytest.mark.parametrize("path", list(CHAINS))
def test_finished_chains_are_kept_and_called_what_they_are(interrupted_chain, path):
    words = ("--scores", "vb,ais", "--path", path, "--steps", "200", "--chains", "6", "--workers", "1", "--json")
    code, out, err = interrupted_chain(path, 5, "score", "survey.csv", "--model", MODEL, *words)
    assert code == 130
    assert err == (
        "lurking: interrupted; 1 of 2 scores were finished; the value of ais rests on what was sampled until then\n"
    )
    vb, ais = json.loads(out)["results"][0]["scores"]
    assert vb["status"] == "CONVERGED"
    assert ais["status"] == "INTERRUPTED"
    assert "estimate from the finished chains" in ais["status_sentence"]
    expected = lk.score(MODEL, lk.read("survey.csv", unique=True), "ais", path=path, steps=200, chains=4, seed=0)
    assert ais["log_z"] == pytest.approx(expected.log_z, rel=1e-12)
    assert expected.nominal_error > 0.0
    assert ais["std_error"] is None  # the diagnostics of a sampler that was stopped have not agreed


def test_one_finished_chain_has_no_standard_error_in_json(interrupted_chain):
    words = ("--scores", "ais", "--path", "parameters", "--steps", "50", "--chains", "3", "--workers", "1", "--json")
    code, out, _ = interrupted_chain("parameters", 2, "score", "survey.csv", "--model", MODEL, *words)
    assert code == 130
    assert json.loads(out)["results"][0]["scores"][0]["std_error"] is None


def test_a_fit_that_is_terminated_does_not_wait_for_its_climbs(folder, many_rows):
    script = INTERRUPTED.replace("signal.SIGINT", "signal.SIGTERM")
    words = ("fit", many_rows, "--model", "class[4] -> *", *ENDLESS)
    code, out, _ = finish([sys.executable, "-c", script, *words])
    assert (code, out) == (143, "")


# The progress bar.


def on_terminal(words):
    """Run with a terminal as stderr; return the exit code, stdout and what the terminal showed."""
    primary, secondary = pty.openpty()
    with start(words, stderr=secondary, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"}) as process:
        os.close(secondary)
        shown = b""
        try:
            while piece := os.read(primary, 65536):
                shown += piece
        except OSError:
            pass  # the other end was closed
        finally:
            os.close(primary)
        out = process.stdout.read()
    return process.returncode, out, shown.decode()


# Runs the command with a clock that goes on by the given number of seconds whenever a progress bar looks at it.
CLOCKED = """
import itertools, sys
from lurking.cli.entry import main
from lurking.runtime import progress
progress.monotonic = itertools.count(0.0, float(sys.argv[1])).__next__
main(sys.argv[2:])
"""
FIT = ("fit", "survey.csv", "--model", MODEL, "--restarts", "4", "--workers", "1", "--json")


def test_the_bar_is_on_stderr_only(folder):
    code, out, shown = on_terminal([sys.executable, "-c", CLOCKED, "1.5", *FIT])
    assert code == 0
    assert json.loads(out)["command"] == "fit"
    assert "vb starts" in shown
    assert "/4" in shown


def test_no_bar_within_the_first_second(folder):
    code, out, shown = on_terminal([sys.executable, "-c", CLOCKED, "0.0", *FIT])
    assert (code, shown) == (0, "")
    assert json.loads(out)["command"] == "fit"


def test_no_bar_and_no_empty_line_where_stderr_is_no_terminal(done, monkeypatch):
    """Beyond the patience of a bar, within the interval of lines."""
    monkeypatch.setattr("lurking.runtime.progress.monotonic", itertools.count(0.0, 1.5).__next__)
    outcome = done(*FIT)
    assert outcome.err == ""
    assert outcome.json["command"] == "fit"
