"""The study as files: figures, tables, and a page with the paper's numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from lurking.experiments.bench import Sampled
from lurking.experiments.chickering1996 import paper
from lurking.experiments.chickering1996.claims import APPROXIMATIONS, GOLD, NAMES, claims
from lurking.experiments.chickering1996.data import FIGURES
from lurking.experiments.chickering1996.scores import COLUMNS, SOFTMAX
from lurking.experiments.chickering1996.selection import (
    SAMPLED,
    curves_of,
    differences,
    in_words,
    mean_and_deviation,
    selected,
    values_of,
)
from lurking.experiments.chickering1996.study import Case, Study
from lurking.experiments.pages import Table, claims_table, clear, markdown, write_tables
from lurking.report.curves import StatesPanel, TimeLine, plot_states, plot_times
from lurking.report.study import save
from lurking.runtime.files import write_whole

SHOWN: Final = (GOLD, "laplace", "cs", "mled", "draper", "bic", "vb")
"""Lines of every panel; sampled evidence is the last where there is any."""
WRITTEN: Final = ("figure?.*", "times.*", "scores.csv", "table*.csv", "epsilon.csv", "reality.csv", "summary.md")


def write(study: Study, folder: Path, command: str) -> list[Path]:
    """Write figures, tables and the summary; return their paths."""
    clear(folder, WRITTEN)
    files = figures(study, folder) + write_tables(folder, tables(study))
    return [*files, write_whole(folder / "summary.md", summary(study, command))]


def figures(study: Study, folder: Path) -> list[Path]:
    """Draw figures 1 to 3 for the first data set of each experiment, as the paper does, and the times of table 2."""
    files: list[Path] = []
    for name, (heading, cases) in FIGURES.items():
        panels = [_panel(study, case) for case in cases if case in study.curves]
        if panels:
            files += save(plot_states(panels, f"{heading}: one data set of each experiment"), folder, name)
    if study.times:
        columns = dict(zip(paper.TIMED, zip(*paper.TABLE2.values(), strict=True), strict=True))
        lines = [
            TimeLine(
                GOLD if name == "laplace" else name,
                {timing.d: getattr(timing, name) for timing in study.times},
                dict(zip(paper.TABLE2, columns[name], strict=True)),
            )
            for name in paper.TIMED
        ]
        files += save(plot_times(lines, f"Run times, {study.config.timed}"), folder, "times")
    return files


def _panel(study: Study, case: Case) -> StatesPanel:
    lines = {column: curves_of(study, case, column)[0] for column in SHOWN}
    if case in study.sampled:
        lines[SAMPLED] = curves_of(study, case, SAMPLED)[0]
    truth = {column: study.truths[case][0].values[column] for column in (GOLD, "cs", "draper", "bic")}
    return StatesPanel("n = {}, c = {}, N = {}".format(*case), case[1], lines, truth)


def tables(study: Study) -> dict[str, Table]:
    """Return every table: {name of the file: (header, rows)}."""
    result: dict[str, Table] = {}
    if study.curves:
        result |= {"scores": _scores_table(study), "table1": _table1(study)}
    if study.sampled:
        result["table1-sampled"] = _table1_sampled(study)
    if study.times:
        result["table2"] = _table2(study)
    if study.epsilons:
        result["epsilon"] = _epsilon_table(study)
    if study.checks:
        result["reality"] = _reality_table(study)
    return result


def _scores_table(study: Study) -> Table:
    """Every score of every test model on every data set."""
    rows: list[list[Any]] = []
    for experiment in study.config.experiments:
        sampled = study.sampled.get(experiment.case)
        for place, curve in enumerate(study.curves[experiment.case]):
            for states, scored in curve.items():
                own = None if sampled is None else sampled[place].get(states)
                rows.append(
                    [*experiment.case, place + 1, states, experiment.dimension(states)]
                    + [repr(scored.values[column]) for column in COLUMNS]
                    + [scored.has_converged, *scored.statuses.values()]
                    + (["", "", ""] if own is None else [repr(own.log_z), own.error_cell, own.status])
                )
    header = ["n", "c", "N", "data set", "states", "d", *COLUMNS, "converged", f"status of {GOLD}", "status of laplace"]
    return [*header, "sampled", "standard error", "status"], rows


def _table1(study: Study) -> Table:
    """Δc against Laplace in both bases: mean and deviation here, and the paper's."""
    pairs = [(column, column, GOLD) for column in APPROXIMATIONS] + [("vb", "vb", GOLD)]
    softmax = [(f"{column}, logits", own, "laplace") for column, own in zip(APPROXIMATIONS, SOFTMAX[1:], strict=True)]
    softmax.append(("vb, logits", "vb", "laplace"))
    header: list[str] = ["n", "c", "N", "states selected by Laplace", "over logits"]
    for name, column, reference in (*pairs, *softmax):
        header += [name, f"{name} ±"]
        header += [f"{name} in the paper", f"{name} ± in the paper"] * (reference == GOLD and column in APPROXIMATIONS)
    rows: list[list[Any]] = []
    for case in study.curves:
        row: list[Any] = [*case, _mean_selected(study, case, GOLD), _mean_selected(study, case, "laplace")]
        for _, column, reference in (*pairs, *softmax):
            row += mean_and_deviation(differences(study, case, column, reference))
            if reference == GOLD and column in APPROXIMATIONS:
                row += paper.TABLE1.get(case, {}).get(column, ("", ""))
        rows.append(row)
    return header, rows


def _mean_selected(study: Study, case: Case, column: str) -> float:
    return mean_and_deviation([selected(values) for values in curves_of(study, case, column)])[0]


def _table1_sampled(study: Study) -> Table:
    """Δc against sampled evidence, for every score."""
    header = ["n", "c", "N", "states selected by sampled evidence"]
    for column in SHOWN:
        header += [column, f"{column} ±"]
    rows: list[list[Any]] = []
    for case in study.sampled:
        row: list[Any] = [*case, _mean_selected(study, case, SAMPLED)]
        for column in SHOWN:
            row += mean_and_deviation(differences(study, case, column, SAMPLED))
        rows.append(row)
    return header, rows


def _table2(study: Study) -> Table:
    """Seconds here and in the paper."""
    names = [*paper.TIMED, "laplace_logit"]
    header = ["states", "d", *names, *(f"{name} in the paper" for name in paper.TIMED)]
    rows = [
        [timing.states, timing.d]
        + [getattr(timing, name) for name in names]
        + list(paper.TABLE2.get(timing.d, ("",) * len(paper.TIMED)))
        for timing in study.times
    ]
    return header, rows


def _epsilon_table(study: Study) -> Table:
    """Return the number of states that each score selects for each ε."""
    header = ["n", "c", "N", "data set", "epsilon", *SHOWN]
    rows = [
        [*case, place + 1, epsilon, *(selected(values_of(own[case][place], column)) for column in SHOWN)]
        for case in study.curves
        for place in range(study.config.epsilon_sets)
        for epsilon, own in study.epsilons.items()
    ]
    return header, rows


def _reality_table(study: Study) -> Table:
    """Section 5: both terms and Δm of every repeat."""
    header = ["n", "c", "no hidden variable", "its arcs"]
    header += [f"states by {column}" for column in SHOWN] + [f"Δm by {column}" for column in SHOWN]
    header += ["Δm sampled", "standard error", "status"]
    rows = []
    for check in study.checks:
        own = check.sampled
        rows.append(
            [check.n, check.c, check.complete, check.arcs]
            + [check.selected(column) for column in SHOWN]
            + [check.gain(column) for column in SHOWN]
            + (["", "", ""] if own is None else [check.sampled_gain, own.error_cell, own.status])
        )
    return header, rows


def summary(study: Study, command: str) -> str:
    """Return the page: claims, every table with the paper's numbers, and how it was made."""
    parts = [
        "# The study of Chickering & Heckerman (1996), done again",
        f"Made by `{command}`. Random numbers are fixed by the seed, {study.config.protocol.seed}. The paper prints "
        "neither parameters nor data: both are drawn anew from the same distributions; compare trends.",
        _legend(study),
        "## Claims",
        claims_table(claims(study)),
    ]
    if study.curves:
        parts += ["## Table 1: Δc against Laplace (the paper's in brackets)", _table1_text(study)]
        parts += ["The same at the mode over logits, against Laplace over logits:", _softmax_text(study)]
    if study.sampled:
        parts += ["## Δc against sampled evidence", _sampled_text(study)]
    if study.times:
        parts += ["## Table 2: processor seconds (the paper's in brackets)", _times_text(study)]
    if study.epsilons:
        parts += ["## States selected for each ε", _epsilon_text(study)]
    if study.checks:
        parts += ["## Section 5: Δm, with and without a hidden variable", _reality_text(study)]
    return "\n\n".join(parts) + "\n"


def _legend(study: Study) -> str:
    protocol = study.config.protocol
    ends = [status for scored in study.all_scored for status in scored.statuses.values()]
    flat = f"; {ends.count('SINGULAR')} of {len(ends)} values leave out directions that are flat" if ends else ""
    return (
        f"Prior α = {1 + protocol.epsilon:g}; EM from {protocol.copies} copies halved to one, then "
        f"{protocol.iterations} iterations; {study.config.sets} data sets of each experiment. CS, MLED, Draper and BIC "
        "are at the mode over probabilities, as in the paper, unless said otherwise. Laplace takes Newton steps from "
        f"there to the mode itself{flat}. ln c! is added to nothing. A dash says that this run does not decide. "
        "Pictures: figure1 to figure3 (the first data set of each experiment; rings mark what is selected, stars are "
        "scores with EM begun at the generating parameters), `times`."
    )


def _table1_text(study: Study) -> str:
    rows = []
    for case in study.curves:
        row = [*map(str, case), f"{_mean_selected(study, case, GOLD):.1f}"]
        for column in APPROXIMATIONS:
            printed = paper.TABLE1.get(case, {}).get(column)
            words = in_words(differences(study, case, column, GOLD))
            row.append(words if printed is None else f"{words} ({_printed(printed)})")
        rows.append([*row, in_words(differences(study, case, "vb", GOLD))])
    names = [NAMES[column] for column in (*APPROXIMATIONS, "vb")]
    return markdown(["n", "c", "N", "Laplace selects", *names], rows)


def _printed(cell: tuple[float, float]) -> str:
    return "0" if cell == (0.0, 0.0) else f"{cell[0]:.1f} ± {cell[1]:.1f}"


def _softmax_text(study: Study) -> str:
    rows = [
        [
            *map(str, case),
            f"{_mean_selected(study, case, 'laplace'):.1f}",
            *(in_words(differences(study, case, column, "laplace")) for column in (*SOFTMAX[1:], "vb")),
        ]
        for case in study.curves
    ]
    names = [NAMES[column] for column in (*APPROXIMATIONS, "vb")]
    return markdown(["n", "c", "N", "Laplace over logits selects", *names], rows)


def _sampled_text(study: Study) -> str:
    rows = [
        [
            *map(str, case),
            f"{_mean_selected(study, case, SAMPLED):.1f}",
            *(in_words(differences(study, case, column, SAMPLED)) for column in SHOWN),
        ]
        for case in study.sampled
    ]
    return markdown(["n", "c", "N", "sampled evidence selects", *(NAMES[column] for column in SHOWN)], rows)


def _times_text(study: Study) -> str:
    names = {"em": "EM"} | {name: NAMES[name] for name in APPROXIMATIONS}
    header = ["d", *(names.get(name, "Laplace") for name in paper.TIMED), "Laplace (logits)"]
    rows = []
    for timing in study.times:
        printed = paper.TABLE2.get(timing.d)
        row = [str(timing.d)]
        for place, name in enumerate(paper.TIMED):
            beside = "" if printed is None else f" ({printed[place]:g})"
            row.append(f"{getattr(timing, name):.2g}{beside}")
        rows.append([*row, f"{timing.laplace_logit:.2g}"])
    return markdown(header, rows)


def _epsilon_text(study: Study) -> str:
    """One line for each data set; one number where all ε agree, else one for each."""
    epsilons = list(study.epsilons)
    rows = []
    for case in study.curves:
        for place in range(study.config.epsilon_sets):
            row = [*map(str, case), str(place + 1)]
            for column in SHOWN:
                chosen = [selected(values_of(study.epsilons[one][case][place], column)) for one in epsilons]
                row.append(str(chosen[0]) if len(set(chosen)) == 1 else ", ".join(map(str, chosen)))
            rows.append(row)
    text = markdown(["n", "c", "N", "data set", *(NAMES[column] for column in SHOWN)], rows)
    listed = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
    return f"Where they are not equal, one number for each of ε = {listed}.\n\n{text}"


def _reality_text(study: Study) -> str:
    rows = []
    for check in study.checks:
        own, gain = check.sampled, check.sampled_gain
        rows.append(
            [str(check.n), str(check.c), str(check.selected(GOLD)), f"{check.complete:.1f}", str(check.arcs)]
            + [f"{check.gain(column):.1f}" for column in (GOLD, "laplace", "vb")]
            + ["" if own is None or gain is None else _with_error(gain, own)]
        )
    header = ["n", "c", "states", "ln p, no hidden variable", "its arcs"]
    header += [f"Δm, {NAMES[column]}" for column in (GOLD, "laplace", "vb")]
    return markdown([*header, "Δm, sampled"], rows)


def _with_error(gain: float, sampled: Sampled) -> str:
    return f"{gain:.1f} ± {sampled.std_error:.1f}" if sampled.is_trusted else f"{gain:.1f} ± ?"
