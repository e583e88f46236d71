"""What the curves say: which number of states each score selects, and how alike the curves are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Final

import numpy as np

from lurking.experiments.chickering1996.study import Case, Curve, Study
from lurking.types import FloatArray

SAMPLED: Final = "sampled"


def curves_of(study: Study, case: Case, column: str) -> list[dict[int, float]]:
    """Return {states: score} on each data set of an experiment; `sampled` is the sampled evidence."""
    if column == SAMPLED:
        return [{states: own.log_z for states, own in sampled.items()} for sampled in study.sampled.get(case, ())]
    return [values_of(curve, column) for curve in study.curves[case]]


def values_of(curve: Curve, column: str) -> dict[int, float]:
    """Return {states: score} by one score."""
    return {states: scored.values[column] for states, scored in curve.items()}


def selected(values: Mapping[int, float]) -> int:
    """Return the number of states with the highest score, the fewest of equal ones."""
    return max(values, key=lambda states: (values[states], -states))


def differences(study: Study, case: Case, column: str, reference: str) -> list[int]:
    """Return Δc on each data set: states selected by a score less states selected by the reference."""
    ours, others = curves_of(study, case, column), curves_of(study, case, reference)
    return [selected(own) - selected(other) for own, other in zip(ours, others, strict=True)]


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation (of a sample, as in table 1); a single value has none, which is 0."""
    return fmean(values), stdev(values) if len(values) > 1 else 0.0


def in_words(values: Sequence[float], digits: int = 1) -> str:
    """Return mean ± standard deviation as table 1 writes it: a bare 0 where all are 0."""
    mean, deviation = mean_and_deviation(values)
    if not any(values):
        return "0"
    # Adding 0 turns a rounded −0.0 into 0.0.
    return f"{round(mean, digits) + 0.0:.{digits}f} ± {deviation:.{digits}f}"


def shape(values: Mapping[int, float], states: Iterable[int]) -> FloatArray:
    """Return a curve less its mean over some states: what is left when its height is of no interest."""
    own = np.asarray([values[count] for count in states])
    return np.asarray(own - own.mean())


def shape_distance(study: Study, case: Case, column: str, reference: str) -> float:
    """Return the root mean square difference of two scores' shapes, over states and data sets, in nats."""
    pairs = zip(curves_of(study, case, column), curves_of(study, case, reference), strict=True)
    gaps = [shape(own, other) - shape(other, other) for own, other in pairs]
    return float(np.sqrt(np.mean(np.square(gaps))))


def peak(values: Mapping[int, float], true_states: int) -> float | None:
    """Return how far the true number of states lies above the better of its tested neighbours; None without any."""
    states = sorted(values)
    if true_states not in values:
        return None
    place = states.index(true_states)
    around = [values[count] for count in (*states[max(place - 1, 0) : place], *states[place + 1 : place + 2])]
    return values[true_states] - max(around) if around else None


def mean_peak(study: Study, case: Case, column: str) -> float | None:
    """Return the mean of `peak` over the data sets."""
    peaks = [peak(values, case[1]) for values in curves_of(study, case, column)]
    known = [value for value in peaks if value is not None]
    return fmean(known) if known else None


def growth(dimensions: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the exponent b of seconds ∝ d^b by least squares in logarithms."""
    return float(np.polyfit(np.log(dimensions), np.log(seconds), 1)[0])
