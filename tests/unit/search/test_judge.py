"""Evidence and fits of structures, found now or recalled."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingWarning, UndefinedScore
from lurking.evidence import base
from lurking.runtime.store import Store
from lurking.search import judge as judging
from lurking.search.judge import Judge

TWO_CAUSES = lk.Dag.parse("h[3] -> a b c d e f; g[3] -> a b c d e f")


def noisy_groups(n=150, seed=2):
    rng = np.random.default_rng(seed)
    typical, group = rng.integers(0, 2, (8, 6)), rng.integers(0, 8, n)
    rows = np.where(rng.random((n, 6)) < 0.1, 1 - typical[group], typical[group])
    return lk.Table.from_array(rows, columns=list("abcdef"))


def test_a_recalled_value_leaves_the_same_bound_as_a_sampled_one(tmp_path):
    table = noisy_groups()
    with Store(tmp_path / "kept.sqlite") as store:
        fresh, replayed = (Judge(table, 0.2, seed=0, target=2.0, store=store) for _ in range(2))
        value = fresh.evidence(TWO_CAUSES)
        alone = Judge(table, 0.2, seed=0).cheap(TWO_CAUSES)
        assert fresh.cheap(TWO_CAUSES) > alone + 0.01, "six starts must miss the best fit, or nothing is tested"
        assert replayed.evidence(TWO_CAUSES).log_z == value.log_z
        assert replayed.cheap(TWO_CAUSES) == fresh.cheap(TWO_CAUSES)


def refusing(monkeypatch, is_refused):
    """Make sampled evidence undefined for some structures."""
    found = judging.evaluate

    def evaluate(problem, names, *others):
        if is_refused(problem.full_dag):
            raise UndefinedScore("ais has no value here")
        return found(problem, names, *others)

    monkeypatch.setattr(judging, "evaluate", evaluate)


def test_a_search_passes_over_structures_without_a_value(monkeypatch):
    refusing(monkeypatch, lambda dag: bool(dag.hidden))
    found = lk.search(noisy_groups(), hidden=1, target=1.0, max_states=2)
    assert not found.best.hidden
    assert found.evidence.kind is base.Kind.EXACT


def test_a_search_whose_start_has_no_value_goes_by_its_bound(monkeypatch):
    refusing(monkeypatch, lambda _dag: True)
    with pytest.warns(LurkingWarning, match="judged by a bound"):
        found = lk.search(noisy_groups(), hidden=1, start="h[2] -> a b c; d; e; f", target=1.0, max_states=2)
    assert found.evidence.kind is base.Kind.LOWER_BOUND
