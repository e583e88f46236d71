"""Import cycles of a package: ``python tests/import_cycles.py`` ends with 1 and names them if there are any.

Every import statement counts, deferred ones and those under TYPE_CHECKING too, and with a module the packages around
it, since Python runs their `__init__` first.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

SOURCE = Path(__file__).parents[1] / "src" / "lurking"
LAZY = frozenset({"lurking", "lurking.search"})
"""Packages that import nothing until a public name is asked for: what they offer is not counted as an import."""


def modules_of(source: Path) -> dict[str, Path]:
    """Return {dotted name: file} of a package and all modules in it."""
    names = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules among the known ones that a file imports anywhere in its text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                name = inside if inside in known else node.module
                if name in known:
                    yield name


def with_packages(name: str) -> Iterator[str]:
    """Yield a dotted name and those of the packages around it."""
    parts = name.split(".")
    yield from (".".join(parts[:length]) for length in range(len(parts), 0, -1))


def cycles(source: Path, lazy: frozenset[str] = LAZY) -> list[list[str]]:
    """Return the groups of modules that import each other, the modules of each sorted."""
    known = modules_of(source)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(known)
    for name, path in known.items():
        if name in lazy:
            continue
        for own in (name, *imported(path, known)):
            graph.add_edges_from((name, package) for package in with_packages(own) if package in known)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return sorted(sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)


def main() -> int:
    """Print the cycles of the package."""
    found = cycles(SOURCE)
    for group in found:
        sys.stdout.write(f"import cycle: {', '.join(group)}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
