"""CONTRIBUTING.md is followed: its engine is registered by the line it gives, and keeps the contract."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import lurking as lk
from engine_checks import CHECKS, Case
from lurking.inference.problem import ENGINES

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## How to add an engine\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", SECTION, re.DOTALL)
"""(code, what it prints), in the order of the section."""


@pytest.fixture(scope="module")
def followed():
    """Return what the code blocks of the section define; each must print what stands below it."""
    namespace = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENGINES, "joint", None)
        for code, printed in BLOCKS:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(code, namespace)
            assert output.getvalue() == printed
        yield namespace


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
