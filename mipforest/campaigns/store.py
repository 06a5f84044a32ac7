"""The results file: one SQLite database per campaign."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mipforest.campaigns.experiment_result import ExperimentResult
from mipforest.campaigns.experiments import PlannedExperiment
from mipforest.campaigns.suite import Suite
from mipforest.errors import CampaignError

#: Marks a SQLite file as results of a campaign ("mfrc"), in the place that SQLite has for it.
APPLICATION = 0x6D667263

#: Version of the tables.
VERSION = 1

#: Every statement once; ``docs/campaigns.md`` says what the columns hold.
TABLES = (
    """
    CREATE TABLE suites (
        number INTEGER PRIMARY KEY,
        sha256 TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        latest INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE environments (
        number INTEGER PRIMARY KEY,
        cpu TEXT NOT NULL,
        cores INTEGER NOT NULL,
        memory_mib INTEGER NOT NULL,
        system TEXT NOT NULL,
        python TEXT NOT NULL,
        mipforest TEXT NOT NULL,
        numpy TEXT NOT NULL,
        scipy TEXT NOT NULL,
        scikit_learn TEXT NOT NULL,
        UNIQUE (cpu, cores, memory_mib, system, python, mipforest, numpy, scipy, scikit_learn)
    )
    """,
    """
    CREATE TABLE cells (
        number INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        position INTEGER,
        setting TEXT NOT NULL,
        model TEXT NOT NULL,
        data TEXT NOT NULL,
        seed INTEGER NOT NULL,
        solver TEXT NOT NULL,
        depth INTEGER NOT NULL,
        time_limit REAL,
        definition TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE results (
        cell INTEGER PRIMARY KEY REFERENCES cells,
        state TEXT NOT NULL CHECK (state IN ('done', 'failed')),
        error TEXT,
        suite INTEGER NOT NULL REFERENCES suites,
        environment INTEGER NOT NULL REFERENCES environments,
        finished TEXT NOT NULL,
        load_average REAL,
        data_sha256 TEXT,
        train_sha256 TEXT,
        model_sha256 TEXT,
        train_samples INTEGER,
        test_samples INTEGER,
        features INTEGER,
        columns INTEGER,
        rows INTEGER,
        solver_version TEXT,
        status TEXT,
        verified INTEGER,
        objective REAL,
        bound REAL,
        gap REAL,
        start_objective REAL,
        features_used INTEGER,
        features_per_split REAL,
        nodes INTEGER,
        seconds REAL,
        prepare_seconds REAL,
        build_seconds REAL,
        wall_seconds REAL,
        cpu_seconds REAL,
        details TEXT,
        tree TEXT
    )
    """,
    """
    CREATE TABLE measures (
        cell INTEGER NOT NULL REFERENCES results ON DELETE CASCADE,
        name TEXT NOT NULL,
        value REAL,
        PRIMARY KEY (cell, name)
    )
    """,
    """
    CREATE TABLE events (
        cell INTEGER NOT NULL REFERENCES results ON DELETE CASCADE,
        number INTEGER NOT NULL,
        seconds REAL NOT NULL,
        objective REAL,
        bound REAL,
        nodes INTEGER NOT NULL,
        PRIMARY KEY (cell, number)
    )
    """,
)


#: How SQLite stores values of each type of the tables.
STORED_AS = {"INTEGER": "'integer'", "REAL": "'real', 'integer'", "TEXT": "'text'"}


@cache
def known_columns() -> dict[str, dict[str, str]]:
    """Return the type of each column, by table."""
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in TABLES:
            empty.execute(statement)
        names = [name for (name,) in empty.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table: {name: kind for _, name, kind, *_ in empty.execute(f"PRAGMA table_info({table})")}
            for table in names
        }


#: Attempts at cells that have no result yet: how often a process began one. Files of earlier releases lack the table.
ATTEMPTS_TABLE = """
    CREATE TABLE IF NOT EXISTS attempts (
        cell INTEGER PRIMARY KEY REFERENCES cells,
        begun INTEGER NOT NULL
    )
"""

#: Seconds to wait for another process that writes; a write takes milliseconds.
WAIT = 60.0


@dataclass(frozen=True)
class Counts:
    """How far a campaign is: numbers of experiments."""

    done: int
    failed: int
    waiting: int

    @property
    def all(self) -> int:
        """Number of experiments."""
        return self.done + self.failed + self.waiting


class Store:
    """An open results file.

    Every write is one transaction with a rollback journal and full synchronisation: a process that is killed leaves
    the file as it was before the write or after it.

    Parameters
    ----------
    path
        The file.
    create
        Whether to make it where it is missing.

    Raises
    ------
    CampaignError
        If the file is missing, is no SQLite file, holds something else, or cannot be opened.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            raise CampaignError(f"there is no results file {path}; 'mipforest campaign run' makes one")
        if not path.absolute().parent.is_dir():
            raise CampaignError(f"there is no folder {path.parent} to hold {path.name}; make it first")
        try:
            self._connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        self._connection.row_factory = sqlite3.Row
        self._execute("PRAGMA foreign_keys = ON")
        self._execute("PRAGMA synchronous = FULL")
        self._check(create)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check(self, create: bool) -> None:
        """Make the tables in an empty file; refuse a file with other content."""
        if create and not self._tables():
            with self._transaction():
                if not self._tables():  # another process may have been faster
                    for statement in TABLES:
                        self._execute(statement)
                    self._execute(f"PRAGMA application_id = {APPLICATION}")
                    self._execute(f"PRAGMA user_version = {VERSION}")
        if self._pragma("application_id") != APPLICATION:
            raise CampaignError(f"{self.path} is a SQLite file, but holds no results of a campaign")
        if self._pragma("user_version") != VERSION:
            raise CampaignError(
                f"{self.path} has version {self._pragma('user_version')} of the tables, known is {VERSION}; "
                "use the release of mipforest that wrote it, or another results file"
            )

        for table, columns in known_columns().items():
            self._check_table(table, columns)

    def _check_table(self, table: str, columns: Mapping[str, str]) -> None:
        """Refuse a table without its columns, or with values of other types: SQLite itself takes any."""
        present = {row["name"] for row in self._execute(f"PRAGMA table_info({table})")}
        for column, kind in columns.items():
            if column not in present:
                raise CampaignError(
                    f"{self.path} holds no results of a campaign: table {table} lacks {column}"
                )
            wrong = self._execute(
                f"SELECT rowid AS number, typeof({column}) AS found FROM {table} "
                f"WHERE typeof({column}) NOT IN ({STORED_AS[kind]}, 'null') LIMIT 1"
            )
            if wrong:
                raise CampaignError(
                    f"{self.path} holds damaged results: {column} of row {wrong[0]['number']} of table {table} is of "
                    f"type {wrong[0]['found']}, not {kind}; restore an earlier copy, or run the suite into another file"
                )

    def _execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[sqlite3.Row]:
        """Execute a statement and give its rows; what SQLite refuses becomes an error with a next step."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged file's messages are no text either
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> CampaignError:
        return CampaignError(
            f"{self.path} cannot be used as a results file: {error}; check its folder, permissions and free "
            "space, or give another file"
        )

    def _tables(self) -> int:
        return int(self._execute("SELECT count(*) FROM sqlite_master")[0][0])

    def _pragma(self, name: str) -> int:
        return int(self._execute(f"PRAGMA {name}")[0][0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Make all of the block's writes, or none."""
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._execute("ROLLBACK")
            raise

    # ------------------------------------------------------------------ the campaign

    def register(self, suite: Suite, planned: Sequence[PlannedExperiment]) -> None:
        """Note a suite and its experiments; experiments known already keep their results.

        Experiments of earlier versions of the suite that it has no more stay in the file, without a position.

        Raises
        ------
        CampaignError
            If the file holds results of a suite of another name.
        """
        with self._transaction():
            names = [row[0] for row in self._execute("SELECT DISTINCT name FROM suites")]
            if names and suite.name not in names:
                raise CampaignError(
                    f"{self.path} holds results of the suite {names[0]!r}, not of {suite.name!r}; "
                    "give another --results"
                )
            self._execute(
                "INSERT OR IGNORE INTO suites (sha256, name, text, latest) VALUES (?, ?, ?, 0)",
                (suite.sha256, suite.name, suite.text),
            )
            self._execute(ATTEMPTS_TABLE)
            self._execute("UPDATE suites SET latest = (sha256 = ?)", (suite.sha256,))
            self._execute("UPDATE cells SET position = NULL")
            for entry in planned:
                self._register_experiment(entry)

    def _register_experiment(self, entry: PlannedExperiment) -> None:
        experiment = entry.experiment
        self._execute(
            "INSERT INTO cells (key, position, setting, model, data, seed, solver, depth, time_limit, definition) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET position = excluded.position, setting = excluded.setting",
            (
                experiment.key,
                entry.position,
                entry.setting,
                experiment.model_label,
                experiment.data_label,
                experiment.settings.seed,
                experiment.solver,
                experiment.depth,
                experiment.settings.time_limit,
                experiment.definition(),
            ),
        )

    def suite_text(self) -> str:
        """Return the text of the latest suite.

        Raises
        ------
        CampaignError
            If none was registered.
        """
        texts = self._execute("SELECT text FROM suites WHERE latest")
        if not texts:
            raise CampaignError(f"{self.path} holds no campaign yet; run 'mipforest campaign run' first")
        return str(texts[0][0])

    # ------------------------------------------------------------------ experiments

    def numbers(self, keys: Collection[str]) -> dict[str, int]:
        """Return the numbers of experiments by key."""
        rows = self._execute("SELECT key, number FROM cells")
        return {row["key"]: row["number"] for row in rows if row["key"] in keys}

    def is_finished(self, number: int) -> bool:
        """Return whether an experiment has a result, or has failed."""
        return bool(self._execute("SELECT 1 FROM results WHERE cell = ?", (number,)))

    def begin(self, number: int) -> None:
        """Note that an experiment begins: where its process ends before it says how, the attempt stays."""
        self._execute(
            "INSERT INTO attempts (cell, begun) VALUES (?, 1) ON CONFLICT (cell) DO UPDATE SET begun = begun + 1",
            (number,),
        )

    def leave(self, number: int) -> None:
        """Forget the attempts at an experiment: it was given up in order, or has a result."""
        self._execute("DELETE FROM attempts WHERE cell = ?", (number,))

    def attempts(self, number: int) -> int:
        """Return how many processes began an experiment and ended without a word."""
        return sum(
            row["begun"] for row in self._execute("SELECT begun FROM attempts WHERE cell = ?", (number,))
        )

    def all_attempts(self) -> int:
        """Return how many attempts there are at experiments without a result."""
        return int(self._execute("SELECT coalesce(sum(begun), 0) FROM attempts")[0][0])

    def finished(self) -> int:
        """Return how many experiments have a result, or have failed."""
        return int(self._execute("SELECT count(*) FROM results")[0][0])

    def counts(self, numbers: Collection[int]) -> Counts:
        """Count the experiments of these numbers by how far they are."""
        rows = self._execute("SELECT cell, state FROM results")
        states = [row["state"] for row in rows if row["cell"] in numbers]
        done = states.count("done")
        return Counts(done, len(states) - done, len(numbers) - len(states))

    def forget_failures(self, numbers: Collection[int]) -> None:
        """Forget which of these experiments failed, so that they are run again."""
        with self._transaction():
            for number in numbers:
                self._execute("DELETE FROM results WHERE cell = ? AND state = 'failed'", (number,))

    def check_data(self, label: str, seed: int, sha256: str) -> None:
        """Refuse data that differ from those of earlier results.

        Raises
        ------
        CampaignError
            If they do.
        """
        others = self._execute(
            "SELECT count(*) FROM results JOIN cells ON cells.number = results.cell "
            "WHERE data = ? AND seed = ? AND position IS NOT NULL AND data_sha256 <> ?",
            (label, seed, sha256),
        )[0][0]
        if others:
            raise CampaignError(
                f"the data {label!r} have changed since {others} of the cells in {self.path} were run; "
                "restore them, or give another --results"
            )

    def record(
        self, number: int, suite_sha256: str, machine: Mapping[str, Any], result: ExperimentResult
    ) -> None:
        """Write the result of an experiment.

        Raises
        ------
        CampaignError
            If the experiment has a result already.
        """
        suite, environment = (
            "(SELECT number FROM suites WHERE sha256 = :suite)",
            f"(SELECT number FROM environments WHERE {' AND '.join(f'{name} = :{name}' for name in machine)})",
        )
        with self._transaction():
            if self.is_finished(number):
                raise CampaignError(f"cell {number} of {self.path} has a result already")
            names = ", ".join(machine)
            places = ", ".join(f":{name}" for name in machine)
            self._execute(f"INSERT OR IGNORE INTO environments ({names}) VALUES ({places})", dict(machine))
            found = self._execute(f"SELECT {suite}, {environment}", {"suite": suite_sha256, **machine})[0]
            values = {"cell": number, "suite": found[0], "environment": found[1], **result.values}
            self._insert("results", values)
            self.leave(number)
            for name, value in result.measures.items():
                self._insert("measures", {"cell": number, "name": name, "value": value})
            for k, event in enumerate(result.events):
                moment = dict(zip(("seconds", "objective", "bound", "nodes"), event, strict=True))
                self._insert("events", {"cell": number, "number": k, **moment})

    def _insert(self, table: str, values: Mapping[str, Any]) -> None:
        places = ", ".join("?" * len(values))
        self._execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", tuple(values.values()))

    # ------------------------------------------------------------------ reading

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Read the rows of a query, each by its columns' names."""
        return [dict(row) for row in self._execute(query, parameters)]
