"""What is shown of a sampled value that is not trusted."""

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest

import lurking as lk
from lurking.cli.output import evidence_content
from lurking.evidence.base import Evidence, Kind
from lurking.learn.loop import Status
from lurking.runtime.store import Store
from lurking.search import judge
from lurking.search.contenders import value_of


def value(status, error=0.87):
    return Evidence(-5850.4, 0.0, error, Kind.ESTIMATE, "chib", {"loglik": -5850.4}, status, {"chains": 8})


@pytest.mark.parametrize("status", [Status.UNTRUSTED, Status.INTERRUPTED])
def test_a_value_that_is_not_trusted_shows_no_error(status):
    found = value(status)
    assert not found.is_trusted
    assert found.std_error is None
    assert (found.nominal_error, found.info) == (0.87, {"chains": 8, "nominal_error": 0.87})
    assert found.with_error(2) == "-5850.40 ± ?"
    assert str(found).startswith("chib: ln p(y|m) = -5850.4000 ± ? (estimate, not trusted)")
    assert "0.87" not in str(found) + value_of(found) + json.dumps(evidence_content(found))


@pytest.mark.parametrize("status", [Status.SAMPLED, Status.BUDGET])
def test_a_trusted_value_shows_its_error(status):
    found = value(status)
    assert found.is_trusted
    assert (found.std_error, found.nominal_error, found.info) == (0.87, 0.87, {"chains": 8})
    assert found.with_error(2) == "-5850.40 ± 0.87"
    assert evidence_content(found)["std_error"] == 0.87


def test_values_that_are_not_sampled_have_no_error_at_all():
    found = replace(value(Status.CONVERGED), std_error=None, kind=Kind.LOWER_BOUND)
    assert (found.is_trusted, found.nominal_error, found.with_error(1)) == (True, None, "-5850.4")
    stopped = replace(found, status=Status.INTERRUPTED)  # a bound is one wherever the climb was stopped
    assert (stopped.is_trusted, stopped.with_error(1)) == (True, "-5850.4")


def test_a_copy_keeps_the_doubt():
    found = replace(value(Status.UNTRUSTED), log_z=-10.0)
    assert (found.std_error, found.nominal_error, found.is_trusted) == (None, 0.87, False)


def test_the_store_of_a_search_keeps_the_nominal_error(tmp_path, monkeypatch):
    table, dag = lk.stouffer_toby(), lk.Dag.parse("class[2] -> A B C D")
    sampler = Mock(return_value={"ais": value(Status.UNTRUSTED)})
    monkeypatch.setattr(judge, "evaluate", sampler)
    with Store(tmp_path / "kept.sqlite") as store:
        first, recalled = (judge.Judge(table, 1.0, store=store).evidence(dag) for _ in range(2))
    assert sampler.call_count == 1
    assert first.nominal_error == 0.87
    assert (recalled.std_error, recalled.nominal_error, recalled.status) == (None, 0.87, Status.UNTRUSTED)
