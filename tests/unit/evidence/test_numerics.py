"""Extreme priors, weights and shapes: every score finite and right."""

import itertools
import math
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import betaln, logsumexp

import lurking as lk
from lurking.errors import UndefinedScore
from lurking.evidence.evaluation import score_names
from lurking.evidence.limits import refuse_inapplicable

LAMBDAS = [1e-6, 1e-3, 0.5, 1.0, 30.0, 1e3, 1e6]
MODELS = ["s[2] -> a b c", "s[3] -> a b; s -> c; a -> b", "s[1] -> a b c", "a -> b -> c"]
# In quick tests the largest model meets the extreme priors alone.
MODEL_AND_LAMBDA = [
    pytest.param(model, pseudo, marks=[pytest.mark.long] if "[3]" in model and 1e-6 < pseudo < 1e6 else [])
    for model in MODELS
    for pseudo in LAMBDAS
]
ROWS = [(0, 1, 0), (1, 1, 1), (0, 0, None), (1, None, 0), (0, 1, 0)]
LEVELS = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
BOUNDS = ("cs", "vb")


def table_of(rows=ROWS, weights=None, levels=LEVELS, columns=("a", "b", "c")):
    return lk.Table.from_rows(rows, list(columns), levels=levels, weights=weights)


MAY_BE_LEFT_OUT = {"bicp", "draper", "thermodynamic"}
"""Scores that a few rows under a weak or a strong prior may leave without a value."""


def possible(model, table, names, **options):
    """Return the scores that have a value; those that have none say why, and every value may be a log evidence."""
    found, refused = {}, {}
    for name in names:
        try:
            found[name] = refuse_inapplicable(lk.score(model, table, name, **options))
        except UndefinedScore as refusal:
            refused[name] = str(refusal)
    for name, evidence in found.items():
        assert math.isfinite(evidence.log_z), name
        assert evidence.log_z <= 1e-6 + 5.0 * (evidence.nominal_error or 0.0), name
    assert set(refused) <= MAY_BE_LEFT_OUT
    for name, reason in refused.items():
        assert re.match(f"{name} (is above 0 here|has no value here: its chains leave it open)", reason)
    return found


@pytest.mark.parametrize(("model", "pseudo"), MODEL_AND_LAMBDA)
def test_every_score_for_every_prior(model, pseudo):
    table = table_of()
    names = [name for name in score_names() if name != "adjusted-bic"]  # it is for complete rows of naive Bayes
    scores = possible(model, table, names, prior=pseudo, seed=0, restarts=3)
    exact = scores["exact"].log_z
    for name in BOUNDS:
        assert scores[name].log_z <= exact + 1e-9 * max(1.0, abs(exact)), name
    if pseudo == 1e6 and model != "a -> b -> c":
        # The prior is a point mass at fair coins: 13 observed cells of probability 1/2.
        for name in ("exact", "cs", "vb", "map-likelihood"):
            assert scores[name].log_z == pytest.approx(13 * math.log(0.5), abs=1e-4), name


@pytest.mark.parametrize("pseudo", LAMBDAS)
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
@pytest.mark.parametrize("accelerate", [False, True], ids=["plain", "accelerated"])
def test_fits_equal_those_of_the_brute_force_engine(pseudo, method, accelerate):
    options = {"method": method, "prior": pseudo, "restarts": 1, "seed": 2, "tol": 0.0, "max_iter": 12}
    fast = lk.fit("s[2] -> a b c", table_of(), accelerate=accelerate, **options)
    assert np.isfinite(fast.trace).all()
    slack = 1e-9 * np.maximum(1.0, np.abs(fast.trace[1:]))
    assert (np.diff(fast.trace) >= -slack).all()
    if not accelerate:
        slow = lk.fit("s[2] -> a b c", table_of(), engine="reference", accelerate=False, **options)
        assert fast.trace == pytest.approx(slow.trace, rel=1e-9, abs=1e-9)


def log_gamma(x):
    """Return lnΓ(x) in 50 digits, x ≥ 200, by Stirling's series."""
    with localcontext() as context:
        context.prec = 50
        x = Decimal(x)
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097")
        tail = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7) + 1 / (1188 * x**9)
        return (x - Decimal("0.5")) * x.ln() - x + (2 * pi).ln() / 2 + tail


@pytest.mark.parametrize("pseudo", [1e3, 1e6])
def test_the_prior_density_keeps_its_digits_for_a_strong_prior(pseudo):
    """The mode over logits of one coin with n1, n2 counts, and the Dirichlet density there, in 50 digits."""
    table = lk.Table.from_rows([(0,)] * 7 + [(1,)] * 3, ["a"])
    parts = lk.score("a", table, "bicp", prior=pseudo).parts
    with localcontext() as context:
        context.prec = 50
        strength = Decimal(pseudo)
        theta = [(strength + n) / (2 * strength + 10) for n in (7, 3)]
        density = log_gamma(2 * strength) - 2 * log_gamma(strength)
        density += (strength - 1) * (theta[0].ln() + theta[1].ln())
    assert parts["log_prior"] == pytest.approx(float(density), rel=1e-9)
    assert parts["loglik"] == pytest.approx(float(7 * theta[0].ln() + 3 * theta[1].ln()), rel=1e-12)


@pytest.mark.parametrize("pseudo", [1e-6, 1.0, 1e6])
def test_exact_evidence_of_one_row(pseudo):
    """One row of k children under a hidden root: 2^−k for every symmetric prior."""
    for model, observed in (("s[2] -> a b c", 3), ("s[4] -> a b; c", 3)):
        table = table_of([(0, 1, 1)])
        assert lk.score(model, table, "exact", prior=pseudo).log_z == pytest.approx(-observed * math.log(2), rel=1e-12)


def test_a_million_copies_on_complete_data():
    heavy = table_of([(0, 1, 0), (1, 1, 1)], weights=[1e6, 2e6])
    evidence = lk.score("a -> b; c", heavy, ["exact", "cs", "vb", "mled"])
    expected = betaln(1 + 1e6, 1 + 2e6) + betaln(1, 1 + 1e6) + betaln(1, 1 + 2e6) + betaln(1 + 1e6, 1 + 2e6)
    for entry in evidence:
        assert entry.log_z == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("method", ["vb", "map", "ml", "map-probability"])
def test_a_million_copies_of_every_row(method):
    """Without a prior the weights only scale; with one, everything stays finite and monotone."""
    once = lk.fit(
        "s[2] -> a b c", table_of(), method=method, restarts=2, seed=0, tol=0.0, max_iter=25, accelerate=False
    )
    heavy = table_of(weights=[1e6] * len(ROWS))
    often = lk.fit("s[2] -> a b c", heavy, method=method, restarts=2, seed=0, tol=0.0, max_iter=25, accelerate=False)
    assert often.problem.n == 5e6
    assert np.isfinite(often.trace).all()
    assert (np.diff(often.trace) >= -1e-9 * np.abs(often.trace[1:])).all()
    if method in ("ml", "map-probability"):  # λ = 1 adds nothing to the M step
        assert often.trace == pytest.approx(1e6 * once.trace, rel=1e-9)
        assert often.network.theta == pytest.approx(once.network.theta, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("pseudo", LAMBDAS)
def test_a_constant_column_and_one_state(pseudo):
    """A column with one level carries no information; a node with one state changes nothing."""
    rows = [(row[0], row[1], 0) for row in ROWS]
    table = table_of(rows, levels={"a": [0, 1], "b": [0, 1], "c": [0]})
    with_constant = lk.score("s[2] -> a b c", table, ["exact", "cs", "vb"], prior=pseudo, seed=0)
    without = lk.score("s[2] -> a b", table, ["exact", "cs", "vb"], prior=pseudo, seed=0)
    assert with_constant["exact"].log_z == pytest.approx(without["exact"].log_z, rel=1e-11, abs=1e-11)
    for name in BOUNDS:
        assert with_constant[name].log_z == pytest.approx(without[name].log_z, rel=1e-4, abs=1e-6)
    one_class = lk.score("s[1] -> a b c", table, ["exact", "cs", "vb"], prior=pseudo)
    apart = lk.score("a; b; c", table, ["exact", "cs", "vb"], prior=pseudo)
    for name in ("exact", *BOUNDS):
        assert one_class[name].log_z == pytest.approx(apart[name].log_z, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("pseudo", LAMBDAS)
def test_a_column_with_an_unseen_level(pseudo):
    table = table_of([(0, 0, 0), (0, 1, 0)], levels={"a": [0, 1, 2], "b": [0, 1], "c": [0, 1]})
    names = [name for name in score_names() if name not in ("wbic", "adjusted-bic")]  # they need three rows
    assert len(possible("s[2] -> a b c", table, names, prior=pseudo, seed=0, restarts=2)) >= len(names) - 3
    first = lk.score("a", table, "exact", prior=pseudo).log_z
    assert first == pytest.approx(math.log(1 / 3) + math.log((pseudo + 1) / (3 * pseudo + 1)), rel=1e-12)


@pytest.mark.parametrize("pseudo", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("model", ["s[2] -> a b c", "a -> b; c", "s[1] -> a b c", "s[3]; a; b; c"])
@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
def test_no_rows(model, pseudo, prune):
    table = table_of([])
    for name in score_names():
        if name in ("bic", "bicp", "draper", "adjusted-bic"):
            with pytest.raises(UndefinedScore, match="n = 0"):
                lk.score(model, table, name, prior=pseudo, prune=prune)
        else:
            evidence = lk.score(model, table, name, prior=pseudo, prune=prune)
            is_zero = evidence.log_z == pytest.approx(0.0, abs=1e-5 if name == "laplace" else 1e-15)
            assert is_zero or evidence.status is lk.Status.INAPPLICABLE, name
            assert is_zero or name == "laplace", name


@pytest.mark.parametrize("name", ["exact", "cs", "vb", "mled", "map-likelihood"])
def test_rows_without_weight_are_no_data(name):
    table = table_of(weights=[0.0] * len(ROWS))
    assert lk.score("s[2] -> a b c", table, name).log_z == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["bic", "bicp", "draper"])
def test_rows_without_weight_leave_large_sample_scores_undefined(name):
    with pytest.raises(UndefinedScore):
        lk.score("s[2] -> a b c", table_of(weights=[0.0] * len(ROWS)), name)


def test_rows_without_any_cell():
    """Three empty rows: nothing is known, so the evidence is 1; kept in q(s), the bound pays for them."""
    table = table_of([(None, None, None)] * 3)
    assert lk.score("s[2] -> a b c", table, "exact").log_z == pytest.approx(0.0, abs=1e-12)
    assert lk.score("s[2] -> a b c", table, "exact", prune=False).log_z == pytest.approx(0.0, abs=1e-12)
    assert lk.score("s[2] -> a b c", table, "vb").log_z == pytest.approx(0.0, abs=1e-12)
    assert lk.score("s[2] -> a b c", table, "vb", prune=False).log_z < -0.1


@pytest.mark.parametrize("pseudo", [1e-6, 1.0])
def test_very_long_rows(pseudo):
    """3000 binary children: products underflow, and with λ = 1e-6 so does every table entry."""
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.05, 0.95, (2, 3000))
    cells = (rng.random((6, 3000)) < chance[[0, 1, 0, 1, 0, 1]]).astype(int)
    names = [f"y{k}" for k in range(3000)]
    table = lk.Table.from_rows(cells.tolist(), names, levels={name: [0, 1] for name in names})
    dag = lk.Dag(["s", *names], [("s", name) for name in names], {"s": 2})
    init = {"s": [[0.5, 0.5]]} | {
        name: np.column_stack([1 - chance[:, k], chance[:, k]]) for k, name in enumerate(names)
    }
    scores = lk.score(dag, table, ["cs", "vb"], prior=pseudo, init=init, restarts=1)
    # The exact sum over all 2^6 assignments of rows to classes.
    values = []
    for labels in itertools.product([0, 1], repeat=6):
        label = np.asarray(labels)
        value = betaln(pseudo + 6 - label.sum(), pseudo + label.sum()) - betaln(pseudo, pseudo)
        for state in (0, 1):
            ones, size = cells[label == state].sum(axis=0), (label == state).sum()
            value += (betaln(pseudo + ones, pseudo + size - ones) - betaln(pseudo, pseudo)).sum()
        values.append(value)
    exact = float(logsumexp(values))
    for evidence in scores:
        assert math.isfinite(evidence.log_z)
        assert evidence.log_z <= exact + 1e-9 * abs(exact)
    # The start tells the rows apart for certain, so q(s) is one labelling and the bound its evidence.
    true = values[list(itertools.product([0, 1], repeat=6)).index((0, 1, 0, 1, 0, 1))]
    assert scores["vb"].log_z == pytest.approx(true, rel=1e-10)
    assert scores["cs"].log_z == pytest.approx(true, rel=1e-10)
    assert lk.score(dag, table, "exact", prior=pseudo).log_z == pytest.approx(exact, rel=1e-9)
