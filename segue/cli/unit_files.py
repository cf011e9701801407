"""Units of systemd and launchd, as text made from where things are.

A gateway that systemd runs can write into its home and into the folder that the agent works in, and nowhere else. Both
give it more time to end than it gives its answers.
"""

import plistlib
from pathlib import Path
from typing import NamedTuple

from segue.config.settings import SERVICE_LOG

LABEL = "org.segue.gateway"
ENVIRONMENT_FILE = "environment"
"""In the home: keys of models and whatever else a gateway finds in its environment."""
LEAVING_SECONDS = 30
"""For what comes after the answers: what is left is sent, tools and connections are closed."""
_PRIVATE = 0o077


class Place(NamedTuple):
    """Where things are on a machine."""

    program: tuple[str, ...]
    """What is called `segue` there."""
    home: Path
    folder: Path
    """Where the agent works."""
    path: str
    """Where programs are found that the agent calls by name, as a shell knows it."""
    drain_seconds: float


def systemd_unit(place: Place) -> str:
    """A unit for `systemctl --user`."""
    home, folder = _plain(str(place.home)), _plain(str(place.folder))
    writable = " ".join(dict.fromkeys([_word(str(place.home)), _word(str(place.folder))]))
    return f"""\
[Unit]
Description=Segue gateway
Documentation=man:systemd.service(5)
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=exec
ExecStart={" ".join([_word(place.program[0]), *map(_argument, (*place.program[1:], "gateway", "run"))])}
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={folder}
Environment={_word(f"SEGUE_HOME={place.home}")} {_word(f"PATH={place.path}")}
EnvironmentFile=-{home}/{ENVIRONMENT_FILE}
Restart=on-failure
RestartSec=2
KillMode=mixed
TimeoutStopSec={_stopping(place)}
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ReadWritePaths={writable}
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=default.target
"""


def launchd_unit(place: Place) -> str:
    """A property list for `launchctl bootstrap gui/UID`."""
    said = {
        "Label": LABEL,
        "ProgramArguments": [*place.program, "gateway", "run"],
        "WorkingDirectory": str(place.folder),
        "EnvironmentVariables": {"SEGUE_HOME": str(place.home), "PATH": place.path},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 2,
        "ExitTimeOut": _stopping(place),
        "Umask": _PRIVATE,
        "ProcessType": "Background",
        "StandardErrorPath": str(place.home / SERVICE_LOG),
    }
    return plistlib.dumps(said, sort_keys=False).decode()


def _stopping(place: Place) -> int:
    return int(place.drain_seconds) + LEAVING_SECONDS


def _plain(text: str) -> str:
    """What takes the rest of its line as it is, but for specifiers."""
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """One word of a list."""
    quoted = _plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"' if quoted != text or " " in text or "'" in text else text


def _argument(text: str) -> str:
    """One word behind a program, in which variables would be filled in."""
    return _word(text).replace("$", "$$")
