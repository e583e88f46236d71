"""The command `lurking`: one file per verb; parses, calls, prints; no mathematics."""

from lurking.cli.app import main

__all__ = ["main"]
