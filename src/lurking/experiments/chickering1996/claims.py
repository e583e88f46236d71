"""Each claim of the paper beside what is found here, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Final

from lurking.experiments.chickering1996 import paper
from lurking.experiments.chickering1996.data import EXPERIMENTS, FIGURES, generating
from lurking.experiments.chickering1996.scores import PAPER, SOFTMAX
from lurking.experiments.chickering1996.selection import (
    SAMPLED,
    curves_of,
    differences,
    growth,
    in_words,
    mean_peak,
    peak,
    selected,
    shape_distance,
    values_of,
)
from lurking.experiments.chickering1996.study import Case, Study
from lurking.experiments.pages import Claim

GOLD: Final = "laplace-probability"
"""The paper's standard: Laplace, at the mode over probabilities."""
NAMES: Final = {
    "laplace-probability": "Laplace (probabilities)",
    "laplace": "Laplace (logits)",
    "cs": "CS",
    "mled": "MLED",
    "draper": "Draper",
    "bic": "BIC/MDL",
    "vb": "VB",
    "sampled": "sampled",
}
APPROXIMATIONS: Final = ("cs", "mled", "draper", "bic")
SMALL_N: Final = 16
"""Up to here n counts as small."""
MANY_STATES: Final = 16
"""From here on c counts as large."""
INVISIBLE: Final = 0.02
"""Share of a panel's height below which an error bar is not seen."""


def claims(study: Study) -> tuple[Claim, ...]:
    """Return every claim that the run can speak about; those of a part of the experiments decide nothing."""
    found: list[Claim] = []
    if study.curves:
        found += [*_of_runs(study), *_of_shapes(study), *_of_selection(study), *_of_peaks(study)]
    if study.epsilons:
        found.append(_of_epsilons(study))
    if study.times:
        found += _of_times(study)
    if study.checks:
        found += _of_checks(study)
    if study.sampled:
        found += _of_sampling(study)
    return tuple(found)


def _is_whole(study: Study) -> bool:
    """Whether all experiments of the paper were done, on enough data sets to decide."""
    cases = {experiment.case for experiment in EXPERIMENTS}
    return cases <= set(study.curves) and study.config.sets >= 5


def _decided(study: Study, holds: bool) -> bool | None:
    return holds if _is_whole(study) else None


def _of_runs(study: Study) -> Iterator[Claim]:
    """Section 3."""
    runs = [scored.has_converged for scored in study.all_scored]
    yield Claim(
        f"EM converges in all but one run (relative change below {paper.RELATIVE_CHANGE:g} after "
        f"{study.config.protocol.iterations} iterations)",
        f"{paper.CONVERGED} of {paper.RUNS}",
        f"{sum(runs)} of {len(runs)}",
        sum(runs) >= len(runs) - 1,
    )
    shares = []
    for curves in study.curves.values():
        for column in PAPER:
            values = [values_of(curve, column) for curve in curves]
            shares += _spread_of_shapes(values)
    if shares:
        yield Claim(
            "curves are almost the same for different data sets of an experiment",
            "standard deviations invisible for most points",
            f"of the values less their curve's mean: {100 * median(shares):.1f} % of the panel's height (median), "
            f"{100 * max(shares):.1f} % (largest)",
            _decided(study, median(shares) < INVISIBLE),
        )


def _spread_of_shapes(values: Sequence[dict[int, float]]) -> list[float]:
    """Return, for each number of states, the deviation between data sets as a share of the curve's range."""
    if len(values) < 2:
        return []
    levels = [fmean(own.values()) for own in values]
    lowered = [{k: own[k] - level for k in own} for own, level in zip(values, levels, strict=True)]
    mean = {k: fmean(own[k] for own in lowered) for k in lowered[0]}
    height = max(mean.values()) - min(mean.values())
    if height == 0.0:
        return []
    return [(sum((own[k] - mean[k]) ** 2 for own in lowered) / (len(lowered) - 1)) ** 0.5 / height for k in mean]


def _of_shapes(study: Study) -> Iterator[Claim]:
    """Section 4, model averaging."""
    for name, words in (
        ("figure1", "as n increases"),
        ("figure2", "as c decreases"),
        ("figure3", "as N increases"),
    ):
        cases = [case for case in FIGURES[name][1] if case in study.curves]
        peaks = {column: [mean_peak(study, case, column) for case in cases] for column in PAPER}
        if len(cases) < 2 or any(value is None for own in peaks.values() for value in own):
            continue
        rising = [column for column, own in peaks.items() if _is_rising([value or 0.0 for value in own])]
        shown = ", ".join(f"{value:.0f}" for value in peaks[GOLD])
        seed = study.config.protocol.seed
        rare = ", ".join(f"{rows * generating(n, c, seed).weights.min():.0f}" for n, c, rows in cases)
        yield Claim(
            f"curves become more peaked about c {words}",
            "for each approximation",
            f"c above its better neighbour, Laplace: {shown} nats; rises from each panel to the next for "
            f"{_listed(rising)}. The rarest state has {rare} rows on average",
            _decided(study, len(rising) == len(PAPER)),
        )
    distance = {
        column: median(shape_distance(study, case, column, GOLD) for case in study.curves) for column in APPROXIMATIONS
    }
    yield Claim(
        "the shapes of Draper and CS are equally close to Laplace's, both closer than BIC's",
        "overall",
        "median over experiments of the root mean square difference of shapes, nats: "
        + ", ".join(f"{NAMES[column]} {value:.1f}" for column, value in distance.items()),
        _decided(study, max(distance["cs"], distance["draper"]) < distance["bic"]),
    )
    small = {case: shape_distance(study, case, "mled", "cs") for case in study.curves if case[0] <= SMALL_N}
    large = {case: shape_distance(study, case, "mled", "cs") for case in study.curves if case[0] > SMALL_N}
    if small and large:
        nearer = all(
            shape_distance(study, case, "cs", GOLD) < shape_distance(study, case, "mled", GOLD) for case in small
        )
        yield Claim(
            "MLED and CS are almost identical, except for small n, where CS is better",
            "figures 1 to 3",
            f"shapes differ by {median(large.values()):.1f} nats (median, n > {SMALL_N}) and "
            f"{median(small.values()):.1f} (n ≤ {SMALL_N}), where CS is {'' if nearer else 'not '}nearer to Laplace "
            "in each",
            _decided(study, nearer),
        )


def _is_rising(values: Sequence[float]) -> bool:
    return all(first < second for first, second in pairwise(values))


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(NAMES[column] for column in columns) or "none"


def _of_selection(study: Study) -> Iterator[Claim]:
    """Section 4, model selection (table 1)."""
    found = {
        column: {case: differences(study, case, column, GOLD) for case in study.curves} for column in APPROXIMATIONS
    }
    missed = {column: fmean(abs(one) for own in by_case.values() for one in own) for column, by_case in found.items()}
    means = {column: [fmean(own) for own in by_case.values()] for column, by_case in found.items()}
    yield Claim(
        "Draper, CS and MLED select more accurately than BIC, which selects models that are too simple",
        "table 1",
        f"mean |Δc|: {', '.join(f'{NAMES[column]} {value:.2f}' for column, value in missed.items())}; BIC's mean Δc is "
        f"above 0 in {sum(mean > 0 for mean in means['bic'])} of {len(study.curves)} experiments",
        _decided(study, max(missed[one] for one in APPROXIMATIONS[:3]) < missed["bic"] and max(means["bic"]) <= 0.0),
    )
    signs = {column: (sum(mean > 0 for mean in own), sum(mean < 0 for mean in own)) for column, own in means.items()}
    yield Claim(
        "CS and MLED tend to select models that are too complex, Draper too simple",
        "table 1",
        "; ".join(f"{NAMES[column]}: above 0 in {signs[column][0]}, below in {signs[column][1]}" for column in found),
        _decided(
            study,
            all(signs[one][0] > signs[one][1] for one in ("cs", "mled")) and signs["draper"][1] > signs["draper"][0],
        ),
    )
    same = [case for case in study.curves if found["cs"][case] == found["mled"][case]]
    yield Claim(
        "CS and MLED select almost the same, except for small n",
        "table 1: other means at n = 8 and 16 only",
        f"the same in all data sets of {len(same)} of {len(study.curves)} experiments; others: "
        + (", ".join(_case(case) for case in study.curves if case not in same) or "none"),
        _decided(study, all(case in same for case in study.curves if case[0] > SMALL_N)),
    )
    many = [case for case in study.curves if case[1] >= MANY_STATES]
    if many:
        by = {column: fmean(abs(one) for case in many for one in found[column][case]) for column in ("cs", "draper")}
        yield Claim(
            "for large c Draper selects better than CS",
            "c = 32: −2.2 against 16.2; c = 16: −1.6 against 5.0",
            "; ".join(
                f"c = {case[1]}: {in_words(found['draper'][case])} against {in_words(found['cs'][case])}"
                for case in many
            ),
            _decided(study, by["draper"] < by["cs"]),
        )
    yield Claim(
        "the same scores against Laplace over logits, all at the mode over logits (softmax)",
        "not computed",
        "mean |Δc|: "
        + ", ".join(
            f"{NAMES[column]} "
            f"{fmean(abs(one) for case in study.curves for one in differences(study, case, other, 'laplace')):.2f}"
            for column, other in zip(APPROXIMATIONS, SOFTMAX[1:], strict=True)
        ),
        None,
    )


def _case(case: Case) -> str:
    return "({}, {}, {})".format(*case)


def _of_peaks(study: Study) -> Iterator[Claim]:
    """Look for the second peak of figure 2, and whether EM could have found it."""
    for case in study.curves:
        if case[1] < MANY_STATES:
            continue
        curves = {column: curves_of(study, case, column) for column in PAPER}
        sharp = {column: sum((peak(values, case[1]) or 0.0) > 0.0 for values in own) for column, own in curves.items()}
        broad = [selected(values) for values in curves[GOLD]]
        begun = {column: [truth.values[column] for truth in study.truths[case]] for column in PAPER}
        above = [value - max(own.values()) for value, own in zip(begun["cs"], curves["cs"], strict=True)]
        chosen = {
            column: [
                selected({**own, case[1]: max(value, own.get(case[1], value))})
                for value, own in zip(begun[column], curves[column], strict=True)
            ]
            for column in (GOLD, "cs", "draper")
        }
        yield Claim(
            f"with c = {case[1]} all curves have a broad peak around c/2 and a sharp one at c",
            "figure 2; CS selects the second, Laplace, Draper and BIC the first",
            f"Laplace is highest at {min(broad)} to {max(broad)} states; c is above both neighbours in "
            f"{', '.join(f'{count} ({NAMES[column]})' for column, count in sharp.items())} of {study.config.sets} data "
            f"sets. EM begun at the generating parameters makes such a peak: CS at c is then {in_words(above, 0)} nats "
            "above its curve. With that run, selected are "
            + "; ".join(f"{', '.join(map(str, own))} ({NAMES[column]})" for column, own in chosen.items()),
            _decided(study, all(count > study.config.sets / 2 for count in sharp.values())),
        )


def _of_epsilons(study: Study) -> Claim:
    """Section 3: the prior."""
    places = [(case, place) for case in study.curves for place in range(study.config.epsilon_sets)]
    chosen = {
        column: {
            epsilon: [selected(values_of(own[case][place], column)) for case, place in places]
            for epsilon, own in study.epsilons.items()
        }
        for column in (*PAPER, "laplace", "vb")
    }
    same = {
        column: sum(len(set(one)) == 1 for one in zip(*own.values(), strict=True)) for column, own in chosen.items()
    }
    missed = {
        epsilon: [
            fmean(abs(one - gold) for one, gold in zip(chosen[column][epsilon], chosen[GOLD][epsilon], strict=True))
            for column in APPROXIMATIONS
        ]
        for epsilon in study.epsilons
    }
    return Claim(
        "conclusions are not sensitive to ε: BIC selects least accurately with each",
        "0.1 to 0.001",
        f"mean |Δc| of {', '.join(NAMES[column] for column in APPROXIMATIONS)}: "
        + "; ".join(
            f"{', '.join(f'{value:.2f}' for value in own)} (ε = {epsilon:g})" for epsilon, own in missed.items()
        )
        + f". The same number of states with each ε, of {len(places)} data sets: "
        + ", ".join(f"{count} ({NAMES[column]})" for column, count in same.items()),
        _decided(study, all(own[-1] == max(own) for own in missed.values())),
    )


def _of_times(study: Study) -> Iterator[Claim]:
    """Table 2."""
    dimensions = [timing.d for timing in study.times]
    slope = {
        name: growth(dimensions, [getattr(timing, name) for timing in study.times]) if len(dimensions) > 1 else 0.0
        for name in ("em", "laplace")
    }
    printed = list(paper.TABLE2)
    slopes = [growth(printed, [row[place] for row in paper.TABLE2.values()]) for place in (0, 1)]
    ratio = fmean(timing.laplace / timing.em for timing in study.times)
    others = max(max(timing.cs, timing.mled, timing.draper, timing.bic) / timing.em for timing in study.times)
    decides = tuple(study.config.timed_states) == tuple(range(26, 37))
    yield Claim(
        "Laplace takes much longer than the EM before it, the other scores next to nothing",
        "5 to 9 times as long; 0.5 % and less",
        f"{ratio:.1f} times as long; at most {100 * others:.2g} %",
        ratio > 2.0 and others < 0.05 if decides else None,
    )
    yield Claim(
        "EM grows as d, Laplace as d² (exponents b of seconds ∝ d^b over table 2)",
        f"O(edN) and O(d²N); printed times: {slopes[0]:.1f} and {slopes[1]:.1f}",
        f"{slope['em']:.1f} and {slope['laplace']:.1f}; d = {dimensions[0]} to {dimensions[-1]}",
        None,
    )


def _of_checks(study: Study) -> Iterator[Claim]:
    """Section 5."""
    sizes = list(dict.fromkeys((check.n, check.c) for check in study.checks))
    by_size = {size: [check for check in study.checks if (check.n, check.c) == size] for size in sizes}
    first = by_size[sizes[0]]
    decides = len(first) >= 5
    gains = {column: [check.gain(column) for check in first] for column in (GOLD, "laplace")}
    here = f"{in_words(gains[GOLD], 0)} (Laplace over probabilities), {in_words(gains['laplace'], 0)} (over logits)"
    sampled = [check.sampled_gain for check in first if check.sampled_gain is not None]
    if sampled:
        here += f", {in_words(sampled, 0)} (sampled)"
    mean, deviation = paper.DELTA_M
    yield Claim(
        f"Δm: a hidden variable is better than none where there is one (n = {sizes[0][0]}, c = {sizes[0][1]}, N = 800)",
        f"{mean:.0f} ± {deviation:.0f}",
        here,
        fmean(gains[GOLD]) > 0.0 if decides else None,
    )
    states = {column: [check.selected(column) for check in first] for column in (*PAPER, "vb")}
    yield Claim(
        "all scores select the true number of hidden states there",
        str(sizes[0][1]),
        "; ".join(f"{NAMES[column]}: {', '.join(map(str, own))}" for column, own in states.items()),
        all(one == sizes[0][1] for column in PAPER for one in states[column]) if decides else None,
    )
    if len(sizes) > 1:
        grown = {size: [check.gain(GOLD) for check in own] for size, own in by_size.items()}
        yield Claim(
            "Δm increases with the size of the models",
            "said of additional experiments",
            "; ".join(f"n = {n}, c = {c}: {in_words(own, 0)}" for (n, c), own in grown.items()),
            _is_rising([fmean(own) for own in grown.values()]) if decides else None,
        )


def _of_sampling(study: Study) -> Iterator[Claim]:
    """Judge the paper's standard itself, which it could not."""
    columns = (GOLD, "laplace", *APPROXIMATIONS, "vb")
    missed = {
        column: fmean(abs(one) for case in study.sampled for one in differences(study, case, column, SAMPLED))
        for column in columns
    }
    yield Claim(
        "Laplace is the most accurate (assumed, not verified), judged by sampled evidence: mean |Δc|",
        "cannot be verified",
        ", ".join(f"{NAMES[column]} {value:.2f}" for column, value in missed.items()),
        _decided(study, missed[GOLD] <= min(missed[column] for column in APPROXIMATIONS)),
    )
    distance = {
        column: median(shape_distance(study, case, column, SAMPLED) for case in study.sampled) for column in columns
    }
    yield Claim(
        "the same by the shape of the curves: root mean square difference, nats (median over experiments)",
        "cannot be verified",
        ", ".join(f"{NAMES[column]} {value:.1f}" for column, value in distance.items()),
        _decided(study, distance[GOLD] <= min(distance[column] for column in APPROXIMATIONS)),
    )
    every = [one for own in study.sampled.values() for by_states in own for one in by_states.values()]
    below = sum(
        sampled.log_z < study.curves[case][place][states].values["vb"]
        for case, own in study.sampled.items()
        for place, by_states in enumerate(own)
        for states, sampled in by_states.items()
    )
    yield Claim(
        "sampled evidence lies above the variational bound",
        "not computed",
        f"{below} of {len(every)} below it; median nominal error {median(one.std_error for one in every):.2f}; "
        f"{sum(not one.is_trusted for one in every)} marked untrusted",
        below == 0,
    )
