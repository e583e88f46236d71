"""Groups of numbers about one structure at a time: sizes, E-steps, fits, scores and draws."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import lurking as lk
from numbers_cases import (
    NETWORKS,
    PRIORS,
    ROLES,
    TIED,
    alarm_rows,
    asia_rows,
    binary_rows,
    bundled,
    bundled_models,
    cases,
    emptied,
    fewer_rows,
    two_cause_rows,
    with_missing,
)
from numbers_record import Recorder

METHODS = ("ml", "map", "map-probability", "vb")
ENGINES = ("auto", "enumeration", "junction", "reference")
FIT_SCORES = ("map-likelihood", "bic", "bicp", "draper", "mled", "cs", "laplace", "vb")
UNSAMPLED = ("exact", *FIT_SCORES, "adjusted-bic")
SAMPLED: dict[str, dict[str, Any]] = {
    "ais": {"passes": 20_000},
    "chib": {"draws": 400, "chains": 4},
    "importance": {"draws": 600},
    "thermodynamic": {"steps": 200, "chains": 4},
    "wbic": {"chains": 4, "draws": 200, "burn_in": 100},
}
SCORES = (*UNSAMPLED, *SAMPLED)
"""Every registered score."""
AIS_WAYS: dict[str, dict[str, Any]] = {
    "prior": {"path": "prior", "steps": 60, "chains": 12},
    "completions": {"path": "completions", "steps": 60, "chains": 12},
    "parameters": {"path": "parameters", "steps": 60, "chains": 12},
    "populations": {"passes": 8_000, "particles": 8, "resample": 0.5},
}
FIT_WAYS: dict[str, dict[str, Any]] = {
    "auto": {},
    "plain": {"restarts": 2, "accelerate": False, "max_iter": 40},
    "tournament": {"tournament": 16},
    "lbfgs": {"restarts": 3, "optimizer": "lbfgs"},
    "cg": {"restarts": 3, "optimizer": "cg"},
    "unpruned": {"restarts": 3, "prune": False},
    "junction": {"restarts": 3, "engine": "junction"},
}


def note_fit(record: Recorder, key: str, fit: lk.Fit) -> None:
    """Keep all numbers of a fit, its network and its statistics."""
    record.fields(key, fit, "objective trace status n_iter potentials counts log_z")
    record.fields(f"{key}/spread", fit.spread, "objectives within n_at_best")
    record.put(f"{key}/tables", fit.network.tables)
    record.put(f"{key}/issues", [(issue.node, issue.kind, *issue.states) for issue in fit.issues])
    if fit.posterior is not None:
        record.put(f"{key}/posterior", dict(fit.posterior))
        record.put(f"{key}/intervals", {name: fit.posterior.interval(name) for name in fit.posterior})
    record.attempt(f"{key}/statistics", lambda: fit.statistics, partial(note_statistics, record))


def note_statistics(record: Recorder, key: str, found: Any) -> None:
    """Keep the numbers of goodness of fit."""
    names = "n n_complete loglik dimension aic bic g_squared x_squared degrees_of_freedom p_value entropy_r2"
    record.fields(key, found, names)
    record.put(f"{key}/pairs", {f"{r.first}, {r.second}": r.value for r in found.bivariate_residuals})
    if found.conditional is not None:
        record.fields(f"{key}/conditional", found.conditional, "loglik dimension aic bic")


def note_evidence(record: Recorder, key: str, evidence: lk.Evidence) -> None:
    """Keep a value with its parts and the numbers that were learnt on the way; texts are left out."""
    record.fields(key, evidence, "log_z log_aliases corrected std_error nominal_error kind status parts is_settled")
    for name, value in evidence.info.items():
        if _is_numbers(value):
            record.put(f"{key}/info/{name}", value)
    if evidence.starts is not None:
        record.put(f"{key}/starts", evidence.starts.objectives)


def _is_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_numbers(own) for own in value)
    return isinstance(value, bool | int | float | np.generic | np.ndarray)


def structures(record: Recorder) -> None:
    """Numbers of parameters, ln S and canonical forms, of structures alone and with data."""
    for name, case in cases().items():
        _sizes(record, f"case/{name}", case.dag, case.table, case.prior)
    for key, model, table in bundled_models():
        for prior, make in PRIORS.items():
            _sizes(record, f"{key}/{prior}", model, table, make())
    _sizes(record, "stouffer_toby/tied", ROLES, bundled("stouffer_toby"), 1.0, tied=TIED)
    of_network = lk.Prior.from_network(lk.fit(ROLES, bundled("stouffer_toby"), restarts=2).network, 8.0)
    _sizes(record, "stouffer_toby/prior of a network", ROLES, bundled("stouffer_toby"), of_network)
    dags = list(lk.bipartite({"s": 2, "t": 2}, ["a", "b", "c"]))
    record.put("bipartite", [dag.to_text() for dag in dags])
    record.put("bipartite/canonical", [dag.canonical().to_text() for dag in dags])
    network = lk.read_network(NETWORKS / "asia.bif")
    record.put("asia/text", network.dag.to_text())
    other = network.dag.without("dysp")
    record.put("asia/without dysp", other.to_text())
    flipped = lk.Dag(["a", "b", "c"], [("b", "a"), ("b", "c")])
    chain = lk.Dag(["a", "b", "c"], [("a", "b"), ("b", "c")])
    collider = lk.Dag(["a", "b", "c"], [("a", "b"), ("c", "b")])
    pairs = [(one, other) for one in (flipped, chain, collider) for other in (flipped, chain, collider)]
    record.put("distances", [lk.structural_hamming_distance(one, other) for one, other in pairs])


def _sizes(record: Recorder, key: str, dag: Any, table: Any, prior: Any, **more: Any) -> None:
    for prune in (True, False):
        problem = lk.Problem(dag, table, prior, prune=prune, **more)
        where = f"{key}/prune" if prune else f"{key}/keep"
        names = "dimension effective_dimension log_aliases relevant_log_aliases n n_empty is_complete pseudo"
        for name in names.split():
            record.attempt(f"{where}/{name}", partial(getattr, problem, name))
    record.put(f"{key}/canonical", problem.full_dag.canonical().to_text())
    record.put(f"{key}/order", list(problem.full_dag.topological_order))


def steps(record: Recorder) -> None:
    """Expected counts and log-likelihood of one E-step, by every engine."""
    for name, case in cases().items():
        theta = {node: case.init[node] for node in case.dag.nodes}
        for engine in ENGINES:
            problem = lk.Problem(case.dag, case.table, case.prior, prune=False, engine=engine)
            record.attempt(f"case/{name}/{engine}", partial(_step, problem, theta))
    chain = "; ".join(["h1[3] -> x1", *(f"h{t}[3] -> x{t}; h{t - 1} -> h{t}" for t in range(2, 13))])
    wide = [("chain", chain, binary_rows(300, 12)), ("two causes", "s[3] -> *; t[2] -> *", two_cause_rows(2000))]
    wide.append(("alarm", lk.read_network(NETWORKS / "alarm.bif").dag, emptied(alarm_rows(300), 0.2)))
    for key, model, table in [*((k, m, t) for k, m, t in bundled_models()), *wide]:
        for engine in ENGINES[: 3 if key in ("chain", "alarm") else 4]:
            record.attempt(f"{key}/{engine}", partial(_drawn_step, model, table, engine))


def _drawn_step(model: Any, table: Any, engine: str) -> tuple[Any, float]:
    problem = lk.Problem(model, table, engine=engine)
    generator = np.random.default_rng(5)
    cards = problem.cardinalities
    theta = {}
    for node in problem.dag.nodes:
        rows = int(np.prod([cards[parent] for parent in problem.dag.parents(node)], dtype=int))
        theta[node] = generator.dirichlet(np.ones(cards[node]), rows)
    return _step(problem, theta)


def _step(problem: lk.Problem, theta: Mapping[str, Any]) -> tuple[Any, float]:
    """Return the counts and log_z at the tables θ; a flat vector has one node after the other."""
    flat = np.concatenate([np.asarray(theta[node], float).ravel() for node in problem.dag.nodes])
    with np.errstate(divide="ignore"):
        counts, log_z = problem.engine.expect(np.log(flat))
    return counts, log_z


def fits(record: Recorder) -> None:
    """Fits of every method: plain iterations from stored starts, restarts, tournaments, optimizers."""
    note = partial(note_fit, record)
    for name, case in cases().items():
        for method in METHODS:
            given = {"method": method, **case.plain}
            plain = partial(lk.fit, case.dag, case.table, prune=False, max_iter=7, **given)
            record.attempt(f"case/{name}/{method}/plain", plain, note)
            drawn = partial(lk.fit, case.dag, case.table, method=method, prior=case.prior, restarts=3, seed=5)
            record.attempt(f"case/{name}/{method}/drawn", drawn, note)
    for key, model, table in bundled_models():
        for method in METHODS:
            record.attempt(f"{key}/{method}", partial(lk.fit, model, table, method=method, restarts=4, seed=1), note)
        for prior in ("bdeu", "jeffreys"):
            given = {"prior": PRIORS[prior](), "restarts": 4, "seed": 2}
            record.attempt(f"{key}/{prior}/vb", partial(lk.fit, model, table, **given), note)
            record.attempt(f"{key}/{prior}/map", partial(lk.fit, model, table, method="map", **given), note)
        missing = with_missing(key.partition("/")[0])
        record.attempt(f"{key}/missing/vb", partial(lk.fit, model, missing, restarts=4, seed=3), note)
        record.attempt(f"{key}/missing/map", partial(lk.fit, model, missing, method="map", restarts=4, seed=3), note)
    for key, options in FIT_WAYS.items():
        for method in ("vb", "map", "ml"):
            work = partial(lk.fit, "class[3] -> *", bundled("gss82"), method=method, seed=3, **options)
            record.attempt(f"ways/{key}/{method}", work, note)
            work = partial(lk.fit, "class[2] -> *", with_missing(), method=method, seed=3, **options)
            record.attempt(f"ways/{key}/{method}/missing", work, note)
    _ties_and_workers(record, note)


def _ties_and_workers(record: Recorder, note: Callable[[str, Any], None]) -> None:
    for method in ("vb", "map", "ml"):
        given = {"method": method, "restarts": 4, "seed": 4}
        record.attempt(f"tied/{method}", partial(lk.fit, ROLES, bundled("stouffer_toby"), tied=TIED, **given), note)
    table = two_cause_rows(1500)
    model = "s[2] -> y1 y2 y3; t[3] -> y2 y3 y4"
    for workers in (1, 2):
        work = partial(lk.fit, model, table, restarts=6, seed=6, max_iter=200, workers=workers)
        record.attempt(f"workers/{workers}", work, note)
    network = lk.read_network(NETWORKS / "alarm.bif")
    work = partial(lk.fit, network.dag, emptied(alarm_rows(300), 0.2), restarts=1, max_iter=20, method="map")
    record.attempt("alarm/map", work, note)


def scores(record: Recorder) -> None:
    """Every score that is not sampled."""
    note = partial(note_evidence, record)
    for name, case in cases().items():
        for score in UNSAMPLED:
            plain = partial(lk.score, case.dag, case.table, score, prune=False, **_own(score, {**case.plain}))
            record.attempt(f"case/{name}/{score}/plain", plain, note)
            drawn = partial(lk.score, case.dag, case.table, score, prior=case.prior, seed=5, restarts=3)
            record.attempt(f"case/{name}/{score}/drawn", drawn, note)
    for key, model, table in bundled_models():
        for prior, make in PRIORS.items():
            for score in (*FIT_SCORES, "adjusted-bic"):
                work = partial(lk.score, model, table, score, prior=make(), seed=1, restarts=4)
                record.attempt(f"{key}/{prior}/{score}", work, note)
            few = fewer_rows(with_missing(key.partition("/")[0]), 10)
            record.attempt(f"{key}/{prior}/exact", partial(lk.score, model, few, "exact", prior=make()), note)
    for at in ("ml", "map", "map-probability"):
        for score in ("map-likelihood", "bic", "bicp", "draper", "mled", "cs"):
            work = partial(lk.score, "class[2] -> *", with_missing(), score, at=at, seed=2, restarts=3)
            record.attempt(f"at/{at}/{score}", work, note)
    _laplace_ways(record, note)
    together = lk.score("class[2] -> *", with_missing(), list(FIT_SCORES), restarts=3, seed=2)
    record.put("together", {name: together[name].log_z for name in together.keys()})  # noqa: SIM118
    for score in ("bic", "draper", "cs"):
        work = partial(lk.score, "class[3] -> *", bundled("stouffer_toby"), score, dimension="effective", restarts=3)
        record.attempt(f"effective/{score}", work, note)
    work = partial(lk.score, "class[3] -> *", bundled("gss82"), "vb", start="map", restarts=3)
    record.attempt("vb from map", work, note)
    record.attempt("exact/too large", partial(lk.score, "class[2] -> *", bundled("gss82"), "exact", budget=1000), note)
    for score in FIT_SCORES:
        work = partial(lk.score, ROLES, bundled("stouffer_toby"), score, tied=TIED, restarts=3)
        record.attempt(f"tied/{score}", work, note)
        work = partial(lk.score, "class[2] -> *", fewer_rows(bundled("carcinoma"), 6), score, restarts=3)
        record.attempt(f"few rows/{score}", work, note)

    given = lk.Prior.from_network(lk.fit(ROLES, bundled("stouffer_toby"), restarts=2).network, 8.0)
    for score in FIT_SCORES:
        work = partial(lk.score, ROLES, bundled("stouffer_toby"), score, prior=given, restarts=3)
        record.attempt(f"prior of a network/{score}", work, note)


def _laplace_ways(record: Recorder, note: Callable[[str, Any], None]) -> None:
    """Keep Laplace approximations over logits and probabilities, by all curvatures and engines."""
    chain = "; ".join(["h1[2] -> x1", *(f"h{t}[2] -> x{t}; h{t - 1} -> h{t}" for t in range(2, 9))])
    examples = [("classes", "class[2] -> *", with_missing()), ("chain", chain, binary_rows(80, 8))]
    for basis in ("logit", "probability"):
        for curvature in ("full", "blocks", "diagonal"):
            for key, model, table in examples:
                for engine in ENGINES[:3] if key == "chain" else ENGINES:  # the reference would take a minute
                    options = {"basis": basis, "curvature": curvature, "engine": engine, "prior": 1.5, "restarts": 2}
                    work = partial(lk.score, model, fewer_rows(table, 60), "laplace", **options)
                    record.attempt(f"laplace/{key}/{basis}/{curvature}/{engine}", work, note)


def _own(score: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a plain run as far as this score takes them."""
    return {"prior": options["prior"]} if score == "exact" else {**options, "max_iter": 7}


def sampled(record: Recorder) -> None:
    """Every sampled score with little work, on one thread and on two."""
    note = partial(note_evidence, record)
    for score, options in SAMPLED.items():
        for name, case in cases().items():
            work = partial(lk.score, case.dag, case.table, score, prior=case.prior, seed=7, restarts=2, **options)
            record.attempt(f"case/{name}/{score}", work, note)
        for key, model, table in _sampled_models():
            for workers in (1, 2):
                work = partial(lk.score, model, table, score, seed=8, restarts=3, workers=workers, **options)
                record.attempt(f"{key}/{score}/{workers} workers", work, note)
    for way, options in AIS_WAYS.items():
        work = partial(lk.score, "class[2] -> *", bundled("carcinoma"), "ais", seed=9, restarts=3, **options)
        record.attempt(f"ais by {way}", work, note)
    for point in ("vb", "draws"):
        work = partial(lk.score, "class[2] -> *", bundled("stouffer_toby"), "chib", point=point, draws=300, seed=9)
        record.attempt(f"chib at {point}", work, note)


def _sampled_models() -> list[tuple[str, str, lk.Table]]:
    small = fewer_rows(with_missing(), 120)
    return [
        ("carcinoma/two classes", "class[2] -> *", bundled("carcinoma")),
        ("stouffer_toby/two causes", ROLES, bundled("stouffer_toby")),
        ("missing/two classes", "class[2] -> *", small),
    ]


def draws(record: Recorder) -> None:
    """Draws of parameters, of partitions and of structures."""
    small = {"chains": 2, "draws": 60, "burn_in": 20, "seed": 3}
    for key, model, table in _sampled_models():
        for prior in ("uniform", "bdeu"):
            problem = lk.Problem(model, table, PRIORS[prior]())
            record.attempt(f"gibbs/{key}/{prior}", partial(lk.gibbs, problem, **small), partial(_note_gibbs, record))
    for name, case in cases().items():
        problem = lk.Problem(case.dag, case.table, case.prior)
        record.attempt(f"gibbs/case/{name}", partial(lk.gibbs, problem, **small), partial(_note_gibbs, record))
    for key, table in (("carcinoma", bundled("carcinoma")), ("stouffer_toby", bundled("stouffer_toby"))):
        for alpha in (0.8, (1.0, 2.0)):
            work = partial(lk.dirichlet_process, table, concentration=alpha, partitions=10, **small)
            record.attempt(f"process/{key}/{alpha}", work, partial(_note_process, record))
    note = partial(_note_walk, record)
    walk = {"chains": 2, "draws": 150, "burn_in": 50, "seed": 3}
    work = partial(lk.sample_structures, bundled("carcinoma").select(["A", "B", "C", "D"]), "A B C D", **walk)
    record.attempt("structures/complete", work, note)
    work = partial(lk.sample_structures, bundled("stouffer_toby"), "h[2] -> *", states={"h": (1, 4)}, **walk)
    record.attempt("structures/hidden", work, note)
    for workers in (1, 2):
        work = partial(lk.sample_structures, asia_rows(200), "smoke -> lung bronc", workers=workers, **walk)
        record.attempt(f"structures/asia/{workers} workers", work, note)


def _note_gibbs(record: Recorder, key: str, found: Any) -> None:
    record.fields(key, found, "log_theta log_likelihood mean")


def _note_process(record: Recorder, key: str, found: lk.ProcessDraws) -> None:
    record.fields(key, found, "n_states log_joint concentration partitions co_clustering partition probabilities")


def _note_walk(record: Recorder, key: str, found: lk.SampledStructures) -> None:
    record.fields(key, found, "visits acceptance probabilities")
    record.put(f"{key}/structures", [candidate.dag.to_text() for candidate in found.candidates])
    record.put(f"{key}/convergence", found.convergence())
    record.put(f"{key}/edges", found.edges().probabilities)


def blocks(record: Recorder) -> None:
    """A table with so many different rows that it is taken block by block, on one thread and on two."""
    table = binary_rows(300_000, 40)
    record.put("patterns", len(table.patterns()))
    for workers in (1, 2):
        work = partial(lk.fit, "class[3] -> *", table, restarts=1, max_iter=3, tol=0.0, workers=workers)
        found = record.attempt(f"vb/{workers} workers", work, partial(_note_large, record))
        if found is not None:
            record.put(f"loglik/{workers} workers", found.network.loglik(table))
    record.attempt(
        "ml",
        partial(lk.fit, "class[2] -> *", table, method="ml", restarts=1, max_iter=3, tol=0.0),
        partial(_note_large, record),
    )


def _note_large(record: Recorder, key: str, fit: lk.Fit) -> None:
    record.fields(key, fit, "objective trace n_iter potentials counts log_z")
    record.put(f"{key}/tables", fit.network.tables)


GROUPS: dict[str, Callable[[Recorder], None]] = {
    "structures": structures,
    "steps": steps,
    "fits": fits,
    "scores": scores,
    "sampled": sampled,
    "draws": draws,
    "blocks": blocks,
}
