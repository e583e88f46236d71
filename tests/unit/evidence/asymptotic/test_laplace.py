"""The Laplace approximation as a score: limits that are known, invariances, singular points, refusals."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

import lurking as lk
from lurking.errors import OptionError, PriorError, TooLarge, UnknownNameError
from lurking.inference.curvature import hessian as curvature_module
from lurking.learn.loop import Status

MODEL = "s[2] -> a b c d"
LEVELS = {name: [0, 1] for name in "abcdef"}
CURVATURES = ("full", "blocks", "diagonal")


def survey(rows=60, seed=0, columns="abcd", empty=0.0, states=2, sharp=0.85):
    """Rows from a latent class model whose classes are well apart, some cells emptied."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, states, rows)
    chance = np.where((label[:, None] + np.arange(len(columns))) % states == 0, sharp, 1 - sharp)
    cells = (rng.random(chance.shape) < chance).astype(int).astype(object)
    cells[rng.random(chance.shape) < empty] = None
    return cells.tolist()


def table_of(rows, columns="abcd", weights=None):
    return lk.Table.from_rows(rows, list(columns), levels={name: LEVELS[name] for name in columns}, weights=weights)


def laplace(model, table, **options):
    return lk.score(model, table, "laplace", **{"seed": 0, **options})


def without_data(pseudo, states):
    """The approximation of ∫ Dir(θ; λ) dθ = 1 over logits for one row of a table, in closed form."""
    total = pseudo * states
    density = gammaln(total) - states * gammaln(pseudo) - total * math.log(states)
    log_determinant = (states - 1) * math.log(total) - states * math.log(states)
    return density + 0.5 * (states - 1) * math.log(2 * math.pi) - 0.5 * log_determinant


ROWS_OF_NO_WEIGHT = [(0, 1, 0, 1), (1, 1, 0, 0)]


@pytest.mark.parametrize("pseudo", [1e-6, 0.5, 1.0, 3.0, 1e6])
def test_rows_without_a_cell_are_a_gaussian_in_place_of_the_prior(pseudo):
    evidence = laplace(MODEL, table_of([(None,) * 4]), prior=pseudo)
    assert evidence.log_z == pytest.approx(9 * without_data(pseudo, 2), rel=1e-9, abs=1e-6)
    if pseudo == 1.0:
        assert evidence.log_z == pytest.approx(-9 * 0.12078223763524543, rel=1e-12)
    if pseudo == 1e6:  # a narrow prior is a Gaussian
        assert evidence.log_z == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("basis", ["logit", "probability"])
@pytest.mark.parametrize("curvature", ["full", "blocks", "diagonal"])
def test_the_formula_does_not_apply_without_rows(basis, curvature):
    """The log evidence is 0, and the Gaussian at the mode of the prior has another integral."""
    for table in (table_of([]), table_of(ROWS_OF_NO_WEIGHT, weights=[0.0, 0.0])):
        evidence = laplace(MODEL, table, basis=basis, curvature=curvature)
        if basis == "logit":
            assert abs(evidence.log_z) > 0.1
            assert evidence.status is Status.INAPPLICABLE
        else:  # no direction has a curvature for λ = 1
            assert evidence.log_z == 0.0


@pytest.mark.parametrize("pseudo", [1e8, 1e12, 1e16, 1e100, 1e300])
@pytest.mark.parametrize("basis", ["logit", "probability"])
@pytest.mark.parametrize("model", [MODEL, "a -> b; c; d"])
def test_an_enormous_prior_is_a_point_mass(model, basis, pseudo):
    """The Gaussian is exact there, and terms of the size of λ must not swallow it."""
    table = table_of([(0, 1, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1)])
    for prior in (lk.Prior.symmetric(pseudo), lk.Prior.bdeu(pseudo)):
        found, vb = lk.score(model, table, ["laplace", "vb"], prior=prior, basis=basis, seed=0, restarts=2)
        assert found.log_z == pytest.approx(vb.log_z, abs=1e-5)


@pytest.mark.parametrize("basis", ["logit", "probability"])
def test_the_error_on_complete_data_falls_as_one_over_n(basis):
    rows = [(0, 0, 1), (1, 1, 0), (1, 2, 1), (0, 1, 1), (0, 2, 0), (1, 0, 0), (1, 1, 1)]
    levels = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
    errors = []
    for copies in (10.0, 100.0, 1000.0, 10000.0):
        table = lk.Table.from_rows(rows, list("abc"), levels=levels, weights=[copies] * len(rows))
        exact, found = lk.score("a -> b; a -> c", table, ["exact", "laplace"], basis=basis, prior=2.0)
        errors.append(copies * (found.log_z - exact.log_z))
        assert found.status is Status.CLOSED_FORM
    assert errors[-1] == pytest.approx(errors[-2], rel=0.02)
    assert abs(errors[-1]) > 0.01


def test_one_coin_by_hand():
    """7 heads, 3 tails, λ = 2: every number of both bases."""
    table = lk.Table.from_rows([(0,)] * 7 + [(1,)] * 3, ["a"])
    heads, tails = 9 / 14, 5 / 14
    value = math.log(6) + 9 * math.log(heads) + 5 * math.log(tails)
    value += 0.5 * math.log(2 * math.pi) - 0.5 * math.log(14 * heads * tails)
    assert laplace("a", table, prior=2.0).log_z == pytest.approx(value, rel=1e-13)
    heads, tails = 8 / 12, 4 / 12
    value = math.log(6) + 8 * math.log(heads) + 4 * math.log(tails)
    value += 0.5 * math.log(2 * math.pi) - 0.5 * math.log(12 / (heads * tails))
    assert laplace("a", table, prior=2.0, basis="probability").log_z == pytest.approx(value, rel=1e-13)


def test_it_nears_the_evidence_where_classes_are_well_apart():
    """Two peaks far from each other: the value plus ln S is near the sampled evidence, nearer than bic and draper."""
    table = table_of(survey(1000, columns="abcdef", sharp=0.9), "abcdef")
    scores = lk.score("s[2] -> *", table, ["laplace", "bic", "draper", "ais"], seed=0)
    sampled = scores["ais"].log_z
    assert scores["laplace"].corrected == pytest.approx(sampled, abs=0.1 + 4 * scores["ais"].std_error)
    for name in ("bic", "draper"):
        assert abs(scores[name].corrected - sampled) > abs(scores["laplace"].corrected - sampled)


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("basis", ["logit", "probability"])
def test_order_of_rows_repeated_rows_and_names_of_states(basis, curvature):
    rows = survey(40, empty=0.15)
    rng = np.random.default_rng(1)
    init = {"s": np.asarray([[0.4, 0.6]]), **{name: rng.dirichlet([2, 2], 2) for name in "abcd"}}
    options = {"prior": 1.5, "init": init, "restarts": 1, "basis": basis, "curvature": curvature}
    value = laplace(MODEL, table_of(rows), **options).log_z
    shuffled = [rows[k] for k in rng.permutation(len(rows))]
    assert laplace(MODEL, table_of(shuffled), **options).log_z == pytest.approx(value, rel=1e-9)
    twice = laplace(MODEL, table_of(rows, weights=[2.0] * len(rows)), **options).log_z
    assert laplace(MODEL, table_of(rows + rows), **options).log_z == pytest.approx(twice, rel=1e-9)
    swapped = {"s": init["s"][:, ::-1], **{name: init[name][::-1] for name in "abcd"}}
    renamed = laplace(MODEL, table_of(rows), **{**options, "init": swapped}).log_z
    assert renamed == pytest.approx(value, rel=1e-9 if curvature == "full" else 1e-6)


@pytest.mark.parametrize("basis", ["logit", "probability"])
def test_cells_without_observed_descendant_do_not_matter(basis):
    """Their families are summed to 1 at every θ, so the mode and the curvature are the same with and without them."""
    table = table_of(survey(50, empty=0.3))
    kept, pruned = (laplace("s[2] -> a b c; a -> d", table, prune=p, prior=1.5, basis=basis) for p in (False, True))
    assert kept.log_z == pytest.approx(pruned.log_z, rel=1e-9)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_parts_that_share_nothing_add_up(curvature):
    rows = survey(80, columns="abcdef", empty=0.1)
    table = table_of(rows, "abcdef")
    options = {"curvature": curvature, "prior": 2.0, "restarts": 5}
    together = laplace("s[2] -> a b c; t[2] -> d e f", table, **options)
    first = laplace("s[2] -> a b c", table, **options)
    second = laplace("t[2] -> d e f", table, **options)
    assert together.log_z == pytest.approx(first.log_z + second.log_z, rel=1e-9 if curvature == "full" else 1e-6)
    assert together.info["rank"] == first.info["rank"] + second.info["rank"]


def test_several_hidden_variables_with_every_engine():
    table = table_of(survey(30, empty=0.1))
    model = "s[2] -> a b c; t[2] -> c d; s -> t"
    values = [laplace(model, table, engine=engine, restarts=3).log_z for engine in ("enumeration", "reference")]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_less_of_the_curvature_makes_a_smaller_value():
    """By Fischer's inequality a positive matrix has a determinant no larger than that of its diagonal blocks."""
    table = table_of(survey(80, empty=0.1))
    options = {"prior": 1.0, "tol": 1e-13, "max_iter": 10000}
    full, blocks, diagonal = (laplace("s[3] -> a b c d", table, curvature=c, **options) for c in CURVATURES)
    assert full.log_z > blocks.log_z >= diagonal.log_z
    wide = lk.Table.from_rows([(k % 3, k % 2) for k in range(30)], ["a", "b"])
    blocks, diagonal = (laplace("s[2] -> a b", wide, curvature=c, **options) for c in CURVATURES[1:])
    assert blocks.log_z > diagonal.log_z


def test_a_saddle_is_singular():
    table = table_of(survey(40))
    even = {"s": [[0.5, 0.5]], **{name: [[0.4, 0.6]] * 2 for name in "abcd"}}
    evidence = laplace(MODEL, table, init=even, restarts=1)
    assert evidence.status is Status.SINGULAR
    assert math.isfinite(evidence.log_z)
    assert evidence.info["rank"] == evidence.info["dimension"] - 1
    constant = evidence.parts["constant"]
    assert constant == pytest.approx(0.5 * evidence.info["rank"] * math.log(2 * math.pi), rel=1e-14)


def test_a_mode_on_the_boundary_is_singular():
    """Over probabilities with λ = 1 a state that is never seen has probability 0; over logits it has not."""
    rows = [(0, 0, 0, 0)] * 5 + [(1, 1, 1, 1)] * 5
    evidence = laplace(MODEL, table_of(rows), basis="probability")
    assert evidence.status is Status.SINGULAR
    assert evidence.info["rank"] == 1  # what is left is how many rows are in which class
    # Nothing but the binomial is left: 10 rows, half and half.
    value = 10 * math.log(0.5) + 0.5 * math.log(2 * math.pi) - 0.5 * math.log(10 / 0.25)
    assert evidence.log_z == pytest.approx(value, rel=1e-6)
    assert laplace(MODEL, table_of(rows)).status is Status.CONVERGED


def test_directions_without_identification_are_singular_over_probabilities_only():
    """Two columns cannot tell three classes: p(a, b) has 3 parameters, the model 8."""
    table = table_of(survey(60, columns="ab"), "ab")
    evidence = laplace("s[3] -> a b", table, basis="probability", restarts=3)
    assert evidence.status is Status.SINGULAR
    assert evidence.info["rank"] <= 3
    assert math.isfinite(evidence.log_z)
    assert laplace("s[3] -> a b", table, restarts=3).status is Status.CONVERGED


def test_steps_to_the_mode():
    """With the default tolerance EM is not at the mode; with tol = 0 its last point is taken as it is, and it shows."""
    table = table_of(survey(200, sharp=0.7))
    found = laplace(MODEL, table)
    assert found.status is Status.CONVERGED
    assert found.info["newton_steps"] > 0
    assert found.info["gradient"] < 1e-9
    long = laplace(MODEL, table, tol=0.0, max_iter=20000, restarts=1, init=None)
    assert long.log_z == pytest.approx(laplace(MODEL, table, restarts=1).log_z, rel=1e-10)
    short = laplace(MODEL, table, tol=0.0, max_iter=5, restarts=1)
    assert short.status is Status.MAX_ITER
    assert short.info["newton_steps"] == 0
    assert short.info["gradient"] > 1e-3
    for curvature in ("blocks", "diagonal"):
        assert laplace(MODEL, table, max_iter=5, restarts=1, curvature=curvature).status is Status.MAX_ITER
    # Told to converge, but not given the iterations: Newton makes up for them.
    assert laplace(MODEL, table, max_iter=5, restarts=1).status is Status.CONVERGED


@pytest.mark.parametrize("curvature", CURVATURES)
def test_columns_with_one_level_and_one_class(curvature):
    table = lk.Table.from_rows([(0, k % 2, 0) for k in range(9)], list("abc"), levels={"a": [0], "b": [0, 1], "c": [0]})
    value = laplace("b", table, curvature=curvature).log_z
    assert laplace("s[1] -> a b c", table, curvature=curvature).log_z == pytest.approx(value, rel=1e-12)


def test_fractional_weights_are_fine():
    rows = survey(20)
    halves = laplace(MODEL, table_of(rows + rows, weights=[0.5] * 40)).log_z
    assert halves == pytest.approx(laplace(MODEL, table_of(rows)).log_z, rel=1e-9)


def test_states_are_enumerated_where_a_tree_was_only_faster():
    """Empty cells leave 192 joint states open in some rows; the fit uses a tree, the curvature does not."""
    rng = np.random.default_rng(2)
    rows = [[None if rng.random() < 0.4 else int(rng.integers(0, 4)) for _ in range(4)] for _ in range(60)]
    table = lk.Table.from_rows(rows, list("abcd"), levels={name: [0, 1, 2, 3] for name in "abcd"})
    model = "s[3] -> a b c d"
    options = {"prune": False, "restarts": 1}
    assert type(lk.Problem(model, table, prune=False).engine).__name__ == "JunctionEngine"
    found = laplace(model, table, **options)
    assert found.log_z == pytest.approx(laplace(model, table, engine="enumeration", **options).log_z, rel=1e-9)


def test_compare_uses_it():
    table = lk.stouffer_toby()
    models = {"1": "s[1] -> *", "2": "s[2] -> *", "3": "s[3] -> *"}
    comparison = lk.compare(models, table, scores=["laplace", "vb"], seed=0)
    for model in comparison["laplace"].ranked():
        assert model.evidence.log_z == pytest.approx(laplace(models[model.name], table).log_z, rel=1e-12)
    assert comparison["laplace"].best.name == comparison["vb"].best.name


def test_a_tree_is_refused_in_full_and_taken_in_blocks():
    chain = "; ".join(f"h{i}[3] -> h{i + 1}[3]; h{i} -> y{i}" for i in range(9)) + "; h9 -> y9"
    rng = np.random.default_rng(0)
    table = lk.Table.from_array(rng.integers(0, 2, (30, 10)), columns=[f"y{i}" for i in range(10)])
    options = {"restarts": 1, "max_iter": 20}
    with pytest.raises(
        TooLarge, match="junction tree; use curvature='blocks', or engine='enumeration' to insist"
    ) as caught:
        laplace(chain, table, engine="junction", **options)
    assert "\n" not in str(caught.value)
    long = "; ".join(f"h{i}[3] -> h{i + 1}[3]; h{i} -> y{i}" for i in range(29)) + "; h29 -> y29"
    wide = lk.Table.from_array(rng.integers(0, 2, (30, 30)), columns=[f"y{i}" for i in range(30)])
    with pytest.raises(TooLarge, match="too many"):
        laplace(long, wide, **options)
    for curvature in ("blocks", "diagonal"):
        evidence = laplace(chain, table, engine="junction", curvature=curvature, **options)
        assert math.isfinite(evidence.log_z)


def test_refusals(monkeypatch):
    table = table_of(survey(20))
    with pytest.raises(UnknownNameError, match=r"unknown basis 'logitt'.*did you mean 'logit'"):
        laplace(MODEL, table, basis="logitt")
    with pytest.raises(UnknownNameError, match=r"unknown curvature 'block'.*did you mean 'blocks'"):
        laplace(MODEL, table, curvature="block")
    with pytest.raises(PriorError, match=r"needs λ ≥ 1, and the prior has λ = 0.5.*use λ ≥ 1, or the basis logit"):
        laplace(MODEL, table, basis="probability", prior=0.5)
    with pytest.raises(OptionError, match="'at' is not understood"):
        laplace(MODEL, table, at="ml")
    monkeypatch.setattr(curvature_module, "is_affordable", lambda _need: False)
    with pytest.raises(TooLarge, match=r"full curvature over 9 parameters needs .*use curvature='blocks'"):
        laplace(MODEL, table)


@pytest.mark.parametrize(("plural", "singular"), [("logits", "logit"), ("probabilities", "probability")])
def test_bases_in_the_plural(plural, singular):
    table = table_of(survey(20))
    found = laplace(MODEL, table, basis=plural, prior=2.0)
    assert found.log_z == laplace(MODEL, table, basis=singular, prior=2.0).log_z
    assert found.info["basis"] == singular


def test_an_interrupted_fit_says_so(monkeypatch):
    from dataclasses import replace

    from lurking.evidence.asymptotic import laplace as module
    from lurking.evidence.point import point_estimate

    def cut_short(problem, options, at):
        estimate = point_estimate(problem, options, at)
        return replace(estimate, fit=replace(estimate.fit, status=Status.INTERRUPTED))

    monkeypatch.setattr(module, "point_estimate", cut_short)
    evidence = laplace(MODEL, table_of(survey(20)))
    assert evidence.status is Status.INTERRUPTED
    assert evidence.info["newton_steps"] == 0
