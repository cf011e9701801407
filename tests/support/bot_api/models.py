"""The one file that knows aiogram: whose models say what a call may contain, and what an answer must."""

import json
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

_NAMES: dict[str, Any] = {}
"""What the annotations of the models speak of."""


class Reading(NamedTuple):
    method: str
    """As the Bot API spells it."""
    params: dict[str, Any]
    complaints: list[str]
    is_valid: bool


def load() -> None:
    """Import the models, each of which is made when it is first needed: to make them all takes seconds."""
    rebuild = BaseModel.__dict__["model_rebuild"]
    BaseModel.model_rebuild = classmethod(_not_yet)  # type: ignore[assignment, method-assign]
    try:
        import_module("aiogram.methods")
    finally:
        BaseModel.model_rebuild = rebuild  # type: ignore[method-assign]
    for common in ("sendmessage", "editmessagetext"):
        faults_of_answer(common, None)
    faults_of_update(None)


def read(method: str, given: dict[str, Any]) -> Reading | None:
    """What a call says; None when there is no such method."""
    if method.lower() not in _methods():
        return None
    model = _method(method.lower())
    name = str(model.__api_method__)
    values = {key: _decoded(model, key, value) for key, value in given.items()}
    try:
        said = model.model_validate(values)
    except ValidationError as error:
        return Reading(name, given, [f"{name}: {_short(error)}"], is_valid=False)
    unknown = [f"{name}: nobody knows {where}" for where in _unknown(said, "")]
    return Reading(name, _numbered(said.model_dump(mode="json", exclude_unset=True)), unknown, is_valid=True)


def faults_of_answer(method: str, result: Any) -> str | None:
    """Why an answer is not what this method returns."""
    return _faults(_method(method.lower()).__returning__, result)


def faults_of_update(update: Any) -> str | None:
    return _faults(_update(), update)


def _faults(kind: Any, value: Any) -> str | None:
    try:
        said = _adapter_of(kind).validate_python(value)
    except ValidationError as error:
        return _short(error)
    return ", ".join(f"nobody knows {where}" for where in _unknown(said, "")) or None


def _not_yet(_model: Any, /, *, _types_namespace: dict[str, Any] | None = None, **_: Any) -> None:
    _NAMES.update(_types_namespace or {})


def _made(model: Any) -> Any:
    model.model_rebuild(_types_namespace=_NAMES)
    return model


@cache
def _methods() -> dict[str, Any]:
    known = import_module("aiogram.methods")
    models = [getattr(known, name) for name in known.__all__ if name not in ("Request", "Response", "TelegramMethod")]
    return {model.__api_method__.lower(): model for model in models}


@cache
def _method(name: str) -> Any:
    return _made(_methods()[name])


def _update() -> Any:
    return import_module("aiogram.types").Update


@cache
def _adapter_of(kind: Any) -> TypeAdapter[Any]:
    for one in _alternatives(kind):
        for model in get_args(one) or (one,):
            if isinstance(model, type) and issubclass(model, BaseModel):
                _made(model)
    return TypeAdapter(kind)


def _decoded(model: Any, name: str, value: Any) -> Any:
    """Everything may come as a text; where no text is meant, it is JSON."""
    known = model.model_fields.get(name)
    if not isinstance(value, str) or known is None or str in _alternatives(known.annotation):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _numbered(params: dict[str, Any]) -> dict[str, Any]:
    """A chat has a number or a name, and a form makes texts of both."""
    chat = params.get("chat_id")
    return params | {"chat_id": int(chat)} if isinstance(chat, str) and chat.lstrip("-").isdecimal() else params


def _alternatives(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, UnionType):
        for one in get_args(annotation):
            yield from _alternatives(one)
    elif get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    else:
        yield annotation


def _unknown(said: Any, where: str) -> Iterator[str]:
    """Models let through what they do not know, but keep it apart."""
    if isinstance(said, BaseModel):
        yield from (f"{where}{name}" for name in said.model_extra or {})
        for name in said.model_fields_set - set(said.model_extra or {}):
            yield from _unknown(getattr(said, name), f"{where}{name}.")
    elif isinstance(said, list | tuple):
        for one in said:
            yield from _unknown(one, where)


def _short(error: ValidationError) -> str:
    told = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in told[:5])
