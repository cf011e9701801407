"""Whatever the libraries raise, as one of our errors: one sentence that says what is the case and what to do.

A provider's own words are quoted as one printable line, cut, and never with the key in them.
"""

import math
import re
from collections.abc import Iterator

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from segue.agent.choosing import Endpoint
from segue.agent.providers.wires import NotAStream
from segue.core.errors import (
    BadKey,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    RateLimited,
    StreamBroken,
    UnknownModel,
    Unreachable,
)
from segue.core.text import one_line, shorten

LONGEST_QUOTE = 200
_OVERFLOW = re.compile(
    r"context.{0,12}(length|window|size)|prompt is too long|too many (input )?tokens|input token count"
    r"|maximum number of tokens",
    re.IGNORECASE,
)


def judge(response: ModelResponse, endpoint: Endpoint, name: str) -> None:
    """Refuse an answer that is none."""
    details = response.provider_details or {}
    if endpoint.kind == "anthropic" and not details.get("finish_reason"):
        raise StreamBroken(f"{endpoint.called} ended the answer before its end.")
    if any(isinstance(part, ToolCallPart) or _is_said(part) for part in response.parts) or details.get("refusal"):
        return
    if response.finish_reason == "content_filter":
        raise ModelError(
            f"{endpoint.called} withheld the answer of {name}: say it in other words, or ask another model."
        )
    if response.finish_reason == "length":
        raise StreamBroken(f"{name} came to the end of what it may write before it had said anything.")
    raise StreamBroken(f"{name} of {endpoint.called} answered nothing at all.")


def _is_said(part: object) -> bool:
    return isinstance(part, TextPart) and bool(part.content)


def failure(error: Exception, endpoint: Endpoint, name: str, silence: float) -> ModelError:
    """What went wrong, as one of ours."""
    if isinstance(error, ModelError):
        return error
    if ours := next((cause for cause in _causes(error) if isinstance(cause, ModelError)), None):
        return ours
    said = _Said(error, endpoint, name)
    if whole := next((cause for cause in _causes(error) if isinstance(cause, NotAStream)), None):
        return StreamBroken(f"{endpoint.called} answered with something that is no stream{said.quote(whole.body)}.")
    if isinstance(error, ModelConnectionError):
        return said.unconnected(error, silence)
    if isinstance(error, ModelAPIError):
        return said.refused(error)
    return StreamBroken(f"What {endpoint.called} answered makes no sense ({type(error).__name__}).")


class _Said:
    """An error, to whom it happened, and what was asked for."""

    def __init__(self, error: Exception, endpoint: Endpoint, name: str) -> None:
        self._error = error
        self._endpoint = endpoint
        self._name = name

    def unconnected(self, error: ModelConnectionError, silence: float) -> ModelError:
        called = self._endpoint.called
        if error.phase in ("connect", "pool"):
            start = "start it" if self._endpoint.is_local else "look at the network"
            return Unreachable(f"{called} cannot be reached: {start}, or choose another model.")
        if isinstance(error, ModelTimeoutError):
            return StreamBroken(f"{called} has said nothing for {silence:g} seconds.")
        return StreamBroken(f"The connection to {called} broke off.")

    def refused(self, error: ModelAPIError) -> ModelError:
        called, words = self._endpoint.called, self.quote(error.body)
        if self._overflows(error):
            return ContextOverflow(
                f"What was said last is more than {self._name} can read at once: "
                "say it in smaller pieces, or choose a model that reads more with /model."
            )
        match error:
            case ModelAuthenticationError():
                return BadKey(self._unwelcome(error))
            case ModelNotFoundError():
                return UnknownModel(self._unknown(error))
            case ModelQuotaExceededError():
                return RateLimited(
                    f"The account at {called} has nothing left: add to it, or choose another model{words}.", math.inf
                )
            case ModelRateLimitError():
                wait = "" if error.retry_after is None else f" for {error.retry_after:.0f} seconds"
                return RateLimited(f"{called} takes no more questions{wait or ' for now'}{words}.", error.retry_after)
            case ModelUnavailableError():
                return ModelUnavailable(f"{called} is too busy: try again in a moment{words}.")
            case ModelServerError():
                return ModelUnavailable(
                    f"{called} has a fault of its own{_status(error)}: try again in a moment{words}."
                )
            case ModelRequestRejectedError() | ModelHTTPError():
                return ModelError(f"{called} does not take this question{_status(error)}{words}.")
        return StreamBroken(f"{called} broke the answer off{words or self.quote(error.message)}.")

    def quote(self, body: object) -> str:
        """What the provider said about it, to be put behind a sentence."""
        words = one_line(_message(body))
        if self._endpoint.key:
            words = words.replace(self._endpoint.key, "[key]")
        return f" ({shorten(words, LONGEST_QUOTE).rstrip('.')})" if words else ""

    def _overflows(self, error: ModelAPIError) -> bool:
        if isinstance(error, ModelContextWindowExceededError):
            return True
        status = error.status_code if isinstance(error, ModelHTTPError) else None
        return status in (400, 413, 422, 500) and bool(_OVERFLOW.search(_message(error.body)[:10_000]))

    def _unwelcome(self, error: ModelAPIError) -> str:
        called, variable = self._endpoint.called, self._endpoint.key_name
        if not variable:
            return f"{called} wants a key, and none was given to it."
        if isinstance(error, ModelHTTPError) and error.status_code == 403:
            return f"{called} does not allow the key in {variable} to use {self._name}."
        return f"{called} does not accept the key in {variable}: set {variable} to a valid one."

    def _unknown(self, error: ModelAPIError) -> str:
        meant = error.suggested_model_id if isinstance(error, ModelHTTPError) else None
        hint = f" (perhaps {meant.partition(':')[2] or meant})" if meant else ""
        return (
            f"{self._endpoint.called} has no model {self._name!r}: choose another{hint} with `-m NAME`, `/model NAME`"
            " or `model:` in config.yaml."
        )


def _status(error: ModelAPIError) -> str:
    return f" (error {error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _message(body: object) -> str:
    """The words in an error's body, wherever they are."""
    if isinstance(body, str):
        return body
    if isinstance(body, list) and body:
        return _message(body[0])
    if not isinstance(body, dict):
        return ""
    inner = body.get("error")
    message = body.get("message") or body.get("detail")
    return message if isinstance(message, str) else _message(inner)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
