"""The entry of the command: verbs, and one handler that turns every error into one line and an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from lurking.cli.calibrate import calibrate
from lurking.cli.compare import compare
from lurking.cli.demo import demo
from lurking.cli.fit import fit
from lurking.cli.interrupts import is_noted
from lurking.cli.output import Interrupted, ReaderGone, in_command_words, say, warn
from lurking.cli.predict import predict
from lurking.cli.reproduce import reproduce
from lurking.cli.sample import sample
from lurking.cli.score import score
from lurking.cli.search import search
from lurking.errors import LurkingError, LurkingWarning

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

# Some releases of typer carry their own copy of click, so its base error is reached through typer's public names.
UsageProblem: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    name="lurking",
    help="How much evidence do the data hold for each structure with hidden variables?",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (fit, score, compare, search, predict, sample, calibrate, reproduce, demo):
    app.command(verb.__name__)(verb)


def _print_version(wanted: bool) -> None:
    if wanted:
        from lurking import __version__

        say(f"lurking {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Say how much evidence the data hold for each structure with hidden variables."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print the library's own warnings as one line each on stderr."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, LurkingWarning):
            warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LurkingWarning)
        warnings.showwarning = show
        yield


def _leave(message: object, code: int) -> NoReturn:
    if code == EXIT_BAD_INPUT and is_noted():  # the error is what became of the interrupt
        message, code = "interrupted; nothing was finished", EXIT_INTERRUPTED
    typer.echo(f"lurking: {in_command_words(str(message))}", err=True)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit: 0 done, 2 bad input or usage, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show θ shows ? instead
    if threading.current_thread() is threading.main_thread():
        # Ended by a batch system: leave as on any exit, so that files of tables on disk are removed.
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(EXIT_TERMINATED))
    try:
        with _warnings_in_one_line():
            words = list(arguments) if arguments is not None else None
            code = app(args=words, prog_name="lurking", standalone_mode=False)
        if code == EXIT_INTERRUPTED:  # typer has turned a KeyboardInterrupt into this
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except LurkingError as error:
        _leave(f"error: {error}", EXIT_BAD_INPUT)
    except MemoryError:
        _leave("error: out of memory; use a smaller model or a machine with more memory", EXIT_BAD_INPUT)
    except Interrupted as interruption:
        _leave(f"interrupted; {interruption}", EXIT_INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        _leave("interrupted; nothing was finished", EXIT_INTERRUPTED)
    except UsageProblem as problem:
        said = getattr(problem, "format_message", problem.__str__)()
        context = getattr(problem, "ctx", None)
        verb = "lurking" if context is None else context.command_path
        _leave(f"error: {said.rstrip('.')}; see '{verb} --help'", EXIT_BAD_INPUT)
    except SystemExit as ending:
        if ending.code != 1:
            raise
        _leave_quietly()  # typer itself found the pipe closed while printing help
    except ReaderGone:
        _leave_quietly()


def _leave_quietly() -> NoReturn:
    """End when nobody reads stdout any more: what Python still flushes at its end must go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)
