"""The Laplace approximation of every reference case, and its Hessian against derivatives of the log posterior."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import lurking as lk
from curvature_checks import curvature_by_differences
from lurking.errors import PriorError
from lurking.inference.curvature.coordinates import Logits, Probabilities, row_starts
from lurking.inference.curvature.hessian import by_table_row, complete_matrix, full, on_the_diagonal

COORDINATES = {"logit": Logits, "probability": Probabilities}
STORED = {"logit": ("map_softmax", "laplace_softmax_basis"), "probability": ("map", "laplace_theta_basis")}
"""The point of each basis, and its numbers there."""


def stored():
    """Return {(case, basis, point): numbers}; the mode over probabilities needs λ >= 1."""
    found = {}
    for path in sorted((Path(__file__).parent / "data" / "discrete").glob("*.json")):
        case = json.loads(path.read_text())
        smallest = min(value for table in case["lambda"] for row in table for value in row)
        for basis, (method, name) in STORED.items():
            if basis == "probability" and smallest < 1.0:
                continue
            numbers = case["em"][method]
            for at in ("after_5", "after_50", "converged"):
                scores = numbers.get(f"scores_{at}", numbers.get(at, {}).get("scores", {}))
                if name in scores:
                    found[path.stem, basis, at] = scores[name]
    return found


NUMBERS = stored()


def scored(case, basis, at):
    options = {"prior": case.prior, "prune": False, "basis": basis, "init": case.init, "restarts": 1}
    if at != "converged":
        options |= {"tol": 0.0, "accelerate": False, "max_iter": int(at.removeprefix("after_"))}
    return lk.score(case.dag, case.table, "laplace", **options)


@pytest.mark.parametrize(("name", "basis", "at"), list(NUMBERS), ids="-".join)
def test_values(cases, name, basis, at):
    """Converged values need nothing but the default options: Newton steps end what EM has begun."""
    expected = NUMBERS[name, basis, at]
    evidence = scored(cases[name], basis, at)
    assert math.isfinite(evidence.log_z)
    # The log evidence is at most 0, and 0 without rows.
    is_impossible = evidence.log_z > 1e-5 or (cases[name]["n"] == 0 and evidence.log_z < -1e-5)
    assert is_impossible == (evidence.status is lk.Status.INAPPLICABLE)
    if expected["value"] is None:
        assert is_impossible or evidence.status is lk.Status.SINGULAR
        assert evidence.info["rank"] < evidence.info["dimension"]
        return
    assert evidence.log_z == pytest.approx(expected["value"], rel=1e-9, abs=1e-9)
    assert -2.0 * evidence.parts["curvature"] == pytest.approx(expected["logdet"], rel=1e-9, abs=1e-9)
    assert evidence.info["rank"] == cases[name]["structure"]["d"]
    if at == "converged":
        assert is_impossible or evidence.status in (lk.Status.CONVERGED, lk.Status.CLOSED_FORM)
        assert evidence.info["gradient"] < 1e-8
    else:
        assert is_impossible or evidence.status in (lk.Status.MAX_ITER, lk.Status.CLOSED_FORM)


def test_the_numbers_are_all_there(cases):
    assert {name for name, _, _ in NUMBERS} == set(cases) - {"large01"}
    assert sum(numbers["value"] is not None for numbers in NUMBERS.values()) == 150


def test_priors_without_a_mode_are_refused(refused_point):
    case, _ = refused_point
    with pytest.raises(PriorError, match=r"the basis probability needs λ ≥ 1.*use λ ≥ 1, or the basis logit") as caught:
        lk.score(case.dag, case.table, "laplace", prior=case.prior, basis="probability")
    assert "\n" not in str(caught.value)


MOST_ROWS = 8
"""Rows of a matrix of second derivatives that are compared."""


def at_the_start(case, basis, inactive=False):
    """Return coordinates, rows of the curvature by differences, which, ln θ and N + c of some positions.

    The positions are the active or the inactive ones, and rows of large matrices are drawn.
    """
    problem = case.problem()
    engine, layout = problem.engine, problem.layout
    positions = engine.inactive if inactive else engine.active
    theta = layout.normalise(case.flat(case["theta0"]) + 0.02)  # some starts have zeros
    added = problem.pseudo - (basis == "probability")
    nothing = np.zeros(len(positions), bool)
    coordinates = COORDINATES[basis](row_starts(layout.row_of[positions]), theta[positions], nothing)
    counts = engine.expect(np.log(theta))[0] + added
    size = len(coordinates)
    rows = np.arange(size) if size <= MOST_ROWS else np.random.default_rng(0).permutation(size)[:MOST_ROWS]
    expected = curvature_by_differences(problem, coordinates, positions, rows)
    return coordinates, (rows, expected), np.log(theta[positions]), counts[positions]


def scale_of(rows, expected):
    return np.abs(expected[np.arange(len(rows)), rows]).max(initial=1.0)


@pytest.mark.parametrize("basis", COORDINATES)
def test_curvature_is_the_second_derivative_of_the_log_posterior(case, basis):
    """At the start of the case, which is no mode: the formula holds everywhere."""
    coordinates, (rows, expected), potentials, counts = at_the_start(case, basis)
    engine, d = case.problem().engine, len(coordinates)
    assert bool(d) == (not case.problem().is_complete)
    matrix = full(engine, potentials, coordinates, counts)
    size = scale_of(rows, expected)
    assert matrix[rows] == pytest.approx(expected, rel=1e-6, abs=1e-7 * size)
    for block in by_table_row(engine, potentials, coordinates, counts):
        within = matrix[block.places[:, :, None], block.places[:, None, :]]
        assert block.curvature == pytest.approx(within, rel=1e-9, abs=1e-12 * size)
    for block in on_the_diagonal(engine, potentials, coordinates, counts):
        assert block.curvature.ravel() == pytest.approx(np.diag(matrix)[block.places.ravel()], rel=1e-9)


@pytest.mark.parametrize("basis", COORDINATES)
def test_curvature_of_complete_rows_of_tables(case, basis):
    coordinates, (rows, expected), _, counts = at_the_start(case, basis, inactive=True)
    matrix = complete_matrix(coordinates, counts)
    assert matrix[rows] == pytest.approx(expected, rel=1e-6, abs=1e-7 * scale_of(rows, expected))
    if (counts > 0.0).all():
        sign, log_determinant = np.linalg.slogdet(matrix)
        assert sign == 1.0
        assert coordinates.log_determinant(counts) == pytest.approx(log_determinant, rel=1e-10, abs=1e-10)
