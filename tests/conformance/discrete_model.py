"""A discrete case as objects of the library, and what public calls compute for it."""

import math
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np

import lurking as lk


class Model:
    """The network, rows, prior and start of a case."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        self.numbers = numbers
        self.names: list[str] = numbers["names"]
        self.cards: list[int] = numbers["card"]
        self.parents: list[list[int]] = numbers["parents"]
        self.rows: list[list[int | None]] = numbers["data"]
        self.edges = [(self.names[p], self.names[j]) for j, parents in enumerate(self.parents) for p in parents]
        self.dag = lk.Dag(self.names, self.edges, {self.names[h]: self.cards[h] for h in numbers["hidden"]})
        self.open_dag = lk.Dag(self.names, self.edges)
        """The same structure with a column for every variable."""
        self.prior = self.prior_of(numbers["lambda"])
        self.start = self.tables_of(numbers["theta0"])
        self.fit = cache(self._fit)
        self.scores = cache(self._scores)
        self.exact = cache(self._exact)

    def tables_of(self, nested: list) -> dict[str, np.ndarray]:
        """Return [j][l][k] as {node: table[l, k]}."""
        return dict(zip(self.names, (np.asarray(table, float) for table in nested), strict=True))

    def prior_of(self, nested: list) -> lk.Prior:
        """Return pseudo-counts [j][l][k] as a prior."""
        return lk.Prior.from_counts(self.tables_of(nested))

    def in_order(self, tables: Any) -> list[np.ndarray]:
        """Return the tables of {node: table[l, k]} in the order of the case."""
        return [tables[name] for name in self.names]

    def flat(self, tables: Any) -> np.ndarray:
        """Return {node: table[l, k]} as one vector in the order of the case."""
        return np.concatenate([np.ravel(table) for table in self.in_order(tables)])

    @cached_property
    def pseudo_counts(self) -> np.ndarray:
        """λ as one vector."""
        return self.flat(self.tables_of(self.numbers["lambda"]))

    @property
    def has_probability_mode(self) -> bool:
        """True if all λ >= 1, so that "map-probability" takes the prior."""
        return bool(self.pseudo_counts.min() >= 1.0)

    def table_of(self, rows: list, names: list[str] | None = None) -> lk.Table:
        """Return rows over all variables as a table of the variables with columns, or of those named."""
        chosen = [j for j, name in enumerate(self.names) if name in (names or self.dag.observed)]
        return lk.Table.from_rows(
            [[row[j] for j in chosen] for row in rows],
            [self.names[j] for j in chosen],
            levels={self.names[j]: list(range(self.cards[j])) for j in chosen},
        )

    @cached_property
    def table(self) -> lk.Table:
        """The rows of the case."""
        return self.table_of(self.rows)

    @cached_property
    def problem(self) -> lk.Problem:
        """Every unobserved cell kept, as in the main numbers of a case."""
        return lk.Problem(self.dag, self.table, self.prior, prune=False)

    def options(self, max_iter: int, *, prune: bool = False) -> dict[str, Any]:
        """Return options of plain iterations from the start of the case."""
        plain = {"init": self.start, "restarts": 1, "tol": 0.0, "accelerate": False, "max_iter": max_iter}
        return {**plain, "prior": self.prior, "prune": prune}

    def _fit(self, method: str, max_iter: int, prune: bool = False) -> lk.Fit:
        return lk.fit(self.dag, self.table, method=method, **self.options(max_iter, prune=prune))

    def _scores(self, names: tuple[str, ...], at: str, max_iter: int) -> Any:
        return lk.score(self.dag, self.table, list(names), at=at, **self.options(max_iter))

    def _exact(self, prune: bool) -> float:
        return lk.score(self.dag, self.table, "exact", prior=self.prior, prune=prune).log_z

    @cached_property
    def start_network(self) -> lk.Network:
        """The network with the tables of the start."""
        return lk.Network.from_tables(self.dag, self.start)

    def logliks(self, method: str, n: int, prune: bool = False) -> list[float]:
        """Return ln p(y|θ) at the start and after 1 … n − 1 iterations."""
        first = float(self.start_network.loglik(self.table).sum())
        return [first, *(self.fit(method, t, prune).log_z for t in range(1, n))]

    def log_prior(self, tables: dict[str, np.ndarray]) -> float:
        """Return ln Dir(θ; λ) at any θ.

        It is the term `log_prior` of bicp at the maximum-likelihood estimate of a single row without any observed
        value: every θ is one, so the estimate is the start.
        """
        empty = self.table_of([[None] * len(self.names)])
        options = {**self.options(1), "init": tables}
        return lk.score(self.dag, empty, "bicp", at="ml", **options).parts["log_prior"]

    def log_evidence(self, rows: list, prior: lk.Prior | None = None) -> float:
        """Return the exact log evidence of rows over all variables, hidden ones included where they have a state."""
        return lk.score(self.open_dag, self.table_of(rows, self.names), "exact", prior=prior or self.prior).log_z

    def completions(self, row: list[int | None]) -> list[tuple[int, ...]]:
        """Return every completion of a row."""
        cells = zip(row, self.cards, strict=True)
        return list(product(*(range(card) if cell is None else [cell] for cell, card in cells)))

    def places(self, completion: tuple[int, ...]) -> list[int]:
        """Return the positions in the flat vector that a completed row uses, one for each family."""
        result, offset = [], 0
        for j, parents in enumerate(self.parents):
            configuration = 0
            for p in parents:
                configuration = configuration * self.cards[p] + completion[p]
            result.append(offset + configuration * self.cards[j] + completion[j])
            offset += math.prod(self.cards[p] for p in parents) * self.cards[j]
        return result
