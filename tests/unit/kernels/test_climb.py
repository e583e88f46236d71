"""The compiled climb against the same loop in Python, step by step."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lurking.graph.dag import Dag
from lurking.inference.engines.rows import Rows
from lurking.inference.problem import ENGINES
from lurking.kernels.batch import Climbs
from lurking.kernels.cpu.batch import climb_batch
from lurking.kernels.program import Outcome, Rule
from lurking.learn.loop import Climber, ClimbOptions, Status
from lurking.learn.python_loop import climb_in_python
from lurking.models.layout import Layout
from lurking.runtime.executor import StopFlag

RULES = pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.name.lower())
SPEED = pytest.mark.parametrize("accelerate", [False, True], ids=["plain", "accelerated"])


def both(climber, start, threshold, max_iter, accelerate, stop=None):
    begin = np.ascontiguousarray(start[climber.engine.active])
    flag = (stop or StopFlag()).array
    climbs = Climbs(climber.engine.program, climber._compiled_prior, begin[None, :], np.asarray([1.25]))
    compiled = climb_batch([climbs], int(climber.rule), threshold, max_iter, accelerate, flag)[0][0]
    plain = climb_in_python(climber, begin, 1.25, threshold, max_iter, accelerate, flag)
    return compiled, plain


def assert_same(compiled, plain):
    assert compiled.outcome == plain.outcome
    assert compiled.n_iter == plain.n_iter
    assert compiled.trace == pytest.approx(plain.trace, rel=1e-9, abs=1e-9)
    if compiled.outcome != Outcome.IMPOSSIBLE:
        assert compiled.log_z == pytest.approx(plain.log_z, rel=1e-9, abs=1e-9)
        assert np.exp(compiled.potentials) == pytest.approx(np.exp(plain.potentials), rel=1e-6, abs=1e-9)
        assert compiled.counts == pytest.approx(plain.counts, rel=1e-6, abs=1e-7)


def rising(trace):
    """Return the trace without the entries that gain nothing but rounding."""
    kept = [*trace[:1]]
    for value in trace[1:]:
        if value - kept[-1] > 1e-10 * max(1.0, abs(value)):
            kept.append(value)
    return kept


@RULES
@SPEED
@settings(max_examples=30)
@given(data=st.data())
def test_compiled_equals_python_on_random_problems(small_problems, rule, accelerate, data):
    least = 1.0 if rule is Rule.MAP_PROBABILITY else 1e-3
    small = data.draw(small_problems(least_lambda=least))
    engine = small.engine(prune=data.draw(st.booleans()))
    assume(engine.program is not None)
    climber = Climber(engine, small.pseudo, rule, small.weights.sum())
    start = np.log(small.theta())
    compiled, plain = both(climber, start, 1e-6 * max(small.weights.sum(), 1.0), 40, accelerate)
    if accelerate and (
        len(rising(plain.trace)) < len(plain.trace) or len(rising(compiled.trace)) < len(compiled.trace)
    ):
        # At a fixed point rounding decides whether an extrapolation is tried and accepted; nothing else may differ.
        assert compiled.outcome == plain.outcome
        assert rising(compiled.trace) == pytest.approx(rising(plain.trace), rel=1e-9, abs=1e-9)
        return
    assert_same(compiled, plain)


def latent_class(rows=60, classes=3, items=5, seed=0):
    names = [f"y{k}" for k in range(items)]
    dag = Dag(["s", *names], [("s", name) for name in names], {"s": classes})
    layout = Layout(dag, {"s": classes, **dict.fromkeys(names, 3)})
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.5] * 3, (classes, items))
    member = rng.integers(0, classes, rows)
    codes = np.full((rows, items + 1), -1, np.int32)
    for k in range(items):
        codes[:, k + 1] = [rng.choice(3, p=truth[c, k]) for c in member]
    codes[rng.random(codes.shape) < 0.1] = -1
    start = np.log(layout.normalise(rng.gamma(1.0, size=layout.size) + 1e-3))
    return layout, codes, start


@RULES
@SPEED
@pytest.mark.parametrize("pseudo_count", [1.0, 1e-6, 1e6], ids=["λ=1", "λ=1e-6", "λ=1e6"])
def test_compiled_equals_python_on_a_longer_climb(rule, accelerate, pseudo_count):
    if rule is Rule.MAP_PROBABILITY:
        pseudo_count = max(pseudo_count, 1.0)
    layout, codes, start = latent_class()
    engine = ENGINES["enumeration"](layout, Rows.of_codes(codes, np.ones(len(codes))), True)
    climber = Climber(engine, np.full(layout.size, pseudo_count), rule, 60.0)
    compiled, plain = both(climber, start, 6e-7, 150, accelerate)
    assert_same(compiled, plain)
    assert np.isfinite(compiled.trace).all()
    if pseudo_count == 1.0:
        assert compiled.n_iter > 10


@RULES
@settings(max_examples=15)
@given(data=st.data())
def test_every_engine_climbs_the_same_way(small_problems, rule, data):
    """Plain iterations do not depend on the engine; extrapolation does, through the rows it looks at."""
    least = 1.0 if rule is Rule.MAP_PROBABILITY else 1e-3
    small = data.draw(small_problems(max_nodes=4, max_rows=4, max_states=30, least_lambda=least))
    assume(len(small.codes) > 0)
    options = ClimbOptions(6, 0.0, False)
    start = np.log(small.theta())
    traces = []
    for name in sorted(set(ENGINES) - {"auto"}):
        climber = Climber(small.engine(name), small.pseudo, rule, small.weights.sum())
        result = climber.climb(start, options)
        assert result.n_iter == len(result.trace) == 6
        assert result.objective == result.trace[-1]
        traces.append(result)
    *others, slow = traces
    assert len(others) == len(ENGINES) - 2
    for fast in others:
        assert fast.trace == pytest.approx(slow.trace, rel=1e-9, abs=1e-9)
        assert fast.counts == pytest.approx(slow.counts, rel=1e-9, abs=1e-9)
        assert fast.log_z == pytest.approx(slow.log_z, rel=1e-9, abs=1e-9)
        assert np.exp(fast.potentials) == pytest.approx(np.exp(slow.potentials), rel=1e-9, abs=1e-9)


@RULES
@SPEED
def test_a_start_that_excludes_a_row_is_impossible(rule, accelerate):
    layout, codes, start = latent_class(rows=8)
    codes[0, 1] = 0
    start = start.copy()
    layout.table(start, "y0")[:, 0] = -np.inf
    engine = ENGINES["enumeration"](layout, Rows.of_codes(codes, np.ones(len(codes))), True)
    climber = Climber(engine, np.ones(layout.size), rule, 8.0)
    compiled, plain = both(climber, start, 1e-8, 20, accelerate)
    assert compiled.outcome == plain.outcome == Outcome.IMPOSSIBLE


@RULES
@SPEED
def test_a_zero_that_excludes_no_row_is_a_start_like_any_other(rule, accelerate):
    """One class never has y0 = 0, the others can: every row is possible, and the first M step is defined."""
    layout, codes, start = latent_class(rows=8)
    start = start.copy()
    layout.table(start, "y0")[0] = [-np.inf, np.log(0.5), np.log(0.5)]
    engine = ENGINES["enumeration"](layout, Rows.of_codes(codes, np.ones(len(codes))), True)
    climber = Climber(engine, np.full(layout.size, 2.0), rule, 8.0)
    compiled, plain = both(climber, start, 1e-8, 20, accelerate)
    assert compiled.outcome != Outcome.IMPOSSIBLE
    assert np.isfinite(compiled.trace).all()
    assert_same(compiled, plain)


@RULES
def test_an_interrupt_ends_the_climb_with_the_point_so_far(rule):
    layout, codes, start = latent_class(rows=8)
    engine = ENGINES["enumeration"](layout, Rows.of_codes(codes, np.ones(len(codes))), True)
    climber = Climber(engine, np.ones(layout.size), rule, 8.0)
    stop = StopFlag()
    stop.set()
    compiled, plain = both(climber, start, 0.0, 50, False, stop)
    assert compiled.outcome == plain.outcome == Outcome.INTERRUPTED
    assert compiled.n_iter == plain.n_iter < 50
    assert np.isfinite(compiled.log_z)


@RULES
def test_a_climb_that_is_stopped_within_its_first_pass_is_empty(rule):
    """A component of 4096 states with 3000 rows: one pass is long enough to be cut short."""
    layout = Layout(Dag.parse("h[4096] -> a b"), {"h": 4096, "a": 64, "b": 64})
    codes = np.full((3000, 3), -1, np.int32)
    codes[:, 1], codes[:, 2] = np.divmod(np.arange(3000), 64)
    engine = ENGINES["enumeration"](layout, Rows.of_codes(codes, np.ones(3000)), True)
    climber = Climber(engine, np.ones(layout.size), rule, 3000.0)
    stop = StopFlag()
    stop.set()
    climb = climber.climb(np.log(layout.normalise(np.ones(layout.size))), ClimbOptions(5, 0.0, False), stop)
    assert climb.is_empty
    assert (climb.status, climb.n_iter, climb.objective) == (Status.INTERRUPTED, 0, -np.inf)


def test_a_batch_is_its_climbs_one_by_one():
    layouts = [
        Layout(Dag.parse("h[2] -> a b"), {"h": 2, "a": 2, "b": 3}),
        Layout(Dag.parse("g[3] -> a; g h[2] -> b"), {"g": 3, "h": 2, "a": 2, "b": 3}),
    ]
    generator = np.random.default_rng(0)
    items = []
    for layout in layouts:
        seen = np.stack([generator.integers(0, 2, 40), generator.integers(-1, 3, 40)], axis=1)
        codes = np.full((40, len(layout.nodes)), -1, np.int32)
        codes[:, [layout.index["a"], layout.index["b"]]] = seen
        engine = ENGINES["enumeration"](layout, Rows.of_codes(codes, np.ones(40)), False)
        climber = Climber(engine, np.ones(layout.size), Rule.VB, 40.0)
        starts = np.log(layout.normalise(generator.random(layout.size) + 0.1))[engine.active]
        starts = np.stack([starts, starts[::-1].copy(), starts + 0.1])
        items.append(Climbs(engine.program, climber._compiled_prior, starts, np.asarray([0.0, 1.0, 2.0])))
    flag = StopFlag().array
    together = climb_batch(items, int(Rule.VB), 1e-7, 200, True, flag)
    for item, ends in zip(items, together, strict=True):
        for k, end in enumerate(ends):
            single = Climbs(item.program, item.prior, item.starts[k : k + 1], item.constants[k : k + 1])
            alone = climb_batch([single], int(Rule.VB), 1e-7, 200, True, flag)[0][0]
            assert (end.outcome, end.n_iter, end.log_z) == (alone.outcome, alone.n_iter, alone.log_z)
            for name in ("potentials", "counts", "trace"):
                assert np.array_equal(getattr(end, name), getattr(alone, name))
