"""SQL is in storage alone; what one database says differently is in its own files, and nowhere asked for by name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import segue

ROOT = Path(segue.__file__).parent
STATEMENT = re.compile(
    r"\b(?:SELECT\b.+\bFROM|INSERT (?:OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|PRAGMA \w+|CREATE (?:TABLE|INDEX))\b",
    re.DOTALL,
)
DIALECT = re.compile(
    r"\bPRAGMA\b|\bINSERT OR\b|\bMATCH\b|\browid\b|\bjson_each\b|\bstrftime\b"
    r"|\w::\w|\btsvector\b|to_tsquery|\bILIKE\b|\bpg_\w+"
)
OF_SQLITE = {
    *("connection", "examining", "faults", "guards", "ownership", "repairing", "resting", "salvaging"),
    *("search_blocks", "search_index", "sqlite", "sqlite_search"),
}
OF_POSTGRES = {
    "postgres",
    "postgres_connection",
    "postgres_locks",
    "postgres_schema",
    "postgres_search",
    "postgres_sequences",
}
FILES = sorted(ROOT.rglob("*.py"))


def texts(source: str) -> Iterator[str]:
    """Every text of a program that is not there to be read by people."""
    tree = ast.parse(source)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)  # type: ignore[misc]


def statements(source: str) -> list[str]:
    return [text for text in texts(source) if STATEMENT.search(text)]


@pytest.mark.parametrize("file", [file for file in FILES if "storage" not in file.parts], ids=str)
def test_no_sql_outside_of_storage(file: Path) -> None:
    assert statements(file.read_text("utf-8")) == []


@pytest.mark.parametrize("file", sorted((ROOT / "storage").glob("*.py")), ids=lambda file: file.stem)
def test_what_both_share_is_said_so_that_both_understand(file: Path) -> None:
    if file.stem in OF_SQLITE | OF_POSTGRES:
        return
    assert [text for text in texts(file.read_text("utf-8")) if DIALECT.search(text)] == []


def test_nobody_asks_which_database_it_is() -> None:
    """A branch by dialect would be one of these words in a condition of a file that both share."""
    asked = re.compile(r"isinstance\([^)]*(?:Sqlite|Postgres)|\b(?:is_sqlite|is_postgres|dialect)\b", re.IGNORECASE)
    shared = [file for file in FILES if file.stem not in OF_SQLITE | OF_POSTGRES]
    assert [str(file) for file in shared if asked.search(file.read_text("utf-8"))] == []


def test_sql_would_be_seen() -> None:
    for sql in ('db.run(f"DELETE FROM {table}")', '"SELECT a FROM b"', '"""UPDATE x SET y = 1"""\nz = "INSERT INTO a"'):
        assert statements(f"z = 1\n{sql}"), sql
    assert any(statements(file.read_text("utf-8")) for file in (ROOT / "storage").glob("*.py"))
    assert {file.stem for file in (ROOT / "storage").glob("*.py")} >= OF_SQLITE | OF_POSTGRES
