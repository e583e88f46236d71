"""Seconds of EM and of the Laplace approximation against d: ``python benchmarks/laplace.py [--rounds 3] [--alpha 1]``.

The setting of Chickering & Heckerman (1996): naive Bayes with n binary children of a hidden root with c states,
parameters from the uniform distribution, N = 400 rows, fits by their tournament of 64 starts. Their Table 2 (n = 64,
N = 400, test models of 26 to 36 states) stands beside the same d. Seconds are the smallest of several rounds; EM
includes compiling the rows. Hessian and Cholesky factor are those of one curvature; Laplace makes two or three of
them on its way to the mode.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import lurking as lk
from lurking.evidence.asymptotic.laplace import laplace
from lurking.inference.curvature.coordinates import Logits, row_starts
from lurking.inference.curvature.determinant import Factor
from lurking.inference.curvature.hessian import full
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions

ROWS = 400
SIZES = ((8, 4), (16, 4), (32, 4), (64, 4), (64, 8), (64, 16), (64, 26), (64, 32), (64, 36))
PAPER = {1689: (500, 2800), 2079: (530, 4600), 2339: (870, 6700)}
"""d: seconds of EM and of Laplace in Table 2 of the paper."""


@dataclass(frozen=True)
class Line:
    children: int
    states: int
    dimension: int
    em: float
    hessian: float
    factor: float
    laplace: float
    value: float
    status: str


def rows_of(children: int, states: int, seed: int = 0) -> lk.Table:
    """Draw a model from the uniform distribution, and rows from the model."""
    rng = np.random.default_rng(seed)
    root, chance = rng.dirichlet(np.ones(states)), rng.random((states, children))
    cells = rng.random((ROWS, children)) < chance[rng.choice(states, ROWS, p=root)]
    names = [f"y{k}" for k in range(children)]
    return lk.Table.from_array(cells.astype(int), names, levels={name: [0, 1] for name in names})


def one_curvature(problem: lk.Problem, options: FitOptions) -> tuple[float, float]:
    """Return the seconds of one Hessian and of its Cholesky factor at the end of EM."""
    fit, engine = fit_problem(problem, "map", options), problem.engine
    active = engine.active
    begin = perf_counter()
    theta = np.exp(fit.potentials[active])
    coordinates = Logits(row_starts(engine.layout.row_of[active]), theta, np.zeros(len(active), bool))
    matrix = full(engine, fit.potentials[active], coordinates, (fit.counts + problem.pseudo)[active])
    middle = perf_counter()
    Factor(matrix, np.diagonal(matrix))
    return middle - begin, perf_counter() - middle


def measured(children: int, states: int, alpha: float, rounds: int) -> Line:
    """Fit and score one size; the smallest seconds of several rounds."""
    table, options = rows_of(children, states), FitOptions(tournament=64, seed=0)
    best = [float("inf")] * 4
    for _ in range(rounds):
        begin = perf_counter()
        problem = lk.Problem(f"class[{states}] -> *", table, alpha)
        fit_problem(problem, "map", options)
        fitted = perf_counter()
        evidence = laplace(problem, options)
        scored = perf_counter()
        seconds = (fitted - begin, *one_curvature(problem, options), scored - fitted)
        best = [min(old, new) for old, new in zip(best, seconds, strict=True)]
    return Line(children, states, problem.dimension, *best, evidence.log_z, evidence.status.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alpha", type=float, default=1.0, help="pseudo-count of every entry")
    arguments = parser.parse_args()
    measured(4, 2, arguments.alpha, 1)  # compiles what is not compiled yet
    print(f"N = {ROWS}, pseudo-counts {arguments.alpha:g}, seconds, the smallest of {arguments.rounds}")
    print("  n   c     d      EM  Hessian Cholesky  Laplace  paper EM  paper Laplace        value  status")
    for children, states in SIZES:
        line = measured(children, states, arguments.alpha, arguments.rounds)
        paper = "{:9} {:14}".format(*PAPER.get(line.dimension, ("", "")))
        sizes = f"{line.children:3} {line.states:3} {line.dimension:5}"
        seconds = f"{line.em:7.3f} {line.hessian:8.3f} {line.factor:8.3f} {line.laplace:8.3f}"
        print(f"{sizes} {seconds} {paper} {line.value:12.2f}  {line.status}", flush=True)


if __name__ == "__main__":
    main()
