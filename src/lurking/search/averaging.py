"""Predictions averaged over structures, parameters integrated out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from lurking.data.frames import pandas_frame
from lurking.data.table import Table
from lurking.errors import UnknownNameError
from lurking.graph.dag import Dag
from lurking.inference.network import Imputation, Network
from lurking.inference.predictive import RowQuestions, coded_rows
from lurking.inference.problem import Problem
from lurking.learn.fit import fit_problem
from lurking.learn.options import FitOptions
from lurking.runtime.checks import check_whole
from lurking.runtime.executor import map_in_order
from lurking.runtime.rng import Seed, generators
from lurking.types import FloatArray, Frame, Level, read_only

LEFT_OUT = 1e-6
"""Probability that structures may hold together to be left out of an average."""


@dataclass(frozen=True, eq=False)
class AveragedPrediction:
    """p(target | other cells of the row, y) for every row, averaged over structures.

    Attributes
    ----------
    probabilities : (rows, states) Σ_m p(m | y, row) p(target | row, y, m).
    between : (rows, states) standard deviation of p(target | row, y, m) over the structures.
    within : (rows, states) standard deviation that the parameters leave within a structure, the root of the mean
        variance; None when no draws were asked for. within² + between² is the whole variance.
    structures : names of the structures, and `weights` (structures, rows), p(m | y, row).
    by_structure : (structures, rows, states) the prediction of each.
    """

    target: str
    levels: tuple[Level, ...]
    probabilities: FloatArray
    between: FloatArray
    within: FloatArray | None
    structures: tuple[str, ...]
    weights: FloatArray = field(repr=False)
    by_structure: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        for array in (self.probabilities, self.between, self.within, self.weights, self.by_structure):
            if array is not None:
                read_only(array)

    @cached_property
    def labels(self) -> list[Level]:
        """The most probable state of each row; the first of equals."""
        return [self.levels[k] for k in self.probabilities.argmax(axis=1)]

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame: the most probable state, then probability and spreads of each state."""
        columns: dict[str, Any] = {self.target: np.asarray(self.labels, dtype=object)}
        for k, level in enumerate(self.levels):
            columns[f"p({self.target}={level})"] = self.probabilities[:, k]
            columns[f"between({self.target}={level})"] = self.between[:, k]
            if self.within is not None:
                columns[f"within({self.target}={level})"] = self.within[:, k]
        return pandas_frame(columns)


@dataclass(frozen=True, eq=False)
class Average:
    """Fitted structures with their posterior probabilities.

    p(x | y) = Σ_m p(m | y) p(x | y, m) for a new row x. Within a structure p(x | y, m) = ∫ p(x | θ) q(θ) dθ under the
    variational posterior q(θ) = Π Dir(α). No completion of x uses a family twice, so that p(x | θ) is linear in every
    row of every table and the integral is p(x | θ̄) with θ̄ = α / Σ α. For complete data without hidden variables q is
    the posterior itself, and all of this is exact; with hidden variables it is as good as q. (Tied families are used
    twice; for them p(x | θ̄) is the prediction at the posterior mean.)

    Attributes
    ----------
    names, networks : the structures, equal ones once, the most probable first.
    probabilities : (structures,) p(m | y), normalised over them.
    left_out : probability of the structures that are not here.
    """

    names: tuple[str, ...]
    networks: tuple[Network, ...] = field(repr=False)
    probabilities: FloatArray
    left_out: float

    def loglik(self, data: Any) -> FloatArray:
        """Return ln p(row | y) = ln Σ_m p(m | y) p(row | y, m), each row as the only new one, (rows,)."""
        values = np.stack([network.loglik(data) for network in self.networks])
        return np.asarray(logsumexp(values + np.log(self.probabilities)[:, None], axis=0))

    def predict(self, data: Any, target: str, *, draws: int = 200, seed: Seed = 0) -> AveragedPrediction:
        """Return p(target | the other cells, y) of each row; the target's own column, if any, is not looked at.

        This is the ratio of averages p(target, cells | y) / p(cells | y), so the structures have the probabilities
        p(m | y, cells) ∝ p(m | y) p(cells | y, m). `draws` of the parameters of each structure, from `seed`, measure
        the spread within structures; draws=0 leaves it out.
        """
        check_whole("draws", draws, 0)
        self._check_target(target)
        weights, predictions, variances = [], [], []
        for network, generator in zip(self.networks, generators(seed, len(self.networks)), strict=True):
            rows = RowQuestions.compiled(network, data, target)
            weights.append(rows.log_probability(rows.mean)[rows.inverse])
            predictions.append(rows.marginals(rows.mean)[rows.inverse])
            if draws:
                variances.append(rows.variance(draws, generator)[rows.inverse])
        posterior = self._given_rows(np.stack(weights))
        by_structure = np.stack(predictions)
        averaged = np.einsum("mi,mik->ik", posterior, by_structure)
        between = np.einsum("mi,mik->ik", posterior, (by_structure - averaged) ** 2)
        within = np.sqrt(np.einsum("mi,mik->ik", posterior, np.stack(variances))) if draws else None
        levels = self.networks[0].levels_of(target)
        return AveragedPrediction(
            target, levels, averaged, np.sqrt(between), within, self.names, posterior, by_structure
        )

    def impute(self, data: Any) -> Imputation:
        """Fill every empty cell with its most probable state given the rest of its row, as averaged in `predict`."""
        network = self.networks[0]

        def averaged(rows: Table, name: str) -> FloatArray:
            return self.predict(rows, name, draws=0).probabilities

        return Imputation.of(coded_rows(network, data), network.dag.observed, averaged)

    def _given_rows(self, log_probabilities: FloatArray) -> FloatArray:
        """Return p(m | y, known cells of the row), (structures, rows), from ln p(known cells | y, m)."""
        values = log_probabilities + np.log(self.probabilities)[:, None]
        return np.asarray(np.exp(values - logsumexp(values, axis=0, keepdims=True)))

    def _check_target(self, target: str) -> None:
        observed = self.networks[0].dag.observed
        if target not in observed:
            raise UnknownNameError("observed variable", target, observed)


@dataclass(frozen=True, eq=False)
class Fitting:
    """How the structures of a comparison are fitted again for predictions: as for the score `vb`."""

    table: Table = field(repr=False)
    of_problem: Mapping[str, Any]
    options: FitOptions
    workers: int | None

    def average(self, names: Sequence[str], dags: Sequence[Dag], probabilities: FloatArray) -> Average:
        """Fit the most probable structures, equal ones once, until all but a millionth of the probability is there."""
        merged: dict[Dag, tuple[str, Dag, float]] = {}
        for name, dag, probability in zip(names, dags, probabilities, strict=True):
            first, own, sum_so_far = merged.get(dag.canonical(), (name, dag, 0.0))
            merged[dag.canonical()] = (first, own, sum_so_far + float(probability))
        ordered = sorted(merged.values(), key=lambda entry: -entry[2])
        mass = np.cumsum([probability for _, _, probability in ordered])
        count = min(len(ordered), 1 + int(np.searchsorted(mass, 1.0 - LEFT_OUT)))
        kept = ordered[:count]
        networks = map_in_order(self._network, [dag for _, dag, _ in kept], workers=self.workers)
        weights = np.asarray([probability for _, _, probability in kept])
        return Average(
            tuple(name for name, _, _ in kept),
            tuple(networks),
            read_only(weights / weights.sum()),
            max(0.0, 1.0 - float(weights.sum())),
        )

    def _network(self, dag: Dag) -> Network:
        return fit_problem(Problem(dag, self.table, **self.of_problem), "vb", self.options.at_rest).network
