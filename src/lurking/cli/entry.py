"""Where the command starts: Ctrl-C is noted before anything heavy is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from lurking.cli.interrupts import Watch

NOTHING = "nothing was finished"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit; the verbs are imported here, so that Ctrl-C ends quietly from the start on."""
    told = NOTHING
    try:
        with Watch(is_last=arguments is None) as watch:
            told = _run(arguments, watch)
    except KeyboardInterrupt:
        pass
    sys.stderr.write(f"lurking: interrupted; {told}\n")
    sys.exit(130)


def _run(arguments: Sequence[str] | None, watch: Watch) -> str:
    """Run the command; return what was finished if it was interrupted and has not reported it."""
    try:
        watch.is_patient = False
        from lurking.cli.app import main as run

        watch.is_patient = True
        if not watch.is_noted:
            run(arguments)
    except SystemExit as ending:
        if ending.code or not watch.is_noted:
            raise
        return "the work was already finished"  # no part of it that can end early was running any more
    except Exception:
        # An extension module that is interrupted while it is imported may fail with an error of its own.
        if not watch.is_noted:
            raise
    return NOTHING
