"""`lurking.dirichlet_process`: a hidden variable with no bound on its number of states.

The model is "state -> every column" with infinitely many states, whose weights have a Dirichlet-process prior with
concentration α; rows of the columns' tables are Dir(λ, …, λ). A chain walks over partitions of the cases, weights and
tables integrated out (Neal 2000, algorithm 3). With α ~ Gamma(a, rate b), α is drawn anew after every sweep by an
auxiliary x ~ Beta(α + 1, n) (Escobar & West 1995, section 6):

    α | x, K ~ π Gamma(a + K, b − ln x) + (1 − π) Gamma(a + K − 1, b − ln x),
    π / (1 − π) = (a + K − 1) / (n (b − ln x)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lurking.data.files import as_table
from lurking.data.table import Table, names_given
from lurking.errors import OptionError, TooLarge
from lurking.graph.dag import Dag
from lurking.inference.problem import Problem, refuse_families
from lurking.models.prior import Prior, SymmetricPrior
from lurking.runtime.checks import check_whole, check_whole_weights, is_positive
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.convergence import Agreement, agreement, warn_of_disagreement
from lurking.samplers.frequencies import mean_error
from lurking.types import CodeArray, FloatArray, IntArray, read_only

FIRST_SLOTS = 16
SHOWN = 6
"""Numbers of states that a printed outcome lists, the most probable first."""
MOST_PAIRS = 1 << 26
"""Entries of a matrix over pairs of rows or cases."""
MOST_CASES = 10**7


class Share(NamedTuple):
    """A posterior probability and its Monte Carlo standard error (inf: not known)."""

    probability: float
    std_error: float


@dataclass(frozen=True, eq=False)
class ProcessDraws:
    """Outcome of `dirichlet_process`.

    Attributes
    ----------
    table : the rows; a row of weight w is w cases.
    row_of : (n,) the row of every case.
    n_states : (chains, draws) occupied states.
    log_joint : (chains, draws) ln p(z, y | α).
    concentration : (chains, draws) α.
    partitions : (chains, kept, n) the state of every case, by first appearance, in evenly spaced draws.
    """

    table: Table = field(repr=False)
    row_of: IntArray = field(repr=False)
    n_states: IntArray = field(repr=False)
    log_joint: FloatArray = field(repr=False)
    concentration: FloatArray = field(repr=False)
    partitions: CodeArray = field(repr=False)

    @property
    def probabilities(self) -> dict[int, Share]:
        """The posterior of the number of occupied states."""
        found = {}
        for k in np.unique(self.n_states):
            hit = np.asarray(self.n_states == k, np.float64)
            found[int(k)] = Share(float(hit.mean()), mean_error(hit))
        return found

    @property
    def agreement(self) -> Agreement:
        """R-hat and effective sample sizes of the number of occupied states; nan where it never varies."""
        return agreement(self.n_states.astype(np.float64))

    def __str__(self) -> str:
        chains, draws = self.n_states.shape
        shares = sorted(self.probabilities.items(), key=lambda item: -item[1].probability)
        listed = ", ".join(f"{k}: {share.probability:.3f} ± {share.std_error:.3f}" for k, share in shares[:SHOWN])
        more = ", …" if len(shares) > SHOWN else ""
        return (
            f"{chains} chains of {draws} draws; probabilities of the number of states: {listed}{more}; "
            f"α = {self.concentration.mean():.3g} on average; R-hat {self.agreement.r_hat:.3f}"
        )

    __repr__ = __str__

    @cached_property
    def co_clustering(self) -> FloatArray:
        """(rows, rows) the probability that two cases, one of each row, share a state; of a row, two of its cases.

        1 for a row with itself when it is a single case.
        """
        count = self.table.n_rows
        _check_pairs(count, "rows")
        together = np.zeros((count, count))
        flat = self.partitions.reshape(-1, self.partitions.shape[-1])
        for states in flat:
            members = np.zeros((count, int(states.max(initial=-1)) + 1))
            np.add.at(members, (self.row_of, states), 1.0)
            together += members @ members.T
        weights = np.bincount(self.row_of, minlength=count).astype(np.float64)
        pairs = np.outer(weights, weights)
        own = np.arange(count)
        together[own, own] -= len(flat) * weights
        pairs[own, own] -= weights
        shares = np.divide(together, pairs * len(flat), out=np.zeros_like(together), where=pairs > 0.0)
        shares[own[weights == 1.0], own[weights == 1.0]] = 1.0
        return read_only(shares)

    @cached_property
    def partition(self) -> IntArray:
        """(n,) the kept partition of the cases that is nearest to the probabilities of pairs (Dahl 2006).

        Its sum over pairs of ([same state] − probability)² is the least.
        """
        flat = self.partitions.reshape(-1, self.partitions.shape[-1])
        _check_pairs(flat.shape[1], "cases")
        together = np.zeros((flat.shape[1], flat.shape[1]))
        for states in flat:
            together += states[:, None] == states
        together /= len(flat)
        # Σ (x − p)² = Σ x (1 − 2p) + Σ p² for x in {0, 1}.
        gain = 1.0 - 2.0 * together
        costs = [float(gain[states[:, None] == states].sum()) for states in flat]
        return read_only(flat[int(np.argmin(costs))].astype(np.int64))


def dirichlet_process(
    table: Any,
    columns: Sequence[str] | None = None,
    *,
    concentration: float | tuple[float, float] = (1.0, 1.0),
    prior: Prior | float = 1.0,
    chains: int = 4,
    draws: int = 1000,
    burn_in: int = 500,
    thin: int = 1,
    partitions: int = 200,
    likelihood: bool = True,
    seed: Seed = 0,
    workers: int | None = None,
    stop: StopFlag | None = None,
    keep_interrupted: bool = False,
) -> ProcessDraws:
    """Sample how many states a hidden root over the columns has, with no bound on their number.

    Parameters
    ----------
    table : a Table, a frame, an array or the path of a file; cells may be empty, weights are whole numbers.
    columns : the children of the hidden variable; all columns by default.
    concentration : α, or (a, b) for α ~ Gamma(a, rate b).
    prior : λ of every row of the columns' tables: a number, Prior.symmetric or Prior.jeffreys.
    draws, burn_in, thin : each chain keeps `draws` points, `thin` sweeps apart, after `burn_in` sweeps. Chains start
        where each case is drawn given those before it.
    partitions : the most partitions of each chain that are kept, evenly spaced.
    likelihood : False leaves the data out: the number of states has the distribution of the Chinese restaurant.
    keep_interrupted : after Ctrl-C return the chains that were finished instead of raising KeyboardInterrupt.
    """
    for name, value in (("chains", chains), ("draws", draws), ("thin", thin), ("partitions", partitions)):
        check_whole(name, value, 1)
    check_whole("burn_in", burn_in, 0)
    data = as_table(table)
    data = data if columns is None else data.select(names_given(columns))
    # The tables of one state: every column is a root.
    problem = Problem(Dag(data.columns), data, _checked_prior(prior))
    refuse_families(problem, "a Dirichlet process works", "declare the columns categorical, or leave them out (drop)")
    row_of, codes = _cases(data, likelihood=likelihood)
    rule = _checked_concentration(concentration)
    flag = stop or StopFlag()
    length = burn_in + draws * thin
    kept_at = np.unique(np.linspace(0, draws - 1, min(partitions, draws)).round().astype(np.int64))

    def one(child: np.random.SeedSequence) -> tuple[IntArray, FloatArray, FloatArray, CodeArray] | None:
        chain = _Chain(codes, problem, rule, np.random.Generator(np.random.PCG64(child)))
        numbers, joints, alphas = np.empty(draws, np.int64), np.empty(draws), np.empty(draws)
        kept = np.empty((len(kept_at), len(codes)), np.int32)
        for sweep in range(length):
            if flag.is_set:
                return None
            chain.sweep()
            draw, late = divmod(sweep - burn_in + 1, thin)
            if sweep >= burn_in and not late:
                numbers[draw - 1], joints[draw - 1], alphas[draw - 1] = chain.n_states, chain.log_joint, chain.alpha
                place = np.searchsorted(kept_at, draw - 1)
                if place < len(kept_at) and kept_at[place] == draw - 1:
                    kept[place] = _by_first_appearance(chain.mixture.slots)
        return numbers, joints, alphas, kept

    made = map_in_order(one, seed_sequence(seed).spawn(int(chains)), workers=workers, interruptible=True, stop=flag)
    done = [chain for chain in made if chain is not None]
    if not done or (flag.is_set and not keep_interrupted):
        raise KeyboardInterrupt
    made_draws = ProcessDraws(data, read_only(row_of), *(read_only(np.stack(own)) for own in zip(*done, strict=True)))
    warn_of_disagreement("the number of states", [made_draws.agreement], len(done))
    return made_draws


class _Chain:
    """The partition of one chain and its α."""

    def __init__(
        self,
        codes: CodeArray,
        problem: Problem,
        rule: tuple[float, float] | float,
        generator: np.random.Generator,
    ) -> None:
        from lurking.kernels.cpu.chains.dp_gibbs import empty_mixture

        self.rule, self.generator = rule, generator
        self.alpha = rule if isinstance(rule, float) else rule[0] / rule[1]
        self.mixture = empty_mixture(codes, problem.layout.row_start, problem.pseudo, FIRST_SLOTS)

    @property
    def n_states(self) -> int:
        """Occupied states."""
        return int((self.mixture.sizes > 0).sum())

    @property
    def log_joint(self) -> float:
        """The log density ln p(z, y | α)."""
        from lurking.kernels.cpu.chains.dp_gibbs import log_joint

        return float(log_joint(self.mixture, self.alpha))

    def sweep(self) -> None:
        """Draw every case's state, then α."""
        from lurking.kernels.cpu.chains.dp_gibbs import sweep

        case, n = 0, len(self.mixture.slots)
        while True:
            scratch = np.empty(len(self.mixture.sizes))
            case = sweep(self.mixture, self.alpha, case, self.generator, scratch)
            if case == n:
                break
            # No slot is free: twice as many, the new ones empty.
            own = self.mixture
            self.mixture = own._replace(
                sizes=np.concatenate([own.sizes, np.zeros_like(own.sizes)]),
                counts=np.concatenate([own.counts, np.zeros_like(own.counts)]),
                totals=np.concatenate([own.totals, np.zeros_like(own.totals)]),
            )
        if not isinstance(self.rule, float):
            self.alpha = drawn_concentration(self.alpha, self.rule, self.n_states, n, self.generator)


def drawn_concentration(
    alpha: float, rule: tuple[float, float], n_states: int, n: int, generator: np.random.Generator
) -> float:
    """Return α drawn given the number of occupied states among n cases, α ~ Gamma(a, rate b) (Escobar & West 1995)."""
    shape, rate = rule
    if n == 0:
        return max(float(generator.gamma(shape, 1.0 / rate)), 1e-300)
    rate -= math.log(max(float(generator.beta(alpha + 1.0, n)), 1e-300))
    odds = (shape + n_states - 1.0) / (n * rate)
    more = generator.random() * (1.0 + odds) < odds
    return max(float(generator.gamma(shape + n_states - (not more), 1.0 / rate)), 1e-300)


def _cases(table: Table, *, likelihood: bool) -> tuple[IntArray, CodeArray]:
    """Return the row of every case (n,) and its codes (n, C); without the likelihood every cell is empty."""
    check_whole_weights(table.weights, "give whole numbers; a row of weight w is w cases, each with its own state")
    if table.n > MOST_CASES:
        raise TooLarge(
            f"the weights add up to {table.n:.3g} cases, each with a state of its own; at most {MOST_CASES:.0e} are "
            "taken, take a sample of the rows"
        )
    row_of = np.repeat(np.arange(table.n_rows), table.weights.astype(np.int64))
    codes = np.full((len(row_of), len(table.columns)), -1, np.int32)
    if likelihood:
        for c, name in enumerate(table.columns):
            codes[:, c] = table[name].codes[row_of]
    return row_of, codes


def _checked_concentration(value: float | tuple[float, float]) -> tuple[float, float] | float:
    if isinstance(value, tuple) and len(value) == 2 and all(is_positive(own) for own in value):
        return float(value[0]), float(value[1])
    if not isinstance(value, tuple) and is_positive(value):
        return float(value)
    raise OptionError(
        f"concentration is {value!r}; it must be a positive number α, or (a, b) for α ~ Gamma(a, rate b), both positive"
    )


def _checked_prior(prior: Prior | float) -> SymmetricPrior:
    made = Prior.of(prior)
    if not isinstance(made, SymmetricPrior):
        raise OptionError(
            f"prior is {made.describe()['kind']!r}; with no bound on the states only the same λ for every entry has a "
            "meaning: a number, Prior.symmetric(1.0) or Prior.jeffreys()"
        )
    return made


def _by_first_appearance(slots: IntArray) -> IntArray:
    """Return the states numbered by their first case."""
    _, first, inverse = np.unique(slots, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse])


def _check_pairs(count: int, what: str) -> None:
    if count * count > MOST_PAIRS:
        raise TooLarge(f"{count} {what} have {count * count} pairs, more than {MOST_PAIRS}; take a sample of the rows")
