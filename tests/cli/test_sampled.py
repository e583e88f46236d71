"""Sampled evidence at the command line: what is refused, in words of the command, and what is printed all the same."""

import pytest

import lurking as lk
from lurking.cli.output import in_command_words

MODEL = "class[2] -> y1 y2 y3 y4"
QUICK = ("--restarts", "2", "--steps", "16")


@pytest.fixture
def fractions(folder):
    """Return a file whose rows count 1.5 times."""
    lines = (folder / "survey.csv").read_text().splitlines()
    weighted = [lines[0] + ",w", *(line + ",1.5" for line in lines[1:20])]
    (folder / "fractions.csv").write_text("\n".join(weighted) + "\n")
    return "fractions.csv"


def test_a_sampled_score_that_needs_whole_weights_is_left_out_alone(done, fractions):
    words = ("score", fractions, "--weights", "w", "--model", MODEL, *QUICK, "--scores", "vb,ais,chib,importance")
    outcome = done(*words)
    assert [row for row in ("vb", "ais", "chib", "importance") if f"\n{row} " in outcome.out] == ["vb", "importance"]
    lines = outcome.err.splitlines()
    assert [line.partition(" was left out")[0] for line in lines] == [
        "lurking: warning: ais",
        "lurking: warning: chib",
    ]
    for line in lines:
        assert "whole-number weights" in line
        assert "ais with --path parameters" in line
        assert "path=" not in line
    (result,) = done(*words, "--json").json["results"]
    assert [own["score"] for own in result["scores"]] == ["vb", "importance"]
    assert "--path parameters" in result["left_out"]["ais"]


def test_the_path_that_the_refusal_names_takes_fractions(done, refused, fractions):
    words = ("score", fractions, "--weights", "w", "--model", MODEL, *QUICK, "--scores", "ais")
    assert "--path parameters" in refused(*words, says="whole-number weights")
    assert done(*words, "--path", "parameters", "--chains", "4").row("ais")[1] == "estimate"


def test_an_option_of_another_path_is_refused_in_the_words_of_the_command(refused):
    words = ("score", "survey.csv", "--model", MODEL, *QUICK, "--scores", "ais")
    assert refused(*words, "--chains", "8") == (
        "lurking: error: --chains 8 has no meaning with --path variational; leave it out, or use it with --path prior "
        "or --path parameters or --path completions\n"
    )
    assert refused(*words, "--path", "prior", "--passes", "100") == (
        "lurking: error: --passes 100 has no meaning with --path prior; leave it out, or use it with --path "
        "variational\n"
    )


def test_an_option_that_another_score_takes_is_for_that_one(done):
    words = ("score", "survey.csv", "--model", MODEL, *QUICK, "--scores", "ais,wbic", "--chains", "4", "--json")
    ais, wbic = done(*words).json["results"][0]["scores"]
    table = lk.read("survey.csv", unique=True)
    options = {"restarts": 2, "seed": 0}
    assert ais["log_z"] == pytest.approx(lk.score(MODEL, table, "ais", steps=16, **options).log_z, rel=1e-12)
    assert wbic["log_z"] == pytest.approx(lk.score(MODEL, table, "wbic", chains=4, **options).log_z, rel=1e-12)


def test_too_many_joint_states_are_named(done, refused, folder):
    chain = "; ".join(f"h{i}[2] -> h{i + 1}[2]; h{i} -> y{i}" for i in range(8))
    rows = [",".join(f"y{i}" for i in range(8)), *(",".join(str((i + k) % 2) for i in range(8)) for k in range(4))]
    (folder / "signals.csv").write_text("\n".join(rows) + "\n")
    words = ("score", "signals.csv", "--model", chain, "--restarts", "2")
    refused(*words, "--scores", "ais", says=("h0, h1, h2, h3, h4, … (8 variables)", "256 joint states", "use vb or cs"))
    outcome = done(*words, "--scores", "vb,ais")
    assert "lurking: warning: ais was left out: sampling needs hidden variables that can be enumerated" in outcome.err
    assert outcome.row("vb")


def test_settings_in_texts():
    texts = {
        "use at='map' or start='prior'": "use --at map or --start prior",
        "target=0.25 and path='map-probability';": "--target 0.25 and --path map-probability;",
        "scores=['vb'], hat='x', n = 3, engine='junction'": "scores=['vb'], hat='x', n = 3, engine='junction'",
        "two\n lines": "two lines",
        "error: max_states is 1; it must be 2": "error: --max-states is 1; it must be 2",
        "target names 'il', a column": "target names 'il', a column",
        "tells nothing; declare levels=, leave it out with drop=": "tells nothing; leave it out with --drop",
        "leave it out with drop=, or name it in na_values=": "leave it out with --drop, or name it in --na-values",
        "did not converge; raise max_iter or tol": "did not converge; raise --max-iter or tol",
        "column 'max_iter' is empty": "column 'max_iter' is empty",
        "search with hidden=0, or use lk.compare": "search with --hidden 0, or use lurking compare",
    }
    for text, expected in texts.items():
        assert in_command_words(text) == expected


def test_a_doubtful_value_is_said_to_be_one(done):
    outcome = done("score", "survey.csv", "--model", "class[5] -> *", "--scores", "ais", "--passes", 600)
    (row,) = [line.split() for line in outcome.out.splitlines() if line.startswith("ais ")]
    assert (row[3], row[-1]) == ("?", "untrusted")
    assert outcome.err == "lurking: warning: ais is not to be trusted here: its diagnostics disagree\n"


def test_the_point_of_chib_is_an_option(done, refused):
    words = ("score", "survey.csv", "--model", MODEL, "--scores", "chib", "--json")
    values = [done(*words, "--point", point).json["results"][0]["scores"][0]["log_z"] for point in ("map", "vb")]
    assert values[0] != values[1]
    assert values == pytest.approx([values[0]] * 2, abs=1.0)
    assert "'mode'" in refused(*words, "--point", "mode")
    assert "--point has no meaning for vb" in refused(*words[:-2], "vb", "--point", "map")
