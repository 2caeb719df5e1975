"""The installation's signing key (Ed25519, RFC 8032): what it signed can be checked by whoever has the public half.

It lies beside the key store, in a file of its own, sealed under the master key; made at first use.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from governance.errors import KeyUnavailable
from governance.keys.rules import DataKey, SealBroken, derive, seal, unseal
from governance.keys.rules import key_id_of as blob_key_id

FILE = "signing.key"
_PLACE = b"signing key"


class SigningKey:
    """Signs in the name of this installation. Two processes that start at once come to the same key."""

    def __init__(self, path: Path, master_key: bytes) -> None:
        self._path = path
        self._wrapping = DataKey(id=UUID(int=0), secret=derive(master_key, "memos signing key"))
        self._private = Ed25519PrivateKey.from_private_bytes(self._read_or_make())

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""
        return self._private.sign(message)

    def public_key(self) -> bytes:
        """32 bytes, for who checks signatures."""
        return self._private.public_key().public_bytes_raw()

    def public_pem(self) -> str:
        """The same as text (SubjectPublicKeyInfo, RFC 8410)."""
        return self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def key_id(self) -> str:
        return key_id_of(self.public_key())

    def _read_or_make(self) -> bytes:
        try:
            if not self._path.exists():
                self._make()
            blob = self._path.read_bytes()
            blob_key_id(blob)  # raises for what is no sealed blob at all
            return unseal(self._wrapping, blob, place=_PLACE)
        except OSError as error:
            raise KeyUnavailable("The signing key cannot be read or made.") from error
        except SealBroken as error:
            raise KeyUnavailable("The signing key was made under another master key.") from error

    def _make(self) -> None:
        """The file appears whole, by link, and the first one made counts."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, draft = tempfile.mkstemp(prefix=f"{self._path.name}.", dir=self._path.parent)  # 0600
        with os.fdopen(descriptor, "wb") as file:
            file.write(seal(self._wrapping, Ed25519PrivateKey.generate().private_bytes_raw(), place=_PLACE))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, self._path)
        os.unlink(draft)


def signing_key() -> SigningKey:
    """The key of this process's installation. Raises KeyUnavailable."""
    return _signing_key(settings.KEY_STORE_PATH.with_name(FILE), settings.MASTER_KEY)


def key_id_of(public_key: bytes) -> str:
    """A name for a public key: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is that of `message` by the holder of the key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=2)
def _signing_key(path: Path, master_key: bytes) -> SigningKey:
    return SigningKey(path, master_key)
