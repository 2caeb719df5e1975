"""Watermarks of packs: a publisher words a sentence twice, so that each recipient's copy can be identified.

The metadata of a memory names its marked sentence: {"wordings": {"sentence": …, "second": …}}. A version stores both
wordings; a key of the publisher and the recipient's id choose the delivered one.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from governance.errors import FieldError, Invalid
from governance.keys.services import GENERAL, open_sealed, seal_for, token_maker
from vault.models import PackVersion
from vault.store.files import Item

METADATA = "wordings"
LONGEST_SENTENCE = 1_000
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
TOKENS_OF = "pack wording"  # a kind of keyed token, which a rotation of keys leaves as it is


@dataclass(frozen=True)
class Wordings:
    """A marked sentence in both wordings. content: the memory's content with the second wording."""

    sentence: str = field(repr=False)
    second: str = field(repr=False)
    content: str = field(default="", repr=False)


def read_wordings(metadata: Mapping[str, Any]) -> Wordings | None:
    """Return the marked sentence in a memory's metadata; None if there is none, or not in this format."""
    stated = metadata.get(METADATA)
    if not isinstance(stated, dict):
        return None
    sentence, second = stated.get("sentence"), stated.get("second")
    return Wordings(sentence, second) if isinstance(sentence, str) and isinstance(second, str) else None


def wordings_check(content: str, sentence: str, second: str) -> None:
    """Check a marked sentence. Raises Invalid unless it occurs once in the text and the second wording has other
    words."""
    faults = []
    if not sentence.strip() or content.count(sentence) != 1:
        faults.append(FieldError("sentence", "a sentence that stands once in the memory"))
    if not second.strip() or len(second) > LONGEST_SENTENCE or plain(second) == plain(sentence):
        faults.append(FieldError("second", f"1 to {LONGEST_SENTENCE} characters, with other words"))
    if faults:
        raise Invalid(errors=faults)


def add_second(content: str, wordings: Wordings) -> Wordings | None:
    """Return the wordings with the second content; None if the sentence no longer occurs exactly once in the text."""
    if not wordings.sentence.strip() or content.count(wordings.sentence) != 1:
        return None
    if plain(wordings.sentence) == plain(wordings.second):
        return None
    return replace(wordings, content=content.replace(wordings.sentence, wordings.second))


def plain(text: str) -> str:
    """Return the words of a text, case-folded and separated by spaces, Chinese characters one by one.

    A copy keeps this form when spaces, punctuation and case change.
    """
    return f" {' '.join(_WORDS.findall(unicodedata.normalize('NFKC', text).casefold()))} "


def wordings_seal(row: PackVersion, wordings: Mapping[UUID, Wordings]) -> bytes:
    """Seal the wordings. Raises KeyUnavailable."""
    if not wordings:
        return b""
    stated = {str(key): asdict(wording) for key, wording in wordings.items()}
    plaintext = json.dumps(stated, ensure_ascii=False).encode()
    return seal_for(tenant_id=row.tenant_id, scope=GENERAL, place=_encryption_context(row), plaintext=plaintext)


def wordings_open(row: PackVersion) -> dict[UUID, Wordings]:
    """Return the marked sentences of a version by memory id. Raises KeyUnavailable."""
    blob = bytes(row.wordings)
    plaintext = open_sealed(tenant_id=row.tenant_id, place=_encryption_context(row), blob=blob) if blob else None
    stated = json.loads(plaintext) if plaintext else {}
    return {UUID(key): Wordings(**fields) for key, fields in stated.items()}


def has_second(publisher_id: UUID, recipient_id: UUID, key: UUID) -> bool:
    """Return whether the recipient gets the second wording of a memory: one bit of a keyed hash. Raises
    KeyUnavailable."""
    return bool(token_maker(publisher_id).token(TOKENS_OF, f"{recipient_id} {key}") & 1)


def items_personalise(row: PackVersion, items: Sequence[Item], recipient_id: UUID) -> tuple[Item, ...]:
    """Return the memories of a version in the wordings of one recipient. Raises KeyUnavailable."""
    wordings = wordings_open(row)
    return tuple(
        replace(item, content=wordings[item.id].content)
        if item.id in wordings and has_second(row.tenant_id, recipient_id, item.id)
        else item
        for item in items
    )


def _encryption_context(row: PackVersion) -> bytes:
    return b"wordings" + row.id.bytes
