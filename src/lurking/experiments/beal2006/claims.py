"""Each claim of the paper beside what is found here, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lurking.experiments.beal2006.contenders import CORRECTED, METHODS, contenders, true_place
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

MIDDLE = (320, 2560)
"""Sizes between which figure 4a shows VB ahead."""


@dataclass(frozen=True)
class Claim:
    """One claim: what the paper says, what is found here, and whether that agrees (None: not decided by this run)."""

    text: str
    paper: str
    here: str
    holds: bool | None


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
            "rank of the true structure at n = 10240 by BIC, BICp, CS, VB",
            "2, 1, 1, 1",
            ", ".join(str(first[method]) for method in CORRECTED),
            all(first[method] == 1 for method in ("bicp", "cs", "vb")),
        )
    dimensions = np.asarray([contender.dimension for contender in contenders()])
    likes = [float(np.corrcoef(dimensions, draw.scores[n].values["map"])[0, 1]) for n in sizes]
    winners = [int(dimensions[int(np.argmax(draw.scores[n].values["map"]))]) for n in sizes]
    yield Claim(
        "MAP prefers large structures",
        "general upward trend",
        f"correlation with the number of parameters {min(likes):.2f} to {max(likes):.2f}; winners have "
        f"{min(winners)} to {max(winners)}",
        min(likes) > 0.0,
    )
    yield _of_correction(study)
    yield _of_bands(study, largest)
    gap = approach(draw)["share of the penalty"]
    last = [gap[n] for n in sorted(gap)]
    yield Claim(
        "F approaches BIC as n grows",
        "in the limit",
        f"(F − BIC) is {last[0]:.2f} of BIC's penalty at n = {min(gap)}, {last[-1]:.2f} at n = {largest}",
        bool(last[-1] < last[0]),
    )


def _of_bands(study: Study, n: int) -> Claim:
    """Whether the three bands of scores at large n are those of the paper."""
    upper, middle, lower = bands(study.single.scores[n].corrected("vb"))
    has_three = all({"y1", "y2", "y3"} <= linked(place) for place in upper)
    has_third = all("y3" in linked(place) for place in middle)
    return Claim(
        "at large n scores fall into three bands: y1, y2, y3 have hidden parents in all of the upper, y3 in all of the "
        "middle one",
        "strictly, at n = 10240",
        f"n = {n}: {len(upper)}, {len(middle)} and {len(lower)} structures by VB; upper: "
        f"{'all' if has_three else 'not all'}, middle: {'all' if has_third else 'not all'}",
        has_three and has_third if n == 10240 else None,
    )


def _of_correction(study: Study) -> Claim:
    """Whether ln S ever harms the rank."""
    rank = ranks(study.single)
    worse = [
        f"{method} at n = {n} from {rank[f'{method}*'][n]:.0f} to {rank[method][n]:.0f}"
        for method in CORRECTED
        for n in rank[method]
        if rank[method][n] > rank[f"{method}*"][n]
    ]
    here = "never" if not worse else f"{len(worse)} times: {'; '.join(worse[:3])}{' …' if len(worse) > 3 else ''}"
    return Claim("adding ln S makes the rank of the true structure worse", "nowhere", here, not worse)


def _of_sampling(study: Study) -> Iterator[Claim]:
    """Sections 4.1 and 5: the paper's sampler, and the reference in its place."""
    draw = study.single
    found = divergences(draw)
    if found:
        sizes = sorted(draw.sampled)
        nearest = {n: min(CORRECTED, key=lambda method: found[method][n]) for n in sizes}
        yield Claim(
            "VB is nearest to the sampled posterior over structures (KL)",
            "by a long way, over a wide range of n",
            ", ".join(f"n = {n}: {nearest[n].upper()} ({found[nearest[n]][n]:.2f})" for n in sizes),
            all(nearest[n] == "vb" for n in sizes),
        )
        rank = ranks(draw)["sampled"]
        yield Claim(
            "rank of the true structure by sampled evidence",
            "1 from n = 960 on (AIS), 1 from 2560 on without fail",
            ", ".join(f"n = {n}: {rank[n]:.0f}" for n in sizes),
            None,
        )
        doubtful = sum(not one.is_trusted for own in draw.sampled.values() for one in own.values())
        total = sum(len(own) for own in draw.sampled.values())
        below = violations(draw)["variational path < VB*"]
        yield Claim(
            "reference values below the bound that it must not be below",
            "AIS with 26 batches: a few up to n = 2560",
            f"{max(below.values()):.1f} % at most; {doubtful} of {total} values are marked untrusted",
            max(below.values()) == 0.0,
        )
    if draw.chains:
        table = violations(draw)
        largest = max(draw.chains)
        yield Claim(
            "a single chain of the paper's sampler is below the bound at large n",
            "71.7 % at n = 10240",
            f"{table['AIS(1) < VB*'][largest]:.1f} % at n = {largest}",
            table["AIS(1) < VB*"][largest] > 50.0 if largest == 10240 else None,
        )


def _of_many_draws(study: Study) -> Iterator[Claim]:
    """Section 4.2."""
    if not study.draws:
        return
    count, measures = len(study.draws), averaged(study.draws)
    median, success = measures["median rank"], measures["success rate"]
    middle = [n for n in median["vb"] if MIDDLE[0] <= n <= MIDDLE[1]]
    if middle:
        ahead = [n for n in middle if median["vb"][n] < median["bic"][n]]
        yield Claim(
            f"VB ranks the true structure above BIC between n = {MIDDLE[0]} and {MIDDLE[1]} (median of {count} draws)",
            "for the most part ahead of BIC, BICp and CS",
            f"at {len(ahead)} of {len(middle)} sizes",
            len(ahead) == len(middle),
        )
    behind = [n for n in median["vb"] if median["vb"][n] > median["cs"][n]]
    yield Claim(
        "there is a region where VB falls behind CS (median rank)",
        "seen in figure 4a",
        f"n = {', '.join(map(str, behind))}" if behind else "nowhere",
        bool(behind),
    )
    largest = max(success["vb"])
    rates = {method: success[method][largest] for method in METHODS}
    yield Claim(
        f"share of draws that rank the true structure first at n = {largest}",
        "VB ahead (figure 5a)",
        ", ".join(f"{method.upper()} {rate:.2f}" for method, rate in rates.items()),
        max(rates.values()) == rates["vb"],
    )
    total, below, still = below_cs(study.draws)
    yield Claim("VB below CS", "173 of 288320 (0.06 %)", f"{below} of {total} ({100 * below / total:.2f} %)", None)
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
    yield Claim(f"mean rank of the true structure by sampled evidence, {len(some)} draws", "not computed", text, None)
