"""What chickering-heckerman-1996 prints: its tables 1 and 2, and the numbers of its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RUNS: Final = 550
CONVERGED: Final = 549
"""Runs of EM in section 3, and how many of them met the criterion of convergence."""
RELATIVE_CHANGE: Final = 1e-5
"""The criterion: relative change of the log posterior between successive iterations."""

Cell = tuple[float, float]
"""Mean and standard deviation over five data sets; a bare 0 in the table is (0, 0)."""
NONE: Final[Cell] = (0.0, 0.0)
TABLE1: Final[Mapping[tuple[int, int, int], Mapping[str, Cell]]] = {
    (8, 4, 400): {"cs": NONE, "mled": (0.4, 1.5), "draper": NONE, "bic": (-0.2, 0.4)},
    (16, 4, 400): {"cs": (0.2, 0.4), "mled": (-0.2, 0.8), "draper": (0.2, 0.4), "bic": (-0.8, 0.4)},
    (32, 4, 400): {"cs": NONE, "mled": NONE, "draper": NONE, "bic": (-0.4, 0.5)},
    (64, 4, 400): {"cs": NONE, "mled": NONE, "draper": NONE, "bic": (-0.2, 0.4)},
    (64, 32, 400): {"cs": (16.2, 1.5), "mled": (16.2, 1.5), "draper": (-2.2, 2.0), "bic": (-6.0, 2.7)},
    (64, 16, 400): {"cs": (5.0, 6.4), "mled": (5.0, 6.4), "draper": (-1.6, 1.1), "bic": (-3.0, 1.4)},
    (64, 8, 400): {"cs": (0.8, 0.8), "mled": (0.8, 0.8), "draper": NONE, "bic": (-1.0, 1.0)},
    (32, 4, 100): {"cs": (0.6, 0.9), "mled": (0.6, 0.9), "draper": NONE, "bic": (-0.6, 0.5)},
    (32, 4, 200): {"cs": (0.2, 0.4), "mled": (0.2, 0.4), "draper": NONE, "bic": (-0.6, 0.5)},
    (32, 4, 800): {"cs": NONE, "mled": NONE, "draper": NONE, "bic": NONE},
}
"""{(observed variables, hidden states, rows): {score: Δc}}: states selected less states selected by Laplace."""

TABLE2: Final[Mapping[int, tuple[float, ...]]] = {
    1689: (500, 2800, 2, 0.06, 2, 2),
    1754: (580, 3000, 2, 0.07, 2, 2),
    1819: (590, 3300, 2, 0.07, 2, 2),
    1884: (650, 3600, 2, 0.08, 2, 2),
    1949: (680, 3900, 2, 0.08, 2, 2),
    2014: (680, 4200, 2, 0.08, 2, 2),
    2079: (530, 4600, 2, 0.08, 2, 2),
    2144: (760, 4900, 2, 0.08, 2, 2),
    2209: (810, 5500, 2, 0.08, 2, 2),
    2274: (790, 5900, 3, 0.08, 3, 3),
    2339: (870, 6700, 3, 0.08, 3, 3),
}
"""{d: seconds on a 100 MHz Pentium}, in the order of `TIMED`; scores without the EM that they are read off."""
TIMED: Final = ("em", "laplace", "cs", "mled", "draper", "bic")

DELTA_M: Final[Cell] = (26.0, 33.0)
"""Section 5: ln p(D|hidden root) − ln p(D|no hidden variable), mean and standard deviation over five repeats."""
