"""`lurking reproduce`: a published experiment done again, with its picture and its numbers beside the paper's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.errors import DataError, OptionError, UnknownNameError
from lurking.experiments.beal2006 import figure6, table3
from lurking.report.beal2006 import plot_figure6, table_text
from lurking.runtime.executor import worker_count
from lurking.runtime.progress import Bar, Progress
from lurking.runtime.rng import seed_sequence

Part = Callable[[int, bool, int | None, Progress], "Result"]


@dataclass(frozen=True, eq=False)
class Result:
    """What one part of a paper comes to: numbers for JSON, tables as text, and a picture."""

    content: dict[str, Any]
    text: str
    picture: Any | None = None


def _figure6(seed: int, is_quick: bool, workers: int | None, progress: Progress) -> Result:
    config = replace(figure6.Config(), seed=seed)
    figure = figure6.run(figure6.quick(config) if is_quick else config, workers=workers, progress=progress)
    return Result(figure.content(), table_text(figure), plot_figure6(figure))


def _table3(seed: int, is_quick: bool, workers: int | None, progress: Progress) -> Result:
    config = replace(table3.Config(), seed=seed)
    table = table3.run(table3.quick(config) if is_quick else config, workers=workers, progress=progress)
    return Result(table.content(), table.text())


PARTS: dict[str, dict[str, Part]] = {"beal2006": {"figure6": _figure6, "table3": _table3}}
"""{paper: {part: how it is made}}"""


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of: {', '.join(PARTS)}.")],
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            help="Part of the paper: " + "; ".join(f"{name}: {', '.join(PARTS[name])}" for name in PARTS) + ".",
        ),
    ] = None,
    is_quick: Annotated[bool, typer.Option("--quick", help="Shorter chains, fewer data sets: about a minute.")] = False,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the picture and the tables.")] = Path("out"),
    seed: opt.SeedOption = 0,
    workers: opt.WorkersOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Do an experiment of a paper again."""
    make = _part(paper, part)
    seed_sequence(seed)
    worker_count(workers)
    _check_folder(folder)
    with Bar() as bar:
        result = make(seed, is_quick, workers, bar)
    name = f"{paper}-{part}"
    files: dict[str, Path] = {}
    picture = result.picture
    if picture is not None:
        files["picture"] = folder / f"{name}.png"
        _write(files["picture"], lambda path: picture.savefig(path, dpi=100, format="png"))
    files["tables"] = folder / f"{name}.txt"
    _write(files["tables"], lambda path: path.write_text(result.text + "\n", encoding="utf-8"))
    if json:
        written = {kind: str(path) for kind, path in files.items()}
        out.print_json(
            "reproduce",
            {"paper": paper, "part": part, "quick": is_quick, "seed": seed, "files": written, "result": result.content},
        )
        return
    out.say(result.text)
    out.say()
    for kind, path in files.items():
        out.say(f"{kind}: {path}")


def _part(paper: str, part: str | None) -> Part:
    """Return how a part is made; unknown names list the choices."""
    if paper not in PARTS:
        raise UnknownNameError("paper", paper, PARTS)
    if part is None:
        raise OptionError(f"--part is missing; parts of {paper}: {', '.join(PARTS[paper])}")
    if part not in PARTS[paper]:
        raise UnknownNameError(f"part of {paper}", part, PARTS[paper])
    return PARTS[paper][part]


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written before the work; it is made when there is something to put in it."""
    parent = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not parent.is_dir():
        raise DataError(f"cannot make {str(folder)!r}: {str(parent)!r} is a file; choose another folder with --out")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DataError(f"cannot write in {str(parent)!r}: permission denied; choose another folder with --out")


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place first, and rename it when it is whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as place:
            temporary = Path(place) / path.name
            write(temporary)
            os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"cannot write {str(path)!r}: {error.strerror}; choose another folder with --out") from None
