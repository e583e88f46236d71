"""Prior probabilities p(m) of structures, up to a constant that all structures share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lurking.errors import OptionError, UnknownNameError
from lurking.graph.dag import Dag
from lurking.graph.model_class import without_idle_hidden
from lurking.runtime.checks import is_positive

PRIORS = ("uniform", "edges", "edge-probability", "parameters", "hidden")
FORMS = (
    "'uniform', ('edges', 0.1), ('edge-probability', 0.2), ('parameters', 0.9), ('hidden', 0.1), or a function of a Dag"
)


@dataclass(frozen=True)
class StructurePrior:
    """ln p(m) of a structure with E edges, N nodes, H of them hidden, and d free parameters, up to a constant.

    All four are counted without hidden variables that have one state or no observed descendant: the evidence does not
    depend on these.
    uniform: 0. edges: E ln κ, a factor κ for every edge (Heckerman, Geiger & Chickering 1995 have κ per arc in which a
    structure differs from a given one; here that one is empty). edge-probability: E ln π + (N(N − 1)/2 − E) ln(1 − π),
    every pair of nodes joined with probability π independently of the others. parameters: d ln ρ. hidden: H ln κ, a
    factor κ for every hidden variable. function: what a user's function returns for the Dag as it was given; −inf
    excludes a structure.
    """

    name: str
    value: float = 1.0
    """κ, π or ρ."""
    function: Callable[[Dag], float] | None = None

    @classmethod
    def from_option(cls, given: StructurePriorOption) -> StructurePrior:
        """Return the prior that a name, a pair (name, number), or a function of a Dag stands for."""
        if isinstance(given, StructurePrior):
            return given
        if callable(given):
            return cls("function", function=given)
        if isinstance(given, str):
            name, numbers = given, []
        elif isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str):
            name, numbers = given[0], [given[1]]
        else:
            raise OptionError(f"structure_prior is {given!r}; it must be {FORMS}")
        if name not in PRIORS:
            raise UnknownNameError("structure prior", name, PRIORS)
        if (name == "uniform") != (not numbers):
            raise OptionError(f"structure_prior is {given!r}; it must be {FORMS}")
        return cls(name) if name == "uniform" else cls(name, _checked(name, numbers[0]))

    @classmethod
    def parse(cls, text: str) -> StructurePrior:
        """Read ``uniform`` or ``NAME:NUMBER``, such as ``edges:0.1``."""
        name, colon, number = text.strip().partition(":")
        name = name.strip().lower()
        if not colon:
            if name in PRIORS[1:]:
                raise OptionError(f"the structure prior {text!r} needs a number; write {name}:0.1")
            return cls.from_option(name)
        try:
            return cls.from_option((name, float(number)))
        except ValueError:
            raise OptionError(f"the structure prior {text!r} has no number behind the colon; write edges:0.1") from None

    def log_weight(self, dag: Dag, dimension: int) -> float:
        """Return ln p(m) up to a constant; `dimension` is d of the pruned structure, which no structure alone knows."""
        if self.function is not None:
            return _finite_or_excluded(self.function(dag), dag)
        counted = without_idle_hidden(dag)
        edges, nodes = len(counted.edges), len(counted.nodes)
        if self.name == "edges":
            return edges * math.log(self.value)
        if self.name == "edge-probability":
            return edges * math.log(self.value) + (nodes * (nodes - 1) // 2 - edges) * math.log1p(-self.value)
        if self.name == "parameters":
            return dimension * math.log(self.value)
        if self.name == "hidden":
            return len(counted.hidden) * math.log(self.value)
        return 0.0

    def __str__(self) -> str:
        if self.name == "function":
            return getattr(self.function, "__name__", "function")
        return self.name if self.name == "uniform" else f"{self.name}:{self.value:g}"


UNIFORM = StructurePrior("uniform")
StructurePriorOption: TypeAlias = StructurePrior | str | tuple[str, float] | Callable[[Dag], float]
"""What `structure_prior=` takes."""


def _checked(name: str, value: object) -> float:
    if not is_positive(value):
        raise OptionError(f"the structure prior {name!r} has the value {value!r}; it must be a number above 0")
    if name == "edge-probability" and value >= 1.0:
        raise OptionError(f"the structure prior {name!r} has the value {value!r}; a probability must lie below 1")
    return float(value)


def _finite_or_excluded(value: object, dag: Dag) -> float:
    """Return what a user's function gave, a number or −inf."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number) or number == math.inf:
        raise OptionError(
            f"the function of structure_prior returned {value!r} for {str(dag)!r}; it must return ln p(m), "
            "a number or -inf"
        )
    return number
