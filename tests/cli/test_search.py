"""`lurking search` at the command line."""

import pytest

QUICK = ("--target", "1")


@pytest.fixture
def answers(folder):
    """Write 300 rows of three answers of two kinds of people."""
    import numpy as np

    rng = np.random.default_rng(0)
    kind = rng.random(300) < 0.5
    rows = [[int(rng.random() < (0.9 if k else 0.1)) for _ in range(3)] for k in kind]
    text = "a,b,c\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    (folder / "answers.csv").write_text(text)


def test_structure_contenders_and_picture(done, folder, answers):
    outcome = done("search", "answers.csv", "--hidden", "1", "--out", "found", *QUICK)
    assert "ln p(data | structure) = " in outcome.out
    assert "number of hidden variables" in outcome.out
    assert "exact" in outcome.out
    assert (folder / "found" / "structure.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "found" / "search.sqlite").exists()
    again = done("search", "answers.csv", "--hidden", "1", "--out", "found", *QUICK)
    assert again.out == outcome.out


def test_json_is_one_document(done, answers):
    content = done("search", "answers.csv", "--hidden", "0", "--json", *QUICK).json
    assert content["hidden"] == {}
    assert content["status"] == "OPTIMUM"
    content = done("search", "answers.csv", "--hidden", "1", "--json", *QUICK).json
    assert sum(content["hidden_probabilities"].values()) == pytest.approx(1.0)
    assert {row["kind"] for row in content["contenders"]} <= {"exact", "estimate"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--max-parents", "0"), "--max-parents 0 leaves no arc"),
        (("--time-limit", "0"), "--time-limit 0 leaves no time"),
        (("--hidden", "some"), "--hidden 'some' is neither auto nor a whole number"),
        (("--hidden", "-2"), "--hidden -2 is below 0"),
        (("--hidden", "4"), "3 columns are too few"),
        (("--required", "a -> b", "--forbidden", "a -> b"), "required and forbidden"),
        (("--required", "b -> a", "--tier", "a", "--tier", "b"), "later tier"),
        (("--max-states", "1"), "max_states"),
    ],
)
def test_bad_input_is_one_line(refused, answers, words, text):
    assert text in refused("search", "answers.csv", *words)
