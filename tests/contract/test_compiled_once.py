"""Two processes that need a kernel compile it once: each takes its lock before it looks for it on disk."""

from types import SimpleNamespace

import pytest
from numba.core.dispatcher import Dispatcher

import compiled_once

fcntl = pytest.importorskip("fcntl")


def is_free(path):
    """Return True if a lock can be had on a file at once."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_lock_keeps_others_out_and_lets_its_holder_in_again(tmp_path):
    path, held = tmp_path / "new" / "kernel.lock", set()
    with compiled_once.alone(path, held):
        assert not is_free(path)
        with compiled_once.alone(path, held):
            assert not is_free(path)
        assert not is_free(path)
    assert is_free(path)
    with pytest.raises(ValueError, match="x"), compiled_once.alone(path, held):
        int("x")
    assert is_free(path)
    assert not held


def test_a_kernel_is_compiled_under_its_lock(tmp_path, monkeypatch):
    def kernel():
        pass

    locks = []

    def compiled(_dispatcher, signature):
        locks.extend(path for path in tmp_path.iterdir() if not is_free(path))
        return signature

    monkeypatch.setattr(Dispatcher, "compile", compiled)
    compiled_once.compile_once()
    cached = SimpleNamespace(py_func=kernel, _cache=SimpleNamespace(cache_path=str(tmp_path)))
    assert Dispatcher.compile(cached, "signature") == "signature"
    assert locks == [tmp_path / f"{__name__}.kernel.lock"]
    assert is_free(locks[0])
    uncached = SimpleNamespace(py_func=kernel, _cache=SimpleNamespace(cache_path=None))
    assert Dispatcher.compile(uncached, "signature") == "signature"
    assert len(locks) == 1
