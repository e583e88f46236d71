"""Each claim of the paper beside what is found here, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lurking.experiments.beal2006.contenders import (
    CORRECTED,
    contenders,
    log_aliases,
    log_aliases_counted,
    rank_of,
    true_place,
)
from lurking.experiments.beal2006.metrics import (
    approach,
    averaged,
    bands,
    below_cs,
    differences,
    divergences,
    linked,
    ranks,
    violations,
)
from lurking.experiments.beal2006.study import Study
from lurking.experiments.pages import Claim
from lurking.types import FloatArray

MIDDLE = (320, 2560)
"""Sizes between which figure 4a shows VB ahead."""
NAMES = {"bic": "BIC", "bicp": "BICp", "cs": "CS", "vb": "VB"}
LEAST_IN_A_BAND = 5
ENOUGH_DRAWS = 20
"""Draws below which averages over them decide nothing."""


def claims(study: Study) -> tuple[Claim, ...]:
    """Return every claim that the run can speak about."""
    return (*_of_the_class(), *_of_one_draw(study), *_of_sampling(study), *_of_many_draws(study))


def _of_the_class() -> Iterator[Claim]:
    found = contenders()
    dimensions = [contender.dimension for contender in found]
    here = f"{len(found)}, {min(dimensions)} to {max(dimensions)}, {found[true_place()].dimension}"
    paper = "136, 18 to 66, 50"
    yield Claim("structures, their parameters, parameters of the true one", paper, here, here == paper)


def _of_one_draw(study: Study) -> Iterator[Claim]:
    """Section 4.1."""
    draw = study.single
    rank, sizes = ranks(draw), tuple(draw.scores)
    largest = max(sizes)
    if largest == 10240:
        first = {method: int(rank[method][largest]) for method in CORRECTED}
        yield Claim(
            "BICp, CS and VB rank the true structure first at n = 10240",
            "1, 1, 1",
            ", ".join(str(first[method]) for method in ("bicp", "cs", "vb")),
            all(first[method] == 1 for method in ("bicp", "cs", "vb")),
        )
        yield Claim("BIC does not yet", "2", str(first["bic"]), first["bic"] > 1)
    dimensions = np.asarray([contender.dimension for contender in contenders()])
    likes = [float(np.corrcoef(dimensions, draw.scores[n].values["map"])[0, 1]) for n in sizes]
    winners = [int(dimensions[int(np.argmax(draw.scores[n].values["map"]))]) for n in sizes]
    yield Claim(
        "MAP prefers large structures",
        "general upward trend",
        f"correlation with the number of parameters {min(likes):.2f} to {max(likes):.2f}; median winner has "
        f"{np.median(winners):.0f} of 66 parameters",
        min(likes) > 0.2 and float(np.median(winners)) > contenders()[true_place()].dimension,
    )
    yield _of_correction(study)
    yield _of_bands(study, largest)
    if len(sizes) > 1:
        gap = {name: [own[n] for n in sorted(own)] for name, own in approach(draw).items()}
        share, row = gap["share of the penalty"], gap["per row"]
        yield Claim(
            "F approaches BIC as n grows",
            "in the limit",
            f"F − BIC goes from {row[0]:.3g} nats per row at n = {min(sizes)} to {row[-1]:.3g} at {largest}, and from "
            f"{share[0]:.2f} of BIC's penalty to {share[-1]:.2f}",
            abs(row[-1]) < abs(row[0]) and abs(share[-1]) < abs(share[0]),
        )


def _of_bands(study: Study, n: int) -> Claim:
    """Whether the three bands of scores at large n are those of the paper."""
    parts = bands(study.single.scores[n].corrected("vb"))
    upper, middle, _ = parts
    outside = sum(not {"y1", "y2", "y3"} <= linked(place) for place in upper)
    outside_middle = sum("y3" not in linked(place) for place in middle)
    decides = n == 10240 and min(map(len, parts)) >= LEAST_IN_A_BAND
    return Claim(
        "at large n scores fall into three bands: y1, y2, y3 have hidden parents in all of the upper, y3 in all of the "
        "middle one",
        "strictly, at n = 10240",
        f"n = {n}, split at the widest gaps of VB: {', '.join(str(len(part)) for part in parts)} structures; "
        f"{outside} of the upper and {outside_middle} of the middle one are not so",
        outside + outside_middle == 0 if decides else None,
    )


def _of_correction(study: Study) -> Claim:
    """Whether ln S ever harms the rank, with both ways of counting S."""
    kept, exchanged = (_moved(study, counted) for counted in (log_aliases(), log_aliases_counted()))
    return Claim(
        "adding ln S nowhere makes the rank of the true structure worse",
        "nowhere worse, 13 times better",
        f"{exchanged[0]} times worse and {exchanged[1]} better with the exchange of hidden variables counted in every "
        f"structure, as the paper seems to do; {kept[0]} and {kept[1]} with the relabelings that keep a structure",
        exchanged[0] == 0 if (exchanged[0] == 0) == (kept[0] == 0) else None,
    )


def _moved(study: Study, counted: FloatArray) -> tuple[int, int]:
    """Return how often ln S makes the rank of the true structure worse, and better."""
    worse = better = 0
    for scores in study.single.scores.values():
        for method in CORRECTED:
            plain = rank_of(scores.values[method], true_place())
            other = rank_of(scores.values[method] + counted, true_place())
            worse, better = worse + (other > plain), better + (other < plain)
    return worse, better


def _of_sampling(study: Study) -> Iterator[Claim]:
    """Sections 4.1 and 5: the paper's sampler, and the reference in its place."""
    draw = study.single
    found = divergences(draw)
    if found:
        sizes = sorted(draw.sampled)
        nearest = {n: min(CORRECTED, key=lambda method: found[method][n]) for n in sizes}
        yield Claim(
            "VB is nearest to the sampled posterior over structures (KL of BIC, BICp, CS, VB)",
            "by a long way, over a wide range of n",
            "; ".join(f"n = {n}: {', '.join(f'{found[one][n]:.2f}' for one in CORRECTED)}" for n in sizes),
            all(nearest[n] == "vb" for n in sizes) if len(sizes) > 1 else None,
        )
        rank = ranks(draw)["sampled"]
        yield Claim(
            "rank of the true structure by sampled evidence",
            "1 from n = 960 on (AIS)",
            ", ".join(f"n = {n}: {rank[n]:.0f} of {len(draw.sampled[n])} sampled" for n in sizes),
            all(rank[n] == 1 for n in sizes if n >= 960) if sizes[-1] >= 960 else None,
        )
        yield _of_reference(study)
    if draw.chains:
        table = violations(draw)
        largest = max(draw.chains)
        yield Claim(
            "a single chain of the paper's sampler is below the bound for most structures at n = 10240",
            "71.7 %",
            f"{table['AIS(1) < VB*'][largest]:.1f} % at n = {largest}",
            table["AIS(1) < VB*"][largest] > 50.0 if largest == 10240 else None,
        )


def _of_reference(study: Study) -> Claim:
    """Whether the reference is where evidence must be: above the bound."""
    sampled = [one for own in study.single.sampled.values() for one in own.values()]
    doubtful = sum(not one.is_trusted for one in sampled)
    below = max(violations(study.single)["variational path < VB*"].values())
    errors = np.asarray([one.std_error for one in sampled])
    return Claim(
        "sampled evidence lies above the variational bound",
        "AIS of 26 batches: for the vast majority",
        f"{below:.1f} % below it; median nominal error {np.median(errors):.2f}, largest {errors.max():.2f}; "
        f"{doubtful} of {len(sampled)} values are marked untrusted",
        below == 0.0,
    )


def _of_many_draws(study: Study) -> Iterator[Claim]:
    """Section 4.2."""
    if not study.draws:
        return
    count, measures = len(study.draws), averaged(study.draws)
    median, success = measures["median rank"], measures["success rate"]
    decides = count >= ENOUGH_DRAWS
    middle = [n for n in median["vb"] if MIDDLE[0] <= n <= MIDDLE[1]]
    if middle:
        ahead = [n for n in middle if median["vb"][n] < median["bic"][n]]
        yield Claim(
            f"VB ranks the true structure above BIC between n = {MIDDLE[0]} and {MIDDLE[1]} (median of {count} draws)",
            "for the most part (and above BICp and CS)",
            f"at {len(ahead)} of {len(middle)} sizes",
            len(ahead) == len(middle) if decides else None,
        )
    behind = [n for n in median["vb"] if median["vb"][n] >= median["cs"][n] + 1.0]
    yield Claim(
        "there is a region where VB falls behind CS (median rank)",
        "seen in figure 4a",
        f"n = {', '.join(map(str, behind))}" if behind else "nowhere",
        bool(behind) if decides else None,
    )
    largest = max(success["vb"])
    rates = {method: success[method][largest] for method in CORRECTED}
    others = max(rate for method, rate in rates.items() if method != "vb")
    yield Claim(
        f"VB ranks the true structure first most often at n = {largest}",
        "figure 5a",
        ", ".join(f"{NAMES[method]} {rate:.2f}" for method, rate in rates.items()),
        rates["vb"] > others if decides else None,
    )
    late = {
        method: sum(own.unfinished[method] for draw in study.draws for own in draw.scores.values())
        for method in ("map", "vb")
    }
    yield Claim(
        f"climbs that ran out of {study.config.protocol.max_iter} iterations, EM and VB",
        "none, several",
        f"{late['map']}, {late['vb']}",
        None,
    )
    total, below, still = below_cs(study.draws)
    yield Claim(
        "VB below CS, which means another optimum or a climb that stopped early",
        "173 of 288320 (0.06 %)",
        f"{below} of {total} ({100 * below / total:.2f} %)",
        None,
    )
    yield Claim("VB below CS when it starts at the MAP point", "cannot be (corollary 6.2)", str(still), still == 0)
    yield from _beyond(study)


def _beyond(study: Study) -> Iterator[Claim]:
    """Whether better evidence ranks the true structure better; the paper could not ask."""
    some = [draw for draw in study.draws if draw.sampled]
    if not some:
        return
    sizes = sorted(some[0].sampled)
    mean = {
        column: [float(np.mean([ranks(draw)[column][n] for draw in some])) for n in sizes]
        for column in ("cs", "vb", "sampled")
    }
    gaps = [float(np.mean([differences(draw)["sampled"][n] for draw in some])) for n in sizes]
    text = "; ".join(
        f"n = {n}: {mean['sampled'][k]:.1f} (VB {mean['vb'][k]:.1f}, CS {mean['cs'][k]:.1f}; {gaps[k]:.1f} nats)"
        for k, n in enumerate(sizes)
    )
    drawn = f"{len(some)} draw{'s' * (len(some) > 1)}"
    yield Claim(f"mean rank of the true structure by sampled evidence, {drawn}", "not computed", text, None)
