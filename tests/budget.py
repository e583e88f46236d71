"""Processor seconds of the tests, folder by folder, against a budget: `make test` must stay short as tests are added.

Counted is what the test process and the processes it waits for use, not what the clock shows, so that other work on
the machine hardly matters. The budgets are in `budget.toml`. No test fails by them.
"""

import os
import tomllib
from collections import Counter
from pathlib import Path

import pytest

PROPERTY = "processor seconds"
BUDGETS = Path(__file__).with_name("budget.toml")
BEGAN = pytest.StashKey[float]()
SLOWEST = 8
"""Tests that are listed when a folder is over its budget."""


def processor_seconds():
    """Return the processor seconds of this process, its threads and the processes it has waited for."""
    return sum(os.times()[:4])


def folder_of(test):
    """Return the folder that the budget of a test belongs to, such as "unit/search" or "cli"."""
    parts = test.partition("::")[0].split("/")[1:-1]
    return "/".join(parts[: 2 if parts[:1] == ["unit"] else 1])


class Budget:
    """A pytest plugin that adds up processor seconds and prints them at the end, for all workers together."""

    def __init__(self, budgets):
        self.budgets = budgets
        self.seconds, self.tests = Counter(), Counter()

    @classmethod
    def read(cls, is_long):
        """Return the plugin with the budgets of the quick tests or of the long ones."""
        return cls(tomllib.loads(BUDGETS.read_text(encoding="utf-8"))["long" if is_long else "quick"])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """Begin to measure a test; a fixture counts for the first test that needs it."""
        item.stash[BEGAN] = processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Hand the seconds over with the last report of a test."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append((PROPERTY, processor_seconds() - item.stash[BEGAN]))
        return report

    def pytest_runtest_logreport(self, report):
        """Add up a test, which another process may have run."""
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "teardown":
                self.seconds[folder_of(report.nodeid)] += value
                self.tests[report.nodeid] += value

    def lines(self):
        """Return the table: folder, seconds, budget; then the slowest tests of folders over their budget."""
        result = []
        for folder, seconds in sorted(self.seconds.items(), key=lambda pair: -pair[1]):
            budget = self.budgets.get(folder)
            shown = "no budget" if budget is None else f"{budget:5} s"
            verdict = "   over budget" if budget is not None and seconds > budget else ""
            result.append(f"{folder:24} {seconds:7.1f} s of {shown}{verdict}")
            if verdict:
                of_folder = [(test, own) for test, own in self.tests.most_common() if folder_of(test) == folder]
                result += [f"    {own:5.1f} s {test.partition('/')[2]}" for test, own in of_folder[:SLOWEST]]
        total, allowed = sum(self.seconds.values()), sum(self.budgets.get(folder, 0) for folder in self.seconds)
        return [*result, f"{'all':24} {total:7.1f} s of {allowed:5} s"]

    def pytest_terminal_summary(self, terminalreporter):
        """Print the table, unless pytest is told to be even more quiet than it is set to be."""
        if self.seconds and terminalreporter.config.get_verbosity() >= -1:
            terminalreporter.section("processor seconds, and budgets of tests/budget.toml")
            for line in self.lines():
                terminalreporter.line(line)
