"""Several structures on the same rows: scores, posterior probabilities, notes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lurking.data.frames import pandas_frame
from lurking.errors import (
    UnknownNameError,
)
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag
from lurking.graph.model_class import model_class, without_idle_hidden
from lurking.graph.structure_priors import UNIFORM, StructurePrior
from lurking.search.averaging import Fitting
from lurking.search.posterior import WITHIN, StructurePosterior
from lurking.search.rescoring import SAMPLED
from lurking.search.scoring import Row
from lurking.types import Frame


@dataclass(frozen=True)
class Comparison:
    """Outcome of `compare`: `comparison["vb"]` is the posterior over the models by that score.

    `comparison["sampled"]`, where contenders were scored again, has their sampled evidence, and the first score of the
    others; `posterior` is the one that ranks: that, or the first score's. `warnings` says what must not be overlooked:
    values of different kinds in one column, models that cannot be told apart, parameters that are not identified,
    climbs that did not converge. `interrupted` is True when the user stopped it; the models finished by then are here.
    """

    rows: tuple[Row, ...]
    scores: tuple[str, ...]
    warnings: tuple[str, ...]
    interrupted: bool = False
    structure_prior: StructurePrior = UNIFORM
    sampled: Mapping[str, Evidence] = field(default_factory=dict)
    within: float = WITHIN
    fitting: Fitting | None = field(default=None, repr=False, compare=False)
    are_tables: bool = True

    def class_of(self, dag: Dag) -> Hashable:
        """Return the class of structures that no data can tell apart.

        Markov equivalent structures are one class if all nodes have tables; with other families a turned edge changes
        the distributions that a structure can have, so only renamed hidden variables and idle ones are looked past.
        """
        return model_class(dag) if self.are_tables else without_idle_hidden(dag).canonical()

    def __getitem__(self, score: str) -> StructurePosterior:
        columns = (*self.scores, SAMPLED) if self.sampled else self.scores
        if score not in columns:
            raise UnknownNameError("score", score, columns)
        is_sampled = score == SAMPLED
        cheap = self.scores[0] if is_sampled else score
        evidences = [row.evidences[cheap] for row in self.rows]
        if is_sampled:
            evidences = [self.sampled.get(row.name, own) for row, own in zip(self.rows, evidences, strict=True)]
        return StructurePosterior.from_evidence(
            score,
            [row.name for row in self.rows],
            [row.dag for row in self.rows],
            evidences,
            log_prior=[_log_weight(self.structure_prior, row) for row in self.rows],
            contending=[row.name in self.sampled for row in self.rows] if is_sampled else None,
            within=self.within,
            fitting=self.fitting,
            class_of=self.class_of,
        )

    @cached_property
    def posterior(self) -> StructurePosterior:
        """The posterior that ranks the models: by sampled evidence where there is any, else by the first score."""
        return self[SAMPLED if self.sampled else self.scores[0]]

    @property
    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of names that are one model: structures that no data can tell apart."""
        return self.posterior.duplicates

    @cached_property
    def has_equal_priors(self) -> bool:
        """Whether all models have the same prior probability."""
        priors = [candidate.log_prior for candidate in self.posterior]
        return not priors or max(priors) - min(priors) < 1e-12

    @cached_property
    def unsettled(self) -> tuple[str, ...]:
        """Models within `within` nats of the best whose starts do not agree: better fits may raise their values."""
        ranked = self.posterior.ranked()
        rows = {row.name: row for row in self.rows}
        mark = max((c.log_prior + c.evidence.log_z for c in ranked), default=0.0) - self.within
        near = [c.name for c in ranked if c.log_prior + c.evidence.log_z >= mark]
        return tuple(name for name in near if not rows[name].is_settled)

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        rows = {row.name: row for row in self.rows}
        has_effective = any(row.is_deficient for row in self.rows)
        more = "  effective" if has_effective else ""
        prior = "" if self.has_equal_priors else f"  {'prior':>9}"
        columns = (SAMPLED, *self.scores) if self.sampled else self.scores
        header = f"{'model':{width}}  {'d':>5}{more}{prior}  {'p(model)':>9}  "
        starts = "  starts at best" if self.unsettled else ""
        lines = [header + "  ".join(f"{name:>14}" for name in columns) + starts]
        for candidate in self.posterior.ranked():
            row = rows[candidate.name]
            cells = [_with_error(row.evidences[name]) for name in self.scores]
            if self.sampled:
                cells.insert(0, _with_error(candidate.evidence) if candidate.is_contending else "-")
            more = f"  {row.effective_in_words:>9}" if has_effective else ""
            prior = "" if self.has_equal_priors else f"  {candidate.prior:9.3g}"
            values = "  ".join(f"{cell:>14}" for cell in cells) + (f"  {row.starts_in_words}" if starts else "")
            lines.append(f"{row.name:{width}}  {row.dimension:5}{more}{prior}  {candidate.probability:9.3g}  {values}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.warnings)])

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame, one row per model: each score with error and status, corrected, probabilities."""
        columns: dict[str, list[Any]] = {
            "model": [row.name for row in self.rows],
            "structure": [str(row.dag) for row in self.rows],
            "d": [row.dimension for row in self.rows],
            "d_effective": [row.effective_dimension for row in self.rows],
            "prior": [candidate.prior for candidate in self.posterior],
        }
        for score in (*self.scores, SAMPLED) if self.sampled else self.scores:
            posterior = self[score]
            best = posterior.best
            columns[score] = [c.evidence.log_z for c in posterior]
            columns[f"{score}_corrected"] = [c.evidence.corrected for c in posterior]
            columns[f"{score}_std_error"] = [c.evidence.std_error for c in posterior]
            columns[f"{score}_status"] = [c.evidence.status.name for c in posterior]
            columns[f"{score}_kind"] = [c.evidence.kind.value for c in posterior]
            columns[f"{score}_settled"] = [
                None if (s := c.evidence.starts) is None else s.is_settled for c in posterior
            ]
            columns[f"{score}_probability"] = [c.probability for c in posterior]
            columns[f"{score}_corrected_probability"] = [c.corrected_probability for c in posterior]
            columns[f"{score}_log_bayes_factor"] = [c.evidence.log_z - best.evidence.log_z for c in posterior]
        if self.sampled:
            columns["contends"] = [c.is_contending for c in self.posterior]
        if any(candidate.evidence.nominal_error is not None for candidate in self.posterior):
            columns["probability_low"] = self.posterior.ranges[:, 0].tolist()
            columns["probability_high"] = self.posterior.ranges[:, 1].tolist()
        return pandas_frame(columns)


def _log_weight(prior: StructurePrior, row: Row) -> float:
    """Return ln p(m) up to a constant."""
    return prior.log_weight(row.dag, row.pruned_dimension)


def _with_error(evidence: Evidence) -> str:
    """Return the value, with its standard error where it has one."""
    return f"{evidence.log_z:.3f}" if evidence.nominal_error is None else evidence.with_error(2)
