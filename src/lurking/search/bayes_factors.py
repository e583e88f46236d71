"""Bayes factors between two structures, in numbers and in the usual words."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from lurking.errors import UnknownNameError
from lurking.evidence.base import Evidence, Kind

SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "kass-raftery": (
        (3.0, "not worth more than a bare mention"),
        (20.0, "positive"),
        (150.0, "strong"),
        (math.inf, "very strong"),
    ),
    "jeffreys": (
        (10.0**0.5, "not worth more than a bare mention"),
        (10.0, "substantial"),
        (10.0**1.5, "strong"),
        (100.0, "very strong"),
        (math.inf, "decisive"),
    ),
}
"""Upper ends of the classes of a Bayes factor: Kass & Raftery (1995, section 3.2), and Jeffreys (1961, appendix B)."""
UNKNOWN = "unknown"
"""The strength of a factor of values that are not trusted."""
UNBOUND = frozenset({Kind.EXACT, Kind.ESTIMATE})
BOUNDS = frozenset({Kind.LOWER_BOUND})
"""Kinds that may stand side by side: neither is low by construction."""


def are_mixed(kinds: Iterable[Kind]) -> bool:
    """Whether values of these kinds must not be ranked together: they differ, and one is off by construction."""
    different = set(kinds)
    return len(different) > 1 and not different <= UNBOUND


@dataclass(frozen=True)
class BayesFactor:
    """p(y | first) / p(y | second); the prior over structures takes no part.

    `std_error` is that of `log_factor`, √(s₁² + s₂²) of independent sampled values. It is None where neither is
    sampled, and where `is_trusted` is False: how far off the factor is, is not known then.
    """

    first: str
    second: str
    log_factor: float
    std_error: float | None
    kinds: tuple[Kind, Kind]
    is_settled: bool = True
    """False if the starts of one of the fits do not agree, so that better fits may change the factor."""
    is_trusted: bool = True
    """False if one of the values is not trusted."""

    @classmethod
    def between(cls, first: str, of_first: Evidence, second: str, of_second: Evidence) -> BayesFactor:
        """Return the factor of two named structures by their evidence."""
        errors = [evidence.std_error for evidence in (of_first, of_second) if evidence.std_error is not None]
        error = math.hypot(*errors) if errors and first != second else None
        is_settled = all(evidence.is_settled is not False for evidence in (of_first, of_second))
        is_trusted = first == second or (of_first.is_trusted and of_second.is_trusted)
        kinds = (of_first.kind, of_second.kind)
        log_factor = of_first.log_z - of_second.log_z
        return cls(first, second, log_factor, error if is_trusted else None, kinds, is_settled, is_trusted)

    @property
    def factor(self) -> float:
        """The factor itself; at most the largest float."""
        return math.exp(self.log_factor) if self.log_factor < 709.0 else sys.float_info.max

    @property
    def favours(self) -> str:
        """The structure with the higher evidence; the first of equals."""
        return self.first if self.log_factor >= 0.0 else self.second

    @property
    def is_mixed(self) -> bool:
        """Whether the two values differ in kind, so that the factor is off by the looseness of one of them."""
        return are_mixed(self.kinds)

    def strength(self, scale: str = "kass-raftery") -> str:
        """Return how strong the evidence for `favours` is, in the words of a scale.

        Where two standard errors reach over the end of a class, both words stand there; "unknown" where a value is
        not trusted.
        """
        if scale not in SCALES:
            raise UnknownNameError("scale of Bayes factors", scale, SCALES)
        if not self.is_trusted:
            return UNKNOWN
        size, reach = abs(self.log_factor), 2.0 * (self.std_error or 0.0)
        weakest, strongest = (_word(scale, max(0.0, value)) for value in (size - reach, size + reach))
        return weakest if weakest == strongest else f"{weakest} to {strongest}"

    @property
    def bound_in_words(self) -> str:
        """What a factor of a bound and an exact (or sampled) value is: "at least", "at most", or nothing."""
        first, second = (kind is Kind.LOWER_BOUND for kind in self.kinds)
        if first and self.kinds[1] in UNBOUND:
            return "at least "
        return "at most " if second and self.kinds[0] in UNBOUND else ""

    def __str__(self) -> str:
        error = "" if self.std_error is None else f" ± {self.std_error:.2g}"
        error = error if self.is_trusted else " ± ?"
        factor = f"{self.factor:.3g}" if self.log_factor < 709.0 else f"e^{self.log_factor:.0f}"
        doubt = " (the two values differ in kind)" if self.is_mixed else ""
        if set(self.kinds) <= BOUNDS:
            doubt += " (by lower bounds)"
        doubt += "" if self.is_settled else " (not settled: better fits may change it)"
        doubt += "" if self.is_trusted else " (not trusted: one of the values may be far off)"
        # The bound is on the factor: where it is below 1, the evidence for the other structure is bounded below.
        is_first = self.log_factor >= 0.0
        limits = {"at most ": "at most ", "at least ": ""} if is_first else {"at most ": "", "at least ": "at most "}
        limit = limits.get(self.bound_in_words, "")
        return (
            f"{self.first!r} against {self.second!r}: Bayes factor {self.bound_in_words}{factor} "
            f"(ln B = {self.log_factor:.2f}{error}); evidence for {self.favours!r}: {limit}{self.strength()}{doubt}"
        )


def _word(scale: str, log_factor: float) -> str:
    return next(word for end, word in SCALES[scale] if log_factor <= (math.log(end) if end < math.inf else math.inf))
