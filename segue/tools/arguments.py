"""What a model says to a tool, held against what it was told about the tool.

Nothing here touches the world. Whatever is said, the answer is arguments of the right kinds or one clear sentence.
"""

from collections.abc import Mapping
from typing import Any

from segue.core.text import one_line, shorten, storable
from segue.ports.tool import ToolFailed, ToolSpec

_LONGEST_NAME = 40
_MOST_NAMES = 5


def checked(spec: ToolSpec, said: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument of a tool: as it was said, or its default. What is said to be null is not said."""
    properties: Mapping[str, Mapping[str, Any]] = spec.parameters["properties"]
    if unknown := [name for name in said if name not in properties]:
        raise ToolFailed(f"{spec.name} has no argument {_named(unknown)}; it takes {', '.join(properties)}.")
    given = {name: said[name] for name in properties if said.get(name) is not None}
    for name in spec.parameters.get("required", ()):
        if name not in given:
            raise ToolFailed(f"{spec.name} needs the argument {name}: {_allowed(properties[name])}.")
    return {
        name: _taken(f"The argument {name} of {spec.name}", schema, given[name])
        if name in given
        else schema.get("default")
        for name, schema in properties.items()
    }


def _taken(subject: str, schema: Mapping[str, Any], value: Any) -> Any:
    """The value, if it is of the kind that the schema allows."""
    if isinstance(value, str) and storable(value) != value:
        raise ToolFailed(f"{subject} has a NUL or half a character in it, which no text has.")
    if not _fits(schema, value):
        raise ToolFailed(f"{subject} is {_allowed(schema)}; call {subject.rpartition(' ')[2]} again with that.")
    return int(value) if schema["type"] == "integer" else value


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    match schema["type"]:
        case "string":
            is_text = isinstance(value, str) and schema.get("minLength", 0) <= len(value) <= schema["maxLength"]
            return is_text and value in schema.get("enum", (value,))
        case "integer":
            is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return is_whole and _is_within(schema, value)
        case "number":
            return isinstance(value, int | float) and _is_within(schema, value)
        case "boolean":
            return isinstance(value, bool)
    raise AssertionError(f"A schema says {schema['type']}.")


def _is_within(schema: Mapping[str, Any], value: float) -> bool:
    return not isinstance(value, bool) and bool(schema["minimum"] <= value <= schema["maximum"])


def _allowed(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if schema["type"] == "string":
        return f"text of {schema.get('minLength', 0)} to {schema['maxLength']:,} characters"
    if schema["type"] == "boolean":
        return "true or false"
    kind = "a whole number" if schema["type"] == "integer" else "a number"
    return f"{kind} from {schema['minimum']:,} to {schema['maximum']:,}"


def _named(names: list[str]) -> str:
    shown = ", ".join(repr(shorten(one_line(name), _LONGEST_NAME)) for name in names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else "")
