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
from lurking.data.table import Table
from lurking.errors import DataError, OptionError
from lurking.inference.network import Network

SHOWN = 20


def predict(
    model: opt.ModelArgument,
    data: opt.DataArgument,
    target: Annotated[
        str | None, typer.Option("--target", help="Predict this variable from the others (default: every hidden one).")
    ] = None,
    impute: Annotated[bool, typer.Option("--impute", help="Fill the empty cells instead.")] = False,
    destination: Annotated[Path | None, typer.Option("--out", help="Write all rows here (.csv or .parquet).")] = None,
    weights: opt.WeightsOption = None,
    na_values: opt.NaValuesOption = None,
    drop: opt.DropOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Give every row its probabilities: of the hidden variables, of a target, or of its empty cells."""
    if impute and target is not None:
        raise OptionError("--impute and --target exclude each other; use one of them")
    network = Network.load(model)
    states = {name: network.levels[name] for name in network.dag.observed if name != target}
    table = opt.read_data(data, weights, None, None, na_values, drop, unique=False, known_levels=states)
    _check_columns(network, table, target)
    columns = _imputed(network, table) if impute else _predicted(network, table, target)
    frame = pandas_frame(columns)
    if destination is not None:
        write_frame(frame, destination)
    if json:
        out.print_json(
            "predict",
            {
                "model": str(model),
                "data": str(data),
                "target": target,
                "rows": table.n_rows,
                "columns": {name: _json_cells(values) for name, values in columns.items()},
            },
        )
        return
    shown = frame.head(SHOWN)
    rows = [
        [str(number + 1), *(_cell(value) for value in row)] for number, row in enumerate(shown.itertuples(index=False))
    ]
    out.print_table(f"{table.n_rows} rows", ["row", *frame.columns], rows)
    if table.n_rows > SHOWN:
        rest = f"in {destination}" if destination is not None else "with --out FILE or --json"
        out.say(f"… and {table.n_rows - SHOWN} more rows ({rest})")


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
        prediction = network.predict(table, name)
        columns[name] = np.asarray(prediction.labels, dtype=object)
        for k, level in enumerate(prediction.levels):
            columns[f"p({name}={level})"] = prediction.probabilities[:, k]
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
