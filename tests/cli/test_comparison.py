"""`lurking compare`: priors over structures, contenders scored again, and several priors over parameters."""

import pytest

import lurking as lk

MODELS = ("--model", "one: class[1] -> *", "--model", "two: class[2] -> *")
DAGS = {"one": "class[1] -> *", "two": "class[2] -> *"}
QUICK = ("--restarts", "2", "--scores", "vb")


@pytest.fixture
def complete(folder):
    """Return a file without empty cells, so that one class is exact."""
    rows = [line for line in (folder / "survey.csv").read_text().splitlines() if all(line.split(","))][:31]
    (folder / "complete.csv").write_text("\n".join(rows) + "\n")
    return "complete.csv"


def test_contenders_are_ranked_by_sampled_evidence(done, complete):
    document = done("compare", complete, *MODELS, *QUICK, "--target", "0.2", "--json").json
    (result,) = document["results"]
    comparison = lk.compare(DAGS, lk.read(complete, unique=True), restarts=2, seed=0, target=0.2)
    assert result["ranked_by"] == "sampled"
    for model, candidate in zip(result["models"], comparison["sampled"], strict=True):
        assert model["contends"] is True
        assert model["sampled"]["log_z"] == pytest.approx(candidate.evidence.log_z, rel=1e-12)
        assert model["sampled"]["std_error"] == candidate.evidence.std_error
        assert model["probability"] == pytest.approx(candidate.probability, rel=1e-9)
        assert model["probability_range"][0] <= model["probability"] <= model["probability_range"][1]
    outcome = done("compare", complete, *MODELS, *QUICK, "--target", "0.2")
    assert "p(model) by sampled" in outcome.out
    best = comparison.posterior.best
    assert outcome.row(best.name)[0] == best.name
    assert str(comparison.posterior.bayes_factor(*(c.name for c in comparison.posterior.ranked()))) in outcome.out
    assert "ranked by sampled evidence" in outcome.err


def test_models_that_do_not_contend_have_a_dash(done, complete):
    words = ("--model", "three: class[3] -> *", "--rescore", "--within", "0")
    outcome = done("compare", complete, *MODELS, *words, "--restarts", "2", "--scores", "bic", "--target", "0.5")
    rows = [outcome.row(name) for name in ("one", "two", "three")]
    assert sum("-" in row for row in rows) == 2


def test_no_sampling_when_told_so(done, refused, complete):
    (result,) = done("compare", complete, *MODELS, *QUICK, "--no-rescore", "--json").json["results"]
    assert result["ranked_by"] == "vb"
    assert all(model["sampled"] is None for model in result["models"])
    refused("compare", complete, *MODELS, *QUICK, "--no-rescore", "--target", "0.2", says="--target has no meaning")


def test_a_prior_over_structures(done, folder):
    words = ("compare", "survey.csv", *MODELS, *QUICK, "--no-rescore", "--structure-prior", "parameters:0.5")
    (result,) = done(*words, "--json").json["results"]
    assert result["structure_prior"] == "parameters:0.5"
    first, second = result["models"]
    assert second["prior"] / first["prior"] == pytest.approx(0.5 ** (second["d"] - first["d"]))
    outcome = done(*words)
    assert outcome.out.splitlines()[1].split()[:4] == ["model", "d", "prior", "p(model)"]
    assert "structure prior parameters:0.5" in outcome.out


@pytest.mark.parametrize("text", ["edges", "edges:0", "edges:x", "edge-probability:1", "uniform:1"])
def test_priors_over_structures_that_break_a_rule(refused, text):
    refused("compare", "survey.csv", *MODELS, *QUICK, "--structure-prior", text, says="structure")


def test_an_unknown_prior_over_structures_lists_the_choices(refused):
    refused("compare", "survey.csv", *MODELS, "--structure-prior", "egdes:2", says=("did you mean 'edges'", "uniform"))


def test_copies_of_a_structure_are_named(done):
    words = ("compare", "survey.csv", *MODELS, "--model", "copy: k[2] -> y4 y3 y2 y1", *QUICK, "--no-rescore")
    (result,) = done(*words, "--json").json["results"]
    assert result["duplicates"] == [["two", "copy"]]
    assert [model["prior"] for model in result["models"]] == pytest.approx([0.5, 0.25, 0.25])


def test_whether_the_winner_depends_on_the_prior_is_said(done):
    words = ("compare", "survey.csv", *MODELS, *QUICK, "--no-rescore", "--prior")
    same = done(*words, "0.5,1")
    assert same.out.splitlines()[-1] == "'two' is the most probable model under all 2 priors"
    assert done(*words, "0.5,1", "--json").json["winner_changes"] is False
    # Pseudo-counts of a million leave nothing to learn from a hidden variable.
    other = done(*words, "1,1000000").out.splitlines()[-1]
    assert other == "the most probable model depends on the prior: 'two' under 1; 'one' under 1000000"
    assert done(*words, "1,1000000", "--json").json["winner_changes"] is True


@pytest.mark.parametrize("target", ["0", "nan"])
def test_a_bad_target_of_rescoring_is_refused(refused, target):
    words = ("--model", "class[2] -> *", "--model", "class[1] -> *", "--rescore", "--target", target)
    assert f"--target is {float(target)}; it must be a standard error above 0" in refused(
        "compare", "survey.csv", *words
    )


def test_a_name_that_is_no_column_is_said_to_be_none(refused):
    text = refused("compare", "survey.csv", "--model", "class[2] -> y1 y2 y3 y4", "--model", "class[2] -> y1 y2 y3 y5")
    assert "'y5' in the model is not a column of the data (did you mean 'y" in text
