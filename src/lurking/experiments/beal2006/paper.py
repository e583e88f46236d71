"""What the paper prints (beal-ghahramani-2006, section 4, tables 2 and 3)."""

from __future__ import annotations

from typing import Final

RANKS: Final = {
    "map": (21, 12, 28, 8, 8, 13, 8, 8, 6, 7, 7, 9, 7, 9, 13, 8, 7, 6, 5, 3),
    "bic*": (127, 118, 127, 114, 109, 119, 105, 111, 101, 104, 102, 108, 104, 107, 112, 105, 90, 25, 6, 2),
    "bicp*": (55, 64, 124, 99, 103, 111, 93, 101, 72, 78, 92, 98, 97, 102, 107, 96, 59, 17, 5, 1),
    "cs*": (129, 111, 107, 78, 98, 114, 88, 90, 77, 68, 80, 96, 105, 108, 76, 103, 8, 11, 1, 1),
    "vb*": (122, 124, 113, 116, 114, 83, 54, 44, 15, 15, 55, 34, 19, 35, 16, 12, 3, 11, 1, 1),
    "bic": (127, 118, 127, 114, 109, 119, 105, 111, 101, 104, 102, 108, 104, 107, 112, 105, 90, 25, 6, 2),
    "bicp": (50, 64, 124, 99, 103, 111, 93, 101, 72, 78, 92, 98, 97, 102, 107, 96, 59, 15, 5, 1),
    "cs": (129, 111, 107, 78, 98, 114, 88, 90, 77, 68, 80, 96, 105, 108, 76, 103, 6, 11, 1, 1),
    "vb": (115, 124, 113, 116, 113, 81, 54, 33, 15, 14, 44, 31, 17, 26, 13, 12, 3, 11, 1, 1),
    "ais": (20, 92, 17, 28, 6, 49, 85, 32, 22, 14, 12, 5, 28, 49, 1, 1, 1, 1, 1, 1),
}
"""Table 2 of the paper, for its 20 sizes; an asterisk says without ln S. Its AIS at n = 1280 is printed "1 1"."""
VIOLATIONS: Final = {
    "AIS(1) < VB*": (12.3, 8.5, 12.3, 10.4, 17.0, 25.5, 53.8, 71.7),
    "AIS(1) < VB": (15.1, 9.4, 14.2, 12.3, 20.8, 31.1, 59.4, 74.5),
    "AIS(5) < VB*": (0.0, 0.0, 0.0, 0.0, 0.7, 3.7, 13.2, 50.0),
    "AIS(5) < VB": (0.0, 0.0, 0.0, 1.5, 2.2, 5.1, 19.9, 52.9),
    "rejected proposals": (41.5, 43.7, 45.9, 47.7, 49.6, 59.2, 69.7, 79.2),
}
"""Table 3 of the paper, in percent, for the sizes below."""
VIOLATION_SIZES: Final = (640, 800, 960, 1120, 1280, 2560, 5120, 10240)
MOST_VIOLATIONS: Final = {
    "AIS(1) < VB*": 5.7,
    "AIS(1) < VB": 7.5,
    "AIS(5) < VB*": 0.0,
    "AIS(5) < VB": 1.9,
    "rejected proposals": 40.3,
}
"""The most of any size from 10 to 560."""
SECONDS: Final = {"em": 200.0, "vb": 575.0, "batch": 55000.0}
"""Seconds for all structures at n = 480 on a 1 GHz Pentium III (section 4.1, computation time)."""
HOURS: Final = (2.4, 4.2)
"""Hours for all sizes and structures of one draw, for the scores at the MAP point and for VB (section 4.2)."""


def printed_violation(row: str, n: int) -> str:
    """Return what table 3 prints for a row at n: a number, an upper limit, or nothing."""
    if row in VIOLATIONS and n in VIOLATION_SIZES:
        return f"{VIOLATIONS[row][VIOLATION_SIZES.index(n)]:.1f}"
    return f"<= {MOST_VIOLATIONS[row]:.1f}" if row in MOST_VIOLATIONS and n < VIOLATION_SIZES[0] else ""
