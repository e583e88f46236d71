"""The experiments of the paper and their data (chickering-heckerman-1996, sections 3 and 4).

An experiment is a naive Bayes model with a hidden root of c states over n binary variables, its parameters drawn from
the uniform distribution, and data sets of N rows from it. The paper prints neither parameters nor data: both are drawn
anew, the same for the same seed. A data set of fewer rows is the beginning of one with more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.graph.dag import Dag
from lurking.runtime.checks import check_whole
from lurking.types import FloatArray, IntArray

MOST_ROWS: Final = 800
HIDDEN: Final = "c"


@dataclass(frozen=True)
class Experiment:
    """One line of table 1.

    n, c, rows : observed variables, hidden states of the generating model, rows of a data set (N in the paper).
    states : hidden states of the test models, rising.
    """

    n: int
    c: int
    rows: int
    states: tuple[int, ...] = field(default=tuple(range(2, 9)))

    def __post_init__(self) -> None:
        for name in ("n", "c", "rows"):
            check_whole(name, getattr(self, name), 1)
        if self.rows > MOST_ROWS:
            raise OptionError(f"rows is {self.rows}; the generating models have 1 to {MOST_ROWS} rows here")
        for count in self.states:
            check_whole("states", count, 1)
        if not self.states or list(self.states) != sorted(set(self.states)):
            raise OptionError(f"states is {self.states}; it must name at least one number of states, in rising order")

    @property
    def case(self) -> tuple[int, int, int]:
        """(n, c, N), as table 1 names it."""
        return self.n, self.c, self.rows

    def dimension(self, states: int) -> int:
        """Return d, the number of parameters of a test model."""
        return states - 1 + states * self.n

    def __str__(self) -> str:
        return f"n = {self.n}, c = {self.c}, N = {self.rows}"


def _upto(last: int) -> tuple[int, ...]:
    return tuple(range(2, last + 1))


EXPERIMENTS: Final = (
    *(Experiment(n, 4, 400) for n in (8, 16, 32, 64)),
    # The paper says no more than that these straddle c. Table 2 ends at 36 states, selections of table 1 go down to c/2
    # and less, and with these ranges there are 550 runs of EM in all, as the paper counts.
    Experiment(64, 32, 400, _upto(36)),
    Experiment(64, 16, 400, _upto(18)),
    Experiment(64, 8, 400, _upto(10)),
    *(Experiment(32, 4, rows) for rows in (100, 200, 800)),
)
"""Every line of table 1 once."""
FIGURES: Final[Mapping[str, tuple[str, tuple[tuple[int, int, int], ...]]]] = {
    "figure1": ("More observed variables n", tuple((n, 4, 400) for n in (8, 16, 32, 64))),
    "figure2": ("Fewer hidden states c", tuple((64, c, 400) for c in (32, 16, 8, 4))),
    "figure3": ("More rows N", tuple((32, 4, rows) for rows in (100, 200, 400, 800))),
}
"""{file: (what changes from panel to panel, the panels)}; two experiments are in two figures."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """A generating model: p(C) in `weights` (c,), p(x_i = 1 | C) in `ones` (c, n)."""

    weights: FloatArray = field(repr=False)
    ones: FloatArray = field(repr=False)

    def tables(self) -> dict[str, FloatArray]:
        """Return {node: table[l, k]}, as a fit takes it for a start."""
        root = {HIDDEN: self.weights[None, :]}
        return root | {
            name: np.stack([1.0 - own, own], axis=1) for name, own in zip(names(self), self.ones.T, strict=True)
        }


def names(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the observed variables."""
    return tuple(f"x{place}" for place in range(1, parameters.ones.shape[1] + 1))


def generating(n: int, c: int, seed: int, repeat: int = 0) -> Parameters:
    """Draw parameters from the uniform distribution; each Dirichlet row of two entries is uniform on (0, 1)."""
    generator = np.random.default_rng([seed, n, c, repeat, 0])
    return Parameters(np.asarray(generator.dirichlet(np.ones(c))), generator.random((c, n)))


def drawn_rows(parameters: Parameters, generator: np.random.Generator, rows: int) -> IntArray:
    """Return the first of `MOST_ROWS` rows that a model gives, states 0 and 1, (rows, n); C is thrown away."""
    cumulative = np.cumsum(parameters.weights)
    # Divided by its own last entry, so that rounding leaves nobody out.
    classes = np.searchsorted(cumulative / cumulative[-1], generator.random(MOST_ROWS), side="right")
    ones = generator.random((MOST_ROWS, parameters.ones.shape[1])) < parameters.ones[classes]
    return np.asarray(ones[:rows], np.int64)


def data_set(n: int, c: int, rows: int, seed: int, place: int, repeat: int = 0) -> Table:
    """Return one of the data sets of a generating model; both levels of every variable are declared."""
    parameters = generating(n, c, seed, repeat)
    generator = np.random.default_rng([seed, n, c, repeat, 1 + place])
    codes = drawn_rows(parameters, generator, rows).astype(np.int32)
    return Table.from_codes({name: (codes[:, j], range(2)) for j, name in enumerate(names(parameters))})


def naive_bayes(states: int) -> Dag:
    """Return the naive Bayes model with a hidden root of so many states, over all columns of a table."""
    return Dag.parse(f"{HIDDEN}[{states}] -> *")
