"""Reading and writing a network whatever its file format; the ending of the path says which."""

from __future__ import annotations

from pathlib import Path

from lurking.inference.network import Network
from lurking.io.bif import read_bif, write_bif

BIF_ENDINGS = (".bif", ".bif.gz")


def is_bif(path: str | Path) -> bool:
    """Whether the ending says that a path is a BIF file; capitals do not matter."""
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
