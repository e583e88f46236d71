"""Source trees of the library: where they are, and the environment of a program that runs one of them."""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The tree that this script belongs to."""
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def source_of(tree: Path) -> Path:
    """Return the folder of the tree that Python imports `lurking` from."""
    source = tree.resolve() / "src"
    if not (source / "lurking" / "__init__.py").is_file():
        raise SystemExit(f"{tree} is not a source tree; it must contain src/lurking")
    return source


def kernels_digest(source: Path) -> str:
    """Return a digest of the tree's place and of every file that defines a compiled function, wherever that is.

    Numba does not notice a change in another file than the one that it compiles. With a cache for every state of the
    kernels no tree runs kernels that are out of date.
    """
    digest = hashlib.sha256(str(source).encode())
    for path in sorted(source.rglob("*.py")):
        text = path.read_bytes()
        if b"numba" in text or "kernels" in path.parts:
            digest.update(str(path.relative_to(source)).encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which Python imports `lurking` from the tree, on one thread of linear algebra."""
    source = source_of(tree)
    cache = ROOT / ".cache" / "numba" / f"tree-{kernels_digest(source)}"
    own = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    return {**os.environ, **own, **dict.fromkeys(ONE_THREAD, "1")}
