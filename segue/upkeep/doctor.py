"""An examination of a home from the outside in: what cannot be trusted is mended, or named, before it is relied on."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from segue import config
from segue.config import Settings
from segue.core.errors import InvalidSettings, SegueError
from segue.upkeep import database_checks, home_checks, lane_checks, row_checks
from segue.upkeep.findings import Check, Finding, Patient, Severity


class Needs(StrEnum):
    """What there has to be for something to be looked at."""

    NOTHING = "nothing"
    DATABASE = "database"
    FILE = "file"
    SERVER = "server"

    def are_met(self, patient: Patient) -> bool:
        match self:
            case Needs.NOTHING:
                return True
            case Needs.SERVER:
                return patient.is_on_server
            case Needs.FILE:
                return not patient.is_on_server and patient.database.exists()
        return patient.is_on_server or patient.database.exists()


class Checkup(NamedTuple):
    """One thing that is looked at."""

    name: str
    check: Check
    is_vital: bool = False
    """Whether nothing after it can be looked at while it has a problem."""
    needs: Needs = Needs.DATABASE


class Result(NamedTuple):
    """What was found, and what was done about it: one answer per finding, None where nothing was."""

    name: str
    findings: list[Finding]
    mended: list[str | None]

    @property
    def is_well(self) -> bool:
        pairs = zip(self.findings, self.mended, strict=True)
        return all(done is not None or one.severity is not Severity.PROBLEM for one, done in pairs)


CHECKUPS = (
    Checkup("configuration", home_checks.check_configuration, needs=Needs.NOTHING),
    Checkup("time zone", home_checks.check_time_zone, needs=Needs.NOTHING),
    Checkup("home", home_checks.check_folder, is_vital=True, needs=Needs.NOTHING),
    Checkup("isolation", home_checks.check_isolation, needs=Needs.NOTHING),
    Checkup("permissions", home_checks.check_permissions, needs=Needs.NOTHING),
    Checkup("left-overs", home_checks.check_left_overs, needs=Needs.NOTHING),
    Checkup("other files", home_checks.check_strangers, needs=Needs.NOTHING),
    Checkup("disk", home_checks.check_disk, needs=Needs.NOTHING),
    Checkup("database", database_checks.check_ownership, is_vital=True, needs=Needs.FILE),
    Checkup("schema", database_checks.check_schema, is_vital=True, needs=Needs.FILE),
    Checkup("integrity", database_checks.check_integrity, is_vital=True, needs=Needs.FILE),
    Checkup("server", database_checks.check_server, is_vital=True, needs=Needs.SERVER),
    Checkup("sequences", database_checks.check_sequences, needs=Needs.SERVER),
    Checkup("search", database_checks.check_search),
    Checkup("log", database_checks.check_log, needs=Needs.FILE),
    Checkup("orphans", row_checks.check_orphans),
    Checkup("counters", row_checks.check_counters),
    Checkup("usage", row_checks.check_usage),
    Checkup("attachments", row_checks.check_attachments),
    Checkup("gateway", lane_checks.check_waiting),
    Checkup("platforms", lane_checks.check_platforms),
    Checkup("messages", lane_checks.check_messages),
    Checkup("deliveries", lane_checks.check_deliveries),
    Checkup("lanes", lane_checks.check_lanes),
    Checkup("backup", database_checks.check_backup),
)


def patient_here(now: float) -> Patient:
    """The home of whoever runs this process, even when its configuration is wrong."""
    try:
        return Patient(config.from_environment(), now)
    except InvalidSettings as error:
        return Patient(Settings(config.config_file().parent), now, str(error))


def examine(patient: Patient, *, fix: bool) -> Iterator[Result]:
    """Look at one thing after the other; with `fix`, mend each before the next is looked at."""
    for checkup in CHECKUPS:
        if not checkup.needs.are_met(patient):
            continue
        yield (result := _look(checkup, patient, fix=fix))
        if checkup.is_vital and not result.is_well:
            return


def _look(checkup: Checkup, patient: Patient, *, fix: bool) -> Result:
    try:
        findings = checkup.check(patient)
    except (SegueError, OSError) as error:
        findings = [Finding(f"This could not be looked at: {error}", "Put that right first.")]
    outcomes = [_mend(one) if fix else (one, None) for one in findings]
    return Result(checkup.name, [one for one, _ in outcomes], [done for _, done in outcomes])


def _mend(finding: Finding) -> tuple[Finding, str | None]:
    if finding.mend is None:
        return finding, None
    try:
        return finding, finding.mend()
    except (SegueError, OSError) as error:
        return finding._replace(remedy=f"It could not be mended: {error}"), None
