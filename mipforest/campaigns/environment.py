"""Where a cell is run: machine and versions, without names of hosts or users."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")


def environment() -> dict[str, str | int]:
    """Describe this machine and the versions of what results depend on; the solver's stands with each result.

    Returns
    -------
    dict
        ``cpu``, ``cores`` (logical, those this process may use), ``memory_mib``, ``system``, ``python``,
        ``mipforest``, ``numpy``, ``scipy``, ``scikit_learn``.
    """
    return {
        "cpu": _cpu(),
        "cores": _cores(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "mipforest": version("mipforest"),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "scikit_learn": version("scikit-learn"),
    }


def _cpu() -> str:
    """Name of the processor's model; Python itself knows it on few systems."""
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            key, colon, value = line.partition(":")
            if colon and key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
