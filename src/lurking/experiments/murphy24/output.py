"""The study as files: figures, tables, and a page with the lecture's numbers and claims beside ours."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, Final

from lurking.experiments.murphy24 import lecture
from lurking.experiments.murphy24.claims import claims, errors_of, models, routes_of, sampled_gains
from lurking.experiments.murphy24.decomposability import EXPECTED
from lurking.experiments.murphy24.evidence import METHODS, REFERENCE, selected
from lurking.experiments.murphy24.signature import Learnt
from lurking.experiments.murphy24.sparse import METHODS as SEARCHES
from lurking.experiments.murphy24.sparse import SCORES
from lurking.experiments.murphy24.study import Study
from lurking.experiments.pages import Table, claims_table, clear, markdown, write_tables
from lurking.learn.loop import Status
from lurking.report.lecture import (
    ErrorPanel,
    RoutePanel,
    Trace,
    plot_errors,
    plot_gains,
    plot_relabelings,
    plot_searches,
    plot_signature,
)
from lurking.report.study import save
from lurking.runtime.files import write_whole

WRITTEN: Final = ("evidence.*", "relabelings.*", "selected.csv", "gains.*", "sparse.*", "signature.*", "summary.md")
STARTS: Final = ("none", "all", "random")


def write(study: Study, folder: Path, command: str) -> list[Path]:
    """Write figures, tables and the summary; return their paths."""
    clear(folder, WRITTEN)
    files = figures(study, folder) + write_tables(folder, tables(study))
    return [*files, write_whole(folder / "summary.md", summary(study, command))]


def figures(study: Study, folder: Path) -> list[Path]:
    """Draw every part that was done."""
    files: list[Path] = []
    if study.curves:
        panels = []
        for size, curves in study.curves.items():
            lines = {name: {k: own.values[name] for k, own in curves[0].items()} for name in METHODS}
            panels.append(ErrorPanel(str(size), size.states, REFERENCE, lines))
        files += save(plot_errors(panels, "Mixtures of Bernoullis: one data set of each size"), folder, "evidence")
        gaps: dict[int, list[float]] = {}
        for _, states, scored in models(study):
            gaps.setdefault(states, []).append(scored.gap)
        files += save(plot_relabelings(gaps, "The candidate method without relabelings"), folder, "relabelings")
    if study.gains:
        files += save(_gains_picture(study), folder, "gains")
    if study.sparse:
        below = {
            f"{method}, from {start}": [
                route.below_best for score in SCORES for route in routes_of(study, method, score, start)
            ]
            for start in STARTS
            for method in SEARCHES
        }
        routes = RoutePanel("Where searches end (CS and VB)", {name: own for name, own in below.items() if own})
        predicted = [value for data in study.sparse for value in data.predicted]
        actual = [value for data in study.sparse for value in data.actual]
        picture = plot_searches(predicted, actual, routes, "Sparse mixtures: which variables depend on the class")
        files += save(picture, folder, "sparse")
    if study.learnt:
        counts = {"with H": lecture.WITH_HIDDEN, "every child on all before it": lecture.WITHOUT_HIDDEN}
        picture = plot_signature(_traces(study), counts, "A hidden variable, left out")
        files += save(picture, folder, "signature")
    return files


def _gains_picture(study: Study) -> Any:
    """Draw the lecture's table beside ours, with the sum of the single gains between them."""
    expected = next(own for own in study.gains if own.data == EXPECTED)
    groups = {}
    for measure, title in (("loglik", "ΔLL"), ("cs", "ΔCS")):
        sides = {
            "lecture": [getattr(gain, measure) for gain in lecture.GAINS.values()],
            "here, expected data": [expected.gains[added][measure] for added in lecture.GAINS],
        }
        drawn = sampled_gains(study, measure)
        if drawn:
            sides["here, mean of sampled data"] = [fmean(own) for own in zip(*drawn, strict=True)]
        groups[title] = {who: [one, two, one + two, both] for who, (one, two, both) in sides.items()}
    bars = ("C → X3", "C → X4", "their sum", "both")
    return plot_gains(groups, bars, "The gain of two arcs is not the sum of their gains")


def _traces(study: Study) -> list[Trace]:
    traces = []
    for rows in sorted({item.rows for item in study.learnt}):
        own = [item for item in study.learnt if item.rows == rows]
        traces.append(
            Trace(
                rows,
                [item.hidden - item.best for item in own],
                [item.hidden - item.full for item in own],
                [item.parameters for item in own],
                [item.linked_children for item in own],
            )
        )
    return traces


def tables(study: Study) -> dict[str, Table]:
    """Return every table: {name of the file: (header, rows)}."""
    result: dict[str, Table] = {}
    if study.curves:
        result |= {"evidence": _evidence_table(study), "selected": _selected_table(study)}
    if study.gains:
        result["gains"] = _gains_table(study)
    if study.sparse:
        result["sparse"] = _sparse_table(study)
    if study.learnt:
        names = list(study.learnt[0].__dataclass_fields__)
        result["signature"] = names, [[_cell(item, name) for name in names] for item in study.learnt]
    return result


def _cell(item: Learnt, name: str) -> Any:
    return _error_cell(item.std_error, item.status) if name == "std_error" else getattr(item, name)


def _error_cell(error: float, status: str) -> float | str:
    """Return the standard error of a sampled value; nothing if the value is not trusted."""
    return "" if status == Status.UNTRUSTED.name else error


def _evidence_table(study: Study) -> Table:
    sampled = ("importance", "ais", "chib")
    header = ["true classes", "items", "rows", "data set", "classes", *METHODS]
    header += [f"error of {name}" for name in sampled] + [f"status of {name}" for name in sampled]
    rows = [
        [*size, place + 1, states]
        + [repr(scored.values[name]) for name in METHODS]
        + [_error_cell(scored.errors.get(name, 0.0), scored.statuses[name]) for name in sampled]
        + [scored.statuses[name] for name in sampled]
        for size, curves in study.curves.items()
        for place, curve in enumerate(curves)
        for states, scored in curve.items()
    ]
    return header, rows


def _selected_table(study: Study) -> Table:
    """Return the number of classes that each method selects on each data set."""
    rows = [
        [*size, place + 1, *(selected(curve, name) for name in METHODS)]
        for size, curves in study.curves.items()
        for place, curve in enumerate(curves)
    ]
    return ["true classes", "items", "rows", "data set", *METHODS], rows


def _gains_table(study: Study) -> Table:
    rows: list[list[Any]] = [
        ["lecture", added, gain.loglik, "", gain.cs, "", "", ""] for added, gain in lecture.GAINS.items()
    ]
    for data in study.gains:
        for added, own in data.gains.items():
            columns = ("loglik", "bic", "cs", "vb", "ais", "ais error")
            rows.append([data.data, added, *(own.get(name, "") for name in columns)])
    return ["data", "added arcs", "ΔLL", "ΔBIC", "ΔCS", "ΔVB", "ΔAIS", "standard error of ΔAIS"], rows


def _sparse_table(study: Study) -> Table:
    header = ["data set", "true", "score", "best", "method", "start", "end", "fits", "nats below the best"]
    rows = [
        [place + 1, data.truth, route.score, data.best[route.score]]
        + [getattr(route, name) for name in ("method", "start", "end", "fits", "below_best")]
        for place, data in enumerate(study.sparse)
        for route in data.routes
    ]
    return header, rows


def summary(study: Study, command: str) -> str:
    """Return the page: claims, every table in short, and how it was made."""
    parts = [
        "# Lecture 24, done again",
        f"Made by `{command}`. Random numbers are fixed by the seed, {study.config.seed}. The lecture prints one table "
        "and two numbers of parameters; its pictures have no data. Every prior is Dirichlet with pseudo-counts 1; "
        "ln K! is added to nothing.",
        "## Claims",
        claims_table(claims(study)).replace("| paper |", "| lecture |", 1),
    ]
    if study.curves:
        parts += ["## Evidence: distance from annealed importance sampling", _errors_text(study)]
        parts += ["Number of classes selected:", _selected_text(study)]
    if study.gains:
        parts += ["## Gains of arcs (the lecture's in brackets)", _gains_text(study)]
    if study.sparse:
        parts += ["## Sparse mixtures", _sparse_text(study)]
    if study.learnt:
        parts += ["## A hidden variable, left out", _signature_text(study)]
    return "\n\n".join(parts) + "\n"


def _errors_text(study: Study) -> str:
    rows = []
    for name in METHODS:
        if name != REFERENCE:
            off = errors_of(study, name)
            rows.append([name, f"{median(off):.1f}", f"{min(off):.1f}", f"{max(off):.1f}"])
    return markdown(["method", "median, nats", "lowest", "highest"], rows)


def _selected_text(study: Study) -> str:
    """One line for each size; the selections on its data sets side by side."""
    rows = [
        [str(size), *(" ".join(str(selected(curve, name)) for curve in curves) for name in METHODS)]
        for size, curves in study.curves.items()
    ]
    return markdown(["size", *METHODS], rows)


def _gains_text(study: Study) -> str:
    """Return gains on expected data with the lecture's, then mean ± standard deviation over sampled data sets."""
    expected = next(own for own in study.gains if own.data == EXPECTED)
    rows = []
    for added, printed in lecture.GAINS.items():
        own = expected.gains[added]
        cells = [f"{own['loglik']:+.1f} ({printed.loglik:+.1f})", f"{own['bic']:+.1f}"]
        cells += [f"{own['cs']:+.1f} ({printed.cs:+.1f})", f"{own['vb']:+.1f}", ""]
        rows.append([EXPECTED, added, *cells])
    sampled = [data.gains for data in study.gains if data.data != EXPECTED]
    if len(sampled) > 1:
        for added in lecture.GAINS:
            columns = [[own[added][name] for own in sampled] for name in ("loglik", "bic", "cs", "vb", "ais")]
            rows.append(
                [f"{len(sampled)} sampled", added, *(f"{fmean(own):+.1f} ± {stdev(own):.1f}" for own in columns)]
            )
    return markdown(["data", "added arcs from C", "ΔLL", "ΔBIC", "ΔCS", "ΔVB", "ΔAIS"], rows)


def _sparse_text(study: Study) -> str:
    rows = []
    for method in SEARCHES:
        for score in SCORES:
            for start in STARTS:
                own = routes_of(study, method, score, start)
                if own:
                    below = [route.below_best for route in own]
                    best = sum(value < 1e-6 for value in below)
                    fits = fmean(route.fits for route in own)
                    rows.append([method, score, start, f"{best} of {len(own)}", f"{fmean(below):.1f}", f"{fits:.1f}"])
    return markdown(["search", "score", "start", "ends at the best", "nats below it, mean", "fits, mean"], rows)


def _signature_text(study: Study) -> str:
    rows = []
    for trace in _traces(study):
        means = [fmean(own) for own in (trace.over_best, trace.over_full, trace.parameters, trace.linked_children)]
        rows.append([str(trace.rows), *(f"{value:.1f}" for value in means)])
    header = ["n", "H over the best without, nats", "over the 59-parameter network", "parameters of the best without"]
    return markdown([*header, "linked pairs of children"], rows)
