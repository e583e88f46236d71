"""More starts for the models of a comparison that may win, and what is reported where the starts disagree."""

import numpy as np
import pytest

import lurking as lk
from lurking.learn import restarts
from lurking.search import unsettled


@pytest.fixture(scope="module")
def table():
    """Two-valued traits that depend almost wholly on one of eight groups: ten random starts miss the best fit."""
    rng = np.random.default_rng(0)
    typical = rng.integers(0, 2, (8, 16))
    group = rng.choice(8, 101, p=rng.dirichlet(np.ones(8)))
    values = np.where(rng.random((101, 16)) < 0.04, 1 - typical[group], typical[group])
    return lk.Table.from_rows([tuple(map(int, row)) for row in values], columns=[f"t{j}" for j in range(16)])


def compared(table, **options):
    return lk.compare("class[4..8] -> *", table, prior=lk.Prior.bdeu(1.0), rescore=False, **options)


def test_contenders_have_the_value_of_a_fit_of_their_own(table):
    comparison = compared(table)
    for row in comparison.rows:
        alone = lk.score(row.dag, table, "vb", prior=lk.Prior.bdeu(1.0))
        assert row.evidences["vb"].log_z == alone.log_z
        assert row.evidences["vb"].starts == alone.starts


def test_auto_declares_another_winner_than_ten_starts(table):
    auto, ten = compared(table), compared(table, restarts=10)
    assert auto.posterior.best.evidence.log_z > ten.posterior.best.evidence.log_z + 2.0
    values = {row.name: row.evidences["vb"].log_z for row in ten.rows}
    assert all(row.evidences["vb"].log_z >= values[row.name] for row in auto.rows)


def test_unsettled_contenders_are_named_in_table_notes_and_frame(table, monkeypatch):
    monkeypatch.setattr(restarts, "EXTRA", 1.0)
    comparison = compared(table)
    best = comparison.posterior.best.name
    assert best in comparison.unsettled
    assert "starts at best" in str(comparison).splitlines()[0]
    assert "1 of 10, not settled" in str(comparison)
    (note,) = [note for note in comparison.warnings if note.startswith("not settled")]
    assert repr(best) in note
    frame = comparison.to_frame().set_index("model")
    assert not frame.loc[best, "vb_settled"]
    first, second = comparison.posterior.ranked()[:2]
    assert "(not settled: better fits may change it)" in str(comparison.posterior.bayes_factor(first.name, second.name))


def test_settled_comparisons_say_nothing_of_starts():
    comparison = lk.compare("class[1..2] -> *", lk.stouffer_toby(), rescore=False)
    assert comparison.unsettled == ()
    assert "settled" not in str(comparison)
    assert "starts at best" not in str(comparison)


@pytest.fixture
def scored(monkeypatch):
    """Note (restarts, names) of every round in which models are scored."""
    rounds = []
    rows = unsettled.Scoring.rows

    def noted(self, names, dags, done):
        rounds.append((self.options.restarts, list(names)))
        return rows(self, names, dags, done)

    monkeypatch.setattr(unsettled.Scoring, "rows", noted)
    return rounds


def test_models_out_of_reach_get_no_more_starts(table, scored):
    alone = "; ".join(table.columns[3:])
    models = {"six": "class[6] -> *", "none": " ".join(table.columns), "far": f"class[2] -> t0 t1 t2; {alone}"}
    lk.compare(models, table, prior=lk.Prior.bdeu(1.0), rescore=False)
    assert scored == [(restarts.FIRST, list(models)), ("auto", ["six"])]


def test_the_number_of_models_with_more_starts_is_bounded(table, scored, monkeypatch):
    monkeypatch.setattr(unsettled, "MOST_MODELS", 2)
    monkeypatch.setattr(unsettled, "AT_A_TIME", 1)
    compared(table)
    assert [len(names) for _, names in scored] == [5, 1, 1]


def test_equal_structures_share_the_value_with_more_starts(table):
    models = {f"{name}{states}": f"{name}[{states}] -> *" for name in "gh" for states in (6, 7, 8)}
    found = {row.name: row for row in lk.compare(models, table, prior=lk.Prior.bdeu(1.0), rescore=False).rows}
    for states in (6, 7, 8):
        first, second = found[f"g{states}"], found[f"h{states}"]
        assert first.evidences["vb"].log_z == second.evidences["vb"].log_z
        assert set(second.dag.hidden) == {"h"}


def test_copies_with_spare_states_are_named_once():
    comparison = lk.compare({"a": "h[6] -> *", "b": "g[6] -> *"}, lk.stouffer_toby(), rescore=False)
    (note,) = [note for note in comparison.warnings if "does not use all hidden states" in note]
    assert "'a' (h: " in note
    assert "'b'" not in note


def test_workers_do_not_change_a_comparison(table):
    one, many = compared(table, workers=1), compared(table, workers=3)
    assert [row.evidences["vb"].log_z for row in one.rows] == [row.evidences["vb"].log_z for row in many.rows]


def test_an_interrupt_while_starts_are_added_keeps_the_first_values(table, monkeypatch):
    def interrupted(rows, scoring, log_prior, within, progress):
        scoring.options.stop.set()
        return list(rows)

    monkeypatch.setattr("lurking.search.compare.with_more_starts", interrupted)
    comparison = compared(table, keep_interrupted=True)
    assert comparison.interrupted
    assert len(comparison.rows) == 5
    with pytest.raises(KeyboardInterrupt):
        compared(table)
