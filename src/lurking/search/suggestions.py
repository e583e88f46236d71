"""What the names and levels of columns suggest for a search: an order in time, or answers to questions.

These are guesses from the way in which tables are usually written. They are meant for one line of advice, so a doubtful
case gives none: columns that share two levels, such as yes and no, are not taken for answers.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from lurking.graph.parse import quote_name
from lurking.types import Level

LEAST_COLUMNS = 4
"""Columns that must look like questions."""
SEPARATOR = r"[\s_.\-]"
PERIOD = r"(?:waves?|times?|years?|months?|weeks?|days?|visits?|rounds?|phases?|sessions?|periods?)"
MOMENT = re.compile(
    rf"""(?P<before>.*?)(?P<left>{SEPARATOR}|^|(?<=[A-Za-z]))
    (?P<moment>(?:19|20)\d\d|[wt]\d{{1,2}}|{PERIOD}{SEPARATOR}?\d{{1,2}}
    |pre|post|before|after|baseline|follow{SEPARATOR}?up|endline)
    (?P<right>{SEPARATOR}|$|(?=[A-Za-z]))(?P<after>.*)""",
    re.VERBOSE | re.IGNORECASE,
)
WORDS = (("pre", "before", "baseline"), ("post", "after", "follow", "endline"))
"""Moments without a number, the earlier ones first."""
QUESTION = re.compile(rf"(?:q|question|item|answer|frage)(?:{SEPARATOR}?\d+)+[a-z]?", re.IGNORECASE)
SCALE_SIZES = range(4, 8)
"""Numbers of levels of a scale of consecutive integers from 0 or 1; 0, 1, 2 may count anything, such as alleles."""
SCALE_WORDS = re.compile(
    r"\b(?:dis)?agree|\b(?:dis|un)?satisfied|\b(?:un)?likely|\bnever\b|\brarely\b|\bseldom\b|\bsometimes\b|\boften\b"
    r"|\balways\b|\bpoor\b|\bfair\b|\bgood\b|\bexcellent\b|\bdon'?t know\b|\bno answer\b|\bunsure\b",
    re.IGNORECASE,
)


def suggested_option(
    levels: Mapping[str, Sequence[Level]], *, may_invent: bool, for_command: bool = False
) -> str | None:
    """Return one line that suggests `tiers` or `indicators`, or None.

    Parameters
    ----------
    levels : mapping of str to sequence
        Levels of every column.
    may_invent : bool
        True if the search may invent hidden variables; without any, columns that are indicators stay alone.
    for_command : bool, default False
        Write the options as at the command line.
    """
    times = columns_by_time(list(levels))
    if times:
        tiers = _as_options(times) if for_command else _as_argument(times)
        return f"the names suggest an order in time; if later columns cannot cause earlier ones, give {tiers}"
    answers = answers_among(levels) if may_invent else []
    if answers:
        option = "--indicators" if for_command else "indicators=True"
        examples = " and ".join(map(quote_name, answers[:2]))
        return (
            f"{len(answers)} columns such as {examples} look like answers to questions; if none of them causes another "
            f"one, give {option}"
        )
    return None


def columns_by_time(names: Sequence[str]) -> list[list[str]]:
    """Return the columns of each moment, the earliest first; empty unless some stem occurs at two moments.

    The moment is a year, such as in ``income_1971``, a wave, as in ``w1_income`` or ``income_t0``, or a word, as in
    ``pre_score`` and ``post_score``; the stem is the rest of the name.
    """
    # Columns by kind of moment ("w" for waves, "" for years) and moment, and the moments of each stem.
    found: dict[str, dict[int, list[str]]] = {}
    stems: dict[tuple[str, str], set[int]] = {}
    for name in names:
        match = MOMENT.fullmatch(name)
        stem = "" if match is None else match["before"] + match["after"]
        if match is not None and stem and _is_apart(match):
            kind, moment = _when(match["moment"].lower())
            found.setdefault(kind, {}).setdefault(moment, []).append(name)
            stems.setdefault((kind, f"{match['before']} {match['after']}".lower()), set()).add(moment)
    repeated = {kind for (kind, _), moments in stems.items() if len(moments) > 1}
    usual = max(sorted(repeated), key=lambda kind: sum(map(len, found[kind].values())), default=None)
    return [] if usual is None else [own for _, own in sorted(found[usual].items())]


def _is_apart(match: re.Match[str]) -> bool:
    """Return True if the moment stands apart from the rest of the name; a year of four digits need not."""
    is_year = match["moment"].isdigit()
    left_apart = bool(match["left"]) or not match["before"]
    right_apart = bool(match["right"]) or not match["after"]
    return is_year or (left_apart and right_apart)


def _when(moment: str) -> tuple[str, int]:
    """Return the kind of a moment and its place in time."""
    number = re.search(r"\d+$", moment)
    if number is not None:
        return moment[: number.start()].strip(" _.-"), int(number[0])
    return "word", next(place for place, words in enumerate(WORDS) if moment.startswith(words))


def _as_argument(times: Sequence[Sequence[str]]) -> str:
    """Return the tiers as an argument, one name of each of the first two."""
    tiers = [f"[{group[0]!r}{', …' if len(group) > 1 else ''}]" for group in times[:2]]
    return f"tiers=[{', '.join(tiers)}{', …' if len(times) > 2 else ''}]"


def _as_options(times: Sequence[Sequence[str]]) -> str:
    """Return the tiers as options of the command."""
    tiers = [f"--tier {shlex.quote(group[0])}{',…' if len(group) > 1 else ''}" for group in times[:2]]
    return " ".join([*tiers, *(["…"] if len(times) > 2 else [])])


def answers_among(levels: Mapping[str, Sequence[Level]]) -> list[str]:
    """Return the columns that look like answers to questions; empty if there are fewer than four.

    They are named like ``q1`` or ``item_3``, or share the levels of a rating scale with at least half of all columns.
    """
    named = [name for name in levels if QUESTION.fullmatch(name)]
    if len(named) >= LEAST_COLUMNS:
        return named
    groups: dict[frozenset[str], list[str]] = {}
    for name, own in levels.items():
        if _is_scale(own):
            groups.setdefault(frozenset(map(str, own)), []).append(name)
    largest = max(groups.values(), key=len, default=[])
    return largest if len(largest) >= max(LEAST_COLUMNS, len(levels) / 2) else []


def _is_scale(levels: Sequence[Level]) -> bool:
    """Return True for the levels of a rating scale: three or more of which two are words of one, or such numbers."""
    texts = [str(level).strip() for level in levels]
    if all(re.fullmatch(r"\d{1,2}", text) for text in texts):
        numbers = sorted(map(int, texts))
        return len(numbers) in SCALE_SIZES and numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1
    answers = {text.lower() for text in texts}
    worded = sum(bool(SCALE_WORDS.search(text)) for text in texts)
    return len(texts) >= 3 and (worded >= 2 or (worded == 1 and {"yes", "no"} <= answers))
