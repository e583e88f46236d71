"""The study of Chickering & Heckerman: its counts, its measures by hand, greedy search, workers and interrupts."""

import csv
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError
from lurking.experiments.bench import Sampled, Task
from lurking.experiments.chickering1996 import paper, scores
from lurking.experiments.chickering1996.claims import GOLD, claims
from lurking.experiments.chickering1996.data import (
    EXPERIMENTS,
    FIGURES,
    Experiment,
    data_set,
    drawn_rows,
    generating,
)
from lurking.experiments.chickering1996.output import summary, tables, write
from lurking.experiments.chickering1996.scores import (
    COLUMNS,
    PAPER,
    SOFTMAX,
    Bench,
    Protocol,
    Sampling,
    Scored,
    has_converged,
    scored,
)
from lurking.experiments.chickering1996.selection import (
    differences,
    growth,
    in_words,
    mean_and_deviation,
    mean_peak,
    peak,
    selected,
    shape_distance,
)
from lurking.experiments.chickering1996.study import Config, Study, quick, run, seeded
from lurking.learn.fit import fit_problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Silent
from lurking.runtime.store import Key, Store

TINY = Config(
    experiments=(Experiment(4, 2, 60, (1, 2, 3)), Experiment(6, 3, 80, (2, 3))),
    sets=2,
    protocol=Protocol(copies=4, iterations=20),
    epsilons=(0.01, 0.1),
    epsilon_sets=1,
    sampling=Sampling(target=1.0, passes=1 << 11, most_variables=4, most_states=3),
    timed=Experiment(6, 3, 80),
    timed_states=(2, 4),
    checked=((5, 2, 200), (6, 2, 200)),
    checked_states=(2, 3),
    repeats=2,
)
CASE = (4, 2, 60)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "kept.sqlite"
    with Store(path) as store:
        return run(TINY, store, 1), path


def test_counts_of_the_paper():
    assert 5 * sum(len(experiment.states) for experiment in EXPERIMENTS) == paper.RUNS
    cases = {experiment.case for experiment in EXPERIMENTS}
    assert set(paper.TABLE1) == cases
    assert {case for _, panels in FIGURES.values() for case in panels} == cases
    config = Config()
    assert [config.timed.dimension(states) for states in config.timed_states] == list(paper.TABLE2)
    assert all(len(row) == len(paper.TIMED) for row in paper.TABLE2.values())
    problem = lk.Problem("c[26] -> *", data_set(64, 32, 10, 0, 0))
    assert problem.dimension == 1689


def test_data_follow_their_model_and_are_nested():
    parameters = generating(5, 3, 7)
    assert parameters.weights.sum() == pytest.approx(1.0)
    rows = np.concatenate([drawn_rows(parameters, np.random.default_rng(seed), 800) for seed in range(50)])
    expected = parameters.weights @ parameters.ones
    assert rows.mean(axis=0) == pytest.approx(expected, abs=4.0 * 0.5 / math.sqrt(len(rows)))
    pairs = parameters.ones.T @ (parameters.weights[:, None] * parameters.ones)
    found = rows.T @ rows / len(rows)
    off = ~np.eye(5, dtype=bool)
    assert found[off] == pytest.approx(pairs[off], abs=4.0 * 0.5 / math.sqrt(len(rows)))
    small, large = data_set(5, 3, 20, 7, 1), data_set(5, 3, 800, 7, 1)
    assert all(np.array_equal(small[name].codes, large[name].codes[:20]) for name in small.columns)
    assert all(column.cardinality == 2 for column in map(small.__getitem__, small.columns))
    others = [data_set(5, 3, 20, 7, 2), data_set(5, 3, 20, 8, 1), data_set(5, 3, 20, 7, 1, repeat=1)]
    assert len({small.digest, *(other.digest for other in others)}) == 4


def test_generating_parameters_are_uniform():
    draws = np.asarray([generating(4, 3, seed).ones[0, 0] for seed in range(2000)])
    assert draws.mean() == pytest.approx(0.5, abs=4.0 * math.sqrt(1.0 / 12.0 / 2000.0))
    weights = np.asarray([generating(4, 3, seed).weights[0] for seed in range(2000)])
    # One entry of a uniform row of three has mean 1/3 and variance 1/18.
    assert weights.mean() == pytest.approx(1.0 / 3.0, abs=4.0 * math.sqrt(1.0 / 18.0 / 2000.0))


def test_scores_are_those_of_the_library():
    table, protocol = data_set(6, 3, 80, 0, 0), Protocol(copies=8, iterations=30)
    made = scored(protocol.problem(3, table), protocol.options(StopFlag()))
    options = {"tournament": 8, "max_iter": 30, "tol": 1e-13, "accelerate": False, "prior": 1.01}
    for names, at, basis in ((PAPER, "map-probability", "probability"), (SOFTMAX, "map", "logit")):
        own = {"at": at, "basis": basis}
        alone = lk.score("c[3] -> *", table, ["laplace", "cs", "mled", "draper", "bic"], **options, **own)
        assert [made.values[name] for name in names] == pytest.approx([one.log_z for one in alone], rel=1e-12)
    assert made.values["vb"] == pytest.approx(lk.score("c[3] -> *", table, "vb", **options).log_z, rel=1e-12)
    assert set(made.values) == set(COLUMNS)
    assert made.log_aliases == pytest.approx(math.log(6.0))


def test_convergence_is_the_paper_s():
    problem = Protocol().problem(3, data_set(6, 3, 80, 0, 0))
    fit = fit_problem(problem, "map-probability", FitOptions(max_iter=3, tol=0.0, accelerate=False))
    assert fit.status is Status.MAX_ITER

    def ending(*trace):
        return has_converged(replace(fit, trace=np.asarray(trace), objective=trace[-1]))

    assert ending(-900.0, -100.0009, -100.0)
    assert not ending(-900.0, -100.0011, -100.0)
    assert not ending(-100.0)
    assert has_converged(replace(fit, trace=np.asarray([-100.0]), status=Status.CONVERGED))


def _scored(**values):
    return Scored(dict.fromkeys(COLUMNS, 0.0) | values, 0.0, True, {})


def _study_of(curves, sampled=None):
    """Return a study with given curves {score: [values at 2, 3, 4 states for each data set]} of one experiment."""
    count = len(next(iter(curves.values())))
    made = tuple(
        {
            states: _scored(**{name: own[k][states - 2] for name, own in curves.items()})
            for states in range(2, 2 + len(next(iter(curves.values()))[0]))
        }
        for k in range(count)
    )
    config = replace(TINY, experiments=(Experiment(8, 3, 400, (2, 3, 4)),), sets=count)
    case = (8, 3, 400)
    truths = {case: tuple(_scored() for _ in range(count))}
    return Study(config, {case: made}, truths, {}, sampled or {}, (), ())


def test_selection_and_differences_by_hand():
    assert selected({4: -1.0, 2: -3.0, 3: -1.0}) == 3
    study = _study_of({GOLD: [[0, 5, 1], [0, 5, 1]], "bic": [[3, 2, 1], [1, 4, 0]], "cs": [[0, 1, 2], [0, 1, 0]]})
    case = (8, 3, 400)
    assert differences(study, case, "bic", GOLD) == [-1, 0]
    assert differences(study, case, "cs", GOLD) == [1, 0]
    assert differences(study, case, "cs", "bic") == [2, 0]
    assert mean_and_deviation([-1, 0, 0, 0, 0]) == pytest.approx((-0.2, math.sqrt(0.2)))
    assert in_words([-1, 0, 0, 0, 0]) == "-0.2 ± 0.4"  # as table 1 prints it
    assert in_words([0, 0]) == "0"
    assert in_words([3]) == "3.0 ± 0.0"
    assert mean_peak(study, case, GOLD) == 4.0
    assert peak({2: 1.0, 3: 5.0}, 3) == 4.0
    assert peak({2: 1.0, 3: 5.0}, 7) is None
    assert peak({3: 5.0}, 3) is None


def test_shapes_forget_the_height():
    study = _study_of({GOLD: [[0, 5, 1]], "cs": [[10, 15, 11]], "bic": [[0, 5, 4]]})
    case = (8, 3, 400)
    assert shape_distance(study, case, "cs", GOLD) == pytest.approx(0.0, abs=1e-12)
    assert shape_distance(study, case, "bic", GOLD) == pytest.approx(math.sqrt(2.0))
    assert growth([10, 20, 40], [1.0, 4.0, 16.0]) == pytest.approx(2.0)


def test_sampled_evidence_is_a_reference_too():
    case = (8, 3, 400)
    sampled = {case: ({2: Sampled(-5.0, 0.1, "SAMPLED"), 3: Sampled(-4.0, 0.1, "UNTRUSTED")},)}
    study = _study_of({GOLD: [[-6.0, -7.0, 1.0]], "vb": [[-5.5, -3.0, -2.0]]}, sampled)
    assert differences(study, case, GOLD, "sampled") == [1]
    found = {claim.text: claim for claim in claims(study)}
    bound = found["sampled evidence lies above the variational bound"]
    assert bound.holds is False
    assert bound.here.startswith("1 of 2 below it; median nominal error 0.10; 1 marked untrusted")


def test_claims_can_fail(tiny):
    study, _ = tiny
    text = "EM converges in all but one run (relative change below 1e-05 after 20 iterations)"
    curves = {
        case: tuple({k: replace(one, has_converged=False) for k, one in curve.items()} for curve in own)
        for case, own in study.curves.items()
    }
    (claim,) = [one for one in claims(replace(study, curves=curves)) if one.text == text]
    assert (claim.here, claim.holds) == ("0 of 10", False)


def test_parts_of_the_experiments_decide_nothing(tiny):
    study, _ = tiny
    found = {claim.text: claim.holds for claim in claims(study)}
    assert found["CS and MLED tend to select models that are too complex, Draper too simple"] is None
    assert found["CS and MLED select almost the same, except for small n"] is None
    assert found["sampled evidence lies above the variational bound"] is not None


def test_nothing_is_made_twice_and_workers_do_not_matter(tiny, tmp_path):
    study, path = tiny
    with Store(path) as store:
        count = len(store)
        again = run(TINY, store, 2)
        assert len(store) == count
        assert again.times == study.times
    with Store(tmp_path / "other.sqlite") as store:
        other = run(TINY, store, 2)
    assert tables(other) | {"table2": 0} == tables(study) | {"table2": 0}


def test_the_study_has_all_its_parts(tiny):
    study, _ = tiny
    assert [len(curves) for curves in study.curves.values()] == [2, 2]
    assert set(study.sampled) == {CASE}
    assert set(study.sampled[CASE][0]) == {1, 2, 3}
    assert [(check.n, check.sampled is not None) for check in study.checks] == [
        (5, True), (5, True), (6, False), (6, False)
    ]  # fmt: skip
    assert [timing.d for timing in study.times] == [1 + 12, 3 + 24]
    assert all(timing.em > 0.0 and timing.laplace > 0.0 for timing in study.times)
    assert study.epsilons[0.01][CASE][0] == study.curves[CASE][0]
    assert study.epsilons[0.1][CASE][0] != study.curves[CASE][0]
    one_state = study.curves[CASE][0][1]
    # Nothing is hidden with one state: the bound and CS are exact.
    assert one_state.values["vb"] == pytest.approx(one_state.values["cs"])
    check = study.checks[0]
    assert check.gain("cs") == max(own.values["cs"] for own in check.scores.values()) - check.complete


def test_files(tiny, tmp_path):
    study, _ = tiny
    (tmp_path / "figure1.png").write_text("of another study")
    files = write(study, tmp_path, "lurking reproduce chickering1996")
    assert not (tmp_path / "figure1.png").exists()  # none of its panels is in this study
    assert {path.name for path in files} == {
        "times.png", "times.pdf", "scores.csv", "table1.csv", "table1-sampled.csv", "table2.csv", "epsilon.csv",
        "reality.csv", "summary.md",
    }  # fmt: skip
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 + 2 * 2
    assert float(rows[4]["mled"]) == study.curves[CASE][1][2].values["mled"]
    assert (rows[4]["data set"], rows[4]["states"], rows[4]["d"]) == ("2", "2", "9")
    assert float(rows[4]["sampled"]) == study.sampled[CASE][1][2].log_z
    with (tmp_path / "table1.csv").open(newline="") as file:
        (first, _) = csv.DictReader(file)
    assert float(first["bic"]) == np.mean(differences(study, CASE, "bic", GOLD))
    page = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert page == summary(study, "lurking reproduce chickering1996")
    assert "Made by `lurking reproduce chickering1996`." in page


def test_the_page_prints_the_paper_s_numbers():
    case = (8, 4, 400)
    curves = {case: ({2: _scored(), 3: _scored(mled=1.0), 4: _scored(**dict.fromkeys((GOLD, "cs"), 1.0))},) * 2}
    study = replace(_study_of({GOLD: [[0, 1, 0]]}), curves=curves)
    page = summary(study, "made up")
    assert "| 8 | 4 | 400 | 4.0 | 0 (0) | -1.0 ± 0.0 (0.4 ± 1.5) | -2.0 ± 0.0 (0) | -2.0 ± 0.0 (-0.2 ± 0.4)" in page


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Experiment(0, 4, 400), "n is 0"),
        (lambda: Experiment(8, 0, 400), "c is 0"),
        (lambda: Experiment(8, 4, 0), "rows is 0"),
        (lambda: Experiment(8, 4, 801), "rows is 801"),
        (lambda: Experiment(8, 4, 400, ()), "at least one number of states"),
        (lambda: Experiment(8, 4, 400, (3, 2)), "rising order"),
        (lambda: Experiment(8, 4, 400, (0, 2)), "states is 0"),
        (lambda: Protocol(epsilon=0.0), "epsilon is 0.0"),
        (lambda: Protocol(copies=0), "copies is 0"),
        (lambda: replace(TINY, sets=0), "sets is 0"),
        (lambda: replace(TINY, epsilon_sets=3), "epsilon_sets is 3"),
        (lambda: replace(TINY, epsilons=(-1.0,)), "epsilons has -1.0"),
        (lambda: replace(TINY, checked=((0, 3, 800),)), "n is 0"),
        (lambda: replace(TINY, experiments=TINY.experiments[:1] * 2), "name each once"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(OptionError, match=words):
        make()


def test_seeds():
    config = seeded(Config(), 7)
    assert config.protocol.seed == quick(config).protocol.seed == 7
    assert all(case in {one.case for one in EXPERIMENTS} for case in (one.case for one in quick(config).experiments))


def test_an_interrupted_piece_is_not_kept_and_the_others_are(tmp_path, monkeypatch, tiny):
    study, _ = tiny
    made = itertools.count()

    def interrupted(problem, options):
        if next(made) == 5:
            raise KeyboardInterrupt
        return scored(problem, options)

    with Store(tmp_path / "kept.sqlite") as store:
        monkeypatch.setattr(scores, "scored", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(TINY, store, 1)
        assert len(store) == 5
        monkeypatch.undo()
        resumed = run(TINY, store, 1)
    assert tables(resumed) | {"table2": 0} == tables(study) | {"table2": 0}


def test_a_piece_that_was_stopped_is_not_kept(tmp_path):
    def make():
        bench.stop.set()
        return 1.0

    with Store(tmp_path / "kept.sqlite") as store:
        bench = Bench(store, 1, StopFlag(), Silent())
        with pytest.raises(KeyboardInterrupt):
            bench.each("pieces", [Task(Key("a", "b", "c", "d", 0), make)])
        assert len(store) == 0


def test_tasks_come_back_in_their_own_order(tmp_path):
    with Store(tmp_path / "kept.sqlite") as store:
        bench = Bench(store, 2, StopFlag(), Silent())
        tasks = [Task(Key(str(k), "", "", "", 0), lambda k=k: k, (7 * k) % 5) for k in range(9)]
        assert bench.each("pieces", tasks) == list(range(9))


@pytest.mark.parametrize("change", [{"epsilon": 0.5}, {"copies": 2}, {"iterations": 2}, {"seed": 1}])
def test_another_protocol_is_computed_anew(tmp_path, change):
    protocol = Protocol(copies=4, iterations=20)
    table = data_set(6, 3, 80, 0, 0)
    with Store(tmp_path / "kept.sqlite") as store:
        bench = Bench(store, 1, StopFlag(), Silent())
        first, second = (
            bench.each("one", [bench.scoring(table, 3, own)]) for own in (protocol, replace(protocol, **change))
        )
        assert len(store) == 2
    assert first != second


def test_from_the_truth_is_another_piece(tmp_path):
    table, truth, protocol = data_set(6, 3, 80, 0, 0), generating(6, 3, 0), Protocol(iterations=500)
    with Store(tmp_path / "kept.sqlite") as store:
        bench = Bench(store, 1, StopFlag(), Silent())
        (made,) = bench.each("one", [bench.scoring_from(table, truth, protocol)])
    alone = lk.score("c[3] -> *", table, "bic", at="map-probability", prior=1.01, init=truth.tables(), restarts=1)
    assert made["values"]["bic"] == pytest.approx(alone.log_z, abs=1e-3)
    assert set(made["values"]) == set(PAPER)
