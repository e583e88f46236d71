"""Each kernel compiled by one process: a worker that needs a kernel waits while another compiles it, then loads it.

Numba's cache on disk serves processes that come later. Of two that run at the same time both compile what both need,
and of two that save signatures of one kernel at once, one can be stored under the key of the other.
"""

import contextlib
import functools
from pathlib import Path

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None


@contextlib.contextmanager
def alone(path, held):
    """Hold a lock on a file that no other process holds; what this process holds already is not waited for."""
    if fcntl is None or path in held:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    held.add(path)
    try:
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    finally:
        held.remove(path)


def compile_once():
    """Make Numba take a lock of the kernel before it looks for it on disk, and keep it until the kernel is stored.

    A kernel is compiled while the kernels that call it are: calls have no circles, so processes never wait in one.
    """
    compiled, held = Dispatcher.compile, set()

    @functools.wraps(compiled)
    def compile_alone(self, signature):
        folder = self._cache.cache_path
        if folder is None:
            return compiled(self, signature)
        # Numba's own lock comes first, so that one thread of this process at a time is here.
        with global_compiler_lock, alone(Path(folder, f"{self.py_func.__module__}.{self.py_func.__name__}.lock"), held):
            return compiled(self, signature)

    Dispatcher.compile = compile_alone
