import sqlite3
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from deployed_trees import KINDS, labelled_by_majority, random_card, random_tree, samples_for

from mipforest.data import Encoding
from mipforest.deployment import to_sql
from mipforest.deployment.sql import DIALECTS
from mipforest.trees import Tree, leaf_shares


def select(expression, rows, columns):
    """Return what sqlite gives for every row of a table."""
    with sqlite3.connect(":memory:") as database:
        if not has_exp(database):
            database.create_function("EXP", 1, np.exp, deterministic=True)
        pd.DataFrame(rows, columns=list(columns)).to_sql("t", database, index=False)
        return [
            value for (value,) in database.execute(f"SELECT {expression} AS prediction FROM t ORDER BY rowid")
        ]


def has_exp(database):
    try:
        database.execute("SELECT EXP(1.0)")
    except sqlite3.OperationalError:
        return False
    return True


def test_random_trees_predict_alike():
    """Names need quotes; of splits of one feature samples lie on and beside the thresholds."""
    rng = np.random.default_rng(0)
    kinds = [kind for kind in KINDS if not kind.startswith("random")]
    for number, kind in zip(range(150), cycle(kinds), strict=False):
        tree = random_tree(rng, oblique=number % 2 == 0, kind=kind)
        X = 2 * rng.normal(size=(40, tree.n_features)) if tree.is_oblique else samples_for(tree, rng)
        found = select(to_sql(tree), X, tree.features)
        if tree.is_classifier:
            assert found == tree.predict_labels(X).tolist()
        else:
            np.testing.assert_allclose(found, tree.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["targets", "labels of targets"])
def test_several_targets_are_a_column_each(kind):
    rng = np.random.default_rng(3)
    for _ in range(10):
        tree = random_tree(rng, oblique=False, kind=kind)
        X = samples_for(tree, rng)
        with sqlite3.connect(":memory:") as database:
            pd.DataFrame(X, columns=list(tree.features)).to_sql("t", database, index=False)
            found = pd.read_sql(f"SELECT {to_sql(tree)} FROM t ORDER BY rowid", database)
        predicted = tree.predict_labels(X) if tree.target_classes else tree.predict(X)
        assert found.columns.tolist() == [f"prediction_{name}" for name in tree.targets]
        assert found.to_numpy().tolist() == predicted.tolist()
    with pytest.raises(ValueError, match="without probabilities"):
        to_sql(tree, probability_of="no")


def test_probabilities_of_every_kind():
    rng = np.random.default_rng(1)
    shares, statistics = labelled_by_majority(random_tree(rng, oblique=False), rng)
    X = rng.normal(size=(40, shares.n_features))
    expected = leaf_shares(shares, statistics)[shares.apply(X) - shares.topology.n_branches]
    for k, name in enumerate(shares.classes):
        found = select(to_sql(shares, statistics, probability_of=name), X, shares.features)
        assert found == pytest.approx(expected[:, k].tolist())
    for fitted in (random_tree(rng, oblique=True, kind="logistic"), random_card(rng)):
        X = rng.normal(size=(40, fitted.n_features))
        for k, name in enumerate(fitted.classes):
            found = select(to_sql(fitted, probability_of=name), X, fitted.features)
            assert found == pytest.approx(fitted.predict_proba(X)[:, k].tolist(), rel=1e-9)


def test_random_cards_predict_alike():
    rng = np.random.default_rng(2)
    for _ in range(30):
        card = random_card(rng)
        X = samples_for(card, rng)
        assert select(to_sql(card), X, card.features) == card.predict_labels(X).tolist()


FRAME = pd.DataFrame({'it\'s "age"': [1.0, 2.0, 3.0], "city": ["Roma", "Bari", "l'Aquila"]})


def with_levels(**options):
    """Return a tree that asks for the city, then for the age, and the encoding of its table."""
    encoding = Encoding.fit(FRAME, **options)
    city = encoding.features.index("city=l'Aquila")
    w = np.zeros((3, len(encoding.features)))
    w[0, city], w[1, 0] = 1.0, 1.0
    tree = Tree(2, w, [-0.5, -2.0, 1.0], [0, 1, 0, 1], ("a", "b"), encoding.features, levels=encoding.levels)
    return tree, encoding


def test_levels_are_compared_as_texts():
    tree, encoding = with_levels()
    for given in (None, encoding):
        expression = to_sql(tree, encoding=given)
        assert "\"city\" = 'l''Aquila'" in expression
        assert select(expression, FRAME.values, FRAME.columns) == ["a", "b", "b"]


def test_null_gives_null_unless_it_is_filled_in():
    rows = [[None, "Roma"], [1.0, None], [1.0, "Oslo"], [1.0, "l'Aquila"]]
    tree, encoding = with_levels()
    assert select(to_sql(tree), rows, FRAME.columns) == [None, None, "a", "b"]
    # With the encoding an unknown level is told.
    assert select(to_sql(tree, encoding=encoding), rows, FRAME.columns) == [None, None, None, "b"]
    tree, filling = with_levels(fill_from=np.ones(3, dtype=bool))
    assert select(to_sql(tree, encoding=filling), rows, FRAME.columns) == ["b", "a", None, "b"]


def test_a_column_that_is_not_read_may_be_null():
    tree = Tree(1, [[1.0, 0.0]], [-2.0], [0, 1], classes=("low", "high"), features=("a", "b"))
    assert select(to_sql(tree), [[3.0, None]], ["a", "b"]) == ["high"]


def test_names_are_quoted_as_the_database_wants():
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("low", "high"), features=("a`b]",))
    assert "`a``b]` >= 2.0" in to_sql(tree, dialect="mysql")
    assert "[a`b]]] >= 2.0" in to_sql(tree, dialect="sqlserver")
    with pytest.raises(ValueError, match=r"dialect is 'mysq'; choose standard, .* \(did you mean 'mysql'"):
        to_sql(tree, dialect="mysq")


#: What sqlglot calls the dialects.
PARSERS = {name: name for name in DIALECTS} | {"standard": None, "sqlserver": "tsql"}

#: Names and levels that end a text or a name, or begin a comment or a statement, where they are not escaped.
HOSTILE = (
    "it's", "'", "''", 'a"b', '"', '""', "a`b", "`", "``", "a]b", "]", "[x]", "\\", "\\\\", "a\\", "\\'",
    "\\\\'", "'\\", "\\`", "`\\", '\\"', "\\]", "a\nb", "\r\n", "\\n", "\\u0027", "\\x27", "a\tb",
    "; DROP TABLE t", "'; DROP TABLE t; --", "\\'; DROP TABLE t; --", "' UNION SELECT 1 FROM secrets --",
    "\\' UNION SELECT 1 FROM secrets #", "--", "/*", "*/", "#", "'--", "$$", "$tag$", "%s", "{{x}}", "é",
    "'é\\", "日本", "\u2019", "\uff07", "\u202e", "\U0001f600", "\x1b[31m",
)  # fmt: skip


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_hostile_names_and_levels_are_parsed_back(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    for name in HOSTILE:
        levels = [*HOSTILE, name + "\\", "'" + name]
        frame = pd.DataFrame({name: levels})
        encoding = Encoding.fit(frame)
        first = next(i for i, meaning in enumerate(encoding.levels) if meaning is not None)
        w = np.zeros((1, len(encoding.features)))
        w[0, first] = 1.0
        tree = Tree(1, w, [-0.5], [0, 1], (name, "other"), encoding.features, levels=encoding.levels)
        expression = to_sql(tree, encoding=encoding, dialect=dialect)
        statements = sqlglot.parse(f"SELECT {expression} AS prediction FROM t", read=PARSERS[dialect])
        assert len(statements) == 1, name
        (statement,) = statements
        assert [table.name for table in statement.find_all(sqlglot.exp.Table)] == ["t"], name
        assert {unescaped(column.name, dialect) for column in statement.find_all(sqlglot.exp.Column)} == {
            name
        }
        texts = {
            found.name
            for found in statement.find_all(sqlglot.exp.Literal, sqlglot.exp.National)
            if isinstance(found, sqlglot.exp.National) or found.is_string
        }
        assert texts == {*levels, "other", name}, name
        assert not statement.find(sqlglot.exp.Union)


def unescaped(name, dialect):
    """Sqlglot leaves the doubled bracket of SQL Server in a name."""
    return name.replace("]]", "]") if dialect == "sqlserver" else name


@pytest.mark.parametrize("sign", ["\0", "\ud800"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_no_text_in_sql_can_hold_is_refused(dialect, sign):
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("low", f"hi{sign}gh"), features=("a",))
    with pytest.raises(ValueError, match="cannot have"):
        to_sql(tree, dialect=dialect)
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("low", "high"), features=(f"a{sign}",))
    with pytest.raises(ValueError, match="cannot have"):
        to_sql(tree, dialect=dialect)


def test_a_line_that_goes_on_in_sql_server_is_refused():
    tree = Tree(1, [[1.0]], [-2.0], [0, 1], classes=("low", "hi\\\ngh"), features=("a",))
    assert "hi\\\ngh" in to_sql(tree)
    with pytest.raises(ValueError, match="backslash before a line end"):
        to_sql(tree, dialect="sqlserver")


def test_what_has_no_expression_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="to_onnx"):
        to_sql(random_tree(rng, oblique=True, kind="randomized"))
    with pytest.raises(ValueError, match=r"the classes are no, yes \(did you mean"):
        to_sql(random_card(rng), probability_of="yess")
    with pytest.raises(ValueError, match="the classes are none"):
        to_sql(random_tree(rng, oblique=True, kind="values"), probability_of="yes")


@pytest.mark.parametrize("dialect", ["standard", "sqlite"])
def test_hostile_names_and_levels_predict_alike(dialect):
    for name in HOSTILE:
        frame = pd.DataFrame({name: HOSTILE})
        encoding = Encoding.fit(frame)
        j = len(encoding.features) // 2
        w = np.zeros((1, len(encoding.features)))
        w[0, j] = 1.0
        tree = Tree(1, w, [-0.5], [0, 1], (name, "other"), encoding.features, levels=encoding.levels)
        found = select(to_sql(tree, encoding=encoding, dialect=dialect), frame.values, frame.columns)
        assert found == tree.predict_labels(encoding.encode(frame)).tolist()
