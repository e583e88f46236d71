"""Lists of models: names, comments, and errors that name the line."""

import pytest

import lurking as lk
from lurking.errors import DataError, FormatError
from lurking.io.models_file import parse_models, read_models

TEXT = """
# two candidates
two classes:   class[2] -> *
   three classes: class[3] -> *

a -> b; c
"odd: name" -> b
"""


def test_models_in_the_order_of_the_lines():
    models = parse_models(TEXT)
    assert list(models) == ["two classes", "three classes", "a -> b; c", '"odd: name" -> b']
    assert models["two classes"] == lk.Dag.parse("class[2] -> *")
    assert models["three classes"].hidden == {"class": 3}
    assert models["a -> b; c"] == lk.Dag.parse("a -> b; c")
    assert models['"odd: name" -> b'].nodes == ("odd: name", "b")


def test_a_comment_may_follow_the_arrows():
    assert parse_models("m: a -> b  # why not") == {"m": lk.Dag.parse("a -> b")}


def test_windows_line_ends():
    assert list(parse_models("x: a -> b\r\ny: b -> a\r\n")) == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x: a -> b\n\nx: b -> a", 3, "'x' was used before"),
        ("# nothing\nx:", 2, "'x' has no arrows"),
        ("x: a -> b\ny: a -> b -> ; ;; ->", 2, ""),
        ("x: a -> b; b -> a", 1, "cycle"),
        ("x: a -> b\n\n\ny: h[0] -> a", 4, "h"),
        ("x: h[two] -> a", 1, ""),
        ("a -> a", 1, "a"),
        (": a -> b", 1, "name"),
    ],
)
def test_errors_name_the_line(text, line, message):
    with pytest.raises(FormatError, match=f"models.txt, line {line}: .*{message}") as caught:
        parse_models(text, "models.txt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_no_model_at_all(text):
    with pytest.raises(FormatError, match="holds no model"):
        parse_models(text)


def test_read_from_a_file(tmp_path):
    path = tmp_path / "models.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert read_models(path) == parse_models(TEXT)
    assert read_models(str(path)) == lk.read_models(path)


def test_a_byte_order_mark_is_no_part_of_the_name(tmp_path):
    path = tmp_path / "models.txt"
    path.write_text("two: class[2] -> *", encoding="utf-8-sig")
    assert list(read_models(path)) == ["two"]


def test_errors_of_a_file_name_the_file(tmp_path):
    path = tmp_path / "models.txt"
    path.write_text("x:\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"models\.txt', line 1"):
        read_models(path)
    path.write_bytes(b"\xff\xfe\x81")
    with pytest.raises(FormatError, match="UTF-8"):
        read_models(path)
    with pytest.raises(DataError, match="cannot read"):
        read_models(tmp_path / "missing.txt")


def test_what_was_read_can_be_compared():
    table = lk.Table.from_rows([(0, 0), (1, 1), (0, 1)], columns=["a", "b"])
    comparison = lk.compare(parse_models("x: a -> b\ny: a; b"), table)
    assert [row.name for row in comparison.rows] == ["x", "y"]
