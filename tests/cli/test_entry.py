"""Ctrl-C while the command is still being imported."""

import subprocess
import sys

import pytest

INTERRUPTED_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                {then}

sys.meta_path.insert(0, Interrupting())
signal.signal(signal.SIGINT, signal.default_int_handler)
from lurking.cli.entry import main
main(["fit", "nowhere.csv", "--model", "c[2] -> *"])
"""


@pytest.mark.parametrize("name", ["typer", "numpy", "lurking.cli.app"])
@pytest.mark.parametrize("then", ["raise", "raise AttributeError('half of a module') from None", "pass"])
def test_an_interrupted_import_ends_in_one_line(name, then):
    text = INTERRUPTED_IMPORT.format(name=name, then=then)
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert run.stderr == "lurking: interrupted; nothing was finished\n"
    assert run.stdout == ""
    assert run.returncode == 130


def test_an_error_of_our_own_is_not_taken_for_an_interrupt(monkeypatch):
    from lurking.cli.entry import main

    monkeypatch.setattr("lurking.cli.app.main", lambda _arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["--version"])
