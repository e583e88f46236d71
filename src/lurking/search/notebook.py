"""What a search with hidden variables has worked out on its way, kept so that the same search goes on from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from lurking.data.table import Table
from lurking.graph.dag import Dag
from lurking.models.prior import Prior
from lurking.runtime.rng import Seed, plain_seed
from lurking.runtime.store import Key, Store, digest_of
from lurking.search.constraints import Constraints

VERSION = 4
"""Raised when a change of the search makes old notes useless."""


@final
@dataclass(frozen=True)
class Notebook:
    """Outcomes of finished pieces of a search by what they began with; without a key nothing is kept.

    Only an equal search finds them: the key holds the data, the prior, the constraints, what else decides, and the
    seed.
    """

    store: Store | None = None
    key: Key | None = None

    @classmethod
    def of_search(
        cls, store: Store | None, table: Table, seed: Seed, prior: Prior, constraints: Constraints, *choices: Any
    ) -> Notebook:
        """Return the notebook of one search; seeds that are no numbers have none, since they cannot be told apart."""
        seed = plain_seed(seed)
        if store is None or not isinstance(seed, int):
            return cls()
        configuration = digest_of(
            VERSION,
            prior.describe(),
            constraints.allowed.tobytes(),
            constraints.required.tobytes(),
            [constraints.most_parents, constraints.tiers, constraints.indicators],
            choices,
        )
        return cls(store, Key(table.digest, "", "", configuration, seed))

    def recall(self, task: str, *about: Dag) -> dict[str, Any] | None:
        """Return what is known of a piece: its name and the structures it began with."""
        if self.store is None or self.key is None:
            return None
        found: dict[str, Any] | None = self.store.get(self._key(self.key, task, about))
        return found

    def note(self, content: dict[str, Any], task: str, *about: Dag) -> None:
        """Keep the outcome of a finished piece."""
        if self.store is not None and self.key is not None:
            self.store.put(self._key(self.key, task, about), content)

    def _key(self, key: Key, task: str, about: tuple[Dag, ...]) -> Key:
        return key._replace(structure=" | ".join(dag.to_text() for dag in about), score=task)
