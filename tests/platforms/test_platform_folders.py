"""Every platform's folder is like the others, and the program that says so notices whatever is not."""

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT

from segue.core.errors import InvalidSettings
from segue.platforms.api_server.settings import read_settings as read_api_settings

SCRIPT = ROOT / "scripts" / "platforms.py"
OURS = "segue/platforms/demo"

TREE = {
    f"{OURS}/__init__.py": '"""A platform that shows how they are."""\n',
    f"{OURS}/platform.py": """
import asyncio

from segue.platforms.demo import inbound
from segue.ports.platform import Arriving, Traits

TRAITS = Traits(Arriving.CURSOR, longest=2000, can_edit=True)
""",
    f"{OURS}/inbound.py": """
import json
from segue.core.inbound import Inbound
from segue.listening.bodies import read_body
from segue.listening import bodies
from segue.ports.platform import Post
from segue.platforms.demo.wording import words
from . import settings
""",
    f"{OURS}/outbound.py": "from segue.platforms.demo import wording\n",
    f"{OURS}/settings.py": "def read_settings(own): ...\n",
    f"{OURS}/wording.py": "import re\n\nfrom markdown_it import MarkdownIt\n\nwords = re.findall\n",
    f"{OURS}/failing.py": "import time\n",
    f"{OURS}/manifest.toml": """
name = "demo"
title = "Demonstrations"
extra = "demo"
arriving = "cursor"
longest = 2000
units = "characters"
has_key = false
can_send = true
can_edit = true
can_attach = false
shows_typing = false
needs_raw_ids = false
is_listener = false
also = ["failing.py", "wording.py"]
page = "docs/platforms/demo.md"
you = "Your name there"

[[ask]]
key = "token"
question = "The token"
variable = "DEMO_TOKEN"
secret = true
""",
    "segue/app/connecting.py": "def _demo():\n    from segue.platforms.demo.platform import DemoPlatform\n",
    "docs/platforms/demo.md": "# Demonstrations\n",
    "README.md": "- [Demonstrations](docs/platforms/demo.md): on stage\n",
    "pyproject.toml": """
[project.optional-dependencies]
all = ["segue[demo]"]
demo = ["demonstrations"]
other = ["others"]

[[tool.importlinter.contracts]]
id = "pure-core"
forbidden_modules = ["asyncio", "logging", "os", "pathlib", "random", "socket", "subprocess", "threading", "time"]

[[tool.importlinter.contracts]]
id = "core-without-cycles"
ancestors = ["segue.platforms.demo"]
""",
}

Change = Callable[[Path], object]


def without(file: str) -> Change:
    return lambda root: (root / file).unlink()


def with_file(file: str, text: str) -> Change:
    return lambda root: (root / file).write_text(text)


def with_line(file: str, line: str) -> Change:
    return lambda root: (root / file).write_text((root / file).read_text() + line + "\n")


def replaced(file: str, old: str, new: str) -> Change:
    assert TREE[file].count(old) == 1, old
    return lambda root: (root / file).write_text(TREE[file].replace(old, new))


def in_manifest(old: str, new: str) -> Change:
    return replaced(f"{OURS}/manifest.toml", old, new)


MANIFEST = f"{OURS}/manifest.toml"
BROKEN: dict[str, tuple[Change, str]] = {
    "no inbound": (without(f"{OURS}/inbound.py"), f"{OURS}/inbound.py: is missing"),
    "no manifest": (without(MANIFEST), f"{MANIFEST}: is missing"),
    "a file too many": (with_file(f"{OURS}/notes.txt", ""), f"{OURS}/notes.txt: is a file that other platforms"),
    "a helper too few": (without(f"{OURS}/failing.py"), f"{OURS}/failing.py: is missing: write it, or take it out"),
    "helpers in no list": (in_manifest('["failing.py", "wording.py"]', '"failing.py"'), "says `also` otherwise"),
    "no words": (with_file(f"{OURS}/__init__.py", ""), f"{OURS}/__init__.py: must be a docstring of one line"),
    "many words": (with_file(f"{OURS}/__init__.py", '"""One.\n\nTwo."""\n'), "must be a docstring of one line"),
    "more than words": (with_line(f"{OURS}/__init__.py", "import json"), "must be a docstring of one line"),
    "no TOML": (with_line(MANIFEST, "name ="), f"{MANIFEST}: is no TOML"),
    "no Python": (with_line(f"{OURS}/settings.py", "def"), f"{OURS}/settings.py: is no Python"),
    "no title": (in_manifest('title = "Demonstrations"', ""), f"{MANIFEST}: has no title: add it."),
    "an empty title": (in_manifest("Demonstrations", ""), f"{MANIFEST}: says no title"),
    "no trait": (in_manifest("needs_raw_ids = false", ""), f"{MANIFEST}: has no needs_raw_ids: add it."),
    "an unknown key": (
        in_manifest("also =", "colour = 1\nalso ="),
        f"{MANIFEST}: has the unknown key colour: take it out.",
    ),
    "half a question": (in_manifest('key = "token"', ""), f"{MANIFEST}: asks otherwise than by key"),
    "another name": (in_manifest('"demo"\ntitle', '"dome"\ntitle'), f"{MANIFEST}: says the name 'dome'"),
    "another trait": (in_manifest("longest = 2000", "longest = 4000"), "says longest = 4000, and TRAITS say 2000"),
    "a number for a flag": (in_manifest("can_edit = true", "can_edit = 1"), "says can_edit = 1, and TRAITS say true"),
    "no TRAITS": (
        with_file(f"{OURS}/platform.py", ""),
        f"{OURS}/platform.py: gives no TRAITS (AttributeError: module 'segue.platforms.demo.platform' has no",
    ),
    "an adapter that cannot be imported": (
        with_line(f"{OURS}/platform.py", "import no_such_library"),
        f"{OURS}/platform.py: gives no TRAITS (ModuleNotFoundError: No module named 'no_such_library')",
    ),
    "no such extra": (
        in_manifest('extra = "demo"', 'extra = "dome"'),
        f"{MANIFEST}: names the extra 'dome': add it to",
    ),
    "an extra apart": (in_manifest('extra = "demo"', 'extra = "other"'), "'other': add it to `all` in pyproject.toml."),
    "no settings": (with_file(f"{OURS}/settings.py", ""), f"{OURS}/settings.py: defines no read_settings"),
    "another package": (
        replaced("pyproject.toml", '["segue.platforms.demo"]', "[]"),
        "pyproject.toml: does not look for cycles in segue.platforms.demo: add it to core-without-cycles.",
    ),
    "no page": (without("docs/platforms/demo.md"), "docs/platforms/demo.md: is missing"),
    "a page nobody finds": (with_file("README.md", ""), "docs/platforms/demo.md: is not linked from README.md"),
    "another page": (in_manifest("platforms/demo.md", "demo.md"), f"{MANIFEST}: names another page"),
    "an unnamed page": (in_manifest('page = "docs/platforms/demo.md"', ""), f"{MANIFEST}: does not name its page"),
    "nobody connects": (
        with_file("segue/app/connecting.py", "# segue.platforms.demo.platform\n"),
        "segue/app/connecting.py: does not import segue.platforms.demo.platform",
    ),
    "an impure helper": (with_line(f"{OURS}/wording.py", "import time"), f"{OURS}/wording.py: imports time:"),
}
IMPURE = [
    (line, module)
    for module in ("asyncio", "logging", "os", "pathlib", "random", "socket", "subprocess", "threading", "time")
    for line in (f"import {module}",)
] + [
    ("from os.path import join", "os.path.join"),
    ("def later():\n    import time", "time"),
    ("import httpx2", "httpx2"),
    ("from segue.gateway import desk", "segue.gateway.desk"),
    ("from segue.listening.server import serve", "segue.listening.server.serve"),
    ("from segue.platforms.webhook import inbound", "segue.platforms.webhook.inbound"),
    ("from segue.platforms.demo.platform import TRAITS", "segue.platforms.demo.platform.TRAITS"),
    ("from .. import webhook", "segue.platforms.webhook"),
]
program = runpy.run_path(str(SCRIPT))
faults, ask = program["faults"], program["traits_of"]
asked: dict[frozenset[tuple[str, str]], Any] = {}


def remembered(root: Path, names: list[str]) -> Any:
    """An adapter that was asked is not asked again while its folder says the same, which takes a process each time."""
    told = frozenset((path.name, path.read_text("utf-8")) for path in (root / OURS).glob("*.py"))
    if told not in asked:
        asked[told] = ask(root, names)
    return asked[told]


faults.__globals__["traits_of"] = remembered


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for file, text in TREE.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return tmp_path


def lines(root: Path) -> list[str]:
    return [f"{fault.file}: {fault.sentence}" for fault in faults(root)]


def test_our_platforms_are_alike() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_tree_in_which_all_is_well_has_no_faults(tree: Path) -> None:
    assert lines(tree) == []


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_told_in_one_line(tree: Path, name: str) -> None:
    change, said = BROKEN[name]
    change(tree)
    found = lines(tree)
    assert [line for line in found if said in line] == found[:1]


@pytest.mark.parametrize("file", ["inbound.py", "outbound.py", "settings.py"])
def test_what_judges_reaches_for_nothing_outside(tree: Path, file: str) -> None:
    for statement, _ in IMPURE:
        with_line(f"{OURS}/{file}", statement)(tree)
    told = {
        f"{OURS}/{file}: imports {module}: let platform.py do that, and pass on what comes of it."
        for _, module in IMPURE
    }
    assert {line for line in lines(tree) if "imports" in line} == told


def test_what_goes_on_at_the_door_may_reach_outside(tree: Path) -> None:
    with_line(f"{OURS}/platform.py", "import os, socket, time\nimport segue.listening.server")(tree)
    assert lines(tree) == []


def test_a_platform_may_need_no_extra_and_have_no_page(tree: Path) -> None:
    manifest = TREE[MANIFEST].replace('extra = "demo"', 'extra = ""').replace('page = "docs/platforms/demo.md"', "")
    (tree / MANIFEST).write_text(manifest)
    (tree / "docs/platforms/demo.md").unlink()
    assert lines(tree) == []


def test_the_program_ends_with_an_error_where_something_is_wrong(tree: Path) -> None:
    (tree / f"{OURS}/settings.py").unlink()
    done = subprocess.run([sys.executable, SCRIPT, "--check", tree], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{OURS}/settings.py: is missing: every platform has one, so write it." in done.stdout.splitlines()


def test_the_program_says_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ")


def test_the_check_of_everything_runs_it() -> None:
    assert 'step "platforms" python scripts/platforms.py --check' in (ROOT / "scripts" / "test").read_text()


def test_the_api_server_has_nothing_to_choose() -> None:
    read_api_settings({})
    with pytest.raises(InvalidSettings, match=r"platforms\.api_server has the unknown key 'port'"):
        read_api_settings({"port": 1})
