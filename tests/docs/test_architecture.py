"""The tree on the page of the architecture has every module in it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lurking"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MAP = PAGE.split("```")[1]
TREE = PAGE.split("## Modules")[1].split("```")[1]
ROOMS = {"cli": "one file per verb", "evidence": "one file per score", "kernels": "reference (NumPy), cpu (Numba)"}
"""Packages that are told in one phrase."""


PACKAGES = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
PARTS = re.split(r"\n  (?=\w)", TREE)[1:]
"""One for each line of rooms, what is in them included."""


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_the_page_names_every_module(package):
    (part,) = (part for part in PARTS if f"{package}/" in part.split("  ")[0])
    if package in ROOMS:
        assert ROOMS[package] in part
        return
    modules = {path.stem for path in (SOURCE / package).rglob("*.py")} - {"__init__"}
    assert modules
    assert {name for name in modules if not re.search(rf"\b{name}\b", part)} == set()


def test_the_page_names_no_package_that_is_gone():
    named = {name for part in PARTS for name in re.findall(r"(\w+)/", part.split("  ")[0])}
    assert named == PACKAGES


def test_the_map_fits_on_a_screen_and_names_every_package():
    begin, end = PAGE.index("## The map"), PAGE.index("Two contracts")
    assert PAGE[begin:end].count("\n") < 40
    assert {name for name in PACKAGES if f"{name}/" not in MAP} == set()
