"""The thresholds by quadrature and by the rank of the Fisher information, the choice of the regime, exact evidence."""

import itertools
import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import UndefinedScore
from lurking.evidence.asymptotic.adjusted_bic import threshold_of


def joint(class_size, low, high):
    """p(y) of two classes, one axis per feature."""
    result = 0.0
    for size, features in ((1.0 - class_size, low), (class_size, high)):
        part = np.asarray(size)
        for p in features:
            part = np.multiply.outer(part, [1.0 - p, p])
        result = result + part
    return result


def table_of(p, rows):
    names = [f"y{k}" for k in range(p.ndim)]
    cells = list(itertools.product([0, 1], repeat=p.ndim))
    weights = [round(rows * p[cell]) for cell in cells]
    return lk.Table.from_rows(cells, names, levels={name: [0, 1] for name in names}, weights=weights)


def test_the_table_of_the_paper():
    for n in range(3, 9):
        assert threshold_of("regular", n) == ((2 * n + 1) / 2, 1)
        assert threshold_of("pair", n) == ((2 * n - 1) / 2, 1)
        assert threshold_of("independent", n) == ((n + 1) / 2, 1)
    assert threshold_of("pair", 2) == (1.5, 1)
    assert threshold_of("independent", 2) == (1.5, 3)
    assert threshold_of("regular", 1) == (0.5, 1)


def log_integral(n, rows, alpha, points):
    """ln ∫ t^(α−1) exp(−rows · KL) dt dδ with all margins at 1/2, on a logarithmic grid.

    Averaged statistics of n independent fair coins: the n directions of the margins are regular and give n/2 more.
    """
    edges = np.linspace(math.log(1e-8), 0.0, points + 1)
    steps = np.exp((edges[1:] + edges[:-1]) / 2)
    t, *delta = np.meshgrid(steps / 2, *[steps] * n, indexing="ij", sparse=True)
    low, high = [0.5 - t * d for d in delta], [0.5 + (1.0 - t) * d for d in delta]
    divergence = 0.0
    for cell in itertools.product([0, 1], repeat=n):
        parts = [
            math.prod((x if state else 1.0 - x for x, state in zip(features, cell, strict=True)), start=size)
            for size, features in ((1.0 - t, low), (t, high))
        ]
        divergence = divergence - np.log(2.0**n * (parts[0] + parts[1]).clip(1e-300)) / 2**n
    inside = math.prod(((h < 1.0) for h in high), start=np.ones(()))
    weight = t**alpha * math.prod(delta, start=np.ones(()))
    return math.log(float((inside * weight * np.exp(-rows * divergence.clip(0.0))).sum()))


@pytest.mark.parametrize(
    ("n", "alpha", "points"), [(2, 1.0, 110), (2, 0.5, 90), (3, 1.0, 34), (3, 0.5, 34), (3, 3.0, 34)]
)
def test_independent_features_by_quadrature(n, alpha, points):
    threshold, multiplicity = threshold_of("independent", n, alpha)
    few, many = 1e6, 1e8
    slope = log_integral(n, many, alpha, points) - log_integral(n, few, alpha, points)
    expected = -(threshold - n / 2) * math.log(many / few)
    expected += (multiplicity - 1) * math.log(math.log(many) / math.log(few))
    assert slope == pytest.approx(expected, abs=0.12)


def fisher_rank(class_size, low, high):
    """Rank of the Fisher information over (t, a, b) by central differences."""
    theta = np.asarray([class_size, *low, *high])
    n = len(low)

    def p(x):
        return joint(x[0], x[1 : n + 1], x[n + 1 :]).ravel()

    steps = 1e-5 * np.eye(len(theta))
    jacobian = np.stack([(p(theta + s) - p(theta - s)) / 2e-5 for s in steps], axis=1) / np.sqrt(p(theta))[:, None]
    return int((np.linalg.svd(jacobian, compute_uv=False) > 1e-7).sum())


@pytest.mark.parametrize("n", [3, 4, 5])
def test_regular_and_pair_are_half_the_rank_of_the_fisher_information(n):
    """Where the set of equal distributions is smooth, λ is half its codimension, which is that rank."""
    low, high = [0.2, 0.3, 0.4, 0.25, 0.35][:n], [0.7, 0.9, 0.6, 0.8, 0.75][:n]
    assert fisher_rank(0.3, low, high) == 2 * threshold_of("regular", n)[0]
    alike = [*high[:2], *low[2:]]  # all but two features are alike in both classes
    assert fisher_rank(0.3, low, alike) == 2 * threshold_of("pair", n)[0]
    assert fisher_rank(0.3, low[:2], high[:2]) == 2 * threshold_of("pair", 2)[0]


PAIR = np.multiply.outer(np.asarray([[0.35, 0.15], [0.15, 0.35]]), [0.5, 0.5])


@pytest.mark.parametrize(
    ("p", "regime", "penalty"),
    [
        (joint(0.5, [0.2, 0.3, 0.2], [0.8, 0.7, 0.8]), "regular", 3.5),
        (PAIR, "pair", 2.5),
        (joint(0.5, [0.5] * 3, [0.5] * 3), "independent", 2.0),
        (joint(0.5, [0.25] * 5, [0.25] * 5), "independent", 3.0),
        (PAIR[:, :, 0] * 2, "pair", 1.5),
        (joint(0.5, [0.5] * 2, [0.5] * 2), "independent", 1.5),
        (joint(0.5, [0.5], [0.5]), "regular", 0.5),
    ],
)
def test_the_regime_of_averaged_statistics(p, regime, penalty):
    table = table_of(p, 1 << 12)
    rows = table.n
    evidence = lk.score("s[2] -> *", table, "adjusted-bic", seed=0)
    assert evidence.info["regime"] == regime
    assert evidence.info["pair"] == (["y0", "y1"] if regime == "pair" else [])
    assert evidence.parts["penalty"] == pytest.approx(-penalty * math.log(rows))
    assert evidence.parts.get("log_log", 0.0) == pytest.approx(
        2.0 * math.log(math.log(rows)) if (p.ndim, regime) == (2, "independent") else 0.0
    )
    assert "\n" not in evidence.info["why"]
    assert evidence.log_aliases == (pytest.approx(math.log(2)) if regime == "regular" and p.ndim > 2 else 0.0)


@pytest.mark.parametrize(("n", "sizes"), [(2, (32, 64, 128)), (3, (16, 32, 64))])
def test_the_error_stays_where_that_of_bic_grows(n, sizes):
    """Against exact evidence, on independent fair coins in equal numbers."""
    errors = {"bic": [], "adjusted-bic": []}
    for rows in sizes:
        scores = lk.score("s[2] -> *", table_of(joint(0.5, [0.5] * n, [0.5] * n), rows), ["exact", *errors], seed=0)
        assert scores["adjusted-bic"].info["regime"] == "independent"
        for name, values in errors.items():
            values.append(scores[name].log_z - scores["exact"].log_z)
    assert np.diff(errors["bic"]).max() < -0.85
    assert np.abs(np.diff(errors["adjusted-bic"])).max() < 0.4


def test_many_pairs_do_not_look_like_one_that_depends():
    generator = np.random.default_rng(0)
    names = [f"y{k}" for k in range(30)]
    cells = generator.integers(0, 2, (300, 30))
    table = lk.Table.from_array(cells, names, levels={name: [0, 1] for name in names})
    evidence = lk.score("s[2] -> *", table, "adjusted-bic", seed=0, restarts=2)
    assert evidence.info["regime"] == "independent"


def test_too_few_rows_are_refused():
    table = lk.Table.from_rows([(0, 1, 1), (1, 0, 1)], list("abc"), levels={name: [0, 1] for name in "abc"})
    with pytest.raises(UndefinedScore, match=r"adjusted-bic needs at least 3 rows \(n = 2\)"):
        lk.score("s[2] -> *", table, "adjusted-bic")


def test_rows_in_blocks_are_counted_as_merged_ones(monkeypatch):
    table = table_of(PAIR, 400)
    merged = lk.score("s[2] -> *", table, "adjusted-bic", seed=0)
    monkeypatch.setattr(lk.Problem, "in_blocks", True)
    blocks = lk.score("s[2] -> *", table, "adjusted-bic", seed=0)
    assert blocks.info["criteria"] == pytest.approx(merged.info["criteria"])
