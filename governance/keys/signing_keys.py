"""Signing keys (Ed25519, RFC 8032) of the installation and of each tenant's exports.

Signatures can be verified with the public key. The key store holds the keys, made at first use.
"""

import hashlib
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from governance.keys.services import key_store
from governance.keys.store import INSTALLATION
from governance.keys.tables import EXPORT_SIGNING

SCOPE = "signing"


class SigningKey:
    """Signs in the name of this installation or of a tenant."""

    def __init__(self, secret: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(secret)

    def sign(self, message: bytes) -> bytes:
        """Return the signature of `message`, 64 bytes."""
        return self._private.sign(message)

    def public_key(self) -> bytes:
        """Return the public key, 32 bytes, which verifies signatures."""
        return self._private.public_key().public_bytes_raw()

    def public_pem(self) -> str:
        """Return the public key as PEM text (SubjectPublicKeyInfo, RFC 8410)."""
        return self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def key_id(self) -> str:
        return key_id_of(self.public_key())


def signing_key() -> SigningKey:
    """Return the key of this installation. Raises KeyUnavailable."""
    return SigningKey(key_store().key_for(INSTALLATION, SCOPE).secret)


def export_signing_key(tenant_id: UUID) -> SigningKey:
    """Return the key that signs a tenant's exported memory packs, made at first use. Raises KeyUnavailable."""
    return SigningKey(key_store().key_for(tenant_id, EXPORT_SIGNING).secret)


def key_id_of(public_key: bytes) -> str:
    """Return the id of a public key: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` was made over `message` with the private key of `public_key`."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True
