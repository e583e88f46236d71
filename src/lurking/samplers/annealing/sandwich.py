"""The evidence of simulated data from both sides: annealing up to the posterior, and down from an exact draw of it.

Draw θ* from the prior and data y from θ*: then θ* is an exact draw of p(θ | y), and so is every point of a Gibbs chain
that starts there. A forward population gives W with E[W] = p(y), a reverse chain from a posterior draw V with
E[1/V] = 1/p(y) (`lurking.samplers.annealing.reverse`). By Jensen's inequality, for means over any number of them,

    E[ln mean W] ≤ ln p(y) ≤ E[−ln mean 1/V]

(Grosse, Ghahramani & Adams 2015, bidirectional Monte Carlo). It holds for a path and a number of steps that are fixed
beforehand: they are chosen in runs that know the data but neither θ* nor the random numbers of what is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import softmax

from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.graph.dag import Dag
from lurking.inference.network import Network
from lurking.inference.problem import Problem, refuse_ties
from lurking.learn.options import FitOptions
from lurking.models.layout import Layout
from lurking.models.prior import Prior
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealing.annealed import ABOUT_AS_WELL, FLATTENINGS, POWERS
from lurking.samplers.annealing.modes import variational_modes
from lurking.samplers.annealing.paths import ProductPath, flattened_path
from lurking.samplers.annealing.populations import Populations, anneal, spaced_by_spread
from lurking.samplers.annealing.reverse import BURN_IN, Way, correlated_error, posterior_draws, reverse_values
from lurking.samplers.diagnostics import log_mean, relative_error
from lurking.samplers.gibbs import gibbs
from lurking.types import BoolArray, FloatArray, Level

PILOT_STEPS, PILOT_PARTICLES, PILOT_POPULATIONS = 64, 16, 3
SCHEDULE = 512
"""Temperatures at which the shape of a schedule is kept; it is stretched to any number of steps."""


@dataclass(frozen=True, eq=False)
class Case:
    """Simulated data and the parameters behind them.

    Attributes
    ----------
    dag : the structure, without hidden nodes that have no observed descendant.
    table : the rows; hidden variables have no column.
    log_theta : (P,) ln θ* in the layout of `dag`.
    is_exact : whether θ* came from the prior and so is an exact draw of p(θ | table).
    """

    dag: Dag
    table: Table = field(repr=False)
    log_theta: FloatArray = field(repr=False)
    is_exact: bool


def draw_case(
    dag: Dag,
    levels: Mapping[str, Sequence[Level]],
    prior: Prior | float = 1.0,
    *,
    n: int,
    seed: Seed,
    empty: float = 0.0,
) -> Case:
    """Draw θ* from the prior and n rows from θ*; every cell is emptied with probability `empty`, whatever it holds.

    `levels` has the states of every observed variable. Cells emptied completely at random tell nothing about θ, so θ*
    stays an exact posterior draw.
    """
    children = seed_sequence(seed).spawn(3)
    generator = np.random.Generator(np.random.PCG64(children[0]))
    kept = dag.pruned()
    states = _states(kept, levels)
    layout = Layout(kept, {name: len(own) for name, own in states.items()})
    log_theta = layout.blocks.draw(Prior.of(prior).pseudo_counts(layout, states), generator)
    network = Network(kept, states, layout.normalise(np.exp(log_theta)))
    table = _emptied(network.sample(n, seed=children[1]), empty, None, children[2])
    return Case(kept, table, log_theta, True)


def draw_alike(problem: Problem, *, n: int, seed: Seed, empty: float = 0.0) -> Case:
    """Draw θ* from the posterior of a problem, by Gibbs sampling, and n rows from θ*.

    Cells are empty in the patterns of the problem's own rows, and `empty` more. θ* is no draw of the prior, so it is
    not an exact posterior draw given the new rows.
    """
    refuse_ties(problem, "drawing data like those of a problem", "a problem without ties")
    children = seed_sequence(seed).spawn(3)
    drawn = gibbs(problem, chains=1, draws=1, burn_in=BURN_IN, seed=children[0], workers=1)
    log_theta = drawn.log_theta[0, 0]
    states = _states(problem.dag, {name: problem.table[name].levels for name in problem.dag.observed})
    network = Network(problem.dag, states, problem.layout.normalise(np.exp(log_theta)))
    table = _emptied(network.sample(n, seed=children[1]), empty, problem.table, children[2])
    return Case(problem.dag, table, log_theta, False)


def _states(dag: Dag, levels: Mapping[str, Sequence[Level]]) -> dict[str, tuple[Level, ...]]:
    return {name: tuple(range(dag.hidden[name])) if name in dag.hidden else tuple(levels[name]) for name in dag.nodes}


def _emptied(table: Table, share: float, like: Table | None, seed: np.random.SeedSequence) -> Table:
    """Return the table with a share of its cells empty, and with missing cells in the patterns of another table."""
    if not 0.0 <= share < 1.0:
        raise OptionError(f"empty is {share!r}; it must be a share of the cells from 0 to below 1")
    generator = np.random.Generator(np.random.PCG64(seed))
    gone: BoolArray = generator.random((table.n_rows, len(table.columns))) < share
    if like is not None and like.n_rows:
        rows = generator.choice(like.n_rows, size=table.n_rows, p=like.weights / like.weights.sum())
        gone |= np.stack([like[name].codes[rows] < 0 for name in table.columns], axis=1)
    if not gone.any():
        return table
    return Table.from_codes(
        {
            name: (np.where(gone[:, k], -1, table[name].codes).astype(np.int32), table[name].levels)
            for k, name in enumerate(table.columns)
        }
    )


@dataclass(frozen=True)
class Sandwich:
    """ln p(y) from below and from above, each with its standard error.

    steps : temperatures of both sides.
    flattening : c of the variational path (see `lurking.samplers.annealing.paths`); 0 where nothing was sampled.
    """

    lower: float
    lower_error: float
    upper: float
    upper_error: float
    steps: int = 0
    flattening: float = 0.0

    @property
    def middle(self) -> float:
        """The value halfway between both sides."""
        return 0.5 * (self.lower + self.upper)

    @property
    def width(self) -> float:
        """Upper minus lower side; a little below 0 by chance where both are tight."""
        return self.upper - self.lower

    @property
    def error(self) -> float:
        """How far the middle may be off: half the width, and the standard error of the middle."""
        return 0.5 * (max(self.width, 0.0) + math.hypot(self.lower_error, self.upper_error))


@dataclass(frozen=True)
class SandwichOptions:
    """How far both sides go.

    target : `Sandwich.error` to reach in a rehearsal, in nats; steps are doubled until then.
    steps, most_steps : temperatures to begin with, and at most; where both are equal nothing is rehearsed.
    populations, particles : of the forward side; a population is resampled when its effective share falls below a half.
    chains : reverse chains, each from its own point of a Gibbs chain of posterior draws.
    spacing : Gibbs sweeps between these points.
    """

    target: float = 0.2
    steps: int = 512
    most_steps: int = 4096
    populations: int = 8
    particles: int = 12
    chains: int = 32
    spacing: int = 25


def sandwich(
    problem: Problem,
    case: Case,
    fit_options: FitOptions,
    options: SandwichOptions | None = None,
) -> Sandwich:
    """Return ln p(y) of a case from both sides; `problem` is the case's own structure and table under the prior.

    `fit_options` are those of the VB fit that the path starts from; its seed, workers and stop serve all of it. Path
    and steps are chosen from the data alone, with random numbers of their own; what is returned are fresh runs. A
    choice that looked at them, or at θ*, would spoil their law.
    """
    chosen = options or SandwichOptions()
    if problem.is_complete:
        value = problem.layout.blocks.log_evidence(problem.pseudo, problem.engine.complete_counts)
        return Sandwich(value, 0.0, value, 0.0)
    pilot_seed, rehearsal_seed, forward_seed, reverse_seed, draws_seed = seed_sequence(fit_options.seed).spawn(5)
    way = _pilot(problem, fit_options, pilot_seed)
    steps = _rehearsed_steps(way, fit_options, chosen, rehearsal_seed)
    temperatures = way.stretched(steps)
    populations = _forward(way.path, temperatures, chosen.populations, chosen.particles, fit_options, forward_seed)
    points = posterior_draws(
        *(problem, case.log_theta, chosen.chains, chosen.spacing, draws_seed), is_exact=case.is_exact
    )
    values = reverse_values(way, temperatures, points, reverse_seed, fit_options.workers, fit_options.stop)
    if fit_options.stop.is_set:
        raise KeyboardInterrupt
    forward = way.estimates(populations)
    return Sandwich(
        *(log_mean(forward), relative_error(forward)),
        *(-log_mean(-values), correlated_error(-values)),
        *(steps, way.flattening),
    )


def _forward(
    path: ProductPath,
    temperatures: FloatArray,
    count: int,
    particles: int,
    fit_options: FitOptions,
    seed: np.random.SeedSequence,
) -> Populations:
    """Anneal `count` populations up the path."""
    populations = anneal(
        *(path, temperatures, seed.spawn(count)),
        particles=particles,
        threshold=0.5,
        workers=fit_options.workers,
        stop=fit_options.stop,
    )
    if fit_options.stop.is_set:
        raise KeyboardInterrupt
    return populations


def _rehearsed_steps(way: Way, fit_options: FitOptions, options: SandwichOptions, seed: np.random.SeedSequence) -> int:
    """Return the steps, doubled from `options.steps`, at which a rehearsal reaches the target, or the most allowed.

    A rehearsal is half a sandwich in which reverse chains start from ends of the forward populations, drawn by their
    weights, instead of from θ*. It may be wrong where the forward side misses something; then the sandwich is wide.
    """
    generator = np.random.Generator(np.random.PCG64(seed.spawn(1)[0]))
    populations, chains = max(2, options.populations // 2), max(2, options.chains // 2)
    steps = options.steps
    while 2 * steps <= options.most_steps:
        temperatures = way.stretched(steps)
        made = _forward(way.path, temperatures, populations, options.particles, fit_options, seed)
        log_weights = (made.log_weights + made.log_resampled[:, None]).ravel()
        ends = made.log_theta.reshape(len(log_weights), -1)
        points = ends[generator.choice(len(ends), size=chains, p=softmax(log_weights))]
        values = reverse_values(way, temperatures, points, seed, fit_options.workers, fit_options.stop)
        if fit_options.stop.is_set:
            raise KeyboardInterrupt
        forward = way.estimates(made)
        found = Sandwich(
            *(log_mean(forward), relative_error(forward) * math.sqrt(populations / options.populations)),
            *(-log_mean(-values), relative_error(-values) * math.sqrt(chains / options.chains)),
        )
        if found.error <= options.target:
            break
        steps *= 2
    return steps


def _pilot(problem: Problem, fit_options: FitOptions, seed: np.random.SeedSequence) -> Way:
    """Return the smallest flattening whose short forward runs do about as well as the best (see `annealed`)."""
    modes = variational_modes(problem, fit_options, 1)
    even, tried = np.linspace(0.0, 1.0, PILOT_STEPS + 1), []
    for flattening in FLATTENINGS:
        path = flattened_path(problem, modes[0].counts, modes[0].potentials, flattening)
        sharing = Sharing(problem, [path.alpha])
        populations = _forward(path, even, PILOT_POPULATIONS, PILOT_PARTICLES, fit_options, seed)
        schedule = spaced_by_spread(populations, SCHEDULE)
        ways = [Way(path, sharing, flattening, power, schedule) for power in POWERS]
        tried += [
            max(((float(way.estimates(populations).mean()), way.power, way) for way in ways), key=lambda t: t[:2])
        ]
    best = max(value for value, _, _ in tried)
    return next(way for value, _, way in tried if value >= best - ABOUT_AS_WELL)
