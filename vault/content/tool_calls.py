"""Tool calls as memories. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vault.vocabulary import ToolOutcome

TOOL, ARGUMENTS, OUTCOME, DURATION, ERROR = "tool", "arguments", "outcome", "duration_ms", "error"
LONGEST_VALUE = 200  # characters of one argument in the text of the memory


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool and its outcome, None if the outcome is not known. arguments: JSON. result, error: output of the
    tool; duration_ms >= 0."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    outcome: ToolOutcome | None = ToolOutcome.SUCCEEDED
    result: str = field(default="", repr=False)
    error: str = field(default="", repr=False)
    duration_ms: int | None = None


def call_text(call: ToolCall) -> str:
    """Return the searchable text of a call: the call in one line, then the output of the tool."""
    arguments = ", ".join(f"{name}={_shorten_value(value)}" for name, value in call.arguments.items())
    said = call.error or call.result
    outcome = f" {call.outcome}" if call.outcome else ""
    return f"{call.name}({arguments}){outcome}" + (f":\n{said}" if said else "")


def call_metadata(call: ToolCall) -> dict[str, Any]:
    """Return the metadata for filters and recall, without missing values."""
    given: dict[str, Any] = {TOOL: call.name, ARGUMENTS: dict(call.arguments)}
    if call.outcome is not None:
        given[OUTCOME] = str(call.outcome)
    if call.duration_ms is not None:
        given[DURATION] = call.duration_ms
    if call.error:
        given[ERROR] = call.error
    return given


def read_call(metadata: Mapping[str, Any]) -> ToolCall | None:
    """Return the tool call described by metadata, or None if the metadata is of another memory."""
    name, arguments, outcome = (metadata.get(key) for key in (TOOL, ARGUMENTS, OUTCOME))
    if not isinstance(name, str) or not isinstance(arguments, dict) or outcome not in [*ToolOutcome, None]:
        return None
    duration, error = metadata.get(DURATION), metadata.get(ERROR)
    return ToolCall(
        name=name,
        arguments=arguments,
        outcome=ToolOutcome(str(outcome)) if outcome else None,
        error=error if isinstance(error, str) else "",
        duration_ms=duration if isinstance(duration, int) else None,
    )


def _shorten_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
