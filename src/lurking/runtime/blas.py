"""The threads of the linear algebra library, held at one where our own threads keep every core busy.

NumPy and SciPy each bring a copy of OpenBLAS with as many threads as there are cores. When several of our threads call
it at once, or other programs are at work, those threads wait for each other by spinning, and a factorisation takes
many times as long as on one thread. The number can be set at run time; where another library does the work, nothing is
done, and nothing depends on it but time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Final

PACKAGES: Final = ("numpy", "scipy")
FOLDERS: Final = ("{}.libs", "{}/.dylibs")
"""Where wheels put libraries: beside the package on Linux and Windows, within it on macOS."""
NAMES: Final = tuple(
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("64_", "", "_64_")
)


_lock: Final = Lock()
_held: Final[list[list[int]]] = []
"""The thread counts before each block that is open now: the first are those to go back to."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra run on the thread that calls it, for the time of the block; for all threads of the program.

    Blocks may overlap: threads are given back when the last one ends.
    """
    with _lock:
        _held.append([read() for read, _ in _switches()] if not _held else _held[0])
        _set([1] * len(_held[0]))
    try:
        yield
    finally:
        with _lock:
            counts = _held.pop()
            if not _held:
                _set(counts)


def _set(counts: list[int]) -> None:
    """Set the number of threads of each library."""
    for count, (_, write) in zip(counts, _switches(), strict=True):
        write(count)


@lru_cache(maxsize=1)
def _switches() -> tuple[tuple[Any, Any], ...]:
    """Return how to read and how to set the number of threads of each library that was found."""
    return tuple(pair for path in _libraries() if (pair := _switch(path)) is not None)


def _libraries() -> Iterator[Path]:
    """Yield the files of the libraries that came with NumPy and SciPy."""
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            packages = Path(spec.origin).parent.parent
            for folder in FOLDERS:
                yield from sorted(packages.joinpath(folder.format(package)).glob("*openblas*"))


def _switch(path: Path) -> tuple[Any, Any] | None:
    """Return the two functions of a library; None when it cannot be loaded or has none of the known names."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    for read, write in NAMES:
        if hasattr(library, read) and hasattr(library, write):
            return getattr(library, read), getattr(library, write)
    return None
