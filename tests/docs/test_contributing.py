"""CONTRIBUTING.md is followed: the engine and the family that it registers keep their contracts."""

import contextlib
import io
import math
import re
from pathlib import Path

import pytest

import lurking as lk
from contract.test_families import run_all
from engine_checks import CHECKS, Case
from lurking.inference.problem import ENGINES
from lurking.models.families.registry import FAMILIES

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def run_section(title):
    """Return what the code blocks of a section define; each must print what stands below it."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    namespace = {}
    for code, printed in re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", section, re.DOTALL):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, namespace)
        assert output.getvalue() == printed
    return namespace


@pytest.fixture(scope="module")
def followed():
    """Return what the section on engines defines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENGINES, "joint", None)
        yield run_section("How to add an engine")


@pytest.fixture(scope="module")
def family():
    """Return what the section on families defines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "geometric", None)
        yield run_section("How to add a family")


def test_the_family_of_the_page_keeps_the_contract(family):
    run_all(family["GeometricFamily"](), (2, 3), 1)


def test_one_registry_line_is_enough_for_scores_and_draws(family):
    table = family["table"]
    given = {"families": {"y": "geometric"}}
    # Beta(1, 1) and n values of sum t: Γ(1 + n) Γ(1 + t) / Γ(2 + n + t); x itself has 2 and 3 of 5.
    exact = sum(math.lgamma(1 + n) + math.lgamma(1 + t) - math.lgamma(2 + n + t) for n, t in ((2, 2), (3, 21)))
    exact += math.log(math.factorial(2) * math.factorial(3) / math.factorial(6))
    for score in ("exact", "vb", "cs"):
        assert lk.score("x -> y", table, score, **given).log_z == pytest.approx(exact, rel=1e-12)
    draws = lk.gibbs(lk.Problem("class[2] -> x y", table, **given), chains=2, draws=20, burn_in=5, seed=0)
    assert draws.log_theta.shape == (2, 20, draws.problem.layout.size)
    with pytest.raises(lk.LurkingError, match="a geometric node needs a column of counts"):
        lk.fit("x -> y", table, families={"x": "geometric"})


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("model", ["s[2] -> a b; t[2] -> b c", "s[2] -> a; c", "a -> b -> c"])
def test_the_engine_of_the_page_keeps_the_contract(followed, model, check):
    rows = [(0, None, 1), (1, 1, 0), (None, None, 1), (0, 1, 1)]
    table = lk.Table.from_rows(rows, list("abc"), weights=[1, 2, 0.5, 0])
    for prune in (False, True):
        problem = lk.Problem(model, table, prune=prune)
        CHECKS[check](Case(followed["JointEngine"], problem.layout, problem.rows, prune))


def test_one_registry_line_is_enough_for_fits_scores_and_queries(followed):
    model, table = "class[2] -> *", lk.carcinoma()
    options = {"restarts": 2, "seed": 0}
    plain, own = lk.fit(model, table, **options), lk.fit(model, table, engine="joint", **options)
    assert type(own.problem.engine) is followed["JointEngine"]
    assert own.objective == pytest.approx(plain.objective, rel=1e-9)
    assert own.network.theta == pytest.approx(plain.network.theta, abs=1e-5)
    names = ["vb", "cs", "bic", "laplace", "map-likelihood"]
    scores = lk.score(model, table, names, engine="joint", **options)
    expected = lk.score(model, table, names, **options)
    for name in names:
        assert scores[name].log_z == pytest.approx(expected[name].log_z, rel=1e-6)
    potentials = plain.potentials
    for question in ("pattern_log_z", "pattern_statistics"):
        answer = getattr(own.problem.engine, question)(potentials)
        assert answer == pytest.approx(getattr(plain.problem.engine, question)(potentials), rel=1e-11, abs=1e-11)
    node = own.problem.layout.index["class"]
    expected = plain.problem.engine.pattern_marginals(potentials, node)
    assert own.problem.engine.pattern_marginals(potentials, node) == pytest.approx(expected, rel=1e-11)
    with pytest.raises(lk.LurkingError, match="engine='joint' does not enumerate them"):
        lk.score(model, table, "ais", engine="joint", seed=0)
