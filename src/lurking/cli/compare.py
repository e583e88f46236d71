"""`lurking compare`: several structures on the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.data.table import Table
from lurking.errors import OptionError
from lurking.evidence.base import Evidence
from lurking.evidence.evaluation import get_score, score_names
from lurking.graph.dag import Dag
from lurking.graph.structure_priors import StructurePrior
from lurking.io.models_file import parse_models, read_models
from lurking.models.prior import Prior
from lurking.report.prequential import plot_prequential
from lurking.report.profiles import check_picture, save_figure
from lurking.search.compare import compare as compare_structures
from lurking.search.comparison import Comparison
from lurking.search.posterior import WITHIN, StructurePosterior
from lurking.search.prequential import check_predictive
from lurking.search.prequential import prequential as growing_evidence
from lurking.search.rescoring import SAMPLED, SAMPLER

SHOWN = 20
ModelsOption = Annotated[Path | None, typer.Option("--models", help="File with one model per line, 'name: arrows'.")]
ModelTextsOption = Annotated[
    list[str] | None, typer.Option("--model", help="A model, 'name: arrows' or arrows; repeat.")
]
ScoresOption = Annotated[
    str, typer.Option("--scores", help=f"Names separated by commas, the first one ranks: {', '.join(score_names())}.")
]
StructurePriorOption = Annotated[
    str,
    typer.Option(
        "--structure-prior",
        help="p(model): uniform, edges:K (a factor K per edge), edge-probability:P, parameters:R (R per parameter), or "
        "hidden:K (K per hidden variable).",
    ),
]
RescoreOption = Annotated[
    bool | None,
    typer.Option(
        "--rescore/--no-rescore",
        help="Score contenders again by sampling (ais); by default only when bounds and exact values meet.",
    ),
]
WithinOption = Annotated[
    float,
    typer.Option("--within", parser=opt.real, metavar="X", help="Nats below the best at which contenders end."),
]
PrequentialOption = Annotated[
    Path | None,
    typer.Option(
        "--prequential", metavar="FILE", help="Draw which rows decide between the two best, as .png, .pdf, .svg."
    ),
]


def compare(
    data: opt.DataArgument,
    models: ModelsOption = None,
    model: ModelTextsOption = None,
    hidden: opt.HiddenOption = None,
    tied: opt.TiedOption = None,
    scores: ScoresOption = "vb,cs,bic",
    prior: opt.PriorOption = "1.0",
    structure_prior: StructurePriorOption = "uniform",
    rescore: RescoreOption = None,
    within: WithinOption = WITHIN,
    at: opt.AtOption = None,
    dimension: opt.DimensionOption = None,
    start: opt.StartOption = None,
    budget: opt.BudgetOption = None,
    basis: opt.BasisOption = None,
    path: opt.PathOption = None,
    target: opt.TargetOption = None,
    passes: opt.PassesOption = None,
    steps: opt.StepsOption = None,
    chains: opt.ChainsOption = None,
    point: opt.PointOption = None,
    seed: opt.SeedOption = 0,
    restarts: opt.RestartsOption = "auto",
    tournament: opt.TournamentOption = 0,
    max_iter: opt.MaxIterOption = 1000,
    tol: opt.TolOption = 1e-8,
    optimizer: opt.OptimizerOption = "em",
    prune: opt.PruneOption = True,
    weights: opt.WeightsOption = None,
    categorical: opt.CategoricalOption = None,
    continuous: opt.ContinuousOption = None,
    na_values: opt.NaValuesOption = None,
    columns: opt.ColumnsOption = None,
    drop: opt.DropOption = None,
    discretise: opt.DiscretiseOption = None,
    memory: opt.MemoryOption = None,
    workers: opt.WorkersOption = None,
    prequential: PrequentialOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Rank several structures by their evidence."""
    priors = opt.parse_priors(prior)
    names = opt.parse_scores(scores)
    given: dict[str, Any] = {"at": at, "dimension": dimension, "start": start, "budget": budget, "basis": basis}
    given |= {"path": path, "target": target, "passes": passes, "steps": steps, "chains": chains}
    given["point"] = point
    own = opt.of_scores([*names, *([] if rescore is False else [SAMPLER])], given)
    dags = _models(models, model)
    if prequential is not None:
        check_predictive(names[0])
        check_picture(prequential)
    reading: dict[str, Any] = {"columns": columns, "rules": discretise, "memory": memory, "unique": prequential is None}
    table = opt.read_data(data, weights, categorical, continuous, na_values, drop, **reading)
    choices: dict[str, Any] = {"prune": prune, "seed": seed, "restarts": restarts, "tournament": tournament}
    choices |= {"max_iter": max_iter, "tol": tol, "optimizer": optimizer, "hidden": opt.hidden_cardinalities(hidden)}
    choices |= {"tied": opt.tied_groups(tied)}
    ranking: dict[str, Any] = {"structure_prior": StructurePrior.parse(structure_prior), "within": within}
    ranking["rescore"] = "auto" if rescore is None else rescore
    results = _compared(dags, table, priors, workers, {"scores": names, **choices, **own, **ranking})
    _report(results, priors, {"data": out.data_content(data, table), "seed": seed} if json else None, len(dags))
    if prequential is not None:
        _draw(prequential, results[0][1], table, {**choices, **own, "prior": next(iter(priors.values()))})


def _report(
    results: list[tuple[str, Comparison]], priors: dict[str, Prior], about: dict[str, Any] | None, count: int
) -> None:
    """Print the ranking under every prior, as one JSON document where `about` says what it is about.

    count : how many models there are; fewer were finished after an interrupt.
    """
    if about is None:
        _print(results)
    else:
        about["winner_changes"] = len({each.posterior.best.name for _, each in results}) > 1
        out.print_json("compare", about | {"results": [_content(priors[word], each) for word, each in results]})
    last = results[-1][1]
    if last.interrupted:
        rest = "" if last.sampled or len(last.rows) < count else "; the work after their first fits was not"
        raise out.Interrupted(f"{len(last.rows)} of {count} models were finished{rest}")


def _compared(
    dags: dict[str, Dag], table: Table, priors: dict[str, Prior], workers: int | None, options: dict[str, Any]
) -> list[tuple[str, Comparison]]:
    """Compare under every prior, up to an interrupt."""
    results: list[tuple[str, Comparison]] = []
    with opt.work(workers) as pool:
        for word, chosen in priors.items():
            comparison = compare_structures(dags, table, prior=chosen, **options, **pool)
            results.append((word, comparison))
            if comparison.interrupted:
                break
    return results


def _draw(path: Path, comparison: Comparison, table: Table, options: dict[str, Any]) -> None:
    """Write the picture of the two best models by the first score, rows in the order of the file.

    Equal rows must not have been merged on reading.
    """
    score = comparison.scores[0]
    best = comparison[score].ranked()[:2]
    if len(best) < 2:
        raise OptionError("--prequential draws two models against each other, and there is only one; give another")
    models = {model.name: model.dag for model in best}
    foreign = {option for name in score_names() for option in get_score(name).options} - set(get_score(score).options)
    known = {name: value for name, value in options.items() if name not in foreign and name != "hidden"}
    save_figure(plot_prequential(growing_evidence(models, table, score=score, **known)), str(path))
    typer.echo(f"lurking: picture written to {path}", err=True)


def _print(results: list[tuple[str, Comparison]]) -> None:
    for word, comparison in results:
        print_comparison(f"prior {word}", comparison)
    if len(results) > 1:
        out.say(winners_in_words(results))


def _models(path: Path | None, texts: list[str] | None) -> dict[str, Dag]:
    models: dict[str, Dag] = {}
    if path is not None:
        models |= read_models(path)
    for text in texts or []:
        for name, dag in parse_models(text, f"--model {text!r}").items():
            if name in models:
                raise OptionError(f"the model name {name!r} is used twice; names must differ")
            models[name] = dag
    if not models:
        raise OptionError("no model was given; use --models FILE or --model 'name: arrows'")
    return models


def print_comparison(title: str, comparison: Comparison) -> None:
    """Print the models, most probable on top, by sampled evidence where there is any, else by the first score."""
    posterior = comparison.posterior
    ranked, ranges = posterior.ranked(), _ranges(posterior)
    rows_by_name = {row.name: row for row in comparison.rows}
    shown = [rows_by_name[candidate.name] for candidate in ranked[:SHOWN]]
    optional = {
        "effective": any(row.is_deficient for row in shown),
        "prior": not comparison.has_equal_priors,
        "95 % range": bool(ranges),
        SAMPLED: bool(comparison.sampled),
    }
    named = {
        "model": [row.name for row in shown],
        "d": [str(row.dimension) for row in shown],
        "effective": [row.effective_in_words for row in shown],
        "prior": [out.probability(candidate.prior) for candidate in ranked[:SHOWN]],
        "p(model)": [out.probability(candidate.probability) for candidate in ranked[:SHOWN]],
        "95 % range": [ranges.get(row.name, "") for row in shown],
        "ln B": [out.number(c.evidence.log_z - ranked[0].evidence.log_z, 2) for c in ranked[:SHOWN]],
        SAMPLED: [_with_error(c.evidence) if c.is_contending else "-" for c in ranked[:SHOWN]],
    }
    columns = [(name, cells) for name, cells in named.items() if optional.get(name, True)]
    for score in comparison.scores:
        columns.append((score, [_with_error(row.evidences[score]) for row in shown]))
        if not comparison.sampled:
            columns.append(("+ ln S", [out.number(row.evidences[score].corrected, 2) for row in shown]))
    heading = f"{title}: ln p(data | model) in nats; p(model) by {posterior.score}"
    heading += "" if str(comparison.structure_prior) == "uniform" else f", structure prior {comparison.structure_prior}"
    if comparison.unsettled:
        columns.append(("starts at best", [row.starts_in_words for row in shown]))
    rows = zip(*(cells for _, cells in columns), strict=True)
    out.print_table(heading, [name for name, _ in columns], [list(row) for row in rows])
    if len(ranked) > SHOWN:
        out.say(f"… and {len(ranked) - SHOWN} more (--json has them all)")
    if len(ranked) > 1:
        out.say(str(posterior.bayes_factor(ranked[0].name, ranked[1].name)))
    for note in comparison.warnings:
        out.warn(note)


def _with_error(evidence: Evidence) -> str:
    return evidence.with_error(2)


def _ranges(posterior: StructurePosterior) -> dict[str, str]:
    """Return {model: range of its probability} where sampled values leave one, else nothing."""
    if all(candidate.evidence.nominal_error is None for candidate in posterior):
        return {}
    pairs = zip(posterior, posterior.ranges, strict=True)
    return {c.name: f"{out.probability(low)}–{out.probability(high)}" for c, (low, high) in pairs}


def winners_in_words(results: list[tuple[str, Comparison]]) -> str:
    """Say whether the most probable model is the same under all priors over the parameters."""
    words_of: dict[str, list[str]] = {}
    for word, comparison in results:
        words_of.setdefault(comparison.posterior.best.name, []).append(word)
    if len(words_of) == 1:
        return f"{next(iter(words_of))!r} is the most probable model under all {len(results)} priors"
    listed = "; ".join(f"{name!r} under {', '.join(words)}" for name, words in words_of.items())
    return f"the most probable model depends on the prior: {listed}"


def _content(prior: Prior, comparison: Comparison) -> dict[str, object]:
    posteriors = {score: comparison[score] for score in comparison.scores}
    ranking, ranges = comparison.posterior, comparison.posterior.ranges
    return {
        "prior": prior.describe(),
        "structure_prior": str(comparison.structure_prior),
        "ranked_by": ranking.score,
        "models": [
            {
                "name": row.name,
                **out.model_content(row.dag, row.dimension, row.effective_dimension),
                "prior": candidate.prior,
                "probability": candidate.probability,
                "probability_range": [float(low), float(high)],
                "log_bayes_factor": candidate.evidence.log_z - ranking.best.evidence.log_z,
                "contends": candidate.is_contending,
                "settled": row.is_settled,
                "sampled": out.evidence_content(candidate.evidence) if row.name in comparison.sampled else None,
                "scores": [
                    {
                        **out.evidence_content(row.evidences[score]),
                        "probability": posteriors[score][row.name].probability,
                        "corrected_probability": posteriors[score][row.name].corrected_probability,
                    }
                    for score in comparison.scores
                ],
            }
            for row, candidate, (low, high) in zip(comparison.rows, ranking, ranges, strict=True)
        ],
        "duplicates": [list(group) for group in comparison.duplicates],
        "warnings": list(comparison.warnings),
        "interrupted": comparison.interrupted,
    }
