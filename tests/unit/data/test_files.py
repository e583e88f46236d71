"""Reading files: formats, text rules, unique rows, and one line for everything that is wrong."""

import gzip
import json
import pathlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lurking.data import datasets
from lurking.data.files import DEFAULT_NA_VALUES, read
from lurking.data.table import Table
from lurking.errors import DataError, LurkingWarning

COLUMNS = {"a": [2, 1, None, 2], "t": ["y", None, "x, z", "y"], "s": [0.5, 1.25, None, 0.5], "w": [1, 2, 1, 3]}
CSV = 'a,t,s,w\n2,y,0.5,1\n1,,1.25,2\n,"x, z",,1\n2,y,0.5,3\n'


def refused(call, *parts):
    with pytest.raises(DataError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message


@pytest.fixture
def text_file(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def write_arrow_file(path):
    table = pa.table(COLUMNS)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def write_arrow_stream(path):
    table = pa.table(COLUMNS)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def records():
    return [{name: values[row] for name, values in COLUMNS.items()} for row in range(4)]


WRITERS = {
    "d.csv": lambda path: path.write_text(CSV),
    "d.CSV": lambda path: path.write_text(CSV),
    "crlf.csv": lambda path: path.write_bytes(CSV.replace("\n", "\r\n").encode()),
    "mark.csv": lambda path: path.write_bytes(b"\xef\xbb\xbf" + CSV.encode()),
    "d.csv.gz": lambda path: path.write_bytes(gzip.compress(CSV.encode())),
    "d.tsv": lambda path: pd.DataFrame(COLUMNS).to_csv(path, sep="\t", index=False),
    "d.tab": lambda path: pd.DataFrame(COLUMNS).to_csv(path, sep="\t", index=False),
    "semicolon.csv": lambda path: pd.DataFrame(COLUMNS).to_csv(path, sep=";", index=False),
    "quoted.csv": lambda path: pd.DataFrame(COLUMNS).to_csv(path, sep=";", index=False, quoting=1),
    "bar.csv": lambda path: pd.DataFrame(COLUMNS).to_csv(path, sep="|", index=False),
    "d.json": lambda path: path.write_text(json.dumps(records(), indent=1)),
    "d.jsonl": lambda path: path.write_text("\n".join(json.dumps(record) for record in records())),
    "lines.json": lambda path: path.write_text("\n\n".join(json.dumps(record) for record in records())),
    "d.parquet": lambda path: pa.parquet.write_table(pa.table(COLUMNS), path),
    "d.pq": lambda path: pd.DataFrame(COLUMNS).to_parquet(path),
    "d.arrow": write_arrow_file,
    "d.ipc": write_arrow_stream,
    "d.feather": lambda path: pyarrow.feather.write_feather(pa.table(COLUMNS), str(path)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_table(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    expected = Table.from_columns(COLUMNS, weights="w")
    table = read(path, weights="w")
    assert table.columns == expected.columns
    for column in expected.columns:
        assert table[column].levels == expected[column].levels
        np.testing.assert_array_equal(table[column].codes, expected[column].codes)
        np.testing.assert_array_equal(table[column].values, expected[column].values)
    assert table.weights.tolist() == [1.0, 2.0, 1.0, 3.0]
    unique = read(str(path), weights="w", unique=True)
    assert unique.digest == table.digest == expected.digest
    assert unique.weights.tolist() == [1.0, 2.0, 4.0]


def test_format_overrides_the_ending(text_file):
    path = text_file("a;b\n1;2\n", "data.txt")
    refused(lambda: read(path), "'.txt'", ".parquet", "format=")
    assert read(path, format="csv").columns == ("a", "b")
    refused(lambda: read(path, format="cvs"), "'cvs'", "did you mean 'csv'?")


@pytest.mark.parametrize(
    ("cells", "levels", "codes"),
    [
        (["10", "9", "-3"], (-3, 9, 10), [2, 1, 0]),
        (["01", "1"], ("01", "1"), [0, 1]),
        (["1", " 2 ", "1"], (1, 2), [0, 1, 0]),
        (["1", "2.0"], (1, 2), [0, 1]),
        (["1", "2", "x"], ("1", "2", "x"), [0, 1, 2]),
        (["None", "NA", "?"], ("None",), [0, -1, -1]),
        (["x", "  ", '""'], ("x",), [0, -1, -1]),
        ([" x", "x"], (" x", "x"), [0, 1]),
        (["True", "False"], ("False", "True"), [1, 0]),
        (['"a ""b"""', '"l1\nl2"'], ('a "b"', "l1\nl2"), [0, 1]),
        (["12345678901234567890", "12345678901234567891"], (12345678901234567890, 12345678901234567891), [0, 1]),
        (["1_000", "2"], ("1_000", "2"), [0, 1]),
    ],
)
def test_text_cells(cells, levels, codes, text_file):
    path = text_file("k,a\n" + "".join(f"0,{cell}\n" for cell in cells))
    column = read(path)["a"]
    assert column.levels == levels
    assert [type(level) for level in column.levels] == [type(level) for level in levels]
    assert column.codes.tolist() == codes


def test_fractions_are_continuous(text_file):
    column = read(text_file("a,b\n1e-3,0\n .5 ,0\n,0\n-2,0\n"))["a"]
    np.testing.assert_array_equal(column.values, [0.001, 0.5, np.nan, -2.0])


def test_infinite_text_is_refused_with_its_row(text_file):
    path = text_file("a,b\n0.5,0\n-inf,0\n")
    refused(lambda: read(path), "column 'a', row 2", "infinite")
    refused(lambda: read(path, unique=True), "column 'a', row 2", "infinite")


def test_na_values_replace_the_list(text_file):
    path = text_file("a,b\nNA,0\n-9,0\n,0\n3,0\n")
    assert read(path, na_values=["-9"])["a"].levels == ("3", "NA")
    assert read(path, na_values=["-9"])["a"].codes.tolist() == [1, -1, -1, 0]
    assert read(path, na_values=[*DEFAULT_NA_VALUES, "-9"])["a"].levels == (3,)
    assert "None" not in DEFAULT_NA_VALUES


def test_typed_formats_use_na_values_only_when_given(tmp_path):
    path = tmp_path / "d.parquet"
    pa.parquet.write_table(pa.table({"a": ["NA", "x", None]}), path)
    assert read(path)["a"].levels == ("NA", "x")
    assert read(path, na_values="NA")["a"].codes.tolist() == [-1, 0, -1]


def test_options_reach_the_columns(text_file):
    path = text_file("a,b,c,d\n0,01,1,x\n1,02,2,y\n")
    table = read(path, levels={"a": [1, 0, 2], "b": ["01", "02"]}, continuous=["c"], drop="d")
    assert table["a"].codes.tolist() == [1, 0]
    assert table["a"].unseen_levels == (2,)
    assert table["b"].codes.tolist() == [0, 1]
    assert table["c"].values.tolist() == [1.0, 2.0]
    assert table.columns == ("a", "b", "c")
    assert read(text_file("a,b\n 1.0,0\n", "other.csv"), levels={"a": [0, 1]})["a"].codes.tolist() == [1]
    refused(lambda: read(path, levels={"d": ["x"]}), "column 'd', row 2", "'y' is not a declared level")
    refused(lambda: read(path, levels={"d": ["x"]}, unique=True), "column 'd', row 2")
    refused(lambda: read(path, drop=["aa"]), "drop names", "did you mean 'a'?")
    refused(lambda: read(path, drop=list("abcd")), "every column")
    refused(lambda: read(path, weights="e"), "weights names", "'e'")


def test_weights_in_text_files_name_their_row(text_file):
    path = text_file("a,n\nz,1\nx,2\ny,-1\n")
    refused(lambda: read(path, weights="n"), "row 3 of 'n' is '-1'")
    refused(lambda: read(path, weights="n", unique=True), "row 3 of 'n'")
    refused(lambda: read(text_file("a,n\nx,2\ny,\n"), weights="n"), "row 2 of 'n' is missing")
    refused(lambda: read(text_file("a,n\nx,much\n"), weights="n"), "row 1 of 'n' is 'much'")
    assert read(text_file("a,n\nx, 2.5 \n"), weights="n").weights.tolist() == [2.5]


def test_one_column_files_keep_empty_lines_as_missing_cells(text_file):
    table = read(text_file("answer\nyes\n\nno\n"))
    assert table["answer"].codes.tolist() == [1, -1, 0]


def test_empty_lines_and_trailing_delimiters_are_no_rows(text_file):
    assert read(text_file("a,b\n1,2\n\n3,4\n\n")).n_rows == 2
    assert read(text_file("a,b\n1,2,\n3,4\n"))["b"].levels == (2, 4)


def test_header_of_numbers_is_still_a_header(text_file):
    table = read(text_file("1,2\n3,4\n"))
    assert table.columns == ("1", "2")
    assert table.n_rows == 1


def test_names_differing_in_case_and_blanks(text_file, tmp_path):
    assert read(text_file("A, a ,count\n0,1,2\n")).columns == ("A", "a", "count")
    path = tmp_path / "case.parquet"
    pa.parquet.write_table(pa.table({"A": [0, 1], "a": [1, 1]}), path)
    assert read(path).columns == ("A", "a")
    assert read(path, drop=["A"])["a"].levels == (1,)


@pytest.mark.parametrize("folder", ["with 'quote'", "[x]", "star*", "a=1"])
def test_paths_are_taken_literally(folder, tmp_path):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "d1.csv").write_text("b,c\n1,2\n")
    (tmp_path / folder / "d[1].csv").write_text("b,c\n3,4\n")
    pa.parquet.write_table(pa.table({"b": [5]}), tmp_path / folder / "d?.parquet")
    assert read(tmp_path / folder / "d[1].csv")["b"].levels == (3,)
    table = read(tmp_path / folder / "d?.parquet")
    assert table.columns == ("b",)
    assert table["b"].levels == (5,)


def test_many_rows_stay_in_file_order(tmp_path):
    values = np.random.default_rng(0).integers(0, 1000, 300_000)
    path = tmp_path / "long.csv"
    pd.DataFrame({"a": values, "b": 0}).to_csv(path, index=False)
    np.testing.assert_array_equal(read(path)["a"].codes, values)


CELL = st.sampled_from(["", "NA", "0", "1", "01", "x", "None", " ", "1.0", "2.5"])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(st.tuples(CELL, CELL, st.sampled_from(["0", "1", "2.5"])), min_size=1, max_size=12))
def test_unique_rows_are_the_same_data(rows, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,w\n" + "".join(f"{','.join(row)}\n" for row in [*rows, ("x", "y", "1")]))
    options = {"weights": "w", "categorical": ["a"]}
    whole, unique = read(path, **options), read(path, unique=True, **options)
    assert unique.digest == whole.digest
    assert unique.n == whole.n
    np.testing.assert_array_equal(unique.patterns().codes, whole.patterns().codes)
    np.testing.assert_array_equal(unique.patterns().weights, whole.patterns().weights)
    assert unique.n_rows == len(whole.patterns())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["is an empty file"]),
        ("\n", ["first line", "is empty"]),
        ("a,b\n", ["no data rows"]),
        ("a,b", ["no data rows"]),
        ("a,b,a\n1,2,3\n", ["more than once: 'a'"]),
        ("a,,b\n1,2,3\n", ["column 2 is empty"]),
        ("a,b\n1,2\n3\n", ["line 3", "1 cells but the header has 2 columns"]),
        ("a,b\n1,2,3\n", ["line 2", "3 cells but the header has 2 columns"]),
        ('a,b\n1,"x\n', ["line 2", "quoted cell is not closed"]),
        ("a,b\r\n1,2\n3,4\r\n", ["lines end the same way"]),
        (b"a,b\n1,caf\xe9\n", ["not UTF-8", "byte 9"]),
        (b"caf\xe9,b\n1,2\n", ["not UTF-8", "byte 3"]),
        ("a,b\n1,2\n".encode("utf-16"), ["not UTF-8", "byte 0"]),
    ],
)
def test_bad_text_files(text, parts, text_file):
    path = text_file(text)
    refused(lambda: read(path), *parts)
    refused(lambda: read(path, unique=True), *parts)


def test_position_of_a_bad_byte_far_into_the_file(text_file):
    head = "a,b\n" + "ä,ö\n" * 400_000
    refused(lambda: read(text_file(head.encode() + b"\xff,1\n")), f"byte {len(head.encode())}")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('[{"a": 1}, {', ["not valid JSON"]),
        ('{"a": 1}\n{"a": }\n', ["not valid JSON"]),
        ("[]", ["no data rows"]),
        ("[{}]", ["no data rows"]),
        ("[1, 2]", ["record 1: 1 is not a record"]),
        ('[{"a": [1]}]', ["'a' holds nested values"]),
        ('[{"a": {"b": 1}}]', ["'a' holds nested values"]),
        ('[{"a": 1}, {"a": "x"}]', ["mixes number (1) and text ('x')"]),
        ('[{"a": 1, "a": 2}]', ["'a' more than once"]),
        (b'[{"a": "\xff"}]', ["not UTF-8", "byte 8"]),
    ],
)
def test_bad_json_files(text, parts, text_file):
    refused(lambda: read(text_file(text, "data.json")), *parts)


def test_json_keeps_types_and_absent_keys_are_missing(text_file):
    text = '{"a": true, "d": "2020-01-01"}\n{"b": 1.0, "d": "NA"}\n'
    table = read(text_file(text, "data.ndjson"))
    assert table.columns == ("a", "d", "b")
    assert table["a"].codes.tolist() == [0, -1]
    assert table["d"].levels == ("2020-01-01", "NA")
    assert table["b"].levels == (1,)


def test_bad_binary_files(tmp_path):
    for name in ("d.parquet", "d.arrow", "d.feather"):
        (tmp_path / name).write_bytes(b"PAR1 this is not one")
        refused(lambda name=name: read(tmp_path / name), name, "cannot be read as")
    (tmp_path / "bad.csv.gz").write_bytes(b"not gzip")
    refused(lambda: read(tmp_path / "bad.csv.gz"), "cannot be read")
    pa.parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    refused(lambda: read(tmp_path / "none.parquet"), "no data rows")


def test_parquet_columns_that_cannot_be_coded(tmp_path):
    path = tmp_path / "d.parquet"
    table = pa.table({"a": [1], "l": [[1]], "d": pa.array([0], pa.date32()), "b": [b"x"]})
    pa.parquet.write_table(table, path)
    refused(lambda: read(path), "'l' holds nested values")
    refused(lambda: read(path, drop=["l"]), "'d' holds dates")
    refused(lambda: read(path, drop=["l", "d"]), "'b' holds values of type")
    assert read(path, drop=["l", "d", "b"]).columns == ("a",)
    same = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pa.parquet.write_table(same, path)
    refused(lambda: read(path), "more than once: 'a'")


def test_paths_that_are_no_file(tmp_path):
    refused(lambda: read(tmp_path / "none.csv"), "none.csv", "does not exist")
    refused(lambda: read(tmp_path), "is a directory")
    refused(lambda: read("nul\0.csv"), "cannot be opened")
    refused(lambda: read(5), "the path is 5")


def test_a_file_without_permission(text_file, monkeypatch):
    # A mode of 0 stops no superuser, so the refusal itself is put in place.
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    path = text_file("a\n1\n")
    monkeypatch.setattr(pathlib.Path, "open", refuse)
    refused(lambda: read(path), "data.csv", "may not be read")


@pytest.mark.parametrize(
    ("load", "n_rows", "n", "columns"),
    [
        (datasets.carcinoma, 20, 118, "ABCDEFG"),
        (datasets.stouffer_toby, 16, 216, "ABCD"),
        (datasets.gss82, 33, 1202, ("PURPOSE", "ACCURACY", "UNDERSTA", "COOPERAT")),
    ],
)
def test_bundled_data(load, n_rows, n, columns):
    table = load()
    assert (table.n_rows, table.n, table.columns) == (n_rows, n, tuple(columns))
    assert all(table[name].n_missing == 0 for name in table.columns)


def test_a_stray_text_among_numbers_is_told(text_file):
    path = text_file("a,b\n" + "1,x\n" * 12 + "0,x\n" * 12 + "foo,y\n")
    with pytest.warns(LurkingWarning, match=r"'a' is taken as text because of 'foo' in row 25"):
        table = read(path)
    assert table["a"].levels == ("0", "1", "foo")
    assert table.n_rows == 25
    assert read(path, na_values=["foo"])["a"].levels == (0, 1)
    assert read(path, categorical=["a"])["a"].levels == ("0", "1", "foo")


def test_a_model_is_no_table(text_file):
    path = text_file('{"format": "lurking-network", "version": 1, "nodes": []}', "model.json")
    refused(lambda: read(path), "is a model written by lurking")
