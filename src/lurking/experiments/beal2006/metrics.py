"""What the study comes to: ranks, score differences, divergences, rates (figures 3–5, tables 2 and 3 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lurking.experiments.beal2006.contenders import (
    CORRECTED,
    METHODS,
    ClassScores,
    contenders,
    divergence,
    is_below,
    posterior_of,
    rank_of,
    true_place,
)
from lurking.experiments.beal2006.sampled import log_evidence
from lurking.experiments.beal2006.study import OneDraw
from lurking.types import FloatArray

Curves = Mapping[str, Mapping[int, float]]
"""{column: {n: value}}"""


def columns_of(scores: ClassScores) -> dict[str, FloatArray]:
    """Return the columns of table 2 but the sampled ones: {"vb*": without ln S, "vb": with it, …}, (136,) each."""
    plain = {f"{method}*" if method in CORRECTED else method: scores.values[method] for method in METHODS}
    return plain | {method: scores.corrected(method) for method in CORRECTED}


def all_columns(draw: OneDraw, n: int) -> dict[str, FloatArray]:
    """Return every column at n; "ais" is the paper's sampler, "sampled" the variational path (−inf: not run)."""
    result = columns_of(draw.scores[n])
    if n in draw.chains:
        result["ais"] = np.asarray([own.estimate() for own in draw.chains[n]])
    if n in draw.sampled:
        result["sampled"] = log_evidence(draw.sampled[n], len(contenders()))
    return result


def _curves(draw: OneDraw, value: Callable[[FloatArray], float]) -> dict[str, dict[int, float]]:
    """Return `value` of every column at every n."""
    result: dict[str, dict[int, float]] = {}
    for n in draw.scores:
        for column, scores in all_columns(draw, n).items():
            result.setdefault(column, {})[n] = value(scores)
    return result


def ranks(draw: OneDraw) -> dict[str, dict[int, float]]:
    """Return the rank of the true structure (table 2, figure 3a)."""
    return _curves(draw, lambda scores: rank_of(scores, true_place()))


def differences(draw: OneDraw) -> dict[str, dict[int, float]]:
    """Return the score of the true structure less that of the best one, in nats (figure 3b)."""
    return _curves(draw, lambda scores: float(scores[true_place()] - scores.max()))


def posteriors(draw: OneDraw) -> dict[str, dict[int, float]]:
    """Return p(true structure | y) with a uniform prior over the structures."""
    return _curves(draw, lambda scores: float(posterior_of(scores)[true_place()]))


def divergences(draw: OneDraw) -> dict[str, dict[int, float]]:
    """Return KL(sampled ‖ method) of the posteriors over structures, where the evidence was sampled (figure 3c)."""
    result: dict[str, dict[int, float]] = {}
    for n in draw.sampled:
        columns = all_columns(draw, n)
        for column in (*CORRECTED, "ais"):
            if column in columns:
                result.setdefault(column, {})[n] = divergence(columns["sampled"], columns[column])
    return result


def averaged(draws: Sequence[OneDraw]) -> dict[str, dict[str, dict[int, float]]]:
    """Return figures 4 and 5: {measure: {method: {n: value}}} over many draws of parameters."""
    ranked = [ranks(draw) for draw in draws]
    believed = [posteriors(draw) for draw in draws]
    uniform = 1.0 / len(contenders())
    measures: dict[str, Callable[[FloatArray, FloatArray], float]] = {
        "median rank": lambda rank, _: float(np.median(rank)),
        "best rank": lambda rank, _: float(rank.min()),
        "success rate": lambda rank, _: float(np.mean(rank == 1)),
        "mean posterior": lambda _, belief: float(belief.mean()),
        "above uniform": lambda _, belief: float(np.mean(belief > uniform)),
    }
    result: dict[str, dict[str, dict[int, float]]] = {name: {} for name in measures}
    methods = [method for method in (*METHODS, "sampled") if all(method in own for own in ranked)]
    for method in methods:
        for n in ranked[0][method]:
            rank = np.asarray([own[method][n] for own in ranked])
            belief = np.asarray([own[method][n] for own in believed])
            for name, measure in measures.items():
                result[name].setdefault(method, {})[n] = measure(rank, belief)
    return result


def violations(draw: OneDraw) -> dict[str, dict[int, float]]:
    """Return table 3 in percent of the structures: how often annealing reports less than the variational bound."""
    result: dict[str, dict[int, float]] = {}
    for n, chains in draw.chains.items():
        for count in (1, 5):
            if len(chains[0].log_weights) >= count:
                values = np.asarray([own.estimate(count) for own in chains])
                for star, bound in (("*", draw.scores[n].values["vb"]), ("", draw.scores[n].corrected("vb"))):
                    result.setdefault(f"AIS({count}) < VB{star}", {})[n] = _percent_below(values, bound)
        # One structure has nothing to propose: without links its evidence is exact.
        rejected = [own.rejected for own, contender in zip(chains, contenders(), strict=True) if contender.dag.edges]
        result.setdefault("rejected proposals", {})[n] = 100.0 * float(np.mean(rejected))
    for n, found in draw.sampled.items():
        places = list(found)
        values = np.asarray([found[place].log_z for place in places])
        bound = draw.scores[n].values["vb"][places]
        result.setdefault("variational path < VB*", {})[n] = _percent_below(values, bound)
    return result


def _percent_below(values: FloatArray, bounds: FloatArray) -> float:
    """Return the percentage of values below their bound."""
    return 100.0 * float(np.mean(is_below(values, bounds)))


def approach(draw: OneDraw) -> dict[str, dict[int, float]]:
    """Return how F approaches BIC on the true structure: (F − BIC) per row, and as a share of BIC's penalty."""
    place = true_place()
    dimension = contenders()[place].dimension
    gaps = {n: float(own.values["vb"][place] - own.values["bic"][place]) for n, own in draw.scores.items()}
    return {
        "per row": {n: gap / n for n, gap in gaps.items()},
        "share of the penalty": {n: gap / (0.5 * dimension * np.log(n)) for n, gap in gaps.items()},
    }


def below_cs(draws: Sequence[OneDraw]) -> tuple[int, int, int]:
    """Return (structures and data sets scored, VB below CS, still below when VB starts at the MAP point)."""
    scored = [own for draw in draws for own in draw.scores.values()]
    return (
        len(scored) * len(contenders()),
        sum(own.below_cs for own in scored),
        sum(own.still_below_cs for own in scored),
    )


def bands(scores: FloatArray) -> tuple[list[int], list[int], list[int]]:
    """Return the places of the structures in three bands of scores, the highest first, split at the widest gaps."""
    order = np.argsort(-scores, kind="stable")
    first, second = sorted(np.argsort(np.diff(scores[order]), kind="stable")[:2] + 1)
    upper, middle, lower = (part.tolist() for part in np.split(order, [first, second]))
    return upper, middle, lower


def linked(place: int) -> set[str]:
    """Return the observed variables that have a hidden parent in a structure."""
    dag = contenders()[place].dag
    return {name for name in dag.observed if dag.parents(name)}
