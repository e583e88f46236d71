"""Each claim of the lecture beside what is found here, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median, stdev
from typing import Final

from lurking.experiments.murphy24 import lecture
from lurking.experiments.murphy24.decomposability import EXPECTED
from lurking.experiments.murphy24.evidence import REFERENCE, Scored, selected
from lurking.experiments.murphy24.signature import dimensions
from lurking.experiments.murphy24.sparse import METHODS, SCORES, Route
from lurking.experiments.murphy24.study import Study
from lurking.experiments.pages import Claim

ROUNDING: Final = 1e-6
"""Nats by which a bound may be passed."""
ERRORS: Final = 4.0
"""Standard errors by which a sampled value may be off."""
APART: Final = 0.01
"""Nats within which a fall is all of ln K!."""


def claims(study: Study) -> tuple[Claim, ...]:
    """Return every claim that the run can speak about."""
    found: list[Claim] = []
    if study.curves:
        found += [*_of_candidate(study), *_of_scores(study)]
    if study.gains:
        found += _of_gains(study)
    if study.sparse:
        found += _of_sparse(study)
    if study.learnt:
        found += _of_signature(study)
    return tuple(found)


def models(study: Study) -> list[tuple[int, int, Scored]]:
    """Return (true classes, classes, scores) of every test model with more than one class."""
    return [
        (size.states, states, scored)
        for size, curves in study.curves.items()
        for curve in curves
        for states, scored in curve.items()
        if states > 1
    ]


def errors_of(study: Study, method: str) -> list[float]:
    """Return how far a method is from the reference, for every test model with more than one class."""
    return [scored.values[method] - scored.values[REFERENCE] for _, _, scored in models(study)]


def _of_candidate(study: Study) -> Iterator[Claim]:
    for words, is_within in (("up to the true number of classes", True), ("with more classes than that", False)):
        own = [scored for true, states, scored in models(study) if (states <= true) == is_within]
        off = [scored.values["chib"] - scored.values[REFERENCE] for scored in own]
        agree = sum(_is_near(scored) for scored in own)
        if own:
            yield Claim(
                f"the candidate method is a gold standard: {words}",
                "'gold standard'",
                f"agrees with annealed importance sampling within {ERRORS:g} standard errors in {agree} of {len(own)} "
                f"test models; differences {min(off):.1f} to {max(off):.1f} nats, median {median(off):.2f}",
                agree >= 0.9 * len(own),
            )
    gaps = [(scored.gap, math.lgamma(states + 1), states <= true) for true, states, scored in models(study)]
    within = [(gap, most) for gap, most, is_within in gaps if is_within]
    beyond = [gap for gap, _, is_within in gaps if not is_within]
    whole = sum(abs(gap - most) < APART for gap, most in within)
    words = f"; with more classes {min(beyond):.1f} to {max(beyond):.1f}, where single sweeps decide" if beyond else ""
    yield Claim(
        "it underestimates when the chain does not mix over all modes, even symmetrical ones (Neal)",
        "low by up to ln K!",
        f"up to the true number of classes the same sweeps give {min(gap for gap, _ in within):.2f} to "
        f"{max(gap for gap, _ in within):.2f} nats less without the average over relabelings, all of ln K! in {whole} "
        f"of {len(within)}{words}",
        all(-ROUNDING <= gap <= most + ROUNDING for gap, most in within) and whole > 0,
    )


def _is_near(scored: Scored) -> bool:
    error = math.hypot(scored.errors.get("chib", 0.0), scored.errors.get(REFERENCE, 0.0))
    return abs(scored.values["chib"] - scored.values[REFERENCE]) <= ERRORS * error + ROUNDING


def _of_scores(study: Study) -> Iterator[Claim]:
    own = [scored for _, _, scored in models(study)]
    off = {name: median(abs(error) for error in errors_of(study, name)) for name in ("cs", "bic", "vb", "mled")}
    yield Claim(
        "CS is more accurate than BIC",
        "more accurate",
        f"median distance from the reference: CS {off['cs']:.1f}, BIC {off['bic']:.1f} nats (VB {off['vb']:.1f})",
        off["cs"] < off["bic"],
    )
    ratio = median(scored.seconds["laplace"] / scored.seconds["cs"] for scored in own)
    yield Claim(
        "CS is faster than Laplace",
        "faster",
        f"beyond EM, Laplace takes {ratio:.0f} times as long (median); EM itself "
        f"{median(scored.seconds['em'] for scored in own):.2g} s, CS {median(s.seconds['cs'] for s in own):.2g} s",
        ratio > 1.0,
    )
    above = sum(
        scored.values["cs"] > scored.values[REFERENCE] + ERRORS * scored.errors.get(REFERENCE, 0.0) for scored in own
    )
    yield Claim("CS is a lower bound", "a lower bound", f"above the reference in {above} of {len(own)}", above == 0)
    below = sum(scored.values["vb"] < scored.values["cs"] - ROUNDING for scored in own)
    tighter = median(scored.values["vb"] - scored.values["cs"] for scored in own)
    yield Claim(
        "VB is a tighter bound than CS",
        "provably",
        f"below CS in {below} of {len(own)} (fits of their own); tighter by {tighter:.2f} nats (median)",
        below == 0,
    )
    yield Claim(
        "the evidence of the expected data alone does not work well",
        "sums over one completion",
        f"that is MLED: {off['mled']:.0f} nats from the reference (median), CS {off['cs']:.1f}",
        off["mled"] > off["cs"],
    )
    curves = [(size.states, curve) for size, own_curves in study.curves.items() for curve in own_curves]
    same = {
        name: sum(selected(curve, name) == selected(curve, REFERENCE) for _, curve in curves)
        for name in ("bic", "draper", "cs", "laplace", "laplace-probability", "vb", "chib")
    }
    yield Claim(
        "which number of classes is selected, against the reference's",
        "a picture",
        f"the same in, of {len(curves)} data sets: "
        + ", ".join(f"{count} ({name})" for name, count in same.items())
        + f"; the reference selects the true number in {sum(selected(c, REFERENCE) == true for true, c in curves)}",
        None,
    )


def _of_gains(study: Study) -> Iterator[Claim]:
    printed = lecture.GAINS
    expected = next(own for own in study.gains if own.data == EXPECTED)
    sampled = [own for own in study.gains if own.data != EXPECTED]
    for measure, title in (("loglik", "ΔLL"), ("cs", "ΔCS")):
        there = [getattr(printed[added], measure) for added in printed]
        here = [expected.gains[added][measure] for added in printed]
        yield Claim(
            f"{title} of adding C → X3, C → X4, both" + (" (the data are made to have them)" * (measure == "loglik")),
            _signed(there),
            f"{_signed(here)} on expected data" + _spread(sampled_gains(study, measure)),
            None,
        )
    alone = {name: expected.gains["X3"][name] for name in ("cs", "bic", "vb")}
    yield Claim(
        "C → X3 alone is not worth its parameter",
        f"ΔCS {printed['X3'].cs:+.1f}",
        f"ΔCS {alone['cs']:+.1f}, ΔBIC {alone['bic']:+.1f}, ΔVB {alone['vb']:+.1f} on expected data; pseudo-counts 1, "
        "the lecture's are not known",
        alone["cs"] < 0.0,
    )
    beyond = {
        name: getattr(printed["X3 X4"], name) - sum(getattr(printed[one], name) for one in ("X3", "X4"))
        for name in ("loglik", "cs")
    }
    words = ""
    if len(sampled) > 1:
        for name in ("loglik", "cs", "ais"):
            own = [data.excess(name) for data in sampled]
            words += f"; {name} on {len(own)} sampled data sets {fmean(own):.1f} ± {stdev(own):.1f}"
        errors = [own["ais error"] for data in sampled for own in data.gains.values()]
        words += f" (nominal error of one sampled gain {median(errors):.1f}, at most {max(errors):.1f})"
    yield Claim(
        "scores do not decompose: both arcs bring more than the sum of what each brings",
        f"LL {beyond['loglik']:+.1f}, CS {beyond['cs']:+.1f} beyond the sum",
        f"LL {expected.excess('loglik'):+.1f}, CS {expected.excess('cs'):+.1f} on expected data{words}",
        min(expected.excess("loglik"), expected.excess("cs")) > 1.0,
    )


def sampled_gains(study: Study, measure: str) -> list[list[float]]:
    """Return the gains of each sampled data set, in the order of the lecture's table."""
    return [[own.gains[added][measure] for added in lecture.GAINS] for own in study.gains if own.data != EXPECTED]


def _spread(values: Sequence[Sequence[float]]) -> str:
    if len(values) < 2:
        return ""
    cells = [f"{fmean(own):.1f} ± {stdev(own):.1f}" for own in zip(*values, strict=True)]
    return f"; on {len(values)} sampled data sets {', '.join(cells)}"


def _signed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:+.1f}" for value in values)


def routes_of(study: Study, method: str, score: str, start: str) -> list[Route]:
    """Return the searches of one kind over all data sets."""
    return [
        route
        for data in study.sparse
        for route in data.routes
        if (route.method, route.score, route.start) == (method, score, start)
    ]


def _of_sparse(study: Study) -> Iterator[Claim]:
    every = [route for data in study.sparse for route in data.routes]
    empty = [route for route in every if route.start == "none"]
    yield Claim(
        "begun with no children, a search never adds any",
        "will never add any",
        f"{sum(not route.end for route in empty)} of {len(empty)} searches end with none",
        all(not route.end for route in empty),
    )
    found = []
    for start in ("all", "random"):
        for method in METHODS:
            own = [route for score in SCORES for route in routes_of(study, method, score, start)]
            if own:
                best = sum(route.below_best < ROUNDING for route in own)
                found.append(f"{method} from {start}: {best} of {len(own)}")
    from_all = [route.below_best < ROUNDING for route in every if route.start == "all"]
    yield Claim(
        "begin with all children, or a random subset",
        "advice",
        f"ends at the best of all subsets: {'; '.join(found)}",
        fmean(from_all) > 0.5,
    )
    fits = {method: fmean(route.fits for route in every if route.method == method) for method in METHODS}
    yield Claim(
        "scoring all neighbours is expensive, for each needs a fit of its own; structural EM needs one fit a round",
        "expensive",
        "fits of a search on average: " + ", ".join(f"{count:.1f} ({method})" for method, count in fits.items()),
        max(fits["structural EM"], fits["slide's rule"]) < fits["greedy"],
    )
    slack = [b - a for data in study.sparse for a, b in zip(data.predicted, data.actual, strict=True)]
    yield Claim(
        "the gain in BIC on expected data is never above the true gain (theorem 19.4.3)",
        "≤",
        f"true less predicted is {min(slack) + 0.0:.2g} to {max(slack):.1f} nats over {len(slack)} structures",
        min(slack) >= -1e-3,
    )
    yield Claim(
        "the true subset among all by its score",
        "not computed",
        "; ".join(
            f"{score}: place {', '.join(str(data.ranks[score]) for data in study.sparse)}"
            for score in study.sparse[0].ranks
        ),
        None,
    )


def _of_signature(study: Study) -> Iterator[Claim]:
    own = study.learnt
    counts = dimensions()
    yield Claim(
        "parameters with and without the hidden variable",
        f"{lecture.WITH_HIDDEN} and {lecture.WITHOUT_HIDDEN}",
        f"{counts[0]} and {counts[1]}",
        counts == (lecture.WITH_HIDDEN, lecture.WITHOUT_HIDDEN),
    )
    cliques = sum(item.is_semi_clique for item in own)
    yield Claim(
        "learnt without it, the children form a semi-clique",
        "look for semi-cliques",
        f"in {cliques} of {len(own)} data sets (each child linked to at least half of the others); all three pairs are "
        f"linked in {sum(item.linked_children == 3 for item in own)}",
        cliques > 0.8 * len(own),
    )
    by_rows = sorted({item.rows for item in own})
    parameters = {rows: fmean(item.parameters for item in own if item.rows == rows) for rows in by_rows}
    yield Claim(
        "large fan-in is discouraged",
        "unfortunately",
        "parameters of the best structure on average: "
        + ", ".join(f"{mean:.0f} (n = {rows})" for rows, mean in parameters.items())
        + f"; some variable has all five others as parents in {sum(item.most_parents == 5 for item in own)} of "
        f"{len(own)}, and there are {lecture.WITHOUT_HIDDEN} parameters or more in "
        f"{sum(item.parameters >= lecture.WITHOUT_HIDDEN for item in own)}",
        all(mean < lecture.WITHOUT_HIDDEN for mean in parameters.values()),
    )
    last = [item for item in own if item.rows == by_rows[-1]]
    yield Claim(
        "the hidden variable pays",
        "17 in place of 59 parameters",
        f"evidence above that of the best structure without in {sum(item.hidden > item.best for item in own)} of "
        f"{len(own)}; by {fmean(item.hidden - item.best for item in last):.0f} nats on average at n = {by_rows[-1]}, "
        f"and by {fmean(item.hidden - item.full for item in last):.0f} over the 59-parameter network",
        all(item.hidden > item.best for item in last),
    )
    reached = sum(item.tabu >= item.best - ROUNDING for item in own)
    yield Claim("tabu search finds the best of all structures", "not asked", f"in {reached} of {len(own)}", None)
