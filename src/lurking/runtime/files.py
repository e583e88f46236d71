"""Files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from lurking.errors import DataError


def write_whole(path: Path, content: str | Callable[[Path], object]) -> Path:
    """Write a text, or what `content(path)` writes, beside its place first and rename it when it is whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=path.parent) as place:
            temporary = Path(place) / path.name
            if callable(content):
                content(temporary)
            else:
                temporary.write_text(content, encoding="utf-8")
            os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"cannot write {str(path)!r}: {error.strerror or error}; choose another folder") from None
    return path
