"""Letters that the usual font lacks: another font that has them, or a warning."""

from __future__ import annotations

import unicodedata
import warnings
from functools import cache
from typing import TYPE_CHECKING

from lurking.errors import LurkingWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 5


def width_in_letters(text: str) -> int:
    """Return how many Latin letters are about as wide as a text; Chinese, Japanese and Korean ones count for two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def choose_fonts(axes: Axes) -> None:
    """Give every text of a picture fonts that have its letters; one warning names those that no installed font has."""
    from matplotlib.font_manager import findfont
    from matplotlib.text import Text

    lacking: dict[str, None] = {}
    for text in axes.findobj(Text):
        assert isinstance(text, Text)
        usual = findfont(text.get_fontproperties())
        missing = {letter for letter in text.get_text() if not letter.isspace()} - _letters_of(usual)
        if missing:
            families, left = _others(frozenset(missing))
            text.set_fontfamily([*text.get_fontfamily(), *families])
            lacking |= dict.fromkeys(sorted(left))
    if lacking:
        shown = " ".join(list(lacking)[:SHOWN]) + (" …" if len(lacking) > SHOWN else "")
        warnings.warn(
            f"no installed font has the letters {shown}, so the picture shows boxes instead; install a font that has "
            "them, such as Noto Sans CJK",
            LurkingWarning,
            stacklevel=3,
        )


@cache
def _letters_of(path: str) -> frozenset[str]:
    """Return the letters that a font file has; none where it cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):
        return frozenset()


@cache
def _others(missing: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the fewest further font families, found greedily, that have letters, and the letters that none has."""
    from matplotlib.font_manager import fontManager

    # The font of last resort claims every letter and shows a placeholder for it.
    fonts = {entry.name: entry.fname for entry in fontManager.ttflist if "lastresort" not in entry.fname.lower()}
    families: list[str] = []
    left = missing
    while left:
        best = max(fonts, key=lambda name: len(left & _letters_of(fonts[name])), default=None)
        if best is None or not left & _letters_of(fonts[best]):
            break
        families.append(best)
        left -= _letters_of(fonts[best])
    return tuple(families), left
