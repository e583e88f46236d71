"""Options that several verbs share, and what they stand for."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lurking.cli import output as out
from lurking.cli.interrupts import noted_in
from lurking.data.discretise import METHODS, discretise
from lurking.data.files import read
from lurking.data.intervals import interval_bounds
from lurking.data.messages import plain_count
from lurking.data.table import Table
from lurking.errors import LurkingWarning, OptionError, PriorError, StructureError, nearest_hint
from lurking.evidence.evaluation import get_score
from lurking.graph.dag import Dag
from lurking.inference.binding import marked
from lurking.io.networks import is_bif, read_network
from lurking.learn.options import AUTO
from lurking.models.prior import Prior
from lurking.runtime.executor import StopFlag, worker_count
from lurking.runtime.progress import Bar
from lurking.types import Level

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
LONG_NUMBER = re.compile(r"[+-]?[0-9]{19,4000}")
# The column ends at the first colon that leaves a rule behind it, so names with colons are possible.
CUTTING_RULE = re.compile(
    r"(?P<column>.+?):"
    r"(?:(?P<method>quantile|width)(?::(?P<states>[^:]*))?|evidence(?::(?P<target>.*))?|(?P<numbers>[^:]*))"
)
EVERY_COLUMN = "*"


def whole(text: str | int) -> int:
    """Read a whole number; defaults come as numbers already."""
    if not WHOLE_NUMBER.fullmatch(str(text).strip()):
        is_long = LONG_NUMBER.fullmatch(str(text).strip()) is not None
        raise typer.BadParameter(
            f"{_clip(str(text))!r} " + ("has more than 18 digits" if is_long else "is not a whole number")
        )
    return int(text)


def starts_number(text: str | int) -> str | int:
    """Read a number of starts, or the word that leaves it open."""
    if str(text).strip().lower() == AUTO:
        return AUTO
    try:
        return whole(text)
    except typer.BadParameter as problem:
        raise typer.BadParameter(f"{problem.message}; give a number of starts or {AUTO!r}") from None


def seed_number(text: str | int) -> int:
    """Read a seed: a whole number of any length that a command line can hold."""
    if LONG_NUMBER.fullmatch(str(text).strip()):
        return int(text)
    return whole(text)


def real(text: str | float) -> float:
    """Read a number; defaults come as numbers already."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None


DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Table: .csv, .tsv, .json, .parquet, .arrow; empty cells are fine.")
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model written by 'lurking fit --out', or a network in BIF.")
]
ModelOption = Annotated[
    str,
    typer.Option("--model", help="Arrows, e.g. 's1[2] -> y1 y2; s2[2] -> y2 y3'; '*' is every column. Or a BIF file."),
]
HiddenOption = Annotated[
    list[str] | None, typer.Option("--hidden", metavar="NAME:STATES", help="A hidden variable and its states; repeat.")
]
TiedOption = Annotated[
    list[str] | None,
    typer.Option("--tied", metavar="NAMES", help="Variables that share one table, as in y1,y2; repeat for others."),
]
WeightsOption = Annotated[str | None, typer.Option("--weights", metavar="COLUMN", help="How often each row counts.")]
CategoricalOption = Annotated[
    list[str] | None, typer.Option("--categorical", metavar="COLUMNS", help="Columns to read as categories.")
]
ContinuousOption = Annotated[
    list[str] | None, typer.Option("--continuous", metavar="COLUMNS", help="Columns to read as numbers.")
]
NaValuesOption = Annotated[
    list[str] | None, typer.Option("--na-values", metavar="TEXTS", help="Texts that mean an empty cell.")
]
ColumnsOption = Annotated[
    list[str] | None, typer.Option("--columns", metavar="COLUMNS", help="Keep only these columns (and the weights).")
]
DropOption = Annotated[list[str] | None, typer.Option("--drop", metavar="COLUMNS", help="Columns to leave out.")]
DiscretiseOption = Annotated[
    list[str] | None,
    typer.Option(
        "--discretise",
        metavar="COLUMN:RULE",
        help="Cut numbers into classes: age:4, age:width:5, bmi:18.5,25,30, dose:evidence, dose:evidence:TARGET, or "
        "'*:4' for every continuous column; repeat.",
    ),
]
PriorOption = Annotated[
    str,
    typer.Option("--prior", help="λ for every entry, or bdeu:ESS, or jeffreys; several by commas are reported apart."),
]
StartOption = Annotated[str | None, typer.Option("--start", help="Start of vb: prior (default) or map.")]
BudgetOption = Annotated[
    int | None, typer.Option("--budget", parser=whole, metavar="N", help="Count tables that exact may hold.")
]
BasisOption = Annotated[
    str | None, typer.Option("--basis", help="Coordinates of laplace: logit (default) or probability.")
]
PathOption = Annotated[
    str | None,
    typer.Option("--path", help="Path of ais: variational (default), prior, parameters or completions."),
]
TargetOption = Annotated[
    float | None,
    typer.Option("--target", parser=real, metavar="X", help="Standard error that ais goes on for (default 0.2)."),
]
PassesOption = Annotated[
    int | None,
    typer.Option(
        "--passes", parser=whole, metavar="N", help="Passes over the rows that ais may take (path variational)."
    ),
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", parser=whole, metavar="K", help="Temperatures of ais, at first.")
]
ChainsOption = Annotated[
    int | None,
    typer.Option(
        "--chains", parser=whole, metavar="G", help="Chains of a sampled score; for ais on all paths but variational."
    ),
]
PointOption = Annotated[
    str | None,
    typer.Option("--point", help="Point of chib: map (default), vb (variational mean) or draws (best Gibbs draw)."),
]
OnePriorOption = Annotated[str, typer.Option("--prior", help="λ for every entry, or bdeu:ESS, or jeffreys.")]
AtOption = Annotated[
    str | None, typer.Option("--at", help="Point estimate behind bic, cs, …: map (default), map-probability or ml.")
]
DimensionOption = Annotated[
    str | None, typer.Option("--dimension", help="d in the penalties of bic, …: standard (default) or effective.")
]
SeedOption = Annotated[int, typer.Option("--seed", parser=seed_number, metavar="N", help="Seed of all random numbers.")]
RestartsOption = Annotated[
    str,
    typer.Option(
        "--restarts",
        parser=starts_number,
        metavar="N",
        help="Number of starts, of which the best is kept, or auto (default): more until several agree.",
    ),
]
TournamentOption = Annotated[
    int,
    typer.Option(
        "--tournament",
        parser=whole,
        metavar="N",
        help="Copies of a knock-out of starts (64 in the literature) instead of restarts.",
    ),
]
MaxIterOption = Annotated[
    int, typer.Option("--max-iter", parser=whole, metavar="N", help="E-steps of a start at most.")
]
TolOption = Annotated[
    float, typer.Option("--tol", parser=real, metavar="X", help="Stop when a step gains less than this per row.")
]
OptimizerOption = Annotated[
    str, typer.Option("--optimizer", help="How climbs end: em (default), or lbfgs or cg, gradient ascent after EM.")
]
PruneOption = Annotated[bool, typer.Option("--prune/--no-prune", help="Leave out what has no observed descendant.")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", parser=whole, metavar="N", help="Threads; results do not depend on it.")
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Memory for the rows, e.g. 1GB; more of them are kept on disk."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def listed(values: list[str] | None) -> list[str]:
    """Return the values of a repeatable option, each of which may hold several separated by commas.

    One with a comma in it stands in double quotes, as in a CSV file.
    """
    rows = csv.reader(values or [], skipinitialspace=True)
    return [part.strip() for row in rows for part in row if part.strip()]


def tied_groups(values: list[str] | None) -> list[list[str]] | None:
    """Return the groups of --tied, one per use of the option."""
    return None if values is None else [[part.strip() for part in value.split(",") if part.strip()] for value in values]


def read_data(
    path: Path,
    weights: str | None,
    categorical: list[str] | None,
    continuous: list[str] | None,
    na_values: list[str] | None,
    drop: list[str] | None,
    *,
    columns: list[str] | None = None,
    rules: list[str] | None = None,
    memory: str | None = None,
    unique: bool = True,
    known_levels: Mapping[str, Sequence[Level]] | None = None,
) -> Table:
    """Read a table with the data options of the command line; `unique` keeps one copy of equal rows, weighted.

    Columns whose known levels are intervals are read as they are: the model cuts their numbers by itself.
    """
    cuttings = parse_cuttings(rules)
    known = dict(known_levels or {})
    kept = listed(columns)
    targets = [cutting.target for cutting in cuttings if cutting.target is not None]
    with warnings.catch_warnings(), Bar() as bar:
        for name in [name for name, levels in known.items() if interval_bounds(levels) is not None]:
            del known[name]
            # What is strange about a column without levels is not so about one that gets them from the model.
            warnings.filterwarnings("ignore", f"column {re.escape(repr(name))}", LurkingWarning)
        table = read(
            path,
            weights=weights,
            categorical=listed(categorical),
            continuous=listed(continuous),
            na_values=listed(na_values) or None,
            drop=listed(drop),
            columns=[*kept, *targets] if kept else None,
            unique=unique,
            known_levels=known or None,
            memory=memory,
            progress=bar,
        )
    if weights is not None and table.n < 1.0:
        out.warn(f"--weights {weights}: the weights sum to {plain_count(table.n)}, which is less than one row")
    # A target is left out last.
    for cutting in cuttings:
        table = cutting.apply(table, kept)
    if kept:
        table = table.select(kept)
    if table.is_on_disk:
        return table
    # Rows that differed only in what was cut or left out are equal now.
    return table.unique() if unique and (cuttings or kept) else table


@dataclass(frozen=True)
class Cutting:
    """What one --discretise says: which column, and the arguments of `discretise`."""

    column: str
    rule: int | str | tuple[float, ...]
    method: str = "quantile"
    target: str | None = None

    def apply(self, table: Table, kept: Sequence[str]) -> Table:
        """Return the table with the column cut, or with all that are still continuous and, if any are named, kept."""
        names = [self.column]
        if self.column == EVERY_COLUMN:
            candidates = [name for name in table.columns if name in kept or not kept]
            names = [name for name in candidates if not table[name].is_categorical and name != self.target]
        if not names:
            warnings.warn("--discretise: no column is continuous, so nothing was cut", LurkingWarning, stacklevel=2)
            return table
        return discretise(table, dict.fromkeys(names, self.rule), method=self.method, target=self.target)


def parse_cuttings(values: list[str] | None) -> list[Cutting]:
    """Read ``COLUMN:RULE`` texts; a comma separates cut points here, so an option holds one column only.

    The rule for every column comes last, so that it takes those without a rule of their own.
    """
    cuttings: list[Cutting] = []
    for value in values or []:
        cutting = parse_cutting(value)
        if any(cutting.column == other.column for other in cuttings):
            raise OptionError(f"--discretise has two rules for {cutting.column!r}; give each column one rule")
        cuttings.append(cutting)
    return sorted(cuttings, key=lambda cutting: cutting.column == EVERY_COLUMN)


def parse_cutting(text: str) -> Cutting:
    """Read one ``COLUMN:RULE``: a number of classes, quantile:N, width:N, cut points, evidence or evidence:TARGET."""
    found = CUTTING_RULE.fullmatch(text.strip())
    if found is None:
        raise _no_cutting(text, "no colon with a rule behind it")
    column, states, target = found["column"].strip(), found["states"], found["target"]
    if found["method"] and states is None:
        return Cutting(column, found["method"])
    if found["method"]:
        if not WHOLE_NUMBER.fullmatch(states.strip()):
            raise _no_cutting(text, f"{_clip(states)!r} is not a whole number")
        return Cutting(column, int(states), found["method"])
    if found["numbers"] is None:
        if target is not None and not target.strip():
            raise _no_cutting(text, "no column behind 'evidence:'")
        return Cutting(column, "evidence", target=target and target.strip())
    numbers = found["numbers"].strip()
    if WHOLE_NUMBER.fullmatch(numbers):
        return Cutting(column, int(numbers))
    try:
        cuts = tuple(float(part) for part in numbers.split(",") if part.strip())
    except ValueError:
        raise _no_cutting(text, f"{_clip(numbers)!r} is no rule{nearest_hint(numbers, METHODS)}") from None
    return Cutting(column, cuts)


def _no_cutting(text: str, why: str) -> OptionError:
    return OptionError(
        f"--discretise {_clip(text)!r}: {why}; write COLUMN:4, COLUMN:width:5, COLUMN:18.5,25,30, COLUMN:evidence "
        "or COLUMN:evidence:TARGET"
    )


def _clip(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"


def hidden_cardinalities(values: list[str] | None) -> dict[str, int]:
    """Read ``name:states`` pairs."""
    result: dict[str, int] = {}
    for value in listed(values):
        name, colon, states = value.rpartition(":")
        if not colon or not name:
            raise StructureError(f"--hidden {value!r} is not of the form NAME:STATES, for example class:3")
        if not WHOLE_NUMBER.fullmatch(states.strip()):
            raise StructureError(f"--hidden {_clip(value)!r}: {_clip(states)!r} is not a whole number; write {name}:2")
        if result.get(name, int(states)) != int(states):
            raise StructureError(f"--hidden gives {name!r} both {result[name]} and {int(states)} states; say it once")
        result[name] = int(states)
    return result


def parse_model(text: str, hidden: list[str] | None) -> Dag:
    """Return the structure of --model and --hidden; a BIF file stands for the structure in it."""
    marks = hidden_cardinalities(hidden)
    if is_bif(text):
        return marked(read_network(text).dag, marks)
    return Dag.parse(text, marks or None)


def parse_prior(text: str) -> Prior:
    """Return the prior that one word of --prior stands for."""
    word = text.strip().lower()
    if word == "jeffreys":
        return Prior.jeffreys()
    kind, colon, number = word.rpartition(":")
    if colon and kind != "bdeu":
        raise PriorError(f"--prior {text!r} is unknown; use a number, bdeu:ESS or jeffreys")
    try:
        value = float(number)
    except ValueError:
        raise PriorError(f"--prior {text!r} is no number; use a number such as 1.0, bdeu:ESS or jeffreys") from None
    return Prior.bdeu(value) if colon else Prior.symmetric(value)


def parse_priors(text: str) -> dict[str, Prior]:
    """Return {word: prior} of a list separated by commas."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise PriorError("--prior is empty; use a number such as 1.0")
    return {word: parse_prior(word) for word in words}


def parse_scores(text: str) -> list[str]:
    """Return the names in a list of scores."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError("--scores is empty; name at least one, for example vb")
    return list(dict.fromkeys(names))


def of_scores(names: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given and that at least one of the scores understands; refuse the others."""
    known = {option for name in names for option in get_score(name).options}
    given = {name: value for name, value in options.items() if value is not None}
    for option in given:
        if option not in known:
            raise OptionError(
                f"--{option} has no meaning for {', '.join(names)}; leave it out or ask for another score"
            )
    return given


@contextmanager
def work(workers: int | None) -> Iterator[dict[str, Any]]:
    """Give a pool of threads and a progress bar; on a pool even a single climb can be interrupted."""
    stop = StopFlag()
    with ThreadPoolExecutor(worker_count(workers), thread_name_prefix="lurking") as pool, Bar() as bar, noted_in(stop):
        yield {"executor": pool, "workers": workers, "progress": bar, "keep_interrupted": True, "stop": stop}
