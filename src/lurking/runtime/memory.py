"""How much memory there is, and sizes in words."""

from __future__ import annotations

import os


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


def in_words(size: float) -> str:
    """Return a byte count as text, for example ``3.2 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1024
    raise AssertionError("unreachable")
