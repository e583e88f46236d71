"""The evidence of simulated data from both sides: annealing up to the posterior, and down from an exact draw of it.

Draw θ* from the prior and data y from θ*: then θ* is an exact draw of p(θ | y), and so is every point of a Gibbs chain
that starts there. A forward population gives W with E[W] = p(y), a reverse chain from a posterior draw V with
E[1/V] = 1/p(y). By Jensen's inequality, for means over any number of them,

    E[ln mean W] ≤ ln p(y) ≤ E[−ln mean 1/V]

(Grosse, Ghahramani & Adams 2015, bidirectional Monte Carlo).

Aliases. Both sides carry S·ρ(θ), ρ(θ) = g(θ)^γ / Σ_π g(πθ)^γ (see `lurking.samplers.aliases`). Forward,
W = w · S ρ(θ_K). In reverse, choose the relabeling π of a posterior draw with probability ρ(πθ): what comes out has the
density S ρ(θ) p(θ | y), since p(θ | y) is the same for all relabelings. That is the law towards which W weighs the
forward chains, so V = w · S ρ(πθ) has E[1/V] = 1/p(y). (Without the factor ρ it would not: 1/(w S) has the mean
E_forward[ρ]/p(y).) The completion needs no relabeling of its own, it is drawn given πθ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import softmax

from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.expfam import dirichlet
from lurking.graph.dag import Dag
from lurking.inference.network import Network
from lurking.inference.problem import Problem
from lurking.learn.fit import FitOptions
from lurking.models.discrete.layout import Layout
from lurking.models.discrete.prior import Prior
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import Seed, generators, seed_sequence
from lurking.samplers.aliases import Sharing
from lurking.samplers.annealed import ABOUT_AS_WELL, FLATTENINGS, POWERS
from lurking.samplers.annealing import Populations, anneal, checked_temperatures, spaced_by_spread
from lurking.samplers.diagnostics import log_mean, relative_error
from lurking.samplers.gibbs import gibbs
from lurking.samplers.modes import variational_modes
from lurking.samplers.paths import ProductPath, flattened_path, sampled_program
from lurking.types import BoolArray, FloatArray, Level

PILOT_STEPS, PILOT_PARTICLES, PILOT_POPULATIONS = 64, 16, 3
BURN_IN = 500
"""Gibbs sweeps before a draw that is not exact is used."""


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
    from lurking.kernels.cpu.sampling import draw_log_theta

    children = seed_sequence(seed).spawn(3)
    generator = np.random.Generator(np.random.PCG64(children[0]))
    kept = dag.pruned()
    states = _states(kept, levels)
    layout = Layout(kept, {name: len(own) for name, own in states.items()})
    log_theta = np.empty(layout.size)
    draw_log_theta(layout.row_start, Prior.of(prior).pseudo_counts(layout, states), generator, log_theta)
    network = Network(kept, states, layout.normalise(np.exp(log_theta)))
    table = _emptied(network.sample(n, seed=children[1]), empty, None, children[2])
    return Case(kept, table, log_theta, True)


def draw_alike(problem: Problem, *, n: int, seed: Seed, empty: float = 0.0) -> Case:
    """Draw θ* from the posterior of a problem, by Gibbs sampling, and n rows from θ*.

    Cells are empty in the patterns of the problem's own rows, and `empty` more. θ* is no draw of the prior, so it is
    not an exact posterior draw given the new rows.
    """
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

    steps : temperatures of the last round.
    flattening : c of the variational path (see `lurking.samplers.paths`); 0 where nothing was sampled.
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

    target : `Sandwich.error` to reach, in nats; steps are doubled until then.
    steps, most_steps : temperatures of the first and of the last round at most.
    populations, particles : of the forward side; a population is resampled when its effective share falls below a half.
    chains : reverse chains, each from its own posterior draw.
    spacing : Gibbs sweeps between these draws.
    """

    target: float = 0.2
    steps: int = 512
    most_steps: int = 4096
    populations: int = 8
    particles: int = 12
    chains: int = 32
    spacing: int = 25


@dataclass(frozen=True, eq=False)
class Way:
    """A path with its temperatures and the sharing of the posterior among relabelings."""

    path: ProductPath
    sharing: Sharing
    flattening: float
    power: float
    temperatures: FloatArray

    def estimates(self, populations: Populations) -> FloatArray:
        """Return ln of each population's unbiased estimate of p(y), (G,)."""
        shape = populations.log_weights.shape
        points = populations.log_theta.reshape(-1, populations.log_theta.shape[-1])
        return populations.estimates(self.sharing.log_share(0, points, self.power).reshape(shape))

    def stretched(self, steps: int) -> FloatArray:
        """Return the temperatures of a schedule of the same shape with another number of steps."""
        places, known = np.linspace(0.0, 1.0, steps + 1), np.linspace(0.0, 1.0, len(self.temperatures))
        return np.interp(places, known, self.temperatures)


def sandwich(
    problem: Problem,
    case: Case,
    fit_options: FitOptions,
    options: SandwichOptions | None = None,
) -> Sandwich:
    """Return ln p(y) of a case from both sides; `problem` is the case's own structure and table under the prior.

    `fit_options` are those of the VB fit that the path starts from; its seed, workers and stop serve all of it. The
    path is chosen by forward runs alone: a choice that looked at reverse chains would spoil their law.
    """
    chosen = options or SandwichOptions()
    if problem.is_complete:
        value = dirichlet.log_evidence(problem.layout.row_start, problem.pseudo, problem.engine.complete_counts)
        return Sandwich(value, 0.0, value, 0.0)
    pilot_seed, forward_seed, reverse_seed, draws_seed = seed_sequence(fit_options.seed).spawn(4)
    way = _pilot(problem, fit_options, chosen.steps, pilot_seed)
    steps = chosen.steps
    while True:
        temperatures = way.stretched(steps)
        populations = anneal(
            *(way.path, temperatures, forward_seed.spawn(chosen.populations)),
            particles=chosen.particles,
            threshold=0.5,
            workers=fit_options.workers,
            stop=fit_options.stop,
        )
        points = posterior_draws(problem, case, chosen.chains, chosen.spacing, draws_seed)
        values = reverse_values(way, temperatures, points, reverse_seed, fit_options.workers, fit_options.stop)
        if fit_options.stop.is_set:
            raise KeyboardInterrupt
        forward = way.estimates(populations)
        result = Sandwich(
            *(log_mean(forward), relative_error(forward)),
            *(-log_mean(-values), relative_error(-values)),
            *(steps, way.flattening),
        )
        if result.error <= chosen.target or 2 * steps > chosen.most_steps:
            return result
        steps *= 2


def _pilot(problem: Problem, fit_options: FitOptions, steps: int, seed: np.random.SeedSequence) -> Way:
    """Return the smallest flattening whose short forward runs do about as well as the best (see `annealed`)."""
    modes = variational_modes(problem, fit_options, 1)
    even, tried = np.linspace(0.0, 1.0, PILOT_STEPS + 1), []
    for flattening in FLATTENINGS:
        path = flattened_path(problem, modes[0].counts, modes[0].potentials, flattening)
        sharing = Sharing(problem, [path.alpha])
        populations = anneal(
            *(path, even, seed.spawn(PILOT_POPULATIONS)),
            particles=PILOT_PARTICLES,
            threshold=0.5,
            workers=fit_options.workers,
            stop=fit_options.stop,
        )
        if fit_options.stop.is_set:
            raise KeyboardInterrupt
        schedule = spaced_by_spread(populations, steps)
        ways = [Way(path, sharing, flattening, power, schedule) for power in POWERS]
        tried += [
            max(((float(way.estimates(populations).mean()), way.power, way) for way in ways), key=lambda t: t[:2])
        ]
    best = max(value for value, _, _ in tried)
    return next(way for value, _, way in tried if value >= best - ABOUT_AS_WELL)


def posterior_draws(problem: Problem, case: Case, count: int, spacing: int, seed: np.random.SeedSequence) -> FloatArray:
    """Return ln θ of `count` posterior draws over the active positions, (count, Q): θ*, then Gibbs sweeps from it.

    Where θ* itself is not exact the chain runs for `BURN_IN` sweeps first.
    """
    from lurking.kernels.cpu.gibbs import gibbs_into

    program, active = sampled_program(problem), problem.engine.active
    generator = generators(seed, 1)[0]
    pseudo = np.ascontiguousarray(problem.pseudo[active])
    log_theta = np.ascontiguousarray(case.log_theta[active])
    if not case.is_exact:
        gibbs_into(
            *(program, pseudo, log_theta, BURN_IN, BURN_IN + 1, generator),
            *(np.empty((0, len(active))), np.empty(0)),
        )
    first, points = log_theta.copy(), np.empty((count - 1, len(active)))
    gibbs_into(program, pseudo, log_theta, (count - 1) * spacing, spacing, generator, points, np.empty(count - 1))
    return np.concatenate([first[None, :], points])


def relabelled(
    sharing: Sharing, problem: Problem, log_theta: FloatArray, power: float, generator: np.random.Generator
) -> FloatArray:
    """Return ln πθ of one posterior draw ln θ (Q,), the relabeling π chosen with probability ρ(πθ).

    Where relabelings are too many to list, the states of one hidden variable are put in the order that suits g best,
    as `Sharing` does; ρ is 1 there.
    """
    if power == 0.0:  # ρ is the same for all: the draw as it is has the law wanted
        return log_theta
    active = problem.engine.active
    whole = np.zeros(problem.layout.size)
    whole[active] = log_theta
    gain = sharing.alphas[0] - 1.0
    if sharing.permutations is not None:
        probabilities = softmax(power * (whole[sharing.permutations] @ gain))
        return np.asarray(whole[sharing.permutations[generator.choice(len(probabilities), p=probabilities)]][active])
    moved = whole.copy()
    if sharing.states:
        for place, state in enumerate(sharing.best_order(0, whole)):
            moved[sharing.states[place]] = whole[sharing.states[state]]
    return moved[active]


def reverse(
    path: ProductPath,
    temperatures: FloatArray,
    points: FloatArray,
    seeds: Sequence[np.random.SeedSequence],
    *,
    workers: int | None = None,
    stop: StopFlag | None = None,
) -> FloatArray:
    """Return ln w of one reverse chain from each posterior draw ln θ, (chains, Q); the mean of 1/w is 1/p(y).

    After an interrupt, when `stop` is given, the chains finished by then.
    """
    from lurking.kernels.cpu.reverse import reverse_into

    program, schedule, flag = path.program, checked_temperatures(temperatures), stop or StopFlag()

    def one(item: tuple[FloatArray, np.random.SeedSequence]) -> float | None:
        generator = np.random.Generator(np.random.PCG64(item[1]))
        log_theta, start = np.array(item[0], np.float64), (path.alpha, path.potentials)
        whole, value = reverse_into(program, path.pseudo, start, schedule, log_theta, generator, flag.array)
        return float(value) if whole else None

    made = map_in_order(one, list(zip(points, seeds, strict=True)), workers=workers, stop=stop)
    return np.asarray([value for value in made if value is not None]) + path.constant


def reverse_values(
    way: Way,
    temperatures: FloatArray,
    points: FloatArray,
    seed: np.random.SeedSequence,
    workers: int | None = None,
    stop: StopFlag | None = None,
) -> FloatArray:
    """Return ln V of a reverse chain from each posterior draw, aliases shared, (chains,)."""
    choice, *seeds = seed.spawn(1 + len(points))
    generator = np.random.Generator(np.random.PCG64(choice))
    moved = np.stack([relabelled(way.sharing, way.path.problem, own, way.power, generator) for own in points])
    values = reverse(way.path, temperatures, moved, seeds, workers=workers, stop=stop)
    return values + way.sharing.log_share(0, moved, way.power)[: len(values)]
