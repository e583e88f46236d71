"""A search with hidden variables or empty cells: what the data can carry, where it begins, and the loop."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

from lurking.data.messages import plain_count
from lurking.data.table import Table
from lurking.errors import LurkingWarning, OptionError, StructureError, TooLarge, UndefinedScore
from lurking.graph.dag import Dag, as_dag
from lurking.graph.structure_priors import StructurePrior
from lurking.models.prior import BDeuPrior, Prior, SymmetricPrior
from lurking.runtime.checks import check_whole
from lurking.runtime.progress import Silent
from lurking.runtime.rng import Seed
from lurking.runtime.store import Store
from lurking.search.clock import Clock
from lurking.search.constraints import Constraints
from lurking.search.contenders import Invented
from lurking.search.exhaustive import optimum
from lurking.search.families import FamilyScores, prior_of_score
from lurking.search.greedy import ClimbRules, climb
from lurking.search.inventing import InventRules, invent
from lurking.search.judge import TARGET, Judge
from lurking.search.notebook import Notebook
from lurking.search.proposals import least_parameters, most_parameters
from lurking.search.structural_em import structural_em

AUTO = "auto"
MOST_HIDDEN = 3
"""Hidden variables that "auto" invents at most."""


def checked_limit(hidden: object) -> int | None:
    """Return the most hidden variables, None for "auto"."""
    if hidden == AUTO:
        return None
    if isinstance(hidden, str):
        raise OptionError(f"hidden is {hidden!r}; it must be 'auto' or a whole number of at least 0")
    return check_whole("hidden", hidden, 0)


def why_too_many(table: Table, count: int) -> str | None:
    """Return why the data cannot carry so many hidden variables, or None where they can.

    A hidden variable with fewer than three neighbours can be left out without a loss, and a tree of `count` inner nodes
    with three neighbours each has count + 2 leaves. Such a tree with binary inner nodes is the least that is needed.
    """
    columns = len(table.columns)
    if count == 0:
        return None
    if columns < count + 2:
        have = "1 column is" if columns == 1 else f"{columns} columns are"
        need = "1 hidden variable needs" if count == 1 else f"{count} hidden variables with three neighbours each need"
        return f"{have} too few: {need} {count + 2}"
    number = "a hidden variable" if count == 1 else f"{count} hidden variables"
    needed = least_parameters({name: table[name].cardinality for name in table.columns}, count)
    most = most_parameters(table)
    if needed > most:
        what = "rows" if most == table.n else "free cells in the table of all columns"
        return f"the least model with {number} has {needed} parameters, and there are {plain_count(most)} {what}"
    return None


def check_room(table: Table, count: int) -> int:
    """Return the number of hidden variables, or refuse it with the reason."""
    reason = why_too_many(table, count)
    if reason is not None:
        raise OptionError(f"hidden is {count}; {reason}; ask for fewer, or use 'auto'")
    return count


def room_for(table: Table) -> int:
    """Return how many hidden variables "auto" may invent; a warning says so where it is none."""
    for count in range(MOST_HIDDEN, 0, -1):
        if why_too_many(table, count) is None:
            return count
    warnings.warn(f"no hidden variable is tried: {why_too_many(table, 1)}", LurkingWarning, stacklevel=2)
    return 0


@final
@dataclass(frozen=True)
class HiddenSearch:
    """A search with at most `most_hidden` hidden variables; `run` does it.

    score and prior are those of `lurking.search`; "bic" is refused, since it has no prior and so no evidence. Without
    a structure prior every hidden variable counts for a factor 1/p, p the number of columns: about so many places there
    are to put one, so that a priori about one is expected in the whole table, whether it is narrow or wide. `is_exact`
    when the best of all structures over the columns is found instead of climbing to one.
    """

    table: Table
    most_hidden: int
    constraints: Constraints
    score: str = "bd"
    prior: Prior | float | None = None
    rules: ClimbRules = field(default_factory=ClimbRules)
    start: Dag | str | None = None
    seed: Seed = 0
    structure_prior: StructurePrior | None = None
    max_states: int = 8
    target: float = TARGET
    store: Store | None = None
    is_exact: bool = False

    def run(self) -> Invented:
        """Search without hidden variables first, then invent."""
        prior = self.checked_prior()
        start = self.checked_start()
        with Clock(self.rules.time_limit, self.rules.stop) as clock:
            judge = Judge(
                self.table,
                prior,
                seed=self.seed,
                target=self.target,
                workers=self.rules.workers,
                stop=clock.stop,
                store=self.store,
            )
            choices = (
                self.score,
                self.weight(prior),
                self.rules.restarts,
                self.rules.patience,
                self.max_states,
                self.is_exact,
            )
            notebook = Notebook.of_search(self.store, self.table, self.seed, prior, self.constraints, *choices)
            starts = []
            if start.hidden or (self.start is not None and not self.table.is_complete):
                starts.append(start)
                # First of all, so that whatever the time allows is not below it.
                try:
                    judge.evidence(start)
                except (TooLarge, UndefinedScore):
                    pass  # it comes again, and is told, where the start is considered
                except KeyboardInterrupt:
                    clock.stop.set()
            if not starts or not clock.is_over:
                among = Dag(self.table.columns, _among_columns(start, self.table))
                starts.append(self.based(among, clock, prior, notebook))
            rules = InventRules(
                self.most_hidden,
                self.max_states,
                structure_prior=self.structure_prior or StructurePrior("hidden", 1.0 / max(len(self.table.columns), 1)),
                scored=(self.score, self.weight(prior)),
                progress=self.rules.progress,
                notebook=notebook,
            )
            without = None
            if self.table.is_complete:
                without = partial(self.climbed, clock=clock, rules=ClimbRules(patience=10))
            return invent(starts, self.constraints, judge, rules, clock, without)

    def checked_prior(self) -> SymmetricPrior | BDeuPrior:
        """Return the prior of the score."""
        made = prior_of_score(self.score, self.prior)
        if made is None:
            raise OptionError(
                "score is 'bic', which has no prior, so hidden variables and empty cells have no evidence to be judged "
                "by; use score='bd' or 'bdeu'"
            )
        return made

    def weight(self, prior: SymmetricPrior | BDeuPrior) -> float:
        """Return the number that stands for the prior in a family score."""
        return prior.equivalent_sample_size if isinstance(prior, BDeuPrior) else prior.pseudo_count

    def checked_start(self) -> Dag:
        """Return where to begin: the required arcs alone, or the structure given, which may have hidden variables."""
        names = self.table.columns
        if self.start is None or self.start == "empty":
            return self.constraints.least()
        if self.start == "tree":
            raise OptionError("start is 'tree', which needs complete columns alone; start from 'empty' or a structure")
        given = as_dag(self.start, "start").bind(names)
        strange = sorted(set(given.observed) - set(names))
        if strange:
            raise StructureError(f"the start has {', '.join(map(repr, strange))}, which the data do not have")
        whole = Dag((*names, *given.hidden), given.edges, given.hidden)
        self.constraints.extended(whole).check(whole)
        if len(whole.hidden) > self.most_hidden:
            raise OptionError(
                f"the start has {', '.join(whole.hidden)} as hidden, and hidden is {self.most_hidden}; raise hidden"
            )
        return whole

    def based(self, start: Dag, clock: Clock, prior: Prior, notebook: Notebook) -> Dag:
        """Return the best structure without hidden variables, found now or before."""
        known = notebook.recall("base", start)
        if known is not None:
            return Dag.parse(known["structure"])
        found = self.searched(start, clock, prior)
        if not clock.is_over:
            notebook.note({"structure": found.to_text()}, "base", start)
        return found

    def searched(self, start: Dag, clock: Clock, prior: Prior) -> Dag:
        """Return the best structure found without hidden variables."""
        if self.table.is_complete:
            return self.climbed(start, clock, self.rules)
        found = structural_em(
            self.table,
            start,
            score="vb",
            prior=prior,
            constraints=self.constraints,
            patience=self.rules.patience,
            perturbations=self.rules.restarts,
            seed=self.seed,
            stop=clock.stop,
            time_limit=clock.left,
            workers=self.rules.workers,
        )
        return found.best

    def climbed(self, start: Dag, clock: Clock, rules: ClimbRules) -> Dag:
        """Return the best structure over complete columns, by climbing unless all can be looked at."""
        scorer = FamilyScores(self.table, self.score, self.prior)
        if self.is_exact:
            try:
                return optimum(scorer, self.constraints, clock.stop).best
            except KeyboardInterrupt:
                clock.stop.set()
        quiet = replace(rules, time_limit=clock.left, stop=clock.stop, progress=Silent())
        return climb(scorer, start, self.constraints, quiet).best


def _among_columns(dag: Dag, table: Table) -> list[tuple[str, str]]:
    """Return the arcs between columns."""
    return [pair for pair in dag.edges if pair[0] in table.columns and pair[1] in table.columns]
