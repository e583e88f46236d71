"""`lurking reproduce`: a published experiment done again, with its pictures and its numbers beside the paper's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from lurking.cli import options as opt
from lurking.cli import output as out
from lurking.errors import DataError, OptionError, UnknownNameError
from lurking.experiments.beal2006 import figure6, study, table3
from lurking.experiments.beal2006.claims import claims
from lurking.experiments.beal2006.output import write
from lurking.experiments.chickering1996 import claims as chickering_claims
from lurking.experiments.chickering1996 import output as chickering_output
from lurking.experiments.chickering1996 import study as chickering_study
from lurking.experiments.murphy24 import claims as lecture_claims
from lurking.experiments.murphy24 import output as lecture_output
from lurking.experiments.murphy24 import study as lecture_study
from lurking.experiments.pages import Claim, claims_text
from lurking.report.beal2006 import plot_figure6, table_text
from lurking.report.study import save
from lurking.runtime.executor import worker_count
from lurking.runtime.files import write_whole
from lurking.runtime.progress import Bar, Progress
from lurking.runtime.rng import seed_sequence
from lurking.runtime.store import Store

WHOLE = "all"
MOST_LISTED = 4
"""Files named one by one."""


@dataclass(frozen=True)
class Request:
    """What was asked for: options of every part, and those of the whole study (None: not given)."""

    paper: str
    part: str
    seed: int
    is_quick: bool
    workers: int | None
    folder: Path
    progress: Progress
    draws: int | None = None
    steps: int | None = None
    chains: int | None = None
    is_full: bool = False
    tol: float | None = None
    sets: int | None = None

    @property
    def command(self) -> str:
        """The command that makes the same again."""
        words = ["lurking reproduce", self.paper] + ([] if self.part == WHOLE else [f"--part {self.part}"])
        words += ["--quick"] * self.is_quick + ["--full"] * self.is_full
        given: dict[str, float | None] = {
            "draws": self.draws,
            "steps": self.steps,
            "chains": self.chains,
            "tol": self.tol,
            "sets": self.sets,
        }
        given["seed"] = self.seed or None
        return " ".join([*words, *(f"--{name} {value}" for name, value in given.items() if value is not None)])


@dataclass(frozen=True, eq=False)
class Result:
    """What one part of a paper comes to: numbers for JSON, text, and the files written."""

    content: dict[str, Any]
    text: str
    files: list[Path] = field(default_factory=list)


def _figure6(request: Request) -> Result:
    config = replace(figure6.Config(), seed=request.seed)
    config = figure6.quick(config) if request.is_quick else config
    figure = figure6.run(config, workers=request.workers, progress=request.progress)
    name, text, picture = f"{request.paper}-{request.part}", table_text(figure), plot_figure6(figure)
    files = [write_whole(request.folder / f"{name}.png", lambda path: picture.savefig(path, dpi=100, format="png"))]
    return Result(figure.content(), text, [*files, write_whole(request.folder / f"{name}.txt", text + "\n")])


def _table3(request: Request) -> Result:
    config = replace(table3.Config(), seed=request.seed)
    config = table3.quick(config) if request.is_quick else config
    table = table3.run(config, workers=request.workers, progress=request.progress)
    path = request.folder / f"{request.paper}-{request.part}.txt"
    return Result(table.content(), table.text(), [write_whole(path, table.text() + "\n")])


def _scores(request: Request) -> Result:
    """One draw of parameters without any sampling."""
    config = study_config(request)
    return _study(request, replace(config, annealed_sizes=(), reference_sizes=(), draws=0))


def _whole(request: Request) -> Result:
    return _study(request, study_config(request))


def study_config(request: Request) -> study.Config:
    """Return the configuration of the study that the options ask for."""
    config = study.seeded(study.Config(), request.seed)
    if request.is_quick:
        config = study.quick(config)
    if request.tol is not None:
        config = replace(config, protocol=replace(config.protocol, tol=request.tol))
    if request.draws is not None:
        config = replace(config, draws=request.draws, sampled_draws=min(config.sampled_draws, request.draws))
    if request.steps is not None:
        config = replace(config, annealing=replace(config.annealing, steps=request.steps))
    if request.chains is not None:
        sizes = config.annealed_sizes if request.chains else ()
        annealing = replace(config.annealing, chains=max(request.chains, 1))
        config = replace(config, annealing=annealing, annealed_sizes=sizes)
    return replace(config, nats=None, most=None) if request.is_full else config


def _study(request: Request, config: study.Config) -> Result:
    """Run or resume the study; what is finished is kept whatever happens."""
    names = [request.paper, *(["scores"] * (request.part != WHOLE)), *(["quick"] * request.is_quick)]
    folder = request.folder / "-".join(names)
    with Store(request.folder / f"{request.paper}.sqlite") as store:
        try:
            found = study.run(config, store, request.workers, request.progress)
            files = write(found, folder, request.command)
            if config.annealed_sizes:
                six = replace(figure6.Config(), seed=request.seed)
                six = figure6.quick(six) if request.is_quick else six
                figure = figure6.recall(six, store, request.workers, request.progress)
                files += save(plot_figure6(figure), folder, "figure6")
                files.append(write_whole(folder / "figure6.txt", table_text(figure) + "\n"))
        except KeyboardInterrupt:
            raise _stopped(store) from None
    return _stated(claims(found), files)


def _stopped(store: Store) -> out.Interrupted:
    kept = f"{len(store)} pieces are kept in {store.path}"
    return out.Interrupted(f"{kept}; the same command goes on from there")


def _stated(stated: Sequence[Claim], files: list[Path]) -> Result:
    return Result({"claims": [asdict(claim) for claim in stated]}, claims_text(stated), files)


def _chickering(request: Request) -> Result:
    """Run or resume the study of naive Bayes models, or the part of it that was asked for."""
    names = [request.paper, *([request.part] * (request.part != WHOLE)), *(["quick"] * request.is_quick)]
    with Store(request.folder / f"{request.paper}.sqlite") as store:
        try:
            found = chickering_study.run(chickering_config(request), store, request.workers, request.progress)
            files = chickering_output.write(found, request.folder / "-".join(names), request.command)
        except KeyboardInterrupt:
            raise _stopped(store) from None
    return _stated(chickering_claims.claims(found), files)


def chickering_config(request: Request) -> chickering_study.Config:
    """Return the configuration of the study of naive Bayes models that the options ask for."""
    config = chickering_study.seeded(chickering_study.Config(), request.seed)
    if request.is_quick:
        config = chickering_study.quick(config)
    if request.sets is not None:
        config = replace(config, sets=request.sets, epsilon_sets=min(config.epsilon_sets, request.sets))
    if request.part == "scores":
        return replace(config, sampling=None)
    if request.part == "table2":
        return replace(config, experiments=(), epsilon_sets=0, repeats=0)
    if request.part == "reality":
        return replace(config, experiments=(), epsilon_sets=0, timed_states=())
    return config


def _lecture(request: Request) -> Result:
    """Run or resume the illustrations of the lecture, or the one that was asked for."""
    names = [request.paper, *([request.part] * (request.part != WHOLE)), *(["quick"] * request.is_quick)]
    config = replace(lecture_study.Config(), seed=request.seed)
    if request.part != WHOLE:
        config = replace(config, parts=(request.part,))
    config = lecture_study.quick(config) if request.is_quick else config
    with Store(request.folder / f"{request.paper}.sqlite") as store:
        try:
            found = lecture_study.run(config, store, request.workers, request.progress)
            files = lecture_output.write(found, request.folder / "-".join(names), request.command)
        except KeyboardInterrupt:
            raise _stopped(store) from None
    return _stated(lecture_claims.claims(found), files)


PARTS: dict[str, dict[str, Callable[[Request], Result]]] = {
    "beal2006": {WHOLE: _whole, "scores": _scores, "figure6": _figure6, "table3": _table3},
    "chickering1996": dict.fromkeys((WHOLE, "scores", "table2", "reality"), _chickering),
    "murphy24": dict.fromkeys((WHOLE, *lecture_study.PARTS), _lecture),
}
"""{paper: {part: how it is made}}"""


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of: {', '.join(PARTS)}.")],
    part: Annotated[
        str,
        typer.Option(
            "--part",
            help="Part of the paper: " + "; ".join(f"{name}: {', '.join(PARTS[name])}" for name in PARTS) + ".",
        ),
    ] = WHOLE,
    is_quick: Annotated[bool, typer.Option("--quick", help="Fewer data sets, shorter chains: about a minute.")] = False,
    draws: Annotated[
        int | None, typer.Option("--draws", parser=opt.whole, help="Draws of parameters from the prior (106).")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", parser=opt.whole, help="Temperatures of the paper's sampler (16384).")
    ] = None,
    chains: Annotated[
        int | None,
        typer.Option("--chains", parser=opt.whole, help="Chains of the paper's sampler (5); 0 leaves it out."),
    ] = None,
    is_full: Annotated[
        bool, typer.Option("--full", help="Sampled evidence for all structures, not only those near the best bound.")
    ] = False,
    tol: Annotated[
        float | None,
        typer.Option("--tol", parser=opt.real, help="Tolerance of EM and VB per row (1e-6, as in the paper)."),
    ] = None,
    sets: Annotated[
        int | None, typer.Option("--sets", parser=opt.whole, help="Data sets of each experiment, chickering1996 (5).")
    ] = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for pictures and tables.")] = Path("out"),
    seed: opt.SeedOption = 0,
    workers: opt.WorkersOption = None,
    json: opt.JsonOption = False,
) -> None:
    """Do an experiment of a paper again; the whole study, once stopped, goes on where it was when called again."""
    make = _part(paper, part)
    seed_sequence(seed)
    worker_count(workers)
    given = {"draws": draws, "steps": steps, "chains": chains, "full": is_full or None}
    _check_paper_options(paper, part, given | {"tol": tol}, sets)
    _check_study_options(part, given, tol)
    _check_folder(folder)
    with Bar() as bar:
        result = make(
            Request(paper, part, seed, is_quick, workers, folder, bar, draws, steps, chains, is_full, tol, sets)
        )
    if json:
        content = {"paper": paper, "part": part, "quick": is_quick, "seed": seed}
        out.print_json("reproduce", content | {"files": [str(path) for path in result.files], "result": result.content})
        return
    out.say(result.text)
    out.say()
    if len(result.files) > MOST_LISTED:
        out.say(f"{len(result.files)} pictures and tables in {result.files[0].parent}; begin with summary.md")
        return
    for path in result.files:
        out.say(f"{'picture' if path.suffix in ('.png', '.pdf') else 'tables'}: {path}")


def _part(paper: str, part: str) -> Callable[[Request], Result]:
    """Return how a part is made; unknown names list the choices."""
    if paper not in PARTS:
        raise UnknownNameError("paper", paper, PARTS)
    if part not in PARTS[paper]:
        for other, parts in PARTS.items():
            if part in parts:
                raise OptionError(f"{part!r} is a part of {other}; those of {paper} are: {', '.join(PARTS[paper])}")
        raise UnknownNameError(f"part of {paper}", part, PARTS[paper])
    return PARTS[paper][part]


def _check_paper_options(paper: str, part: str, given: Mapping[str, float | None], sets: int | None) -> None:
    """Refuse options of another paper's study."""
    for name, value in given.items():
        if value is not None and paper != "beal2006":
            raise OptionError(f"--{name} belongs to beal2006 and means nothing to {paper}; leave it out")
    if sets is None:
        return
    if paper != "chickering1996":
        raise OptionError(f"--sets belongs to chickering1996 and means nothing to {paper}; leave it out")
    if part not in (WHOLE, "scores"):
        raise OptionError(f"--sets belongs to the experiments of table 1; leave out --part {part}, or leave out --sets")
    if sets < 1:
        raise OptionError(f"--sets is {sets}; it must be at least 1")


def _check_study_options(part: str, given: dict[str, int | None], tol: float | None) -> None:
    """Refuse numbers that make no study, and options of the whole study with a part of it."""
    for name, value in given.items():
        if value is not None and part != WHOLE:
            raise OptionError(f"--{name} belongs to the whole study; leave out --part {part}, or leave out --{name}")
    if tol is not None and part not in (WHOLE, "scores"):
        raise OptionError(f"--tol belongs to the scores of the study; leave out --part {part}, or leave out --tol")
    if tol is not None and not 0.0 < tol < 1.0:
        raise OptionError(f"--tol is {tol:g}; it must be above 0 and below 1")
    for name, least in (("draws", 0), ("steps", 1), ("chains", 0)):
        value = given[name]
        if value is not None and value < least:
            raise OptionError(f"--{name} is {value}; it must be at least {least}")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written before the work; it is made when there is something to put in it."""
    parent = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not parent.is_dir():
        raise DataError(f"cannot make {str(folder)!r}: {str(parent)!r} is a file; choose another folder with --out")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DataError(f"cannot write in {str(parent)!r}: permission denied; choose another folder with --out")
