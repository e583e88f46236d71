"""`lurking score`: the evidence for one structure, by every score asked for."""

from __future__ import annotations

from typing import Annotated

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.cli.fit import warn_of_empty_rows
from lurking.data.messages import plain_count
from lurking.errors import TooLarge, UndefinedScore
from lurking.evidence.api import split_options
from lurking.evidence.base import Evidence
from lurking.evidence.evaluation import evaluate, get_score, score_names
from lurking.evidence.limits import refuse_inapplicable
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions


def score(
    data: opt.DataArgument,
    model: opt.ModelOption,
    hidden: opt.HiddenOption = None,
    tied: opt.TiedOption = None,
    scores: Annotated[
        str, typer.Option("--scores", help=f"Names separated by commas: {', '.join(score_names())}.")
    ] = "bic,cs,vb",
    prior: opt.PriorOption = "1.0",
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
    json: opt.JsonOption = False,
) -> None:
    """Score one structure: ln p(data | structure)."""
    priors = opt.parse_priors(prior)
    names = opt.parse_scores(scores)
    given = {"at": at, "dimension": dimension, "start": start, "budget": budget, "basis": basis, "path": path}
    own = opt.of_scores(
        names, given | {"target": target, "passes": passes, "steps": steps, "chains": chains, "point": point}
    )
    dag = opt.parse_model(model, hidden)
    table = opt.read_data(
        data, weights, categorical, continuous, na_values, drop, columns=columns, rules=discretise, memory=memory
    )
    results: list[Result] = []
    with opt.work(workers) as pool:
        choices = {"seed": seed, "restarts": restarts, "tournament": tournament, "max_iter": max_iter, "tol": tol}
        _, options, _ = split_options({**choices, "optimizer": optimizer, **pool})
        for word, chosen in priors.items():
            results.append(Result(word, Problem(dag, table, chosen, prune=prune, tied=opt.tied_groups(tied))))
            results[-1].add_all(names, options, own)
    _check_any(results, options.stop.is_set)
    if json:
        out.print_json("score", {"data": out.data_content(data, table), **_content(results, seed)})
    else:
        _print(results)
    _report_rest(results, len(names) * len(priors), options)


def _check_any(results: list[Result], is_interrupted: bool) -> None:
    """Raise the first refusal, or the interrupt, when no score has a value."""
    if not any(result.evidences for result in results):
        raise KeyboardInterrupt if is_interrupted else next(iter(results[0].refusals.values()))


def _content(results: list[Result], seed: int) -> dict[str, object]:
    """Describe the model and its results in a JSON document."""
    problem = results[0].problem
    return {
        "model": out.model_content(problem.full_dag, problem.dimension, problem.cheap_effective_dimension),
        "tied": [list(group) for group in problem.tied],
        "seed": seed,
        "results": [result.content() for result in results],
    }


def _print(results: list[Result]) -> None:
    problem = results[0].problem
    out.say(f"{problem.full_dag}   ({problem.parameters_in_words}, n = {plain_count(problem.n)})")
    for result in results:
        result.show()


def _report_rest(results: list[Result], asked: int, options: FitOptions) -> None:
    """Say on stderr which scores have no value, and whether the user stopped the work."""
    problem = results[0].problem
    for name in problem.full_dag.barren:
        out.warn(f"{name}: no observed variable depends on it, so the data say nothing about it; check the arrows")
    warn_of_empty_rows(problem)
    for result in results:
        for name, refusal in result.refusals.items():
            out.warn(f"{name} was left out: {refusal}")
        for evidence in result.evidences:
            if evidence.status in DOUBTFUL:
                out.warn(f"{evidence.method} is not to be trusted here: {DOUBTFUL[evidence.status]}")
            elif options.is_auto and evidence.starts is not None and not evidence.starts.is_settled:
                out.warn(f"{evidence.method} is not settled: {evidence.starts.advice}")
    if options.stop.is_set:
        evidences = [evidence for result in results for evidence in result.evidences]
        partial = [evidence.method for evidence in evidences if evidence.status is Status.INTERRUPTED]
        rest = f"; the value of {', '.join(partial)} rests on what was sampled until then" if partial else ""
        raise out.Interrupted(f"{len(evidences) - len(partial)} of {asked} scores were finished{rest}")


DOUBTFUL = {
    Status.UNTRUSTED: "its diagnostics disagree",
    Status.SINGULAR: "the posterior is no peak in some directions",
}
Refusal = UndefinedScore | TooLarge


def evaluate_or_refuse(
    problem: Problem, name: str, names: list[str], options: FitOptions, own: dict[str, object]
) -> Evidence | Refusal:
    """Return the evidence by one of the scores, or why it has no value here; the others need not suffer for it."""
    known = get_score(name).own_options(own, map(get_score, names))
    try:
        return refuse_inapplicable(evaluate(problem, [name], options, known)[name])
    except (UndefinedScore, TooLarge) as refusal:
        return refusal


class Result:
    """The scores under one prior, and those that have no value."""

    def __init__(self, word: str, problem: Problem) -> None:
        self.word, self.problem = word, problem
        self.evidences: list[Evidence] = []
        self.refusals: dict[str, Refusal] = {}

    def add_all(self, names: list[str], options: FitOptions, own: dict[str, object]) -> None:
        """Take the outcomes of all scores, up to an interrupt."""
        for name in names:
            if not options.stop.is_set:
                self.add(name, evaluate_or_refuse(self.problem, name, names, options, own))

    def add(self, name: str, outcome: Evidence | Refusal) -> None:
        """Take the outcome of one score."""
        if isinstance(outcome, Evidence):
            # A sampled value stands on the chains that were finished; a climb that was cut short is none.
            if outcome.status is not Status.INTERRUPTED or outcome.nominal_error is not None:
                self.evidences.append(outcome)
        else:
            self.refusals[name] = outcome

    def content(self) -> dict[str, object]:
        """Describe the result in a JSON document."""
        return {
            "prior": self.problem.prior.describe(),
            "scores": [out.evidence_content(evidence) for evidence in self.evidences],
            "left_out": {name: out.in_command_words(str(refusal)) for name, refusal in self.refusals.items()},
        }

    def show(self) -> None:
        """Print the result as a table."""
        rows = [
            [
                evidence.method,
                evidence.kind.value,
                out.number(evidence.log_z),
                _error(evidence),
                out.number(evidence.log_aliases),
                out.number(evidence.corrected),
                evidence.status.name.lower(),
            ]
            for evidence in self.evidences
        ]
        title = f"ln p(data | structure) in nats, prior {self.word}; higher is better"
        header = ["score", "kind", "ln p", "±", "ln S", "ln p + ln S", "status"]
        if not any(_error(evidence) for evidence in self.evidences):
            header, rows = header[:3] + header[4:], [row[:3] + row[4:] for row in rows]
        out.print_table(title, header, rows, left=2)


def _error(evidence: Evidence) -> str:
    """Return the standard error as a cell of a table, `?` for a value that is not trusted."""
    if not evidence.is_trusted:
        return "?"
    return "" if evidence.std_error is None else out.number(evidence.std_error)
