"""The address of a server: read once, refused when it cannot be meant, and never shown with its password."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from segue.core.errors import Invalid

_ADVICE = "write : / @ # % and spaces of a password as %XX, or leave the password to ~/.pgpass or PGPASSWORD"


def parsed(url: str) -> dict[str, Any]:
    """What an address says, word by word."""
    try:
        said = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise Invalid(f"The address of the database cannot be read: {_ADVICE}.") from None
    host, port = str(said.get("host", "")), str(said.get("port", ""))
    if "@" in host or not all(one.isdigit() for one in port.split(",") if one) or "@" in str(said.get("dbname", "")):
        raise Invalid(f"The address of the database names no server: {_ADVICE}.")
    return said


def place_of(url: str) -> str:
    """Where a database is, without whatever is secret in its address."""
    said = parsed(url)
    name = said.get("dbname") or said.get("user") or "the database"
    return f"{name} on {said.get('host', 'this machine')}" + (f":{said['port']}" if "port" in said else "")
