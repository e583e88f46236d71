"""How much memory there is, and sizes in words."""

from __future__ import annotations

import math
import os
import re

import numpy as np

from lurking.errors import OptionError

UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def available_bytes() -> int:
    """Return the memory that can still be used without swapping (Linux, within a container's limit), or all of it."""
    return min(_machine_bytes(), _container_bytes())


def _container_bytes() -> int:
    """Return what the limit of the control group leaves, or a number beyond any machine without one."""
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            most = int(limit.read())
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as usage:
            return max(most - int(usage.read()), 0)
    except (OSError, ValueError):
        return 2**62


def _machine_bytes() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 8 * 2**30


def is_affordable(need: float) -> bool:
    """Whether so many bytes may be taken: 64 MiB without asking, more if a fifth of what is free stays free."""
    return need < 2**26 or need < 0.8 * available_bytes()


def count_in_words(count: int) -> str:
    """Return a count as text; a large one as a power, since Python makes no float beyond 1e308."""
    return f"{count:.3g}" if count < 2**53 else f"10^{math.log10(count):.1f}"


def in_words(size: float) -> str:
    """Return a byte count as text, for example ``3.2 GiB``."""
    if size > 2**100:
        return f"{count_in_words(int(size))} bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def byte_count(size: int | str) -> int:
    """Return a size given in bytes, or as text with a unit such as ``500MB``, ``1.5 GB`` or ``2GiB``."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0:
        return int(size)
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([a-z]+)\s*", size.lower()) if isinstance(size, str) else None
    if found is None or found[2] not in UNITS or not 0.0 < float(found[1]) < 1e15:
        raise OptionError(f"memory is {size!r}; give a size such as 500MB, 1GB or 2GiB")
    return int(float(found[1]) * UNITS[found[2]])
