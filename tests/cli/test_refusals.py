"""Bad input: one line on stderr, exit code 2, nothing on stdout and nothing written."""

import pytest

LEARN = ("fit", "score", "compare")
QUICK = ("--restarts", "2")


def learn(verb, data, model, *more):
    return (verb, data, "--model", model, *QUICK, *more)


def for_data(verb, data):
    return ("predict", "model.json", data) if verb == "predict" else learn(verb, data, "class[2] -> *")


@pytest.fixture(params=LEARN)
def verb(request):
    return request.param


BAD_FILES = {
    "empty": ("bad.csv", b"", "empty"),
    "header-only": ("bad.csv", b"y1,y2\n", "no data rows"),
    "duplicate-columns": ("bad.csv", b"y1,y2,y1\n0,1,0\n", "'y1'"),
    "nameless-column": ("bad.csv", b"y1,,y3\n0,1,0\n", "column 2"),
    "not-utf8": ("bad.csv", b"y1,y2\ncaf\xe9,1\nx,0\n", "UTF-8"),
    "header-not-utf8": ("bad.csv", b"caf\xe9,y2\n1,1\n0,0\n", "UTF-8"),
    "ragged": ("bad.csv", b"y1,y2\n0,1\n0,1,1\n1,1\n", "line 3"),
    "short-row": ("bad.csv", b"y1,y2\n0,1\n0\n1,1\n", "line 3"),
    "open-quote": ("bad.csv", b'y1,y2\n"0,1\n1,1\n', "quot"),
    "ending": ("bad.xlsx", b"y1,y2\n0,1\n", "'.xlsx'"),
    "broken-json": ("bad.json", b'[{"y1": 0}, {"y1"', "JSON"),
    "deep-json": ("bad.json", b"[" * 100_000, "JSON"),
    "json-of-numbers": ("bad.json", b"[1, 2, 3]", "record"),
    "no-parquet": ("bad.parquet", b"y1,y2\n0,1\n", "Parquet"),
    "no-arrow": ("bad.arrow", b"y1,y2\n0,1\n", "Arrow"),
    "no-gzip": ("bad.csv.gz", b"y1,y2\n0,1\n", "bad.csv.gz"),
}


@pytest.mark.parametrize("verb", [*LEARN, "predict"])
@pytest.mark.parametrize("case", BAD_FILES)
def test_files_that_are_no_table(refused, folder, verb, case):
    name, data, word = BAD_FILES[case]
    (folder / name).write_bytes(data)
    refused(*for_data(verb, name), says=word if "column" in case else (name, word))


@pytest.mark.parametrize("verb", [*LEARN, "predict"])
def test_a_missing_file_and_a_directory(refused, folder, verb):
    refused(*for_data(verb, "nowhere.csv"), says=("nowhere.csv", "does not exist"))
    (folder / "folder.csv").mkdir()
    refused(*for_data(verb, "folder.csv"), says=("folder.csv", "directory"))


BAD_MODELS = {
    "hidden-column": ("y1[2] -> y2", ("'y1'", "also a column")),
    "unknown-column": ("class[2] -> y1 y22", ("'y22'", "did you mean 'y2'")),
    "cycle": ("y1 -> y2 -> y3 -> y1", ("y1 -> y2 -> y3 -> y1", "acyclic")),
    "self-loop": ("y1 -> y1", ("y1 -> y1",)),
    "duplicate-edge": ("class[2] -> y1 y2; class -> y1", ("'class' -> 'y1'", "twice")),
    "no-right-side": ("class[2] ->", ("name on its right",)),
    "no-left-side": ("-> y1", ("name on its left",)),
    "bad-arrow": ("class[2] --> y1", ("no arrow",)),
    "open-bracket": ("class[2 -> y1", ("brackets",)),
    "open-quote": ('"class[2] -> y1', ("quote",)),
    "star-both-sides": ("* -> *", ("both sides",)),
    "cardinality-0": ("class[0] -> *", ("'class'", "cardinality 0", "at least 1")),
    "cardinality-negative": ("class[-3] -> *", ("'class'", "cardinality -3", "at least 1")),
    "cardinality-text": ("class[two] -> *", ("'class'", "'two'", "whole number")),
    "cardinality-fraction": ("class[2.5] -> *", ("'class'", "'2.5'", "whole number")),
    "cardinality-empty": ("class[] -> *", ("'class'", "whole number")),
    "cardinality-thousands-of-digits": (f"class[{'9' * 5000}] -> *", ("'class'",)),
    "cardinality-missing": ("class -> y1 y2", ("'class'", "hidden")),
    "cardinality-twice": ("class[2] -> y1; class[3] -> y2", ("'class'", "2", "3")),
    "nothing-observed": ("a[2] -> b[2]", ("no observed variable",)),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_models_that_break_a_rule(refused, verb, case):
    model, words = BAD_MODELS[case]
    refused(*learn(verb, "survey.csv", model), says=words)


@pytest.mark.parametrize("text", ["", " ", ";", "# nothing"])
def test_an_empty_model(refused, verb, text):
    refused(*learn(verb, "survey.csv", text))


@pytest.mark.parametrize(
    ("hidden", "word"),
    [
        ("class", "NAME:STATES"),
        (":2", "NAME:STATES"),
        ("class:", "whole number"),
        ("class:0", "at least 1"),
        ("class:-2", "at least 1"),
        ("class:two", "'two'"),
        ("class:2.5", "'2.5'"),
        ("class:nan", "'nan'"),
        ("class:--2", "whole number"),
        ("class:+-2", "whole number"),
        ("class:²", "whole number"),
        pytest.param(f"class:{'9' * 5000}", "class", id="thousands-of-digits"),
        ("y1:2", "'y1'"),
        ("clas:2", "'clas'"),
    ],
)
def test_hidden_options_that_break_a_rule(refused, verb, hidden, word):
    refused(*learn(verb, "survey.csv", "class -> y1 y2 y3", "--hidden", hidden), says=word)


def test_a_hidden_variable_with_two_cardinalities(refused, verb):
    words = learn(verb, "survey.csv", "class -> y1 y2", "--hidden", "class:2", "--hidden", "class:3")
    refused(*words, says=("class", "2", "3"))


def test_brackets_and_option_that_disagree(refused):
    words = ("--hidden", "class:3")
    refused(*learn("fit", "survey.csv", "class[2] -> y1 y2", *words), says=("'class'", "2", "3"))
    refused(*learn("score", "survey.csv", "class[2] -> y1 y2", *words), says=("'class'", "2", "3"))
    refused(*learn("compare", "survey.csv", "class[2] -> y1 y2", *words), says=("'class'", "2", "3"))


def test_compare_refuses_a_hidden_name_that_no_model_has(refused):
    refused(*learn("compare", "survey.csv", "class[2] -> y1 y2", "--hidden", "clas:2"), says="'clas'")


@pytest.mark.parametrize(
    "text", ["0", "-1", "nan", "inf", "-inf", "much", "", ",", "bdeu:0", "bdeu:x", "bdeu:", "uniform:2"]
)
def test_priors_that_break_a_rule(refused, verb, text):
    refused(*learn(verb, "survey.csv", "class[2] -> *", "--prior", text))


@pytest.mark.parametrize("verb", ["score", "compare"])
def test_one_bad_prior_among_several(refused, verb):
    refused(*learn(verb, "survey.csv", "class[2] -> *", "--prior", "0.5,1,0"), says="0")


def test_no_mode_over_probabilities_below_one(refused):
    refused(
        *learn("fit", "survey.csv", "class[2] -> *", "--method", "map-probability", "--prior", "0.5"),
        says=("0.5", "< 1", "map"),
    )
    refused(
        *learn("score", "survey.csv", "class[2] -> *", "--at", "map-probability", "--prior", "0.5"),
        says=("0.5", "< 1", "map"),
    )


@pytest.mark.parametrize("verb", ["score", "compare"])
def test_an_unknown_score_lists_the_choices(refused, verb):
    says = ("'bicc'", "did you mean 'bic'", "exact", "bicp", "draper", "mled", "cs", "vb")
    refused(*learn(verb, "survey.csv", "class[2] -> *", "--scores", "vb,bicc"), says=says)
    refused(*learn(verb, "survey.csv", "class[2] -> *", "--scores", ","), says="--scores")


def test_unknown_choices_list_the_choices(refused):
    words = learn("fit", "survey.csv", "class[2] -> *", "--method", "em")
    refused(*words, says=("'em'", "vb", "map", "map-probability", "ml"))
    words = learn("score", "survey.csv", "class[2] -> *", "--at", "mode")
    refused(*words, says=("'mode'", "map", "map-probability", "ml"))
    words = learn("score", "survey.csv", "class[2] -> *", "--start", "zero")
    refused(*words, says=("'zero'", "prior", "map"))


def test_a_continuous_column_in_a_discrete_model(refused, folder, verb):
    (folder / "heights.csv").write_text("y1,height\n0,1.71\n1,1.85\n0,1.605\n")
    refused(*learn(verb, "heights.csv", "class[2] -> *"), says=("'height'", "continuous", "drop"))


def test_an_identifier_column(refused, folder, verb):
    (folder / "people.csv").write_text("person,y1\n" + "".join(f"p{i},{i % 2}\n" for i in range(10_000)))
    refused(*learn(verb, "people.csv", "class[2] -> *"), says=("'person'", "10000 levels", "drop"))


@pytest.mark.parametrize("bad", ["-1", "NaN", "nan", "inf", "some", ""])
def test_weights_that_are_no_weights(refused, folder, verb, bad):
    (folder / "weighted.csv").write_text(f"y1,y2,w\n0,1,2\n1,1,{bad}\n1,0,1\n")
    refused(*learn(verb, "weighted.csv", "class[2] -> *", "--weights", "w"), says=("'w'", "row 2"))


@pytest.mark.parametrize("option", ["--weights", "--categorical", "--continuous", "--drop"])
def test_options_that_name_no_column(refused, verb, option):
    refused(*learn(verb, "survey.csv", "class[2] -> *", option, "y11"), says=("'y11'", "y1"))


def test_options_that_contradict_each_other(refused, verb):
    words = ("--categorical", "y1", "--continuous", "y1")
    refused(*learn(verb, "survey.csv", "class[2] -> *", *words), says="'y1'")
    refused(*learn(verb, "survey.csv", "class[2] -> *", "--drop", "y1,y2,y3,y4"))


def test_tables_larger_than_memory(refused, verb):
    model = "; ".join(f"h{k}[2] -> y1" for k in range(45))
    refused(*learn(verb, "survey.csv", model), says=("'y1'", "need", "TiB", "available", "GiB"))


def test_a_tree_too_wide(refused, verb):
    side = range(16)
    right = [f"h{i}_{j}[4] -> h{i}_{j + 1}[4]" for i in side for j in side[:-1]]
    down = [f"h{i}_{j}[4] -> h{i + 1}_{j}[4]" for i in side[:-1] for j in side]
    model = "; ".join([*right, *down, "h15_15 -> y1"])
    refused(*learn(verb, "survey.csv", model), says=("no exact method fits", "width", "joint states", "available"))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--seed", "-1"),
        ("--restarts", "0"),
        ("--restarts", "-5"),
        ("--tournament", "-1"),
        ("--tol", "-1"),
        ("--tol", "nan"),
        ("--tol", "inf"),
        ("--max-iter", "0"),
        ("--workers", "0"),
        ("--workers", "-2"),
        ("--seed", "1.5"),
        ("--restarts", "many"),
        ("--tol", "small"),
        ("--workers", ""),
    ],
)
def test_numbers_outside_their_range(refused, verb, option, value):
    name = option.strip("-").replace("-", "_")
    err = refused(verb, "survey.csv", "--model", "class[2] -> *", option, value, says=value)
    assert name in err.replace("-", "_")


def test_a_budget_outside_its_range(refused):
    refused(*learn("score", "survey.csv", "class[2] -> *", "--scores", "exact", "--budget", "0"), says="budget")
    refused(*learn("score", "survey.csv", "class[2] -> *", "--scores", "exact", "--budget", "5"), says="budget")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fitt",), "'fitt'"),
        (("--fit",), "--fit"),
        (("fit",), "DATA"),
        (("fit", "survey.csv"), "--model"),
        (("score", "survey.csv"), "--model"),
        (("compare", "survey.csv"), "--model"),
        (("predict",), "MODEL"),
        (("predict", "model.json"), "DATA"),
        (("sample",), "MODEL"),
        (("fit", "survey.csv", "--model"), "--model"),
        (("fit", "survey.csv", "--model", "class[2] -> *", "--modell", "x"), "--modell"),
        (("fit", "survey.csv", "second.csv", "--model", "class[2] -> *"), "second.csv"),
        (("predict", "model.json", "survey.csv", "--method", "vb"), "--method"),
        (("sample", "model.json", "-n"), "-n"),
        (("sample", "model.json", "-n", "few"), "few"),
        (("demo", "--speed"), "--speed"),
    ],
)
def test_usage(refused, words, says):
    refused(*words, says=says)


@pytest.mark.parametrize("score", ["fit", "score", "compare"])
def test_an_output_option_does_not_make_a_file_when_the_model_is_bad(refused, folder, score):
    more = ("--out", "out.json") if score == "fit" else ()
    refused(*learn(score, "survey.csv", "class[2] -> y9", *more), says="'y9'")


# Lists of models.


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no model"),
        ("# only a comment\n\n", "no model"),
        ("one: class[1] -> *\n\ntwo: class[2] -> \n", "line 3"),
        ("one: class[1] -> *\ntwo:\n", ("line 2", "'two'")),
        ("one: class[1] -> *\n# a comment\none: class[2] -> *\n", ("line 3", "'one'")),
        ("one: class[1] -> *\ntwo: class[0] -> *\n", ("line 2", "'class'")),
        ("one: y1 -> y2 -> y1\n", ("line 1", "y1 -> y2 -> y1")),
        ("one: class[2] -> y1 y2\ntwo: class[2] -> y1 y3\n", ("'one'", "'two'", "y2", "y3")),
    ],
)
def test_lists_of_models(refused, folder, text, says):
    (folder / "models.txt").write_text(text)
    refused("compare", "survey.csv", "--models", "models.txt", says=says)


def test_lists_of_models_that_cannot_be_read(refused, folder):
    refused("compare", "survey.csv", "--models", "nowhere.txt", says="nowhere.txt")
    refused("compare", "survey.csv", "--models", ".", says="'.'")
    (folder / "latin.txt").write_bytes(b"caf\xe9: class[2] -> *\n")
    refused("compare", "survey.csv", "--models", "latin.txt", says=("latin.txt", "UTF-8"))
    (folder / "models.txt").write_text("one: class[2] -> *\n")
    words = ("--models", "models.txt", "--model", "one: class[3] -> *")
    refused("compare", "survey.csv", *words, says="'one'")


WRITERS = {
    "fit": (*learn("fit", "survey.csv", "class[2] -> *"), "--out"),
    "predict": ("predict", "model.json", "survey.csv", "--out"),
    "sample": ("sample", "model.json", "-n", "5", "--out"),
}


@pytest.mark.parametrize("verb", WRITERS)
@pytest.mark.parametrize("json_too", [False, True])
def test_output_into_a_missing_folder(refused, verb, json_too):
    words = (*WRITERS[verb], "nowhere/out.csv", *(["--json"] if json_too else []))
    refused(*words, says=("nowhere/out.csv", "No such file or directory"))


@pytest.mark.parametrize("verb", WRITERS)
def test_output_onto_a_directory(refused, folder, verb):
    (folder / "taken.csv").mkdir()
    refused(*WRITERS[verb], "taken.csv", says=("taken.csv", "Is a directory"))


@pytest.mark.parametrize("verb", ["predict", "sample"])
@pytest.mark.parametrize("name", ["out.xlsx", "out"])
def test_output_with_an_unknown_ending(refused, verb, name):
    refused(*WRITERS[verb], name, says=(name, ".csv", ".parquet"))


def test_demo_refuses_before_it_prints(refused, folder):
    refused("demo", "--seed", "-1", says=("seed", "-1"))


@pytest.mark.parametrize("place", ["survey.csv", "survey.csv/below"])
def test_demo_refuses_a_file_as_its_folder_before_it_works(refused, folder, place):
    refused("demo", "--out", place, says=place)
