"""Dirichlet pseudo-counts for every family of a discrete network."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lurking.errors import OptionError, PriorError
from lurking.models.layout import Layout
from lurking.types import FloatArray, JointDistribution, Level


def _positive(value: object, name: str) -> float:
    """Return `value` as a float, or refuse it with the rule it breaks."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise PriorError(f"{name} is {value!r}; it must be a positive finite number, for example 1.0")
    number = float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise PriorError(f"{name} is {value!r}; it must be a positive finite number, for example 1.0")
    return number


class Prior(ABC):
    """Pseudo-counts λ_jlk of independent Dirichlet distributions over every row of every table.

    A prior is a rule; `pseudo_counts(layout)` turns it into numbers for one structure, so one prior serves all
    candidate structures.
    """

    is_exchangeable: bool = False
    """Whether λ is constant within every family and equal for families of equal shape, so that it never tells hidden
    variables or their states apart."""

    @abstractmethod
    def pseudo_counts(self, layout: Layout, levels: Mapping[str, Sequence[Level]]) -> FloatArray:
        """Return λ as a flat vector, (P,), every entry positive and finite."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return a JSON-ready description of the rule."""

    @staticmethod
    def symmetric(pseudo_count: float = 1.0) -> Prior:
        """Return the same λ for every entry; 1 is the uniform density over probabilities."""
        return SymmetricPrior(_positive(pseudo_count, "the pseudo-count λ"))

    @staticmethod
    def bdeu(equivalent_sample_size: float = 1.0) -> Prior:
        """λ_jlk = ess / (r_j · number of parent configurations): equal scores for equivalent structures."""
        return BDeuPrior(_positive(equivalent_sample_size, "the equivalent sample size"))

    @staticmethod
    def jeffreys() -> Prior:
        """λ = ½ for every entry: Jeffreys' prior of each row of a table."""
        return SymmetricPrior(0.5, "jeffreys")

    @staticmethod
    def from_network(network: JointDistribution, equivalent_sample_size: float) -> Prior:
        """λ_jlk = ess · p(z_j = k, pa_j = l) under `network`."""
        return NetworkPrior(network, _positive(equivalent_sample_size, "the equivalent sample size"))

    @staticmethod
    def from_counts(tables: Mapping[str, Any]) -> Prior:
        """Explicit pseudo-counts {node: array[l, k]}."""
        return CountsPrior({name: np.array(table) for name, table in tables.items()})

    @staticmethod
    def of(value: Prior | float) -> Prior:
        """Pass a prior through; read a number as `Prior.symmetric`."""
        return value if isinstance(value, Prior) else Prior.symmetric(value)


@dataclass(frozen=True)
class SymmetricPrior(Prior):
    """One λ for every entry."""

    pseudo_count: float
    name: str = "symmetric"
    is_exchangeable = True

    def pseudo_counts(self, layout: Layout, levels: Mapping[str, Sequence[Level]]) -> FloatArray:  # noqa: ARG002
        """Return the constant vector."""
        return np.full(layout.size, self.pseudo_count)

    def describe(self) -> dict[str, Any]:
        """Return the rule and its λ."""
        return {"kind": self.name, "pseudo_count": self.pseudo_count}


@dataclass(frozen=True)
class BDeuPrior(Prior):
    """Likelihood-equivalent uniform prior."""

    equivalent_sample_size: float
    is_exchangeable = True

    def pseudo_counts(self, layout: Layout, levels: Mapping[str, Sequence[Level]]) -> FloatArray:  # noqa: ARG002
        """Return ess divided by the size of each family's table."""
        values = [pseudo_count_of(self, r, q) for r, q in zip(layout.cardinalities, layout.configurations, strict=True)]
        return np.repeat(values, [count * width for count, width in layout.shapes])

    def describe(self) -> dict[str, Any]:
        """Return the rule and its equivalent sample size."""
        return {"kind": "bdeu", "equivalent_sample_size": self.equivalent_sample_size}


@dataclass(frozen=True)
class NetworkPrior(Prior):
    """Pseudo-counts proportional to the joint probabilities of a known network."""

    network: JointDistribution
    equivalent_sample_size: float

    def pseudo_counts(self, layout: Layout, levels: Mapping[str, Sequence[Level]]) -> FloatArray:
        """Return ess · p(family) for each family; an impossible state has no pseudo-count and is refused."""
        tables = {}
        for name in layout.nodes:
            if name in layout.families:
                raise PriorError(
                    f"the network behind the prior has a table for {name!r}, which is a {layout.families[name].name} "
                    "node here; use Prior.symmetric or Prior.bdeu"
                )
            scope = (*layout.dag.parents(name), name)
            for variable in scope:
                known = self.network.levels_of(variable)
                if tuple(known) != tuple(levels[variable]):
                    raise PriorError(
                        f"the network behind the prior has states {list(known)} for {variable!r}, "
                        f"the data have {list(levels[variable])}; they must be equal and in the same order"
                    )
            joint = self.network.joint(scope)
            tables[name] = self.equivalent_sample_size * joint.reshape(-1, joint.shape[-1])
            if not np.all(tables[name] > 0.0):
                raise PriorError(
                    f"the network behind the prior gives probability 0 to some state of the family of {name!r}; "
                    "a pseudo-count must be positive, smooth the network first"
                )
        return layout.join(tables, "pseudo-counts")

    def describe(self) -> dict[str, Any]:
        """Return the rule and its equivalent sample size."""
        return {"kind": "network", "equivalent_sample_size": self.equivalent_sample_size}


@dataclass(frozen=True)
class CountsPrior(Prior):
    """Pseudo-counts given one by one."""

    tables: dict[str, Any] = field(hash=False)

    def pseudo_counts(self, layout: Layout, levels: Mapping[str, Sequence[Level]]) -> FloatArray:  # noqa: ARG002
        """Return the given tables (those of nodes pruned away are left out) after checking every entry."""
        wanted = {name: table for name, table in self.tables.items() if name in layout.index}
        flat = layout.join(wanted, "pseudo-counts")
        bad = np.flatnonzero(~np.isfinite(flat) | (layout.table_positions() & ~(flat > 0.0)))
        if bad.size:
            name = layout.nodes[int(np.searchsorted(layout.offsets, bad[0], side="right")) - 1]
            raise PriorError(
                f"pseudo-counts of {name!r} contain {flat[bad[0]]!r}; every entry must be positive and finite"
            )
        return flat

    def describe(self) -> dict[str, Any]:
        """Return the rule and its tables."""
        return {"kind": "counts", "tables": {name: np.asarray(table).tolist() for name, table in self.tables.items()}}


def natural_hyperparameters(prior: Prior, layout: Layout, levels: Mapping[str, Sequence[Level]]) -> FloatArray:
    """Return λ of all families, (P,): the prior's pseudo-counts of tables, and each other family's own prior.

    Explicit hyperparameters (`Prior.from_counts`) give those of every node.
    """
    flat = prior.pseudo_counts(layout, levels)
    for name, family in layout.families.items():
        rows = layout.table(flat, name)
        if not isinstance(prior, CountsPrior):
            rows[:] = family.prior(len(rows)).reshape(rows.shape)
        with np.errstate(all="ignore"):
            constant = family.block(len(rows)).log_normaliser(rows.ravel())
        if not math.isfinite(constant):
            raise PriorError(
                f"the hyperparameters of {name!r} are not those of a proper prior of a {family.name} node; see "
                "the page on counts and logistic nodes for what they must be"
            )
    return flat


def pseudo_count_of(prior: SymmetricPrior | BDeuPrior, states: int, configurations: float) -> float:
    """Return λ of every entry of a table with `configurations` rows of `states` entries."""
    if isinstance(prior, BDeuPrior):
        return prior.equivalent_sample_size / (configurations * states)
    return float(prior.pseudo_count)


def prior_of_every_structure(prior: Prior | float, what: str = "a search") -> SymmetricPrior | BDeuPrior:
    """Return a prior that fits every structure, a number being λ of `Prior.symmetric`; `what` needs it."""
    made = Prior.of(prior)
    if not isinstance(made, SymmetricPrior | BDeuPrior):
        raise OptionError(
            f"prior is {made.describe()['kind']!r}; {what} needs one that fits every structure: "
            "Prior.symmetric(1.0), Prior.jeffreys() or Prior.bdeu(1.0)"
        )
    return made
