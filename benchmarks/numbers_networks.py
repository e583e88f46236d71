"""The group of numbers about networks: what fitted and published ones answer."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lurking as lk
from numbers_cases import (
    NETWORKS,
    ROLES,
    alarm_rows,
    asia_rows,
    bundled,
    bundled_models,
    cases,
    emptied,
    fewer_rows,
    with_missing,
)
from numbers_record import Recorder


def networks(record: Recorder) -> None:
    """Answers of fitted and of published networks."""
    for key, model, table in bundled_models():
        for method in ("vb", "ml"):
            network = lk.fit(model, table, method=method, restarts=3, seed=1).network
            _queries(record, f"{key}/{method}", network, table)
    missing = fewer_rows(with_missing(), 200)
    _queries(record, "missing", lk.fit("class[2] -> *", missing, restarts=3, seed=1).network, missing)
    for name, case in cases().items():
        _queries(record, f"case/{name}", case.network, case.table)
    for name, rows in (("asia", asia_rows(100)), ("alarm", alarm_rows(40))):
        network = lk.read_network(NETWORKS / f"{name}.bif")
        record.put(f"{name}/tables", network.tables)
        record.put(f"{name}/codes", {column: rows[column].codes for column in rows.columns})
        _queries(record, name, network, emptied(rows, 0.3))
    _written_and_read(record)


def _written_and_read(record: Recorder) -> None:
    """Networks that were written to a file and read again keep every bit of their tables."""
    network = lk.fit(ROLES, bundled("stouffer_toby"), restarts=2).network
    with tempfile.TemporaryDirectory() as folder:
        for extension in ("json", "bif"):
            path = Path(folder) / f"network.{extension}"

            def again(path: Path = path) -> Any:
                lk.write_network(network, path)
                return lk.read_network(path).tables

            record.attempt(f"files/{extension}", again)


def _queries(record: Recorder, key: str, network: lk.Network, table: lk.Table) -> None:
    """Everything that can be asked of a network, on one table."""
    observed, hidden = network.dag.observed, tuple(network.dag.hidden)
    target = observed[-1]
    asked: dict[str, Callable[[], Any]] = {
        "class sizes": network.class_sizes,
        "covariates": lambda: list(network.covariates),
        "relevant dimension": lambda: network.relevant_dimension,
        "loglik": lambda: network.loglik(table),
        "conditional loglik": lambda: network.conditional_loglik(table, given=[observed[0]]),
        "hidden": lambda: network.hidden_probabilities(table),
        "predicted": lambda: network.predict(table, target).probabilities,
        "predicted without": lambda: network.predict(table.drop([target]), target).probabilities,
        "joint": lambda: network.joint([observed[0], *(hidden or observed[1:2])]),
        "imputed": lambda: {name: list(found) for name, found in network.impute(table).cells.items()},
        "sample": lambda: _codes(network.sample(20, seed=6, hidden=True)),
        "hidden tables": lambda: {name: _hidden_table(own) for name, own in network.hidden_tables(table).items()},
    }
    for question, work in asked.items():
        record.attempt(f"{key}/{question}", work)


def _codes(table: lk.Table) -> dict[str, Any]:
    return {name: table[name].codes for name in table.columns}


def _hidden_table(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("probabilities", "expected_rows", "lower", "upper")}


GROUPS: dict[str, Callable[[Recorder], None]] = {"networks": networks}
