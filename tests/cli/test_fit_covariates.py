"""What `lurking fit` reports of hidden variables with parents."""

import numpy as np
import pytest

import lurking as lk

MODEL = "age income -> class[2]; class -> y1 y2 y3"
LINKED = "h1[2] -> h2[2]; h1 -> age income y1; h2 -> y2 y3"
QUICK = ("--restarts", "3")
OPTIONS = {"restarts": 3, "seed": 0}


@pytest.fixture
def people(folder):
    """Return the path of 300 rows in which income and age shift the probability of a class."""
    rng = np.random.default_rng(11)
    age, income = rng.integers(0, 3, 300), rng.integers(0, 2, 300)
    member = rng.random(300) < 0.15 + 0.2 * age + 0.2 * income
    answers = (rng.random((300, 3)) < np.where(member[:, None], 0.85, 0.15)).astype(int)
    lines = ["age,income,y1,y2,y3"]
    for a, i, row in zip(age, income, answers, strict=True):
        lines.append(",".join([("young", "mid", "old")[a], str(i) if rng.random() < 0.97 else "", *map(str, row)]))
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    return "people.csv"


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_fit_json_has_the_tables_and_the_conditional_part_of_the_library(done, people, method):
    fit = lk.fit(MODEL, lk.read(people), method=method, **OPTIONS)
    document = done("fit", people, "--model", MODEL, "--method", method, *QUICK, "--json").json
    table = fit.network.hidden_tables(fit.problem.table)["class"]
    shown = document["hidden_tables"]["class"]
    assert shown["parents"] == ["age", "income"]
    assert [tuple(row["configuration"]) for row in shown["rows"]] == list(table.configurations)
    np.testing.assert_allclose([row["n"] for row in shown["rows"]], table.expected_rows, rtol=1e-12)
    np.testing.assert_allclose([row["p"] for row in shown["rows"]], table.probabilities, rtol=1e-12)
    if method == "vb":
        np.testing.assert_allclose([row["lower"] for row in shown["rows"]], table.lower, rtol=1e-12)
        np.testing.assert_allclose([row["upper"] for row in shown["rows"]], table.upper, rtol=1e-12)
    else:
        assert all(row["lower"] is None and row["upper"] is None for row in shown["rows"])
    part = fit.statistics.conditional
    shown_part = document["statistics"]["conditional"]
    assert shown_part.pop("given") == ["age", "income"]
    assert shown_part.pop("dependent_covariates") == []
    expected = {"loglik": part.loglik, "d": 12, "aic": part.aic, "bic": part.bic}
    assert shown_part == pytest.approx(expected, rel=1e-12)


def test_fit_prints_the_table_and_the_conditional_loglik(done, people):
    fit = lk.fit(MODEL, lk.read(people), **OPTIONS)
    table = fit.network.hidden_tables(fit.problem.table)["class"]
    outcome = done("fit", people, "--model", MODEL, *QUICK)
    title = "p(class | age, income), n = expected rows, with variational 95 % credible intervals"
    assert f"{title} (too narrow if states overlap)" in " ".join(outcome.out.split())
    order = np.argsort(-fit.network.class_sizes()["class"])
    words = [*map(str, table.configurations[0]), f"{table.expected_rows[0]:.1f}"]
    for state in order:
        p, lower, upper = (array[0, state] for array in (table.probabilities, table.lower, table.upper))
        words.append(f"{p:.3f} [{lower:.3f}, {upper:.3f}]")
    assert " ".join(words) in " ".join(outcome.out.split())
    assert f"\n{fit.statistics.conditional}\n" in outcome.out
    assert "--json has them all" not in outcome.out


def test_fit_prints_the_link_between_hidden_variables(done, people):
    fit = lk.fit(LINKED, lk.read(people), method="ml", **OPTIONS)
    out = done("fit", people, "--model", LINKED, "--method", "ml", *QUICK).out
    sizes = fit.network.class_sizes()
    first, second = (np.argsort(-sizes[name]) for name in ("h1", "h2"))
    header = f"h1 n h2={second[0]} h2={second[1]}"
    counts = fit.network.hidden_tables(fit.problem.table)["h2"].expected_rows
    rows = [
        f"{state} {n:.1f} " + " ".join(f"{fit.network.tables['h2'][state, k]:.3f}" for k in second)
        for state, n in zip(first, counts, strict=True)
    ]
    assert f"p(h2 | h1), n = expected rows {header} {rows[0]} {rows[1]} " in " ".join(out.split())
    assert "conditional" not in out


def test_fit_prints_twenty_configurations_and_the_number_of_others(done, folder):
    rng = np.random.default_rng(0)
    rows = [[*rng.integers(0, 5, 2), *rng.integers(0, 2, 2)] for _ in range(150)]
    (folder / "many.csv").write_text("a,b,y1,y2\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    words = ("fit", "many.csv", "--model", "a b -> h[2]; h -> y1 y2", "--restarts", "1")
    count = len({(a, b) for a, b, *_ in rows})
    assert f"\n… and {count - 20} more (--json has them all)\n" in done(*words).out
    assert len(done(*words, "--json").json["hidden_tables"]["h"]["rows"]) == count


def test_tables_of_many_rows_use_the_counts_of_the_fit(done, people, monkeypatch):
    expected = done("fit", people, "--model", MODEL, "--method", "ml", *QUICK, "--json").json["hidden_tables"]
    monkeypatch.setattr("lurking.inference.problem.BLOCK_ROWS", 8)
    document = done("fit", people, "--model", MODEL, "--method", "ml", *QUICK, "--json").json
    assert document["statistics"] is None
    pairs = zip(document["hidden_tables"]["class"]["rows"], expected["class"]["rows"], strict=True)
    for row, other in pairs:
        assert row["configuration"] == other["configuration"]
        assert row["n"] == pytest.approx(other["n"], abs=1e-3)


def test_fit_prints_a_note_on_dependent_covariates(done, folder):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 200)
    cells = np.column_stack([a, np.where(rng.random(200) < 0.9, a, 1 - a), rng.integers(0, 2, (200, 2))])
    (folder / "twins.csv").write_text("a,b,y1,y2\n" + "".join(",".join(map(str, row)) + "\n" for row in cells))
    words = ("--restarts", "1", "--method", "map")
    out = done("fit", "twins.csv", "--model", "a b -> h[2]; h -> y1 y2", *words).out
    assert "note: the data relate covariates more strongly than the model: a–b; the sizes of states, " in out
    assert (
        "covariates more strongly"
        not in done("fit", "twins.csv", "--model", "a -> b; a b -> h[2]; h -> y1 y2", *words).out
    )


def test_interrupt_during_the_tables_keeps_the_summary_of_the_fit(run, people, monkeypatch):
    def interrupted(_result):
        raise KeyboardInterrupt

    monkeypatch.setattr("lurking.cli.fit.tables_of", interrupted)
    outcome = run("fit", people, "--model", MODEL, *QUICK)
    assert outcome.code == 130
    assert "vb: objective" in outcome.out
    assert "the fit was finished, its statistics were not" in outcome.err
