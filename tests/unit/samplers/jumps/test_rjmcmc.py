"""Reversible jumps leave p(m, θ, s | y) as it is: ratios of acceptance, and priors and posteriors of single moves."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chi2

import lurking as lk
from lurking.errors import OptionError, StructureError
from lurking.expfam.dirichlet import Dirichlet
from lurking.models.prior import Prior, pseudo_count_of
from lurking.samplers.jumps.allocation import drawn_tables, log_deal
from lurking.samplers.jumps.cells import completable_rows
from lurking.samplers.jumps.rjmcmc import JumpChain, Space, log_density

LEVELS = dict.fromkeys("abc", (0, 1))
TABLE = lk.Table.from_rows(
    [(0, 1, 0), (1, 1, 1), (0, 0, 0), (1, 0, 1), (None, 1, 1)], list("abc"), levels=LEVELS, weights=[1, 2, 1, 1, 1]
)


def chain_of(start, most=None, *, seed=0, prior=1.0, likelihood=True, log_prior=None, allowed="all", max_parents=9):
    """Return a chain at a structure; `most` are the most states of hidden variables, from 1 on."""
    dag, most = lk.Dag.parse(start), most or {}
    sizes = [dag.hidden.get(name, 2) for name in dag.nodes]
    arcs = np.zeros((len(sizes), len(sizes)), np.bool_)
    for parent, child in dag.edges:
        arcs[dag.nodes.index(parent), dag.nodes.index(child)] = True
    hidden = np.asarray([name in dag.hidden for name in dag.nodes])
    free = ~np.eye(len(sizes), dtype=np.bool_) & (~hidden if allowed == "all" else np.zeros_like(hidden))
    rows, weights = completable_rows(lk.Problem(dag, TABLE, prune=False), likelihood=likelihood)
    space = Space(
        nodes=dag.nodes,
        is_hidden=hidden,
        allowed=free,
        required=np.zeros_like(free),
        max_parents=max_parents,
        least=np.asarray([1 if name in most else r for name, r in zip(dag.nodes, sizes, strict=True)]),
        most=np.asarray([most.get(name, r) for name, r in zip(dag.nodes, sizes, strict=True)]),
        prior=Prior.of(prior),
        log_prior=log_prior,
        rows=rows,
        weights=weights,
    )
    return JumpChain(space, arcs, tuple(sizes), np.random.default_rng(seed))


def all_dags(nodes):
    pairs = list(itertools.permutations(nodes, 2))
    result = []
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        try:
            result.append(lk.Dag(nodes, itertools.compress(pairs, chosen)))
        except StructureError:
            continue
    return result


def check_shares(counts, probabilities, significance=1e-4):
    """Refuse counts of independent draws by Pearson's chi-square at the given significance."""
    expected = counts.sum() * probabilities
    assert expected.min() > 5
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(significance, len(counts) - 1)


def log_ratio_with_parameters(completed, prior, before, after):
    """Return the log ratio of acceptance of a change of families with the parameters in it, without ln p(m')/p(m).

    ln [p(θ'|m') p(s, y|θ', m') / q(θ')] − ln [p(θ|m) p(s, y|θ, m) / q(θ)] with q = Dir(λ + N(s)). `before` and `after`
    are the families that differ and their ln θ, flat. The value does not depend on θ: each bracket is p(s, y|m).
    """
    result = 0.0
    for sign, (families, tables) in ((-1.0, before), (1.0, after)):
        for family, log_theta in zip(families, tables, strict=True):
            counts = completed.table(*family)
            states = completed.cells.cardinalities[family[0]]
            rows = np.arange(0, len(counts) + 1, states)
            pseudo = pseudo_count_of(prior, states, len(counts) // states)
            proposal = Dirichlet(rows).log_density(counts + pseudo, log_theta)
            prior_density = log_density([log_theta.reshape(-1, states)], prior)
            result += sign * (prior_density + float(counts @ log_theta) - proposal)
    return result


@pytest.mark.parametrize("prior", [Prior.symmetric(0.7), Prior.bdeu(3.0)])
def test_parameters_proposed_from_their_full_conditional_leave_the_ratio_of_acceptance(prior):
    chain = chain_of("h[3] -> a b; c", prior=prior)
    completed, sizes = chain.completed, chain.cells.cardinalities
    # a ← h becomes a ← h c, and c, which had no parent, gets b.
    before, after = ((1, (0,)), (3, ())), ((1, (0, 3)), (3, (2,)))
    expected = sum(completed.score(*own) for own in after) - sum(completed.score(*own) for own in before)
    generator = np.random.default_rng(3)
    for strength in (1.0, 20.0):
        given = []
        for families in (before, after):
            # Any θ will do: the ratio does not depend on where it was drawn from.
            tables = [strength * np.ones(completed.cells.size(*family)) for family in families]
            states = [sizes[node] for node, _ in families]
            given.append((families, drawn_tables(tables, prior, states, generator)))
        assert log_ratio_with_parameters(completed, prior, *given) == pytest.approx(expected, abs=1e-9)


def test_without_the_likelihood_arcs_have_the_structure_prior():
    def log_prior(dag):
        return -0.4 * len(dag.edges) + 0.5 * (("a", "b") in dag.edges)

    chain = chain_of("a; b; c", likelihood=False, log_prior=log_prior)
    dags = all_dags(list("abc"))
    assert len(dags) == 25
    place = {dag: k for k, dag in enumerate(dags)}
    counts = np.zeros(25)
    for _ in range(800):
        chain.move_arcs(30)
        counts[place[chain.space.dag(chain.structure)]] += 1
    check_shares(counts, softmax([log_prior(dag) for dag in dags]))


@pytest.mark.parametrize(
    ("move", "prior"), [("jump", Prior.symmetric(0.6)), ("jump", Prior.bdeu(2.0)), ("reallocate", Prior.bdeu(2.0))]
)
def test_without_the_likelihood_states_have_the_structure_prior(move, prior):
    weights = np.asarray([0.2, 0.5, 0.3])
    chain = chain_of(
        "h[1] -> a b; t[2] -> h; c",
        {"h": 3},
        prior=prior,
        likelihood=False,
        log_prior=lambda dag: math.log(weights[dag.hidden["h"] - 1]),
        allowed="none",
    )
    counts = np.zeros(3)
    for _ in range(400):
        for _ in range(5):
            chain.draw_parameters()
            getattr(chain, move)(0)
            chain.draw_completions()
        counts[chain.cells.cardinalities[0] - 1] += 1
    check_shares(counts, weights)


@pytest.mark.parametrize("move", ["jump", "reallocate", "renew"])
def test_each_kind_of_split_alone_has_the_posterior_of_the_number_of_states(move):
    exact = [lk.score(f"h[{k}] -> a b c", TABLE, "exact", prior=0.5).log_z for k in (1, 2, 3)]
    chain = chain_of("h[1] -> a b c", {"h": 3}, prior=0.5, allowed="none")
    counts = np.zeros(3)
    for _ in range(400):
        for _ in range(5):
            if move == "jump":  # it changes parameters and voids completions; the others do the opposite
                chain.jump(0)
            else:
                getattr(chain, move)(0)
                chain.draw_parameters()
            chain.draw_completions()
            if move == "jump":
                chain.draw_parameters()
        counts[chain.cells.cardinalities[0] - 1] += 1
    check_shares(counts, softmax(exact))


def test_a_sweep_keeps_the_cases_of_every_row():
    chain = chain_of("h[2] -> a b; c", {"h": 4}, seed=5)
    for _ in range(50):
        chain.move_arcs(5)
        chain.reallocate(0)
        cells, counts = chain.cells, chain.completed.counts
        assert np.array_equal(np.bincount(cells.row_of, weights=counts), cells.weights)
        assert counts.min() >= 0.0
        chain.sweep()
    assert chain.moves["allocation"][1] > 0


def test_the_probability_of_a_deal_is_that_of_its_cases_one_by_one():
    log_odds, totals, taken = np.asarray([0.3, -2.0]), np.asarray([3.0, 1.0]), np.asarray([2.0, 0.0])
    share = 1 / (1 + np.exp(-log_odds))
    expected = 2 * math.log(share[0]) + math.log(1 - share[0]) + math.log(1 - share[1])
    assert log_deal(totals, taken, log_odds) == pytest.approx(expected, rel=1e-12)


def test_arcs_keep_the_most_parents_and_what_the_prior_rules_out():
    chain = chain_of(
        "a; b; c", max_parents=1, log_prior=lambda dag: -math.inf if ("a", "b") in dag.edges else 0.0, likelihood=False
    )
    seen = set()
    for _ in range(300):
        chain.move_arcs(5)
        seen.add(chain.space.dag(chain.structure))
    expected = {
        dag
        for dag in all_dags(list("abc"))
        if ("a", "b") not in dag.edges and max(len(dag.parents(n)) for n in "abc") < 2
    }
    assert seen == expected


def test_a_prior_that_is_no_logarithm_is_refused():
    chain = chain_of("a; b; c", log_prior=lambda _dag: math.nan, likelihood=False)
    with pytest.raises(OptionError, match="structure prior is nan"):
        chain.move_arcs(20)
