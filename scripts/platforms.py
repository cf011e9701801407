"""Says whether the folders of platforms are alike: the same files, and a manifest that says what the adapter is.

python scripts/platforms.py --check [ROOT]    a line for each fault, with what to do about it

A rule is a small function that yields the faults of one folder. Nothing is written.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import resolve_name
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from segue.ports.platform import Traits  # noqa: E402 - the line above lets it be found without an installation

FILES = frozenset({"__init__.py", "platform.py", "inbound.py", "outbound.py", "settings.py", "manifest.toml"})
PURE = ("inbound.py", "outbound.py", "settings.py")
NEEDED = ("name", "title", "extra", *Traits._fields)
OPTIONAL = ("also", "ask", "page", "you", "you_like")
ASKED, MORE_ASKED = {"key", "question", "variable"}, {"secret", "like"}
OPEN_TO_PURE = ("segue.core", "segue.ports", "segue.listening.bodies")
CONNECTING = "segue/app/connecting.py"
INDEXES = ("README.md", "docs/index.md")
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)")
TRAITS_OF = """
import importlib, json, sys
import segue.platforms

segue.platforms.__path__, told = [sys.argv[1]], {}
for name in sys.argv[2:]:
    try:
        told[name] = importlib.import_module(f"segue.platforms.{name}.platform").TRAITS._asdict()
    except Exception as error:
        told[name] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""
"""Run apart: what an adapter imports stays out of here."""


class Fault(NamedTuple):
    file: str
    """From the root."""
    sentence: str


class Folder(NamedTuple):
    """The folder of one platform, and what the rest of the tree says of it."""

    root: Path
    name: str
    manifest: Mapping[str, Any]
    project: Mapping[str, Any]
    """pyproject.toml."""
    traits: Mapping[str, Any] | str
    """What the adapter says, or why it says nothing."""

    @property
    def package(self) -> str:
        return f"segue.platforms.{self.name}"

    @property
    def also(self) -> set[str] | None:
        """The files beside those of all; None when nobody can tell."""
        said = self.manifest.get("also", [])
        return set(said) if isinstance(said, list) and all(isinstance(one, str) for one in said) else None

    def path(self, file: str) -> Path:
        return self.root / "segue" / "platforms" / self.name / file

    def fault(self, file: str, sentence: str) -> Fault:
        return Fault(f"segue/platforms/{self.name}/{file}", sentence)


Rule = Callable[[Folder], Iterator[Fault]]


def has_a_whole_manifest(folder: Folder) -> Iterator[Fault]:
    if not folder.path("manifest.toml").exists():
        return
    for key in NEEDED:
        if key not in folder.manifest:
            yield folder.fault("manifest.toml", f"has no {key}: add it.")
    for key in folder.manifest:
        if key not in NEEDED and key not in OPTIONAL:
            yield folder.fault("manifest.toml", f"has the unknown key {key}: take it out.")
    if not folder.manifest.get("title", "-"):
        yield folder.fault("manifest.toml", "says no title: write what people call the platform.")
    if any(not isinstance(one, dict) or set(one) - MORE_ASKED != ASKED for one in folder.manifest.get("ask", [])):
        yield folder.fault("manifest.toml", "asks otherwise than by key, question, variable, secret and like.")
    if folder.also is None:
        yield folder.fault("manifest.toml", "says `also` otherwise than as a list of files: write it as one.")


def has_the_files_of_all(folder: Folder) -> Iterator[Fault]:
    also = folder.also or set()
    there = {path.name for path in folder.path("").iterdir()} - {"__pycache__"}
    for file in sorted(FILES - there):
        yield folder.fault(file, "is missing: every platform has one, so write it.")
    for file in sorted(also - there):
        yield folder.fault(file, "is missing: write it, or take it out of `also` in manifest.toml.")
    for file in sorted(there - FILES - also):
        yield folder.fault(file, "is a file that other platforms have not: name it in `also` of manifest.toml.")


def is_said_in_a_line(folder: Folder) -> Iterator[Fault]:
    body = parsed(folder.path("__init__.py")).body
    match body:
        case [ast.Expr(ast.Constant(str() as said))] if said and "\n" not in said:
            return
    yield folder.fault("__init__.py", "must be a docstring of one line, and nothing else: say there what it is.")


def has_its_own_name(folder: Folder) -> Iterator[Fault]:
    name = folder.manifest.get("name", folder.name)
    if name != folder.name:
        yield folder.fault("manifest.toml", f"says the name {name!r}: write {folder.name!r}, as the folder is called.")


def is_what_it_says(folder: Folder) -> Iterator[Fault]:
    if isinstance(folder.traits, str):
        yield folder.fault("platform.py", f"gives no TRAITS ({folder.traits}): define them, where all can import them.")
        return
    for key in Traits._fields:
        said, found = (json.dumps(one.get(key)) for one in (folder.manifest, folder.traits))
        if key in folder.manifest and said != found:
            yield folder.fault("manifest.toml", f"says {key} = {said}, and TRAITS say {found}: make them equal.")


def can_be_installed(folder: Folder) -> Iterator[Fault]:
    """No extra is needed where the manifest says an empty one."""
    extra, extras = folder.manifest.get("extra", ""), folder.project["project"]["optional-dependencies"]
    if extra and extra not in extras:
        yield folder.fault("manifest.toml", f"names the extra {extra!r}: add it to pyproject.toml.")
    elif extra and extra not in re.findall(r"[\w-]+", " ".join(extras.get("all", []))):
        yield folder.fault("manifest.toml", f"names the extra {extra!r}: add it to `all` in pyproject.toml.")


def reads_its_settings(folder: Folder) -> Iterator[Fault]:
    body = parsed(folder.path("settings.py")).body
    if not any(isinstance(node, ast.FunctionDef) and node.name == "read_settings" for node in body):
        yield folder.fault("settings.py", "defines no read_settings: write it, also where there is nothing to choose.")


def is_pure_where_it_judges(folder: Folder) -> Iterator[Fault]:
    """So is what these files import from their own folder, though that may use a library which is pure as well."""
    waiting, seen = list(PURE), set(PURE)
    for file in waiting:
        for module in sorted(set(imports_of(folder, file))):
            helper = f"{module.removeprefix(f'{folder.package}.').partition('.')[0]}.py"
            if not may_be_imported(folder, module) and not (file not in PURE and is_of_others(module)):
                yield folder.fault(file, f"imports {module}: let platform.py do that, and pass on what comes of it.")
            elif is_within(module, folder.package) and helper not in seen:
                seen.add(helper)
                waiting.append(helper)


def has_no_cycles(folder: Folder) -> Iterator[Fault]:
    contract = contract_of(folder, "core-without-cycles")
    if folder.package not in contract.get("ancestors", []):
        yield Fault("pyproject.toml", f"does not look for cycles in {folder.package}: add it to core-without-cycles.")


def has_a_page(folder: Folder) -> Iterator[Fault]:
    page, said = f"docs/platforms/{folder.name}.md", folder.manifest.get("page")
    if said is None and (folder.root / page).exists():
        yield folder.fault("manifest.toml", f'does not name its page: add page = "{page}".')
    if said is None:
        return
    if said != page:
        yield folder.fault("manifest.toml", f'names another page than those of all: write page = "{page}".')
    if not (folder.root / page).exists():
        yield Fault(page, f"is missing: tell there how {folder.name} is connected.")
    elif page not in chain.from_iterable(links_of(folder.root, index) for index in INDEXES):
        yield Fault(page, "is not linked from README.md: add it to the list of pages.")


def is_connected(folder: Folder) -> Iterator[Fault]:
    wanted = f"{folder.package}.platform"
    if not any(is_within(module, wanted) for module in modules_in(folder.root / CONNECTING, "segue.app")):
        yield Fault(CONNECTING, f"does not import {wanted}: write a function that makes it, and name it in _OURS.")


RULES: tuple[Rule, ...] = (
    has_a_whole_manifest,
    has_the_files_of_all,
    is_said_in_a_line,
    has_its_own_name,
    is_what_it_says,
    can_be_installed,
    reads_its_settings,
    is_pure_where_it_judges,
    has_no_cycles,
    has_a_page,
    is_connected,
)


def faults(root: Path) -> list[Fault]:
    """Everything that is wrong with the platforms of a tree."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    names = sorted(path.name for path in (root / "segue" / "platforms").iterdir() if path.is_dir())
    names = [name for name in names if name != "__pycache__"]
    traits = traits_of(root, names)
    return [fault for name in names for fault in faults_of(Folder(root, name, {}, project, traits[name]))]


def faults_of(folder: Folder) -> list[Fault]:
    manifest = folder.path("manifest.toml")
    try:
        said = tomllib.loads(manifest.read_text("utf-8")) if manifest.exists() else {}
        return [fault for rule in RULES for fault in rule(folder._replace(manifest=said))]
    except tomllib.TOMLDecodeError as error:
        return [folder.fault("manifest.toml", f"is no TOML ({error}): mend it.")]
    except SyntaxError as error:
        file = Path(error.filename or "").relative_to(folder.root)
        return [Fault(str(file), f"is no Python ({error.msg} in line {error.lineno}): mend it.")]


def traits_of(root: Path, names: list[str]) -> Mapping[str, Mapping[str, Any] | str]:
    """What the adapters say of themselves; for each that cannot be asked, why."""
    command = [sys.executable, "-c", TRAITS_OF, str(root / "segue" / "platforms"), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if done.returncode:
        return dict.fromkeys(names, done.stderr.strip().rpartition("\n")[2])
    told: dict[str, Mapping[str, Any] | str] = json.loads(done.stdout.splitlines()[-1])
    return told


def contract_of(folder: Folder, name: str) -> Mapping[str, Any]:
    contracts = folder.project["tool"]["importlinter"]["contracts"]
    return next((one for one in contracts if one["id"] == name), {})


def may_be_imported(folder: Folder, module: str) -> bool:
    """By what is pure: what touches nothing outside its arguments, as in the core."""
    if is_within(module, folder.package):
        return not is_within(module, f"{folder.package}.platform")
    if any(is_within(module, one) for one in OPEN_TO_PURE):
        return True
    outside = contract_of(folder, "pure-core").get("forbidden_modules", [])
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names and top not in outside


def is_of_others(module: str) -> bool:
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top != "segue"


def imports_of(folder: Folder, file: str) -> Iterator[str]:
    return modules_in(folder.path(file), folder.package)


def modules_in(file: Path, package: str) -> Iterator[str]:
    """What a file imports, each name in full: `from a import b` is a.b."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{source}.{one.name}" for one in node.names)


def is_within(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def parsed(file: Path) -> ast.Module:
    """What a file says; nothing for one that is missing, which is told elsewhere."""
    return ast.parse(file.read_text("utf-8") if file.exists() else "", str(file))


def links_of(root: Path, index: str) -> Iterator[str]:
    """Where the links of a page lead, from the root."""
    page = root / index
    for link in LINK.finditer(page.read_text("utf-8") if page.exists() else ""):
        target = (page.parent / link["target"]).resolve()
        if target.is_relative_to(root.resolve()):
            yield str(target.relative_to(root.resolve()))


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--check"]:
            found = faults(ROOT)
        case ["--check", root]:
            found = faults(Path(root))
        case _:
            print("usage: scripts/platforms.py --check [ROOT]", file=sys.stderr)
            return 2
    for fault in found:
        print(f"{fault.file}: {fault.sentence}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
