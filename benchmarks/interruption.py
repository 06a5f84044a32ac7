"""Seconds from Ctrl-C to the end of a command, the check of its answer included.

    python benchmarks/interruption.py --output docs/benchmarks/interruption.md

Each command is a process of its own that gets SIGINT some seconds after it has begun to search.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time

from markdown import add_output, measured_with, publish, table

#: Commands that search for minutes.
COMMANDS = (
    "--model oct --depth 3 --data synthetic:tree,depth=3,n=200000,p=20",
    "--model oct --depth 4 --data synthetic:tree,depth=4,n=20000,p=20,label_noise=0.2",
    "--model ort --depth 3 --data synthetic:tree,depth=3,n=20000,p=20,task=regression",
    "--model oct-h --depth 2 --data breast_cancer",
    "--model margot --depth 3 --data breast_cancer",
    "--model margot --depth 2 --data breast_cancer --solver highs",
    "--model olct --depth 3 --data synthetic:tree,depth=3,n=20000,p=20",
    "--model orct --depth 3 --data synthetic:tree,depth=3,n=20000,p=20",
    "--model ogrs --data breast_cancer --param rules=8",
    "--model oct --depth 3 --data breast_cancer --recall malignant=97% --monotone 'worst area-'",
)

#: Seconds of searching before the signal, and after which a command is given up.
SEARCHED, PATIENCE = 5.0, 120.0

TEXT = """\
# Ctrl-C

Each command searches for {searched:g} s and then gets Ctrl-C. It keeps its best tree, checks it, prints the answer and
ends. Searches were compiled before.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_output(parser)
    arguments = parser.parse_args()
    rows = []
    for command in COMMANDS:
        run(command, SEARCHED)  # compiles what it needs
        seconds, status = run(command, SEARCHED)
        rows.append((f"`{command}`", f"{seconds:.1f}", status))
        print(*rows[-1], file=sys.stderr, flush=True)
    parts = [TEXT.format(searched=SEARCHED), table(("`mipforest solve`", "seconds", "status"), rows), ""]
    parts += [
        f"{measured_with(('numpy', 'numba', 'highspy'))}\n",
        "Run again: `python benchmarks/interruption.py`.\n",
    ]
    publish("\n".join(parts), arguments.output)


def run(command: str, searched: float) -> tuple[float, str]:
    """Start a command, interrupt it while it searches; return the seconds that it took to end, and its status."""
    import shlex

    process = subprocess.Popen(
        [sys.executable, "-m", "mipforest", "solve", *shlex.split(command), "--time-limit", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("solving"):
            break
    # What is compiled first is no part of the search.
    time.sleep(searched)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        told, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return PATIENCE, "given up"
    status = next((line for line in told.splitlines() if line.startswith("Status")), "Status no answer")
    return time.monotonic() - began, status.removeprefix("Status").strip()


if __name__ == "__main__":
    main()
