"""chib, importance, thermodynamic and wbic against exact values, and what they refuse."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, OptionError, TooLarge, UndefinedScore
from lurking.evidence.base import Kind
from lurking.evidence.sampled import importance as importance_module
from lurking.evidence.sampled.chib import chib
from lurking.evidence.sampled.importance import importance
from lurking.evidence.sampled.thermodynamic import thermodynamic
from lurking.evidence.sampled.wbic import wbic
from lurking.inference.problem import Problem
from lurking.kernels.cpu.points import weigh_points_into
from lurking.learn.loop import Climber, Status
from lurking.learn.options import FitOptions
from lurking.samplers import aliases, metropolis

LEVELS = dict.fromkeys("abc", (0, 1))
ROWS = [(0, 1, 0), (1, 1, 1), (0, 1, 0), (1, 0, None), (0, 0, 1), (None, 1, 0), (1, 1, 1)]
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=LEVELS)
WEIGHTED = lk.Table.from_rows(
    [(1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0), (0, None, 0, 1)], list("abcd"), weights=[5, 4, 2, 1]
)
CASES = [
    ("s[2] -> a b c", TABLE, 1.0),
    ("s[3] -> a b; c", TABLE, 0.8),
    ("s[2] -> a b; t[2] -> b c", TABLE, 1.0),
    ("s[2] -> t[2]; s -> a b; t -> b c", TABLE, 2.0),
    ("a -> b -> c", TABLE, 1.0),
    ("s[2] -> *", WEIGHTED, 1.0),
    ("s[3] -> *", WEIGHTED, 0.5),
]
NAMES = [f"{model}, {prior}" for model, _, prior in CASES]
SAMPLED = {"chib": chib, "importance": importance, "thermodynamic": thermodynamic, "wbic": wbic}
ALL = pytest.mark.parametrize("name", SAMPLED)
OPTIONS = FitOptions(seed=1, restarts=3)


def exact_value(model, table, prior):
    return lk.score(model, table, "exact", prior=prior).log_z


@pytest.mark.parametrize(("model", "table", "prior"), CASES, ids=NAMES)
def test_chib_is_exact_within_its_error(model, table, prior):
    found = chib(Problem(model, table, prior), OPTIONS)
    assert found.std_error < 0.1
    assert found.log_z == pytest.approx(exact_value(model, table, prior), abs=4.0 * found.std_error)
    assert found.status is Status.SAMPLED
    assert found.info["chains"] == 8
    assert found.info["draws"] == 2000
    assert sum(found.info["near"].values()) == pytest.approx(1.0)
    assert "note" not in found.info


@pytest.mark.parametrize(("model", "table", "prior"), CASES, ids=NAMES)
def test_importance_is_exact_within_its_error(model, table, prior):
    # The variational posterior of so few rows is too narrow as it is; flattened, its tails are heavier than those of
    # the posterior.
    found = importance(Problem(model, table, prior), OPTIONS, draws=16384, flattening=0.25)
    assert found.nominal_error < 0.1
    assert found.log_z == pytest.approx(exact_value(model, table, prior), abs=4.0 * found.nominal_error)
    assert found.log_z > found.info["bound"]


@pytest.mark.parametrize(("model", "table", "prior"), CASES, ids=NAMES)
def test_thermodynamic_is_exact_within_its_error(model, table, prior):
    found = thermodynamic(Problem(model, table, prior), OPTIONS)
    assert found.std_error < 0.6
    assert found.log_z == pytest.approx(exact_value(model, table, prior), abs=4.0 * found.std_error)
    assert found.info["mean_log_weight"] <= found.info["log_mean_weight"]


def test_more_steps_leave_less_lag():
    problem = Problem("s[3] -> *", WEIGHTED, 0.5)
    short, long = (thermodynamic(problem, OPTIONS, steps=steps) for steps in (32, 8192))
    assert short.info["lag"] > 4.0 * long.info["lag"]
    assert short.status is Status.UNTRUSTED
    assert long.status is Status.SAMPLED


def quadrature(temperature, weights):
    """Return ln ∫ p(θ) p(y|θ)^τ dθ and E_τ[ln p(y|θ)] of a -> b with empty cells, by Gauss-Legendre, uniform priors."""
    nodes, mass = np.polynomial.legendre.leggauss(60)
    x, mass = 0.5 * (nodes + 1.0), 0.5 * mass
    root, first, second = np.meshgrid(x, x, x, indexing="ij")
    cells = mass[:, None, None] * mass[None, :, None] * mass[None, None, :]
    log_likelihood = np.zeros_like(root)
    for (a, b), weight in weights.items():
        given = [table if b == 0 else 1.0 - table for table in (first, second)]
        parts = [root * given[0], (1.0 - root) * given[1]]
        log_likelihood += weight * np.log(parts[0] + parts[1] if a is None else parts[a])
    tempered = cells * np.exp(temperature * log_likelihood)
    return math.log(tempered.sum()), float((tempered * log_likelihood).sum() / tempered.sum())


FRACTIONS = {(0, 1): 0.5, (None, 1): 1.5, (1, 0): 0.7, (None, 0): 2.3, (1, 1): 3.0}


def fractional():
    rows, weights = list(FRACTIONS), list(FRACTIONS.values())
    return Problem("a -> b", lk.Table.from_rows(rows, list("ab"), levels=dict.fromkeys("ab", (0, 1)), weights=weights))


def test_fractions_of_rows():
    exact, _ = quadrature(1.0, FRACTIONS)
    drawn = importance(fractional(), OPTIONS)
    assert drawn.status is Status.SAMPLED
    assert drawn.std_error < 0.02
    assert drawn.log_z == pytest.approx(exact, abs=4.0 * drawn.std_error)
    integral = thermodynamic(fractional(), OPTIONS)
    assert integral.log_z == pytest.approx(exact, abs=4.0 * integral.std_error)
    with pytest.raises(DataError, match="whole-number weights"):
        chib(fractional(), OPTIONS)


def test_wbic_is_the_mean_at_its_temperature():
    problem = fractional()
    found = wbic(problem, OPTIONS, chains=16, draws=8000)
    assert found.kind is Kind.ASYMPTOTIC
    assert found.std_error < 0.1
    assert found.info["temperature"] == pytest.approx(1.0 / math.log(8.0))
    assert found.log_z == pytest.approx(quadrature(1.0 / math.log(8.0), FRACTIONS)[1], abs=4.0 * found.std_error)


def test_wbic_nears_the_evidence_with_more_rows():
    rows, weights = [(0, 0), (0, 1), (1, 0), (1, 1)], np.asarray([40, 10, 15, 35])
    table = lk.Table.from_rows(rows, list("ab"), weights=weights)
    found = wbic(Problem("s[1] -> a; s -> b", table), OPTIONS)
    assert found.kind is Kind.EXACT
    many = lk.Table.from_rows([*rows, (None, 1)], list("ab"), weights=[*weights * 5, 1])
    problem = Problem("a -> b", many)
    close = wbic(problem, OPTIONS)
    assert close.log_z == pytest.approx(exact_value("a -> b", many, 1.0), abs=1.5)


def test_wbic_needs_three_rows():
    table = lk.Table.from_rows([(0, 1), (1, 0)], list("ab"))
    with pytest.raises(UndefinedScore, match="wbic needs n ≥ 3 rows"):
        wbic(Problem("s[2] -> a b", table), OPTIONS)


def apart(states):
    rows = [(k,) * 5 for k in range(states)]
    return lk.Table.from_rows([*rows, (0, 0, 0, 1, 1)], list("abcde"), weights=[24 // states - 2] * states + [2])


@pytest.mark.parametrize("states", [2, 3])
def test_hidden_states_apart_count_in_full(states):
    """All S modes are seen, though chains and the variational posterior know one of them."""
    problem = Problem(f"s[{states}] -> *", apart(states), 0.5)
    exact = exact_value(f"s[{states}] -> *", apart(states), 0.5)
    for found in (chib(problem, OPTIONS), importance(problem, OPTIONS, flattening=0.7)):
        assert found.log_aliases == 0.0
        assert found.std_error < 0.1
        assert found.log_z == pytest.approx(exact, abs=4.0 * found.std_error)


def test_relabelings_that_cannot_be_listed_are_said(monkeypatch):
    problem = Problem("s[2] -> *", apart(2), 0.5)
    whole, drawn = chib(problem, OPTIONS), importance(problem, OPTIONS)
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 1)
    problem = Problem("s[2] -> *", apart(2), 0.5)
    found = chib(problem, OPTIONS)
    assert found.status is Status.UNTRUSTED
    assert "low by up to ln S = 0.7" in found.info["note"]
    assert found.log_z == pytest.approx(whole.log_z - math.log(2.0), abs=0.02)
    # By assignment the states of one variable are shared out all the same.
    assigned = importance(problem, OPTIONS)
    assert "note" not in assigned.info
    assert assigned.log_z == pytest.approx(drawn.log_z, abs=0.02)
    two = importance(Problem("s[2] -> a b c; t[2] -> b c d e", apart(2)), OPTIONS, draws=100)
    assert "0.7 nats are left out" in two.info["note"]


def test_chunks_of_relabelings_do_not_matter(monkeypatch):
    problem = Problem("s[3] -> *", WEIGHTED)
    whole = importance(problem, OPTIONS, draws=700)
    monkeypatch.setattr(importance_module, "CHUNK", 100)
    assert importance(problem, OPTIONS, draws=700).log_z == pytest.approx(whole.log_z, rel=1e-13)


def test_a_narrow_proposal_is_not_trusted():
    found = importance(Problem("s[3] -> *", WEIGHTED, 0.5), OPTIONS)
    assert found.info["pareto_k"] >= 0.7
    assert found.status is Status.UNTRUSTED


def test_the_kernel_of_importance_sampling():
    problem = Problem("s[2] -> t[2]; s -> a b; t -> b c", TABLE)
    alpha = problem.pseudo[problem.engine.active] + 1.0
    points, values = np.empty((6, len(alpha))), np.empty(6)
    generator, stop = np.random.default_rng(0), np.zeros(1, np.int64)
    assert weigh_points_into(problem.engine.program, alpha, generator, stop, points, values) == 6
    for point, value in zip(points, values, strict=True):
        flat = np.zeros(problem.layout.size)
        flat[problem.engine.active] = point
        assert problem.layout.row_sums(np.exp(flat)) == pytest.approx(np.ones(len(problem.layout.row_start) - 1))
        assert problem.engine.expect(flat)[1] == pytest.approx(value, rel=1e-12)
    stop[0] = 1
    assert weigh_points_into(problem.engine.program, alpha, generator, stop, points, values) == 0


@ALL
def test_the_outcome_is_complete(name):
    found = SAMPLED[name](Problem("s[2] -> a b; c", TABLE), OPTIONS)
    assert found.method == name
    assert found.kind is (Kind.ASYMPTOTIC if name == "wbic" else Kind.ESTIMATE)
    assert found.log_aliases == 0.0
    assert found.std_error > 0.0
    assert sum(found.parts.values()) == pytest.approx(found.log_z, rel=1e-12)


@ALL
def test_complete_data_are_in_closed_form(name):
    table = lk.Table.from_rows([row for row in ROWS if None not in row], list("abc"), levels=LEVELS)
    found = SAMPLED[name](Problem("a -> b; c", table), OPTIONS)
    assert found.kind is Kind.EXACT
    assert found.std_error is None
    assert found.log_z == pytest.approx(exact_value("a -> b; c", table, 1.0), rel=1e-13)


@ALL
def test_rows_that_say_nothing(name):
    """Unpruned, rows without any observed cell have an unobserved cell each and a likelihood of 1."""
    table = lk.Table.from_rows([(None, None)] * 4, list("ab"), levels=dict.fromkeys("ab", (0, 1)))
    # The variational posterior takes its own guesses for data, and is too narrow for what is the prior.
    own = {"flattening": 0.25} if name == "importance" else {}
    found = SAMPLED[name](Problem("a -> b", table, prune=False), OPTIONS, **own)
    assert found.log_z == pytest.approx(0.0, abs=4.0 * found.std_error + 1e-9)


@ALL
def test_equal_seeds_and_any_number_of_workers(name):
    values = [
        SAMPLED[name](Problem("s[2] -> a b c", TABLE), FitOptions(seed=seed, restarts=3, workers=workers)).log_z
        for seed, workers in ((5, 1), (5, 1), (5, 4), (6, 1))
    ]
    assert values[0] == values[1] == values[2]
    assert values[3] != values[0]


@pytest.mark.parametrize(("name", "option", "value"), [
    ("chib", "chains", 3),
    ("chib", "draws", 10),
    ("chib", "draws", "many"),
    ("importance", "draws", 9),
    ("importance", "flattening", 0.0),
    ("importance", "flattening", 1.5),
    ("importance", "flattening", "flat"),
    ("thermodynamic", "steps", 0),
    ("thermodynamic", "chains", 1),
    ("thermodynamic", "curvature", -1.0),
    ("wbic", "chains", 1),
    ("wbic", "draws", 0),
    ("wbic", "burn_in", True),
])  # fmt: skip
def test_options_out_of_range_are_refused(name, option, value):
    with pytest.raises(OptionError, match=f"{option} is {value!r}; it must") as caught:
        SAMPLED[name](Problem("s[2] -> a b c", TABLE), OPTIONS, **{option: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [*SAMPLED, "ais"])
def test_what_cannot_be_enumerated_is_refused_before_anything_is_fitted(name, monkeypatch):
    """A chain of 13 hidden variables is summed along a tree; the refusal names them, and no class of ours."""

    def fitted(*_arguments):
        pytest.fail("a fit was made first")

    for method in ("climb", "climb_all"):
        monkeypatch.setattr(Climber, method, fitted)
    chain = "; ".join(f"h{i}[2] -> h{i + 1}[2]; h{i} -> y{i}" for i in range(12))
    signals = lk.Table.from_array(np.arange(48).reshape(4, 12) % 2, [f"y{i}" for i in range(12)])
    with pytest.raises(TooLarge) as caught:
        lk.score(chain, signals, name)
    assert str(caught.value) == (
        "sampling needs hidden variables that can be enumerated: h0, h1, h2, h3, h4, … (12 variables) depend on each "
        "other and have 4096 joint states, too many to go through in every row; use vb or cs, or fewer and smaller "
        "hidden variables"
    )
    with pytest.raises(TooLarge, match=r"engine='reference' does not enumerate them; leave that option out"):
        lk.score("s[2] -> a b c", TABLE, name, engine="reference")


def test_short_or_unsettled_chains_of_wbic_are_not_trusted():
    generator = np.random.default_rng(0)
    cells = (generator.random((300, 6)) < np.where(generator.random((300, 1)) < 0.5, 0.9, 0.2)).astype(int)
    problem = Problem("s[2] -> *", lk.Table.from_array(cells, columns=list("abcdef")))
    short = wbic(problem, OPTIONS, draws=50, burn_in=5)
    assert short.info["r_hat"] > 1.05
    assert short.status is Status.UNTRUSTED
    long = wbic(problem, OPTIONS, draws=6000, burn_in=3000)
    assert long.info["r_hat"] < 1.05
    assert long.info["effective"] > 100.0
    assert long.status is Status.SAMPLED
    assert long.log_z - short.log_z > 4.0 * long.std_error  # what was not settled was far too low
    assert wbic(problem, OPTIONS, draws=3).status is Status.UNTRUSTED  # too few to tell


def test_an_interrupt_keeps_the_finished_chains_of_wbic(monkeypatch):
    problem, run = Problem("s[2] -> a b c", TABLE), metropolis.Walk.run
    options = FitOptions(seed=1, workers=1, keep_interrupted=True)
    whole = metropolis.wbic(problem, chains=8, draws=20, burn_in=10, seed=1).log_likelihoods
    begun = []

    def counted(*arguments):
        begun.append(None)
        if len(begun) == 4:
            options.stop.set()
        return run(*arguments)

    monkeypatch.setattr(metropolis.Walk, "run", counted)
    found = wbic(problem, options, draws=20, burn_in=10)
    assert found.status is Status.INTERRUPTED
    assert found.info["chains"] == 3
    assert found.log_z == pytest.approx(whole[:3].mean(), rel=1e-12)


@ALL
def test_an_interrupt_is_raised(name):
    options = FitOptions(seed=1, restarts=2)
    problem = Problem("s[2] -> a b c", TABLE)
    SAMPLED[name](problem, options)  # the fits are remembered, so that the flag meets the sampler
    options.stop.set()
    with pytest.raises(KeyboardInterrupt):
        SAMPLED[name](problem, options)
