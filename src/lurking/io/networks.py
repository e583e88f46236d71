"""Reading and writing a network whatever its file format; the ending of the path says which."""

from __future__ import annotations

import os
from pathlib import Path

from lurking.data.messages import shown
from lurking.errors import DataError
from lurking.inference.network import Network
from lurking.io.bif import read_bif, write_bif

BIF_ENDINGS = (".bif", ".bif.gz")


def is_bif(path: str | Path) -> bool:
    """Whether the ending says that a path is a BIF file; capitals do not matter."""
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"the path is {shown(path)}; give the path of one file as text or as a Path")
    return Path(path).name.lower().endswith(BIF_ENDINGS)


def read_network(path: str | Path) -> Network:
    """Read a network file: BIF (``.bif``, ``.bif.gz``), or with any other ending what `Network.save` wrote."""
    return read_bif(path) if is_bif(path) else Network.load(path)


def write_network(network: Network, path: str | Path) -> None:
    """Write a network file: BIF (``.bif``, ``.bif.gz``), or with any other ending as `Network.save` does."""
    if is_bif(path):
        write_bif(network, path)
    else:
        network.save(path)
