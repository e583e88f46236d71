"""Scores of families against the scores of whole structures, which know nothing of families."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, OptionError, StructureError, TooLarge, UndefinedScore, UnknownNameError
from lurking.kernels.reference.families import family_value
from lurking.search.families import FamilyScores, score_of


def random_table(seed=0, n_rows=60, sizes=(2, 3, 2, 4, 1), weighted=True):
    rng = np.random.default_rng(seed)
    names = [f"v{j}" for j in range(len(sizes))]
    rows = np.stack([rng.integers(0, size, n_rows) for size in sizes], axis=1)
    rows[:, 1] = np.where(rng.random(n_rows) < 0.6, rows[:, 0] % sizes[1], rows[:, 1])
    levels = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
    weights = np.where(rng.random(n_rows) < 0.1, 0.0, rng.gamma(1.0, 2.0, n_rows)) if weighted else None
    return lk.Table.from_rows(rows.tolist(), names, levels=levels, weights=weights)


DAGS = ["v0 v1 v2 v3 v4", "v0 -> v1 -> v2; v3 -> v2; v4 -> v2", "v3 -> v0 v1 v2 v4; v0 -> v1; v1 v4 -> v2"]


@pytest.mark.parametrize("text", DAGS)
@pytest.mark.parametrize(
    "prior", [1.0, 0.01, 300.0, lk.Prior.jeffreys(), lk.Prior.bdeu(3.0)], ids=["1", "0.01", "300", "jeffreys", "bdeu"]
)
def test_bd_is_the_exact_evidence(text, prior):
    table, dag = random_table(), lk.Dag.parse(text)
    value = score_of(FamilyScores(table, "bd", prior), dag)
    assert value == pytest.approx(lk.score(dag, table, "exact", prior=prior).log_z, rel=1e-11)


@pytest.mark.parametrize("text", DAGS)
def test_bdeu_and_bic(text):
    table, dag = random_table(1), lk.Dag.parse(text)
    exact = lk.score(dag, table, "exact", prior=lk.Prior.bdeu(2.5)).log_z
    assert score_of(FamilyScores(table, "bdeu", 2.5), dag) == pytest.approx(exact, rel=1e-11)
    bic = lk.score(dag, table, "bic", at="ml").log_z
    assert score_of(FamilyScores(table, "bic"), dag) == pytest.approx(bic, rel=1e-11)


@pytest.mark.parametrize("score", ["bd", "bdeu", "bic"])
def test_batches_and_single_families_agree(score):
    table = random_table(2)
    batch, single = FamilyScores(table, score), FamilyScores(table, score)
    candidates = np.array([0, 3, 4])
    added = batch.scores_of_additions(2, (1,), candidates)
    expected = [single.score(2, tuple(sorted((1, int(c))))) for c in candidates]
    assert added == pytest.approx(expected, rel=1e-12)
    deleted = batch.scores_of_deletions(2, (0, 1, 3))
    assert deleted == pytest.approx([single.score(2, rest) for rest in [(1, 3), (0, 3), (0, 1)]], rel=1e-12)


def test_a_family_is_counted_once():
    scores = FamilyScores(random_table(3), "bd")
    scores.scores_of_additions(2, (1,), np.array([0, 3]))
    assert scores.n_evaluated == 2
    scores.scores_of_additions(2, (1,), np.array([0, 3, 4]))
    scores.score(2, (0, 1))
    assert scores.scores_of_deletions(2, (0, 1, 3)).shape == (3,)
    assert scores.n_evaluated == 4  # (0, 3) is the only one that was not a candidate before
    scores.score(2, (0, 3))
    assert scores.n_evaluated == 4


def test_no_rows_score_nothing_and_bic_refuses_them():
    table = lk.Table.from_rows([], ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    assert FamilyScores(table, "bd").score(0, (1,)) == 0.0
    with pytest.raises(UndefinedScore, match="n = 0"):
        FamilyScores(table, "bic")


def test_wide_columns_take_wider_codes():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, 300, 500), rng.integers(0, 2, 500)])
    table = lk.Table.from_codes(
        {"a": (codes[0].astype(np.int32), list(range(300))), "b": (codes[1].astype(np.int32), [0, 1])}
    )
    value = FamilyScores(table, "bd").score(0, (1,))
    assert value == pytest.approx(family_value(codes, np.array([300, 2]), np.ones(500), 0, (1,), 1.0), rel=1e-12)


def test_many_parents_do_not_overflow():
    rng = np.random.default_rng(0)
    table = lk.Table.from_array(rng.integers(0, 4, (50, 60)))
    scores = FamilyScores(table, "bdeu")
    full = scores.score(0, tuple(range(1, 60)))
    # Every row has its own configuration: with pseudo-counts near 0 each says one of four states, as good as drawn.
    assert full == pytest.approx(50 * np.log(0.25), rel=1e-9)
    wide = lk.Table.from_array(rng.integers(0, 4, (50, 600)))
    with pytest.raises(TooLarge, match="max_parents"):
        FamilyScores(wide, "bdeu").score(0, tuple(range(1, 600)))


def test_refusals():
    table = random_table()
    with pytest.raises(UnknownNameError, match="bdeu"):
        FamilyScores(table, "bdeuu")
    with pytest.raises(OptionError, match="bic has no prior"):
        FamilyScores(table, "bic", 1.0)
    with pytest.raises(OptionError, match="equivalent sample size"):
        FamilyScores(table, "bdeu", lk.Prior.symmetric(1.0))
    with pytest.raises(OptionError, match="every structure"):
        FamilyScores(table, "bd", lk.Prior.from_counts({"v0": [[1.0, 1.0]]}))
    with pytest.raises(StructureError, match="v4"):
        score_of(FamilyScores(table), lk.Dag.parse("v0 v1 v2 v3"))
    holes = lk.Table.from_rows([(0, None), (1, 0), (None, None)], ["a", "b"], levels={"a": [0, 1], "b": [0, 1]})
    with pytest.raises(DataError, match=r"3 of 6 cells are empty, most of them in 'b' \(2\)"):
        FamilyScores(holes)
