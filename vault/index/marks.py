"""Marks: keyed tokens of the values of sealed fields. Filters match them without decrypting a cube. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any

from governance.keys.services import TokenMaker
from vault.content.words import Words
from vault.lexicon.entities import entities
from vault.lexicon.normal import normal_form, remove_accents

WORD = re.compile(r"\w+", re.UNICODE)
MOST_WORDS = 64  # of a value; a longer value is matched as a whole
KEYED_FIELDS = ("speaker", "session_id", "message_id", "task_id")


def value_mark(maker: TokenMaker, field: str, value: Any) -> int:
    """Return the mark that every cube with exactly this value in the field has. Case is ignored."""
    return maker.token(f"is:{field}", _canonical_text(value))


def part_mark(maker: TokenMaker, field: str, value: Any) -> int:
    """Return the mark that every cube with this word, or this list element, in the field has. Case is ignored.

    In the field `speaker`, accents are ignored too.
    """
    compared = remove_accents(value) if field == "speaker" and isinstance(value, str) else value
    return maker.token(f"has:{field}", _canonical_text(compared))


def message_mark(maker: TokenMaker, session_id: str, message_id: str) -> int:
    """Return the mark of a message of a session, which prevents storing the message twice."""
    return maker.token("message", f"{session_id}\x00{message_id}")


def speaker_marks(maker: TokenMaker, speaker: str) -> list[int]:
    """Return the marks of the parts of a speaker's name."""
    return [part_mark(maker, "speaker", part) for part in _split_value(speaker)]


def speaker_time_mark(maker: TokenMaker, name: str) -> int:
    """Return the mark that every memory by a speaker of this name with a temporal expression has."""
    return maker.token("speaker and time", _canonical_text(remove_accents(name)))


def speaker_time_marks(maker: TokenMaker, speaker: str) -> list[int]:
    """Return the speaker-and-time marks of a memory with a temporal expression, one for each part of the speaker's
    name."""
    return [speaker_time_mark(maker, part) for part in _split_value(speaker)]


def entity_mark(maker: TokenMaker, name: str) -> int:
    """Return the mark of an entity, ignoring accents. name: as vault.lexicon.entities returns it."""
    return maker.token("entity", remove_accents(name))


def entity_marks(maker: TokenMaker, title: str, content: str) -> set[int]:
    """Return the marks of the entities in title and content."""
    tokens = maker.tokens("entity")
    return {tokens[remove_accents(name)] for name in entities(f"{title}\n{content}" if title else content)}


def marks_of(maker: TokenMaker, words: Words) -> set[int]:
    """Return all marks of a cube for filters on its fields and metadata."""
    marks: set[int] = set()
    for field, value in _fields(words):
        marks.add(value_mark(maker, field, value))
        marks.update(part_mark(maker, field, part) for part in _split_value(value))
    if words.session_id and words.message_id:
        marks.add(message_mark(maker, words.session_id, words.message_id))
    return marks


def _fields(words: Words) -> Iterator[tuple[str, Any]]:
    for name in KEYED_FIELDS:
        value = getattr(words, name)
        if value:
            yield name, value
    for key, value in words.metadata.items():
        yield f"metadata.{key}", value


def _split_value(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return list(dict.fromkeys(WORD.findall(normal_form("NFC", value))))[:MOST_WORDS]
    return []


def _canonical_text(value: Any) -> str:
    if isinstance(value, str):
        return "text:" + (value.lower() if value.isascii() else normal_form("NFC", value).casefold())
    return "json:" + json.dumps(value, sort_keys=True, ensure_ascii=False)
