"""The store: values come back, keys are told apart, a killed writer loses nothing it has reported."""

import math
import sqlite3
import subprocess
import sys
import threading

import pytest

from lurking.errors import DataError
from lurking.runtime.store import Key, Store, digest_of

KEY = Key("d", "s", "vb", "c", 0)


def test_values_come_back_with_every_digit(tmp_path):
    value = {"a": [0.1, math.pi, -1e-300, 2**60], "b": None, "c": "é"}
    with Store(tmp_path / "deep" / "kept.sqlite") as store:
        assert store.get(KEY) is None
        store.put(KEY, value)
        assert store.get(KEY) == value
    with Store(tmp_path / "deep" / "kept.sqlite") as store:
        assert store.get(KEY) == value
        assert len(store) == 1


def test_seeds_of_any_size(tmp_path):
    with Store(tmp_path / "kept.sqlite") as store:
        store.put(KEY._replace(seed=2**70), 1)
        assert (store.get(KEY._replace(seed=2**70)), store.get(KEY._replace(seed=2**70 + 1))) == (1, None)


@pytest.mark.parametrize("place", range(5))
def test_every_part_of_a_key_counts(tmp_path, place):
    other = list(KEY)
    other[place] = 1 if place == 4 else "x"
    with Store(tmp_path / "kept.sqlite") as store:
        store.put(KEY, 1)
        assert store.get(Key(*other)) is None


def test_recall_makes_once(tmp_path):
    made = []
    with Store(tmp_path / "kept.sqlite") as store:
        for _ in range(2):
            assert store.recall(KEY, lambda: made.append(1) or [1.5]) == [1.5]
    assert made == [1]


def test_what_is_no_number_is_refused(tmp_path):
    with Store(tmp_path / "kept.sqlite") as store, pytest.raises(ArithmeticError, match="'vb' on 's' is not finite"):
        store.put(KEY, [math.nan])


def test_threads_and_two_stores_share_a_file(tmp_path):
    path = tmp_path / "kept.sqlite"
    with Store(path) as first, Store(path) as second:

        def write(store, begin):
            for seed in range(begin, begin + 50):
                store.put(KEY._replace(seed=seed), seed)

        threads = [threading.Thread(target=write, args=(s, 50 * k)) for k, s in enumerate((first, first, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(second) == 150
        assert all(first.get(KEY._replace(seed=seed)) == seed for seed in range(150))


def test_digests():
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert len({digest_of("a", "b"), digest_of("ab"), digest_of("b", "a"), digest_of(b"ab"), digest_of(["ab"])}) == 5


@pytest.mark.parametrize("content", [b"hello, I am a text file of some length" * 9, None])
def test_other_files_are_left_alone(tmp_path, content):
    path = tmp_path / "other"
    if content is None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE mine (x)")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(DataError, match="other"):
        Store(path)
    assert path.read_bytes() == before


OPENER = """
import sys
from pathlib import Path
from lurking.runtime.store import Key, Store
for number in range(20):
    with Store(Path(sys.argv[1]) / f"{number}.sqlite") as store:
        store.put(Key("d", "s", "vb", "c", int(sys.argv[2])), number)
"""


def test_programs_may_make_the_same_file_at_once(tmp_path):
    openers = [subprocess.Popen([sys.executable, "-c", OPENER, str(tmp_path), str(seed)]) for seed in range(3)]
    assert [opener.wait() for opener in openers] == [0, 0, 0]
    for number in range(20):
        with Store(tmp_path / f"{number}.sqlite") as store:
            assert [store.get(KEY._replace(seed=seed)) for seed in range(3)] == [number] * 3


def test_a_damaged_file_is_refused_in_one_line(tmp_path):
    path = tmp_path / "kept.sqlite"
    with Store(path) as store:
        for seed in range(300):
            store.put(KEY._replace(seed=seed), [seed] * 50)
    content = bytearray(path.read_bytes())
    content[8192:] = b"x" * (len(content) - 8192)
    path.write_bytes(content)
    with Store(path) as store, pytest.raises(DataError, match="cannot read results"):
        all(store.get(KEY._replace(seed=seed)) for seed in range(300))


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot keep results"):
        Store(tmp_path / "file" / "kept.sqlite")


WRITER = """
import sys
from pathlib import Path
from lurking.runtime.store import Key, Store
store = Store(Path(sys.argv[1]))
for seed in range(100000):
    store.put(Key("d", "s", "vb", "c", seed), [seed] * 50)
    print(seed, flush=True)
"""


def test_kill_loses_nothing_that_was_reported(tmp_path):
    path = tmp_path / "kept.sqlite"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        reported = [int(writer.stdout.readline()) for _ in range(200)]
        writer.kill()
        reported += [int(line) for line in writer.stdout.read().splitlines() if line.strip().isdigit()]
    with Store(path) as store:
        # The last line may have been cut in the middle of a number; all others were whole.
        for seed in reported[:-1]:
            assert store.get(KEY._replace(seed=seed)) == [seed] * 50
        assert len(store) >= len(reported) - 1
