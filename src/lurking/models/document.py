"""The lossless file format of a network: versioned JSON, one object per node."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lurking.errors import DataError, FormatError, LurkingError
from lurking.graph.dag import Dag
from lurking.models.layout import Layout
from lurking.models.ties import Ties, checked_ties
from lurking.types import FloatArray, Level

FORMAT = "lurking-network"
VERSION = 1
VERSION_WITH_TIES = 2
"""A reader that knows no ties would forget them."""


class Document(NamedTuple):
    """The content of a network file."""

    dag: Dag
    levels: dict[str, tuple[Level, ...]]
    theta: FloatArray
    alpha: FloatArray | None
    about: dict[str, Any]
    tied: Ties = ()


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {"lurking": version("lurking"), "numpy": np.__version__, "python": platform.python_version()}


def plain(value: Any) -> Any:
    """Return NumPy scalars and arrays as plain Python values, so that JSON keeps their type."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def format_document(document: Document) -> str:
    """Return the JSON text of a network."""
    layout = Layout(document.dag, {name: len(levels) for name, levels in document.levels.items()})
    tables = layout.split(document.theta)
    alphas = layout.split(document.alpha) if document.alpha is not None else {}
    nodes = []
    for name in document.dag.nodes:
        node: dict[str, Any] = {
            "name": name,
            "hidden": name in document.dag.hidden,
            "levels": plain(document.levels[name]),
            "parents": list(document.dag.parents(name)),
            "table": tables[name].tolist(),
        }
        if name in alphas:
            node["alpha"] = alphas[name].tolist()
        nodes.append(node)
    version_of_file = VERSION_WITH_TIES if document.tied else VERSION
    content = {"format": FORMAT, "version": version_of_file, "about": plain(document.about), "nodes": nodes}
    if document.tied:
        content["tied"] = plain(document.tied)
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def parse_document(text: str, source: str = "the text") -> Document:
    """Return the network in a JSON text, refusing anything else with the reason."""
    try:
        content = json.loads(text)
    except RecursionError:
        raise FormatError(f"{source} is JSON nested too deeply; expected a {FORMAT} file") from None
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{source} is not JSON (line {error.lineno}, column {error.colno}); expected a {FORMAT} file"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FormatError(
            f"{source} is JSON but no {FORMAT} file; write one with 'lurking fit … --out' or Network.save"
        )
    if content.get("version") not in (VERSION, VERSION_WITH_TIES):
        raise FormatError(
            f"{source} has format version {content.get('version')!r}; this lurking reads versions {VERSION} and "
            f"{VERSION_WITH_TIES}, update it"
        )
    try:
        return _document_of(content)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{source} is a damaged {FORMAT} file: {type(error).__name__} {error}") from None
    except LurkingError as error:
        raise FormatError(f"{source} is a damaged {FORMAT} file: {error}") from None


def _document_of(content: dict[str, Any]) -> Document:
    nodes = content["nodes"]
    names = [node["name"] for node in nodes]
    levels = {node["name"]: tuple(node["levels"]) for node in nodes}
    for name, states in levels.items():
        if any(isinstance(level, list | dict) or level is None for level in states) or len(set(states)) < len(states):
            raise ValueError(f"the levels of {name!r} are not different texts, numbers or truth values")
    hidden = {node["name"]: len(node["levels"]) for node in nodes if node["hidden"]}
    edges = [(parent, node["name"]) for node in nodes for parent in node["parents"]]
    dag = Dag.from_edges(edges, nodes=names, hidden=hidden)
    cardinalities = {name: len(states) for name, states in levels.items()}
    tied = checked_ties(dag, cardinalities, content.get("tied"))
    # Joined once over the shared places: that refuses tied tables which differ.
    Layout(dag, cardinalities, tied).join({node["name"]: node["table"] for node in nodes})
    layout = Layout(dag, cardinalities)
    theta = layout.join({node["name"]: node["table"] for node in nodes})
    if not (np.all(theta >= 0.0) and np.allclose(layout.row_sums(theta), 1.0, rtol=0.0, atol=1e-6)):
        raise ValueError("a table has a negative entry or a row that does not sum to 1")
    alpha = None
    if all("alpha" in node for node in nodes):
        alpha = layout.join({node["name"]: node["alpha"] for node in nodes})
        if not np.all(np.isfinite(alpha) & (alpha > 0.0)):
            raise ValueError("an entry of alpha is not positive and finite")
    return Document(dag, levels, theta, alpha, dict(content.get("about", {})), tied)


def write_document(path: str | Path, document: Document) -> None:
    """Write a network file: beside its place first, then renamed, so that a crash never leaves half a file."""
    target = Path(path)
    text = format_document(document)
    temporary = target.with_name(target.name + ".part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(f"cannot write {str(target)!r}: {error.strerror}; choose another place") from None


def read_document(path: str | Path) -> Document:
    """Read a network file."""
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot read {str(source)!r}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise FormatError(f"{str(source)!r} is not UTF-8 text; expected a {FORMAT} file") from None
    return parse_document(text, repr(str(source)))
