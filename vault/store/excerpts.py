"""Excerpts of a pack's version: what its page shows and what trials search, so that no request reads the whole file.

The file of a version is verified once, when it is built, and its excerpts are made of the verified memories. They are
sealed like the file, are erased with it, and state what they were made from: the digest of the memories, the signing
key and the format. Excerpts of another file, or ones that were changed outside the product, do not open.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from governance.errors import KeyUnavailable
from governance.keys.services import GENERAL, open_sealed, seal_for
from vault.models import PackVersion
from vault.providers.ports import Matrix
from vault.providers.registry import embedder
from vault.store.files import FORMAT, Item, file_read, item_read, item_stated
from vault.store.selectors import file_open
from vault.store.wordings import Wordings, has_second, wordings_open

SAMPLES = 6  # memories of a preview at most
LEAST_SHARE, SHARE = 3, 10  # a tenth of a pack is shown to who has no contract, and 3 memories at least
EXTRACT = 120  # characters of a memory in a trial: enough to judge the pack by, without being a copy of it
PART = 200  # memories that are embedded at once
HEAD = struct.Struct(">I")  # bytes of the JSON before the vectors
VECTORS = np.dtype("<f2")


@dataclass(frozen=True)
class TrialIndex:
    """The rows that a trial searches. keys: ids of the memories. vectors: rows of length 1, in their order.

    extracts: the first EXTRACT characters of each memory, in the first wording and in the second, if it has one.
    """

    version: PackVersion
    keys: tuple[UUID, ...]
    extracts: tuple[tuple[str, str | None], ...] = field(repr=False)
    vectors: Matrix = field(repr=False)

    def extract(self, place: int, recipient_id: UUID) -> str:
        """Return the extract of a memory in the wording of one recipient. Raises KeyUnavailable."""
        first, second = self.extracts[place]
        is_second = second is not None and has_second(self.version.tenant_id, recipient_id, self.keys[place])
        return second if second is not None and is_second else first


def preview_seal(row: PackVersion, items: Sequence[Item], wordings: Mapping[UUID, Wordings]) -> bytes:
    """Seal the first memories of a version, whose file the caller has verified. Raises KeyUnavailable."""
    samples = [[item_stated(item), _second(item, wordings)] for item in items[:SAMPLES]]
    return _seal(row, b"preview", json.dumps({**_origin(row), "samples": samples}, ensure_ascii=False).encode())


def preview_store(row: PackVersion) -> None:
    """Verify the file of a version that has no preview, once, and store its preview. Use in its tenant's transaction.

    Raises Conflict; PackInvalid; KeyUnavailable. Writes: PackVersion.
    """
    row.preview = preview_seal(row, file_read(file_open(row)).items, wordings_open(row))
    PackVersion.objects.filter(id=row.id).update(preview=row.preview)


def share_of(count: int) -> int:
    """Return how many of the `count` memories of a pack are shown to who has no contract."""
    return max(LEAST_SHARE, count // SHARE)


def preview_open(row: PackVersion, recipient_id: UUID) -> list[Item] | None:
    """Return extracts of the first memories of a version, in the wordings of one recipient; None if it has no preview.

    No more memories than a trial shows, and no longer extracts.

    Raises KeyUnavailable, also for a changed preview, or one of another file.
    """
    plaintext = _open(row, b"preview", row.preview)
    if plaintext is None:
        return None
    stated = json.loads(plaintext)
    _check_origin(row, stated)

    def choose(fields: Mapping[str, Any], second: str | None) -> str:
        is_second = second is not None and has_second(row.tenant_id, recipient_id, UUID(fields["id"]))
        return second if second is not None and is_second else fields["content"]

    samples = stated["samples"][: share_of(row.count)]
    return [
        item_read({**fields, "content": _shorten(choose(fields, second)), "title": _shorten(fields.get("title", ""))})
        for fields, second in samples
    ]


def trial_seal(row: PackVersion, items: Sequence[Item], wordings: Mapping[UUID, Wordings]) -> tuple[bytes, str]:
    """Embed all memories of a version, and return the sealed index of trials and the name of the model. Slow.

    Raises ProviderUnavailable; KeyUnavailable. Runs outside any transaction.
    """
    model = embedder()
    parts = [model.embed([item.content for item in items[at : at + PART]]) for at in range(0, len(items), PART)]
    rows = [[str(item.id), *map(_shorten_if_any, (item.content, _second(item, wordings)))] for item in items]
    head = json.dumps({**_origin(row), "rows": rows}, ensure_ascii=False).encode()
    vectors = np.concatenate(parts).astype(VECTORS).tobytes()
    return _seal(row, b"trial", HEAD.pack(len(head)) + head + vectors), model.name


def trial_open(row: PackVersion) -> TrialIndex | None:
    """Return the index of trials of a version; None if there is none by the present model.

    Raises KeyUnavailable, also for a changed index, or one of another file.
    """
    plaintext = _open(row, b"trial", row.trial) if row.trial_model == embedder().name else None
    if plaintext is None:
        return None
    (size,) = HEAD.unpack_from(plaintext)
    stated = json.loads(plaintext[HEAD.size : HEAD.size + size])
    _check_origin(row, stated)
    rows = stated["rows"]
    vectors = np.frombuffer(plaintext, VECTORS, offset=HEAD.size + size).reshape(len(rows), -1)
    return TrialIndex(
        row,
        tuple(UUID(key) for key, _, _ in rows),
        tuple((first, second) for _, first, second in rows),
        vectors.astype(np.float32),
    )


def round_vectors(vectors: Matrix) -> Matrix:
    """Return vectors as precise as those of an index, so that equal texts have equal scores."""
    return vectors.astype(VECTORS).astype(np.float32)


def _origin(row: PackVersion) -> dict[str, str]:
    return {"digest": row.digest, "key_id": row.key_id, "format": FORMAT}


def _check_origin(row: PackVersion, stated: Mapping[str, Any]) -> None:
    if any(stated.get(name) != value for name, value in _origin(row).items()):
        raise KeyUnavailable("What is stored of this version is not of its file: it was changed outside the product.")


def _second(item: Item, wordings: Mapping[UUID, Wordings]) -> str | None:
    return wordings[item.id].content if item.id in wordings else None


def _shorten_if_any(text: str | None) -> str | None:
    return text if text is None else _shorten(text)


def _shorten(text: str) -> str:
    return text if len(text) <= EXTRACT else f"{text[:EXTRACT].rstrip()}…"


def _seal(row: PackVersion, kind: bytes, plaintext: bytes) -> bytes:
    return seal_for(tenant_id=row.tenant_id, scope=GENERAL, place=kind + row.id.bytes, plaintext=plaintext)


def _open(row: PackVersion, kind: bytes, blob: bytes | memoryview) -> bytes | None:
    return open_sealed(tenant_id=row.tenant_id, place=kind + row.id.bytes, blob=bytes(blob)) if blob else None
