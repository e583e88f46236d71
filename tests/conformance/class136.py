"""The case `class136.json`: all structures with two binary hidden causes of four five-valued variables."""

import math
from collections import Counter
from functools import cached_property, partial
from typing import Any

import numpy as np

import lurking as lk
from conformance.comparison import Comparison

GIVEN = ("description", "data", "true_links", "true_index", "structures.links", "structures.theta0")
"""Keys that state the problem."""
NOT_COMPARED: dict[str, str] = {}
HIDDEN, OBSERVED = ["s1", "s2"], ["y1", "y2", "y3", "y4"]
STATES = 5
POINT_SCORES = {"loglik": "map-likelihood", **{name: name for name in ("bic", "bicp", "draper", "mled", "cs")}}
TIED = 1e-9
"""Values that are this close have the same rank."""


def is_case(numbers: Any) -> bool:
    """Return True for the content of the case."""
    return isinstance(numbers, dict) and {"structures", "data", "true_links"} <= numbers.keys()


class Space:
    """The structures of the case and their scores, in the order of the case."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        levels = {name: list(range(STATES)) for name in OBSERVED}
        self.structures = numbers["structures"]
        self.true_index = numbers["true_index"]
        self.table = lk.Table.from_rows([row[len(HIDDEN) :] for row in numbers["data"]], OBSERVED, levels=levels)
        self.dags = [self.dag_of(structure["links"]) for structure in self.structures]
        self.problems = [lk.Problem(dag, self.table, prune=False) for dag in self.dags]

    @staticmethod
    def dag_of(links: list[list[int]]) -> lk.Dag:
        """Return the structure with the links [hidden][observed]."""
        edges = [(s, y) for b, y in enumerate(OBSERVED) for a, s in enumerate(HIDDEN) if links[a][b]]
        return lk.Dag(HIDDEN + OBSERVED, edges, dict.fromkeys(HIDDEN, 2))

    def scores(self, names: list[str], max_iter: int) -> list[Any]:
        """Return scores of every structure after plain iterations from its start."""
        found = []
        for dag, structure in zip(self.dags, self.structures, strict=True):
            init = dict(zip(HIDDEN + OBSERVED, map(np.asarray, structure["theta0"]), strict=True))
            options = {"init": init, "restarts": 1, "tol": 0.0, "accelerate": False, "prune": False}
            found.append(lk.score(dag, self.table, names, max_iter=max_iter, **options))
        return found

    @cached_property
    def after_20(self) -> list[Any]:
        """All scores after 20 iterations."""
        return self.scores(["vb", *POINT_SCORES.values()], 20)

    def values(self, score: str) -> list[float]:
        """Return a score of every structure after 20 iterations."""
        return [found[score].log_z for found in self.after_20]

    @cached_property
    def dimensions(self) -> list[int]:
        """d of every structure."""
        return [problem.dimension for problem in self.problems]

    @cached_property
    def aliases(self) -> list[float]:
        """Ln S of every structure."""
        return [problem.log_aliases for problem in self.problems]

    @cached_property
    def posterior(self) -> Any:
        """The exact posterior under equal prior probabilities of all structures.

        The uniform prior of `compare` is one over classes of structures that no data can tell apart, shared by the
        members of each, so every structure is given as many shares as its class has members.
        """
        models = {str(k): dag for k, dag in enumerate(self.dags)}
        quick = {"restarts": 1, "max_iter": 1, "rescore": False, "prune": False}
        classes = lk.compare(models, self.table, scores=["vb"], **quick)["vb"].duplicates
        members = {models[name]: len(group) for group in classes for name in group}

        def equal(dag: lk.Dag) -> float:
            return math.log(members.get(dag, 1))

        return lk.compare(models, self.table, scores=["exact"], prune=False, structure_prior=equal)["exact"]

    @property
    def exact(self) -> list[float]:
        """The exact log evidence of every structure."""
        return [candidate.evidence.log_z for candidate in self.posterior]

    def rank_of_true(self, values: list[float]) -> int:
        """Return 1 + the number of structures with a higher score than the one that made the data."""
        return 1 + sum(value > values[self.true_index] + TIED for value in values)


def compare(comparison: Comparison) -> None:
    """Compare all values of the case."""
    space = Space(comparison.numbers)
    check_space(comparison, space)
    check_structures(comparison, space)
    for key, values in {
        "exact": lambda: space.exact,
        "F": lambda: space.values("vb"),
        "F_plus_lnS": lambda: [a + b for a, b in zip(space.values("vb"), space.aliases, strict=True)],
        "cs": lambda: space.values("cs"),
        "bic": lambda: space.values("bic"),
        "bicp": lambda: space.values("bicp"),
    }.items():
        comparison.check(f"rank_of_true.{key}", lambda v=values: space.rank_of_true(v()))


def check_space(comparison: Comparison, space: Space) -> None:
    """Compare what the case says of the space of structures."""
    check, dimensions = comparison.check, space.dimensions
    true_dag = space.dag_of(comparison.numbers["true_links"])
    check("n", lambda: space.problems[0].n)
    check("n_structures", lambda: n_bipartite(len(HIDDEN), len(OBSERVED)))
    check("min_d", lambda: min(dimensions))
    check("max_d", lambda: max(dimensions))
    check("true_d", lambda: lk.Problem(true_dag, space.table, prune=False).dimension)
    check("best_index_exact", lambda: int(space.posterior.best.name))
    more = "n_structures_with_more_parameters_than_true"
    check(more, lambda: sum(d > dimensions[space.true_index] for d in dimensions))
    for key in comparison.under("d_histogram"):
        check(key, partial(Counter(dimensions).__getitem__, int(key.partition(".")[2])))
    for key in comparison.under("counts_k_by_p"):
        n_hidden, most = int(key.partition("=")[2]), len(comparison.stored(key))
        check(key, partial(numbers_of_structures, n_hidden, most))


def numbers_of_structures(n_hidden: int, most: int) -> list[int]:
    """Return the number of structures with 1 … `most` observed variables."""
    return [n_bipartite(n_hidden, n_observed) for n_observed in range(1, most + 1)]


def n_bipartite(n_hidden: int, n_observed: int) -> int:
    """Return the number of structures with hidden causes of observed variables, up to names of the causes."""
    hidden = {f"s{k + 1}": 2 for k in range(n_hidden)}
    return sum(1 for _ in lk.bipartite(hidden, [f"y{k + 1}" for k in range(n_observed)]))


def check_structures(comparison: Comparison, space: Space) -> None:
    """Compare the values of every structure."""

    def check(key: str, compute: Any) -> None:
        def stored(structure: Any) -> Any:
            for name in key.split("."):
                structure = structure[name]
            return structure

        if comparison.has(f"structures.{key}"):
            comparison.check_values(f"structures.{key}", [stored(entry) for entry in space.structures], compute)

    check("d", lambda: space.dimensions)
    check("S", lambda: np.exp(space.aliases))
    check("S_relevant", lambda: np.exp([problem.relevant_log_aliases for problem in space.problems]))
    check("log_evidence", lambda: space.exact)
    check("posterior_probability", lambda: [candidate.probability for candidate in space.posterior])
    check("F_after_1", lambda: [found["vb"].log_z for found in space.scores(["vb"], 1)])
    check("F_after_20", lambda: space.values("vb"))
    for name, score in POINT_SCORES.items():
        check(f"softmax_map_after_20.{name}", lambda s=score: space.values(s))
