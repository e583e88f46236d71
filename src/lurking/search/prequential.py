"""`lurking.prequential`: evidence as the sum of what each structure predicted about the next rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lurking.data.files import as_table
from lurking.data.frames import pandas_frame
from lurking.data.table import Table
from lurking.errors import DataError, FractionalWeights, OptionError, TablesOnly, TooLarge, UnknownNameError
from lurking.evidence.base import Kind
from lurking.graph.dag import Dag
from lurking.runtime.checks import check_whole
from lurking.runtime.rng import seed_sequence
from lurking.search.compare import compare
from lurking.search.comparison import Comparison
from lurking.search.posterior import known_error
from lurking.types import FloatArray, Frame, IntArray, read_only

PREDICTIVE = ("exact", "cs", "vb", "ais", "chib", "importance", "thermodynamic")
"""Scores that are 0 without data, so that their values on growing data add up from nothing."""
CHECKPOINTS = 24
MOST_CASES = 10**7


@dataclass(frozen=True, eq=False)
class Prequential:
    """ln p(first t rows | structure) at checkpoints t = 0 … n, that is Σ_{i ≤ t} ln p(x_i | x_1 … x_{i−1}).

    Attributes
    ----------
    names, dags : the M structures.
    score : which score the values are of.
    kinds : what each structure's values are; differences of lower bounds bound nothing.
    rows : (C,) numbers of rows, the first one 0, the last one n.
    cumulative : (M, C) the values; the last column is the score of the whole table.
    std_errors : (M, C) standard errors of sampled values, inf where one is not known or not trusted; 0 for others.
    is_shuffled : whether rows were taken in a random order instead of that of the table.
    """

    names: tuple[str, ...]
    dags: tuple[Dag, ...]
    score: str
    kinds: tuple[Kind, ...]
    rows: IntArray
    cumulative: FloatArray
    std_errors: FloatArray
    is_shuffled: bool

    def __post_init__(self) -> None:
        for array in (self.rows, self.cumulative, self.std_errors):
            read_only(array)

    @property
    def increments(self) -> FloatArray:
        """(M, C − 1) ln p(rows between two checkpoints | rows before them)."""
        return np.diff(self.cumulative, axis=1)

    def index(self, name: str) -> int:
        """Return the position of a structure."""
        if name not in self.names:
            raise UnknownNameError("model", name, self.names)
        return self.names.index(name)

    def difference(self, first: str, second: str) -> FloatArray:
        """Return (C,) by how much `first` has predicted better than `second` up to each checkpoint."""
        return np.asarray(self.cumulative[self.index(first)] - self.cumulative[self.index(second)])

    def ranked(self) -> list[str]:
        """Return the names, the best on all rows first."""
        order = np.argsort(-self.cumulative[:, -1], kind="stable")
        return [self.names[k] for k in order]

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame: `rows`, one column of cumulative values per structure, and standard errors."""
        columns: dict[str, list[Any]] = {"rows": self.rows.tolist()}
        for k, name in enumerate(self.names):
            columns[name] = self.cumulative[k].tolist()
        for k, name in enumerate(self.names):
            if self.std_errors[k].any():
                columns[f"{name} std_error"] = self.std_errors[k].tolist()
        return pandas_frame(columns)

    def __str__(self) -> str:
        width = [max(12, len(name)) for name in self.names]
        lines = ["   rows  " + "  ".join(f"{name:>{w}}" for name, w in zip(self.names, width, strict=True))]
        for c, count in enumerate(self.rows):
            values = "  ".join(f"{self.cumulative[k, c]:{w}.3f}" for k, w in enumerate(width))
            lines.append(f"{count:7}  {values}")
        return "\n".join(lines)


def prequential(
    models: Sequence[Dag | str] | Mapping[str, Dag | str] | str,
    table: Any,
    *,
    score: str = "vb",
    checkpoints: int | Sequence[int] = CHECKPOINTS,
    shuffle: bool = False,
    seed: int = 0,
    **options: Any,
) -> Prequential:
    """Score structures on growing numbers of rows: ln p(D | m) = Σ_i ln p(x_i | x_1 … x_{i−1}, m) (Dawid 1984).

    The last value is `score` of the whole table, whatever the order of the rows; the way there shows which rows
    decided. `models`, `hidden` and the other options as in `compare`. `score`: exact, cs or vb (exact where nothing is
    unobserved, else lower bounds), or a sampled one. `checkpoints`: how many, evenly spaced, or the numbers of rows
    themselves. `shuffle` takes the rows in a random order drawn from `seed` instead of that of the table. A row with
    a whole-number weight stands for that many equal rows in sequence.
    """
    check_predictive(score)
    data = as_table(table)
    order = _cases(data)
    if options.get("families") or any(data[name].kind == "count" for name in data.columns):
        raise TablesOnly(
            "sequences of rows are scored with tables only, and some columns are counts or have another family; "
            "declare them categorical, or leave them out (drop)"
        )
    whole = compare(models, data, scores=[score], seed=seed, rescore=False, **options)
    _check_all(whole)
    counts = _checkpoints(checkpoints, len(order))
    if shuffle:
        np.random.default_rng(seed_sequence(seed)).shuffle(order)
    named = {row.name: row.dag for row in whole.rows}
    inner = {name: value for name, value in options.items() if name != "hidden"}
    cumulative = np.zeros((len(named), len(counts)))
    errors = np.zeros_like(cumulative)
    for c, count in enumerate(counts):
        if count == 0:
            continue
        found = whole
        if count < len(order):
            prefix = _first(data, next(iter(named.values())).observed, order[:count])
            found = compare(named, prefix, scores=[score], seed=seed, rescore=False, **inner)
            _check_all(found, len(named))
        cumulative[:, c] = [row.evidences[score].log_z for row in found.rows]
        errors[:, c] = [known_error(row.evidences[score]) for row in found.rows]
    kinds = tuple(row.evidences[score].kind for row in whole.rows)
    return Prequential(tuple(named), tuple(named.values()), score, kinds, counts, cumulative, errors, shuffle)


def check_predictive(score: str) -> None:
    """Refuse a score that is not 0 without data."""
    if score not in PREDICTIVE:
        raise UnknownNameError("score of growing data", score, PREDICTIVE)


def _check_all(comparison: Comparison, count: int | None = None) -> None:
    """Refuse to go on without some of the structures."""
    left_out = [note for note in comparison.warnings if "was left out: " in note]
    if left_out or (count is not None and len(comparison.rows) < count):
        raise TooLarge(f"not every model has a value on some of the first rows: {'; '.join(left_out) or 'interrupted'}")


def _cases(table: Table) -> IntArray:
    """Return the row of each case in sequence: a row of weight w is w cases."""
    if table.is_on_disk:
        raise DataError("the order of rows is not kept on disk for prequential; read a sample that fits in memory")
    if not table.has_integer_weights:
        wrong = table.weights[table.weights != np.floor(table.weights)][0]
        raise FractionalWeights(
            f"the weight {wrong:g} is no whole number; a row of that weight is no number of rows in sequence, "
            "give whole-number weights"
        )
    if table.n > MOST_CASES:
        raise TooLarge(f"the weights add up to {table.n:.3g} rows in sequence; at most {MOST_CASES:.0e} are taken")
    return np.repeat(np.arange(table.n_rows), table.weights.astype(np.int64))


def _checkpoints(given: int | Sequence[int], n: int) -> IntArray:
    """Return increasing numbers of rows from 0 to n."""
    if isinstance(given, int | np.integer):
        if isinstance(given, bool) or given < 1:
            raise OptionError(f"checkpoints is {given!r}; it must be at least 1, or a list of numbers of rows")
        inner = np.round(np.linspace(0.0, n, int(given) + 1)).astype(np.int64)
    else:
        inner = np.asarray([check_whole("a checkpoint", one, 0) for one in given], np.int64)
        if np.any(inner < 0) or np.any(inner > n):
            raise OptionError(f"checkpoints are {list(given)}; each must be a number of rows from 0 to {n}")
    return np.unique(np.concatenate([[0, n], inner]))


def _first(table: Table, columns: Sequence[str], rows: IntArray) -> Table:
    """Return some rows as a table of its own, with the levels of the whole one."""
    return Table.from_codes({name: (table[name].codes[rows], table[name].levels) for name in columns})
