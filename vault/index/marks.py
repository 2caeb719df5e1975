"""Keyed tokens to filter by: what must be matched without opening a cube. Pure, given the tenant's token maker."""

import json
import re
from collections.abc import Iterator
from typing import Any

from governance.keys.services import TokenMaker
from vault.content.words import Words
from vault.lexicon.entities import entities
from vault.lexicon.normal import normal_form, remove_accents

WORD = re.compile(r"\w+", re.UNICODE)
MOST_WORDS = 64  # of one value; what is longer is matched whole
KEYED_FIELDS = ("speaker", "session_id", "message_id", "task_id")


def same(maker: TokenMaker, field: str, value: Any) -> int:
    """The mark of a field that has just this value (text without regard to case)."""
    return maker.token(f"is:{field}", _canonical(value))


def contains(maker: TokenMaker, field: str, value: Any) -> int:
    """The mark of a field that has this word, or of a list that has this element; of a speaker, accents apart."""
    compared = remove_accents(value) if field == "speaker" and isinstance(value, str) else value
    return maker.token(f"has:{field}", _canonical(compared))


def message(maker: TokenMaker, session_id: str, message_id: str) -> int:
    """The mark of one message of one session: it is stored once."""
    return maker.token("message", f"{session_id}\x00{message_id}")


def speaker_marks(maker: TokenMaker, speaker: str) -> list[int]:
    """The marks of a speaker's names, as a question may call them."""
    return [contains(maker, "speaker", part) for part in _parts(speaker)]


def speaker_time(maker: TokenMaker, name: str) -> int:
    """The mark of what somebody of this name said that tells a time."""
    return maker.token("speaker and time", _canonical(remove_accents(name)))


def speaker_time_marks(maker: TokenMaker, speaker: str) -> list[int]:
    """The marks of what `speaker` said, when it tells a time, by each of their names."""
    return [speaker_time(maker, part) for part in _parts(speaker)]


def entity(maker: TokenMaker, name: str) -> int:
    """The mark of something that a text names, accents apart; `name` as vault.lexicon.entities writes it."""
    return maker.token("entity", remove_accents(name))


def entity_marks(maker: TokenMaker, title: str, content: str) -> set[int]:
    """The marks of what title and content name."""
    tokens = maker.tokens("entity")
    return {tokens[remove_accents(name)] for name in entities(f"{title}\n{content}" if title else content)}


def marks_of(maker: TokenMaker, words: Words) -> set[int]:
    """The marks that filters find a cube by."""
    marks: set[int] = set()
    for field, value in _fields(words):
        marks.add(same(maker, field, value))
        marks.update(contains(maker, field, part) for part in _parts(value))
    if words.session_id and words.message_id:
        marks.add(message(maker, words.session_id, words.message_id))
    return marks


def _fields(words: Words) -> Iterator[tuple[str, Any]]:
    for name in KEYED_FIELDS:
        value = getattr(words, name)
        if value:
            yield name, value
    for key, value in words.metadata.items():
        yield f"metadata.{key}", value


def _parts(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return list(dict.fromkeys(WORD.findall(normal_form("NFC", value))))[:MOST_WORDS]
    return []


def _canonical(value: Any) -> str:
    if isinstance(value, str):
        return "text:" + (value.lower() if value.isascii() else normal_form("NFC", value).casefold())
    return "json:" + json.dumps(value, sort_keys=True, ensure_ascii=False)
