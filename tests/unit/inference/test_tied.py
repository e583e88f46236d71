"""Tied families against brute force: evidence, expectations, curvature, aliases, learning, sampling, files."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.special import gammaln

import lurking as lk
from curvature_checks import curvature_by_differences
from lurking.errors import FormatError, LurkingError, LurkingWarning, OptionError
from lurking.graph.dag import Dag
from lurking.inference.curvature.coordinates import Logits
from lurking.inference.curvature.hessian import full
from lurking.inference.engines.choice import MixedEngine
from lurking.inference.engines.enumeration import EnumerationEngine
from lurking.inference.engines.junction import JunctionEngine
from lurking.inference.problem import Problem
from lurking.samplers.aliases import group_of, relabelings
from lurking.samplers.collapsed import collapsed_gibbs
from lurking.samplers.gibbs import gibbs

CROSSED = Dag.from_edges(
    [("a", "y1"), ("b", "y1"), ("b", "y2"), ("a", "y2")], nodes=["a", "b", "y1", "y2"], hidden={"a": 2, "b": 2}
)
CASES = {
    "two waves": ("s[2] -> y1 y2 y3", [["y1", "y2"]]),
    "two causes": ("s1[2] -> s2[2]; s1 -> y1; s2 -> y2", [["y1", "y2"]]),
    "apart": ("s1[2] -> y1; s2[2] -> y2", [["y1", "y2"]]),
    "all the same": ("s1[2] -> y1; s2[2] -> y2", [["y1", "y2"], ["s1", "s2"]]),
    "chain": ("h1[2] -> h2[2] -> h3[2]; h1 -> y1; h2 -> y2; h3 -> y3", [["h2", "h3"], ["y1", "y2", "y3"]]),
    "roots": ("a[2] -> y1; b[2] -> y1", [["a", "b"]]),
    "observed": ("y1 -> y2; y3 -> y4", [["y2", "y4"]]),
    "roots of both kinds": ("s[2] -> y1; y2", [["s", "y2"]]),
    "crossed parents": (CROSSED, [["y1", "y2"]]),
    "three states": ("s[3] -> y1 y2 y3", [["y1", "y3"]]),
    "a table and its parent": ("s[2] -> t[2] -> y1", [["t", "y1"]]),
}
EVERY = pytest.mark.parametrize("case", list(CASES))


def table_for(dag, rows=4, empty=0.25, seed=0):
    columns = list((dag if isinstance(dag, Dag) else Dag.parse(dag)).observed)
    rng = np.random.default_rng(seed)
    codes = [[None if rng.random() < empty else int(rng.integers(0, 2)) for _ in columns] for _ in range(rows)]
    return lk.Table.from_rows(codes, columns, levels={name: [0, 1] for name in columns})


def problem_of(case, engine="auto", prior=1.0, prune=True, **options):
    dag, tied = CASES[case]
    return Problem(dag, table_for(dag, **options), prior, tied=tied, engine=engine, prune=prune)


def completions(problem):
    """Yield every completion of all rows as {node: states of the rows}, written out row by row."""
    dag, table = problem.full_dag, problem.table
    choices = []
    for i in range(table.n_rows):
        for name in dag.nodes:
            code = -1 if name in dag.hidden else int(table[name].codes[i])
            choices.append([code] if code >= 0 else range(len(problem.levels[name])))
    width = len(dag.nodes)
    for flat in itertools.product(*choices):
        yield {name: flat[j::width] for j, name in enumerate(dag.nodes)}


def brute_force_evidence(problem, pseudo_count=1.0):
    """Return ln Σ over completions of Π over shared tables of the Dirichlet evidence of pooled counts."""
    dag = problem.full_dag
    tied = [list(group) for group in problem.tied]
    groups = tied + [[name] for name in dag.nodes if not any(name in group for group in tied)]
    terms = []
    for values in completions(problem):
        total = 0.0
        for group in groups:
            sizes = [len(problem.levels[v]) for v in (*dag.parents(group[0]), group[0])]
            counts = np.zeros(sizes)
            for name in group:
                for cell in zip(*(values[v] for v in (*dag.parents(name), name)), strict=True):
                    counts[cell] += 1.0
            alpha = counts + pseudo_count
            total += (gammaln(alpha) - gammaln(pseudo_count)).sum()
            total += (gammaln(pseudo_count * sizes[-1]) - gammaln(alpha.sum(axis=-1))).sum()
        terms.append(total)
    return float(np.logaddexp.reduce(terms))


def small(case):
    return problem_of(case, rows=3 if case in ("chain", "roots", "crossed parents", "three states") else 4)


def evidence(problem, name, **options):
    return lk.score(problem.full_dag, problem.table, name, tied=problem.tied, seed=0, **options)


@EVERY
def test_exact_evidence_is_the_sum_over_completions_with_pooled_counts(case):
    problem = small(case)
    for prune in (True, False):
        assert evidence(problem, "exact", prune=prune).log_z == pytest.approx(brute_force_evidence(problem), abs=1e-9)
    assert evidence(problem, "exact", prior=0.3).log_z == pytest.approx(brute_force_evidence(problem, 0.3), abs=1e-9)


def test_tied_roots_with_complete_data_have_the_closed_form_of_pooled_counts():
    table = lk.Table.from_rows([(0, 1), (0, 0), (1, 1), (1, 1), (1, 0)], ["a", "b"])
    lnz = gammaln(2) - gammaln(12) + gammaln(1 + 4) + gammaln(1 + 6)  # four zeros and six ones in both columns
    for name in ("exact", "vb", "cs", "ais"):
        assert lk.score("a; b", table, name, tied=[["a", "b"]]).log_z == pytest.approx(lnz, abs=1e-9)
    fit = lk.fit("a; b", table, method="ml", tied=[["a", "b"]])
    assert fit.network.tables["a"].tolist() == fit.network.tables["b"].tolist() == [[0.4, 0.6]]
    assert fit.problem.dimension == fit.problem.effective_dimension == 1
    assert fit.statistics.dimension == 1


@EVERY
@pytest.mark.parametrize("engine", ["enumeration", "junction", "auto"])
def test_counts_are_the_gradient_and_engines_agree(case, engine):
    problem, plain = problem_of(case, engine), problem_of(case, "reference")
    rng = np.random.default_rng(1)
    potentials = np.log(rng.uniform(0.1, 1.0, problem.layout.size))
    counts, log_z = problem.engine.expect(potentials)
    expected, expected_log_z = plain.engine.expect(potentials)
    assert log_z == pytest.approx(expected_log_z, rel=1e-12)
    assert counts == pytest.approx(expected, rel=1e-10, abs=1e-12)
    for q in range(problem.layout.size):
        step = np.zeros(problem.layout.size)
        step[q] = 1e-6
        slope = problem.engine.expect(potentials + step)[1] - problem.engine.expect(potentials - step)[1]
        assert slope / 2e-6 == pytest.approx(counts[q], abs=1e-7)


@pytest.mark.parametrize("structure", ["s[2] -> y1 y2; t[2] -> y3 y4", "s[2] -> y1 y2; y3 -> y4"])
def test_engines_side_by_side_share_a_table(structure):
    tied = [["y1", "y4"]]
    table = table_for(structure, 6, 0.0)
    problem = Problem(structure, table, tied=tied, engine="reference")
    layout = problem.layout
    halves = [[layout.index[n] for n in part] for part in (("s", "y1", "y2"), set(layout.nodes) - {"s", "y1", "y2"})]
    arguments = (layout, problem.rows, True, ())
    mixed = MixedEngine([EnumerationEngine(*arguments, halves[0]), JunctionEngine(*arguments, halves[1])])
    potentials = np.log(np.random.default_rng(2).uniform(0.1, 1.0, layout.size))
    counts, log_z = mixed.expect(potentials)
    expected, expected_log_z = problem.engine.expect(potentials)
    assert log_z == pytest.approx(expected_log_z)
    assert counts == pytest.approx(expected)


@EVERY
@pytest.mark.parametrize("engine", ["enumeration", "reference"])
def test_full_curvature_is_that_of_finite_differences(case, engine):
    problem = problem_of(case, engine, rows=6)
    source, active = problem.engine, problem.engine.active
    row_of = problem.layout.row_of[active]
    starts = np.append(np.flatnonzero(np.diff(row_of, prepend=-1)), len(active))
    rng = np.random.default_rng(3)
    theta = rng.uniform(0.2, 1.0, len(active))
    theta /= np.repeat(np.add.reduceat(theta, starts[:-1]), np.diff(starts))
    coordinates = Logits(starts, theta, np.zeros(len(active), bool))
    counts = source.expect_active(np.log(theta))[0] + problem.pseudo[active]
    matrix = full(source, np.log(theta), coordinates, counts)
    assert matrix == pytest.approx(curvature_by_differences(problem, coordinates, active), abs=1e-6)


def brute_force_aliases(problem):
    """Count the different tables that relabelings make of generic tied ones, which must stay tied."""
    dag, layout = problem.dag, problem.layout
    theta = layout.normalise(np.random.default_rng(5).uniform(0.1, 1.0, layout.size))
    tables = layout.split(theta)
    hidden = list(dag.hidden)
    found = set()
    for image in itertools.permutations(hidden):
        name_of = {**{name: name for name in dag.nodes}, **dict(zip(hidden, image, strict=True))}
        back = {new: old for old, new in name_of.items()}
        if any(dag.hidden[old] != dag.hidden[new] for old, new in zip(hidden, image, strict=True)):
            continue
        if {(name_of[a], name_of[b]) for a, b in dag.edges} != set(dag.edges):
            continue
        for orders in itertools.product(*(itertools.permutations(range(dag.hidden[name])) for name in hidden)):
            order = dict(zip(hidden, orders, strict=True))
            made = {}
            for name in dag.nodes:
                scope, old = (*dag.parents(name), name), back[name]
                old_scope = (*dag.parents(old), old)
                cube = tables[old].reshape([problem.cardinalities[v] for v in old_scope])
                cube = cube.transpose([old_scope.index(back[v]) for v in scope])
                for axis, v in enumerate(scope):
                    if v in order:
                        cube = np.take(cube, order[v], axis=axis)
                made[name] = cube.reshape(tables[name].shape)
            if all(np.array_equal(made[group[0]], made[name]) for group in layout.tied for name in group):
                found.add(b"".join(made[name].tobytes() for name in dag.nodes))
    return len(found)


@EVERY
def test_aliases_are_the_relabelings_that_keep_ties(case):
    problem = problem_of(case)
    count = brute_force_aliases(problem)
    assert math.exp(problem.log_aliases) == pytest.approx(count)
    assert len(relabelings(problem.layout, problem.pseudo)) == count
    group = group_of(problem)
    assert group.orders.log_count + group.log_missing == pytest.approx(math.log(count))


def test_states_that_a_tie_couples_are_exchanged_together():
    assert math.exp(problem_of("two causes").log_aliases) == pytest.approx(2.0)
    apart = Problem("s1[2] -> s2[2]; s1 -> y1; s2 -> y2", table_for("s1[2] -> s2[2]; s1 -> y1; s2 -> y2"))
    assert math.exp(apart.log_aliases) == pytest.approx(4.0)


def test_aliases_keep_an_uneven_prior_too():
    even, uneven = [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]
    prior = lk.Prior.from_counts({"s": [[1.0, 1.0]], "y1": uneven, "y2": uneven, "y3": even})
    problem = Problem("s[2] -> y1 y2 y3", table_for("s[2] -> y1 y2 y3"), prior, tied=[["y1", "y2"]])
    assert problem.log_aliases == 0.0
    assert len(relabelings(problem.layout, problem.pseudo)) == 1


@EVERY
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
@pytest.mark.parametrize("optimizer", ["em", "lbfgs"])
def test_climbs_rise_and_tables_are_equal(case, method, optimizer):
    problem = problem_of(case, rows=12)
    options = {"tied": problem.tied, "method": method, "restarts": 2, "optimizer": optimizer}
    fit = lk.fit(problem.full_dag, problem.table, **options)
    assert np.all(np.diff(fit.trace) >= -1e-10 * abs(fit.objective))
    for group in problem.tied:
        for name in group:
            assert fit.network.tables[name].tolist() == fit.network.tables[group[0]].tolist()
            if method == "vb":
                assert fit.posterior[name].tolist() == fit.posterior[group[0]].tolist()
    if method == "ml":
        assert fit.objective == pytest.approx(fit.network.loglik(problem.table).sum(), abs=1e-9)


@EVERY
def test_bounds_lie_below_the_exact_evidence(case):
    problem = small(case)
    exact = brute_force_evidence(problem)
    for name in ("vb", "cs"):
        assert evidence(problem, name).log_z <= exact + 1e-9


@pytest.mark.parametrize("case", ["two waves", "two causes", "all the same", "chain", "crossed parents", "observed"])
def test_sampled_evidence_is_near_the_exact_one(case):
    problem = small(case)
    exact = brute_force_evidence(problem)
    for name, options in (("ais", {}), ("ais", {"path": "parameters", "chains": 40, "steps": 200}), ("chib", {})):
        sampled = evidence(problem, name, **options)
        error = max(sampled.std_error, 0.01)
        assert abs(sampled.log_z - exact) < 4.0 * error, (name, options)


def test_gibbs_draws_have_the_posterior_mean_of_pooled_counts():
    problem = small("observed")
    draws = gibbs(problem, chains=4, draws=2000, seed=0, workers=1)
    weights, means = [], []
    layout = problem.layout
    for values in completions(problem):
        counts = np.zeros(layout.size)
        for j, name in enumerate(layout.nodes):
            for i in range(problem.table.n_rows):
                place = 0
                for parent in problem.dag.parents(name):
                    place = 2 * place + values[parent][i]
                counts[layout.offsets[j] + 2 * place + values[name][i]] += 1.0
        alpha = counts + 1.0
        weights.append(float(gammaln(alpha).sum() - gammaln(layout.row_sums(alpha)).sum()))
        means.append(layout.normalise(alpha))
    share = np.exp(np.asarray(weights) - np.logaddexp.reduce(weights))
    assert draws.mean == pytest.approx(share @ np.asarray(means), abs=0.02)


def test_ties_of_pruned_nodes():
    table = table_for("s[2] -> y1 y2", 8)
    tied = [["s", "t"]]
    fit = lk.fit("s[2] -> y1 y2; t[2]", table, method="map", tied=tied)
    assert fit.network.tables["t"].tolist() == fit.network.tables["s"].tolist()
    assert fit.network.tables["t"][0, 0] != 0.5
    alone = lk.fit("s[2] -> y1 y2", table, method="map")
    assert fit.objective == pytest.approx(alone.objective)
    exact = [lk.score("s[2] -> y1 y2; t[2]", table, "exact", tied=tied, prune=prune).log_z for prune in (True, False)]
    assert exact[0] == pytest.approx(exact[1])
    assert exact[0] == pytest.approx(lk.score("s[2] -> y1 y2", table, "exact").log_z)


def test_files_keep_ties(tmp_path):
    problem = problem_of("two waves", rows=10)
    network = lk.fit(problem.full_dag, problem.table, tied=problem.tied).network
    path = tmp_path / "tied.json"
    network.save(path)
    loaded = lk.Network.load(path)
    assert loaded == network
    assert loaded.tied == (("y1", "y2"),)
    assert loaded.relevant_dimension == problem.dimension == 5
    untied = lk.fit(problem.full_dag, problem.table).network
    untied.save(tmp_path / "plain.json")
    assert json.loads((tmp_path / "plain.json").read_text())["version"] == 1
    content = json.loads(path.read_text())
    assert content["version"] == 2
    content["nodes"][1]["table"][0] = [0.5, 0.5]
    path.write_text(json.dumps(content))
    with pytest.raises(FormatError, match="share one table"):
        lk.Network.load(path)


def test_queries_and_statistics_of_a_tied_network():
    problem = problem_of("chain", rows=20)
    fit = lk.fit(problem.full_dag, problem.table, tied=problem.tied, method="map")
    plain = lk.Network.from_tables(problem.full_dag, fit.network.tables)
    for name, probabilities in fit.network.hidden_probabilities(problem.table).items():
        assert probabilities == pytest.approx(plain.hidden_probabilities(problem.table)[name])
    assert fit.network.sample(5, seed=1).digest == plain.sample(5, seed=1).digest
    assert fit.statistics.dimension == problem.dimension == 1 + 2 + 2


@pytest.mark.parametrize(
    ("tied", "says"),
    [
        ("y1,y2", "list of groups"),
        ([["y1"]], "list of groups"),
        (["y1", "y2"], "list of groups"),
        ([["y1", "z"]], "'z' in tied is no variable"),
        ([["y1", "y2"], ["y2", "y3"]], "tied twice"),
        ([["y1", "y1"]], "tied twice"),
        ([["y1", "w"]], "2 and 3 states"),
        ([["y1", "s"]], "parents with"),
    ],
)
def test_what_cannot_be_tied_is_refused(tied, says):
    rows = [(0, 1, 0, 0), (1, 0, 1, 2), (1, 1, 0, 1)]
    table = lk.Table.from_rows(rows, ["y1", "y2", "y3", "w"])
    with pytest.raises(LurkingError, match=says):
        lk.fit("s[2] -> y1 y2 y3 w", table, tied=tied)


def test_different_priors_cannot_be_tied():
    prior = lk.Prior.from_counts({"a": [[1.0, 1.0]], "b": [[1.0, 2.0]]})
    table = lk.Table.from_rows([(0, 1), (1, 0)], ["a", "b"])
    with pytest.raises(LurkingError, match="'a' and 'b' differ"):
        Problem("a; b", table, prior, tied=[["a", "b"]])
    init = {"a": [0.5, 0.5], "b": [0.4, 0.6], "h": [0.5, 0.5]}
    with pytest.raises(LurkingError, match="init of 'a' and 'b' differ"):
        lk.fit("a; b; h[2]", table, init=init, prune=False, tied=[["a", "b"]])


def test_levels_with_other_names_are_matched_by_place_with_a_warning():
    table = lk.Table.from_rows([("x", "p"), ("y", "q")], ["a", "b"])
    with pytest.warns(LurkingWarning, match="matched by their place"):
        Problem("a; b", table, tied=[["a", "b"]])


def test_what_cannot_honour_ties_says_so():
    problem = small("two waves")
    with pytest.raises(OptionError, match="use gibbs"):
        collapsed_gibbs(problem, sweeps=5, burn_in=0)
    with pytest.raises(OptionError, match="path='variational'"):
        evidence(problem, "ais", path="completions")
    for curvature in ("blocks", "diagonal"):
        with pytest.raises(OptionError, match="curvature='full'"):
            evidence(problem, "laplace", curvature=curvature)


def test_asymptotics_of_untied_features_are_refused():
    table = lk.Table.from_rows([(0, 1, 0), (0, 0, 1), (1, 1, 1), (1, 1, 0), (1, 0, 0)], ["a", "b", "c"])
    with pytest.raises(lk.errors.UndefinedScore, match="tied; use bic"):
        lk.score("s[2] -> *", table, "adjusted-bic", tied=[["a", "b"]])


def test_compare_takes_ties():
    table = table_for("s[2] -> y1 y2 y3", 30, 0.0)
    comparison = lk.compare({"one": "y1 y2; y3", "two": "s[2] -> y1 y2 y3"}, table, tied=[["y1", "y2"]], scores=["bic"])
    assert [row.dimension for row in comparison.rows] == [2, 1 + 2 + 2]
