"""Tests that a page names as the proof of what it says."""

import ast
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TEST = r"`tests/(?:\w+/)*test_\w+\.py::(?:\w+::)?test_\w+`"


@cache
def _body_of(path: str) -> list[ast.stmt]:
    file = REPOSITORY / path
    return ast.parse(file.read_text(encoding="utf-8")).body if file.is_file() else []


def is_defined(test: str) -> bool:
    """Whether `path::test` or `path::Class::test` is a function of the repository."""
    path, *scopes, name = test.split("::")
    body = _body_of(path)
    for scope in scopes:
        body = [inner for node in body if isinstance(node, ast.ClassDef) and node.name == scope for inner in node.body]
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in body)
