"""The budget of processor seconds per folder that a run of the tests prints."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

from budget import BUDGETS, PROPERTY, Budget, folder_of

TESTS = Path(__file__).parents[1]


def report(nodeid, seconds, when="teardown"):
    return SimpleNamespace(nodeid=nodeid, user_properties=[(PROPERTY, seconds)], when=when)


def test_every_folder_with_tests_has_a_budget():
    folders = {folder_of(path.relative_to(TESTS.parent).as_posix()) for path in TESTS.rglob("test_*.py")}
    assert set(tomllib.loads(BUDGETS.read_text())["quick"]) == folders


def test_folders_of_tests():
    assert folder_of("tests/unit/models/discrete/test_prior.py::test_a[x/y]") == "unit/models"
    assert folder_of("tests/cli/test_help.py::test_b") == "cli"


def test_folders_over_their_budget_are_named_with_their_slowest_tests():
    budget = Budget({"cli": 2, "docs": 5})
    for nodeid, seconds in (("tests/cli/test_a.py::one", 0.5), ("tests/cli/test_a.py::two", 3.0)):
        budget.pytest_runtest_logreport(report(nodeid, seconds))
        budget.pytest_runtest_logreport(report(nodeid, 100.0, when="call"))
    budget.pytest_runtest_logreport(report("tests/docs/test_b.py::three", 4.0))
    budget.pytest_runtest_logreport(report("tests/unit/new/test_c.py::four", 0.25))
    assert [" ".join(line.split()) for line in budget.lines()] == [
        "docs 4.0 s of 5 s",
        "cli 3.5 s of 2 s over budget",
        "3.0 s cli/test_a.py::two",
        "0.5 s cli/test_a.py::one",
        "unit/new 0.2 s of no budget",
        "all 7.8 s of 7 s",
    ]
