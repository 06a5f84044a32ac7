"""Print a processor for which this one's OpenBLAS can compute, and does not by itself; nothing if there is none."""

import platform

import numpy  # noqa: F401  (loads OpenBLAS)
from threadpoolctl import threadpool_info

#: Have all instructions of Haswell, and are computed for otherwise.
NEWER = {"skylakex", "cooperlake", "sapphirerapids"}

own = {found["architecture"].lower() for found in threadpool_info() if found["internal_api"] == "openblas"}
if own and platform.machine().lower() in ("x86_64", "amd64"):
    other = "Haswell" if own <= NEWER else "Prescott"
    print(other if other.lower() not in own else "")
