"""Every number of the reference cases, to 1e-9 relative or better."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import lurking as lk
from lurking.errors import PriorError, UndefinedScore
from lurking.expfam.dirichlet import Dirichlet
from lurking.inference.problem import ENGINES

METHOD = {"ml": "ml", "map": "map-probability", "map_softmax": "map"}
SCORES = {"loglik": "map-likelihood", **{name: name for name in ("bic", "bicp", "draper", "mled", "cs")}}
TIGHT = 1e-12


def close(expected, relative=TIGHT):
    return pytest.approx(expected, rel=relative, abs=relative)


def options(case, **more):
    return {**case.plain, "prior": case.prior, "prune": False, **more}


def test_the_cases_are_all_there(cases):
    assert len(cases) == 42
    assert {"nb02", "nb04", "nb13", "miss04", "large01"} <= set(cases)


def test_structure_numbers(case):
    problem = case.problem()
    assert problem.dimension == case["structure"]["d"]
    assert problem.effective_dimension == case["structure"]["d_effective"]
    assert problem.log_aliases == close(case["structure"]["ln_S"])
    assert problem.relevant_log_aliases == close(case["structure"]["ln_S_relevant"])
    assert case.problem(prune=True).log_aliases == close(case["structure"]["ln_S_relevant"])
    assert problem.n == case["n"]


@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
def test_exact_evidence(exact_case, prune):
    case = exact_case
    evidence = lk.score(case.dag, case.table, "exact", prior=case.prior, prune=prune)
    assert evidence.log_z == close(case["exact"]["log_evidence"])
    if case["exact"]["evidence_fraction"] is not None:
        fraction = Fraction(case["exact"]["evidence_fraction"])
        assert math.exp(evidence.log_z) == pytest.approx(float(fraction), rel=1e-10)


def test_predictive_is_a_ratio_of_exact_evidences(exact_case):
    case = exact_case
    predictive = case["exact"].get("predictive")
    if predictive is None:
        assert case["id"] == "bip05"  # the only case whose longer table is too large to have been computed
        return
    longer = case.table_of([*case["data"], predictive["row"]])
    before = lk.score(case.dag, case.table, "exact", prior=case.prior)
    after = lk.score(case.dag, longer, "exact", prior=case.prior)
    assert after.log_z - before.log_z == close(predictive["log_p"], 1e-11)


@pytest.mark.parametrize("name", ["nb02", "nb04", "nb11", "chain05", "op01", "miss01", "bip01", "both05"])
def test_posterior_expected_counts_from_exact_evidences(cases, name):
    """E[N_jlk | y]: each row's family is filled in every way, the hidden columns being columns with empty cells."""
    case = cases[name]
    open_dag = lk.Dag(case.names, case.dag.edges)
    levels = {node: list(range(card)) for node, card in zip(case.names, case["card"], strict=True)}

    def log_evidence(rows):
        table = lk.Table.from_rows(rows, case.names, levels=levels)
        return lk.score(open_dag, table, "exact", prior=case.prior).log_z

    total = log_evidence(case["data"])
    assert total == close(case["exact"]["log_evidence"])
    counts = np.zeros(case.layout.size)
    for i, row in enumerate(case["data"]):
        for j, parents in enumerate(case["parents"]):
            family = [*parents, j]
            for states in itertools.product(*(range(case["card"][v]) for v in family)):
                if any(row[v] not in (None, k) for v, k in zip(family, states, strict=True)):
                    continue
                filled = list(row)
                for v, k in zip(family, states, strict=True):
                    filled[v] = k
                place = case.layout.offsets[j] + sum(
                    case.layout.strides[j][v] * k for v, k in zip(family, states, strict=True)
                )
                rows = [*case["data"][:i], filled, *case["data"][i + 1 :]]
                counts[place] += math.exp(log_evidence(rows) - total)
    assert counts == close(case.flat(case["exact"]["posterior_expected_counts"]), 1e-11)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_first_e_step(case, engine):
    problem = lk.Problem(case.dag, case.table, case.prior, prune=False, engine=engine)
    with np.errstate(divide="ignore"):
        counts, log_z = problem.engine.expect(np.log(case.flat(case["theta0"])))
    assert log_z == close(case["first_e_step"]["loglik"])
    assert counts == close(case.flat(case["first_e_step"]["expected_counts"]))


def test_row_posteriors_at_the_start(exact_case):
    case = exact_case
    problem = case.problem()
    potentials = np.log(case.flat(case["theta0"]))
    inverse = case.table.patterns(case.dag.observed).inverse
    for node in range(len(case.names)):
        expected = np.zeros((case["n"], case["card"][node]))
        for i, entries in enumerate(case["first_e_step"]["row_posteriors"]):
            free = [j for j, cell in enumerate(case["data"][i]) if cell is None]
            for states, probability in entries:
                filled = list(case["data"][i])
                for j, state in zip(free, states, strict=True):
                    filled[j] = state
                expected[i, filled[node]] += probability
        marginals = problem.engine.pattern_marginals(potentials, node)[inverse]
        assert marginals == close(expected)


def test_priors_without_a_mode_are_refused(refused_point):
    case, stored = refused_point
    assert stored == "map"
    with pytest.raises(PriorError, match="λ"):
        lk.fit(case.dag, case.table, method="map-probability", **options(case))
    with pytest.raises(PriorError, match="λ"):
        lk.score(case.dag, case.table, "cs", at="map-probability", **options(case))


def test_em_trace_and_parameters(point):
    case, stored = point
    numbers = case["em"][stored]
    fit = lk.fit(case.dag, case.table, method=METHOD[stored], max_iter=5, **options(case))
    assert fit.n_iter == 5
    assert fit.trace == close(numbers["objective"][1:])
    assert fit.objective == fit.trace[-1]
    assert fit.log_z == close(numbers["loglik"][5])
    assert fit.network.theta == close(case.flat(numbers["theta_after_5"]))
    assert np.exp(fit.potentials) == close(case.flat(numbers["theta_after_5"]))
    for t in range(1, 5):
        shorter = lk.fit(case.dag, case.table, method=METHOD[stored], max_iter=t, **options(case))
        assert shorter.log_z == close(numbers["loglik"][t])


def finite(value):
    return isinstance(value, float | int) and math.isfinite(value)


@pytest.mark.parametrize("iterations", [5, 50])
def test_scores_of_a_point(point, iterations):
    case, stored = point
    numbers = case["em"][stored]
    # nb13 starts at the symmetric saddle and stays there, so only its first iterations are stored.
    expected = numbers["scores_after_5" if case["id"] == "nb13" else f"scores_after_{iterations}"]
    iterations = 5 if case["id"] == "nb13" else iterations
    given = options(case, at=METHOD[stored], max_iter=iterations)
    for key, name in SCORES.items():
        if finite(expected[key]):
            assert lk.score(case.dag, case.table, name, **given).log_z == close(expected[key], 1e-11), name
        else:
            with pytest.raises(UndefinedScore):
                lk.score(case.dag, case.table, name, **given)
    corrected = expected["cs_dimension_corrected"]
    if finite(corrected) and case["n"]:
        effective = lk.score(case.dag, case.table, "cs", dimension="effective", **given)
        assert effective.log_z == close(corrected, 1e-11)
        for name in ("bic", "draper"):
            slope = math.log(case["n"]) - (math.log(2 * math.pi) if name == "draper" else 0.0)
            shift = 0.5 * (case["structure"]["d"] - case["structure"]["d_effective"]) * slope
            value = lk.score(case.dag, case.table, name, dimension="effective", **given).log_z
            assert value == close(expected[name] + shift, 1e-11)
    else:
        with pytest.raises(UndefinedScore):
            lk.score(case.dag, case.table, "cs", dimension="effective", **given)


def test_scores_asked_together_equal_scores_asked_alone(case):
    given = options(case, max_iter=7)
    names = ["map-likelihood", "mled", "cs", "vb"] + (["bic", "bicp", "draper"] if case["n"] else [])
    together = lk.score(case.dag, case.table, names, **given)
    for name in names:
        assert together[name].log_z == lk.score(case.dag, case.table, name, **given).log_z


def test_variational_bound(case):
    numbers = case["vbem"]
    fit = lk.fit(case.dag, case.table, method="vb", max_iter=5, **options(case))
    assert fit.trace == close(numbers["F_after_vbm"])
    assert fit.n_iter == 5
    assert fit.posterior.flat == close(case.flat(numbers["alpha_after_5"]))
    if "F_after_50_iterations" in numbers:
        longer = lk.score(case.dag, case.table, "vb", max_iter=50, **options(case))
        assert longer.log_z == close(numbers["F_after_50_iterations"], 1e-11)


def half_step(problem, alpha):
    """F with the new q(s) and the old q(θ) = Dir(α): log_z(φ(α)) − KL[Dir(α) ‖ Dir(λ)]."""
    rows = problem.layout.row_start
    log_z = problem.engine.expect(Dirichlet(rows).expected(alpha))[1]
    return log_z - Dirichlet(rows).kl_divergence(alpha, problem.pseudo)


@pytest.mark.parametrize("prune", [False, True], ids=["keep", "prune"])
def test_bound_between_the_half_steps(case, prune):
    numbers = case["vbem"]
    if prune and "barren_cells_left_out" in case:
        numbers = case["barren_cells_left_out"]
    problem = case.problem(prune)
    for t in range(1, 5):
        fit = lk.fit(case.dag, case.table, method="vb", max_iter=t, **options(case, prune=prune))
        # The bound after the M step of iteration t is the half step's formula with the q(s) that made it: B(φ_t).
        assert fit.objective == close(numbers["F_after_vbm"][t - 1])
        assert half_step(problem, problem.pseudo + fit.counts) == close(numbers["F_after_vbe"][t], 1e-11)
        assert numbers["F_after_vbm"][t - 1] <= numbers["F_after_vbe"][t] + 1e-9


def test_corollary_from_the_same_completion(point):
    case, stored = point
    numbers = case["em"][stored]
    expected = numbers["corollary_6_2_from_theta_after_5"]
    theta = case.tables(numbers["theta_after_5"])
    fit = lk.fit(case.dag, case.table, method="vb", max_iter=5, **options(case, init=theta))
    assert fit.trace == close(expected["F_after_vbm"], 1e-11)
    given = options(case, at=METHOD[stored], max_iter=5)
    bound = lk.score(case.dag, case.table, "vb", start="map", **given)
    assert bound.info["cs"] == close(expected["cs"], 1e-11)
    assert bound.log_z == close(expected["F_after_vbm"][4], 1e-11)
    slack = 1e-10 * max(1.0, abs(expected["cs"]))
    assert bound.log_z >= lk.score(case.dag, case.table, "cs", **given).log_z - slack
    for accelerate in (False, True):
        drawn = {"prior": case.prior, "seed": 3, "restarts": 3, "accelerate": accelerate, "at": METHOD[stored]}
        pair = lk.score(case.dag, case.table, ["cs", "vb"], start="map", **drawn)
        assert pair["vb"].log_z >= pair["cs"].log_z - 1e-10 * max(1.0, abs(pair["cs"].log_z))


def test_barren_cells_left_out(barren_case):
    case = barren_case
    numbers = case["barren_cells_left_out"]
    given = options(case, prune=True, max_iter=5)
    fit = lk.fit(case.dag, case.table, method="vb", **given)
    assert fit.trace == close(numbers["F_after_vbm"])
    problem = case.problem(prune=True)
    tables = {name: case.init[name] for name in problem.layout.nodes}
    counts, log_z = problem.engine.expect(np.log(problem.layout.join(tables)))
    full = problem.unpruned(counts, np.zeros(case.layout.size))
    assert full == close(case.flat(numbers["expected_counts_first_e_step"]))
    assert log_z == close(case["first_e_step"]["loglik"])
    for stored, method in (("em_ml_loglik", "ml"), ("em_map_softmax_loglik", "map")):
        for t in range(1, 6):
            point = lk.fit(case.dag, case.table, method=method, **{**given, "max_iter": t})
            assert point.log_z == close(numbers[stored][t])


def test_bounds_stay_below_the_exact_evidence(exact_case):
    case = exact_case
    exact = case["exact"]["log_evidence"]
    for prune in (False, True):
        scores = lk.score(case.dag, case.table, ["cs", "vb"], prior=case.prior, prune=prune, restarts=4, seed=0)
        for evidence in scores:
            assert evidence.log_z <= exact + 1e-9 * max(1.0, abs(exact))


def test_the_symmetric_start_does_not_move(cases):
    case = cases["nb13"]
    for method in ("ml", "map", "vb"):
        fit = lk.fit(case.dag, case.table, method=method, max_iter=5, **options(case))
        theta = fit.problem.layout.split(np.exp(fit.potentials))
        for name in case.names:
            if name not in case.dag.hidden:
                assert np.ptp(theta[name], axis=0) == pytest.approx(0.0, abs=1e-14)
        assert fit.status is lk.Status.SADDLE
