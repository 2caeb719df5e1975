"""Content of a manifest, and its signed bytes; scripts/manifest_verifier.py implements the same independently."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

FORMAT = "memos-manifest/1"
SIGNED_PREFIX = FORMAT.encode() + b"\n"  # so that no signature of anything else could be taken for one of a manifest


@dataclass(frozen=True)
class Principal:
    kind: str
    id: UUID


@dataclass(frozen=True)
class ManifestItem:
    """One memory given out. content_sha256: of the UTF-8 of its content, None if the content is not given out."""

    memory_id: UUID
    version: int
    version_hash: bytes
    content_sha256: str | None
    writer: Principal


@dataclass(frozen=True)
class Manifest:
    """The signed list of memories given out, with their versions and writers, the recipient and the time."""

    id: UUID
    tenant_id: UUID
    recipient: Principal
    at: datetime
    items: tuple[ManifestItem, ...]
    key_id: str
    signature: bytes = b""


class Verdict(StrEnum):
    """The result of checking a manifest."""

    VALID = "valid"
    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown_key"
    BAD_SIGNATURE = "bad_signature"


def content_digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def manifest_json(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as it is sent; the signature covers all other fields."""
    return unsigned_json(manifest) | {"signature": base64.b64encode(manifest.signature).decode()}


def unsigned_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "id": str(manifest.id),
        "tenant": str(manifest.tenant_id),
        "recipient": _encode_principal(manifest.recipient),
        "at": manifest.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "items": [
            {
                "memory_id": str(item.memory_id),
                "version": item.version,
                "version_hash": item.version_hash.hex(),
                "content_sha256": item.content_sha256,
                "writer": _encode_principal(item.writer),
            }
            for item in manifest.items
        ],
        "key_id": manifest.key_id,
    }


def signed_bytes(body: Mapping[str, Any]) -> bytes:
    """Return the signed bytes of a manifest: JSON with sorted names, no white space, UTF-8, without the signature
    itself.
    """
    unsigned = {name: value for name, value in body.items() if name != "signature"}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return SIGNED_PREFIX + text.encode()


def read_signature(body: Mapping[str, Any]) -> bytes | None:
    """Return the signature of a manifest; None if it has none, or is no manifest of this format."""
    signature = body.get("signature")
    if body.get("format") != FORMAT or not isinstance(signature, str) or not isinstance(body.get("key_id"), str):
        return None
    try:
        return base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None


def _encode_principal(principal: Principal) -> dict[str, str]:
    return {"kind": principal.kind, "id": str(principal.id)}
