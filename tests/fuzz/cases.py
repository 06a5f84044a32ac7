"""The log of a fuzz over models: one line of JSON for each case, appended; and its sum as tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

#: What a solve is compared with.
WITNESSES = ("definition", "literal", "enumeration", "other", "trees")


@dataclass
class Solve:
    """One solve: by whom, whether an optimum was proven for the definition, and which witnesses judged it."""

    variant: str
    solver: str
    proven: bool
    witnesses: list[str] = field(default_factory=list)


@dataclass
class Case:
    """A random problem, and what came of it.

    Attributes
    ----------
    seed, number
        What repeats it.
    model, depth, constraint
        What was drawn; of the constraint the helper's name, ``None`` without one.
    weights
        Whether samples have weights.
    solves
        All solves, by variant and solver.
    refused
        How often a model, or a solver's licence, did not take the problem.
    failures
        What was wrong.
    """

    seed: int
    number: int
    model: str = ""
    depth: int = 0
    constraint: str | None = None
    weights: bool = False
    solves: list[Solve] = field(default_factory=list)
    refused: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, variant: str, solver: str, *, proven: bool) -> Solve:
        """Note a solve; its witnesses follow."""
        self.solves.append(Solve(variant, solver, proven))
        return self.solves[-1]

    def solve(self, variant: str, solver: str) -> Solve:
        """Return the solve of a variant by a solver."""
        return next(solve for solve in self.solves if (solve.variant, solve.solver) == (variant, solver))


class Log:
    """A file of cases that grows. A line that a killed run has left half written does not count.

    Parameters
    ----------
    path
        The file; it is made with the first case.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cases = {(case.seed, case.number): case for case in cases_of([path] if path.exists() else [])}

    def done(self, seed: int, number: int) -> Case | None:
        """Return a case that is in the file."""
        return self._cases.get((seed, number))

    def append(self, case: Case) -> None:
        """Write a case at the end of the file."""
        text = json.dumps(asdict(case))
        with self._path.open("a+b") as file:
            # What a kill left of a line stays a line of its own.
            file.seek(0, 2)
            if file.tell():
                file.seek(-1, 2)
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(f"{text}\n".encode())


def cases_of(paths: Iterable[Path]) -> Iterator[Case]:
    """Read files of cases, each case once."""
    seen = set()
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found = json.loads(line)
            except json.JSONDecodeError:
                continue  # half a line
            case = Case(**{**found, "solves": [Solve(**solve) for solve in found["solves"]]})
            if (case.seed, case.number) not in seen:
                seen.add((case.seed, case.number))
                yield case


@dataclass
class Figures:
    """What came out of many cases.

    Attributes
    ----------
    solves, proven
        Number of solves, and of optima proven for the definition, by model and solver.
    compared
        Number of solves compared, by model, solver and witness.
    kinds
        Number of solves by kind of problem: ``depth 2``, a helper's name, ``weights``.
    refused
        Problems that a model, or a solver's licence, does not take.
    cases
        Number of cases.
    failures
        What was wrong, with seed and case.
    """

    solves: Counter[tuple[str, str]] = field(default_factory=Counter)
    proven: Counter[tuple[str, str]] = field(default_factory=Counter)
    compared: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    cases: int = 0
    failures: list[str] = field(default_factory=list)

    def count(self, case: Case) -> None:
        """Add a case."""
        self.cases += 1
        self.refused += case.refused
        self.failures += [f"seed {case.seed} case {case.number}: {text}" for text in case.failures]
        for solve in case.solves:
            key = (case.model, solve.solver)
            self.solves[key] += 1
            self.proven[key] += solve.proven
            for witness in solve.witnesses:
                self.compared[*key, witness] += 1
            self.kinds[f"depth {case.depth}"] += 1
            self.kinds["weights"] += case.weights
            if case.constraint is not None:
                self.kinds[f"`{case.constraint}`"] += 1

    def table(self) -> str:
        """Return the figures as tables in Markdown."""
        lines = [
            f"| model | solver | solves | proven | {' | '.join(WITNESSES)} |",
            "|---|---|" + "---:|" * (2 + len(WITNESSES)),
        ]
        for key in sorted(self.solves):
            compared = [self.compared[*key, witness] for witness in WITNESSES]
            cells = [f"`{key[0]}`", key[1], self.solves[key], self.proven[key], *compared]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        every = [sum(self.compared[*key, witness] for key in self.solves) for witness in WITNESSES]
        cells = ["all", "", self.solves.total(), self.proven.total(), *every]
        lines += [f"| {' | '.join(map(str, cells))} |", "", "| kind of problem | solves |", "|---|---:|"]
        lines += [f"| {kind} | {count} |" for kind, count in sorted(self.kinds.items()) if count]
        counts = f"{self.cases} cases, {self.refused} problems refused, {len(self.failures)} failures"
        return "\n".join([*lines, "", counts])
