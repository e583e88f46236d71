"""File formats: one file per format, parse and format on text, read and write on paths."""
