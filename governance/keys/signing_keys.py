"""Signing keys (Ed25519, RFC 8032) of the installation and of each tenant's exports.

What they signed can be checked by whoever has the public half. They are keys of the key store, made at first use.
Former versions had the installation's in a file of its own, which is taken over.
"""

import hashlib
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from governance.errors import KeyUnavailable
from governance.keys.rules import DataKey, SealBroken, derive, unseal
from governance.keys.rules import key_id_of as blob_key_id
from governance.keys.services import key_store
from governance.keys.store import INSTALLATION, new_secret
from governance.keys.tables import EXPORT_SIGNING

SCOPE = "signing"
FORMER_FILE = "signing.key"
FORMER_PLACE = b"signing key"


class SigningKey:
    """Signs in the name of this installation, or of a tenant."""

    def __init__(self, secret: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(secret)

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""
        return self._private.sign(message)

    def public_key(self) -> bytes:
        """The public key, 32 bytes, with which signatures are verified."""
        return self._private.public_key().public_bytes_raw()

    def public_pem(self) -> str:
        """The same as text (SubjectPublicKeyInfo, RFC 8410)."""
        return self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def key_id(self) -> str:
        return key_id_of(self.public_key())


def signing_key() -> SigningKey:
    """The key of this process's installation. Raises KeyUnavailable."""
    former = settings.KEY_STORE_PATH.with_name(FORMER_FILE)

    def make_secret() -> bytes:
        return _read_former(former, settings.MASTER_KEY) if former.exists() else new_secret()

    return SigningKey(key_store().key_for(INSTALLATION, SCOPE, make_secret=make_secret).secret)


def export_signing_key(tenant_id: UUID) -> SigningKey:
    """The key that a tenant signs its exported memory packs with, made at first use. Raises KeyUnavailable."""
    return SigningKey(key_store().key_for(tenant_id, EXPORT_SIGNING).secret)


def _read_former(path: Path, master_key: bytes) -> bytes:
    """The 32 bytes of the key that a former version has in a file. Raises KeyUnavailable."""
    try:
        blob = path.read_bytes()
        blob_key_id(blob)  # raises for what is no sealed blob at all
        return unseal(former_wrapping(master_key), blob, place=FORMER_PLACE)
    except OSError as error:
        raise KeyUnavailable("The signing key cannot be read.") from error
    except SealBroken as error:
        raise KeyUnavailable("The signing key was made under another master key.") from error


def former_wrapping(master_key: bytes) -> DataKey:
    return DataKey(id=UUID(int=0), secret=derive(master_key, "memos signing key"))


def key_id_of(public_key: bytes) -> str:
    """A name for a public key: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` was made over `message` with the private half of `public_key`."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True
