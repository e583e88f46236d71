"""Structures with evidence, prior and posterior probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from lurking.data.frames import pandas_frame
from lurking.errors import OptionError, UnknownNameError
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.graph.model_class import model_class, without_idle_hidden
from lurking.inference.network import Imputation
from lurking.runtime.checks import check_whole
from lurking.runtime.rng import Seed, generators
from lurking.search.averaging import Average, AveragedPrediction, Fitting
from lurking.search.bayes_factors import BayesFactor
from lurking.search.edges import EdgePosterior
from lurking.search.hidden_matching import matched
from lurking.types import FloatArray, Frame, read_only

WITHIN = 30.0
"""Nats below the best at which a structure no longer contends."""
SIMULATIONS = 4000
COVERAGE = 0.9545
"""Of two standard errors of a normal variable."""
LARGEST_ERROR = 1e6


@dataclass(frozen=True)
class Candidate:
    """One structure with its evidence and probabilities.

    `log_prior` is ln p(m), normalised over the list; structures of one class share its prior. A candidate that is not
    `is_contending` was too far below the best to be scored again by sampling; its evidence is the cheap one. Candidates
    with equal `key` are structures that no data can tell apart.
    """

    name: str
    dag: Dag
    evidence: Evidence
    log_prior: float
    probability: float
    corrected_probability: float
    is_contending: bool = True
    key: Hashable = None

    @property
    def prior(self) -> float:
        """p(m)."""
        return math.exp(self.log_prior)


@dataclass(frozen=True)
class StructurePosterior:
    """p(m | y) ∝ p(m) p(y|m) over the candidates, by one score.

    `probability` uses log_z, `corrected_probability` uses log_z + ln S; where they disagree, the number of equivalent
    modes matters and a sampled evidence should decide. `duplicates` are groups of names of one model: structures that
    no data can tell apart (`lurking.graph.model_class`). The prior is over these classes, so a class counts once, and
    its members share its prior equally: Σ_k p(class)/K p(y|m_k) for K of them. `fitting` is how the candidates are
    fitted for predictions.
    """

    score: str
    candidates: tuple[Candidate, ...]
    duplicates: tuple[tuple[str, ...], ...] = ()
    fitting: Fitting | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_evidence(
        cls,
        score: str,
        names: Sequence[str],
        dags: Sequence[Dag],
        evidences: Sequence[Evidence],
        *,
        log_prior: Sequence[float] | None = None,
        contending: Sequence[bool] | None = None,
        within: float = WITHIN,
        fitting: Fitting | None = None,
        class_of: Callable[[Dag], Hashable] = model_class,
    ) -> StructurePosterior:
        """Normalise p(m) exp(log_z) over the candidates; `class_of` names the class of a structure.

        `log_prior` is ln p(m) up to a constant (uniform by default). Candidates that are not `contending` enter with
        their own value, but never closer than `within` nats to the best that does.
        """
        keys = [class_of(dag) for dag in dags]
        groups: dict[Hashable, list[str]] = {}
        for name, key in zip(names, keys, strict=True):
            groups.setdefault(key, []).append(name)
        given = np.zeros(len(names)) if log_prior is None else np.asarray(log_prior, np.float64)
        if len(names) and not np.isfinite(given).any():
            raise OptionError("every structure has prior probability 0; the function of structure_prior excludes all")
        shared = given - np.log([len(groups[key]) for key in keys])
        prior = shared - logsumexp(shared)
        stays = np.ones(len(names), bool) if contending is None else np.asarray(contending, bool)
        plain = np.asarray([evidence.log_z for evidence in evidences])
        corrected = np.asarray([evidence.corrected for evidence in evidences])
        first, second = (_normalised(_held(prior + values, stays, within)) for values in (plain, corrected))
        return cls(
            score,
            tuple(
                Candidate(name, dag, evidence, float(p), float(q), float(r), bool(s), key)
                for name, dag, evidence, p, q, r, s, key in zip(
                    names, dags, evidences, prior, first, second, stays, keys, strict=True
                )
            ),
            tuple(tuple(group) for group in groups.values() if len(group) > 1),
            fitting,
        )

    @property
    def best(self) -> Candidate:
        """The most probable candidate; the first of equals."""
        return self.ranked()[0]

    def ranked(self) -> list[Candidate]:
        """Return the candidates, most probable first, those that do not contend last; ties keep the order given."""
        return sorted(self.candidates, key=lambda c: (not c.is_contending, -(c.log_prior + c.evidence.log_z)))

    @property
    def probabilities(self) -> FloatArray:
        """(candidates,) p(m | y)."""
        return np.asarray([candidate.probability for candidate in self.candidates])

    @cached_property
    def ranges(self) -> FloatArray:
        """(candidates, 2) central 95.45 % ranges of p(m | y) when sampled values vary by their standard errors."""
        return self.probability_ranges(seed=0)

    def probability_ranges(self, *, seed: Seed = 0, draws: int = SIMULATIONS, coverage: float = COVERAGE) -> FloatArray:
        """Return (candidates, 2) central ranges of p(m | y), by simulation of the error of sampled values.

        Every log_z is drawn `draws` times from a normal distribution with its standard error (none: as it is),
        independently but for structures of one class with one value, which share it, and p(m | y) normalised each time.
        An error that is inf or nan, or that of a value that is not trusted, is not known, and leaves the probability
        anywhere between 0 and 1.
        """
        check_whole("draws", draws, 1)
        plain = self.probabilities
        errors = np.asarray([known_error(candidate.evidence) for candidate in self.candidates])
        if not errors.any():
            return read_only(np.column_stack([plain, plain]))
        normal = generators(seed, 1)[0].standard_normal((draws, len(errors)))
        first: dict[Hashable, int] = {}
        for k, candidate in enumerate(self.candidates):
            same = first.setdefault(model_class(candidate.dag), k)
            if self.candidates[same].evidence.log_z == candidate.evidence.log_z:
                normal[:, k] = normal[:, same]
        with np.errstate(divide="ignore"):
            values = np.log(plain) + normal * np.fmin(errors, LARGEST_ERROR)  # of nan and a number: the number
        drawn = np.exp(values - logsumexp(values, axis=1, keepdims=True))
        tail = (1.0 - coverage) / 2.0
        return read_only(np.quantile(drawn, [tail, 1.0 - tail], axis=0).T.copy())

    def bayes_factor(self, first: str, second: str) -> BayesFactor:
        """Return p(y | first) / p(y | second) of two candidates by name, with its standard error and in words."""
        return BayesFactor.between(first, self[first].evidence, second, self[second].evidence)

    def edge_probability(self, parent: str, child: str) -> float:
        """Return the probability that the structure has the edge parent → child, by the names the candidates use."""
        self._check_names(parent, child)
        return math.fsum(c.probability for c in self.candidates if (parent, child) in c.dag.edges)

    def edges(self) -> EdgePosterior:
        """Return the posterior probability of every edge; hidden variables are matched across structures.

        How they are matched, whatever they are called, says `lurking.search.hidden_matching.matched`.
        """
        dags = self.matched_structures
        # Hidden variables first, in the order in which the matching met them, then the observed ones.
        order = sorted(range(len(dags)), key=lambda k: -self.candidates[k].probability)
        hidden = dict.fromkeys(name for k in order for name in dags[k].hidden)
        variables = tuple(dict.fromkeys([*hidden, *(name for dag in dags for name in dag.observed)]))
        place = {name: k for k, name in enumerate(variables)}
        matrix = np.zeros((len(variables), len(variables)))
        for dag, candidate in zip(dags, self.candidates, strict=True):
            for parent, child in dag.edges:
                matrix[place[parent], place[child]] += candidate.probability
        return EdgePosterior(variables, read_only(np.minimum(matrix, 1.0)), "candidates")

    @cached_property
    def matched_structures(self) -> tuple[Dag, ...]:
        """The structures in the order of the candidates, hidden variables renamed so that equal names are one."""
        return tuple(matched([candidate.dag for candidate in self.candidates], self.probabilities))

    def hidden_parent_probability(self, child: str) -> float:
        """Return the probability that `child` has some hidden parent, whatever that one is called."""
        self._check_names(child)
        return math.fsum(
            c.probability
            for c in self.candidates
            if child in c.dag.nodes and any(name in c.dag.hidden for name in c.dag.parents(child))
        )

    def _check_names(self, *names: str) -> None:
        known = sorted({node for candidate in self.candidates for node in candidate.dag.nodes})
        for name in names:
            if name not in known:
                raise UnknownNameError("variable", name, known)

    def hidden_probabilities(self) -> dict[int, float]:
        """Return the distribution of the number of hidden variables that matter.

        These are the ones that have two states at least and an observed descendant; a variable with one state is the
        same in every row, and what lies behind it is not seen through it.
        """
        result: dict[int, float] = {}
        for candidate in self.candidates:
            count = len(without_idle_hidden(candidate.dag).hidden)
            result[count] = result.get(count, 0.0) + candidate.probability
        return dict(sorted(result.items()))

    def cardinality_probabilities(self) -> dict[str, dict[int, float]]:
        """Return {hidden variable: {states: probability}}; 0 states: the structure has no such variable.

        Hidden variables are matched across structures as in `edges`, and count where they have an observed descendant.
        """
        result: dict[str, dict[int, float]] = {}
        for dag, candidate in zip(self.matched_structures, self.candidates, strict=True):
            barren = set(dag.barren)
            for name, states in dag.hidden.items():
                if name not in barren:
                    own = result.setdefault(name, {})
                    own[states] = own.get(states, 0.0) + candidate.probability
        for name, own in result.items():
            pairs = zip(self.matched_structures, self.candidates, strict=True)
            absent = [c.probability for dag, c in pairs if name not in dag.hidden or name in dag.barren]
            if absent:
                own[0] = math.fsum(absent)
        return {name: dict(sorted(own.items())) for name, own in result.items()}

    def predict(self, data: Any, target: str, *, draws: int = 200, seed: Seed = 0) -> AveragedPrediction:
        """Return p(target | other cells, y) averaged over structures; see `Average.predict`."""
        return self.average.predict(data, target, draws=draws, seed=seed)

    def loglik(self, data: Any) -> FloatArray:
        """Return ln p(row | y) of every row, averaged over structures; see `Average.loglik`."""
        return self.average.loglik(data)

    def impute(self, data: Any) -> Imputation:
        """Fill every empty cell by its most probable state, averaged over structures; see `Average.impute`."""
        return self.average.impute(data)

    @cached_property
    def average(self) -> Average:
        """The fitted structures with their probabilities; those that hold less than a millionth are left out."""
        if self.fitting is None:
            raise OptionError(
                "this posterior was made from evidence alone and knows no data to fit; predictions need lk.compare(…)"
            )
        return self.fitting.average(
            [candidate.name for candidate in self.candidates],
            [candidate.dag for candidate in self.candidates],
            self.probabilities,
        )

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame, one row per candidate, most probable first."""
        best, place = self.best, {candidate.name: k for k, candidate in enumerate(self.candidates)}
        ranked = self.ranked()
        factors = [self.bayes_factor(candidate.name, best.name) for candidate in ranked]
        ranges = [self.ranges[place[candidate.name]] for candidate in ranked]
        return pandas_frame(
            {
                "model": [c.name for c in ranked],
                "log_z": [c.evidence.log_z for c in ranked],
                "std_error": [c.evidence.std_error for c in ranked],
                "kind": [c.evidence.kind.value for c in ranked],
                "contends": [c.is_contending for c in ranked],
                "prior": [c.prior for c in ranked],
                "probability": [c.probability for c in ranked],
                "probability_low": [float(low) for low, _ in ranges],
                "probability_high": [float(high) for _, high in ranges],
                "corrected_probability": [c.corrected_probability for c in ranked],
                "log_bayes_factor": [f.log_factor for f in factors],
                "evidence_for_best": [
                    "" if f.first == best.name else ("against: " if f.log_factor > 0.0 else "") + f.strength()
                    for f in factors
                ],
            }
        )

    @cached_property
    def _by_name(self) -> dict[str, Candidate]:
        return {candidate.name: candidate for candidate in self.candidates}

    def __getitem__(self, name: str) -> Candidate:
        if name not in self._by_name:
            raise UnknownNameError("model", name, list(self._by_name))
        return self._by_name[name]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)


def known_error(evidence: Evidence) -> float:
    """Return the standard error of a value: 0 if it is not sampled, inf if it is sampled and not trusted."""
    if not evidence.is_trusted:
        return math.inf
    return 0.0 if evidence.std_error is None else evidence.std_error


def _held(values: FloatArray, contending: np.ndarray, within: float) -> FloatArray:
    """Return ln p(m) + ln p(y|m), with those that do not contend at least `within` below the best that does."""
    if contending.all() or not contending.any():
        return values
    return np.where(contending, values, np.minimum(values, values[contending].max() - within))


def _normalised(values: FloatArray) -> FloatArray:
    # Logarithms of evidence are large, and the logarithm of their sum is rounded accordingly; shares are not.
    shares = np.exp(values - values.max(initial=-np.inf))
    return np.asarray(shares / shares.sum())
