"""The 136 structures with two binary hidden causes of four five-valued variables: scores and exact posterior.

To 1e-12, where `contract/test_conformance.py` compares all values of the case to 1e-9: every fourth structure is enough
here.
"""

import math

import numpy as np
import pytest

import lurking as lk

OBSERVED = ["y1", "y2", "y3", "y4"]
HIDDEN = ["s1", "s2"]


def table_of(numbers):
    rows = [row[2:] for row in numbers["data"]]
    return lk.Table.from_rows(rows, OBSERVED, levels={name: list(range(5)) for name in OBSERVED})


def dag_of(structure):
    links = structure["links"]
    edges = [(s, y) for b, y in enumerate(OBSERVED) for a, s in enumerate(HIDDEN) if links[a][b]]
    return lk.Dag(HIDDEN + OBSERVED, edges, dict.fromkeys(HIDDEN, 2))


def plain(structure, **more):
    init = dict(zip(HIDDEN + OBSERVED, map(np.asarray, structure["theta0"]), strict=True))
    return {"init": init, "restarts": 1, "tol": 0.0, "accelerate": False, "prune": False, **more}


def test_there_are_136(class136):
    assert len(class136["structures"]) == 136
    forms = {dag_of(structure).canonical() for structure in class136["structures"]}
    assert len(forms) == 136


def test_the_bipartite_space_is_the_same_class(class136):
    mine = {dag_of(structure).canonical() for structure in class136["structures"]}
    assert {dag.canonical() for dag in lk.bipartite(dict.fromkeys(HIDDEN, 2), OBSERVED)} == mine


def test_dimension_and_aliases(class136):
    table = table_of(class136)
    for structure in class136["structures"]:
        dag = dag_of(structure)
        kept = lk.Problem(dag, table, prune=False)
        assert kept.dimension == structure["d"]
        assert kept.log_aliases == pytest.approx(math.log(structure["S"]), rel=1e-14)
        assert kept.relevant_log_aliases == pytest.approx(math.log(structure["S_relevant"]), rel=1e-14)
        assert lk.Problem(dag, table).log_aliases == pytest.approx(math.log(structure["S_relevant"]), rel=1e-14)


@pytest.mark.parametrize("iterations", [1, 20])
def test_variational_bound(class136, iterations):
    table = table_of(class136)
    for structure in class136["structures"][::4]:
        evidence = lk.score(dag_of(structure), table, "vb", **plain(structure, max_iter=iterations))
        assert evidence.log_z == pytest.approx(structure[f"F_after_{iterations}"], rel=1e-12)
        assert evidence.log_z <= structure["log_evidence"] + 1e-9


def test_scores_of_the_mode_over_logits(class136):
    table = table_of(class136)
    for structure in class136["structures"][::4]:
        expected = dict(structure["softmax_map_after_20"])
        expected["map-likelihood"] = expected.pop("loglik")
        scores = lk.score(dag_of(structure), table, list(expected), **plain(structure, max_iter=20))
        for name, value in expected.items():
            assert scores[name].log_z == pytest.approx(value, rel=1e-12), name


@pytest.mark.long
def test_exact_posterior_over_structures(class136):
    structures = class136["structures"]
    models = {str(k): dag_of(structure) for k, structure in enumerate(structures)}
    comparison = lk.compare(models, table_of(class136), scores=["exact"], prune=False, workers=1)
    posterior = comparison["exact"]
    assert len(posterior) == 136
    for candidate, structure in zip(posterior, structures, strict=True):
        assert candidate.evidence.log_z == pytest.approx(structure["log_evidence"], rel=1e-12)
        assert candidate.probability == pytest.approx(structure["posterior_probability"], rel=1e-9)
        assert candidate.corrected_probability == pytest.approx(candidate.probability, rel=1e-12)
    assert math.fsum(candidate.probability for candidate in posterior) == pytest.approx(1.0, rel=1e-12)
    assert posterior.best.name == str(class136["best_index_exact"])


def test_exact_evidence_of_every_eighth_structure(class136):
    table = table_of(class136)
    for structure in class136["structures"][::8]:
        value = lk.score(dag_of(structure), table, "exact", prune=False).log_z
        assert value == pytest.approx(structure["log_evidence"], rel=1e-12)


def test_barren_hidden_nodes_do_not_change_the_exact_evidence(class136):
    table = table_of(class136)
    for structure in class136["structures"][:16]:
        value = lk.score(dag_of(structure), table, "exact", prune=True).log_z
        assert value == pytest.approx(structure["log_evidence"], rel=1e-12)
