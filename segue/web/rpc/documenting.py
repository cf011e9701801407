"""The reference of all methods in docs/rpc.md, made from the methods themselves."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from segue.web.rpc.catalogue import METHODS
from segue.web.rpc.method import Method

BEGIN, END = "<!-- made by scripts/rpc_docs.py: begin -->", "<!-- made by scripts/rpc_docs.py: end -->"
"""Between these the page is made; the rest of it is written."""
_TYPES = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false", "array": "list"}
_LIMITS = (("minimum", "at least {:,}"), ("maximum", "at most {:,}"), ("minLength", "at least {:,} characters"))
_LENGTHS = (("maxLength", "at most {:,} characters"),)

Schema = Mapping[str, Any]


def with_reference(page: str) -> str:
    """Return a page with the reference between its marks made anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"The page has no place for the reference: {BEGIN} and {END} are missing.")
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def reference() -> str:
    """Return every method with its scope and its parameters, as Markdown."""
    return "\n".join([*_overview(), *(line for method in METHODS.values() for line in _section(method))])


def _overview() -> Iterator[str]:
    yield "| method | scope | what |"
    yield "|---|---|---|"
    for name, method in METHODS.items():
        yield f"| [`{name}`](#{_anchor(name)}) | {method.level} | {_cell(_first_line(method.about))} |"
    yield ""


def _section(method: Method[Any]) -> Iterator[str]:
    yield f"### {method.name}"
    yield ""
    schema = method.params.model_json_schema()
    fields: Mapping[str, Schema] = schema.get("properties", {})
    if not fields:
        yield "It takes no parameters."
        yield ""
        return
    yield "| parameter | takes | without it | what |"
    yield "|---|---|---|---|"
    for name, field in fields.items():
        without = "required" if name in schema.get("required", ()) else _default(field)
        yield f"| `{name}` | {_takes(field, schema)} | {without} | {_cell(field.get('description', ''))} |"
    yield ""


def _takes(field: Schema, schema: Schema) -> str:
    """Return what may be given, as people say it."""
    field = _resolved(field, schema)
    if choices := field.get("enum"):
        return _cell(", ".join(map(str, choices)))
    noun = _TYPES[str(field["type"])]
    if field["type"] == "array":
        noun = f"list of at most {field['maxItems']}: {_takes(field['items'], schema)}"
    limits = [text.format(field[name]) for name, text in (*_LIMITS, *_LENGTHS) if name in field]
    limits = [limit for limit in limits if limit not in ("at least 0", "at least 1 characters")]
    return ", ".join([noun, *limits])


def _resolved(field: Schema, schema: Schema) -> Schema:
    """Return the schema behind a reference, or beside null: a parameter that may be left out may be null as well."""
    if "anyOf" in field:
        field = next(one for one in field["anyOf"] if one.get("type") != "null")
    if "$ref" in field:
        return dict(schema["$defs"][field["$ref"].rpartition("/")[2]])
    return field


def _default(field: Schema) -> str:
    default = field.get("default")
    return "" if default in (None, [], "") else f"`{json.dumps(default)}`"


def _anchor(name: str) -> str:
    return name.replace(".", "")


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
