"""A first session with default arguments: seconds from the import to a proven tree, of each data set, cold and warm.

    python benchmarks/session.py [--output FILE]

Each session is a process of its own. "Cold" has no compiled search: the first fit compiles it, once;
"warm" has one, as every later session. Processor seconds stand in brackets.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

SESSION = """
from time import perf_counter, process_time
wall, cpu = perf_counter(), process_time()
import json, sys
from sklearn import datasets
from mipforest import OCTClassifier
told = {"import": (perf_counter() - wall, process_time() - cpu)}
X, y = getattr(datasets, "load_" + sys.argv[1])(return_X_y=True, as_frame=True)
tree = OCTClassifier().fit(X, y)
told |= {"tree": (perf_counter() - wall, process_time() - cpu), "status": tree.status_, "score": tree.score(X, y)}
print(json.dumps(told))
"""

DATA = ("iris", "wine", "breast_cancer")


def session(data: str, cache: str) -> list[str]:
    """Return a line of the table: seconds of a session, and what it found."""
    command = [sys.executable, "-P", "-W", "ignore", "-c", SESSION, data]
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    told = json.loads(done.stdout.splitlines()[-1])
    seconds = [f"{told[what][0]:.1f} ({told[what][1]:.1f})" for what in ("import", "tree")]
    return [*seconds, told["status"], f"{told['score']:.1%}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sessions."""
    from markdown import add_output, measured_with, publish, table

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_output(parser)
    given = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        rows.append([DATA[0], "cold", *session(DATA[0], cache)])
        for data in DATA:
            session(data, cache)  # other kinds of problems compile operations of their own
            rows.append([data, "warm", *session(data, cache)])
    head = ["data", "search", "import", "first tree, since the import began", "status", "accuracy"]
    text = PAGE.format(table=table(head, rows), versions=measured_with(["mipforest", "numba"]))
    publish(text, given.output)


PAGE = """# A first session

Seconds of `OCTClassifier().fit(X, y)` with default arguments in a new process, from the beginning of the import;
processor seconds are in brackets. Every tree is a proven optimum.

{table}

Most of a warm session is the import of numpy, pandas, scikit-learn and numba. In a cold one the search is compiled,
once on each computer; the time limit does not count that. To compile it beforehand, as in the image of a notebook
server, run

```
mipforest doctor
```

once after the installation, as the user who will work there: it compiles all searches, in about 100 processor seconds.
The compiled code is kept in the user's cache (`NUMBA_CACHE_DIR` names another folder) and serves every later
process.

{versions}
Run again: `python benchmarks/session.py --output FILE`.
"""

if __name__ == "__main__":
    main()
