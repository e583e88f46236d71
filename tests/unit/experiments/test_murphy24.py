"""The study of lecture 24: its data by hand, its measures by brute force, workers, and what the store keeps."""

import csv
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError
from lurking.experiments.murphy24 import evidence, lecture, signature, sparse
from lurking.experiments.murphy24.claims import claims
from lurking.experiments.murphy24.decomposability import (
    NAMES,
    STRENGTHS,
    GainConfig,
    Gains,
    expected_data,
    network_of,
    truth,
)
from lurking.experiments.murphy24.evidence import METHODS, EvidenceConfig, Size, mixture, selected
from lurking.experiments.murphy24.output import summary, tables, write
from lurking.experiments.murphy24.signature import SignatureConfig, is_semi_clique, with_hidden, without_hidden
from lurking.experiments.murphy24.sparse import Ground, SparseConfig
from lurking.experiments.murphy24.study import PARTS, Config, quick, run
from lurking.learn.options import FitOptions
from lurking.runtime.store import Store
from lurking.search.families import FamilyScores, score_of

TINY = Config(
    evidence=EvidenceConfig(
        sizes=(Size(2, 5, 60),), sets=2, beyond=1, restarts=5, draws=100, target=1.0, passes=1 << 10
    ),
    decomposability=GainConfig(sets=2, restarts=10, target=1.0, passes=1 << 10),
    sparse=SparseConfig(items=4, relevant=3, rows=150, sets=1, restarts=5, random_starts=1),
    signature=SignatureConfig(rows=(100, 400), sets=1, target=1.0, passes=1 << 10),
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "kept.sqlite"
    with Store(path) as store:
        return run(TINY, store, 1), path


def test_parameters_of_the_signature():
    assert signature.dimensions() == (lecture.WITH_HIDDEN, lecture.WITHOUT_HIDDEN) == (17, 59)
    assert [len(without_hidden().parents(name)) for name in signature.CHILDREN] == [3, 4, 5]
    assert with_hidden().hidden == {"H": 2}


def test_semi_cliques():
    path = lk.Dag.parse("a -> b; b -> c")
    assert is_semi_clique(path, ("a", "b", "c"))  # each end is linked to one of two others
    assert not is_semi_clique(lk.Dag(["a", "b", "c"], [("a", "b")]), ("a", "b", "c"))
    star = lk.Dag.parse("a -> b c d")
    assert not is_semi_clique(star, ("a", "b", "c", "d"))  # b is linked to one of three others
    assert is_semi_clique(lk.Dag.parse("a -> b c; d -> b c"), ("a", "b", "c", "d"))


def entropy(joint):
    return -float(np.sum(joint * np.log(joint)))


def test_expected_data_have_the_printed_gains():
    """By entropies of the joint distribution, summed over C by hand."""
    joint = np.zeros((2,) * 4)
    for cell in itertools.product(range(2), repeat=4):
        for sign in (-1, 1):
            chances = [0.5 + sign * r / 2 if x else 0.5 - sign * r / 2 for x, r in zip(cell, STRENGTHS, strict=True)]
            joint[cell] += 0.5 * math.prod(chances)
    pair, third, fourth = joint.sum(axis=(2, 3)), joint.sum(axis=(0, 1, 3)), joint.sum(axis=(0, 1, 2))
    gains = [
        entropy(pair) + entropy(third) - entropy(joint.sum(axis=3)),
        entropy(pair) + entropy(fourth) - entropy(joint.sum(axis=2)),
        entropy(pair) + entropy(third) + entropy(fourth) - entropy(joint),
    ]
    printed = [gain.loglik for gain in lecture.GAINS.values()]
    assert [1000 * gain for gain in gains] == pytest.approx(printed, abs=1e-4)
    assert truth().joint(NAMES) == pytest.approx(joint)
    table = expected_data(1000)
    assert table.n == pytest.approx(1000.0)
    first, last = (lk.fit(network_of(added), table, method="ml", restarts=20).log_z for added in ("", "X3 X4"))
    assert last - first == pytest.approx(printed[2], abs=1e-3)


def test_excess_is_what_both_arcs_bring_beyond_the_sum():
    own = Gains("here", {"X3": {"cs": 1.0}, "X4": {"cs": 2.0}, "X3 X4": {"cs": 7.5}})
    assert own.excess("cs") == 4.5


def test_the_study_has_starts_enough_for_the_best_variational_mode():
    """A mode 0.55 nats lower takes most starts of C → X1 X2 X3; ΔVB must be −0.2, not −0.8."""
    table, starts = expected_data(1000), GainConfig().restarts
    first, second = (lk.fit(network_of(added), table, method="vb", restarts=starts).objective for added in ("", "X3"))
    assert second - first == pytest.approx(-2792.09026 + 2791.89165, abs=1e-4)


def test_gains_of_a_run(tiny):
    expected, *sampled = tiny[0].gains
    assert [round(expected.gains[added]["loglik"], 2) for added in lecture.GAINS] == [3.0, 10.6, 24.1]
    # One more parameter costs ½ ln n wherever the likelihood is that of the mode, up to the prior.
    assert expected.gains["X3"]["bic"] == pytest.approx(3.0 - 0.5 * math.log(1000), abs=0.3)
    assert len(sampled) == 2
    assert all(own.gains["X4"]["ais error"] > 0.0 for own in sampled)
    assert all("ais" in own.gains["X3"] and "ais" not in expected.gains["X3"] for own in sampled)


def test_mixtures_follow_their_parameters():
    network = mixture(Size(3, 4, 10), 0, 0)
    rows = network.sample(20000, seed=1)
    weights = network.tables["c"][0]
    for name in ("x1", "x4"):
        assert rows[name].codes.mean() == pytest.approx(weights @ network.tables[name][:, 1], abs=4 * 0.5 / 141.0)
    digests = {evidence.data_set(Size(3, 4, 10), seed, place).digest for seed in (0, 1) for place in (0, 1)}
    assert len(digests) == 4


def test_scores_are_those_of_the_library(tiny):
    study, _ = tiny
    (size,) = study.curves
    scored = study.curves[size][1][2]
    table = evidence.data_set(size, 0, 1)
    alone = lk.score("c[2] -> *", table, ["bic", "bicp", "draper", "mled", "cs", "laplace", "vb"], restarts=5)
    for name, own in alone.by_name.items():
        assert scored.values[name] == pytest.approx(own.log_z, abs=1e-9)
    other = lk.score("c[2] -> *", table, "laplace", basis="probability", restarts=5)
    assert scored.values["laplace-probability"] == pytest.approx(other.log_z, abs=1e-9)
    chib = lk.score("c[2] -> *", table, "chib", restarts=5, draws=100)
    assert scored.values["chib"] == pytest.approx(chib.log_z, abs=1e-9)


def test_relabelings_are_worth_at_most_all_orders(tiny):
    for curves in tiny[0].curves.values():
        for curve in curves:
            assert curve[1].gap == 0.0
            for states, scored in curve.items():
                # The mean over K! orders is at least one of them over K!, sweep by sweep.
                assert scored.gap <= math.lgamma(states + 1) + 1e-9
                assert set(scored.values) == set(METHODS)


def test_the_fewest_of_equal_numbers_is_selected(tiny):
    (curves,) = tiny[0].curves.values()
    flat = {states: replace(scored, values=dict.fromkeys(METHODS, -1.0)) for states, scored in curves[0].items()}
    assert selected(flat, "vb") == 1


def test_greedy_search_by_hand():
    items = ("a", "b")
    values = {(): 0.0, ("a",): -1.0, ("b",): -2.0, ("a", "b"): 5.0}
    ground = Ground(None, items, "cs", values, FitOptions())
    assert sparse.greedy(ground, ()) == ((), 3)
    assert sparse.greedy(ground, ("a",)) == (("a", "b"), 4)


def test_a_class_without_children_gets_none(tiny):
    (data,) = tiny[0].sparse
    ends = {(route.method, route.end) for route in data.routes if route.start == "none"}
    assert ends == {(method, "") for method in sparse.METHODS}
    assert all(route.below_best >= 0.0 for route in data.routes)
    assert all(route.below_best == 0.0 for route in data.routes if route.end == data.best[route.score])


def test_the_subsets_are_scored_and_nothing_is_sampled_beside(monkeypatch):
    monkeypatch.setattr("lurking.search.compare.sample_contenders", lambda *_: pytest.fail("sampled"))
    config = SparseConfig(items=3, relevant=2, rows=40)
    table, items = sparse.data_set(config, 0, 0), sparse.items_of(config)
    found = sparse.subset_scores(table, items, FitOptions(restarts=2))
    alone = lk.score(sparse.structure(items, ()), table, "exact").log_z
    assert found["vb"][()] == pytest.approx(alone, abs=1e-9)
    assert {len(own) for own in found.values()} == {2**3}


def test_predicted_gains_are_those_of_the_completed_table():
    """A table with the class filled in, each row once for each class, weighed by its chance."""
    config = SparseConfig(items=3, relevant=3, rows=80)
    table, items, options = sparse.data_set(config, 0, 0), sparse.items_of(config), FitOptions(restarts=5)
    fit = lk.fit(sparse.structure(items, items), table, method="ml", restarts=5)
    codes = np.column_stack([table[name].codes for name in items])
    chances = fit.network.hidden_probabilities(table)["c"]
    rows = [(k, *codes[place].tolist()) for place in range(len(codes)) for k in (0, 1)]
    completed = lk.Table.from_rows(
        rows, ["c", *items], levels={name: [0, 1] for name in ("c", *items)}, weights=chances.ravel()
    )
    subsets = [(), ("x1",), ("x2", "x3"), items]
    scorer = FamilyScores(completed, "bic")
    scores = [score_of(scorer, lk.Dag(["c", *items], [("c", name) for name in children])) for children in subsets]
    found = sparse.predicted_gains(table, items, subsets, options)
    assert found == pytest.approx([score - scores[-1] for score in scores], abs=1e-4)


def test_expected_gains_are_never_above_true_ones(tiny):
    (data,) = tiny[0].sparse
    assert len(data.predicted) == 2**4
    assert all(b >= a - 1e-3 for a, b in zip(data.predicted, data.actual, strict=True))


def test_the_best_structure_is_at_least_as_good_as_the_others(tiny):
    for item in tiny[0].learnt:
        assert item.best >= max(item.full, item.tabu) - 1e-9
        table = signature.generating(0, item.place).sample(400, seed=np.random.SeedSequence([0, item.place, 1]))
        table = table.take(np.arange(item.rows))
        assert lk.score(lk.Dag.parse(item.structure), table, "exact").log_z == pytest.approx(item.best, abs=1e-6)


def test_workers_and_kept_pieces_do_not_change_anything(tiny, tmp_path):
    study, path = tiny
    with Store(tmp_path / "other.sqlite") as store:
        other = run(TINY, store, 2)
    with Store(path) as store:
        before = len(store)
        again = run(TINY, store, 2)
        assert len(store) == before
    for found in (other, again):
        assert found.gains == study.gains
        assert found.sparse == study.sparse
        assert found.learnt == study.learnt
        assert found.curves == study.curves


def test_parts_and_settings():
    config = Config()
    assert config.parts == PARTS
    assert quick(replace(config, seed=3, parts=("sparse",))).seed == 3
    assert quick(replace(config, seed=3, parts=("sparse",))).parts == ("sparse",)
    with pytest.raises(OptionError, match="parts has 'spars'"):
        Config(parts=("spars",))
    with pytest.raises(OptionError, match="restarts is 0"):
        SparseConfig(restarts=0)


def test_files(tiny, tmp_path):
    study, _ = tiny
    files = {path.name: path for path in write(study, tmp_path, "lurking reproduce murphy24")}
    figures = {f"{name}.png" for name in ("evidence", "relabelings", "gains", "sparse", "signature")}
    assert figures | {f"{name}.csv" for name in tables(study)} | {"summary.md"} <= set(files)
    with files["gains.csv"].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["ΔCS"] for row in rows[:3]] == ["-0.4", "7.2", "17.4"]
    text = summary(study, "lurking reproduce murphy24")
    assert "| parameters with and without the hidden variable | 17 and 59 | 17 and 59 | yes |" in text
    assert len(claims(study)) == text.count("| yes |") + text.count("| **no** |") + text.count("| – |")
    part = replace(study, gains=(), sparse=(), learnt=())
    assert {path.name for path in write(part, tmp_path, "x")} == {
        "evidence.png", "evidence.pdf", "evidence.csv", "relabelings.png", "relabelings.pdf", "selected.csv",
        "summary.md",
    }  # fmt: skip
    assert not (tmp_path / "gains.csv").exists()
