"""`lurking predict`: what a fitted model says about rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.cli.files import write_frame
from lurking.data.frames import pandas_frame
from lurking.data.messages import unknown_column
from lurking.data.table import Table
from lurking.errors import DataError, OptionError
from lurking.inference.network import Network
from lurking.io.networks import read_network
from lurking.types import Frame

SHOWN = 20


def predict(
    model: opt.ModelArgument,
    data: opt.DataArgument,
    target: Annotated[
        str | None, typer.Option("--target", help="Predict this variable from the others (default: every hidden one).")
    ] = None,
    impute: Annotated[bool, typer.Option("--impute", help="Fill the empty cells instead.")] = False,
    destination: Annotated[Path | None, typer.Option("--out", help="Write all rows here (.csv or .parquet).")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMNS", help="Columns of the data to carry along."),
    ] = None,
    weights: opt.WeightsOption = None,
    na_values: opt.NaValuesOption = None,
    drop: opt.DropOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Tell hidden states, a target or empty cells of rows."""
    if impute and target is not None:
        raise OptionError("--impute and --target exclude each other; use one of them")
    network = read_network(model)
    states = {name: network.levels[name] for name in network.dag.observed if name != target}
    table = opt.read_data(data, weights, None, None, na_values, drop, unique=False, known_levels=states)
    _check_columns(network, table, target)
    for name in opt.listed(keep):
        if name not in table:
            raise unknown_column("--keep", name, table.columns)
    columns = {name: table.to_frame()[name].to_numpy(dtype=object) for name in opt.listed(keep)}
    columns |= _imputed(network, table) if impute else _predicted(network, table, target)
    frame = pandas_frame(columns)
    if destination is not None:
        write_frame(frame, destination)
    if json:
        content = {"model": str(model), "data": str(data), "target": target, "rows": table.n_rows}
        cells = {name: _json_cells(values) for name, values in columns.items()}
        out.print_json("predict", {**content, "columns": cells})
    elif destination is not None:
        out.say(f"{table.n_rows} rows written to {destination}")
    elif impute:
        _print_filled(network, table)
    else:
        _print_rows(frame, table.n_rows)


def _print_rows(frame: Frame, n_rows: int) -> None:
    shown = frame.head(SHOWN).itertuples(index=False)
    rows = [[str(number), *(_cell(value) for value in row)] for number, row in enumerate(shown, start=1)]
    out.print_table(f"{n_rows} rows", ["row", *frame.columns], rows)
    if n_rows > SHOWN:
        out.say(f"… and {n_rows - SHOWN} more rows (with --out FILE or --json)")


def _print_filled(network: Network, table: Table) -> None:
    """Print the filled cells alone: where, with what, how surely."""
    cells = [
        (int(row) + 1, name, network.levels[name][int(p.argmax())], float(p.max()))
        for name, (rows, probabilities) in network.impute(table).cells.items()
        for row, p in zip(rows, probabilities, strict=True)
    ]
    rows = [[str(row), name, str(level), out.number(p)] for row, name, level, p in sorted(cells, key=lambda c: c[:2])]
    out.print_table(f"{len(rows)} empty cells", ["row", "column", "filled with", "p"], rows[:SHOWN], left=3)
    if len(rows) > SHOWN:
        out.say(f"… and {len(rows) - SHOWN} more cells (with --out FILE or --json)")


def _check_columns(network: Network, table: Table, target: str | None) -> None:
    """Refuse data without any column of the model; tell of those that are missing, since they count as empty."""
    wanted = [name for name in network.dag.observed if name != target]
    absent = [name for name in wanted if name not in table]
    if len(absent) == len(wanted):
        raise DataError(f"the data have no column of the model; it has: {', '.join(network.dag.observed)}")
    if absent:
        out.warn(f"the data have no column {', '.join(absent)}; the model takes them as empty")


def _predicted(network: Network, table: Table, target: str | None) -> dict[str, Any]:
    """Return ln p(row), and label and probabilities of the target or of every hidden variable."""
    columns: dict[str, Any] = {}
    if target is None:
        columns["ln_p_row"] = network.loglik(table)
    targets = [target] if target is not None else list(network.dag.hidden)
    for name in targets:
        frame = network.predict(table, name).to_frame()
        columns |= {column: frame[column].to_numpy() for column in frame.columns}
    return columns


def _imputed(network: Network, table: Table) -> dict[str, Any]:
    """Return the filled columns, each filled column with the probability of what was put in (1 where nothing was)."""
    imputation = network.impute(table)
    frame = imputation.table.to_frame()
    columns: dict[str, Any] = {}
    for name in imputation.table.columns:
        columns[name] = frame[name].to_numpy(dtype=object)
        if name in imputation.cells:
            rows, probabilities = imputation.cells[name]
            sure = np.ones(table.n_rows)
            sure[rows] = probabilities.max(axis=1)
            columns[f"p({name})"] = sure
    return columns


def _json_cells(values: Any) -> list[Any]:
    return [None if isinstance(value, float) and np.isnan(value) else value for value in np.asarray(values).tolist()]


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
