"""The template, the reference page and the listing say what the program does."""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

from segue.config import Settings, load, settings_from
from segue.config.aliases import ALIASES
from segue.config.documenting import page, shown, template

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = Path("/home/someone/.segue")


def keys_of(plain: dict[str, object], above: str = "") -> list[str]:
    keys = []
    for name, value in plain.items():
        keys += keys_of(value, f"{above}{name}.") if isinstance(value, dict) and value else [above + name]
    return keys


def test_the_template_gives_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(template())
    assert load(tmp_path, {}) == Settings(tmp_path)


def test_the_template_without_its_comment_signs_gives_the_defaults_too(tmp_path: Path) -> None:
    text = re.sub(r"^#(?= *[a-z_]+:| +#|$)", "", template(), flags=re.MULTILINE)
    (tmp_path / "config.yaml").write_text(text)
    assert keys_of(yaml.safe_load(text)) != []
    assert sorted(keys_of(yaml.safe_load(text))) == sorted(keys_of(shown(Settings(tmp_path))))
    settings = load(tmp_path, {})
    assert shown(settings) == shown(Settings(tmp_path))
    assert settings.reset_policies == Settings(tmp_path).reset_policies


def test_the_template_fits_an_editor() -> None:
    assert max(map(len, template().splitlines())) <= 100


def test_every_line_of_the_template_is_a_comment() -> None:
    assert all(line.startswith("#") or not line for line in template().splitlines())


def test_what_is_shown_is_json_in_the_order_of_the_settings() -> None:
    plain = shown(settings_from({"owners": ["telegram:1"], "session": {"reset": {"mode": "daily"}}}, HOME, {}))
    assert json.loads(json.dumps(plain)) == plain
    assert list(plain)[:2] == ["database", "model"]
    assert plain["session"]["reset"] == {
        "mode": "daily",
        "at_hour": 4,
        "idle_minutes": None,
        "notify": True,
        "timezone": "host",
    }


def test_rules_that_refine_others_are_shown_as_they_were_said() -> None:
    raw = {"session": {"reset_by_type": {"dm": {"mode": "idle"}}, "reset_by_platform": {"slack": {}}}}
    session = shown(settings_from(raw, HOME, {}))["session"]
    assert session["reset_by_type"] == {"dm": {"mode": "idle"}}
    assert session["reset_by_platform"] == {"slack": {}}


def test_the_page_has_every_key_with_its_default_and_every_alias() -> None:
    text = page()
    assert all(f"| `{key}` |" in text for key in keys_of(shown(Settings(HOME))))
    assert "| `session.reset.at_hour` | a whole number from 0 to 23 | `4` |" in text
    assert all(f"| `{alias}` | `{name}` |" in text for alias, name in ALIASES.items())


def test_the_example_on_the_page_is_valid() -> None:
    example = page().partition("```yaml\n")[2].partition("```")[0]
    assert settings_from(yaml.safe_load(example), HOME, {}).session.reset.at_hour == 4


def test_the_committed_page_is_up_to_date() -> None:
    script = ROOT / "scripts" / "config_docs.py"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0
