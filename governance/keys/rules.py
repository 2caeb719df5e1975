"""Sealing (AES-256-GCM with the row's identity as associated data) and keyed tokens. No Django, clock or files."""

import hashlib
import hmac
import os
import struct
import unicodedata
from dataclasses import dataclass, field
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
FORMAT = 1
_HEADER = struct.Struct("!B16s12s")  # format, key id, nonce


@dataclass(frozen=True)
class DataKey:
    """A decrypted key of the store. Its repr leaves out the bytes, so that they are never logged."""

    id: UUID
    secret: bytes = field(repr=False)


class SealBroken(Exception):
    """The blob was not sealed with this key for this place, or was changed since."""


def seal(key: DataKey, plaintext: bytes, *, place: bytes) -> bytes:
    """Return format | key id | nonce | ciphertext and tag. `place` names the row of the blob and must match to open."""
    nonce = os.urandom(12)
    return _HEADER.pack(FORMAT, key.id.bytes, nonce) + AESGCM(key.secret).encrypt(nonce, plaintext, place)


def key_id_of(blob: bytes) -> UUID:
    """Return the id of the key that opens a blob. Raises SealBroken if it is no sealed blob."""
    if len(blob) < _HEADER.size or blob[0] != FORMAT:
        raise SealBroken("not a sealed blob")
    return UUID(bytes=_HEADER.unpack_from(blob)[1])


def unseal(key: DataKey, blob: bytes, *, place: bytes) -> bytes:
    """Return the plaintext of a blob of `seal`. Raises SealBroken."""
    _, _, nonce = _HEADER.unpack_from(blob)
    try:
        return AESGCM(key.secret).decrypt(nonce, blob[_HEADER.size :], place)
    except InvalidTag as error:
        raise SealBroken("the blob does not belong here") from error


def derive(master: bytes, purpose: str) -> bytes:
    """Return a separate 32-byte key for a purpose, derived from `master` (HKDF, RFC 5869)."""
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose.encode()).derive(master)


def keyed_hash(secret: bytes, text: str) -> bytes:
    """Return the HMAC-SHA256 of the NFC form of `text`, 32 bytes."""
    return hmac.digest(secret, unicodedata.normalize("NFC", text).encode(), hashlib.sha256)


def keyed_token(secret: bytes, kind: str, text: str) -> int:
    """Return a word, speaker or session as a signed 64-bit number that is meaningless without the token key."""
    digest = hmac.digest(secret, f"{kind}\x00{text}".encode(), hashlib.sha256)
    return int.from_bytes(digest[:8], signed=True)
