"""Tests that a page names as the proof of what it says."""

import ast
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TEST = r"`tests/(?:\w+/)*test_\w+\.py::(?:\w+::)?test_\w+`"


def is_defined(test: str) -> bool:
    """Whether `path::test` or `path::Class::test` is a function of the repository."""
    path, *scopes, name = test.split("::")
    file = REPOSITORY / path
    if not file.is_file():
        return False
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for scope in scopes:
        body = [inner for node in body if isinstance(node, ast.ClassDef) and node.name == scope for inner in node.body]
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in body)
