"""`segue doctor`: what is wrong, how to mend it, and mending it."""

import sys
import time
from platform import python_version
from typing import Any

import click

from segue import __version__, app
from segue.cli.options import AS_JSON
from segue.cli.output import note, progress, say, show_json
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.storage.connection import sqlite_version
from segue.upkeep.doctor import Result, examine, patient_here
from segue.upkeep.findings import Finding, Severity

_INDENT = 16


@click.command()
@click.option("--fix", is_flag=True, help="Mend what can be mended; nothing that was said is lost by it.")
@click.option("--reindex", is_flag=True, help="Make the search index anew first; interrupted, it goes on.")
@AS_JSON
def doctor(fix: bool, reindex: bool, as_json: bool) -> None:
    """Examine the home: settings, permissions, disk, database, messages, attachments."""
    patient = patient_here(time.time())
    if reindex:
        _reindex()
    if not as_json:
        versions = f"Segue {__version__}, SQLite {sqlite_version()}, Python {python_version()}"
        say(f"Examining {patient.home} ({versions})", dim=True)
    results = []
    for result in examine(patient, fix=fix):
        results.append(result)
        if not as_json:
            _show(result)
    if as_json:
        show_json({"home": str(patient.home), "well": _are_well(results), "checks": [_as_json(one) for one in results]})
    else:
        _sum_up(results, fix)
    sys.exit(0 if _are_well(results) else 1)


def _reindex() -> None:
    with app.open_store() as store:
        state = store.read(OWNER_AT_CONSOLE, lambda tx: tx.search.state())
        with progress("Indexing", state.last_id) as advance:
            store.index_all(advance, anew=not (state.is_remaking and state.is_well))
    note("The search index was made anew.")


def _show(result: Result) -> None:
    if not result.findings:
        say(f"✓ {result.name}", fg="green")
    for hint, findings in _by_hint(result).items():
        for finding, done in findings:
            was = "Mended: " if done else ""
            say(f"{_sign(finding, done)} {result.name:<{_INDENT - 2}}{was}{finding.says}", fg=_colour(finding, done))
        say(" " * _INDENT + hint, dim=True)


def _by_hint(result: Result) -> dict[str, list[tuple[Finding, str | None]]]:
    """Group findings that have the same hint, which is said once below them."""
    grouped: dict[str, list[tuple[Finding, str | None]]] = {}
    for finding, done in zip(result.findings, result.mended, strict=True):
        grouped.setdefault(done or finding.remedy, []).append((finding, done))
    return grouped


def _sum_up(results: list[Result], fix: bool) -> None:
    left = [one for result in results for one, done in zip(result.findings, result.mended, strict=True) if not done]
    problems = [one for one in left if one.severity is Severity.PROBLEM]
    if not problems:
        well = "All is well now" if fix and any(any(result.mended) for result in results) else "All is well"
        say(f"{well}; {count(len(left), 'note')} above." if left else f"{well}.")
        return
    mendable = sum(one.mend is not None for one in problems)
    can = "which can be mended" if mendable == len(problems) else f"{mendable} of which can be mended"
    rest = f", {can} as it says above" if mendable and not fix else ""
    say(f"{count(len(problems), 'problem')}{rest}.", bold=True)


def _sign(finding: Finding, done: str | None) -> str:
    if done:
        return "✓"
    return "✗" if finding.severity is Severity.PROBLEM else "•"


def _colour(finding: Finding, done: str | None) -> str:
    if done:
        return "green"
    return "red" if finding.severity is Severity.PROBLEM else "yellow"


def _are_well(results: list[Result]) -> bool:
    return all(result.is_well for result in results)


def _as_json(result: Result) -> dict[str, Any]:
    findings = [
        {
            "severity": one.severity,
            "says": one.says,
            "remedy": one.remedy,
            "mendable": one.mend is not None,
            "mended": done,
        }
        for one, done in zip(result.findings, result.mended, strict=True)
    ]
    return {"check": result.name, "well": result.is_well, "findings": findings}
