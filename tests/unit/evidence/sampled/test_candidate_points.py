"""The point at which the candidate method takes the posterior density."""

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError, StructureError, UnknownNameError
from lurking.evidence.sampled.candidate_points import POINTS, candidate_point
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions

MODEL = "s[2] -> a b c d"
ROWS = [(0, 0, 0, 0), (1, 1, 1, 1), (0, 0, 1, 0), (1, 0, 1, 1), (0, 1, 0, 0), (1, 1, 0, 1)]
TABLE = lk.Table.from_rows(ROWS, list("abcd"), levels=dict.fromkeys("abcd", (0, 1)), weights=[3, 4, 1, 2, 1, 2])


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("model", [MODEL, "s[2] -> a b; c -> d"])
def test_every_named_point_gives_the_evidence(model, point):
    chib, exact = lk.score(model, TABLE, ["chib", "exact"], point=point, seed=0)
    assert chib.status is Status.SAMPLED
    assert chib.info["point"] == point
    assert chib.log_z == pytest.approx(exact.log_z, abs=4.0 * chib.std_error)
    assert sum(chib.parts.values()) == pytest.approx(chib.log_z, rel=1e-12)


def test_the_points_are_what_they_are_called():
    problem, options = Problem(MODEL, TABLE), FitOptions(seed=0)
    by_name = {point: candidate_point(problem, options, point) for point in POINTS}
    vb = lk.fit(MODEL, TABLE, method="vb", seed=0)
    for name, table in vb.network.tables.items():
        assert np.exp(problem.layout.table(by_name["vb"].log_theta, name)) == pytest.approx(np.asarray(table))
    plain = lk.fit(MODEL, TABLE, method="map", seed=0)
    assert by_name["map"].log_theta == pytest.approx(plain.potentials)
    for own in by_name.values():
        assert own.loglik == pytest.approx(problem.engine.expect(own.log_theta)[1], rel=1e-9)


def test_a_fit_a_network_and_tables_are_one_point():
    fit = lk.fit(MODEL, TABLE, method="vb", seed=0)
    tables = {name: np.asarray(table) for name, table in fit.network.tables.items()}
    values = [lk.score(MODEL, TABLE, "chib", point=point, seed=0) for point in (fit, fit.network, tables, "vb")]
    assert [value.info["point"] for value in values] == ["given", "given", "given", "vb"]
    assert [value.log_z for value in values] == pytest.approx([values[0].log_z] * 4, rel=1e-9)


@pytest.mark.parametrize(
    ("point", "error", "words"),
    [
        ("mode", UnknownNameError, "mode.*map, vb, draws"),
        (3, OptionError, "point is 3; it must be one of map, vb, draws, a Fit, a Network"),
        ({"s": [0.5, 0.5]}, StructureError, "point must have one entry per node: missing .*'a'"),
    ],
)
def test_what_is_no_point_is_refused_in_one_line(point, error, words):
    with pytest.raises(error, match=words) as caught:
        lk.score(MODEL, TABLE, "chib", point=point)
    assert "\n" not in str(caught.value)


def test_rows_of_given_tables_must_sum_to_one():
    tables = {"s": [0.5, 0.4], **{name: [[0.5, 0.5], [0.4, 0.6]] for name in "abcd"}}
    with pytest.raises(OptionError, match=r"a row of point sums to 0\.9; every row must sum to 1"):
        lk.score(MODEL, TABLE, "chib", point=tables)


@pytest.mark.parametrize("prior", [1e-300, 1e-12])
def test_a_mode_that_no_chain_leaves_is_not_trusted_where_the_bound_is_higher(prior):
    """Under a tiny prior no chain moves, so all sweeps agree; a better mode is seen in the variational bound alone."""
    chib, vb, exact = lk.score(MODEL, TABLE, ["chib", "vb", "exact"], prior=prior, seed=0, restarts=3)
    assert chib.info["bound"] == vb.log_z
    assert (chib.nominal_error, chib.status, chib.std_error) == (0.0, Status.UNTRUSTED, None)
    assert chib.log_z < vb.log_z < exact.log_z
    there = lk.score(MODEL, TABLE, "chib", prior=prior, point="vb", seed=0, restarts=3)
    assert there.status is Status.UNTRUSTED, "right here, but chains that do not move cannot show it"
    assert there.log_z == pytest.approx(exact.log_z, rel=1e-8)


@pytest.mark.parametrize("prior", [1e-3, 1e-5])
def test_chains_under_a_small_prior_are_not_trusted(prior):
    """All chains begin at one point and hardly move, so they agree on a value that may be nats too high."""
    rows = [(0, 1, 0), (1, 1, None), (1, 0, 1), (0, None, 1), (1, 1, 0), (0, 0, 1)]
    found = lk.score("class[2] -> *", lk.Table.from_rows(rows, list("abc")), "chib", prior=prior, seed=0)
    assert found.status is Status.UNTRUSTED


def test_more_classes_than_the_data_determine_are_not_trusted():
    """The posterior is wide, and a sweep or two near the point make up half of the mean."""
    for point in POINTS:
        found = lk.score("class[5] -> *", lk.stouffer_toby(), "chib", point=point, seed=0)
        assert found.info["effective_share"] < 0.01
        assert found.status is Status.UNTRUSTED
        assert str(found).startswith(f"chib: ln p(y|m) = {found.log_z:.4f} ± ? (estimate, not trusted)")
