"""Envelopes: files encrypted to the X25519 key of a tenant (docs/exchange.md). Pure but for the tenant's own key.

Header: magic, the first 8 bytes of the SHA-256 of the recipient's key, an ephemeral public key. Each chunk: its length
in 4 bytes, then ChaCha20-Poly1305 with the header as associated data. The nonce is the chunk's number and whether it is
the last, so that a file that was cut, joined or reordered does not open.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from governance.errors import Invalid
from governance.keys.services import key_store
from governance.keys.tables import EXCHANGE

MAGIC = b"MEMOSEN1"
CHUNK = 64 * 1024  # bytes of plaintext
PUBLIC_BYTES, KEY_ID_BYTES, TAG_BYTES = 32, 8, 16
HEADER_BYTES = len(MAGIC) + KEY_ID_BYTES + PUBLIC_BYTES
_LENGTH = struct.Struct("!I")


class EnvelopeInvalid(Invalid):
    code, title = "envelope_invalid", "The encrypted file does not open"


def exchange_key(tenant_id: UUID) -> X25519PrivateKey:
    """Return the key that files for a tenant are encrypted to, made at first use. Raises KeyUnavailable."""
    return X25519PrivateKey.from_private_bytes(key_store().key_for(tenant_id, EXCHANGE).secret)


def envelope_write(blocks: Iterable[bytes], recipient: bytes) -> Iterator[bytes]:
    """Yield the parts of an envelope around `blocks`. recipient: a public key, 32 bytes. Raises ValueError."""
    ephemeral = X25519PrivateKey.generate()
    public = ephemeral.public_key().public_bytes_raw()
    header = MAGIC + hashlib.sha256(recipient).digest()[:KEY_ID_BYTES] + public
    return _chunks(blocks, header, _cipher(ephemeral, recipient, header, recipient))


def is_envelope(content: bytes) -> bool:
    return content.startswith(MAGIC)


def envelope_read(content: bytes, key: X25519PrivateKey) -> bytes:
    """Return the decrypted content of an envelope. Raises EnvelopeInvalid."""
    own = key.public_key().public_bytes_raw()
    header = content[:HEADER_BYTES]
    if len(header) < HEADER_BYTES or not is_envelope(header):
        raise EnvelopeInvalid("The file is shorter than the header of an encrypted one.")
    if header[len(MAGIC) : len(MAGIC) + KEY_ID_BYTES] != hashlib.sha256(own).digest()[:KEY_ID_BYTES]:
        raise EnvelopeInvalid("The file is encrypted to another key. Ask for one that is encrypted to yours.")
    try:
        cipher = _cipher(key, header[-PUBLIC_BYTES:], header, own)
    except ValueError as error:
        raise EnvelopeInvalid("The file was changed. Download it again.") from error
    opened, at, number, is_last = bytearray(), HEADER_BYTES, 0, False
    while not is_last:
        size = _read_chunk_size(content, at)
        at += _LENGTH.size + size
        is_last = at == len(content)
        try:
            opened += cipher.decrypt(_nonce(number, is_last), content[at - size : at], header)
        except InvalidTag as error:
            raise EnvelopeInvalid("The file was changed or is incomplete. Download it again.") from error
        number += 1
    return bytes(opened)


def _read_chunk_size(content: bytes, at: int) -> int:
    """Return the length of the chunk at position `at`. Raises EnvelopeInvalid."""
    if at + _LENGTH.size > len(content):
        raise EnvelopeInvalid("The file is incomplete. Download it again.")
    size: int = _LENGTH.unpack_from(content, at)[0]
    if not TAG_BYTES <= size <= CHUNK + TAG_BYTES or at + _LENGTH.size + size > len(content):
        raise EnvelopeInvalid("The file was changed or is incomplete. Download it again.")
    return size


def _chunks(blocks: Iterable[bytes], header: bytes, cipher: ChaCha20Poly1305) -> Iterator[bytes]:
    waiting, number, ready = b"", 0, header
    for block in blocks:
        waiting += block
        parts = []
        while len(waiting) > CHUNK:  # never the last chunk, which has its own nonce
            parts.append(_seal_part(cipher, number, waiting[:CHUNK], header, is_last=False))
            waiting, number = waiting[CHUNK:], number + 1
        yield ready + b"".join(parts)
        ready = b""
    yield ready + _seal_part(cipher, number, waiting, header, is_last=True)


def _seal_part(cipher: ChaCha20Poly1305, number: int, plaintext: bytes, header: bytes, *, is_last: bool) -> bytes:
    ciphertext = cipher.encrypt(_nonce(number, is_last), plaintext, header)
    return _LENGTH.pack(len(ciphertext)) + ciphertext


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def _cipher(private: X25519PrivateKey, public: bytes, header: bytes, recipient: bytes) -> ChaCha20Poly1305:
    """Return the cipher that both keys agree on. Raises ValueError for an invalid public key."""
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    return ChaCha20Poly1305(HKDF(algorithm=SHA256(), length=32, salt=recipient, info=header).derive(shared))
