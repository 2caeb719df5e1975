"""One structured call: the reply of a language model as JSON that its caller can read, or nothing."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from vault.providers.ports import ChatMessage, ChatRole, CompletingLlm, Completion, ProviderUnavailable

ATTEMPTS = 2
LONGEST_REPEATED = 2_000  # characters of an unreadable reply that the model is shown again
REPAIR = "Your reply could not be read. Answer again with nothing but one JSON object of the shape that was asked for."

Value = TypeVar("Value")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Structured(Generic[Value]):
    """value: None where no reply could be read. completions: all replies, whose tokens are used in any case."""

    value: Value | None = field(repr=False)
    completions: tuple[Completion, ...] = field(default=(), repr=False)


def structured_call(
    model: CompletingLlm, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], read: Callable[[Any], Value]
) -> Structured[Value]:
    """Ask for JSON of a schema, once more where the reply cannot be read. Never inside a database transaction.

    read: raises ValueError for what has another shape than the schema. The second attempt goes without the schema,
    which some servers refuse, and tells the model what was wrong.
    """
    asked, completions = list(messages), list[Completion]()
    for attempt in range(ATTEMPTS):
        try:
            completion = model.complete(asked, schema=schema if attempt == 0 else None)
        except ProviderUnavailable as failure:
            logger.warning("structured call %s of %s: %s", attempt + 1, ATTEMPTS, failure.detail)
            continue
        completions.append(completion)
        try:
            return Structured(read(find_json(completion.text)), tuple(completions))
        except (ValueError, RecursionError):
            logger.warning("structured call %s of %s: the reply has another shape", attempt + 1, ATTEMPTS)
            repeated = ChatMessage(ChatRole.ASSISTANT, completion.text[:LONGEST_REPEATED])
            asked = [*messages, repeated, ChatMessage(ChatRole.USER, REPAIR)]
    return Structured(None, tuple(completions))


def find_json(text: str) -> Any:
    """The JSON value in a reply, also between words or in a fence. Raises ValueError; RecursionError."""
    start = min((at for mark in "{[" if (at := text.find(mark)) >= 0), default=-1)
    end = max(text.rfind(mark) for mark in "}]")
    if start < 0 or end < start:
        raise ValueError("no JSON")
    return json.loads(text[start : end + 1])
