"""A column of counts that was not named as weights gets a warning; other columns of that name do not."""

import itertools
import warnings

import pytest

import lurking as lk
from lurking.data.files import read
from lurking.errors import LurkingWarning

CELLS = list(itertools.product([0, 1], repeat=3))
COUNTS = [3, 0, 5, 1, 2, 2, 9, 4]


def columns(name="count", counts=COUNTS, cells=CELLS):
    """Return a table of counts as {name: values}."""
    return {"a": [a for a, _, _ in cells], "b": [b for _, b, _ in cells], "c": [c for _, _, c in cells], name: counts}


@pytest.mark.parametrize("name", ["count", "n", "Freq", " weights "])
def test_a_table_of_counts_without_weights_is_warned_of(name):
    with pytest.warns(LurkingWarning, match=rf"column '{name}' holds whole numbers.* use weights='{name}'"):
        lk.Table.from_columns(columns(name))


@pytest.mark.parametrize("unique", [False, True])
def test_a_file_of_counts_without_weights_is_warned_of(tmp_path, unique):
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(["a,b,count", "0,0,5", "0,1,2", "1,0,3", "1,1,7"]))
    with pytest.warns(LurkingWarning, match="use weights='count'"):
        read(path, unique=unique)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (columns("size"), {}),  # called something else
        (columns(counts=["few", "many"] * 4), {}),  # not numbers
        (columns(counts=[-1, *COUNTS[1:]]), {}),  # below zero
        (columns(counts=[0, 1] * 4), {}),  # a binary variable
        (columns(counts=[None, *COUNTS[1:]]), {}),  # not for every row
        (columns(cells=[(0, 0, 0), *CELLS[:7]]), {}),  # a row comes twice
        (columns(), {"weights": "count"}),
        (columns(), {"categorical": ["count"]}),
        (columns(), {"drop": ["count"]}),
        ({"n": [1, 2, 3]}, {}),  # nothing beside it
    ],
)
def test_other_columns_are_not_warned_of(values, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.Table.from_columns(values, **options)


def test_rows_that_a_file_holds_twice_are_not_cells_of_a_table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["a,b,n", "0,0,5", "0,0,5", "0,1,2", "1,0,3", "1,1,7"]))
    for unique in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read(path, unique=unique).n == 5
