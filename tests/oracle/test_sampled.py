"""Every way of sampling the evidence, on every reference case of at most 20 rows: within four standard errors of exact.

A value that is not trusted need not be right, but it must say so; most values must be trusted.
"""

import pytest

import lurking as lk
from lurking.evidence.base import Kind
from lurking.learn.loop import Status

WAYS = {
    "populations, variational": ("ais", {"steps": 32, "particles": 16, "passes": 100_000}),
    "prior": ("ais", {"path": "prior", "steps": 200, "chains": 100}),
    "parameters": ("ais", {"path": "parameters", "steps": 300, "chains": 60, "sweep": "family"}),
    "completions": ("ais", {"path": "completions", "steps": 60, "chains": 100}),
    "chib": ("chib", {"draws": 1000}),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_within_four_standard_errors_of_exact(cases, way):
    score, options = WAYS[way]
    n_trusted, n_cases = 0, 0
    for name, case in cases.items():
        if case["n"] > 20 or case["exact"] is None or case["n"] == 0:
            continue
        found = lk.score(case.dag, case.table, score, prior=case.prior, restarts=4, seed=3, **options)
        exact = case["exact"]["log_evidence"]
        if found.kind is Kind.EXACT:
            assert found.log_z == pytest.approx(exact, rel=1e-12), name
            continue
        n_cases += 1
        if found.status is Status.UNTRUSTED:
            continue
        n_trusted += 1
        assert found.log_z == pytest.approx(exact, abs=4.0 * found.std_error + 1e-9), name
        if "mean_log_weight" in found.info:
            assert found.info["mean_log_weight"] <= exact + 4.0 * found.info["spread"] / found.info["chains"] ** 0.5
    assert n_cases > 10
    assert n_trusted >= 0.8 * n_cases, f"{n_trusted} of {n_cases} trusted"
