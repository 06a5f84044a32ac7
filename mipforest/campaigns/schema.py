"""Tables of a results file."""

from __future__ import annotations

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
