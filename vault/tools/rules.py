"""Tool calls as memories, and the similarity of two calls. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vault.vocabulary import ToolOutcome

TOOL, ARGUMENTS, OUTCOME, DURATION, ERROR = "tool", "arguments", "outcome", "duration_ms", "error"
LONGEST_VALUE = 200  # characters of one argument in the text of the memory
NEAR = 0.5  # similarity from which two calls of one tool are near


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool and its outcome. arguments: JSON. result, error: output of the tool; duration_ms >= 0."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    outcome: ToolOutcome = ToolOutcome.SUCCEEDED
    result: str = field(default="", repr=False)
    error: str = field(default="", repr=False)
    duration_ms: int | None = None


def call_text(call: ToolCall) -> str:
    """Return the searchable text of a call: the call in one line, then the output of the tool."""
    arguments = ", ".join(f"{name}={_shorten_value(value)}" for name, value in call.arguments.items())
    said = call.error or call.result
    return f"{call.name}({arguments}) {call.outcome}" + (f":\n{said}" if said else "")


def call_metadata(call: ToolCall) -> dict[str, Any]:
    """Return the metadata for filters and recall, without missing values."""
    given: dict[str, Any] = {TOOL: call.name, ARGUMENTS: dict(call.arguments), OUTCOME: str(call.outcome)}
    if call.duration_ms is not None:
        given[DURATION] = call.duration_ms
    if call.error:
        given[ERROR] = call.error
    return given


def read_call(metadata: Mapping[str, Any]) -> ToolCall | None:
    """Return the tool call described by metadata, or None if the metadata is of another memory."""
    name, arguments, outcome = (metadata.get(key) for key in (TOOL, ARGUMENTS, OUTCOME))
    if not isinstance(name, str) or not isinstance(arguments, dict) or outcome not in set(ToolOutcome):
        return None
    duration, error = metadata.get(DURATION), metadata.get(ERROR)
    return ToolCall(
        name=name,
        arguments=arguments,
        outcome=ToolOutcome(str(outcome)),
        error=error if isinstance(error, str) else "",
        duration_ms=duration if isinstance(duration, int) else None,
    )


def similarity(first: Any, other: Any) -> float:
    """Return the similarity of two JSON values, 0..1: 1 for equal ones.

    Objects are compared by names, lists by position, numbers by ratio, and texts by words, ignoring case.
    """
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        return _compare_objects(first, other)
    if isinstance(first, list) and isinstance(other, list):
        return _compare_lists(first, other)
    if isinstance(first, bool) or isinstance(other, bool):
        return float(first is other)
    if isinstance(first, int | float) and isinstance(other, int | float):
        return _compare_numbers(first, other)
    if isinstance(first, str) and isinstance(other, str):
        return _compare_texts(first.casefold(), other.casefold())
    return float(first == other)


def _compare_objects(first: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    names = first.keys() | other.keys()
    both = first.keys() & other.keys()
    return sum(similarity(first[name], other[name]) for name in both) / len(names) if names else 1.0


def _compare_lists(first: list[Any], other: list[Any]) -> float:
    longest = max(len(first), len(other))
    return sum(map(similarity, first, other)) / longest if longest else 1.0


def _compare_numbers(first: float, other: float) -> float:
    largest = max(abs(first), abs(other))
    return 1.0 if largest == 0 else max(0.0, 1.0 - abs(first - other) / largest)


def _compare_texts(first: str, other: str) -> float:
    if first == other:
        return 1.0
    words, others = set(first.split()), set(other.split())
    return len(words & others) / len(words | others) if words | others else 0.0


def _shorten_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
