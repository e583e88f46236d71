"""Writing frames that the command produced."""

from __future__ import annotations

import os
from pathlib import Path

from lurking.errors import DataError
from lurking.types import Frame


def write_frame(frame: Frame, path: Path) -> None:
    """Write a pandas DataFrame by suffix, beside its place first and then renamed."""
    temporary = path.with_name(path.name + ".part")
    suffix = path.suffix.lower()
    if not path.parent.is_dir():
        raise DataError(f"cannot write {str(path)!r}: No such file or directory {str(path.parent)!r}; make it first")
    try:
        if suffix in (".csv", ".tsv"):
            frame.to_csv(temporary, index=False, sep="," if suffix == ".csv" else "\t")
        elif suffix in (".parquet", ".pq"):
            frame.to_parquet(temporary, index=False)
        else:
            raise DataError(f"cannot write {str(path)!r}: unknown suffix {suffix!r}; use .csv, .tsv or .parquet")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(f"cannot write {str(path)!r}: {error.strerror}; choose another place") from None
