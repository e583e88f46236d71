"""Structures with evidence, prior and posterior probability."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from lurking.errors import UnknownNameError
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.types import FloatArray


@dataclass(frozen=True)
class Candidate:
    """One structure with its evidence and probabilities (uniform prior over the list unless said otherwise)."""

    name: str
    dag: Dag
    evidence: Evidence
    prior: float
    probability: float
    corrected_probability: float


@dataclass(frozen=True)
class StructurePosterior:
    """p(m | y) ∝ p(m) p(y|m) over the candidates, by one score.

    `probability` uses log_z, `corrected_probability` uses log_z + ln S; where they disagree, the number of equivalent
    modes matters and a sampled evidence should decide.
    """

    score: str
    candidates: tuple[Candidate, ...]

    @classmethod
    def from_evidence(
        cls, score: str, names: list[str], dags: list[Dag], evidences: list[Evidence]
    ) -> StructurePosterior:
        """Normalise exp(log_z) over the candidates with a uniform prior."""
        count = len(names)
        plain = _normalised(np.asarray([evidence.log_z for evidence in evidences]))
        corrected = _normalised(np.asarray([evidence.corrected for evidence in evidences]))
        return cls(
            score,
            tuple(
                Candidate(name, dag, evidence, 1.0 / count, float(p), float(q))
                for name, dag, evidence, p, q in zip(names, dags, evidences, plain, corrected, strict=True)
            ),
        )

    @property
    def best(self) -> Candidate:
        """The most probable candidate; the first of equals."""
        return max(self.candidates, key=lambda candidate: candidate.evidence.log_z)

    def ranked(self) -> list[Candidate]:
        """Return the candidates, most probable first; ties keep the order given."""
        return sorted(self.candidates, key=lambda candidate: -candidate.evidence.log_z)

    def edge_probability(self, parent: str, child: str) -> float:
        """Return the probability that the structure has the edge parent → child."""
        self._check_names(parent, child)
        return math.fsum(c.probability for c in self.candidates if (parent, child) in c.dag.edges)

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
        """Return the distribution of the number of hidden variables that matter (those with observed descendants)."""
        result: dict[int, float] = {}
        for candidate in self.candidates:
            count = len(candidate.dag.hidden) - len(candidate.dag.barren)
            result[count] = result.get(count, 0.0) + candidate.probability
        return dict(sorted(result.items()))

    def __getitem__(self, name: str) -> Candidate:
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        raise UnknownNameError("model", name, [candidate.name for candidate in self.candidates])

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)


def _normalised(values: FloatArray) -> FloatArray:
    return np.asarray(np.exp(values - logsumexp(values)))
