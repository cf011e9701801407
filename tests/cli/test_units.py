"""What lets systemd, launchd and containers run a gateway: it can be read by them, and names what is there."""

import os
import plistlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import ROOT
from waiting import DEADLINE

from segue.cli.gateway import _STOPPING_SECONDS
from segue.cli.unit_files import LABEL, LEAVING_SECONDS, Place, launchd_unit, systemd_unit

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]

HAS_SYSTEMD = shutil.which("systemd-analyze") is not None
DEPLOY = ROOT / "deploy"
ODD = 'a "b" %h $HOME \\n'


def directives(text: str) -> dict[str, list[tuple[str, str]]]:
    """The lines of a unit by section."""
    found: dict[str, list[tuple[str, str]]] = {}
    section: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            section.append((name, value))
    return found


def verify(unit: Path) -> str:
    """What systemd has to say against a unit of a user."""
    if not HAS_SYSTEMD:
        return ""
    command = ["systemd-analyze", "--user", "--man=no", "--generators=no", "verify", str(unit)]
    environment = {"XDG_RUNTIME_DIR": str(unit.parent), "HOME": str(unit.parent), "PATH": os.defpath}
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=environment)
    return done.stdout + done.stderr


def test_the_unit_that_is_printed_has_the_paths_of_this_machine(home: Path, run: Run, tmp_path: Path) -> None:
    run("init")
    folder = tmp_path / "work"
    folder.mkdir()
    said = directives(run("gateway", "unit", "systemd", "--folder", str(folder)).stdout)
    service = dict(said["Service"])
    assert service["ExecStart"] == f"{sys.executable} -m segue gateway run"
    assert f"SEGUE_HOME={home}" in service["Environment"]
    assert service["WorkingDirectory"] == str(folder)
    assert service["ReadWritePaths"] == f"{home} {folder}"
    assert service["EnvironmentFile"] == f"-{home}/environment"
    assert int(service["TimeoutStopSec"]) == 30 + LEAVING_SECONDS


def test_hardening_is_there_and_a_gateway_has_time_to_end() -> None:
    for text in (systemd_unit(place()), (DEPLOY / "segue.service").read_text()):
        service = dict(directives(text)["Service"])
        assert service["NoNewPrivileges"] == service["PrivateTmp"] == "yes"
        assert (service["ProtectSystem"], service["UMask"], service["KillMode"]) == ("strict", "0077", "mixed")
        assert service["Restart"] == "on-failure"
        assert float(service["TimeoutStopSec"]) >= _STOPPING_SECONDS


def place(folder: Path = Path("/srv/work"), drain: float = 30) -> Place:
    return Place(("/usr/bin/python3", "-m", "segue"), Path("/srv/segue"), folder, "/usr/bin:/bin", drain)


def test_the_unit_of_this_folder_says_what_the_printed_one_does() -> None:
    printed, kept = directives(systemd_unit(place())), directives((DEPLOY / "segue.service").read_text())
    assert {name: [key for key, _ in said] for name, said in printed.items()} == {
        name: [key for key, _ in said] for name, said in kept.items()
    }
    with_paths = {"ExecStart", "WorkingDirectory", "Environment", "EnvironmentFile", "ReadWritePaths"}
    for section, said in printed.items():
        assert [one for one in said if one[0] not in with_paths] == [
            one for one in kept[section] if one[0] not in with_paths
        ]


def test_systemd_understands_both_units_whatever_the_paths_hold(tmp_path: Path) -> None:
    odd = tmp_path / ODD
    odd.mkdir()
    program = tmp_path / "a b%h$c"
    program.symlink_to(sys.executable)
    units = {
        "kept.service": (DEPLOY / "segue.service").read_text().replace("%h/.local/bin/segue", sys.executable),
        "printed.service": systemd_unit(place()._replace(program=(sys.executable, "-m", "segue"))),
        "odd.service": systemd_unit(Place((str(program), "-m", ODD), odd, odd, f"{odd}:/bin", 30)),
    }
    for name, text in units.items():
        (tmp_path / name).write_text(text)
        assert verify(tmp_path / name) == ""
    if not HAS_SYSTEMD:
        return  # the other tests have compared what can be compared without it
    (tmp_path / "broken.service").write_text(units["kept.service"].replace("=strict", "=rather"))
    assert "protect system" in verify(tmp_path / "broken.service").casefold(), "it does notice"


def test_launchd_is_told_the_same(home: Path, run: Run) -> None:
    run("init")
    said = plistlib.loads(run("gateway", "unit", "launchd").stdout.encode())
    assert said["Label"] == LABEL
    assert said["ProgramArguments"] == [sys.executable, "-m", "segue", "gateway", "run"]
    assert said["EnvironmentVariables"]["SEGUE_HOME"] == str(home)
    assert said["ExitTimeOut"] >= _STOPPING_SECONDS
    assert said["Umask"] == 0o077
    kept = plistlib.loads((DEPLOY / f"{LABEL}.plist").read_bytes())
    assert list(kept) == list(said)
    assert plistlib.loads(launchd_unit(place(Path("/srv") / ODD)).encode())["WorkingDirectory"] == f"/srv/{ODD}"


def test_a_path_that_no_unit_can_hold_is_refused(run: Run, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two\nlines"
    folder.mkdir()
    done = run("gateway", "unit", "systemd", "--folder", str(folder))
    assert done.returncode == 2
    assert "cannot stand in a unit" in done.stderr


def test_the_container_is_made_of_what_is_here() -> None:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    said: dict[str, list[str]] = {}
    for word, rest in lines:
        said.setdefault(word, []).append(rest)
    for copied in said["COPY"]:
        *sources, _target = copied.split()
        assert [source for source in sources if not (ROOT / source).exists()] == []
    assert said["USER"] == ["segue"]
    assert "/health" in said["HEALTHCHECK"][0]
    assert said["VOLUME"] == [re.search(r"SEGUE_HOME=(\S+)", said["ENV"][0])[1]]  # type: ignore[index]
    assert any("/src[all]" in line for line in said["RUN"])
    project = (ROOT / "pyproject.toml").read_text()
    assert re.search(r"^all = ", project, re.MULTILINE)
    assert 'segue = "segue.cli:main"' in project
    assert said["ENTRYPOINT"] == ['["segue"]']
