"""The study as files: figures, tables, and a page with the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from lurking.experiments.beal2006 import metrics, paper
from lurking.experiments.beal2006.claims import claims
from lurking.experiments.beal2006.contenders import CORRECTED, METHODS, contenders, true_place
from lurking.experiments.beal2006.data import SIZES
from lurking.experiments.beal2006.metrics import Curves
from lurking.experiments.beal2006.study import Study
from lurking.experiments.pages import Table, claims_table, clear, markdown, write_tables
from lurking.report.study import Panel, plot_panels, plot_scores, save
from lurking.runtime.files import write_whole

FIGURE2_SIZES: Final = (10, 160, 640, 1280, 2560, 5120, 10240)
WRITTEN: Final = ("beyond.*", "approach.*", "scores.csv", "times.csv", "summary.md")


def write(study: Study, folder: Path, command: str) -> list[Path]:
    """Write figures, tables and the summary; return their paths."""
    clear(folder, ("figure?.*", "figure3?.csv", "table?.csv", "*draws-*.csv", *WRITTEN))
    files = figures(study, folder)
    files += write_tables(folder, tables(study))
    files.append(write_whole(folder / "summary.md", summary(study, command)))
    return files


def figures(study: Study, folder: Path) -> list[Path]:
    """Draw figures 2 to 5, and how F approaches BIC."""
    draw = study.single
    sizes = [n for n in FIGURE2_SIZES if n in draw.scores] or list(draw.scores)
    shown = ("map", *CORRECTED, "ais", "sampled")
    columns = {n: metrics.all_columns(draw, n) for n in sizes}
    grid = {n: {name: own[name] for name in shown if name in own} for n, own in columns.items()}
    dimensions = np.asarray([contender.dimension for contender in contenders()])
    files = save(plot_scores(grid, dimensions, true_place()), folder, "figure2")
    without_map = shown[1:]
    panels = [
        _rank_panel("(a) rank of the true structure", metrics.ranks(draw), without_map),
        Panel("(b) true less best structure", "nats", _lines(metrics.differences(draw), without_map)),
        Panel("(c) KL from the sampled posterior", "nats", _lines(metrics.divergences(draw), without_map), is_log=True),
    ]
    files += save(plot_panels(panels, "One draw of parameters: the printed ones"), folder, "figure3")
    if study.draws:
        files += _many(study, folder)
    gap = metrics.approach(draw)
    panels = [Panel(f"(F − BIC), {name}", "", {"vb": _line(own)}, level=0.0) for name, own in gap.items()]
    return files + save(plot_panels(panels, "F approaches BIC: the true structure"), folder, "approach")


def _many(study: Study, folder: Path) -> list[Path]:
    """Figures 4 and 5, and the draws whose evidence was sampled."""
    count, found = len(study.draws), metrics.averaged(study.draws)
    panels = [
        _rank_panel("(a) median rank", found["median rank"], METHODS),
        _rank_panel("(b) best rank", found["best rank"], METHODS),
    ]
    files = save(plot_panels(panels, f"Rank of the true structure over {count} draws"), folder, "figure4")
    uniform = 1.0 / len(contenders())
    panels = [
        Panel("(a) ranked first", "share of draws", _lines(found["success rate"], METHODS)),
        Panel("(b) mean posterior probability", "probability", _lines(found["mean posterior"], METHODS), level=uniform),
        Panel("(c) posterior above 1/136", "share of draws", _lines(found["above uniform"], METHODS)),
    ]
    files += save(plot_panels(panels, f"The true structure over {count} draws"), folder, "figure5")
    if found_sampled := sampled_averages(study):
        shown = ("cs", "vb", "sampled")
        panels = [
            _rank_panel("(a) median rank", found_sampled["median rank"], shown),
            Panel("(b) ranked first", "share of draws", _lines(found_sampled["success rate"], shown)),
            Panel("(c) mean posterior probability", "probability", _lines(found_sampled["mean posterior"], shown)),
        ]
        some = sum(bool(draw.sampled) for draw in study.draws)
        heading = f"With sampled evidence, over {some} draw{'s' * (some > 1)}"
        files += save(plot_panels(panels, heading), folder, "beyond")
    return files


def sampled_averages(study: Study) -> dict[str, dict[str, dict[int, float]]]:
    """Return figures 4 and 5 over the draws whose evidence was sampled; nothing if there are none."""
    some = [draw for draw in study.draws if draw.sampled]
    if not some:
        return {}
    return {
        name: {method: {n: own[n] for n in sorted(some[0].sampled)} for method, own in found.items()}
        for name, found in metrics.averaged(some).items()
    }


def _rank_panel(title: str, curves: Curves, shown: Iterable[str]) -> Panel:
    return Panel(title, "rank", _lines(curves, shown), is_log=True, is_reversed=True)


def _lines(curves: Curves, shown: Iterable[str]) -> dict[str, tuple[list[int], list[float]]]:
    return {name: _line(curves[name]) for name in shown if name in curves}


def _line(curve: Any) -> tuple[list[int], list[float]]:
    return sorted(curve), [float(curve[n]) for n in sorted(curve)]


def tables(study: Study) -> dict[str, Table]:
    """Return every table: {name of the file: (header, rows)}."""
    draw = study.single
    result = {
        "scores": _scores_table(study),
        "table2": _table2(study),
        "table3": _curve_table(metrics.violations(draw)),
        "figure3b": _curve_table(metrics.differences(draw)),
        "figure3c": _curve_table(metrics.divergences(draw)),
        "times": times(study),
        "approach": _curve_table(metrics.approach(draw)),
    }
    if study.draws:
        for name, curves in metrics.averaged(study.draws).items():
            result["draws-" + name.replace(" ", "-")] = _curve_table(curves)
    for name, curves in sampled_averages(study).items():
        result["sampled-draws-" + name.replace(" ", "-")] = _curve_table(curves)
    return result


def _scores_table(study: Study) -> Table:
    """Every score of the one draw."""
    rows = []
    for n in study.single.scores:
        columns = metrics.all_columns(study.single, n)
        sampled = study.single.sampled.get(n, {})
        for place, contender in enumerate(contenders()):
            own = sampled.get(place)
            rows.append(
                [n, str(contender.dag), contender.dimension, repr(contender.log_aliases)]
                + [repr(float(columns[name][place])) for name in ("map", *(f"{method}*" for method in CORRECTED))]
                + [repr(float(columns["ais"][place])) if "ais" in columns else ""]
                + (["", "", ""] if own is None else [repr(own.log_z), own.error_cell, own.status])
            )
    header = [
        "n",
        "structure",
        "d",
        "ln S",
        "map",
        *(f"{method}*" for method in CORRECTED),
        "ais",
        "sampled",
        "standard error",
        "status",
    ]
    return header, rows


def _curve_table(curves: Curves) -> Table:
    """One row per n, one column per curve; empty where there is no value."""
    sizes = sorted({n for own in curves.values() for n in own})
    return ["n", *curves], [[n, *(own.get(n, "") for own in curves.values())] for n in sizes]


def _table2(study: Study) -> Table:
    """Ranks here, and the paper's beside them."""
    found = metrics.ranks(study.single)
    header = ["n", *(column for name in found for column in (name, f"{name} in the paper"))]
    rows: list[list[Any]] = []
    for n in study.single.scores:
        place = SIZES.index(n) if n in SIZES else None
        row: list[Any] = [n]
        for name, own in found.items():
            printed = paper.RANKS.get(name)
            row += [own.get(n, ""), "" if printed is None or place is None else printed[place]]
        rows.append(row)
    return header, rows


def times(study: Study) -> Table:
    """Seconds for all 136 structures, the paper's beside ours."""
    own, setting = study.times, study.config.annealing
    rows: list[list[Any]] = [
        ["EM for MAP, BIC, BICp, CS", own.em, paper.SECONDS["em"]],
        ["VB", own.vb, paper.SECONDS["vb"]],
    ]
    if own.batch is not None:
        printed = paper.SECONDS["batch"] if setting.steps == 16384 else ""
        rows.append([f"AIS, one batch, K = {setting.steps}", own.batch, printed])
    threads = f"seconds here, {own.workers} thread{'s' * (own.workers > 1)}"
    return [f"all structures at n = {own.n}", threads, "seconds in the paper"], rows


def summary(study: Study, command: str) -> str:
    """Return the page: claims, table 2, table 3, times, and how it was made."""
    parts = [
        "# The study of Beal & Ghahramani (2006), done again",
        f"Made by `{command}`. Random numbers are fixed by the seed, {study.config.seed}; the rows of the printed "
        "parameters are always the same. The paper does not print its own: compare trends.",
        _legend(study),
        "## Claims",
        claims_table(claims(study)),
        "## Rank of the true structure (table 2; the paper's in brackets)",
        _ranks_text(study),
        "## Annealing below the bound, percent of structures (table 3; the paper's in brackets)",
        _violations_text(study),
        "## Computation times",
        markdown(*_rounded(times(study))),
        f"The paper's times are of a 1 GHz Pentium III. One draw over all sizes took it {paper.HOURS[0]} hours (EM) "
        f"and {paper.HOURS[1]} hours (VB).",
    ]
    return "\n\n".join(parts) + "\n"


def _legend(study: Study) -> str:
    """Return what the names in the tables stand for, and which structures were sampled."""
    nats, most = study.config.nats, study.config.most
    near = "all structures" if nats is None else f"the structures within {nats:.0f} nats of the best bound"
    few = "" if most is None else f", {most} at most,"
    return (
        "Names: a star, as in `vb*`, says without ln S, the logarithm of the number of relabelings; without a star it "
        "is added. F is the VB bound. `ais` is the paper's sampler, AIS(1) one chain of it and AIS(5) five; `sampled` "
        f"is the variational path on {near}{few} and the true one. KL is from the sampled posterior over these to each "
        "score's over all structures. A dash says that this run does not decide. Pictures: figure2 to figure6, "
        "`approach` (F and BIC) and `beyond` (draws with sampled evidence)."
    )


def _ranks_text(study: Study) -> str:
    header, rows = _table2(study)
    names = header[1::2]
    body = []
    for row in rows:
        cells = [f"{_short(row[k])} ({row[k + 1]})" if row[k + 1] != "" else _short(row[k]) for k in _odd(row)]
        body.append([str(row[0]), *cells])
    return markdown(["n", *names], body)


def _odd(row: Sequence[Any]) -> range:
    return range(1, len(row), 2)


def _violations_text(study: Study) -> str:
    found = metrics.violations(study.single)
    if not found:
        return "The sampler was not run."
    header, rows = _curve_table(found)
    body = []
    for row in rows:
        cells = []
        for name, value in zip(header[1:], row[1:], strict=True):
            printed = paper.printed_violation(name, row[0])
            cells.append(_short(value) + (f" ({printed})" if printed and value != "" else ""))
        body.append([str(row[0]), *cells])
    return markdown(header, body)


def _short(value: Any) -> str:
    return "" if value == "" else f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def _rounded(table: Table) -> Table:
    header, rows = table
    return header, [[_digits(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in rows]


def _digits(value: float) -> str:
    """Return a number with three digits, or all digits before the point if there are more."""
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
