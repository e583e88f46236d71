"""The command `lurking`: one file per verb; parses, calls, prints; no mathematics."""
