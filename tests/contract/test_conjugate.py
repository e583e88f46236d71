"""Every conjugate family keeps the contract, and a broken one is caught."""

import numpy as np
import pytest

import conjugate_checks as checks
from lurking.errors import BlockError
from lurking.expfam.base import Conjugate
from lurking.expfam.blocks import Blocks
from lurking.expfam.dirichlet import Dirichlet
from lurking.expfam.gamma import PoissonRate
from lurking.expfam.gaussian import GaussianWeights


def gaussian(n_rows, n_weights, seed):
    rng = np.random.default_rng(seed)
    family = GaussianWeights(n_rows, n_weights)
    root = rng.normal(size=(n_rows, n_weights, n_weights))
    precision = root @ np.swapaxes(root, 1, 2) + np.eye(n_weights)
    h = family.natural_of(rng.normal(size=(n_rows, n_weights)), precision)
    more = rng.normal(size=(n_rows, n_weights, n_weights))
    return family, h, family.natural_of(rng.normal(size=(n_rows, n_weights)), more @ np.swapaxes(more, 1, 2))


FAMILIES = {
    "table": (
        Dirichlet(np.asarray([0, 2, 5, 7])),
        np.asarray([0.7, 2.5, 1.0, 3.0, 0.4, 5.0, 0.2]),
        np.asarray([0.0, 2.0, 1.5, 0.3, 0.0, 4.0, 7.0]),
    ),
    "count": (PoissonRate(3), np.asarray([0.7, 2.3, 1.0, 0.4, 5.0, 9.0]), np.asarray([3.0, 7.0, 0.0, 0.0, 2.0, 1.0])),
    "weights": gaussian(2, 2, 1),
}
SINGLE = {
    "table": (Dirichlet(np.asarray([0, 2])), np.asarray([0.7, 2.5])),
    "count": (PoissonRate(1), np.asarray([0.7, 2.3])),
    "weights": gaussian(1, 1, 2)[:2],
}


def all_families():
    """Every class below `Conjugate` in the library."""
    return {kind for kind in Conjugate.__subclasses__() if kind.__module__.startswith("lurking.")}


def run_all(family, h, counts):
    x = np.random.default_rng(3).normal(size=family.dimension)
    checks.check_expected(family, h)
    checks.check_pull_back(family, h, x)
    checks.check_coordinates(family, x)
    checks.check_packing(family, h)
    checks.check_mode(family, h, x)
    checks.check_evidence(family, h, counts)
    checks.check_divergence(family, h, counts)
    checks.check_draws(family, h)
    checks.check_rows(family, h)


def test_no_family_is_left_out():
    assert {type(family) for family, _, _ in FAMILIES.values()} == all_families()
    with_one = {name for name, (family, _, _) in FAMILIES.items() if np.any(np.diff(family.coordinate_start) == 1)}
    assert with_one <= SINGLE.keys() <= FAMILIES.keys()


@pytest.mark.parametrize("name", FAMILIES)
def test_family_keeps_the_contract(name):
    run_all(*FAMILIES[name])


@pytest.mark.parametrize("name", SINGLE)
def test_density_over_the_coordinate_integrates_to_one(name):
    checks.check_normalised(*SINGLE[name])


def side_by_side():
    """The rows of all families, interleaved: row 0 of each, then row 1 of each, and so on."""
    families, own, h, counts = [], [], [], []
    parts = []
    for place, (family, prior, more) in enumerate(FAMILIES.values()):
        families.append(family)
        for row in range(len(family.row_start) - 1):
            at = slice(family.row_start[row], family.row_start[row + 1])
            parts.append((row, place, prior[at], more[at]))
    parts.sort(key=lambda part: part[:2])
    for place in range(len(families)):
        own.append(np.asarray([k for k, part in enumerate(parts) if part[1] == place]))
    h, counts = (np.concatenate([part[k] for part in parts]) for k in (2, 3))
    return Blocks(families, own), h, counts


def test_blocks_keep_the_contract_for_any_mix():
    blocks, h, counts = side_by_side()
    x = np.random.default_rng(3).normal(size=blocks.dimension)
    checks.check_expected(blocks, h)
    checks.check_pull_back(blocks, h, x)
    checks.check_packing(blocks, h)
    checks.check_evidence(blocks, h, counts)
    checks.check_divergence(blocks, h, counts)
    checks.check_draws(blocks, h, 2000)
    checks.check_mode(blocks, h, x)
    checks.check_coordinates(blocks, x)


def test_sums_over_blocks_are_those_over_families():
    blocks, h, counts = side_by_side()
    for name in ("log_evidence", "kl_divergence"):
        apart = sum(getattr(family, name)(prior, prior + more) for family, prior, more in FAMILIES.values())
        assert getattr(blocks, name)(h, h + counts) == pytest.approx(apart, rel=1e-12)


def test_some_rows_of_blocks_are_blocks():
    blocks, h, counts = side_by_side()
    rows = [0, 3, 4, 7]
    chosen = np.concatenate([np.arange(blocks.row_start[r], blocks.row_start[r + 1]) for r in rows])
    rest = np.setdiff1d(np.arange(blocks.size), chosen)
    total = sum(blocks.at(own).log_evidence(h[own], counts[own]) for own in (chosen, rest))
    assert total == pytest.approx(blocks.log_evidence(h, counts), rel=1e-12)
    np.testing.assert_allclose(blocks.at(chosen).expected(h[chosen]), blocks.expected(h)[chosen], rtol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_value_that_is_not_finite_names_the_family(name):
    family, h, counts = FAMILIES[name]
    broken = h.copy()
    broken[-1] = np.nan
    with pytest.raises(BlockError, match=f"of the {family.name} nodes is nan"):
        Blocks([family]).log_normaliser(broken)
    with pytest.raises(BlockError, match=family.name):
        Blocks([family]).log_evidence(broken, counts)


class WrongGradient(PoissonRate):
    def expected(self, h):
        return super().expected(h) * 1.001


class WrongConstant(PoissonRate):
    def log_normaliser(self, h):
        return super().log_normaliser(h) + 0.01


class WrongPullBack(PoissonRate):
    def pull_back(self, x, g):
        return -super().pull_back(x, g)


class WrongCoordinates(PoissonRate):
    def coordinates(self, eta):
        return -eta[..., 0::2]


class WrongPacking(PoissonRate):
    def unpack(self, u):
        return np.asarray(np.exp(u) + 1e-3)


class WrongMode(PoissonRate):
    def mode(self, h, otherwise):
        return super().mode(h + 0.5, otherwise)


class WrongEvidence(PoissonRate):
    def log_evidence(self, prior, counts):
        return super().log_evidence(prior, counts) + 0.01 * counts.sum() ** 2


class WrongDivergence(PoissonRate):
    def kl_divergence(self, h, reference):
        return super().kl_divergence(reference, h)


class WrongDraws(PoissonRate):
    def draw(self, h, generator):
        return super().draw(h * 1.1 + 0.3, generator)


class WrongRows(PoissonRate):
    def rows(self, which):
        return WrongGradient(len(which))


BROKEN = {
    kind: kind(3)
    for kind in (
        WrongGradient,
        WrongPullBack,
        WrongCoordinates,
        WrongPacking,
        WrongMode,
        WrongEvidence,
        WrongDivergence,
        WrongDraws,
        WrongRows,
    )
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_family_is_caught(kind):
    _, h, counts = FAMILIES["count"]
    with pytest.raises(AssertionError):
        run_all(BROKEN[kind], h, counts)


def test_a_wrong_constant_is_caught():
    with pytest.raises(AssertionError):
        checks.check_normalised(WrongConstant(1), SINGLE["count"][1])
