"""Small random problems shared by the tests, and fixed seeds for every property test."""

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from budget import Budget
from compiled_once import compile_once
from lurking.data.table import Table
from lurking.graph.dag import Dag
from lurking.inference.engines.rows import Rows
from lurking.inference.problem import ENGINES, Problem
from lurking.models.layout import Layout
from lurking.models.prior import Prior

# In a background job Ctrl-C is ignored, by all processes started from it too; tests of interrupts need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_configure(config):
    compile_once()
    config.pluginmanager.register(Budget.read(is_long=config.option.markexpr == "long"), "budget")


@dataclass(frozen=True)
class Small:
    """A structure, codes of all nodes (−1 where unobserved, hidden ones everywhere), weights and pseudo-counts."""

    dag: Dag
    cards: dict[str, int]
    codes: np.ndarray
    weights: np.ndarray
    pseudo: np.ndarray
    seed: int

    @property
    def layout(self) -> Layout:
        return Layout(self.dag, self.cards)

    @property
    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def engine(self, name: str = "enumeration", prune: bool = False):
        return ENGINES[name](self.layout, Rows.of_codes(self.codes, self.weights), prune)

    @property
    def table(self) -> Table:
        columns = list(self.dag.observed)
        places = [self.dag.nodes.index(name) for name in columns]
        rows = [[None if code < 0 else int(code) for code in row] for row in self.codes[:, places]]
        levels = {name: list(range(self.cards[name])) for name in columns}
        return Table.from_rows(rows, columns, levels=levels, weights=self.weights)

    @property
    def prior(self) -> Prior:
        return Prior.from_counts(self.layout.split(self.pseudo))

    def problem(self, prune: bool = False, engine: str = "auto") -> Problem:
        return Problem(self.dag, self.table, self.prior, prune=prune, engine=engine)

    def theta(self, concentration: float = 1.0) -> np.ndarray:
        """Return random positive probabilities, (P,)."""
        draws = self.generator.standard_gamma(concentration, self.layout.size) + 1e-6
        return self.layout.normalise(draws)

    def changed(self, **values) -> "Small":
        return replace(self, **values)


@st.composite
def _small(
    draw,
    max_nodes: int = 5,
    max_rows: int = 6,
    max_states: int = 200,
    least_lambda: float = 1e-3,
    whole_weights: bool = False,
    max_weight: int = 4,
):
    # Hypothesis varies the seed; the problem itself comes from NumPy, so that rich ones are as common as small ones.
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, max_nodes + 1)) if rng.random() < 0.3 else max_nodes
    names = [f"v{j}" for j in range(count)]
    order, density = rng.permutation(count), rng.uniform(0.2, 0.8)
    edges = [
        (names[order[a]], names[order[b]]) for b in range(count) for a in rng.permutation(b) if rng.random() < density
    ]
    cards = {name: int(rng.choice([1, 2, 3], p=[0.1, 0.5, 0.4])) for name in names}
    hidden = [name for name in names if rng.random() < 0.4]
    if len(hidden) == count:
        hidden = hidden[1:]
    dag = Dag(names, edges, {name: cards[name] for name in hidden})
    n_rows = int(rng.integers(1, max_rows + 1)) if rng.random() < 0.95 else 0
    codes = np.column_stack([rng.integers(0, cards[name], n_rows) for name in names]).astype(np.int32)
    empty = rng.random(codes.shape) < rng.choice([0.0, 0.2, 0.6])
    empty[:, [names.index(name) for name in hidden]] = True
    codes = np.where(empty, np.int32(-1), codes)
    # Keep the joint states of every row enumerable one by one.
    sizes = np.asarray([cards[name] for name in names])
    joint = np.where(codes < 0, sizes, 1).prod(axis=1)
    codes = codes[joint <= max_states]
    if whole_weights:
        weights = rng.integers(1, max_weight + 1, len(codes)).astype(float)
    else:
        weights = np.where(rng.random(len(codes)) < 0.1, 0.0, rng.gamma(1.0, 2.0, len(codes)))
    layout = Layout(dag, cards)
    if rng.random() < 0.5:
        pseudo = np.exp(rng.uniform(np.log(least_lambda), np.log(1e3), layout.size))
    else:
        pseudo = np.full(layout.size, np.exp(rng.uniform(np.log(least_lambda), np.log(1e3))))
    return Small(dag, cards, codes, weights, pseudo, seed)


@pytest.fixture(scope="session")
def small_problems():
    """Return the strategy of random small problems; its options bound their size."""
    return _small


@pytest.fixture(scope="session")
def count_calls():
    """Return a function that counts the Python and C functions called by a call: work, whatever the machine's speed."""

    def counted(work: Callable[[], object]) -> int:
        count = 0

        def notice(_frame, event, _argument):
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(notice)
        try:
            work()
        finally:
            sys.setprofile(before)
        return count

    return counted


@pytest.fixture(scope="session")
def bound():
    """Return B(φ) = D(λ, N) + log_z − Σ φ·N of a problem, written down from its definition with lnΓ."""
    from scipy.special import gammaln

    def value(layout: Layout, engine, pseudo: np.ndarray, potentials: np.ndarray) -> float:
        counts, log_z = engine.expect(potentials)
        sums = layout.row_sums
        evidence = (gammaln(pseudo + counts) - gammaln(pseudo)).sum()
        evidence -= (gammaln(sums(pseudo + counts)) - gammaln(sums(pseudo))).sum()
        used = counts != 0.0
        return float(evidence + log_z - counts[used] @ potentials[used])

    return value
