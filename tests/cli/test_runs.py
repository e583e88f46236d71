"""Good runs: the tables and the JSON documents say what the library says."""

import json

import numpy as np
import pandas as pd
import pytest

import lurking as lk

MODEL = "class[2] -> *"
QUICK = ("--restarts", "3")
OPTIONS = {"restarts": 3, "seed": 0}
SCORES = ["map-likelihood", "bic", "bicp", "draper", "mled", "cs", "vb"]


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


def assert_evidence(entry, evidence):
    assert entry["score"] == evidence.method
    assert entry["log_z"] == close(evidence.log_z)
    assert entry["log_aliases"] == close(evidence.log_aliases)
    assert entry["corrected"] == close(evidence.corrected)
    assert entry["std_error"] is None
    assert entry["kind"] == evidence.kind.value
    assert entry["status"] == evidence.status.name
    assert entry["parts"] == close(dict(evidence.parts))


@pytest.fixture
def table(folder):
    return lk.read(folder / "survey.csv")


# fit


@pytest.mark.parametrize("method", ["vb", "map", "map-probability", "ml"])
def test_fit_json_says_what_the_library_says(done, table, method):
    fit = lk.fit(MODEL, table, method=method, **OPTIONS)
    outcome = done("fit", "survey.csv", "--model", MODEL, "--method", method, *QUICK, "--json")
    assert outcome.err == ""
    document = outcome.json
    assert document["command"] == "fit"
    assert document["versions"]["lurking"] == lk.__version__
    assert document["data"] == {"path": "survey.csv", "n": 80.0, "columns": list(table.columns), "digest": table.digest}
    assert document["model"]["hidden"] == {"class": 2}
    assert document["model"]["edges"] == [["class", name] for name in table.columns]
    assert document["model"]["d"] == 9
    assert document["method"] == method
    assert document["objective"] == close(fit.objective)
    assert document["status"] == fit.status.name
    assert document["n_iter"] == fit.n_iter
    assert document["spread"]["objectives"] == close(list(fit.spread.objectives))
    for name, values in fit.network.tables.items():
        np.testing.assert_allclose(document["tables"][name], values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(document["class_sizes"]["class"], fit.network.class_sizes()["class"], rtol=1e-12)
    if method == "vb":
        for name, values in fit.posterior.items():
            np.testing.assert_allclose(document["alpha"][name], values, rtol=1e-12)
    else:
        assert document["alpha"] is None
    statistics = fit.statistics
    for name in ("loglik", "aic", "bic", "g_squared", "x_squared", "n_complete"):
        assert document["statistics"][name] == close(getattr(statistics, name)), name
    assert document["statistics"]["degrees_of_freedom"] == statistics.degrees_of_freedom


def test_fit_prints_what_the_library_says(done, table):
    fit = lk.fit(MODEL, table, **OPTIONS)
    out = done("fit", "survey.csv", "--model", MODEL, *QUICK).out
    assert "class[2] -> y1 y2 y3 y4   (9 parameters, n = 80)" in out
    assert f"vb: objective {fit.objective:.4f}; {fit.status.sentence} ({fit.n_iter} E-steps)" in out
    assert f"at the posterior mean: {fit.statistics}" in out
    assert str(fit.spread) in out
    sizes = sorted(fit.network.class_sizes()["class"], reverse=True)
    assert f"(size) {sizes[0]:.4f} {sizes[1]:.4f}" in " ".join(out.split())
    order = np.argsort(-fit.network.class_sizes()["class"])
    for name in table.columns:
        cells = " ".join(f"{fit.network.tables[name][state, 0]:.3f}" for state in order)
        assert f"{name} 0 {cells}" in " ".join(out.split())


def test_fit_of_unidentified_structure_says_so_in_both_outputs(done):
    words = ("fit", "survey.csv", "--model", "class[3] -> *", *QUICK)
    note = done(*words, "--json").json["identification"]
    assert note.startswith("14 parameters but effective dimension 13; the parameters are not identified")
    assert f"note: {note}" in done(*words).out.splitlines()
    assert done("fit", "survey.csv", "--model", MODEL, *QUICK, "--json").json["identification"] is None


def test_fit_writes_the_model_of_the_library(done, folder, table):
    outcome = done("fit", "survey.csv", "--model", MODEL, *QUICK, "--out", "new.json")
    assert "model written to new.json" in outcome.out
    assert not list(folder.glob("*.part"))
    assert lk.Network.load("new.json") == lk.fit(MODEL, table, **OPTIONS).network
    done("fit", "survey.csv", "--model", MODEL, *QUICK, "--out", "again.json", "--json")
    assert (folder / "again.json").read_bytes() == (folder / "new.json").read_bytes()


def test_ties_reach_the_library(done, table):
    tied, words = [["y1", "y2"], ["y3", "y4"]], ("--tied", "y1,y2", "--tied", "y3, y4")
    fit = lk.fit(MODEL, table, tied=tied, **OPTIONS)
    document = done("fit", "survey.csv", "--model", MODEL, *QUICK, *words, "--json").json
    assert document["objective"] == close(fit.objective)
    assert document["tied"] == tied
    assert document["model"]["d"] == fit.problem.dimension == 5
    document = done("score", "survey.csv", "--model", MODEL, *QUICK, *words, "--scores", "vb", "--json").json
    assert document["results"][0]["scores"][0]["log_z"] == close(fit.objective)
    document = done("compare", "survey.csv", "--model", MODEL, *QUICK, *words, "--scores", "vb", "--json").json
    assert document["results"][0]["models"][0]["scores"][0]["log_z"] == close(fit.objective)


def test_fit_options_reach_the_library(done, table):
    words = ("--tournament", "8", "--max-iter", "70", "--tol", "0", "--seed", "5", "--prior", "bdeu:4", "--no-prune")
    words += ("--optimizer", "cg")
    document = done("fit", "survey.csv", "--model", MODEL, *words, "--json").json
    options = {"tournament": 8, "max_iter": 70, "tol": 0, "seed": 5, "prior": lk.Prior.bdeu(4), "prune": False}
    fit = lk.fit(MODEL, table, optimizer="cg", **options)
    assert document["objective"] == close(fit.objective)
    assert document["n_iter"] == fit.n_iter == 70
    assert document["seed"] == 5


# score


def test_score_json_says_what_the_library_says(done, table):
    words = ("score", "survey.csv", "--model", MODEL, "--scores", ",".join(SCORES), *QUICK, "--json")
    outcome = done(*words)
    assert outcome.err == ""
    document = outcome.json
    assert document["command"] == "score"
    (result,) = document["results"]
    evidences = lk.score(MODEL, table, SCORES, **OPTIONS)
    assert [entry["score"] for entry in result["scores"]] == SCORES
    for entry, evidence in zip(result["scores"], evidences, strict=True):
        assert_evidence(entry, evidence)


def test_score_exact_within_a_budget(done, folder):
    lines = (folder / "survey.csv").read_text().splitlines()
    (folder / "few.csv").write_text("\n".join(lines[:13]) + "\n")
    words = ("score", "few.csv", "--model", MODEL, "--scores", "exact", "--budget", "100000", "--json")
    (result,) = done(*words).json["results"]
    assert_evidence(result["scores"][0], lk.score(MODEL, lk.read("few.csv"), "exact"))


def test_score_prints_what_the_library_says(done, table):
    outcome = done("score", "survey.csv", "--model", MODEL, "--scores", ",".join(SCORES), *QUICK)
    for evidence in lk.score(MODEL, table, SCORES, **OPTIONS):
        numbers = [f"{value:.3f}" for value in (evidence.log_z, evidence.log_aliases, evidence.corrected)]
        expected = [evidence.method, evidence.kind.value, *numbers, evidence.status.name.lower()]
        assert outcome.row(evidence.method) == expected


@pytest.mark.parametrize(("option", "name", "value"), [("--at", "at", "ml"), ("--start", "start", "map")])
def test_options_of_the_scores_reach_them(done, table, option, name, value):
    words = ("score", "survey.csv", "--model", MODEL, "--scores", "cs,vb", *QUICK, option, value, "--json")
    (result,) = done(*words).json["results"]
    for entry, evidence in zip(
        result["scores"], lk.score(MODEL, table, ["cs", "vb"], **OPTIONS, **{name: value}), strict=True
    ):
        assert_evidence(entry, evidence)


def test_several_priors_are_reported_one_by_one(done, table):
    words = ("survey.csv", "--model", MODEL, "--scores", "vb", *QUICK, "--prior", "0.5,1,2")
    results = done("score", *words, "--json").json["results"]
    compared = done("compare", *words, "--json").json["results"]
    printed, ranked = done("score", *words).out, done("compare", *words).out
    assert len(results) == len(compared) == 3
    for prior, result, comparison in zip([0.5, 1, 2], results, compared, strict=True):
        expected = lk.score(MODEL, table, "vb", prior=prior, **OPTIONS)
        assert result["prior"] == {"kind": "symmetric", "pseudo_count": prior}
        assert_evidence(result["scores"][0], expected)
        assert comparison["models"][0]["scores"][0]["log_z"] == close(expected.log_z)
        assert f"prior {prior};" in printed
        assert f"{expected.log_z:.3f}" in printed
        assert f"prior {prior}:" in ranked
        assert f"{expected.log_z:.2f}" in ranked


def test_score_and_compare_describe_a_prior_alike(done):
    words = ("survey.csv", "--model", MODEL, "--scores", "vb", *QUICK, "--prior", "bdeu:2,jeffreys,3", "--json")
    scored, compared = done("score", *words).json, done("compare", *words).json
    assert [result["prior"] for result in scored["results"]] == [result["prior"] for result in compared["results"]]


@pytest.mark.parametrize(("text", "prior"), [("bdeu:3", lk.Prior.bdeu(3)), ("jeffreys", 0.5), ("1e-3", 1e-3)])
def test_kinds_of_prior(done, table, text, prior):
    document = done("score", "survey.csv", "--model", MODEL, "--scores", "vb", *QUICK, "--prior", text, "--json").json
    expected = lk.score(MODEL, table, "vb", prior=prior, **OPTIONS)
    assert document["results"][0]["scores"][0]["log_z"] == close(expected.log_z)


@pytest.mark.parametrize(
    "words",
    [
        ("--model", "s1 -> y1 y2 y3; s2 -> y2 y3 y4", "--hidden", "s1:2", "--hidden", "s2:2"),
        ("--model", "s1 -> y1 y2 y3; s2 -> y2 y3 y4", "--hidden", "s1:2,s2:2"),
        ("--model", "s1[2] -> y1 y2 y3; s2 -> y2 y3 y4", "--hidden", "s2:2"),
    ],
)
@pytest.mark.parametrize("verb", ["fit", "score", "compare"])
def test_hidden_options_equal_brackets(done, verb, words):
    brackets = ("--model", "s1[2] -> y1 y2 y3; s2[2] -> y2 y3 y4")
    expected = done(verb, "survey.csv", *brackets, *QUICK, "--json").json
    document = done(verb, "survey.csv", *words, *QUICK, "--json").json
    if verb == "compare":
        for made in (document, expected):
            del made["results"][0]["models"][0]["name"]
            del made["results"][0]["warnings"]  # they name the model
    assert document == expected


def test_comma_lists_equal_repeated_options(done, folder):
    frame = pd.read_csv(folder / "survey.csv").assign(note="x", other=range(80), size=1.5)
    frame["y1"] = frame["y1"].map({0: "no", 1: "yes"}).fillna("none")
    frame["y2"] = frame["y2"].map({0: "no", 1: "yes"}).fillna("gone")
    frame.to_csv("wide.csv", index=False)
    words = ("score", "wide.csv", "--model", MODEL, "--scores", "vb", *QUICK, "--json")
    listed = done(*words, "--drop", "note,other,size", "--na-values", "none, gone", "--categorical", "y3,y4").out
    repeated = done(
        *words,
        *("--drop", "note", "--drop", "other", "--drop", "size", "--na-values", "none", "--na-values", "gone"),
        *("--categorical", "y3", "--categorical", "y4"),
    ).out
    assert listed == repeated
    plain = done("score", "survey.csv", "--model", MODEL, "--scores", "vb", *QUICK, "--json").json
    assert json.loads(listed)["results"] == plain["results"]


# compare


MODELS = """# how many kinds of people

one:   class[1] -> *
two:   class[2] -> *

# a chain without anything hidden
chain: y1 -> y2 -> y3 -> y4
"""
NAMED = {"one": "class[1] -> *", "two": "class[2] -> *", "chain": "y1 -> y2 -> y3 -> y4"}


def test_compare_json_says_what_the_library_says(done, folder, table):
    (folder / "models.txt").write_text(MODELS)
    words = ("compare", "survey.csv", "--models", "models.txt", "--scores", "vb,bic", *QUICK, "--json")
    outcome = done(*words)
    assert outcome.err == ""
    document = outcome.json
    assert document["command"] == "compare"
    (result,) = document["results"]
    assert result["interrupted"] is False
    comparison = lk.compare(NAMED, table, scores=["vb", "bic"], **OPTIONS)
    assert result["warnings"] == list(comparison.warnings)
    assert [model["name"] for model in result["models"]] == list(NAMED)
    for model, row in zip(result["models"], comparison.rows, strict=True):
        assert model["d"] == row.dimension
        for entry in model["scores"]:
            score = entry["score"]
            candidate = comparison[score][row.name]
            assert_evidence(entry, row.evidences[score])
            assert entry["probability"] == close(candidate.probability)
            assert entry["corrected_probability"] == close(candidate.corrected_probability)


def test_compare_prints_the_best_model_first(done, folder, table):
    (folder / "models.txt").write_text(MODELS)
    words = ("--scores", "vb,bic", "--no-rescore", *QUICK)
    outcome = done("compare", "survey.csv", "--models", "models.txt", *words)
    comparison = lk.compare(NAMED, table, scores=["vb", "bic"], rescore=False, **OPTIONS)
    ranked = comparison["vb"].ranked()
    *lines, factor = outcome.out.splitlines()[2:]
    rows = [line.split() for line in lines]
    assert [row[0] for row in rows] == [candidate.name for candidate in ranked]
    for row, candidate in zip(rows, ranked, strict=True):
        bic = comparison["bic"][candidate.name].evidence
        vb = candidate.evidence
        assert row[3] == f"{vb.log_z - ranked[0].evidence.log_z:.2f}"
        assert row[4:] == [f"{value:.2f}" for value in (vb.log_z, vb.corrected, bic.log_z, bic.corrected)]
        assert float(row[2]) == pytest.approx(candidate.probability, abs=1e-4)
    assert factor == str(comparison["vb"].bayes_factor(ranked[0].name, ranked[1].name))
    assert all(line.startswith("lurking: warning: ") for line in outcome.err.splitlines())
    assert len(outcome.err.splitlines()) == len(comparison.warnings)


def test_models_in_a_file_and_as_options_are_one_list(done, folder):
    (folder / "models.txt").write_text("one: class[1] -> *\ntwo: class -> *\n")
    words = ("--model", "chain: y1 -> y2 -> y3 -> y4", "--model", "s[3] -> *", "--hidden", "class:2")
    document = done("compare", "survey.csv", "--models", "models.txt", *words, *QUICK, "--json").json
    assert [model["name"] for model in document["results"][0]["models"]] == ["one", "two", "chain", "s[3] -> *"]


def test_a_quiet_end_when_there_are_many_models(done, folder):
    lines = [f"m{k}: y1 -> y2; y3; y4; h{k}[{k}] -> y{1 + k % 4}" for k in range(1, 25)]
    (folder / "models.txt").write_text("\n".join(lines))
    outcome = done("compare", "survey.csv", "--models", "models.txt", "--scores", "vb", "--restarts", "1")
    assert "… and 4 more (--json has them all)" in outcome.out


# Seeds.


@pytest.mark.parametrize("verb", ["fit", "score", "compare"])
def test_equal_seeds_give_equal_bytes_for_one_and_two_workers(done, verb):
    words = (verb, "survey.csv", "--model", "s1[2] -> y1 y2 y3; s2[2] -> y2 y3 y4", "--restarts", "4", "--json")
    one = done(*words, "--seed", "3", "--workers", "1")
    two = done(*words, "--seed", "3", "--workers", "2")
    assert one.out == two.out
    assert done(*words, "--seed", "3").out == one.out
    assert done(*words, "--seed", "4").out != one.out


# demo


def test_demo_draws_a_picture_and_names_the_number_of_classes(done, folder):
    outcome = done("demo", "--out", "pictures")
    models = {f"{k} class{'es' if k > 1 else ''}": f"class[{k}] -> *" for k in range(1, 6)}
    best = lk.compare(models, lk.carcinoma(), scores=["vb"], seed=0)["vb"].best
    assert f"The evidence favours {best.name} (probability {best.probability:.2f}" in outcome.out
    assert outcome.out.splitlines()[-1] == "picture: pictures/lurking-demo.png"
    assert (folder / "pictures" / "lurking-demo.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert [path.name for path in (folder / "pictures").iterdir()] == ["lurking-demo.png"]


def test_ranges_and_columns(done):
    words = ("compare", "survey.csv", "--columns", "y1,y2,y3", "--model", "class[1..3] -> *", "--scores", "vb", *QUICK)
    document = done(*words, "--json").json
    assert document["data"]["columns"] == ["y1", "y2", "y3"]
    assert [model["name"] for model in document["results"][0]["models"]] == [f"class[{k}] -> *" for k in (1, 2, 3)]
    expected = lk.compare("class[1..3] -> *", lk.read("survey.csv").select(["y1", "y2", "y3"]), **OPTIONS)
    values = [model["scores"][0]["log_z"] for model in document["results"][0]["models"]]
    assert values == pytest.approx([row.evidences["vb"].log_z for row in expected.rows], rel=1e-12)
