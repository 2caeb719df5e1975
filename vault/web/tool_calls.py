"""A tool call on the page of its memory."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from governance.actor import Actor
from governance.web.job_words import duration_words
from vault.content.tool_calls import read_call
from vault.cubes.selectors import CubeView
from vault.tools.selectors import RecalledCall, earlier_failures
from vault.vocabulary import Modality, ToolOutcome

OUTCOMES: dict[ToolOutcome | None, tuple[str, Promise]] = {
    None: ("generated", gettext_lazy("Outcome unknown")),
    ToolOutcome.SUCCEEDED: ("activated", gettext_lazy("Done")),
    ToolOutcome.FAILED: ("failed", gettext_lazy("Failed")),
}


@dataclass(frozen=True)
class ShownCall:
    """A tool call. arguments: (name, value as text). failures: earlier failures of equal or similar calls."""

    name: str
    mark: str
    outcome: Promise
    arguments: tuple[tuple[str, str], ...]
    duration: str
    error: str
    failures: tuple[RecalledCall, ...]


def tool_call_make(actor: Actor, view: CubeView) -> ShownCall | None:
    """Return the tool call of a memory; None for other memories. Writes: AuditEntry if earlier calls failed."""
    call = read_call(view.words.metadata) if view.cube.modality == Modality.TOOL_CALL else None
    if call is None:
        return None
    mark, outcome = OUTCOMES[call.outcome]
    return ShownCall(
        name=call.name,
        mark=mark,
        outcome=outcome,
        arguments=tuple((name, _format_value(value)) for name, value in call.arguments.items()),
        duration=duration_words(timedelta(milliseconds=call.duration_ms)) if call.duration_ms is not None else "",
        error=call.error,
        failures=tuple(earlier_failures(actor=actor, view=view)),
    )


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
