"""Diagnostics of chains by what does not depend on the names of hidden states."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError
from lurking.samplers import aliases
from lurking.samplers.aliases import relabelings
from lurking.samplers.convergence import predictive, summary, switching_rate, to_arviz
from lurking.samplers.gibbs import Draws, gibbs

pytest.importorskip("arviz_stats")

ROWS = [(0, 1, 0), (1, 1, 1), (0, 1, 0), (1, 0, None), (0, 0, 1), (None, 1, 0), (1, 1, 1)]
TABLE = lk.Table.from_rows(ROWS, list("abc"), levels=dict.fromkeys("abc", (0, 1)))
APART = lk.Table.from_rows([(0,) * 6, (1,) * 6], list("abcdef"), weights=[25, 25])


def relabelled(draws, which):
    """Return the draws with the names of hidden states exchanged where `which` (chains, draws) says so."""
    moved = relabelings(draws.problem.layout, draws.problem.pseudo)[1]
    log_theta = np.where(which[:, :, None], draws.log_theta[:, :, moved], draws.log_theta)
    return Draws(draws.problem, log_theta, draws.log_likelihood)


@pytest.mark.parametrize("model", ["s[2] -> a b c", "a -> s[3] -> b; a -> b; c", "s[2] -> t[3]; s -> a b; t -> b c"])
def test_predictive_probabilities_are_those_of_the_network(model):
    draws = gibbs(lk.Problem(model, TABLE), chains=2, draws=5, seed=0)
    layout = draws.problem.layout
    found = predictive(draws)
    assert set(found) == set("abc")
    for chain in range(2):
        for k in range(5):
            tables = layout.split(np.exp(draws.log_theta[chain, k]))
            network = lk.Network.from_tables(layout.dag, tables, dict(draws.problem.levels))
            for name in "abc":
                assert found[name][chain, k] == pytest.approx(network.joint([name]), rel=1e-12)


def test_chains_that_agree():
    draws = gibbs(lk.Problem("s[2] -> a b c", TABLE), chains=4, draws=1000, seed=1)
    found = summary(draws)
    assert set(found) == {"log_likelihood", *(f"p({name}={level})" for name in "abc" for level in (0, 1))}
    for values in found.values():
        assert 0.99 < values["r_hat"] < 1.02
        assert values["ess_bulk"] > 400
        assert values["ess_tail"] > 400
    assert found["log_likelihood"]["mean"] == pytest.approx(draws.log_likelihood.mean())


def test_names_of_hidden_states_do_not_matter():
    draws = gibbs(lk.Problem("s[2] -> *", APART, 0.5), chains=4, draws=300, seed=1)
    which = np.zeros((4, 300), bool)
    which[1] = which[3] = True
    plain, exchanged = summary(draws), summary(relabelled(draws, which))
    for quantity, values in plain.items():
        assert exchanged[quantity] == pytest.approx(values, rel=1e-3)  # rounding may change ranks
        assert values["r_hat"] < 1.05


def test_chains_that_disagree_are_told():
    problem = lk.Problem("s[2] -> a b c", TABLE)
    draws = gibbs(problem, chains=4, draws=300, seed=1)
    shifted = draws.log_likelihood + np.arange(4)[:, None]
    found = summary(Draws(problem, draws.log_theta, shifted))
    assert found["log_likelihood"]["r_hat"] > 1.2
    assert found["log_likelihood"]["ess_bulk"] < 100
    assert found["p(a=0)"]["r_hat"] < 1.05


def test_a_single_chain_is_compared_with_itself():
    problem = lk.Problem("s[2] -> a b c", TABLE)
    draws = gibbs(problem, chains=1, draws=401, seed=1)
    assert summary(draws)["log_likelihood"]["r_hat"] < 1.1
    drifting = Draws(problem, draws.log_theta, draws.log_likelihood + 0.02 * np.arange(401))
    assert summary(drifting)["log_likelihood"]["r_hat"] > 1.2


def test_what_does_not_vary_has_no_r_hat():
    problem = lk.Problem("s[2] -> a b c", TABLE)
    draws = gibbs(problem, chains=2, draws=10, seed=1)
    constant = summary(Draws(problem, draws.log_theta, np.full((2, 10), -3.0)))["log_likelihood"]
    assert constant["mean"] == -3.0
    assert math.isnan(constant["r_hat"])
    assert math.isnan(constant["ess_bulk"])


def test_too_few_draws_are_refused():
    draws = gibbs(lk.Problem("s[2] -> a b c", TABLE), chains=2, draws=3)
    with pytest.raises(OptionError, match="draws has 3 points in each chain"):
        summary(draws)


def test_switching_rate():
    draws = gibbs(lk.Problem("s[2] -> *", APART, 0.5), chains=2, draws=100, seed=1)
    assert switching_rate(draws) == 0.0
    every_tenth = np.zeros((2, 100), bool)
    every_tenth[:, 9::10] = True
    # Each of ten exchanged draws is entered, and all but the last one are left: 19 changes in 99 steps.
    assert switching_rate(relabelled(draws, every_tenth)) == pytest.approx(19 / 99)
    assert switching_rate(gibbs(lk.Problem("s[2] -> a b c", TABLE), chains=2, draws=200)) > 0.05
    assert switching_rate(gibbs(lk.Problem("a -> b -> c", TABLE), chains=2, draws=20)) == 0.0


def test_switching_rate_is_unknown_with_too_many_relabelings(monkeypatch):
    draws = gibbs(lk.Problem("s[2] -> a b c", TABLE), chains=2, draws=20)
    monkeypatch.setattr(aliases, "MOST_RELABELINGS", 1)
    assert math.isnan(switching_rate(draws))


def test_what_arviz_is_given(monkeypatch):
    """Names, shapes and coordinates agree with each other."""
    seen = {}
    stand_in = SimpleNamespace(from_dict=lambda groups, **more: seen.update(groups=groups, **more) or "tree")
    monkeypatch.setitem(sys.modules, "arviz_base", stand_in)
    draws = gibbs(lk.Problem("a -> s[3]; a s -> b; c", TABLE), chains=2, draws=7, seed=1)
    assert to_arviz(draws) == "tree"
    posterior = seen["groups"]["posterior"]
    assert posterior["theta_b"].shape == (2, 7, 6, 2)
    assert posterior["predictive_b"].shape == (2, 7, 2)
    for name, values in posterior.items():
        assert values.shape[2:] == tuple(len(seen["coords"][dimension]) for dimension in seen["dims"][name])
        assert values.sum(axis=-1) == pytest.approx(np.ones(values.shape[:-1]))
    assert seen["coords"]["b_parents"][:2] == ["a=0, s=0", "a=0, s=1"]
    assert np.array_equal(seen["groups"]["sample_stats"]["log_likelihood"], draws.log_likelihood)


def test_arviz_itself_takes_it():
    pytest.importorskip("arviz_base")
    draws = gibbs(lk.Problem("s[2] -> a b c", TABLE), chains=2, draws=7, seed=1)
    tree = to_arviz(draws)
    assert tree["posterior"]["theta_a"].shape == (2, 7, 2, 2)
    assert tree["sample_stats"]["log_likelihood"].shape == (2, 7)


@pytest.mark.parametrize(("call", "module", "package"), [
    (to_arviz, "arviz_base", "arviz-base"),
    (summary, "arviz_stats.base", "arviz-stats"),
])  # fmt: skip
def test_a_missing_package_is_named(call, module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    draws = gibbs(lk.Problem("s[2] -> a b c", TABLE), chains=2, draws=7)
    with pytest.raises(OptionError, match=f"pip install {package}") as caught:
        call(draws)
    assert "\n" not in str(caught.value)
