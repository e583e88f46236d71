"""Columns with fewer than two observed levels: a search leaves them out and puts them back as isolated nodes.

A column with one level has probability 1 in every row whatever its parents are, and as a parent it tells no two rows
apart. So arcs at it change no evidence: a climb wanders among them for nothing, and a hidden variable counts neighbours
that it explains nothing of. The cells of an empty column sum to 1 in the same way.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from lurking.data.messages import listed
from lurking.data.table import Table
from lurking.errors import LurkingWarning
from lurking.evidence.base import Evidence
from lurking.graph.dag import Dag, as_dag
from lurking.graph.structure_priors import StructurePrior
from lurking.kernels.reference.special import table_evidence
from lurking.models.layout import free_parameters
from lurking.models.prior import BDeuPrior, SymmetricPrior, pseudo_count_of
from lurking.search.constraints import Constraints
from lurking.search.contenders import Invented, Trial
from lurking.search.greedy import Searched
from lurking.types import FloatArray

WORDS: Final = ("empty", "tree")
"""Starts that are no structures."""


def silent_columns(table: Table, *, declared: bool) -> tuple[str, ...]:
    """Return the columns with fewer than two levels in rows that count; with `declared` unseen levels count as well.

    An unseen level is a cell of the table that a prior thinks of: by BDeu it makes λ smaller wherever the column is a
    parent. With the same λ for every cell and by BIC, a column with one observed level is best left alone all the same:
    as a parent it changes nothing or costs a penalty, and E[θⁿ] ≥ Π E[θ^nₗ] for rows that its parents divide.
    """
    result = []
    for name, column in ((name, table[name]) for name in table.columns if table[name].is_categorical):
        codes = column.codes[(column.codes >= 0) & (table.weights > 0.0)]
        if not codes.size or column.cardinality < 2 or (not declared and codes.min() == codes.max()):
            result.append(name)
    return tuple(result)


def in_words(names: Sequence[str], table: Table) -> str:
    """Return such as "column 'Land' has one level", for one column or several."""
    if len(names) > 1:
        return f"columns {listed(names)} have one level each at most"
    column = table[names[0]]
    return f"column {names[0]!r} has {'no observed cell' if column.n_missing == len(column) else 'one level'}"


@dataclass(frozen=True)
class SetAside:
    """A table, its rules, and the columns without a say in the structure, none of which is in a required arc.

    `table` and `constraints` are those of the search; the other methods put what it finds back among all columns.
    """

    whole: Table
    rules: Constraints
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, rules: Constraints, *, declared: bool) -> SetAside:
        """Set aside what has no say, with a warning; a column with a required arc stays, and one column at least."""
        bound = np.any(rules.required | rules.required.T, axis=0)
        free = {name for name, is_bound in zip(rules.variables, bound, strict=True) if not is_bound}
        names = tuple(name for name in silent_columns(table, declared=declared) if name in free)
        if names:
            stays = "it stays alone" if len(names) == 1 else "they stay alone"
            text = f"{in_words(names, table)} and no say in the structure; {stays}"
            warnings.warn(text, LurkingWarning, stacklevel=3)
        return cls(table, rules, names if len(names) < len(table.columns) else names[1:])

    @cached_property
    def table(self) -> Table:
        """The columns that have a say."""
        return self.whole.drop(self.names) if self.names else self.whole

    @cached_property
    def constraints(self) -> Constraints:
        """The rules that concern them."""
        return self.rules.restricted(self.table.columns) if self.names else self.rules

    def start(self, start: Dag | str | None) -> Dag | str | None:
        """Return a start of the search without the columns that are set aside and without their arcs."""
        if not self.names or start is None or start in WORDS:
            return start
        given = as_dag(start, "start").bind(self.whole.columns)
        nodes = dict.fromkeys((*self.table.columns, *given.nodes))
        left_out = set(self.names) - set(given.hidden)
        return Dag(
            [name for name in nodes if name not in left_out],
            [pair for pair in given.edges if left_out.isdisjoint(pair)],
            given.hidden,
        )

    def structure(self, dag: Dag) -> Dag:
        """Return a structure with the other columns as isolated nodes."""
        return Dag((*self.whole.columns, *dag.hidden), dag.edges, dag.hidden) if self.names else dag

    def structure_prior(self, prior: StructurePrior | None) -> StructurePrior | None:
        """Return the prior for structures without the other columns, where it depends on these."""
        if not self.names or prior is None or prior.name not in ("edge-probability", "function"):
            return prior
        return StructurePrior("function", function=lambda dag: prior.log_weight(self.structure(dag), 0))

    def log_evidence(self, prior: SymmetricPrior | BDeuPrior | None) -> float:
        """Return ln p(cells of the columns set aside), each alone; 0 but for levels that were declared and not seen.

        With n cells that are all of one of r levels this is ln Π_{i<n} (λ + i) / (rλ + i), by BIC (no prior)
        −(r − 1)/2 · ln N over all N rows.
        """
        total = 0.0
        for column in map(self.whole.__getitem__, self.names):
            states, n = column.cardinality, float(self.whole.weights[column.codes >= 0].sum())
            if prior is None:
                total -= 0.5 * free_parameters(states, 1) * math.log(self.whole.n) if states > 1 else 0.0
                continue
            total += float(table_evidence(pseudo_count_of(prior, states, 1.0), n * np.eye(1, states)))
        return total

    def searched(self, found: Searched, prior: SymmetricPrior | BDeuPrior | None) -> Searched:
        """Return the outcome of a search on complete columns with all columns in it."""
        if not self.names:
            return found
        share = self.log_evidence(prior)
        history = tuple(replace(step, score=step.score + share) for step in found.history)
        return replace(found, best=self.structure(found.best), score=found.score + share, history=history)

    def invented(self, found: Invented, prior: SymmetricPrior | BDeuPrior, given: StructurePrior | None) -> Invented:
        """Return the outcome of a search with hidden variables or empty cells with all columns in it."""
        if not self.names:
            return found
        share = self.log_evidence(prior)

        def whole(evidence: Evidence) -> Evidence:
            return replace(evidence, log_z=evidence.log_z + share) if share else evidence

        candidates = tuple(
            replace(each, dag=self.structure(each.dag), evidence=whole(each.evidence)) for each in found.posterior
        )

        def trial(each: Trial) -> Trial:
            outdone = each.outdone_by
            if outdone is not None:
                by = replace(outdone.by, dag=self.structure(outdone.by.dag))
                rival = replace(outdone.rival, dag=self.structure(outdone.rival.dag))
                outdone = replace(outdone, by=by, rival=rival, log_z=outdone.log_z + share)
            return replace(each, dag=self.structure(each.dag), evidence=whole(each.evidence), outdone_by=outdone)

        return replace(
            found,
            best=self.structure(found.best),
            evidence=whole(found.evidence),
            posterior=replace(found.posterior, candidates=candidates),
            history=tuple(trial(each) for each in found.history),
            structure_prior=given or found.structure_prior,
        )

    def matrix(self, found: FloatArray) -> FloatArray:
        """Return (p, p) probabilities of arcs among all columns, 0 at those set aside."""
        place = [self.whole.columns.index(name) for name in self.table.columns]
        result = np.zeros((len(self.whole.columns),) * 2)
        result[np.ix_(place, place)] = found
        return result
