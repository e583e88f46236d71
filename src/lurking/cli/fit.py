"""`lurking fit`: the parameters of one structure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.data.messages import plain_count
from lurking.inference.dimension.identifiability import unidentified_note
from lurking.inference.goodness import Goodness
from lurking.inference.hidden_tables import HiddenTable, hidden_configurations, hidden_tables, order_by_size
from lurking.inference.network import Network
from lurking.inference.problem import Problem
from lurking.io.networks import write_network
from lurking.learn.api import fit as fit_structure
from lurking.learn.fit import Fit
from lurking.learn.loop import Status
from lurking.report.profiles import profiles

SHOWN = 20
"""Parent configurations of a hidden variable that are printed; JSON has all of them."""


def fit(
    data: opt.DataArgument,
    model: opt.ModelOption,
    hidden: opt.HiddenOption = None,
    tied: opt.TiedOption = None,
    method: Annotated[str, typer.Option("--method", help="vb, map, map-probability or ml.")] = "vb",
    prior: opt.OnePriorOption = "1.0",
    seed: opt.SeedOption = 0,
    restarts: opt.RestartsOption = "auto",
    tournament: opt.TournamentOption = 0,
    max_iter: opt.MaxIterOption = 1000,
    tol: opt.TolOption = 1e-8,
    optimizer: opt.OptimizerOption = "em",
    prune: opt.PruneOption = True,
    destination: Annotated[Path | None, typer.Option("--out", help="Write the model here (JSON, or BIF).")] = None,
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
    """Fit one structure; report its hidden states and the fit."""
    chosen = opt.parse_prior(prior)
    dag = opt.parse_model(model, hidden)
    table = opt.read_data(
        data, weights, categorical, continuous, na_values, drop, columns=columns, rules=discretise, memory=memory
    )
    with opt.work(workers) as pool:
        result = fit_structure(
            dag,
            table,
            method=method,
            prior=chosen,
            prune=prune,
            tied=opt.tied_groups(tied),
            seed=seed,
            restarts=restarts,
            tournament=tournament,
            max_iter=max_iter,
            tol=tol,
            optimizer=optimizer,
            **pool,
        )
    if destination is not None:
        write_network(result.network, destination)
    if json:
        out.print_json("fit", {"data": out.data_content(data, table), **fit_content(result)})
    else:
        print_fit(result)
        if destination is not None:
            out.say(f"model written to {destination}")
    if result.status is Status.INTERRUPTED:
        raise out.Interrupted("the best point so far is reported")


def fit_content(result: Fit) -> dict[str, object]:
    """Describe a fit in a JSON document; statistics are null when there are too many rows to merge."""
    statistics = None if has_too_many_rows(result) else result.statistics
    problem = result.problem
    return {
        "model": out.model_content(problem.full_dag, problem.dimension, problem.cheap_effective_dimension),
        "tied": [list(group) for group in problem.tied],
        "method": result.method,
        "objective": result.objective,
        "status": result.status.name,
        "status_sentence": result.status.sentence,
        "n_iter": result.n_iter,
        "seed": result.seed if isinstance(result.seed, int) else None,
        "spread": {
            "objectives": result.spread.objectives,
            "n_at_best": result.spread.n_at_best,
            "settled": result.spread.is_settled,
        },
        "identification": unidentified_note(problem.dimension, problem.cheap_effective_dimension),
        "issues": [str(issue) for issue in result.issues],
        "class_sizes": result.network.class_sizes(),
        "tables": result.network.tables,
        "hidden_tables": {name: table_content(table) for name, table in tables_of(result).items()},
        "alpha": dict(result.posterior) if result.posterior is not None else None,
        "statistics": statistics
        and {
            "loglik": statistics.loglik,
            "aic": statistics.aic,
            "bic": statistics.bic,
            "g_squared": statistics.g_squared,
            "x_squared": statistics.x_squared,
            "degrees_of_freedom": statistics.degrees_of_freedom,
            "p_value": statistics.p_value,
            "n_complete": statistics.n_complete,
            "entropy_r2": statistics.entropy_r2,
            "bivariate_residuals": [[r.first, r.second, r.value] for r in statistics.bivariate_residuals],
            "conditional": conditional_content(statistics),
        },
    }


def conditional_content(statistics: Goodness) -> dict[str, object] | None:
    """Describe the log-likelihood given the covariates in a JSON document; None without covariates."""
    conditional = statistics.conditional
    if conditional is None:
        return None
    return {
        "given": list(conditional.given),
        "loglik": conditional.loglik,
        "d": conditional.dimension,
        "aic": conditional.aic,
        "bic": conditional.bic,
        "dependent_covariates": [[r.first, r.second, r.value] for r in statistics.dependent_covariates],
    }


def print_fit(result: Fit) -> None:
    """Print a fit for people."""
    out.say(str(result).partition("\nnote: ")[0])
    problem = result.problem
    if note := unidentified_note(problem.dimension, problem.cheap_effective_dimension):
        out.say(f"note: {note}")
    try:
        print_states(result)
        out.say()
        if has_too_many_rows(result):
            out.say("the rows are too many to be merged: fit statistics, which need the distinct ones, are left out")
        else:
            print_statistics(result)
    except KeyboardInterrupt:
        raise out.Interrupted("the fit was finished, its statistics were not") from None
    for issue in result.issues:
        out.warn(str(issue))
    warn_of_empty_rows(problem)


def print_states(result: Fit) -> None:
    """Print the profile of every hidden variable, and its table given its parents."""
    tables = tables_of(result)
    for name in result.network.dag.hidden:
        print_profiles(result.network, name)
        if name in tables:
            print_hidden_table(result.network, tables[name])


def tables_of(result: Fit) -> dict[str, HiddenTable]:
    """Return the tables of hidden variables with parents, with the rows behind each configuration."""
    network, problem = result.network, result.problem
    if not has_too_many_rows(result):
        return network.hidden_tables(problem.table)
    if problem.tied:
        # The counts of the fit are those of all tied families together.
        return network.hidden_tables()
    counts = problem.unpruned(result.counts, np.zeros(network.layout.size))
    return hidden_tables(network, counts, level=0.95)


def table_content(table: HiddenTable) -> dict[str, object]:
    """Describe the table of a hidden variable in a JSON document; n is null where it is not known."""
    expected, lower, upper = table.expected_rows, table.lower, table.upper
    return {
        "parents": list(table.parents),
        "rows": [
            {
                "configuration": list(levels),
                "n": None if expected is None else float(expected[row]),
                "p": table.probabilities[row],
                "lower": None if lower is None else lower[row],
                "upper": None if upper is None else upper[row],
            }
            for row, levels in enumerate(table.configurations)
        ],
    }


def print_hidden_table(network: Network, table: HiddenTable) -> None:
    """Print p(state | parents) with the expected rows n of each configuration, and intervals after a VB fit."""
    order = order_by_size(network, table.name)
    per_group = hidden_configurations(network, table.name)
    shown = per_group * max(1, SHOWN // per_group)
    header = [*table.parents, "n", *(f"{table.name}={state}" for state in order)]
    rows = []
    for row, levels in enumerate(table.configurations[:shown]):
        n = "?" if table.expected_rows is None else out.number(float(table.expected_rows[row]), 1)
        rows.append([*map(str, levels), n, *(_cell(table, row, state) for state in order)])
    title = f"p({table.name} | {', '.join(table.parents)}), n = expected rows"
    if table.lower is not None:
        title += ", with variational 95 % credible intervals (too narrow if states overlap)"
    out.say()
    out.print_table(title, header, rows, left=len(table.parents))
    if len(table.configurations) > shown:
        out.say(f"… and {len(table.configurations) - shown} more (--json has them all)")


def _cell(table: HiddenTable, row: int, state: int) -> str:
    text = out.number(float(table.probabilities[row, state]))
    if table.lower is None or table.upper is None:
        return text
    return f"{text} [{out.number(float(table.lower[row, state]))}, {out.number(float(table.upper[row, state]))}]"


def has_too_many_rows(result: Fit) -> bool:
    """Whether the different rows are so many that statistics of their table would take long and tell nothing."""
    return result.problem.engine.is_in_blocks


def print_statistics(result: Fit) -> None:
    """Print how well the fit explains the rows, and which pairs of columns worst."""
    statistics = result.statistics
    where = {"vb": "the posterior mean", "ml": "the ML estimate"}.get(result.method, "the MAP estimate")
    out.say(f"at {where}: {statistics}")
    for name, value in statistics.entropy_r2.items():
        out.say(f"entropy R² of {name} = {value:.3f}")
    worst = [r for r in statistics.bivariate_residuals[:3] if r.value > 1.0]
    if worst:
        listed = ", ".join(f"{r.first}–{r.second} {r.value:.2f}" for r in worst)
        out.say(f"pairs that the model explains worst (bivariate residual): {listed}")
    if dependent := statistics.dependent_covariates:
        pairs = ", ".join(f"{r.first}–{r.second}" for r in dependent[:3])
        out.say(
            f"note: the data relate covariates more strongly than the model: {pairs}; the sizes of states, G² and the "
            "joint log-likelihood suffer from it; add edges between covariates"
        )


def print_profiles(network: Network, hidden: str) -> None:
    """Print what each state of a hidden variable says about its parents and every observed variable it can reach."""
    order = order_by_size(network, hidden)
    sizes = network.joint([hidden])
    shapes = profiles(network, hidden)
    told = {*network.dag.descendants([hidden]), *network.dag.parents(hidden)}
    header = ["variable", "level", *(f"{hidden}={state}" for state in order)]
    rows = [["(size)", "", *(out.probability(float(sizes[state])) for state in order)]]
    for name in network.dag.observed:
        if name not in told:
            continue
        for k, level in enumerate(network.levels[name]):
            rows.append(
                [name if k == 0 else "", str(level), *(out.number(float(shapes[name][state, k])) for state in order)]
            )
    out.say()
    out.print_table(f"states of {hidden}, largest first: p(level | state)", header, rows, left=2)


def warn_of_empty_rows(problem: Problem) -> None:
    """Tell of rows that say nothing about the model."""
    if problem.n_empty:
        empty, whole = plain_count(problem.n_empty), plain_count(problem.n)
        out.warn(f"{empty} of {whole} rows have no observed cell of the model; they count in n")
