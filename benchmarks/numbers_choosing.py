"""Groups of numbers about many structures and about tables: comparisons, searches, calibration, reading and cutting."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lurking as lk
from numbers_cases import (
    ROLES,
    alarm_rows,
    asia_rows,
    bundled,
    fewer_rows,
    two_cause_rows,
    with_missing,
)
from numbers_learning import note_evidence, note_fit
from numbers_record import Recorder

SMALL_AIS = {"passes": 20_000}
STRUCTURE_PRIORS: dict[str, Any] = {
    "uniform": "uniform",
    "edges": ("edges", 0.5),
    "edge probability": ("edge-probability", 0.2),
    "parameters": ("parameters", 0.9),
    "hidden": ("hidden", 0.3),
}


def comparing(record: Recorder) -> None:
    """Several structures side by side: posteriors, predictions, evidence on growing data."""
    note = partial(_note_comparison, record)
    table = bundled("stouffer_toby")
    models = {"one": "A B C D", "two": "class[2] -> *", "three": "class[3] -> *", "pairs": ROLES}
    for name, prior in STRUCTURE_PRIORS.items():
        work = partial(lk.compare, models, table, structure_prior=prior, restarts=4, seed=1, rescore=False)
        record.attempt(f"priors/{name}", work, note)
    scores = ["vb", "cs", "bic", "laplace", "exact"]
    work = partial(lk.compare, models, fewer_rows(table, 8), scores=scores, restarts=4, seed=2, rescore=False)
    record.attempt("many scores", work, note)
    for workers in (1, 2):
        work = partial(lk.compare, "class[1..3] -> *", bundled("stouffer_toby"), seed=3, workers=workers, **SMALL_AIS)
        record.attempt(f"rescored/{workers} workers", work, note)
        dags = list(lk.bipartite({"s": 2, "t": 2}, ["y1", "y2", "y3", "y4"]))[::6]
        options = {"restarts": 3, "seed": 0, "prune": False, "rescore": False, "workers": workers}
        work = partial(lk.compare, dags, two_cause_rows(480), **options)
        record.attempt(f"bipartite/{workers} workers", work, note)
    dags = list(lk.bipartite({"s": 2, "t": 2}, ["y1", "y2", "y3", "y4"]))
    work = partial(lk.compare, dags, two_cause_rows(8), scores=["exact", "vb"], restarts=2, rescore=False)
    record.attempt("all 136", work, note)
    work = partial(lk.compare, ["class[2] -> *", "class[3] -> *"], with_missing(), restarts=4, rescore=False)
    found = record.attempt("missing", work, note)
    if found is not None:
        _averages(record, "missing/average", found.posterior, fewer_rows(with_missing(), 40))
    for score in ("vb", "cs", "exact"):
        rows = fewer_rows(with_missing(), 12 if score == "exact" else 60)
        work = partial(lk.prequential, ["class[2] -> *", "class[1] -> *"], rows, score=score, checkpoints=4, restarts=2)
        record.attempt(f"prequential/{score}", work, partial(_note_prequential, record))


def _note_comparison(record: Recorder, key: str, found: lk.Comparison) -> None:
    record.put(f"{key}/scores", list(found.scores))
    record.put(f"{key}/sampled", sorted(found.sampled))
    for row in found.rows:
        record.fields(f"{key}/{row.name}", row, "dimension pruned_dimension effective_dimension")
        for score, evidence in row.evidences.items():
            note_evidence(record, f"{key}/{row.name}/{score}", evidence)
        if row.name in found.sampled:
            note_evidence(record, f"{key}/{row.name}/sampled", found.sampled[row.name])
    _note_posterior(record, f"{key}/posterior", found.posterior)
    for score in found.scores:
        record.put(f"{key}/{score}/probabilities", found[score].probabilities)


def _note_posterior(record: Recorder, key: str, found: lk.StructurePosterior) -> None:
    for candidate in found.candidates:
        where = f"{key}/{candidate.name}"
        record.fields(where, candidate, "log_prior probability corrected_probability is_contending")
        record.put(f"{where}/log_z", candidate.evidence.log_z)
    record.put(f"{key}/probabilities", found.probabilities)
    record.put(f"{key}/ranked", [candidate.name for candidate in found.ranked()])
    record.put(f"{key}/duplicates", found.duplicates)
    record.put(f"{key}/ranges", found.ranges)
    record.put(f"{key}/hidden", found.hidden_probabilities())
    record.put(f"{key}/cardinalities", found.cardinality_probabilities())
    record.put(f"{key}/edges", found.edges().probabilities)
    if len(found.candidates) > 1:
        first, second = found.candidates[0].name, found.candidates[1].name
        factor = found.bayes_factor(first, second)
        record.fields(f"{key}/factor", factor, "log_factor std_error factor favours is_trusted is_settled")


def _averages(record: Recorder, key: str, posterior: lk.StructurePosterior, rows: lk.Table) -> None:
    found = posterior.predict(rows, rows.columns[-1], draws=20, seed=1)
    record.fields(f"{key}/predicted", found, "probabilities between within weights by_structure")
    record.put(f"{key}/loglik", posterior.loglik(rows))
    record.put(f"{key}/imputed", {name: list(own) for name, own in posterior.impute(rows).cells.items()})


def _note_prequential(record: Recorder, key: str, found: lk.Prequential) -> None:
    record.fields(key, found, "rows cumulative std_errors kinds increments")


def searching(record: Recorder) -> None:
    """Structures over complete columns, by every method, and probabilities of edges."""
    note = partial(_note_search, record)
    ways: dict[str, dict[str, Any]] = {
        "exact": {"method": "exact"},
        "greedy": {"method": "greedy"},
        "tree": {"method": "greedy", "start": "tree"},
        "tabu": {"method": "tabu", "restarts": 10},
        "constrained": {"required": "A -> B", "forbidden": [("B", "C")], "max_parents": 2},
        "tiers": {"tiers": [["A", "B"], ["C", "D", "E", "F", "G"]]},
    }
    for way, options in ways.items():
        for score in ("bdeu", "bd", "bic"):
            record.attempt(
                f"carcinoma/{way}/{score}", partial(lk.search, bundled("carcinoma"), 0, score, **options), note
            )
    for workers in (1, 2):
        work = partial(lk.search, alarm_rows(600), restarts=3, seed=1, workers=workers)
        record.attempt(f"alarm/{workers} workers", work, note)
    record.attempt("asia", partial(lk.search, asia_rows(400), method="exact"), note)
    for over in ("orders", "structures"):
        for score in ("bdeu", "bic"):
            columns = ["A", "B", "C", "D"] if over == "structures" else list("ABCDEFG")
            work = partial(lk.edge_posterior, bundled("carcinoma").select(columns), score, over=over)
            record.attempt(f"edges/{over}/{score}", work, partial(_note_edges, record))
    for kind in ("empty", "full", "random", "tree", "full tree"):
        record.put(f"starts/{kind}", lk.start_structure(bundled("carcinoma"), {"h": 2}, kind, seed=2).to_text())


def _note_edges(record: Recorder, key: str, found: lk.EdgePosterior) -> None:
    record.put(f"{key}/probabilities", found.probabilities)


def _note_search(record: Recorder, key: str, found: lk.SearchResult) -> None:
    record.fields(key, found, "score scored_by status n_evaluated")
    record.put(f"{key}/best", found.best.to_text())
    record.put(f"{key}/directed", sorted(map(list, found.cpdag.directed)))
    record.put(f"{key}/undirected", sorted(sorted(pair) for pair in found.cpdag.undirected))
    _note_steps(record, f"{key}/history", found.history)


def _note_steps(record: Recorder, key: str, history: Any) -> None:
    """Keep the moves of a climb over single edges."""
    record.put(f"{key}/moves", [f"{s.move.kind.name} {s.move.parent} {s.move.child} {s.climb}" for s in history])
    record.put(f"{key}/scores", np.asarray([step.score for step in history]))


def hidden(record: Recorder) -> None:
    """Searches with hidden variables: structural EM, direct search, sparse mixtures, invention."""
    note = partial(_note_structural_em, record)
    for score in ("vb", "cs", "bic", "map"):
        work = partial(lk.structural_em, bundled("carcinoma"), "h[2] -> *", score=score, restarts=3, seed=1)
        record.attempt(f"structural em/carcinoma/{score}", work, note)
    for workers in (1, 2):
        start = "s[2] -> y1 y2 y3; t[2] -> y2 y3 y4"
        options = {"restarts": 3, "seed": 1, "workers": workers}
        work = partial(lk.structural_em, two_cause_rows(480), start, **options)
        record.attempt(f"structural em/two causes/{workers} workers", work, note)
    work = partial(lk.structural_em, fewer_rows(with_missing(), 300), "PURPOSE ACCURACY", restarts=2, seed=2)
    record.attempt("structural em/missing", work, note)
    for score in ("vb", "bic"):
        for patience in (0, 2):
            options = {"patience": patience, "restarts": 3, "seed": 3}
            work = partial(lk.direct_search, bundled("stouffer_toby"), "h[2] -> A B C", score, **options)
            record.attempt(f"direct/{score}/{patience}", work, partial(_note_direct, record))
    for method in ("exhaustive", "structural-em"):
        table = bundled("carcinoma").select(["A", "B", "C", "D", "E"])
        work = partial(lk.sparse_mixture, table, 2, method=method, restarts=2, starts=2, seed=4)
        record.attempt(f"sparse/{method}", work, partial(_note_sparse, record))
    for workers in (1, 2):
        work = partial(lk.search, bundled("stouffer_toby"), hidden=1, seed=5, restarts=2, max_states=3, workers=workers)
        record.attempt(f"invented/stouffer_toby/{workers} workers", work, partial(_note_invented, record))
    work = partial(lk.search, bundled("carcinoma"), hidden=1, seed=5, restarts=2, max_states=3)
    record.attempt("invented/carcinoma", work, partial(_note_invented, record))
    work = partial(lk.search, fewer_rows(with_missing(), 100), hidden=0, seed=6, restarts=1)
    record.attempt("invented/missing", work, partial(_note_invented, record))


def _note_structural_em(record: Recorder, key: str, found: lk.StructuralEm) -> None:
    record.fields(key, found, "score scored_by violations n_evaluated status")
    record.put(f"{key}/best", found.best.to_text())
    record.put(f"{key}/structures", [f"{entry.dag.to_text()}, {entry.is_kept}" for entry in found.history])
    record.put(f"{key}/scores", np.asarray([(entry.expected, entry.score) for entry in found.history]))
    note_fit(record, f"{key}/fit", found.fit)


def _note_direct(record: Recorder, key: str, found: lk.DirectSearch) -> None:
    record.fields(key, found, "score n_scored status")
    record.put(f"{key}/best", found.best.to_text())
    note_evidence(record, f"{key}/evidence", found.evidence)
    _note_steps(record, f"{key}/history", found.history)


def _note_sparse(record: Recorder, key: str, found: lk.SparseMixture) -> None:
    record.fields(key, found, "children score scored_by probabilities status")
    record.put(f"{key}/best", found.best.to_text())
    if found.search is not None:
        _note_structural_em(record, f"{key}/search", found.search)


def _note_invented(record: Recorder, key: str, found: lk.SearchResult) -> None:
    record.fields(key, found, "score scored_by status n_evaluated")
    record.put(f"{key}/best", found.best.to_text())
    for place, trial in enumerate(found.history):
        record.put(f"{key}/trials/{place}", f"{trial.dag.to_text()}, {trial.is_kept}")
        note_evidence(record, f"{key}/trials/{place}/evidence", trial.evidence)
    if found.posterior is not None:
        _note_posterior(record, f"{key}/posterior", found.posterior)


def calibrating(record: Recorder) -> None:
    """Scores against simulated data whose evidence is enclosed from both sides."""
    note = partial(_note_calibration, record)
    options = {"repeats": 2, "scores": ["bic", "cs", "vb"], "seed": 1}
    for workers in (1, 2):
        work = partial(lk.calibrate, "class[2] -> a b c d", 60, cardinalities=2, workers=workers, **options)
        record.attempt(f"drawn/{workers} workers", work, note)
    work = partial(lk.calibrate, "class[2] -> *", 40, like=bundled("stouffer_toby"), **options)
    record.attempt("like a table", work, note)
    work = partial(lk.calibrate, "class[2] -> a b c d", 40, cardinalities=3, empty=0.2, **options)
    record.attempt("missing", work, note)


def _note_calibration(record: Recorder, key: str, found: Any) -> None:
    names = "count mean_error rms_error corrected_mean_error corrected_rms_error uncertainty"
    for judgement in found.judgements:
        record.fields(f"{key}/{judgement.score}", judgement, names)
    for place, repeat in enumerate(found.repeats):
        where = f"{key}/repeats/{place}"
        record.fields(where, repeat.sandwich, "lower lower_error upper upper_error steps flattening")
        record.put(f"{where}/values", {name: own.log_z for name, own in repeat.evidences.items()})


def tables(record: Recorder) -> None:
    """Tables: bundled, emptied, read from files, and cut into bins."""
    note = partial(_note_table, record)
    for name in ("carcinoma", "gss82", "stouffer_toby"):
        record.attempt(f"bundled/{name}", partial(bundled, name), note)
    record.attempt("missing", with_missing, note)
    for name, rows in (("alarm", alarm_rows(200)), ("asia", asia_rows(200)), ("two causes", two_cause_rows(500))):
        note(f"drawn/{name}", rows)
    frame = with_missing().to_frame()
    with tempfile.TemporaryDirectory() as folder:
        for extension, write in (("csv", "to_csv"), ("parquet", "to_parquet"), ("json", None)):
            path = Path(folder) / f"rows.{extension}"
            if write is None:
                frame.to_json(path, orient="records", lines=True)
            else:
                getattr(frame, write)(path, index=False)
            for unique in (False, True):
                key = f"files/{extension}/{'unique' if unique else 'all rows'}"
                record.attempt(key, partial(lk.read, path, unique=unique), note)
    note("frame", lk.Table.from_frame(frame))
    note("array", lk.Table.from_array(np.random.default_rng(8).integers(0, 3, size=(50, 3))))
    generator = np.random.default_rng(7)
    numbers = generator.normal(size=400)
    target = (numbers + generator.normal(size=400) > 0.0).astype(int)
    weights = generator.integers(1, 4, size=400).astype(float)
    mixed = np.where(generator.random(400) < 0.1, np.nan, np.round(generator.gamma(2.0, size=400), 2))
    made = lk.Table.from_columns({"x": numbers, "y": mixed, "target": target}, weights=weights, continuous=["x", "y"])
    note("numbers", made)
    rules: dict[str, Callable[[], lk.Table]] = {
        "quantile": lambda: lk.discretise(made, {"x": 4, "y": 5}),
        "width": lambda: lk.discretise(made, method="width", states=3),
        "evidence": lambda: lk.discretise(made, method="evidence"),
        "target": lambda: lk.discretise(made, method="evidence", target="target"),
        "cuts": lambda: lk.discretise(made, {"x": [-1.0, 0.0, 1.5], "y": "evidence"}),
    }
    for rule, work in rules.items():
        record.attempt(f"cut/{rule}", work, note)


def _note_table(record: Recorder, key: str, table: lk.Table) -> None:
    record.fields(key, table, "n n_rows weights digest is_complete")
    for name in table.columns:
        column = table[name]
        record.fields(f"{key}/{name}", column, "kind codes values levels")
    categorical = [name for name in table.columns if table[name].kind == "categorical"]
    patterns = table.patterns(categorical)
    record.fields(f"{key}/patterns", patterns, "codes weights inverse")


GROUPS: dict[str, Callable[[Recorder], None]] = {
    "comparing": comparing,
    "searching": searching,
    "hidden": hidden,
    "calibrating": calibrating,
    "tables": tables,
}
