"""The compiled curvature against the brute-force covariance of completed counts, whatever the engine."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import TooLarge
from lurking.inference.curvature import hessian as module
from lurking.inference.curvature import moments
from lurking.inference.curvature.coordinates import Logits, Probabilities, row_starts
from lurking.inference.curvature.determinant import Factor, of_blocks, of_matrix
from lurking.inference.curvature.hessian import by_table_row, complete_matrix, full, on_the_diagonal
from lurking.inference.engines.reference import ReferenceEngine
from lurking.inference.engines.row_blocks import BlockEngine, MemoryShelf
from lurking.kernels.cpu.curvature import carry_into
from lurking.kernels.reference.curvature import covariance

MODELS = {
    "one class": "s[3] -> a b c d",
    "two causes": "s[2] -> a b c; t[3] -> b c d",
    "two components": "s[2] -> a b; t[2] -> c d",
    "observed parent": "a -> s[2]; s -> b c; b -> d",
    "chain": "s[2] -> t[2] -> u[2]; s -> a; t -> b; u -> c; u -> d",
    "empty cells only": "a -> b; b -> c; a -> d",
    "nothing below": "s[2] -> a b c d; s -> x[3]",
}
KINDS = {"logit": Logits, "probability": Probabilities}


def table_of(rows=40, empty=0.2, seed=0):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, [2, 3, 2, 4], (rows, 4)).astype(float)
    cells[rng.random(cells.shape) < empty] = np.nan
    levels = dict(zip("abcd", ([0, 1], [0, 1, 2], [0, 1], [0, 1, 2, 3]), strict=True))
    return lk.Table.from_rows(
        [[None if np.isnan(cell) else int(cell) for cell in row] for row in cells],
        list("abcd"),
        levels=levels,
        weights=rng.gamma(2.0, size=rows),
    )


def theta_of(problem, seed=1):
    return problem.layout.normalise(np.random.default_rng(seed).gamma(1.0, size=problem.layout.size) + 0.05)


def jacobian(coordinates):
    """∂ ln θ / ∂ coordinates, (Q, d), written out."""
    result = np.zeros((len(coordinates.theta), len(coordinates)))
    for m, (k, row) in enumerate(zip(coordinates.free, coordinates.row_of_free, strict=True)):
        states = slice(coordinates.row_start[row], coordinates.row_start[row + 1])
        if isinstance(coordinates, Logits):
            result[states, m] -= coordinates.theta[k]
            result[k, m] += 1.0
        else:
            result[k, m] = 1.0 / coordinates.theta[k]
            result[coordinates.reference[row], m] = -1.0 / coordinates.theta[coordinates.reference[row]]
    return result


def by_hand(problem, coordinates, theta, counts):
    """A of the active positions from the brute-force covariance, with dense matrices."""
    layout, active = problem.layout, problem.engine.active
    slow = ReferenceEngine(layout, problem.rows, problem.prune)
    arguments = (layout.cardinalities, layout.parents, layout.offsets, slow.codes, slow.kept, slow.rows.weights)
    missing = covariance(*arguments, np.log(theta))[np.ix_(active, active)]
    j = jacobian(coordinates)
    return complete_matrix(coordinates, counts) - j.T @ missing @ j


def prepared(problem, kind):
    active, theta = problem.engine.active, theta_of(problem)
    starts = row_starts(problem.layout.row_of[active])
    coordinates = KINDS[kind](starts, theta[active], np.zeros(len(active), bool))
    counts = problem.engine.expect(np.log(theta))[0][active] + 0.5
    return coordinates, theta, counts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_full_curvature_is_the_one_by_hand(model, prune, kind):
    problem = lk.Problem(model, table_of(), prune=prune, engine="enumeration")
    coordinates, theta, counts = prepared(problem, kind)
    matrix = full(problem.engine, np.log(theta[problem.engine.active]), coordinates, counts)
    expected = by_hand(problem, coordinates, theta, counts)
    assert matrix == pytest.approx(expected, rel=1e-9, abs=1e-11 * np.abs(expected).max())
    assert matrix == pytest.approx(matrix.T, rel=1e-12, abs=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_joined_factors_small_chunks_and_blocks_of_rows(kind, monkeypatch):
    rng = np.random.default_rng(5)
    table = lk.Table.from_array(rng.integers(0, 2, (1500, 12)), [f"y{k}" for k in range(12)])
    problem = lk.Problem("s[3] -> *", table)
    engine = problem.engine
    assert engine.program.joined.width[0] > 0
    coordinates, theta, counts = prepared(problem, kind)
    potentials = np.log(theta[engine.active])
    matrix = full(engine, potentials, coordinates, counts)
    assert matrix == pytest.approx(by_hand(problem, coordinates, theta, counts), rel=1e-9, abs=1e-8)
    monkeypatch.setattr(moments, "CHUNK", 64)
    assert full(engine, potentials, coordinates, counts) == pytest.approx(matrix, rel=1e-11, abs=1e-9)
    halves = (problem.rows.take(slice(k, None, 2)) for k in range(2))
    blocks = BlockEngine(problem.layout, halves, 2, True, type(engine), MemoryShelf())
    assert full(blocks, potentials, coordinates, counts) == pytest.approx(matrix, rel=1e-11, abs=1e-9)
    for block in on_the_diagonal(blocks, potentials, coordinates, counts):
        assert block.curvature.ravel() == pytest.approx(np.diag(matrix)[block.places.ravel()], rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["enumeration", "junction", "reference"])
def test_blocks_and_diagonal_with_every_engine(engine, kind):
    problem = lk.Problem(MODELS["chain"], table_of(), engine=engine)
    coordinates, theta, counts = prepared(problem, kind)
    potentials = np.log(theta[problem.engine.active])
    expected = by_hand(problem, coordinates, theta, counts)
    found = 0
    for block in by_table_row(problem.engine, potentials, coordinates, counts):
        places = block.places
        assert block.curvature == pytest.approx(expected[places[:, :, None], places[:, None, :]], rel=1e-8, abs=1e-8)
        found += places.size
    assert found == len(coordinates)
    single = on_the_diagonal(problem.engine, potentials, coordinates, counts)
    places = np.concatenate([block.places.ravel() for block in single])
    values = np.concatenate([block.curvature.ravel() for block in single])
    assert values == pytest.approx(np.diag(expected)[places], rel=1e-9, abs=1e-9)
    if engine == "junction":
        with pytest.raises(TooLarge, match="junction tree; use curvature='blocks', or engine='enumeration' to insist"):
            full(problem.engine, potentials, coordinates, counts)
    else:
        assert full(problem.engine, potentials, coordinates, counts) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_carrying_a_matrix_to_coordinates(kind):
    rng = np.random.default_rng(0)
    row_start = np.asarray([0, 2, 3, 7, 9, 12])
    theta = rng.uniform(0.1, 0.9, 12)
    left_out = np.zeros(12, bool)
    left_out[[4, 9, 10, 11]] = True
    coordinates = KINDS[kind](row_start, theta, left_out)
    assert not set(coordinates.free) & {4, 9, 10, 11, *coordinates.reference}
    square = rng.normal(size=(13, 13))
    square[3], square[7] = 0.0, 0.0
    result = np.zeros((len(coordinates), len(coordinates)))
    of = coordinates
    carry_into(square, of.row_start, of.free, of.own, of.each, of.shared, result)
    j = jacobian(coordinates)
    assert result == pytest.approx(j.T @ square[:12, :12] @ j, rel=1e-12, abs=1e-12)
    assert coordinates.along(square[:, :12]) == pytest.approx(square[:, :12] @ j, rel=1e-12, abs=1e-12)


def test_the_reference_state_does_not_change_a_determinant():
    """The same table with another state the most probable by a hair: a linear map of determinant ±1 between them."""
    problem = lk.Problem("s[3] -> a b c d", table_of())
    values = []
    for favoured in (0, 2):
        theta = problem.layout.split(theta_of(problem))
        theta["d"][:] = 0.25
        theta["d"][:, favoured] += 1e-12
        flat = problem.layout.join(theta)
        active = problem.engine.active
        starts = row_starts(problem.layout.row_of[active])
        coordinates = Logits(starts, flat[active], np.zeros(len(active), bool))
        counts = problem.engine.expect(np.log(flat))[0][active] + 1.0
        matrix = full(problem.engine, np.log(flat[active]), coordinates, counts)
        values.append(np.linalg.slogdet(matrix)[1])
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_flat_and_falling_directions_are_left_out():
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    complete = np.diag(rng.uniform(0.5, 200.0, 6))
    root = np.sqrt(complete)
    shares = np.asarray([1.0, 0.5, 1e-6, 1e-14, 0.0, -0.3])
    matrix = root @ (basis * shares) @ basis.T @ root
    log_complete = float(np.log(np.diag(complete)).sum())
    factor = Factor(matrix, np.diag(complete))
    assert not factor.is_definite
    found = of_matrix(factor, matrix, complete, log_complete)
    assert found.rank == 3
    assert found.log_determinant == pytest.approx(log_complete + np.log(shares[:3]).sum(), rel=1e-6)
    block = module.Block(np.arange(6)[None], matrix[None], complete[None])
    assert of_blocks([block, block]) == pytest.approx((2 * found.log_determinant, 6), rel=1e-6)
    definite = root @ (basis * np.abs(shares).clip(1e-3)) @ basis.T @ root
    factor = Factor(definite, np.diag(complete))
    assert factor.is_definite
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(definite)[1], rel=1e-10)
    assert definite @ factor.solve(np.arange(6.0)) == pytest.approx(np.arange(6.0), rel=1e-9, abs=1e-9)
    assert Factor(matrix, np.diag(complete), 1.0).is_definite


@pytest.mark.parametrize(("make", "instead"), [(full, "blocks"), (by_table_row, "diagonal")])
def test_what_does_not_fit_is_refused_with_its_size(make, instead, monkeypatch):
    problem = lk.Problem("s[3] -> a b c d", table_of())
    coordinates, theta, counts = prepared(problem, "logit")
    monkeypatch.setattr(module, "is_affordable", lambda _need: False)
    with pytest.raises(TooLarge, match=rf"needs .* (KiB|bytes).*use curvature='{instead}'") as caught:
        make(problem.engine, np.log(theta[problem.engine.active]), coordinates, counts)
    assert "\n" not in str(caught.value)
