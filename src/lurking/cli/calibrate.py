"""`lurking calibrate`: which scores can be trusted for a structure at a size of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.errors import OptionError
from lurking.evidence.evaluation import score_names
from lurking.search.calibration import CAUTION, DEFAULT_SCORES, TRUSTED, Calibration
from lurking.search.calibration import calibrate as calibrate_scores


def calibrate(
    model: opt.ModelOption,
    n: Annotated[
        int | None, typer.Option("-n", parser=opt.whole, metavar="N", help="Rows of each simulated data set.")
    ] = None,
    levels: Annotated[
        list[str] | None,
        typer.Option(
            "--levels", metavar="LEVELS", help="Levels of every observed variable, 5, or of one, y1:5; repeat."
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like-data", metavar="DATA", help="Simulate data like these: levels, n, empty cells, parameters."
        ),
    ] = None,
    weights: opt.WeightsOption = None,
    hidden: opt.HiddenOption = None,
    scores: Annotated[
        str, typer.Option("--scores", help=f"Names separated by commas: {', '.join(score_names())}.")
    ] = ",".join(DEFAULT_SCORES),
    prior: opt.OnePriorOption = "1.0",
    repeats: Annotated[
        int, typer.Option("--repeats", parser=opt.whole, metavar="N", help="Number of simulated data sets.")
    ] = 5,
    empty: Annotated[
        float, typer.Option("--empty", parser=opt.real, metavar="X", help="Share of cells to empty at random.")
    ] = 0.0,
    seed: opt.SeedOption = 0,
    workers: opt.WorkersOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Say how far each score is off, on simulated data whose evidence is known from both sides."""
    rule = opt.parse_prior(prior)
    names = opt.parse_scores(scores)
    dag = opt.parse_model(model, hidden)
    source: dict[str, Any] = _source(n, levels, like, weights)
    with opt.work(workers) as pool:
        found = calibrate_scores(
            dag, n, **source, prior=rule, repeats=repeats, scores=names, seed=seed, empty=empty, **pool
        )
    if json:
        out.print_json("calibrate", _content(found, seed))
    else:
        _print(found)
    for name, why in found.left_out.items():
        out.warn(f"{name} was left out: {why}")
    if found.interrupted:
        raise out.Interrupted(f"{len(found.repeats)} of {repeats} repeats were finished")


def _source(n: int | None, levels: list[str] | None, like: Path | None, weights: str | None) -> dict[str, Any]:
    """Return where the simulated data come from: numbers of levels, or a table to resemble."""
    if like is not None:
        if levels:
            raise OptionError("--levels was given beside --like-data, whose columns have their levels; use one of them")
        return {"like": opt.read_data(like, weights, None, None, None, None)}
    if weights is not None:
        raise OptionError("--weights names a column of --like-data, which was not given; give both or none")
    if n is None:
        raise OptionError("the number of rows is not known; give -n, for example -n 480, or --like-data DATA")
    return {"cardinalities": parse_levels(levels)}


def parse_levels(values: list[str] | None) -> int | dict[str, int]:
    """Return the number of levels of every observed variable, or {name: levels}."""
    parts = opt.listed(values)
    if not parts:
        raise OptionError(
            "the levels of the observed variables are not known; give --levels 5, or --levels y1:5 for each"
        )
    named: dict[str, int] = {}
    for part in parts:
        name, colon, number = part.rpartition(":")
        if not opt.WHOLE_NUMBER.fullmatch(number.strip()):
            raise OptionError(f"--levels {part!r}: {number!r} is not a whole number; write 5, or y1:5")
        if not colon:
            if len(parts) > 1:
                raise OptionError(
                    f"--levels {part!r} is for every variable and stands beside others; write y1:{part} for each"
                )
            return int(number)
        if named.get(name, int(number)) != int(number):
            raise OptionError(f"--levels gives {name!r} both {named[name]} and {int(number)}; say it once")
        named[name] = int(number)
    return named


def _print(found: Calibration) -> None:
    how = "prior draws" if found.is_exact else "posterior draws of the data"
    out.say(f"{found.dag}   (n = {found.n}, {len(found.repeats)} data sets from {how})")
    sides = [
        [
            str(k + 1),
            *(out.number(value, 2) for value in (own.lower, own.lower_error, own.upper, own.upper_error, own.middle)),
            *(out.number(repeat.evidences[name].log_z, 2) if name in repeat.evidences else "" for name in found.scores),
        ]
        for k, repeat in enumerate(found.repeats)
        for own in [repeat.sandwich]
    ]
    title = "ln p(data | structure) in nats: between lower and upper, then what the scores say"
    out.print_table(title, ["data set", "lower", "±", "upper", "±", "middle", *found.scores], sides)
    if not found.is_exact:
        out.say("the upper side is approximate: the parameters were not drawn from the prior")
    out.say()
    rows = [
        [
            *(own.score, out.number(own.mean_error), out.number(own.rms_error)),
            *(out.number(own.corrected_mean_error), out.number(own.corrected_rms_error), own.word),
        ]
        for own in found.judgements
    ]
    header = ["score", "mean error", "rms error", "mean, + ln S", "rms, + ln S", "verdict"]
    out.print_table("error: score minus the middle, in nats", header, rows)
    for own in found.judgements:
        out.say(own.sentence)
    out.say(f"rule: rms error up to {TRUSTED:g} nat is trusted, up to {CAUTION:g} nats caution, beyond that off")


def _content(found: Calibration, seed: int) -> dict[str, Any]:
    """Describe the calibration in a JSON document."""
    return {
        "model": {"structure": str(found.dag), "hidden": dict(found.dag.hidden)},
        "n": found.n,
        "prior": found.prior.describe(),
        "seed": seed,
        "upper_is_exact": found.is_exact,
        "interrupted": found.interrupted,
        "rule": {"trusted": TRUSTED, "caution": CAUTION},
        "scores": [
            {
                "score": own.score,
                "count": own.count,
                "mean_error": own.mean_error,
                "rms_error": own.rms_error,
                "corrected_mean_error": own.corrected_mean_error,
                "corrected_rms_error": own.corrected_rms_error,
                "uncertainty": own.uncertainty,
                "verdict": own.word,
                "sentence": own.sentence,
            }
            for own in found.judgements
        ],
        "repeats": [
            {
                "lower": repeat.sandwich.lower,
                "lower_error": repeat.sandwich.lower_error,
                "upper": repeat.sandwich.upper,
                "upper_error": repeat.sandwich.upper_error,
                "middle": repeat.sandwich.middle,
                "scores": [out.evidence_content(evidence) for evidence in repeat.evidences.values()],
                "left_out": dict(repeat.left_out),
            }
            for repeat in found.repeats
        ],
    }
