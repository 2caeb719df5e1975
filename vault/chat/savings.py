"""The tokens and seconds that caches and adapters saved in a conversation, turn by turn."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from governance.actor import Actor
from governance.database import acting
from vault.chat.selectors import conversation_locate
from vault.forms.rules import Form
from vault.models import Turn
from vault.vocabulary import EXTRACTIVE


@dataclass(frozen=True)
class TurnSaving:
    """The tokens that a turn's answer rests on, and those among them that the model did not read: they came from a
    cache of its server, or from an adapter. seconds: to the first word, estimated from measures of the engine.
    """

    turn_id: UUID
    position: int
    saved_tokens: int
    whole_tokens: int
    seconds: float


def conversation_savings(*, actor: Actor, conversation_id: UUID, most: int) -> list[TurnSaving]:
    """Return what the last `most` turns of a conversation that a model answered saved, oldest first.

    Raises NotFound; Forbidden.
    """
    with acting(actor):
        conversation = conversation_locate(actor, conversation_id)
        rows = Turn.objects.filter(conversation=conversation).exclude(model=EXTRACTIVE).order_by("-position")
        return [_make_saving(row) for row in reversed(rows[:most])]


def _make_saving(row: Turn) -> TurnSaving:
    used: list[dict[str, Any]] = [item for item in row.retrieved if item.get("form_reason")]
    learned = sum(item["tokens"] for item in used if item["form"] == Form.ADAPTER)
    caches = {item.get("form_id", ""): item for item in used if item["form"] == Form.CACHE}  # of several memories each
    seconds = sum(max(item["text_seconds"] - item["cache_seconds"], 0.0) for item in caches.values())
    return TurnSaving(row.id, row.position, row.cached_tokens + learned, row.prompt_tokens + learned, seconds)
