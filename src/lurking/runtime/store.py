"""Results that outlive the program: one SQLite file, one row per finished piece of work.

A piece is written in one transaction of a write-ahead log, so a program killed at any moment leaves whole pieces only,
and none that it has reported as done is lost. Values are JSON: numbers come back with every digit.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from lurking.errors import DataError, OptionError

FORMAT: Final = 1
_MARK: Final = 0x6C75726B  # application id in the header of the file: "lurk"
_WAIT_SECONDS: Final = 60.0
_CREATE: Final = """
CREATE TABLE IF NOT EXISTS results (
    data TEXT NOT NULL,
    structure TEXT NOT NULL,
    score TEXT NOT NULL,
    configuration TEXT NOT NULL,
    seed TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (data, structure, score, configuration, seed)
) WITHOUT ROWID
"""
_FIND: Final = "SELECT value FROM results WHERE data=? AND structure=? AND score=? AND configuration=? AND seed=?"


class Key(NamedTuple):
    """What a result depends on: digests of the data, structure(s) and configuration, the score, and the seed."""

    data: str
    structure: str
    score: str
    configuration: str
    seed: int


def digest_of(*values: Any) -> str:
    """Return a short digest of bytes or of anything that JSON can write, the same in every run."""
    total = hashlib.sha256()
    for value in values:
        content = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True, allow_nan=False).encode()
        total.update(len(content).to_bytes(8, "little") + content)
    return total.hexdigest()[:32]


class Store:
    """Finished pieces of work by key; threads and other programs may use the same file at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without an isolation level every statement is a transaction of its own, and none begins unasked.
            self._connection = sqlite3.connect(path, _WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"cannot keep results in {str(path)!r}: {error}; choose another place") from None

    def _open(self) -> None:
        """Make the table and the header of a new file in one transaction; leave any other file as it is."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        mark, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _HEADER)
        is_new = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not is_new and (mark, version) != (_MARK, FORMAT):
            connection.rollback()
            connection.close()
            what = f"results of format {version}" if mark == _MARK else "a database of something else"
            raise DataError(f"{str(self.path)!r} holds {what}; move it away, or choose another place")
        connection.execute(_CREATE)
        for name, value in zip(_HEADER, (_MARK, FORMAT), strict=True):
            connection.execute(f"PRAGMA {name}={value}")
        connection.commit()
        self._log_ahead()
        connection.execute("PRAGMA synchronous=NORMAL")

    def _log_ahead(self) -> None:
        """Switch to the write-ahead log; SQLite does not wait here while another program does the same."""
        last = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if time.monotonic() > last or not any(word in str(error) for word in ("locked", "busy")):
                    raise
                time.sleep(0.05)

    def get(self, key: Key) -> Any | None:
        """Return the value of a finished piece, or None."""
        try:
            with self._lock:
                found = self._connection.execute(_FIND, _cells(key)).fetchone()
        except sqlite3.Error as error:
            raise DataError(f"cannot read results in {str(self.path)!r}: {error}; move the file away") from None
        return None if found is None else json.loads(found[0])

    def put(self, key: Key, value: Any) -> None:
        """Keep the value of a finished piece; it survives whatever happens to the program afterwards."""
        try:
            text = json.dumps(value, allow_nan=False)
        except ValueError:
            raise ArithmeticError(f"a result of {key.score!r} on {key.structure!r} is not finite") from None
        try:
            with self._lock:
                self._connection.execute(
                    "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", (*_cells(key), text)
                )
        except sqlite3.Error as error:
            raise DataError(f"cannot keep results in {str(self.path)!r}: {error}") from None

    def recall(self, key: Key, make: Callable[[], Any]) -> Any:
        """Return the value kept under the key; make and keep it first if there is none."""
        value = self.get(key)
        if value is None:
            self.put(key, make())
            value = self.get(key)
        return value

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM results").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _cells(key: Key) -> tuple[str, ...]:
    """Return a key as texts: seeds may be larger than the whole numbers of SQLite."""
    return tuple(str(part) for part in key)


@contextmanager
def opened(store: Store | str | Path | None) -> Iterator[Store | None]:
    """Give a store as it is; the file that a path names is opened as one, and closed at the end."""
    if store is None or isinstance(store, Store):
        yield store
    elif isinstance(store, str | Path):
        with Store(Path(store)) as made:
            yield made
    else:
        raise OptionError(
            f"store is {store!r}; it must be the path of a file, a Store of lurking.runtime.store, or None"
        )


_HEADER: Final = ("application_id", "user_version")
