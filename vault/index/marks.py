"""Marks: keyed tokens of the values of sealed fields. Filters match them without decrypting a cube. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any

from governance.keys.services import TokenMaker
from vault.content.words import Words
from vault.index.value_order import LEVELS, STEP, cover_range, order_key
from vault.lexicon.entities import entities
from vault.lexicon.normal import normal_form, remove_accents

WORD = re.compile(r"\w+", re.UNICODE)
MOST_WORDS = 64  # of a value; a longer value is matched as a whole
# Ids of clients, which are opaque.
EXACT = frozenset({"session_id", "message_id", "task_id"})
EXACT |= {f"metadata.{name}" for name in ("agent_id", "app_id", "project_id", "manager_user_id")}
KEYED_FIELDS = ("speaker", "session_id", "message_id", "task_id")


def value_mark(maker: TokenMaker, field: str, value: Any) -> int:
    """Return the mark that every new cube with this value in the field has. Case is ignored, but for EXACT fields."""
    if field in EXACT and isinstance(value, str):
        return maker.token(f"id:{field}", normal_form("NFC", value))
    return _folded_mark(maker, field, value)


def value_marks(maker: TokenMaker, field: str, value: Any) -> list[int]:
    """Return the marks of which every cube with this value in the field has one: 0.1.0 ignored the case of ids, too."""
    return list(dict.fromkeys([value_mark(maker, field, value), _folded_mark(maker, field, value)]))


def presence_mark(maker: TokenMaker, field: str) -> int:
    """Return the mark that every new cube with any value in this EXACT field of the metadata has."""
    return maker.token("set", field)


def order_marks(maker: TokenMaker, field: str, value: Any) -> list[int]:
    """Return the marks of a number, or of a text that is a time, for comparisons: one for each of its prefixes."""
    found = order_key(value)
    if found is None:
        return []
    kind, key = found
    return [_prefix_mark(maker, field, kind, level, key >> STEP * level) for level in range(LEVELS)]


def range_marks(maker: TokenMaker, field: str, operator: str, value: Any) -> list[int]:
    """Return the marks of which a cube has one if its value in the field is on this side of `value`, at most 240.

    operator: gt, gte, lt or lte. Empty if nothing is. Raises ValueError for what is neither a number nor a time.
    """
    found = order_key(value)
    if found is None:
        raise ValueError(value)
    kind, key = found
    low = {"gt": key + 1, "gte": key}.get(operator, 0)
    high = {"lt": key - 1, "lte": key}.get(operator, 2 ** (STEP * LEVELS) - 1)
    return [_prefix_mark(maker, field, kind, level, prefix) for level, prefix in cover_range(low, high)]


def _prefix_mark(maker: TokenMaker, field: str, kind: str, level: int, prefix: int) -> int:
    return maker.token(f"order:{field}", f"{kind}{level}:{prefix}")


def _folded_mark(maker: TokenMaker, field: str, value: Any) -> int:
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
        if field.startswith("metadata."):
            marks.update(order_marks(maker, field, value))
            if field in EXACT and value is not None:
                marks.add(presence_mark(maker, field))
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
