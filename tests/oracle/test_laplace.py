"""The Laplace approximation of every reference case, and its Hessian against derivatives of the definition."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import lurking as lk
from lurking.errors import PriorError
from lurking.inference.curvature.coordinates import Logits, Probabilities, row_starts
from lurking.inference.curvature.hessian import by_table_row, complete_matrix, full, on_the_diagonal
from lurking.kernels.reference.enumeration import completions

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


class Definition:
    """ln p(y|θ) + Σ c ln θ as a function of free coordinates, for complex numbers too: row by row, state by state."""

    def __init__(self, problem, coordinates, active, added, theta):
        layout = problem.layout
        keep = np.ones(len(layout.nodes), bool)
        arguments = (layout.cardinalities, layout.parents, layout.offsets)
        self.entries = [np.asarray(completions(*arguments, row, keep)) for row in problem.rows.codes.astype(int)]
        self.weights, self.layout, self.added, self.theta = problem.rows.weights, layout, added, theta
        self.coordinates, self.active = coordinates, active

    def potentials(self, x):
        """Return ln θ (B, P) at coordinates (B, d), complex."""
        of, flat = self.coordinates, np.tile(self.theta.astype(complex), (len(x), 1))
        own = flat[:, self.active]
        if isinstance(of, Logits):
            own[:, of.reference] = 1.0
            own[:, of.free] = np.exp(x)
            own /= np.add.reduceat(own, of.row_start[:-1], axis=1)[:, row_of(of)]
        else:
            own[:, of.free] = x
            own[:, of.reference] = 0.0
            own[:, of.reference] = 1.0 - np.add.reduceat(own, of.row_start[:-1], axis=1)
        flat[:, self.active] = own
        return np.log(flat)

    def start(self):
        of = self.coordinates
        if isinstance(of, Probabilities):
            return of.theta[of.free]
        return np.log(of.theta[of.free] / of.theta[of.reference[of.row_of_free]])

    def __call__(self, x):
        potentials = self.potentials(x)
        total = potentials[:, self.active] @ self.added[self.active]
        for index, weight in zip(self.entries, self.weights, strict=True):
            total += weight * np.log(np.exp(potentials[:, index].sum(axis=2)).sum(axis=1))
        return total

    def gradient(self, x):
        """Return all first derivatives by complex steps, which have no rounding error to speak of."""
        return self(x + 1e-20j * np.eye(len(x))).imag / 1e-20

    def curvature(self, step=1e-5):
        x = self.start()
        columns = []
        for k in range(len(x)):
            move = step * np.eye(len(x))[k] * (1.0 if isinstance(self.coordinates, Logits) else x[k])
            columns.append((self.gradient(x - move) - self.gradient(x + move)) / (2.0 * move[k]))
        return np.asarray(columns)


def row_of(coordinates):
    lengths = np.diff(coordinates.row_start)
    return np.repeat(np.arange(len(lengths)), lengths)


def at_the_start(case, basis, inactive=False):
    """Return coordinates, the definition in them, ln θ and N + c of the active or the inactive positions."""
    problem = case.problem()
    engine, layout = problem.engine, problem.layout
    positions = engine.inactive if inactive else engine.active
    theta = layout.normalise(case.flat(case["theta0"]) + 0.02)  # some starts have zeros
    added = problem.pseudo - (basis == "probability")
    nothing = np.zeros(len(positions), bool)
    coordinates = COORDINATES[basis](row_starts(layout.row_of[positions]), theta[positions], nothing)
    counts = engine.expect(np.log(theta))[0] + added
    definition = Definition(problem, coordinates, positions, added, theta)
    return coordinates, definition, np.log(theta[positions]), counts[positions]


def scale_of(matrix):
    return np.abs(np.diag(matrix)).max(initial=1e-300)


@pytest.mark.parametrize("basis", COORDINATES)
def test_curvature_is_the_second_derivative_of_the_definition(case, basis):
    """At the start of the case, which is no mode: the formula holds everywhere."""
    coordinates, definition, potentials, counts = at_the_start(case, basis)
    engine, d = case.problem().engine, len(coordinates)
    assert bool(d) == (not case.problem().is_complete)
    matrix = full(engine, potentials, coordinates, counts)
    expected = definition.curvature().reshape(d, d)
    size = scale_of(expected)
    assert matrix == pytest.approx(expected, rel=1e-6, abs=1e-7 * size)
    for block in by_table_row(engine, potentials, coordinates, counts):
        within = matrix[block.places[:, :, None], block.places[:, None, :]]
        assert block.curvature == pytest.approx(within, rel=1e-9, abs=1e-12 * size)
    for block in on_the_diagonal(engine, potentials, coordinates, counts):
        assert block.curvature.ravel() == pytest.approx(np.diag(matrix)[block.places.ravel()], rel=1e-9)


@pytest.mark.parametrize("basis", COORDINATES)
def test_curvature_of_complete_rows_of_tables(case, basis):
    coordinates, definition, _, counts = at_the_start(case, basis, inactive=True)
    d = len(coordinates)
    matrix = complete_matrix(coordinates, counts)
    expected = definition.curvature().reshape(d, d)
    assert matrix == pytest.approx(expected, rel=1e-6, abs=1e-7 * scale_of(expected))
    if (counts > 0.0).all():
        sign, log_determinant = np.linalg.slogdet(matrix)
        assert sign == 1.0
        assert coordinates.log_determinant(counts) == pytest.approx(log_determinant, rel=1e-10, abs=1e-10)
