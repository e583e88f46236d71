"""`lurking search` at the command line."""

import pytest

import lurking as lk
from lurking.cli import search as module

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
        (("--max-states", "1"), "--max-states is 1; it must be a whole number of at least 2"),
        (("--target", "nan"), "--target is nan; it must be a standard error above 0"),
        (("--target", "inf"), "--target is inf"),
        (("--target", "0"), "--target is 0.0"),
        (("--target", "some"), "'some' is not a number; see 'lurking search --help'"),
        (("--nothing",), "see 'lurking search --help'"),
        (("--drop", "z"), "--drop names 'z', which is not a column"),
        (("--restarts", "1" * 30), "has more than 18 digits"),
    ],
)
def test_bad_input_is_one_line(refused, answers, words, text):
    assert text in refused("search", "answers.csv", *words)


def test_the_kept_structure_is_marked_and_explained(done, folder):
    table = lk.stouffer_toby()
    table.to_frame().assign(count=table.weights).to_csv(folder / "toby.csv", index=False)
    outcome = done("search", "toby.csv", "--weights", "count", "--hidden", "1", "--workers", "1", "--target", "0.1")
    lines = outcome.out.splitlines()
    assert lines[0] == "A B C D h1[2]; h1 -> A B C D"
    assert lines[1].startswith("prior 1.0: ln p(data | structure) = ")
    begin = lines.index("")
    rows = lines[begin + 3 : lines.index("", begin + 1)]
    assert rows[0].startswith("  h1[3] -- A B C D ")
    assert [row.split("  ")[0] for row in rows if row.startswith("* ")] == ["* h1[2] -- A B C D", rows[-1]]
    assert rows[-1].startswith("* is kept: the first row is ahead by ")


def test_the_mark_in_json(done, answers):
    content = done("search", "answers.csv", "--hidden", "1", "--json", *QUICK).json
    kept = [row["structure"] for row in content["contenders"] if row["is_kept"]]
    assert kept == [content["structure"]]


def test_a_picture_that_cannot_be_written_is_refused_before_the_search(refused, folder, answers, monkeypatch):
    (folder / "found" / "structure.png").mkdir(parents=True)
    monkeypatch.setattr("lurking.cli.search.search_structures", lambda *_, **__: pytest.fail("it was searched"))
    text = refused("search", "answers.csv", "--out", "found")
    assert "cannot write 'found/structure.png': it is a directory; choose another place" in text


def test_the_result_is_printed_before_it_is_drawn(run, folder, answers, monkeypatch):
    def fail(*_):
        raise lk.LurkingError("no room on the disk")

    monkeypatch.setattr("lurking.cli.search.save_figure", fail)
    outcome = run("search", "answers.csv", "--hidden", "0", "--out", "found")
    assert outcome.code == 2
    assert "ln p(data | structure) = " in outcome.out


def test_fractional_weights_and_what_can_be_done(refused, folder):
    rows = ["a,b,c,w", *(f"{k % 2},{k // 2 % 2},{k // 3 % 2},0.3" for k in range(24))]
    (folder / "shares.csv").write_text("\n".join(rows) + "\n")
    text = refused("search", "shares.csv", "--weights", "w", "--hidden", "1")
    assert "search complete columns with --hidden 0, rank models of your own with lurking compare" in text


def test_any_whole_number_is_a_seed(done, answers):
    seed = 99999999999999999999999
    assert done("search", "answers.csv", "--hidden", "0", "--json", "--seed", seed).json["seed"] == seed


def test_counts_of_one_have_their_own_words(done, folder):
    (folder / "one.csv").write_text("a\n0\n1\n0\n")
    assert "1 column is too few: 1 hidden variable needs 3" in done("search", "one.csv").err


@pytest.fixture
def searched_once(monkeypatch):
    """Give every command of a test, which must ask for the same search, the result of the first one."""
    search, found = module.search_structures, []

    def once(*arguments, **options):
        if not found:
            found.append(search(*arguments, **options))
        return found[0]

    monkeypatch.setattr(module, "search_structures", once)


def test_a_hidden_variable_that_is_not_needed_is_named(done, folder, searched_once):
    """The three-valued c goes by whether one of a and b is above 1: a summary of them, and no hidden cause."""
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, (2, 1200))
    likely = np.where(np.maximum(a, b) > 1, 2, 0)
    c = np.where(rng.random(1200) < 0.6, likely, rng.integers(0, 3, 1200))
    text = "a,b,c\n" + "\n".join(f"{x},{y},{z}" for x, y, z in zip(a, b, c, strict=True)) + "\n"
    (folder / "summary.csv").write_text(text)
    words = ("search", "summary.csv", "--hidden", "1", "--categorical", "a,b,c", *QUICK)
    outcome = done(*words)
    assert "h1" not in outcome.out.splitlines()[0]
    assert "not needed: " in outcome.out
    assert "without it by c given a × b in 2 groups" in outcome.out
    assert "c has the parents a, b" in outcome.out
    assert "groups of a × b: (" in outcome.out
    document = done(*words, "--json").json
    assert document["prior"]["kind"] == "symmetric"
    low = [[x, y] for x in (0, 1) for y in (0, 1)]
    assert document["outdone"]
    for outdone in document["outdone"]:
        (grouping,) = outdone["by"]["summaries"][0]["groupings"]
        assert grouping["parents"] == ["a", "b"]
        assert sorted(map(sorted, grouping["groups"]))[0] == low
        assert outdone["by"]["gain"] > 10.0
        assert outdone["by"]["log_z"] > outdone["log_z"]
    assert float(document["hidden_probabilities"]["0"]) > 0.99


def test_a_search_that_ends_early_does_not_say_that_nothing_is_hidden(done, answers):
    out = done("search", "answers.csv", "--hidden", "1", "--time-limit", "1e-6", *QUICK).out
    assert "no structure with a hidden variable was evaluated within the time limit" in out
    assert "give a higher --time-limit" in out
    assert "number of hidden variables" not in out
    assert "1.0000" not in out
    content = done("search", "answers.csv", "--hidden", "1", "--time-limit", "1e-6", "--json", *QUICK).json
    assert content["hidden_probabilities"] is None
    assert content["contenders"] == []
    assert content["untried"].endswith("give a higher --time-limit")
    assert content["evidence"]["log_z"] == content["score"]


def test_columns_of_two_times_suggest_tiers(done, folder, answers):
    _, _, rest = (folder / "answers.csv").read_text().partition("\n")
    (folder / "waves.csv").write_text("x_1971,x_1975,y_1975\n" + rest)
    words = ("search", "waves.csv", "--hidden", "0")
    (told,) = (line for line in done(*words).out.splitlines() if line.startswith("suggestion: "))
    assert told.endswith("give --tier x_1971 --tier x_1975,…")
    assert done(*words, "--json").json["suggestion"] == told.removeprefix("suggestion: ")
    given = (*words, "--tier", "x_1971", "--tier", "x_1975,y_1975")
    assert "suggestion" not in done(*given).out
    assert done(*given, "--json").json["suggestion"] is None


def test_answers_to_questions_suggest_indicators(done, folder):
    import numpy as np

    rows = np.random.default_rng(0).integers(0, 2, (60, 4)).tolist()
    text = "q1,q2,q3,q4\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    (folder / "questions.csv").write_text(text)
    words = ("search", "questions.csv", "--hidden", "1", "--time-limit", "1e-6")
    assert "suggestion: 4 columns such as q1 and q2 look like answers to questions" in done(*words).out
    assert "suggestion" not in done(*words, "--indicators").out
    assert "suggestion" not in done("search", "questions.csv", "--hidden", "0").out


def test_edges_of_either_direction_in_json(done, answers):
    content = done("search", "answers.csv", "--hidden", "1", "--json", *QUICK).json
    assert " -> " not in content["cpdag"]
    assert content["undirected"] == content["edges"] != []
    (hidden,) = (row for row in content["contenders"] if "h1" in row["structure"])
    assert hidden["undirected"] == [["h1", "a"], ["h1", "b"], ["h1", "c"]]
    assert hidden["hidden_part"] == "h1[2] -- a b c"


def test_long_names_are_wrapped_with_an_indent(done, folder):
    import numpy as np

    rng = np.random.default_rng(0)
    kind = rng.random(300) < 0.5
    names = [f"a_rather_long_question_{k}" for k in range(6)]
    rows = [[int(rng.random() < (0.9 if k else 0.1)) for _ in names] for k in kind]
    text = ",".join(names) + "\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    (folder / "long.csv").write_text(text)
    lines = done("search", "long.csv", "--hidden", "1", *QUICK).out.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("  hidden variables"))
    end = next(k for k, line in enumerate(lines) if k > start and not line.strip())
    assert any(line.startswith("      a_rather") for line in lines[start:end])
    assert not any(line.startswith("a_rather") for line in lines[start:end])


def test_names_with_commas_and_spaces(done, folder, answers):
    text = (folder / "answers.csv").read_text()
    head, _, rest = text.partition("\n")
    first, second, *others = head.split(",")
    (folder / "odd.csv").write_text(",".join(['"one, or two"', '"b b"', *others]) + "\n" + rest)
    words = ("search", "odd.csv", "--hidden", "0", "--tier", '"one, or two",' + others[0], "--tier", "b b")
    out = done(*words).out
    assert '"b b" -> ' not in out.splitlines()[0]
    assert "structures that keep the constraints have the same arrows" in out
    assert "hidden" not in out
