"""What a homeserver for tests is told: it serves clients on this machine alone, quickly, and reaches nobody."""

import json
from pathlib import Path
from typing import Any

NAME = "matrix.test"
SECRET = "known to the tests alone"
_ALWAYS: dict[str, float] = {"per_second": 100_000, "burst_count": 100_000}
_HASTY: dict[str, Any] = {
    "rc_message": _ALWAYS,
    "rc_registration": _ALWAYS,
    "rc_login": {"address": _ALWAYS, "account": _ALWAYS, "failed_attempts": _ALWAYS},
    "rc_admin_redaction": _ALWAYS,
    "rc_joins": {"local": _ALWAYS, "remote": _ALWAYS},
    "rc_joins_per_room": _ALWAYS,
    "rc_key_requests": _ALWAYS,
    "rc_invites": {"per_room": _ALWAYS, "per_user": _ALWAYS, "per_issuer": _ALWAYS},
    "rc_media_create": _ALWAYS,
    "rc_presence": {"per_user": _ALWAYS},
    "rc_room_creation": _ALWAYS,
    "rc_profile": _ALWAYS,
    "bcrypt_rounds": 4,
    "background_updates": {"sleep_enabled": False},
}
_ALONE: dict[str, Any] = {
    "federation_domain_whitelist": [],
    "trusted_key_servers": [],
    "suppress_key_server_warning": True,
    "allow_public_rooms_over_federation": False,
    "report_stats": False,
    "enable_metrics": False,
    "url_preview_enabled": False,
    "user_directory": {"enabled": False},
    "presence": {"enabled": False},
    "push": {"enabled": False},
}
_LOG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"here": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"level": "WARNING", "handlers": ["here"]},
}


def settings(folder: Path, port: int) -> dict[str, Any]:
    """Everything that it keeps, it keeps in this folder."""
    client = {"names": ["client"], "compress": False}
    listener = {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": [client]}
    return {
        "server_name": NAME,
        "public_baseurl": f"http://127.0.0.1:{port}/",
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "log_config": str(folder / "log.yaml"),
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "pid_file": str(folder / "pid"),
        "registration_shared_secret": SECRET,
        "macaroon_secret_key": SECRET,
        "form_secret": SECRET,
        **_HASTY,
        **_ALONE,
    }


def write_settings(folder: Path, port: int) -> Path:
    """The file that it is started with."""
    (folder / "log.yaml").write_text(json.dumps(_LOG))
    written = folder / "homeserver.yaml"
    written.write_text(json.dumps(settings(folder, port)))
    return written
