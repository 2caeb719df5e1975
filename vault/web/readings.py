"""The decisions of the reader on a message, in words: which passages became memories, and why others did not."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from vault.reader.rules import Decision, Reading, explain_reading
from vault.vocabulary import SemanticType
from vault.web.labels import SEMANTIC_TYPES

REASONS: dict[Decision, Promise] = {
    Decision.STATEMENT: _("states something"),
    Decision.REQUESTED: _("you asked to remember it"),
    Decision.QUESTION: _("asks and states nothing"),
    Decision.COMMAND: _("is a command"),
    Decision.REMARK: _("is a remark on the moment or the conversation"),
    Decision.SMALL_TALK: _("is small talk"),
    Decision.FRAGMENT: _("cannot be understood without the sentence before it"),
}
# Taken back, said before, deleted, refused, or left out by a model: the message alone does not tell which.
NOT_THERE = _("states something, but no memory of it is there now")


@dataclass(frozen=True)
class ShownReading:
    """A passage. kind: of the memory made of it; reason: why it was or was not stored."""

    passage: str
    is_stored: bool
    kind: str | Promise
    reason: Promise


def explain_message(text: str, *, speaker: str, stored: Iterable[str]) -> list[ShownReading]:
    """Return the passages of a message. stored: the texts of the memories made of it, by patterns or by a model."""
    texts = [" ".join(statement.split()) for statement in stored]
    return [_show(reading, texts) for reading in explain_reading(text, speaker=speaker)]


def _show(reading: Reading, texts: list[str]) -> ShownReading:
    passage = " ".join(reading.passage.split())
    is_stored = any(text in passage or passage in text for text in texts)
    statement = reading.statement
    kind = SEMANTIC_TYPES[SemanticType(statement.semantic_type)] if statement and is_stored else ""
    left_out = statement is not None and not is_stored
    return ShownReading(reading.passage, is_stored, kind, NOT_THERE if left_out else REASONS[reading.decision])
