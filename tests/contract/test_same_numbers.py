"""The net under moves of code: records of what the library computes, and speed against another tree."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from lurking.evidence import registry  # noqa: F401 - fills the registry
from lurking.evidence.evaluation import score_names

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
GROUP = "tables"


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """Make the scripts of the benchmarks importable for this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Return the path of a record of one small group."""
    import same_numbers

    path = tmp_path_factory.mktemp("numbers") / "numbers.json"
    assert same_numbers.main(["dump", str(path), "--only", GROUP]) == 0
    return path


def test_unchanged_tree_equals_its_record(record, capfd):
    import same_numbers

    keys = sum(key.startswith(GROUP) for key in json.loads(record.read_text()))
    assert same_numbers.main(["compare", str(record), "--only", GROUP]) == 0
    assert capfd.readouterr().out == f"0 of {keys} keys differ\n"


def test_changed_value_is_found(record, tmp_path, capfd, monkeypatch):
    import same_numbers

    # What the tree computes is the record itself, as the test before has found.
    monkeypatch.setattr(same_numbers, "record", lambda path, *_: shutil.copy(record, path) and 0)

    numbers = json.loads(record.read_text())
    key = f"{GROUP}/bundled/carcinoma/weights"
    weights = numbers[key]["values"]
    assert float.fromhex(weights[0]) == 34.0
    weights[0] = math.nextafter(34.0, 35.0).hex()
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(numbers))
    assert same_numbers.main(["compare", str(changed), "--only", GROUP]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith(f"{key}: 34.00000000000001 (0x1.1000000000001p+5) -> 34.0 (0x1.1000000000000p+5)")
    assert lines[-1].startswith("1 of ")


def test_every_bit_of_a_value_is_recorded():
    from numbers_record import differences, encoded

    values = [0.1, -0.0, math.inf, math.nan, 5e-324]
    again = [float.fromhex(text) for text in encoded(values)]
    assert np.asarray(again).tobytes() == np.asarray(values).tobytes()
    old, new = {"x": encoded(0.0)}, {"x": encoded(-0.0)}
    assert [found.key for found in differences(old, new)] == ["x"]
    assert differences(old, new, relative=1e-12) == []


def test_differences_name_worst_pair_and_number_of_pairs():
    from numbers_record import differences, encoded

    old = {"a": encoded(np.asarray([1.0, 2.0, 3.0])), "b": encoded(1.0)}
    new = {"a": encoded(np.asarray([1.0, 2.0 + 1e-9, 3.0 + 1e-14])), "b": encoded(1.0)}
    (found,) = differences(old, new)
    assert (found.key, found.count) == ("a", 2)
    assert found.relative == pytest.approx(5e-10, rel=1e-5)
    assert [entry.count for entry in differences(old, new, relative=1e-12)] == [1]
    assert differences(old, new, relative=1e-9) == []


@pytest.mark.parametrize("new", [{}, {"a": "CONVERGED"}, {"a": None}, {"a": ["0x1.0000000000000p+0"]}, {"a": "inf"}])
def test_tolerance_hides_no_other_kind_of_difference(new):
    from numbers_record import differences, encoded

    assert len(differences({"a": encoded(1.0)}, new, relative=1e-3)) == 1
    assert len(differences(new, {"a": encoded(1.0)}, relative=1e-3)) == 1


def test_one_entry_of_a_long_array_is_found_unless_tolerated():
    from numbers_record import LONGEST, differences, encoded

    values = np.random.default_rng(0).normal(size=4 * LONGEST)
    changed = values.copy()
    changed[17] = np.nextafter(changed[17], np.inf)
    swapped = values[::-1].copy()
    assert len(differences({"a": encoded(values)}, {"a": encoded(changed)})) == 1
    assert differences({"a": encoded(values)}, {"a": encoded(changed)}, relative=1e-12) == []
    assert len(differences({"a": encoded(values)}, {"a": encoded(swapped)}, relative=1e-12)) == 1


def test_every_score_is_recorded():
    import numbers_learning

    assert set(numbers_learning.SCORES) == set(score_names())


@pytest.mark.parametrize("pattern", ["numbers_*.py", "same_numbers.py", "against_work.py"])
def test_records_and_benchmarks_outlive_moves_of_modules(pattern):
    paths = list(BENCHMARKS.glob(pattern))
    assert paths
    for path in paths:
        assert not re.search(r"(from|import) lurking\.", path.read_text()), path.name


def test_interval_of_a_median_is_that_of_order_statistics():
    from against import Interval

    ratios = [1.0 + k / 100.0 for k in range(15)]
    assert Interval.of(ratios[::-1]) == (ratios[3], ratios[7], ratios[11])  # 96.5 %; one rank further in is 88.2 %
    assert Interval.of(ratios[:6]) == (ratios[0], pytest.approx(1.025), ratios[5])
    assert Interval.of([1.0] * 14 + [9.0]).is_within
    assert not Interval.of([1.0] * 10 + [1.04] * 5).is_within
