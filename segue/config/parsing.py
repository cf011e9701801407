"""A YAML file as plain mappings, lists and scalars. Reading YAML is slow to import: only who has a file comes here."""

from collections.abc import Iterator

import yaml

from segue.config.masking import quoted
from segue.core.errors import InvalidSettings

_DEEPEST = 20
_MOST = 100_000  # values, each counted again where an alias repeats it
_TAG = "tag:yaml.org,2002:"
_SCALARS = {_TAG + name for name in ("null", "bool", "int", "float", "str")}
_TEXTS = {_TAG + name for name in ("timestamp", "value", "merge")}  # YAML knows more types than we do


def parse(text: str, file: str) -> dict[str, object]:
    """The mapping that a YAML text is; InvalidSettings with file and line when it is none."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidSettings(f"{file}, line {line}: a character there is not allowed in YAML.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InvalidSettings(f"{file}, line {line}: this is not YAML: {error.problem or error.context}.") from error
    except RecursionError as error:
        raise InvalidSettings(f"{file} is nested too deeply.") from error
    if node is None:
        return {}
    return _Reading(file).document(node)


class _Reading:
    """One pass over the nodes of a file, with a limit on how much they may come to."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._left = _MOST
        self._scalars = yaml.constructor.SafeConstructor()

    def document(self, node: yaml.Node) -> dict[str, object]:
        value = self._value(node, 0)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._refusal(node, "the file must hold settings as `name: value`")
        return value

    def _value(self, node: yaml.Node, depth: int) -> object:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            raise self._refusal(node, "the file holds too much or is nested too deeply")
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self._value(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        raise self._refusal(node, f"the tag {quoted(node.tag)} is not allowed")

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, object]:
        merged: dict[str, object] = {}
        said: dict[str, object] = {}
        for key, item in node.value:
            if key.tag == _TAG + "merge":
                for part in self._parts(item, depth):
                    merged = part | merged
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise self._refusal(key, "a name must be plain text")
            if key.value in said:
                raise self._refusal(key, f"{key.value!r} stands there twice")
            said[key.value] = self._value(item, depth + 1)
        return merged | said

    def _parts(self, node: yaml.Node, depth: int) -> Iterator[dict[str, object]]:
        """The mappings that `<<` names: one, or a list of them."""
        for part in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            value = self._value(part, depth + 1)
            if not isinstance(value, dict):
                raise self._refusal(part, "<< takes a mapping or a list of mappings")
            yield value

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if node.tag in _TEXTS:
            return node.value
        if node.tag not in _SCALARS:
            raise self._refusal(node, f"the tag {quoted(node.tag)} is not allowed")
        try:
            return self._scalars.construct_object(node)
        except (ValueError, LookupError) as error:
            raise self._refusal(node, f"the value is no {node.tag.removeprefix(_TAG)}") from error

    def _refusal(self, node: yaml.Node, reason: str) -> InvalidSettings:
        return InvalidSettings(f"{self._file}, line {node.start_mark.line + 1}: {reason}.")
