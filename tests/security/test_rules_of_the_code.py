"""What no file of the product may do, read from the files themselves."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import segue

ROOT = Path(segue.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
SECRET = re.compile(
    r"(?:^|_)(?:secret|token|signature|mac|digest|hexdigest|password|api_key|csrf|code_hash|fingerprint)$"
)
BINDS = "listening/server.py"
DOORS = {
    "platforms/telegram/listening.py": "tests/platforms/test_telegram_webhook.py",
    "platforms/webhook/platform.py": "tests/gateway/test_webhook.py",
    "web/listening.py": "tests/web/test_guard.py",
}
"""Every file that listens by way of the one that binds, and the tests that nobody is heard there without a secret."""
LISTENING = {"bind", "create_server", "start_server", "start_unix_server", "serve_forever"}
OWNERS_FILE, OWNERS_FOLDER = str(0o600), str(0o700)
STARTS = {"Popen", "create_subprocess_exec", "create_subprocess_shell", "run", "call", "check_call", "check_output"}
WRITES_NOTHING_PRIVATE = {
    "upkeep/archive.py": "an entry of an archive, which is a private file",
    "cli/files.py": "a pipe or a device that somebody names; plain files are made private",
    "upkeep/backups.py": "into a folder that is its owner's alone, and gone with it",
}

POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,{}]*\})\+")

Functions = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(source: str) -> ast.Module:
    """Each file is read by several tests."""
    return ast.parse(source)


@cache
def calls_in(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    return (node for node in calls_in(tree) if called(node) in names)


def is_secret(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return SECRET.search(name) is not None
        case ast.Call():
            return SECRET.search(called(node)) is not None
    return False


def compared(source: str) -> list[str]:
    """Comparisons that take the longer the more of a secret is right. Comparing with nothing tells nothing."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            sides = [node.left, *node.comparators]
            if any(map(is_secret, sides)) and not any(isinstance(one, ast.Constant) for one in sides):
                found.append(ast.unparse(node))
    return found


def is_bytes(node: ast.expr, function: Functions) -> bool:
    """Whether an expression is bytes as far as can be seen: encoded, a digest, or a name or argument that is."""
    if isinstance(node, ast.Call):
        return called(node) in {"encode", "digest", "bytes"}
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bytes)
    if not isinstance(node, ast.Name):
        return False
    arguments = [*function.args.args, *function.args.kwonlyargs]
    if any(one.arg == node.id and one.annotation and ast.unparse(one.annotation) == "bytes" for one in arguments):
        return True
    given = [one for one in ast.walk(function) if isinstance(one, ast.Assign)]
    values = [one.value for one in given if any(isinstance(to, ast.Name) and to.id == node.id for to in one.targets)]
    return bool(values) and all(is_bytes(value, function) for value in values)


def digests_of_text(source: str) -> list[str]:
    """Uses of compare_digest on something else than bytes: other texts than ASCII would be an error there."""
    return [
        ast.unparse(call)
        for function in ast.walk(parsed(source))
        if isinstance(function, Functions)
        for call in calls(function, "compare_digest")
        if not all(is_bytes(argument, function) for argument in call.args)
    ]


def test_secrets_are_compared_in_the_same_time_whatever_is_right() -> None:
    assert {file: found for file in FILES if (found := compared(file.read_text("utf-8")))} == {}
    assert {file: found for file in FILES if (found := digests_of_text(file.read_text("utf-8")))} == {}


def test_a_hasty_comparison_would_be_seen() -> None:
    for hasty in ("given == self.secret", "token != wanted", "hmac.new(a).hexdigest() == b", "a == hook_signature"):
        assert compared(hasty), hasty
    assert not compared("secret == ''")
    assert not compared("token.type == kind")
    assert digests_of_text("def f(a: str, b: bytes): return hmac.compare_digest(a, b)")
    assert digests_of_text("def f(a): b = a.decode(); return compare_digest(b, a.encode())")
    assert not digests_of_text("def f(a: bytes, b): c = b.encode(); return compare_digest(a, c)")
    used = [file for file in FILES if list(calls(parsed(file.read_text("utf-8")), "compare_digest"))]
    assert len(used) >= 2


def test_only_known_doors_listen_and_each_has_its_tests() -> None:
    product = [file for file in FILES if "testing" not in file.parts]
    trees = {str(file.relative_to(ROOT)): parsed(file.read_text("utf-8")) for file in product}
    assert {name for name, tree in trees.items() if list(calls(tree, *LISTENING))} == {BINDS}
    assert {name for name, tree in trees.items() if list(calls(tree, "bound"))} == set(DOORS)
    assert all((ROOT.parent / tests).is_file() for tests in DOORS.values())


def test_every_program_that_is_started_is_told_its_whole_environment() -> None:
    started = 0
    for file in FILES:
        tree = parsed(file.read_text("utf-8"))
        for call in calls(tree, *STARTS):
            if not ast.unparse(call.func).startswith(("subprocess.", "asyncio.create_subprocess", "Popen")):
                continue
            started += 1
            assert "env" in {one.arg for one in call.keywords}, f"{file}: {ast.unparse(call.func)}"
            assert "shell" not in {one.arg for one in call.keywords}, f"{file}: {ast.unparse(call.func)}"
        assert not list(calls(tree, "system", "popen", "spawnl", "spawnv", "create_subprocess_shell")), file
    assert started >= 3


def open_to_others(source: str) -> tuple[int, list[str]]:
    """How many files and folders are made there, and those that somebody else could read or had put a link for."""
    tree = parsed(source)
    given = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    names = {to.id: node.value for node in given for to in node.targets if isinstance(to, ast.Name)}
    made, bad = 0, list(calls(tree, "write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile"))
    for call in calls(tree, "open"):
        second = call.args[1] if len(call.args) > 1 else None
        flags = ast.unparse(names.get(second.id, second) if isinstance(second, ast.Name) else second) if second else ""
        if "O_CREAT" in flags:
            made += 1
            is_private = len(call.args) > 2 and OWNERS_FILE in ast.unparse(call.args[2])
            bad += [] if is_private and ("O_NOFOLLOW" in flags or "O_EXCL" in flags) else [call]
        elif any(isinstance(one, ast.Constant) and str(one.value)[:1] in {"w", "a", "x"} for one in call.args[:2]):
            bad.append(call)
    for call in calls(tree, "mkdir", "makedirs"):
        made += 1
        bad += [] if OWNERS_FOLDER in ast.unparse(call) and "parents=" not in ast.unparse(call) else [call]
    return made, [ast.unparse(call) for call in bad]


def test_every_file_and_folder_is_made_private() -> None:
    """By name and mode in one call: what is closed to others a moment later was open for a moment."""
    found = {str(file.relative_to(ROOT)): open_to_others(file.read_text("utf-8")) for file in FILES}
    assert {name: bad for name, (_, bad) in found.items() if bad and name not in WRITES_NOTHING_PRIVATE} == {}
    assert sum(made for made, _ in found.values()) >= 20


@pytest.mark.parametrize(
    "careless",
    [
        "path.mkdir()",
        "path.mkdir(0o700, parents=True)",
        "path.write_text(words)",
        "open(path, 'w')",
        "path.open('ab')",
        "os.open(path, os.O_CREAT | os.O_EXCL, 0o644)",
        "os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)",
        "flags = os.O_CREAT | os.O_EXCL\nos.open(path, flags)",
    ],
)
def test_a_careless_file_would_be_seen(careless: str) -> None:
    assert open_to_others(careless)[1]


def possessive_groups(source: str) -> list[str]:
    """Patterns that repeat a group possessively, which Python before 3.11.5 matches wrongly."""
    texts = (node.value for node in ast.walk(parsed(source)) if isinstance(node, ast.Constant))
    return [text for text in texts if isinstance(text, str) and POSSESSIVE_GROUP.search(text)]


def test_no_pattern_repeats_a_group_possessively() -> None:
    assert [bad for file in FILES for bad in possessive_groups(file.read_text("utf-8"))] == []


@pytest.mark.parametrize("pattern", ["(?:a|bc)*+", "(a)++", "(?P<end>b)?+", "(?:ab){2,}+", r"\((?:ab){{1,20}}+"])
def test_a_possessive_group_would_be_seen(pattern: str) -> None:
    assert possessive_groups(repr(pattern))
