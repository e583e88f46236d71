"""The comparison of reference cases: it passes on the cases kept here, and fails for each reason it should."""

import json
import shutil
from pathlib import Path

import pytest

from conformance.__main__ import KEYS, main
from conformance.comparison import Comparison, keys_of
from conformance.kinds import find_cases
from conformance.report import grouped, read_keys
from lurking.errors import PriorError, UndefinedScore

CASES = Path(__file__).parents[1] / "oracle" / "data"
QUICK = "discrete/nb02.json"


def changed(folder, change=bool):
    """Copy a case into a folder and change its numbers."""
    path = folder / QUICK
    path.parent.mkdir(exist_ok=True)
    numbers = json.loads((CASES / QUICK).read_text())
    change(numbers)
    path.write_text(json.dumps(numbers))
    return folder


@pytest.fixture
def compared(capsys):
    """Return a function that runs the command and returns its exit status and the lines that it prints."""

    def run(folder, *options):
        status = main([str(folder), *options])
        return status, capsys.readouterr().out.splitlines()

    return run


# Every third of the discrete cases has every key too; `oracle/test_discrete.py` takes all of them.
@pytest.mark.parametrize(
    ("kind", "step", "number"),
    [("discrete", 3, 14), pytest.param("discrete", 1, 42, marks=pytest.mark.long), ("class136", 1, 1)],
)
def test_cases_kept_here_agree_with_every_listed_key(tmp_path, compared, kind, step, number):
    folder = tmp_path / "cases"
    (folder / kind).mkdir(parents=True)
    for path in sorted(find_cases(CASES).cases[kind])[::step]:
        shutil.copy(path, folder / kind)
    keys = tmp_path / "keys.txt"
    status, lines = compared(folder, "--keys", str(keys), "--add-keys")
    assert status == 0, "\n".join(lines)
    found, _, cases = lines[-4].partition(" values agree in ")
    assert len(set(found.split(" of "))) == 1
    assert cases == ("1 case" if number == 1 else f"{number} cases")
    assert read_keys(keys)[kind] == read_keys(KEYS)[kind]


def test_every_file_of_the_cases_kept_here_is_a_case():
    found = find_cases(CASES)
    assert not found.unknown
    assert {kind: len(paths) for kind, paths in found.cases.items()} == {"discrete": 42, "class136": 1}


def test_report_ends_with_values_largest_difference_keys_and_unsupported_kinds(tmp_path, compared):
    changed(tmp_path)
    (tmp_path / "mixture").mkdir()
    for name in ("a", "b"):
        (tmp_path / "mixture" / f"{name}.json").write_text('{"X": [], "K": 1, "responsibilities0": []}')
    status, lines = compared(tmp_path)
    assert status == 0
    values, largest, keys, unsupported = lines[-4:]
    n_values = sum(1 for _ in keys_of(json.loads((CASES / QUICK).read_text())))
    agreed, of, total, *rest = values.split()
    assert (of, rest) == ("of", ["values", "agree", "in", "1", "case"])
    assert agreed == total
    assert int(total) > n_values
    assert float(largest.split()[2]) < 1e-10
    assert keys.endswith(" not compared")
    assert unsupported == "kinds not supported yet: mixture (2 cases)"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("exact.log_evidence", lambda numbers: numbers["exact"].update(log_evidence=-1.3862943629198906)),
        ("em.map.loglik[3]", lambda numbers: numbers["em"]["map"]["loglik"].__setitem__(3, 0.25)),
        ("structure.d", lambda numbers: numbers["structure"].update(d=6)),
        ("structure.S", lambda numbers: numbers["structure"].update(S=None)),
        ("vbem.alpha_after_5", lambda numbers: numbers["vbem"]["alpha_after_5"].pop()),
    ],
)
def test_changed_number_is_a_disagreement(tmp_path, compared, key, change):
    status, lines = compared(changed(tmp_path, change))
    assert status == 1
    disagreements = [line for line in lines if line.startswith("disagreement: ")]
    assert disagreements
    assert all(line.startswith(f"disagreement: {QUICK} {key}: ") for line in disagreements)


def test_folder_of_one_kind_and_cases_without_folders_are_read(tmp_path, compared):
    changed(tmp_path)
    assert compared(tmp_path / "discrete")[0] == 0
    (tmp_path / "discrete").rename(tmp_path / "further")
    assert compared(tmp_path / "further")[0] == 0


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("novel/one.json", "{}", "novel/ is not named after a kind"),
        ("novel.json", "{}", "novel.json is not a case of any known kind"),
        ("mixed/one.json", "{}", "mixed/one.json is not a case of the kind mixed"),
        ("discrete/broken.json", "{", "discrete/broken.json is not a JSON file"),
    ],
)
def test_unknown_kind_fails(tmp_path, compared, name, text, line):
    path = changed(tmp_path) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    status, lines = compared(tmp_path)
    assert status == 1
    assert f"unknown kind: {line}" in lines


def test_nothing_compared_fails(tmp_path, compared):
    assert compared(tmp_path / "nowhere") == (1, [f"{tmp_path / 'nowhere'} is not a folder"])
    status, lines = compared(tmp_path)
    assert status == 1
    assert lines[0] == "nothing was compared"
    path = tmp_path / "logistic" / "one.json"
    path.parent.mkdir()
    path.write_text('{"x": [], "U": [], "mu0": []}')
    status, lines = compared(tmp_path)
    assert status == 1
    assert lines[-1] == "kinds not supported yet: logistic (1 case)"


def test_key_that_an_earlier_tree_compared_must_be_compared(tmp_path, compared):
    keys = tmp_path / "keys.txt"
    keys.write_text("discrete structure.d\ndiscrete vbem.converged.iterations\ndiscrete key.of.other.cases\n")
    (tmp_path / "cases").mkdir()
    status, lines = compared(changed(tmp_path / "cases"), "--keys", str(keys))
    assert status == 1
    assert [line for line in lines if line.startswith("no longer compared")] == [
        "no longer compared: discrete vbem.converged.iterations"
    ]
    assert any(line.endswith("are not on the list of earlier ones; add them with --add-keys") for line in lines)


def test_error_in_a_case_is_one_line(tmp_path, compared):
    def loop(numbers):
        numbers["parents"][0] = [1]

    status, lines = compared(changed(tmp_path, loop))
    assert status == 1
    failures = [line for line in lines if line.startswith("disagreement: ")]
    assert len(failures) == 1
    assert failures[0].startswith(f"disagreement: {QUICK}: CycleError, ")


def refusing(error):
    raise error


@pytest.mark.parametrize("stored", [None, "inf", "-inf"])
@pytest.mark.parametrize("error", [UndefinedScore("no value"), PriorError("no mode")])
def test_refusal_agrees_with_a_value_that_is_undefined_or_infinite(stored, error):
    comparison = Comparison("one", {"a": stored, "b": 1.0})
    comparison.check("a", lambda: refusing(error))
    assert (comparison.outcome.n_agreed, comparison.outcome.n_values) == (1, 1)
    comparison.check("b", lambda: refusing(error))
    assert comparison.outcome.disagreements == [f"one b: expected 1.0; refused, {error}"]
    comparison.check("a", lambda: 1.0)
    assert len(comparison.outcome.disagreements) == 2
    assert comparison.outcome.n_agreed == 1


@pytest.mark.parametrize(
    ("found", "stored", "agrees"),
    [
        (2.0, 2.0 + 1.9e-9, True),
        (2.0, 2.0 + 2.1e-9, False),
        (9e-13, 0.0, True),
        (1.1e-12, 0.0, False),
        (float("nan"), 0.0, False),
        (float("inf"), "inf", True),
        (float("inf"), "-inf", False),
        (float("nan"), None, True),
        (0.0, None, False),
    ],
)
def test_tolerance(found, stored, agrees):
    comparison = Comparison("one", {"a": stored})
    comparison.check("a", lambda: found)
    assert (not comparison.outcome.disagreements) == agrees


def test_keys_have_no_list_indices():
    numbers = {"a": [{"b": [[1, 2]]}, {"c": None}], "d": [], "e": {}}
    assert set(keys_of(numbers)) == {"a.b", "a.c", "d", "e"}


def test_keys_are_shown_in_short():
    assert grouped(["a.x", "a.y", "b.x", "b.y", "c.x", "d"]) == "c.x d {a,b}.{x,y}"
