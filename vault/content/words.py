"""The sealed content of a cube: one encrypted blob per version."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from governance.keys.services import GENERAL, member_scope, open_sealed, seal_for, subject_scope
from vault.content.blobs import blob_read, blob_ref

Metadata = Mapping[str, Any]  # the caller's JSON object
WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Quote(NamedTuple):
    """A passage of one version of another memory, by reference: code points `start` to `end` of its content.

    marker: the position in the quoting text before which the passage is inserted.
    """

    source: str
    version: int
    start: int
    end: int
    marker: int


@dataclass(frozen=True)
class Words:
    """The sealed fields of one version. Never logged, never stored as plain text."""

    content: str = field(repr=False)
    title: str = field(default="", repr=False)
    metadata: Metadata = field(default_factory=dict, repr=False)
    attributes: Metadata = field(default_factory=dict, repr=False)
    keywords: tuple[str, ...] = field(default=(), repr=False)
    speaker: str = field(default="", repr=False)
    session_id: str = field(default="", repr=False)
    message_id: str = field(default="", repr=False)
    task_id: str = field(default="", repr=False)
    quotes: tuple[Quote, ...] = ()


NO_WORDS = Words(content="")  # a version whose key was destroyed or whose words were redacted


def key_scope(*, subject_id: UUID | None, persona_member_id: UUID | None) -> str:
    """Return the scope of the key that seals a cube: the data subject if there is one, else the persona's member, else
    GENERAL."""
    if subject_id is not None:
        return subject_scope(subject_id)
    return member_scope(persona_member_id) if persona_member_id is not None else GENERAL


def words_seal(*, tenant_id: UUID, cube_id: UUID, number: int, scope: str, words: Words) -> bytes:
    """Seal the words of one version. They can be opened only for the same tenant, cube and version. Raises
    KeyUnavailable."""
    plaintext = WRITER.encode(vars(words)).encode()
    return seal_for(tenant_id=tenant_id, scope=scope, place=_place_of_version(cube_id, number), plaintext=plaintext)


def words_open(*, tenant_id: UUID, cube_id: UUID, number: int, blob: bytes | memoryview) -> Words:
    """Open the words of one version, from its row or from the blob store; NO_WORDS if they were redacted or erased.

    Raises KeyUnavailable; BlobStoreUnavailable, BlobsNeeded (vault.content.blobs).
    """
    if not blob:
        return NO_WORDS
    ref = blob_ref(tenant_id=tenant_id, cube_id=cube_id, number=number, stored=blob)
    if ref is not None:
        blob = blob_read(ref)
    plaintext = open_sealed(tenant_id=tenant_id, place=_place_of_version(cube_id, number), blob=blob)
    if plaintext is None:
        return NO_WORDS
    stored = json.loads(plaintext)
    quotes = tuple(Quote(*quote) for quote in stored.get("quotes", ()))
    return Words(**{**stored, "keywords": tuple(stored["keywords"]), "quotes": quotes})


def _place_of_version(cube_id: UUID, number: int) -> bytes:
    return cube_id.bytes + number.to_bytes(4)
