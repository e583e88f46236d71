"""`lurking sample`: rows drawn from a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.cli.files import write_frame
from lurking.io.networks import read_network


def sample(
    model: opt.ModelArgument,
    n: Annotated[int, typer.Option("-n", parser=opt.whole, metavar="N", help="Number of rows.")] = 1000,
    seed: opt.SeedOption = 0,
    hidden: Annotated[bool, typer.Option("--hidden", help="Keep the hidden variables as columns.")] = False,
    destination: Annotated[
        Path | None, typer.Option("--out", help="Write here instead (.csv, .tsv, .parquet).")
    ] = None,
    json: opt.JsonOption = False,
) -> None:
    """Draw rows from a fitted model, as CSV on stdout."""
    table = read_network(model).sample(n, seed=seed, hidden=hidden)
    frame = table.to_frame()
    if destination is not None:
        write_frame(frame, destination)
    if json:
        rows = frame.to_numpy(dtype=object).tolist()
        out.print_json("sample", {"model": str(model), "seed": seed, "columns": list(table.columns), "rows": rows})
    elif destination is None:
        out.emit(frame.to_csv(index=False))
    else:
        out.say(f"{n} rows written to {destination}")
