"""The study of Beal & Ghahramani: its counts, its measures by hand, workers, interrupts and kills."""

import csv
import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError
from lurking.experiments.beal2006 import metrics, paper
from lurking.experiments.beal2006 import study as study_module
from lurking.experiments.beal2006.claims import claims
from lurking.experiments.beal2006.contenders import (
    CORRECTED,
    METHODS,
    ClassScores,
    Protocol,
    contenders,
    divergence,
    log_aliases,
    log_aliases_counted,
    posterior_of,
    rank_of,
    score_class,
    true_place,
)
from lurking.experiments.beal2006.data import SIZES, drawn_tables, rows_from, true_table
from lurking.experiments.beal2006.output import summary, tables, write
from lurking.experiments.beal2006.sampled import (
    VERSION,
    Annealing,
    Bench,
    Chains,
    Reference,
    chains_of,
    faithful,
    reference,
    within,
)
from lurking.experiments.beal2006.study import Config, OneDraw, drawn_data, quick, run, seeded
from lurking.experiments.bench import Sampled
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Silent
from lurking.runtime.store import Store

PINNED_CHAINS, PINNED_SAMPLED = [-307.927496, -302.427838], -242.224789
TINY = Config(
    sizes=(10, 40),
    annealing=Annealing(steps=8, chains=5),
    annealed_sizes=(10,),
    reference=Reference(target=1.0, passes=1 << 12),
    reference_sizes=(40,),
    draws=2,
    sampled_draws=1,
    sampled_sizes=(10,),
    most=2,
    timed_size=10,
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "kept.sqlite"
    with Store(path) as store:
        return run(TINY, store, 1), path


def test_counts_of_the_paper():
    found = contenders()
    dimensions = [one.dimension for one in found]
    assert (len(found), min(dimensions), max(dimensions)) == (136, 18, 66)
    assert found[true_place()].dimension == 50
    assert sum(d == 66 for d in dimensions) == sum(d == 18 for d in dimensions) == 1
    assert math.exp(found[true_place()].log_aliases) == pytest.approx(4.0)
    assert math.exp(max(log_aliases())) == pytest.approx(8.0)


def test_aliases_as_the_paper_seems_to_count_them():
    counted = dict(zip((str(one.dag) for one in contenders()), log_aliases_counted(), strict=True))
    assert sorted({round(math.exp(value)) for value in counted.values()}) == [1, 2, 8]
    assert math.exp(log_aliases_counted()[true_place()]) == pytest.approx(8.0)
    # One structure has no links; in 15 a single hidden node has children.
    assert [sum(math.isclose(math.exp(value), s) for value in counted.values()) for s in (1, 2, 8)] == [1, 15, 120]


def test_scores_are_those_of_each_structure_alone():
    table = true_table(80)
    made = score_class(table, Protocol(), 2, StopFlag())
    names = {"map": "map-likelihood", "bic": "bic", "bicp": "bicp", "cs": "cs", "vb": "vb"}
    for place in (0, 17, true_place(), 135):
        options = {"restarts": 3, "tol": 1e-6, "max_iter": 1000, "seed": 0, "prune": False}
        alone = lk.score(contenders()[place].dag, table, list(names.values()), **options)
        for method, name in names.items():
            assert made.values[method][place] == pytest.approx(alone[name].log_z, rel=1e-12)
    assert made.below_cs >= made.still_below_cs == 0
    again = ClassScores.of(json.loads(json.dumps(made.content())))
    assert all(np.array_equal(again.values[method], made.values[method]) for method in METHODS)
    assert (again.n, again.unfinished, again.below_cs) == (80, made.unfinished, made.below_cs)


def test_ranks_posteriors_and_divergences_by_hand():
    scores = np.asarray([-3.0, -1.0, -2.0, -1.0 + 1e-14])
    assert [rank_of(scores, place) for place in range(4)] == [4, 1, 3, 1]
    assert posterior_of(np.log([1.0, 3.0])) == pytest.approx([0.25, 0.75])
    reference = np.log([0.5, 0.5, 1e-300])
    reference[2] = -math.inf
    assert divergence(reference, np.log([1.0, 2.0, 1.0])) == pytest.approx(0.5 * math.log(2.0) + 0.0)
    assert divergence(np.log([0.2, 0.8]), np.log([2.0, 8.0])) == pytest.approx(0.0, abs=1e-15)


def test_structures_near_the_best_bound():
    bounds = np.asarray([-30.0, -10.0, -12.0, -29.9])
    assert within(bounds, 20.0) == [1, 2, 3, 0]
    assert within(bounds, 19.95) == [1, 2, 3]
    assert within(bounds, 20.0, 2) == [1, 2]
    assert within(bounds - np.asarray([1e9, 0.0, 0.0, 0.0]), None) == [1, 2, 3, 0]


def test_bands_are_split_at_the_widest_gaps():
    upper, middle, lower = metrics.bands(np.asarray([-50.0, -1.0, -20.0, -51.0, -2.0, -21.5]))
    assert (upper, middle, lower) == ([1, 4], [2, 5], [0, 3])


def test_printed_numbers():
    assert all(len(row) == len(SIZES) for row in paper.RANKS.values())
    assert paper.RANKS["vb"][SIZES.index(1280)] == 3
    assert paper.printed_violation("AIS(1) < VB*", 10240) == "71.7"
    assert paper.printed_violation("AIS(5) < VB", 10) == "<= 1.9"
    assert paper.printed_violation("variational path < VB*", 640) == ""


def test_drawn_data_are_nested_and_from_the_prior():
    config = replace(TINY, sizes=(10, 40, 10240))
    small, large = (drawn_data(3, config)[n] for n in (10, 10240))
    for name in large.columns:
        assert np.array_equal(small[name].codes, large[name].codes[:10])
    assert not np.array_equal(drawn_data(4, config)[10]["y1"].codes, small["y1"].codes)
    first = np.asarray([drawn_tables(draw)["y1"][0] for draw in range(2000)])
    # Each probability of a uniform row of five has mean 1/5 and variance 4/150; four standard errors.
    assert first.mean(axis=0) == pytest.approx(0.2, abs=4.0 * math.sqrt(4.0 / 150.0 / 2000.0))
    assert first.var(axis=0) == pytest.approx(4.0 / 150.0, rel=0.15)
    with pytest.raises(OptionError, match="n is 0"):
        rows_from(drawn_tables(0), np.random.default_rng(0), 0)


def _draw_of(values):
    """Return one draw with given scores of all methods at one size."""
    own = {method: np.asarray(values, float) for method in METHODS}
    return OneDraw({480: ClassScores(480, own, {}, 0, 0)}, {}, {})


def test_averages_over_draws_by_hand():
    low, high = np.full(136, -10.0), np.full(136, -10.0)
    low[true_place()], high[true_place()] = -20.0, 0.0
    found = metrics.averaged([_draw_of(low), _draw_of(high), _draw_of(high)])
    assert found["median rank"]["map"][480] == 1.0
    assert found["best rank"]["map"][480] == 1.0
    assert found["success rate"]["map"][480] == pytest.approx(2.0 / 3.0)
    belief = [math.exp(-10.0) / (135.0 + math.exp(-10.0)), *2 * [math.exp(10.0) / (135.0 + math.exp(10.0))]]
    assert found["mean posterior"]["map"][480] == pytest.approx(np.mean(belief))
    assert found["above uniform"]["map"][480] == pytest.approx(2.0 / 3.0)
    assert set(found["median rank"]) == set(METHODS)


def test_violations_by_hand():
    bound = np.full(136, -100.0)
    shares = [0.25 if one.dag.edges else 0.0 for one in contenders()]
    chains = tuple(Chains(np.asarray([-101.0, *4 * [-90.0]]), share) for share in shares)
    scores = ClassScores(480, dict.fromkeys(METHODS, bound), {}, 0, 0)
    sampled = {480: {0: Sampled(-100.5, 0.1, "SAMPLED"), 1: Sampled(-99.0, 0.1, "UNTRUSTED")}}
    found = metrics.violations(OneDraw({480: scores}, {480: chains}, sampled))
    assert found["AIS(1) < VB*"][480] == 100.0
    assert found["AIS(5) < VB*"][480] == 0.0
    assert found["AIS(5) < VB"][480] == 0.0
    assert found["rejected proposals"][480] == 25.0
    assert found["variational path < VB*"][480] == 50.0


def test_nothing_is_made_twice_and_workers_do_not_matter(tiny, tmp_path):
    study, path = tiny
    with Store(path) as store:
        count = len(store)
        assert run(TINY, store, 1).times == study.times
        assert len(store) == count
        assert run(TINY, store, 2).times.workers == 2
        assert len(store) == count + 1  # times of two workers are their own
    with Store(tmp_path / "other.sqlite") as store:
        other = run(TINY, store, 2)
    assert tables(other) | {"times": 0} == tables(study) | {"times": 0}


def test_the_study_has_all_its_parts(tiny):
    study, _ = tiny
    assert set(study.single.scores) == {10, 40}
    assert len(study.single.chains[10]) == 136
    assert true_place() in study.single.sampled[40]
    assert 2 <= len(study.single.sampled[40]) <= 3
    assert [bool(draw.sampled) for draw in study.draws] == [True, False]
    total, below, still = metrics.below_cs(study.draws)
    assert (total, still) == (2 * 2 * 136, 0)
    assert below == sum(own.below_cs for draw in study.draws for own in draw.scores.values())
    assert min(study.times.em, study.times.vb, study.times.batch) > 0.0
    assert study.times.workers == 1


def test_files(tiny, tmp_path):
    study, _ = tiny
    files = write(study, tmp_path, "lurking reproduce beal2006")
    assert all(path.stat().st_size > 100 for path in files if path.suffix != ".csv")
    assert {path.name for path in files} >= {"figure2.png", "figure3.pdf", "figure4.png", "figure5.png", "summary.md"}
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 136
    row = rows[136 + true_place()]
    assert float(row["vb*"]) == study.single.scores[40].values["vb"][true_place()]
    assert (row["n"], row["d"], row["status"] != "") == ("40", "50", True)
    with (tmp_path / "table2.csv").open(newline="") as file:
        ranked = {int(line["n"]): line for line in csv.DictReader(file)}
    assert int(ranked[10]["cs*"]) == rank_of(study.single.scores[10].values["cs"], true_place())
    assert int(ranked[40]["cs in the paper"]) == 107
    page = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert page == summary(study, "lurking reproduce beal2006")
    assert "| 136, 18 to 66, 50 | 136, 18 to 66, 50 | yes |" in page


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_claims_can_fail(tiny, sign):
    study, _ = tiny
    dimensions = np.asarray([one.dimension for one in contenders()], float)
    scores = {
        n: replace(own, values={**own.values, "map": sign * dimensions}) for n, own in study.single.scores.items()
    }
    other = replace(study, single=replace(study.single, scores=scores))
    found = {claim.text: claim.holds for claim in claims(other)}
    assert found["MAP prefers large structures"] is (sign > 0.0)


def test_few_draws_decide_nothing(tiny):
    study, _ = tiny
    texts = {claim.text: claim.holds for claim in claims(study)}
    assert texts["VB below CS when it starts at the MAP point"] is True
    assert texts["there is a region where VB falls behind CS (median rank)"] is None
    assert texts["VB ranks the true structure first most often at n = 40"] is None


def test_all_structures_can_be_sampled(tmp_path, monkeypatch):
    config = replace(TINY, annealed_sizes=(), draws=0, nats=None, most=None, sizes=(10,), reference_sizes=(10,))

    def reference_of(_bench, pieces, _setting):
        return [Sampled(-place, 0.1, "SAMPLED") for _, place in pieces]

    monkeypatch.setattr(study_module, "reference", reference_of)
    with Store(tmp_path / "kept.sqlite") as store:
        sampled = run(config, store, 2).single.sampled[10]
    assert {place: own.log_z for place, own in sampled.items()} == {place: -place for place in range(136)}


def test_seeds():
    config = seeded(Config(), 7)
    assert {config.seed, config.protocol.seed, config.annealing.seed, config.reference.seed} == {7}
    assert quick(config).protocol == config.protocol


def test_sizes_must_be_among_the_sizes():
    with pytest.raises(OptionError, match="reference_sizes has 20, which is not among sizes"):
        replace(TINY, reference_sizes=(20,))


def _bench(store):
    return Bench(store, 1, StopFlag(), Silent())


OTHERS = [
    *((faithful, Annealing(steps=8, chains=5), replace(Annealing(steps=8, chains=5), **change))
      for change in ({"steps": 9}, {"chains": 4}, {"strength": 900.0}, {"seed": 1})),
    *((reference, TINY.reference, replace(TINY.reference, **change))
      for change in ({"target": 0.001}, {"passes": 1 << 13}, {"seed": 1})),
]  # fmt: skip


@pytest.mark.parametrize(("sample", "setting", "other"), OTHERS)
def test_another_setting_never_finds_an_old_value(tmp_path, sample, setting, other):
    pieces = [(true_table(10), true_place())]
    with Store(tmp_path / "kept.sqlite") as store, Store(tmp_path / "fresh.sqlite") as fresh:
        first = sample(_bench(store), pieces, setting)
        (second,), (alone,) = (sample(_bench(one), pieces, other) for one in (store, fresh))
    assert numbers_of(second) == numbers_of(alone)
    assert numbers_of(second) != numbers_of(first[0])


def numbers_of(found):
    """Return the numbers of a piece as a list."""
    return found.log_weights.tolist() if isinstance(found, Chains) else [found.log_z, found.std_error, found.status]


def test_other_data_and_structures_never_find_an_old_value(tmp_path):
    pieces = [(true_table(10), true_place()), (true_table(11), true_place()), (true_table(10), 5)]
    with Store(tmp_path / "kept.sqlite") as store:
        found = faithful(_bench(store), pieces, TINY.annealing)
    assert len({chains.log_weights[0] for chains in found}) == 3


@pytest.mark.parametrize("change", [{"restarts": 1}, {"tol": 1e-2}, {"max_iter": 1}, {"seed": 9}])
def test_another_protocol_is_computed_anew(tmp_path, change):
    config = replace(TINY, sizes=(40,), annealed_sizes=(), reference_sizes=(), sampled_sizes=(), draws=0)
    other = replace(config, protocol=replace(config.protocol, **change))
    with Store(tmp_path / "kept.sqlite") as store:
        first, second = (run(one, store, 1).single.scores[40].values["vb"] for one in (config, other))
    assert not np.array_equal(first, second)


def test_an_interrupted_piece_is_not_kept(tmp_path):
    def make(problem):
        bench.stop.set()
        return 1.0

    with Store(tmp_path / "kept.sqlite") as store:
        bench = _bench(store)
        with pytest.raises(KeyboardInterrupt):
            bench.each("pieces", [(true_table(10), 3)], "score", TINY.annealing, make)
        assert len(store) == 0


def test_values_that_keep_their_version():
    """When one of these changes, stored values have become wrong: raise `sampled.VERSION` with it."""
    problem = lk.Problem(contenders()[true_place()].dag, true_table(40))
    chains = chains_of(problem, Annealing(steps=64, chains=2), StopFlag())
    assert chains.log_weights == pytest.approx(PINNED_CHAINS, abs=1e-5)
    found = lk.score(problem.dag, true_table(40), "ais", target=1.0, passes=1 << 12, seed=0)
    assert found.log_z == pytest.approx(PINNED_SAMPLED, abs=1e-5)
    assert VERSION == 2


# Runs the study and kills itself, without warning, just before or after the given piece is kept.
RUN = """
import itertools, os, signal, sys
from pathlib import Path
from lurking.runtime.store import Store
sys.path.insert(0, sys.argv[2])
from test_study import TINY
from lurking.experiments.beal2006.study import run
put, number, wanted = Store.put, itertools.count(1), int(sys.argv[3])

def killed(self, *piece):
    is_last = next(number) == abs(wanted)
    if not is_last or wanted > 0:
        put(self, *piece)
    if is_last:
        os.kill(os.getpid(), signal.SIGKILL)

Store.put = killed
with Store(Path(sys.argv[1])) as store:
    run(TINY, store, 2)
"""


@pytest.mark.long
def test_killed_again_and_again_it_comes_to_the_same(tiny, tmp_path):
    study, _ = tiny
    path, here = tmp_path / "kept.sqlite", str(Path(__file__).parent)
    kept = []
    for piece in (3, -60, 30):
        command = [sys.executable, "-c", RUN, str(path), here, str(piece)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        with Store(path) as store:
            kept.append(len(store))
    assert 3 <= kept[0] < kept[1] < kept[2]
    with Store(path) as store:
        resumed = run(TINY, store, 1)
    assert tables(resumed) | {"times": 0} == tables(study) | {"times": 0}


def test_a_study_cannot_miss_a_method(tiny):
    study, _ = tiny
    columns = metrics.all_columns(study.single, 40)
    assert set(columns) == {"map", "sampled", *CORRECTED, *(f"{name}*" for name in CORRECTED)}
    for name in CORRECTED:
        assert columns[name] - columns[f"{name}*"] == pytest.approx(log_aliases())
