"""`lurking.sample_structures`: the posterior over structures by reversible jumps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from lurking.data.files import as_table
from lurking.errors import OptionError, StructureError, UnknownNameError
from lurking.evidence.base import Evidence, Kind
from lurking.graph.dag import Dag, as_dag
from lurking.graph.moves import arc_matrix
from lurking.inference.problem import Problem, refuse_families
from lurking.models.prior import Prior, prior_of_every_structure
from lurking.runtime.checks import check_whole, is_number
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.rng import Seed, seed_sequence
from lurking.samplers.convergence import Agreement, agreement, warn_of_disagreement
from lurking.samplers.frequencies import mean_error, share_errors
from lurking.samplers.jumps.cells import completable_rows
from lurking.samplers.jumps.rjmcmc import JumpChain, Space, Structure
from lurking.search.constraints import Arcs, Constraints
from lurking.search.posterior import Candidate, StructurePosterior
from lurking.types import IntArray, read_only

Walk = tuple[list[Structure], dict[str, list[int]]]
"""The structures that a chain kept, and attempts and acceptances of each kind of move."""
SCORE = "jumps"
SHOWN = 10
"""Structures whose visits `convergence` looks at, and that a printed outcome lists."""


@dataclass(frozen=True, kw_only=True)
class VisitedStructure(Candidate):
    """One structure with the share of draws that were at it, and the Monte Carlo error of that share (inf: not known).

    `evidence.log_z` is ln p(m|y) − ln p(m): differences are log Bayes factors, and the constant that they share is not
    known to a chain. `prior` is normalised over the structures visited.
    """

    std_error: float


class Expectation(NamedTuple):
    """Posterior mean of a function of the structure, its Monte Carlo error, and how well the chains agree on it.

    `std_error` is inf, not known, for a single chain of three draws or fewer.
    """

    mean: float
    std_error: float
    r_hat: float
    ess: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledStructures(StructurePosterior):
    """Outcome of `sample_structures`: p(m | y) as shares of draws, the most visited structure first.

    Attributes
    ----------
    visits : (chains, draws) which of the candidates every draw was at.
    acceptance : share of accepted proposals of each kind of move.
    """

    visits: IntArray = field(repr=False)
    acceptance: Mapping[str, float]

    def __str__(self) -> str:
        chains, draws = self.visits.shape
        lines = [f"{len(self.candidates)} structures in {chains} chains of {draws} draws, the most visited first"]
        for candidate in self.candidates[:SHOWN]:
            assert isinstance(candidate, VisitedStructure)
            lines.append(f"{candidate.probability:.3f} ± {candidate.std_error:.3f}  {candidate.name}")
        return "\n".join([*lines, *(["…"] if len(self.candidates) > SHOWN else [])])

    def __repr__(self) -> str:
        return (
            f"SampledStructures({len(self.candidates)} structures, draws {self.visits.shape}, best {self.best.name!r})"
        )

    @property
    def best(self) -> Candidate:
        """The structure visited most."""
        return self.candidates[0]

    def ranked(self) -> list[Candidate]:
        """Return the structures, the most visited first."""
        return list(self.candidates)

    def expectation(self, function: Callable[[Dag], float]) -> Expectation:
        """Return the posterior mean of a function of the structure, such as whether it has an arc.

        R-hat and effective sample size are nan where the function never varies.
        """
        if not callable(function):
            raise OptionError(
                f"expectation takes a function of a Dag that returns a number, and was given {function!r}"
            )
        values = np.asarray([_number_from(function, candidate.dag) for candidate in self.candidates])[self.visits]
        found = agreement(values)
        return Expectation(float(values.mean()), mean_error(values), found.r_hat, found.ess_bulk)

    def states_probabilities(self, hidden: str) -> dict[int, float]:
        """Return the distribution of the number of states of a hidden variable."""
        known = self.candidates[0].dag.hidden
        if hidden not in known:
            raise UnknownNameError("hidden variable", hidden, tuple(known))
        result: dict[int, float] = {}
        for candidate in self.candidates:
            states = candidate.dag.hidden[hidden]
            result[states] = result.get(states, 0.0) + candidate.probability
        return dict(sorted(result.items()))

    def convergence(self) -> dict[str, Expectation]:
        """Return {quantity: Expectation} of indicators of arcs, states and the most visited structures."""
        quantities: dict[str, Callable[[Dag], float]] = {"arcs": lambda dag: float(len(dag.edges))}
        arcs = dict.fromkeys(edge for candidate in self.candidates for edge in candidate.dag.edges)
        for edge in sorted(arcs):
            quantities[f"{edge[0]} -> {edge[1]}"] = partial(_has_arc, edge)
        for name in self.candidates[0].dag.hidden:
            for states in self.states_probabilities(name):
                quantities[f"{name}[{states}]"] = partial(_has_states, name, states)
        for candidate in self.candidates[:SHOWN]:
            quantities[candidate.name] = partial(_is, candidate.dag)
        found = {name: self.expectation(function) for name, function in quantities.items()}
        return {name: value for name, value in found.items() if not math.isnan(value.r_hat)}


def _number_from(function: Callable[[Dag], float], dag: Dag) -> float:
    """Return what a user's function says of a structure, which must be a number or a truth value."""
    value = function(dag)
    if not isinstance(value, bool | np.bool_) and not is_number(value):
        raise OptionError(f"the function returned {value!r} for {str(dag)!r}; it must return a number, True or False")
    return float(value)


def _has_arc(edge: tuple[str, str], dag: Dag) -> float:
    return float(edge in dag.edges)


def _has_states(hidden: str, states: int, dag: Dag) -> float:
    return float(dag.hidden[hidden] == states)


def _is(other: Dag, dag: Dag) -> float:
    return float(dag == other)


def sample_structures(
    table: Any,
    start: Dag | str,
    *,
    states: Mapping[str, int | tuple[int, int]] | None = None,
    prior: Prior | float = 1.0,
    log_prior: Callable[[Dag], float] | None = None,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Sequence[str]] = (),
    max_parents: int | None = None,
    among_observed: bool = True,
    between_hidden: bool = False,
    chains: int = 4,
    draws: int = 1000,
    burn_in: int = 500,
    thin: int = 1,
    likelihood: bool = True,
    seed: Seed = 0,
    workers: int | None = None,
    stop: StopFlag | None = None,
    keep_interrupted: bool = False,
) -> SampledStructures:
    """Sample structures, parameters and completions from their joint posterior by reversible jumps.

    Parameters
    ----------
    table : a Table, a frame, an array or the path of a file; cells may be empty, weights are whole numbers.
    start : where all chains start; its nodes, hidden ones included, are those of every structure.
    states : {hidden variable: most states} or {…: (least, most)}; the others keep the states they start with.
    prior : λ of every table: a number, Prior.symmetric, Prior.jeffreys or Prior.bdeu.
    log_prior : ln p(m) up to a constant, a function of a Dag; −inf rules a structure out. None is uniform.
    required, forbidden, tiers, max_parents : as in `lk.search`, hidden variables included.
    among_observed : whether arcs between observed variables may be there beside those of the start.
    between_hidden : whether hidden variables may be parents of each other. Observed ones are never their parents.
    chains, draws, burn_in, thin : each chain keeps `draws` structures, `thin` sweeps apart, after `burn_in` sweeps.
    likelihood : False leaves the data out, so that the structure prior comes back.
    keep_interrupted : after Ctrl-C return the chains that were finished instead of raising KeyboardInterrupt.
    """
    for name, value in (("chains", chains), ("draws", draws), ("thin", thin)):
        check_whole(name, value, 1)
    check_whole("burn_in", burn_in, 0)
    if log_prior is not None and not callable(log_prior):
        raise OptionError(f"log_prior is {log_prior!r}; it must be a function of a Dag that returns ln p(m), or None")
    rule = prior_of_every_structure(prior, "sampling structures")
    problem = Problem(as_dag(start, "start"), as_table(table), rule, prune=False)
    refuse_families(problem, "structures are sampled", "declare the columns categorical, or leave them out (drop)")
    dag, cardinalities = problem.dag, problem.layout.cardinalities
    constraints = _constraints(dag, required, forbidden, tiers, max_parents, (among_observed, between_hidden))
    least, most = _bounds(dag, cardinalities, {} if states is None else states)
    rows, weights = completable_rows(problem, likelihood=likelihood)
    space = Space(
        nodes=dag.nodes,
        is_hidden=np.asarray([name in dag.hidden for name in dag.nodes]),
        allowed=constraints.allowed,
        required=constraints.required,
        max_parents=constraints.max_parents,
        least=least,
        most=most,
        prior=rule,
        log_prior=log_prior,
        rows=rows,
        weights=weights,
    )
    first = arc_matrix(dag, dag.nodes).tobytes(), cardinalities
    if space.log_prior_of(first) == -math.inf:
        raise StructureError("the structure prior rules the start out; start where ln p(m) is finite")
    flag = stop or StopFlag()
    done = _walks(space, first, (burn_in, draws, thin), seed_sequence(seed).spawn(int(chains)), workers, flag)
    if not done or (flag.is_set and not keep_interrupted):
        raise KeyboardInterrupt
    found = _collected(space, done)
    warn_of_disagreement("the number of arcs or states", _agreements(found), len(found.visits))
    return found


def _agreements(found: SampledStructures) -> list[Agreement]:
    """Return how well chains agree on the number of arcs and on the states of every hidden variable."""
    arcs = np.asarray([float(len(candidate.dag.edges)) for candidate in found.candidates])
    quantities = [arcs]
    for name in found.candidates[0].dag.hidden:
        quantities.append(np.asarray([float(candidate.dag.hidden[name]) for candidate in found.candidates]))
    return [agreement(values[found.visits]) for values in quantities]


def _walks(
    space: Space,
    first: Structure,
    lengths: tuple[int, int, int],
    seeds: Sequence[np.random.SeedSequence],
    workers: int | None,
    stop: StopFlag,
) -> list[Walk]:
    """Return the chains, one for each seed, that were finished."""
    made = map_in_order(lambda seed: _walk(space, first, lengths, stop, seed), seeds, workers=workers, stop=stop)
    return [walk for walk in made if walk is not None]


def _walk(
    space: Space, first: Structure, lengths: tuple[int, int, int], stop: StopFlag, seed: np.random.SeedSequence
) -> Walk | None:
    """Return the structures that one chain keeps and its moves; None when it was interrupted."""
    burn_in, draws, thin = lengths
    arcs = np.frombuffer(first[0], np.bool_).reshape(len(space.nodes), -1)
    chain = JumpChain(space, arcs, first[1], np.random.Generator(np.random.PCG64(seed)))
    kept = []
    for sweep in range(burn_in + draws * thin):
        if stop.is_set:
            return None
        chain.sweep()
        if sweep >= burn_in and (sweep - burn_in + 1) % thin == 0:
            kept.append(chain.structure)
    return kept, chain.moves


def _constraints(
    dag: Dag,
    required: Arcs,
    forbidden: Arcs,
    tiers: Sequence[Sequence[str]],
    max_parents: int | None,
    free: tuple[bool, bool],
) -> Constraints:
    """Return the rules over all nodes; `free` = (among observed, between hidden variables)."""
    given = Constraints.from_options(
        dag.nodes, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents
    )
    allowed, start = given.allowed.copy(), arc_matrix(dag, dag.nodes)
    hidden = np.asarray([name in dag.hidden for name in dag.nodes])
    allowed[np.ix_(~hidden, hidden)] = False
    if not free[1]:
        allowed[np.ix_(hidden, hidden)] = False
    if not free[0]:
        allowed[np.ix_(~hidden, ~hidden)] &= start[np.ix_(~hidden, ~hidden)]
    wrong = given.required & ~allowed
    if wrong.any():
        x, y = np.argwhere(wrong)[0]
        raise StructureError(
            f"the required arc {dag.nodes[x]!r} -> {dag.nodes[y]!r} {_why_not(bool(hidden[x]), bool(hidden[y]))}"
        )
    rules = replace(given, allowed=read_only(allowed))
    rules.check(dag)
    return rules


def _why_not(from_hidden: bool, to_hidden: bool) -> str:
    """Say which rule a required arc breaks, and what to do."""
    if not to_hidden:
        return "joins observed variables and is not in the start; put it there, or leave out among_observed=False"
    if from_hidden:
        return "joins hidden variables, which are parents of each other only with between_hidden=True"
    return "leads from an observed variable to a hidden one, whose parent it can never be; require the reverse"


def _bounds(
    dag: Dag, cardinalities: Sequence[int], states: Mapping[str, int | tuple[int, int]]
) -> tuple[IntArray, IntArray]:
    """Return the least and the most states of every node."""
    if not isinstance(states, Mapping):
        raise OptionError(f"states is {states!r}; it must map hidden variables to their most states, e.g. {{'c': 6}}")
    least, most = np.asarray(cardinalities, np.int64), np.asarray(cardinalities, np.int64)
    for name, bounds in states.items():
        if name not in dag.hidden:
            raise UnknownNameError("hidden variable", name, tuple(dag.hidden))
        low, high = bounds if isinstance(bounds, tuple) and len(bounds) == 2 else (1, bounds)
        place = dag.nodes.index(name)
        least[place] = check_whole(f"the least number of states of {name!r}", low, 1)
        most[place] = check_whole(f"the most states of {name!r}", high, int(low))
        if not least[place] <= dag.hidden[name] <= most[place]:
            raise OptionError(
                f"{name!r} starts with {dag.hidden[name]} states, outside {low} to {high}; change the start or states="
            )
    return least, most


def _collected(space: Space, done: Sequence[Walk]) -> SampledStructures:
    """Return the structures of all chains with their shares, the most visited first."""
    numbers: dict[Structure, int] = {}
    visits = np.asarray([[numbers.setdefault(key, len(numbers)) for key in kept] for kept, _ in done], np.int64)
    shares = np.bincount(visits.ravel(), minlength=len(numbers)) / visits.size
    errors = share_errors(visits, len(numbers))
    log_priors = np.asarray([space.log_prior_of(key) for key in numbers])
    normalised = log_priors - logsumexp(log_priors)
    order = np.argsort(-shares, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    keys = list(numbers)
    candidates = []
    for k in order:
        dag, share, error = space.dag(keys[k]), float(shares[k]), float(errors[k])
        value = math.log(share) - float(log_priors[k])
        evidence = Evidence(value, 0.0, error / share, Kind.ESTIMATE, SCORE)
        log_prior = float(normalised[k])
        candidates.append(VisitedStructure(dag.to_text(), dag, evidence, log_prior, share, share, std_error=error))
    moves = {kind: [sum(own[kind][k] for _, own in done) for k in (0, 1)] for kind in done[0][1]}
    rates = {kind: accepted / attempts for kind, (attempts, accepted) in moves.items() if attempts}
    visits = read_only(np.ascontiguousarray(rank[visits]))
    return SampledStructures(SCORE, tuple(candidates), visits=visits, acceptance=rates)
