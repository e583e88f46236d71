"""`lurking search`: the structure that the data hold most evidence for, with hidden variables."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.cli.interrupts import noted_in
from lurking.cli.search_output import print_search, result_value, search_content
from lurking.errors import DataError, OptionError
from lurking.graph.structure_priors import StructurePrior
from lurking.learn.loop import Status
from lurking.models.prior import BDeuPrior, Prior
from lurking.report.profiles import check_picture, save_figure
from lurking.report.structures import plot_structure
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Bar
from lurking.runtime.store import Store
from lurking.search.api import search as search_structures

ArcsOption = list[str] | None


HiddenOption = Annotated[
    str,
    typer.Option("--hidden", metavar="N", help="The most hidden variables: auto (at most 3) or a whole number."),
]
PriorOption = Annotated[
    str,
    typer.Option(
        "--prior",
        help="λ for every entry (score bd), or bdeu:ESS, or jeffreys; lk.search without hidden variables: bdeu:1.",
    ),
]
MaxParentsOption = Annotated[
    int | None, typer.Option("--max-parents", parser=opt.whole, metavar="N", help="The most parents of a variable.")
]
MaxStatesOption = Annotated[
    int, typer.Option("--max-states", parser=opt.whole, metavar="N", help="The most states of a hidden variable.")
]
RequiredOption = Annotated[
    ArcsOption, typer.Option("--required", metavar="ARCS", help="Arcs that must be there, 'a -> b c'; repeat.")
]
ForbiddenOption = Annotated[
    ArcsOption, typer.Option("--forbidden", metavar="ARCS", help="Arcs that must not be there; repeat.")
]
TierOption = Annotated[
    ArcsOption,
    typer.Option("--tier", metavar="COLUMNS", help="Columns by commas; no arc leads to an earlier tier; repeat."),
]
IndicatorsOption = Annotated[
    bool, typer.Option("--indicators", help="Columns are parents of nothing: only hidden variables join them.")
]
StructurePriorOption = Annotated[
    str | None,
    typer.Option("--structure-prior", metavar="P", help="p(structure) as in compare; by default hidden:1/columns."),
]
RestartsOption = Annotated[
    int | None,
    typer.Option(
        "--restarts", parser=opt.whole, metavar="N", help="Climbs after the first, instead of an exact search."
    ),
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option("--time-limit", parser=opt.real, metavar="SECONDS", help="Return the best so far after this."),
]
TargetOption = Annotated[
    float, typer.Option("--target", parser=opt.real, metavar="X", help="Standard error of sampled evidence.")
]
FolderOption = Annotated[
    Path | None, typer.Option("--out", help="Folder for the picture and the evidence found so far.")
]


def search(
    data: opt.DataArgument,
    hidden: HiddenOption = "auto",
    prior: PriorOption = "1.0",
    max_parents: MaxParentsOption = None,
    max_states: MaxStatesOption = 8,
    required: RequiredOption = None,
    forbidden: ForbiddenOption = None,
    tier: TierOption = None,
    indicators: IndicatorsOption = False,
    structure_prior: StructurePriorOption = None,
    restarts: RestartsOption = None,
    time_limit: TimeLimitOption = None,
    target: TargetOption = 0.3,
    seed: opt.SeedOption = 0,
    weights: opt.WeightsOption = None,
    categorical: opt.CategoricalOption = None,
    continuous: opt.ContinuousOption = None,
    na_values: opt.NaValuesOption = None,
    columns: opt.ColumnsOption = None,
    drop: opt.DropOption = None,
    discretise: opt.DiscretiseOption = None,
    memory: opt.MemoryOption = None,
    workers: opt.WorkersOption = None,
    folder: FolderOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Find the structure with the most evidence, hidden variables included.

    It is kept when another one is ahead by no more than two standard errors; a * marks it among those judged.
    """
    choices: dict[str, Any] = {"hidden": _limit(hidden), "max_parents": _parents(max_parents), "max_states": max_states}
    choices |= {"required": "; ".join(required or []), "forbidden": "; ".join(forbidden or [])}
    choices |= {"tiers": [opt.listed([each]) for each in tier or []], "restarts": restarts, "target": target}
    choices |= {"indicators": indicators, "structure_prior": _parsed(structure_prior)}
    choices |= {"time_limit": _seconds(time_limit), "seed": seed, "workers": workers, **_prior(opt.parse_prior(prior))}
    picture = _place(folder)
    reading: dict[str, Any] = {"columns": columns, "rules": discretise, "memory": memory}
    table = opt.read_data(data, weights, categorical, continuous, na_values, drop, **reading)
    keeping = nullcontext() if folder is None else Store(folder / "search.sqlite")
    stop = StopFlag()
    with keeping as store, Bar() as bar, noted_in(stop):
        result = search_structures(table, store=store, progress=bar, stop=stop, **choices)
    if json:
        about = {"data": out.data_content(data, table), "seed": seed}
        about |= {"prior": choices["prior"].describe(), "picture": None if picture is None else str(picture)}
        out.print_json("search", about | search_content(result, table, choices["hidden"] != 0))
    else:
        print_search(result, table, prior, choices["hidden"] != 0)
    if picture is not None:
        title = f"ln p(data | structure) = {result_value(result)}"
        if result.cpdag.undirected:
            title += "\nlines without a head: either direction"
        save_figure(plot_structure(result.best, title, lines=result.cpdag.undirected), str(picture))
        if not json:
            out.say(f"picture: {picture}")
    if result.status is Status.INTERRUPTED:
        kept = "" if folder is None else "; the same command goes on from what is kept"
        raise out.Interrupted(f"this is the best structure so far{kept}")


def _limit(text: str) -> int | str:
    """Return "auto" or the number of --hidden."""
    if text.strip().lower() == "auto":
        return "auto"
    if not opt.WHOLE_NUMBER.fullmatch(text.strip()):
        raise OptionError(f"--hidden {text!r} is neither auto nor a whole number; write --hidden auto or --hidden 2")
    if int(text) < 0:
        raise OptionError(f"--hidden {text} is below 0; write --hidden 0 for a search without hidden variables")
    return int(text)


def _parents(value: int | None) -> int | None:
    """Refuse a limit with which no arc is possible."""
    if value is not None and value < 1:
        raise OptionError(f"--max-parents {value} leaves no arc to search for; it must be at least 1")
    return value


def _parsed(text: str | None) -> StructurePrior | None:
    return None if text is None else StructurePrior.parse(text)


def _seconds(value: float | None) -> float | None:
    if value is not None and not value > 0.0:
        raise OptionError(f"--time-limit {value:g} leaves no time; it must be a number of seconds above 0")
    return value


def _prior(prior: Prior) -> dict[str, Any]:
    """Return the score that goes with a prior, and the prior."""
    return {"score": "bdeu" if isinstance(prior, BDeuPrior) else "bd", "prior": prior}


def _place(folder: Path | None) -> Path | None:
    """Return where the picture of the best structure will be, in a folder that is made where it is not there."""
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make {str(folder)!r}: {error.strerror}; choose another folder with --out") from None
    path = folder / "structure.png"
    check_picture(path)
    return path
