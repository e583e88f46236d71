"""Tables on disk hold what tables in memory hold."""

import gc
import warnings

import numpy as np
import pandas as pd
import pytest

import lurking as lk
from lurking.data import disk, files
from lurking.errors import DataError, LurkingWarning, OptionError


@pytest.fixture
def small_memory(monkeypatch):
    """Make every row look too large for memory."""
    monkeypatch.setattr(files, "CELL_BYTES", 1 << 40)


def frame(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "answer": rng.choice(["no", "yes", "don't know"], rows),
            "count": rng.integers(-2, 300, rows),
            "flag": rng.random(rows) < 0.5,
            "many": [f"k{i}" for i in rng.integers(0, 300, rows)],
            "score": rng.normal(size=rows).round(3),
            "grade": rng.choice([1.0, 2.0, 3.0], rows),
        }
    )
    return data.mask(rng.random(data.shape) < 0.1)


def written(data, folder, kind):
    path = folder / f"data.{kind}"
    if kind == "parquet":
        data.to_parquet(path, index=False)
    else:
        data.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_columns_are_those_of_a_table_in_memory(tmp_path, small_memory, kind):
    data = frame().drop(columns="flag") if kind == "parquet" else frame()
    path = written(data, tmp_path, kind)
    on_disk = lk.read(path, memory="1GB", continuous=["score"])
    in_memory = lk.read(path, continuous=["score"])
    assert on_disk.is_on_disk
    assert not in_memory.is_on_disk
    assert on_disk.columns == in_memory.columns
    assert on_disk.n_rows == in_memory.n_rows == on_disk.n
    for name in in_memory.columns:
        one, other = on_disk[name], in_memory[name]
        assert (one.kind, one.levels, one.declared) == (other.kind, other.levels, other.declared)
        assert np.array_equal(one.codes, other.codes)
        assert np.array_equal(one.values, other.values, equal_nan=True)
    assert on_disk["answer"].codes.dtype == np.int8
    assert on_disk["many"].codes.dtype == np.int16


def test_weights_are_read_along(tmp_path, small_memory):
    data = frame().assign(w=np.arange(500) / 4)
    table = lk.read(written(data, tmp_path, "csv"), weights="w", memory="1GB")
    assert table.has_weights
    assert table.weights == pytest.approx(np.arange(500) / 4)
    data.loc[300, "w"] = -1.0
    with pytest.raises(DataError, match=r"the weight in row 301 of 'w' is '-1.0'"):
        lk.read(written(data, tmp_path, "csv"), weights="w", memory="1GB")


def test_an_identifier_is_left_out_with_a_word_and_many_numbers_are_continuous(tmp_path, small_memory, monkeypatch):
    monkeypatch.setattr(disk, "MOST_LEVELS", 50)
    data = pd.DataFrame({"name": [f"p{i}" for i in range(200)], "size": np.arange(200) / 7, "sick": np.arange(200) % 2})
    for kind in ("csv", "parquet"):
        with pytest.warns(LurkingWarning, match="'name' has more than 50 different values"):
            table = lk.read(written(data, tmp_path, kind), memory="1GB")
        assert table.columns == ("size", "sick")
        assert table["size"].kind == "continuous"
        assert np.array_equal(table["size"].values, data["size"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lk.read(written(data, tmp_path, "csv"), memory="1GB", drop=["name"]).columns == ("size", "sick")


def test_the_folder_goes_with_the_table(tmp_path, small_memory):
    table = lk.read(written(frame(), tmp_path, "csv"), memory="1GB")
    folder = table.home.folder
    assert any(folder.iterdir())
    part = table.select(["answer", "grade"])
    del table
    gc.collect()
    assert part["answer"].levels == ("don't know", "no", "yes")
    assert folder.exists()
    del part
    gc.collect()
    assert not folder.exists()


def test_the_digest_does_not_depend_on_the_order_of_rows(tmp_path, small_memory):
    data = frame()
    first = lk.read(written(data, tmp_path, "csv"), memory="1GB").digest
    assert lk.read(written(data.sample(frac=1.0, random_state=1), tmp_path, "csv"), memory="1GB").digest == first
    data.loc[7, "answer"] = "no" if data.loc[7, "answer"] != "no" else "yes"
    assert lk.read(written(data, tmp_path, "csv"), memory="1GB").digest != first


def test_rows_that_fit_are_merged_in_memory(tmp_path):
    data = frame()[["answer", "grade"]]
    table = lk.read(written(data, tmp_path, "parquet"), unique=True, memory="200MB")
    assert not table.is_on_disk
    assert table.n_rows <= 16
    assert table.n == 500
    assert table.digest == lk.read(tmp_path / "data.parquet").digest


def test_progress_is_told(tmp_path, small_memory):
    told = []

    class Teller:
        def begin(self, what, total):
            told.append((what, total))

        def update(self, done):
            told.append(done)

        def end(self):
            told.append("end")

    lk.read(written(frame(), tmp_path, "parquet"), memory="1GB", progress=Teller())
    assert told == [("rows read", 500), 500, "end"]


@pytest.mark.parametrize("memory", ["much", "1", "0GB", "-1GB", "1 XB", 0, -5, True, 1.5])
def test_a_memory_that_is_no_size(tmp_path, memory):
    with pytest.raises(OptionError, match="give a size such as 500MB"):
        lk.read(written(frame(), tmp_path, "csv"), memory=memory)


def test_too_little_memory_tells_the_least(tmp_path):
    with pytest.raises(OptionError, match=r"memory is '10MB'; the least .* is 160 MiB"):
        lk.read(written(frame(), tmp_path, "csv"), memory="10MB")


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
def test_only_some_columns(tmp_path, kind):
    data = frame()
    path = tmp_path / f"data.{kind}"
    data.to_json(path, orient="records") if kind == "json" else written(data, tmp_path, kind)
    table = lk.read(path, columns=["grade", "answer"], weights=None)
    assert table.columns == ("answer", "grade")
    assert lk.read(path, columns="grade").columns == ("grade",)
    with pytest.raises(DataError, match=r"columns= names 'grades', .*did you mean 'grade'"):
        lk.read(path, columns=["grades"])


def awkward(kind):
    """Return a frame with what readers trip over."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame(
        {
            "zero": np.where(rng.random(400) < 0.5, 0.0, -0.0) + rng.integers(0, 2, 400),
            "nothing": pd.Series([None] * 400, dtype="object" if kind == "csv" else "float64"),
            "blank": rng.choice(["a", " ", "b"], 400),
            "coded": rng.choice([1, 2, -999], 400).astype(str),
            "many": [str(x) if x != 7 else "-999" for x in range(400)],
            "third": (rng.integers(0, 9, 400) / 3),
        }
    )
    data.loc[5, "third"] = np.nan
    return data


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "options", [{}, {"na_values": ["-999"]}, {"categorical": ["third"]}, {"levels": {"blank": ["b", "a"]}}]
)
def test_the_two_readers_agree_on_awkward_columns(tmp_path, monkeypatch, kind, options):
    path = written(awkward(kind), tmp_path, kind)
    if options.get("levels"):
        options = {**options, "na_values": ["", " "]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LurkingWarning)
        in_memory = lk.read(path, **options)
        monkeypatch.setattr(files, "CELL_BYTES", 1 << 40)
        on_disk = lk.read(path, memory="1GB", **options)
    assert on_disk.is_on_disk
    for name in in_memory.columns:
        one, other = on_disk[name], in_memory[name]
        assert (one.kind, one.levels, one.n_missing) == (other.kind, other.levels, other.n_missing), name
        assert np.array_equal(one.codes, other.codes)
        assert np.array_equal(one.values, other.values, equal_nan=True)


def test_missing_texts_among_many_numbers(tmp_path, small_memory, monkeypatch):
    monkeypatch.setattr(disk, "MOST_LEVELS", 50)
    path = tmp_path / "many.csv"
    path.write_text("x,y\n" + "".join(f"{'-999' if i % 10 == 0 else i / 7},{i % 2}\n" for i in range(300)))
    table = lk.read(path, memory="1GB", na_values=["-999"])
    assert table["x"].kind == "continuous"
    assert table["x"].n_missing == 30
    path.write_text("x,y\n" + "".join(f"{i / 7 if i else 'inf'},{i % 2}\n" for i in range(300)))
    with pytest.raises(DataError, match="'x' holds an infinite number"):
        lk.read(path, memory="1GB")


def test_messages_name_rows_of_the_file(tmp_path, small_memory):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{'oops' if i == 37 else i % 5},{i % 2}\n" for i in range(90)))
    with pytest.raises(DataError, match="row 38"):
        lk.read(path, memory="1GB", continuous=["x"])
    path.write_text("x,y\n" + "".join(f"{'oops' if i == 37 else i},{i % 2}\n" for i in range(90)))
    with pytest.warns(LurkingWarning, match="'oops' in row 38"):
        lk.read(path, memory="1GB")


def test_names_are_checked_as_in_memory(tmp_path, small_memory):
    path = written(frame(), tmp_path, "csv")
    with pytest.raises(DataError, match="weights names 'nope'"):
        lk.read(path, weights="nope", memory="1GB")
    with pytest.raises(DataError, match="in weights= and in drop="):
        lk.read(path, weights="grade", drop=["grade"], memory="1GB")


def test_nested_and_dated_columns_are_refused_as_in_memory(tmp_path, small_memory):
    path = tmp_path / "odd.parquet"
    pd.DataFrame({"a": [[1], [2]], "b": [1, 2]}).to_parquet(path)
    with pytest.raises(DataError, match="nested"):
        lk.read(path, memory="1GB")
    pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2021-01-01"]), "b": [1, 2]}).to_parquet(path)
    with pytest.raises(DataError, match="dates"):
        lk.read(path, memory="1GB")


def test_the_digest_sees_numbers(tmp_path, small_memory):
    data = frame()
    first = lk.read(written(data, tmp_path, "parquet"), memory="1GB", drop=["flag"], continuous=["score"]).digest
    data["score"] += 1.0
    assert (
        lk.read(written(data, tmp_path, "parquet"), memory="1GB", drop=["flag"], continuous=["score"]).digest != first
    )


def test_codes_that_look_like_numbers_stay_text(tmp_path, small_memory, monkeypatch):
    monkeypatch.setattr(disk, "MOST_LEVELS", 50)
    path = tmp_path / "codes.csv"
    path.write_text("a,b\n" + "".join(f"{i:05d},{i % 2}\n" for i in range(200)))
    with pytest.warns(LurkingWarning, match="'a' has more than 50 different values"):
        assert lk.read(path, memory="1GB").columns == ("b",)
    pd.DataFrame({"a": [str(i) for i in range(200)], "b": 1}).to_parquet(tmp_path / "codes.parquet")
    with pytest.warns(LurkingWarning, match="'a' has more than 50 different values"):
        assert lk.read(tmp_path / "codes.parquet", memory="1GB").columns == ("b",)


def test_what_memory_refuses_disk_refuses(tmp_path, small_memory, monkeypatch):
    monkeypatch.setattr(disk, "MOST_LEVELS", 50)
    path = tmp_path / "slips.csv"
    path.write_text("a,b\n" + "".join(f"{'abc' if i == 77 else i},{i % 2}\n" for i in range(200)))
    with pytest.raises(DataError, match="column 'a', row 78: 'abc' is not a number"):
        lk.read(path, memory="1GB", continuous=["a"])
    for options in ({"levels": {"a": [0, 1]}}, {"categorical": ["a"]}):
        with pytest.raises(DataError, match="'a' is declared categorical and has more than 50"):
            lk.read(path, memory="1GB", **options)
    days = pd.date_range("2020-01-01", periods=200)
    pd.DataFrame({"a": days, "b": 1}).to_parquet(tmp_path / "days.parquet")
    with pytest.raises(DataError, match="dates"):
        lk.read(tmp_path / "days.parquet", memory="1GB")


def test_a_missing_cell_is_not_one_more_level(tmp_path, small_memory, monkeypatch):
    monkeypatch.setattr(disk, "MOST_LEVELS", 20)
    path = tmp_path / "levels.csv"
    path.write_text("a,b\n" + "".join(f"{'k' + str(i % 20) if i else ''},{i % 2}\n" for i in range(200)))
    assert lk.read(path, memory="1GB")["a"].cardinality == 20
