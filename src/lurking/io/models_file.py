"""Lists of models as text: one model per line, ``name: arrows``.

``#`` begins a comment; the name may be left out, the arrows are then the name; hidden cardinalities stand in brackets
at first mention, and a range stands for several models::

    two causes: s1[2] -> a b; s2[2] -> b c
    classes:    class[1..5] -> *
"""

from __future__ import annotations

from pathlib import Path

from lurking.errors import DataError, FormatError, StructureError
from lurking.graph.dag import Dag
from lurking.graph.parse import expand_ranges
from lurking.io.networks import is_bif, read_network


def parse_models(text: str, source: str = "the text") -> dict[str, Dag]:
    """Return {name: structure} in the order of the lines; errors name the line."""
    models: dict[str, Dag] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, arrows = _split_name(line)
        if not name:
            raise FormatError(f"{source}, line {number}: a colon without a name; write 'name: a[2] -> b c'")
        if not arrows:
            raise FormatError(f"{source}, line {number}: model {name!r} has no arrows; write 'name: a[2] -> b c'")
        if name in models:
            raise FormatError(f"{source}, line {number}: model name {name!r} was used before; names must differ")
        if is_bif(arrows):
            models[name] = read_network(arrows).dag
            continue
        try:
            for key, text in expand_ranges(arrows).items():
                label = text if name == arrows else f"{name} ({key})" if key else name
                models[label] = Dag.parse(text)
        except StructureError as error:
            raise FormatError(f"{source}, line {number}: {error}") from None
    if not models:
        raise FormatError(f"{source} holds no model; write one per line, for example 'two classes: class[2] -> *'")
    return models


def _split_name(line: str) -> tuple[str, str]:
    """Split ``name: arrows`` at the first colon outside quotes and before any arrow."""
    quoted = False
    for position, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif not quoted and line[position : position + 2] in ("->", "<-"):
            break
        elif not quoted and character == ":":
            return line[:position].strip(), line[position + 1 :].strip()
    return line, line


def read_models(path: str | Path) -> dict[str, Dag]:
    """Read a file of models."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise FormatError(f"{str(path)!r} is not UTF-8 text; save it as UTF-8") from None
    return parse_models(text, repr(str(path)))
