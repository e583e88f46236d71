"""`lurking score`: the evidence for one structure, by every score asked for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.evidence.api import Scores
from lurking.evidence.api import score as score_structure


def score(
    data: opt.DataArgument,
    model: opt.ModelOption,
    hidden: opt.HiddenOption = None,
    scores: Annotated[str, typer.Option("--scores", help="Names separated by commas.")] = "bic,cs,vb",
    prior: opt.PriorOption = "1.0",
    at: Annotated[
        str | None, typer.Option("--at", help="Point estimate behind bic, cs, …: map, map-probability, ml.")
    ] = None,
    start: Annotated[str | None, typer.Option("--start", help="Start of vb: prior or map.")] = None,
    budget: Annotated[int | None, typer.Option("--budget", help="Count tables that exact may hold.")] = None,
    seed: opt.SeedOption = 0,
    restarts: opt.RestartsOption = 10,
    tournament: opt.TournamentOption = 0,
    max_iter: opt.MaxIterOption = 1000,
    tol: opt.TolOption = 1e-8,
    prune: opt.PruneOption = True,
    weights: opt.WeightsOption = None,
    categorical: opt.CategoricalOption = None,
    continuous: opt.ContinuousOption = None,
    na_values: opt.NaValuesOption = None,
    drop: opt.DropOption = None,
    workers: opt.WorkersOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Say how much evidence the data hold for one structure: ln p(data | structure) by several scores."""
    priors = opt.parse_priors(prior)
    names = opt.parse_scores(scores)
    dag = opt.parse_model(model, hidden)
    table = opt.read_data(data, weights, categorical, continuous, na_values, drop)
    own = {name: value for name, value in (("at", at), ("start", start), ("budget", budget)) if value is not None}
    results: list[tuple[str, Scores]] = []
    with opt.work(workers) as pool:
        for word, chosen in priors.items():
            evidences = score_structure(
                dag,
                table,
                names,
                prior=chosen,
                prune=prune,
                seed=seed,
                restarts=restarts,
                tournament=tournament,
                max_iter=max_iter,
                tol=tol,
                **own,
                **pool,
            )
            results.append((word, evidences))
    problem = results[0][1].problem
    if json:
        out.print_json(
            "score",
            {
                "data": out.data_content(data, table),
                "model": out.model_content(problem.full_dag, problem.dimension),
                "seed": seed,
                "results": [
                    {
                        "prior": evidences.problem.prior.describe(),
                        "scores": [out.evidence_content(e) for e in evidences],
                    }
                    for _, evidences in results
                ],
            },
        )
        return
    out.say(f"{problem.full_dag}   ({problem.dimension} parameters, n = {table.n:g})")
    for word, evidences in results:
        _print(word, evidences)


def _print(word: str, evidences: Scores) -> None:
    rows: list[list[Any]] = [
        [
            e.method,
            e.kind.value,
            out.number(e.log_z),
            out.number(e.log_aliases),
            out.number(e.corrected),
            e.status.name.lower(),
        ]
        for e in evidences
    ]
    out.print_table(
        f"ln p(data | structure) in nats, prior {word}; higher is better",
        ["score", "kind", "ln p", "ln S", "ln p + ln S", "status"],
        rows,
        left=2,
    )
