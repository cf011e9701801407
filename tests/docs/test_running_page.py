"""The page about running a gateway names every number that there is, and settings that are taken."""

import re
from pathlib import Path

import pytest
import yaml
from documents import ROOT, blocks
from prometheus_client.parser import text_string_to_metric_families

from segue.config import settings_from
from segue.core.events import ModelCalled, Reply
from segue.core.usage import Usage
from segue.gateway.at_work import Work
from segue.gateway.metrics import Counters, Link, exposition
from segue.hookspecs import MessageReceived, SendTried, StoreFailed, TurnEnded
from segue.sessions.figures import Figures

PAGE = ROOT / "docs" / "running.md"
ROW = re.compile(r"^\| `(?P<name>segue_\w+)` \|(?P<labels>[^|]*)\|", re.MULTILINE)
OURS = {"logging", "telemetry", "gateway"}


def shown() -> dict[str, set[str]]:
    """Every number that a gateway shows which has seen everything, with its labels."""
    counters = Counters(["scripted"])
    for fact in (
        MessageReceived("scripted", "accepted", 0.1),
        TurnEnded("lane", "session", "turn", "scripted", "done"),
        SendTried("scripted", "delivered"),
        StoreFailed("StoreFull"),
    ):
        counters.hear(fact)
    with counters.seen(Work("lane", "session", "turn", "scripted", "main")) as see:
        see(ModelCalled("model", "provider"))
        see(Reply("yes", usage=Usage(input_tokens=1)))
    figures = Figures({"waiting": 1}, 1, 1, {"pending": 1}, 1, 1, {"lane": 1}, 1, 1)
    page = exposition(counters, figures, [Link("scripted", True)])[0].decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(page):
        if family.name.endswith("_created"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = labels
    return found


def test_the_page_names_every_number_and_its_labels() -> None:
    rows = {row["name"]: set(re.findall(r"`(\w+)`", row["labels"])) for row in ROW.finditer(PAGE.read_text("utf-8"))}
    assert rows == shown()


def test_the_rules_that_wake_somebody_name_numbers_that_exist() -> None:
    named = {name for block in blocks(PAGE, "yaml") for name in re.findall(r"expr: (\w+)", block)}
    assert named
    assert named <= set(shown())


def test_the_settings_that_are_shown_are_taken(tmp_path: Path) -> None:
    taken = 0
    for block in blocks(PAGE, "yaml"):
        said = yaml.safe_load(block)
        if OURS & set(said):
            settings_from(said, tmp_path, {"OTLP_TOKEN": "x"})
            taken += 1
    assert taken == 2


@pytest.mark.parametrize("name", ["segue.service", "org.segue.gateway.plist", "Containerfile"])
def test_what_is_deployed_is_named(name: str) -> None:
    assert (ROOT / "deploy" / name).exists()
    assert name in PAGE.read_text("utf-8")
