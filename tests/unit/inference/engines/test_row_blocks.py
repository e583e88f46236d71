"""Rows in blocks give what all rows give at once, wherever they are kept and however many threads work on them."""

import gc

import numpy as np
import pytest

import lurking as lk
from lurking.data import files
from lurking.errors import OptionError, TooLarge
from lurking.inference import problem as problems
from lurking.inference.binding import node_codes
from lurking.inference.engines.choice import choose_engine
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.junction import JunctionEngine
from lurking.inference.engines.row_blocks import BlockEngine, DiskShelf, MemoryShelf
from lurking.inference.engines.rows import Rows
from lurking.runtime.executor import StopFlag

MODELS = {
    "latent class": "class[3] -> *",
    "two causes": "s[2] -> x0 x1 x2 x3; t[2] -> x2 x3 x4 x5",
    "chain": "; ".join(f"h{i}[2] -> h{i + 1}[2]" for i in range(6))
    + "; "
    + "; ".join(f"h{i} -> x{i}" for i in range(6)),
    "no hidden": "x0 -> x1 -> x2 -> x3; x3 -> x4 x5",
}

LEVELS = {f"x{i}": range(3) for i in range(6)}


def table_of(rows=900, empty=0.15, seed=0):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 3, (rows, 6)).astype(float)
    data[rng.random(data.shape) < empty] = np.nan
    return lk.Table.from_array(
        data, levels={f"x{i}": range(3) for i in range(6)}, weights=rng.choice([1.0, 2.0, 0.5], rows)
    )


def blocked(problem, shelf, size=200, make=choose_engine):
    blocks = [
        Rows.of_codes(node_codes(problem.layout, codes), weights)
        for codes, weights in problem.table.blocks(problem.dag.observed, size)
    ]
    return BlockEngine(problem.layout, blocks, len(blocks), problem.prune, make, shelf)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("make", [choose_engine, EnumerationEngine, JunctionEngine])
@pytest.mark.parametrize("prune", [False, True])
def test_blocks_add_up(name, make, prune, tmp_path):
    problem = lk.Problem(MODELS[name], table_of(), prune=prune)
    phi = np.log(problem.layout.normalise(np.random.default_rng(1).random(problem.layout.size)))
    counts, log_z = problem.engine.expect(phi)
    in_memory = blocked(problem, MemoryShelf(), make=make)
    assert in_memory.expect(phi)[1] == pytest.approx(log_z, rel=1e-12)
    assert in_memory.expect(phi)[0] == pytest.approx(counts, rel=1e-10, abs=1e-9)
    on_disk = blocked(problem, DiskShelf(tmp_path), make=make)
    for workers in (1, 3):
        on_disk.workers = workers
        own, own_log_z = on_disk.expect(phi)
        assert own_log_z == in_memory.expect(phi)[1]
        assert np.array_equal(own, in_memory.expect(phi)[0])


def test_rows_are_not_kept():
    problem = lk.Problem(MODELS["latent class"], table_of())
    engine = blocked(problem, MemoryShelf())
    phi = np.zeros(problem.layout.size)
    for ask in (engine.pattern_log_z, engine.pattern_statistics, lambda p: engine.pattern_marginals(p, 0)):
        with pytest.raises(TooLarge, match="not kept"):
            ask(phi)


@pytest.fixture
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr(problems, "MANY_ROWS", 100)
    monkeypatch.setattr(problems, "BLOCK_ROWS", 128)


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_a_fit_over_blocks_is_the_fit(few_rows_are_many, method):
    table = table_of(700, empty=0.05)
    options = {"method": method, "restarts": 2, "seed": 3, "max_iter": 25, "tol": 0.0}
    fit = lk.fit(MODELS["latent class"], table, **options)
    assert fit.problem.in_blocks
    assert isinstance(fit.problem.engine, BlockEngine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "MANY_ROWS", 10**9)
        patch.setattr(problems, "BLOCK_ROWS", 10**9)
        whole = lk.fit(MODELS["latent class"], table, **options)
    assert isinstance(whole.problem.engine, EnumerationEngine)
    assert fit.objective == pytest.approx(whole.objective, rel=1e-10)
    assert fit.trace == pytest.approx(whole.trace, rel=1e-9)
    assert fit.problem.n_empty == whole.problem.n_empty
    for workers in (1, 2):
        assert lk.fit(MODELS["latent class"], table, workers=workers, **options).objective == fit.objective


def test_rows_that_repeat_are_merged_instead(few_rows_are_many):
    rows = np.tile(np.arange(4)[:, None] // [2, 1] % 2, (100, 1))
    problem = lk.Problem("class[2] -> a b", lk.Table.from_array(rows, ["a", "b"]))
    assert not problem.in_blocks
    assert isinstance(problem.engine, EnumerationEngine)


def test_many_different_rows_are_blocked_even_when_merged(monkeypatch):
    monkeypatch.setattr(problems, "BLOCK_ROWS", 128)
    problem = lk.Problem(MODELS["latent class"], table_of())
    assert not problem.in_blocks
    assert isinstance(problem.engine, BlockEngine)
    assert len(problem.engine.pieces) == -(-len(problem.rows.codes) // 128)


def test_the_reference_engine_cannot_work_in_blocks(few_rows_are_many):
    with pytest.raises(OptionError, match="cannot work in blocks"):
        _ = lk.Problem(MODELS["latent class"], table_of(), engine="reference").engine


@pytest.fixture
def on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CELL_BYTES", 1 << 40)
    monkeypatch.setattr(problems, "BLOCK_ROWS", 128)
    table_of(600).to_frame(weights="w").to_csv(tmp_path / "rows.csv", index=False)
    table = lk.read(tmp_path / "rows.csv", weights="w", memory="1GB", levels=LEVELS)
    assert table.is_on_disk
    return table


def test_a_table_on_disk_is_fitted_scored_and_compared(on_disk):
    table = table_of(600)
    options = {"restarts": 2, "seed": 0, "tol": 1e-9}
    for score in ("vb", "cs", "bic"):
        value = lk.score("class[2] -> *", on_disk, score, **options).log_z
        assert value == pytest.approx(lk.score("class[2] -> *", table, score, **options).log_z, abs=1e-3)
    comparison = lk.compare("class[1..2] -> *", on_disk, scores=["vb"], **options)
    assert len(comparison.rows) == 2
    with pytest.raises(TooLarge, match="on disk"):
        _ = lk.fit("class[2] -> *", on_disk, **options).statistics
    assert lk.fit("class[2] -> *", on_disk, **options).network.about["data_digest"].startswith("disk-")


def test_exact_evidence_on_disk_is_closed_form_or_refused(on_disk):
    assert lk.score("x0", on_disk.select(["x0"]), "exact").log_z == pytest.approx(
        lk.score("x0", table_of(600).select(["x0"]), "exact").log_z
    )
    with pytest.raises(TooLarge, match="use vb or cs"):
        lk.score("class[2] -> *", on_disk, "exact")


def test_large_rows_go_to_disk(on_disk):
    on_disk.home.memory = 1000
    phi = np.random.default_rng(0).normal(-1.0, 0.2, 100)
    problems_alive = [lk.Problem(f"class[{k}] -> *", on_disk) for k in (2, 3, 4)]
    first = [problem.engine.expect(phi[: problem.layout.size])[1] for problem in problems_alive]
    for problem, log_z in zip(problems_alive, first, strict=True):
        assert len(list(problem.engine.shelf.folder.iterdir())) == 2 * len(problem.engine.pieces)
        whole = lk.Problem(problem.full_dag, table_of(600)).engine.expect(phi[: problem.layout.size])[1]
        assert problem.engine.expect(phi[: problem.layout.size])[1] == log_z == pytest.approx(whole, rel=1e-11)
    folder = problems_alive[0].engine.shelf.folder
    del problems_alive, problem
    gc.collect()
    assert not folder.exists()


def test_rows_are_judged_by_how_often_they_coincide(monkeypatch):
    """Many more rows than patterns are merged, though few rows of a sample coincide."""
    monkeypatch.setattr(problems, "MANY_ROWS", 1000)
    monkeypatch.setattr(problems, "SAMPLE_ROWS", 400)
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2, (1500, 14))
    repeated = lk.Table.from_array(patterns[rng.integers(0, 1500, 40_000)])
    different = lk.Table.from_array(rng.integers(0, 4, (40_000, 14)))
    assert not lk.Problem("class[2] -> *", repeated).in_blocks
    assert lk.Problem("class[2] -> *", different).in_blocks


def test_an_interrupt_keeps_what_a_climb_over_blocks_has_reached(few_rows_are_many):
    class Impatient:
        calls = 0

        def begin(self, what, total):
            pass

        def update(self, _done):
            self.calls += 1
            if self.calls == 40:
                stop.set()

        def end(self):
            pass

    stop = StopFlag()
    options = {"restarts": 1, "seed": 0, "tol": 0.0, "max_iter": 500, "stop": stop, "keep_interrupted": True}
    fit = lk.fit(MODELS["latent class"], table_of(700), progress=Impatient(), **options)
    assert fit.status is lk.Status.INTERRUPTED
    assert 1 <= fit.n_iter < 500
    assert len(fit.trace) >= 1


def test_compare_gives_its_threads_to_the_blocks(on_disk, monkeypatch):
    seen = []
    whole = BlockEngine.expect_active

    def noted(engine, potentials):
        seen.append(engine.workers)
        return whole(engine, potentials)

    monkeypatch.setattr(BlockEngine, "expect_active", noted)
    lk.compare("class[1..2] -> *", on_disk, scores=["vb"], restarts=1, max_iter=3, workers=2, seed=0)
    assert set(seen) == {2}
