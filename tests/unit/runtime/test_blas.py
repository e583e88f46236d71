"""Threads of linear algebra are held at one for a while, and given back."""

import pytest

from lurking.runtime import blas


@pytest.fixture
def counts(monkeypatch):
    """Return the thread counts of two made-up libraries, which the switches read and set."""
    held = {"first": 4, "second": 8}

    def switch(name):
        return (lambda: held[name]), (lambda count: held.__setitem__(name, count))

    monkeypatch.setattr(blas, "_switches", lambda: tuple(switch(name) for name in held))
    return held


def test_one_thread_within_the_block(counts):
    with blas.one_thread():
        assert counts == {"first": 1, "second": 1}
    assert counts == {"first": 4, "second": 8}


def test_blocks_that_overlap(counts):
    """The block that began first ends first, as in two threads."""
    first, second = blas.one_thread(), blas.one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert counts == {"first": 1, "second": 1}
    second.__exit__(None, None, None)
    assert counts == {"first": 4, "second": 8}


def test_given_back_after_an_error(counts):
    with pytest.raises(KeyboardInterrupt), blas.one_thread():
        raise KeyboardInterrupt
    assert counts == {"first": 4, "second": 8}


def test_libraries_that_were_found_obey():
    before = [read() for read, _ in blas._switches()]
    with blas.one_thread():
        assert [read() for read, _ in blas._switches()] == [1] * len(before)
    assert [read() for read, _ in blas._switches()] == before


def test_what_is_no_library_has_no_switch(tmp_path):
    path = tmp_path / "libopenblas.so"
    path.write_text("a text")
    assert blas._switch(path) is None
