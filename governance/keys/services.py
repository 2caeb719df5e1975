"""Seal and open what belongs to a tenant. Who may open is decided before: these functions ask nobody."""

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import connection

from governance.errors import KeyUnavailable
from governance.keys.registry import DatabaseRegistry
from governance.keys.rotation import RotatingKeyStore
from governance.keys.rules import DataKey, SealBroken, derive, key_id_of, keyed_hash, keyed_token, seal, unseal
from governance.keys.store import INSTALLATION, KeyStore
from governance.keys.tables import TOKENS

GENERAL = "general"
CREDENTIALS = "memos credentials"
SECOND_FACTORS = "memos second factors"


@lru_cache(maxsize=1)
def key_store() -> KeyStore:
    """The store of this process; another kind (a separate database, a vault service) would be chosen here."""
    return RotatingKeyStore(settings.KEY_STORE_PATH, settings.MASTER_KEY, DatabaseRegistry(_connect))


def rotating_key_store() -> RotatingKeyStore:
    """The store of this process, as one that can rotate keys. Raises KeyUnavailable for another kind."""
    store = key_store()
    if not isinstance(store, RotatingKeyStore):
        raise KeyUnavailable("This key store cannot rotate keys.")
    return store


def _connect() -> psycopg.Connection[Any]:
    return psycopg.connect(**{**connection.get_connection_params(), "connect_timeout": 5})


def member_scope(member_id: UUID) -> str:
    return f"member:{member_id}"


def subject_scope(subject_id: UUID) -> str:
    return f"subject:{subject_id}"


def seal_for(*, tenant_id: UUID, scope: str, place: bytes, plaintext: bytes) -> bytes:
    """Seal under the key of `scope`. Raises KeyUnavailable."""
    return seal(key_store().key_for(tenant_id, scope), plaintext, place=tenant_id.bytes + place)


def open_sealed(*, tenant_id: UUID, place: bytes, blob: bytes | memoryview) -> bytes | None:
    """The plaintext, or None when its key was destroyed. Raises KeyUnavailable, also for a blob that was changed."""
    try:
        key = key_store().key_by_id(tenant_id, key_id_of(bytes(blob)))
        return unseal(key, bytes(blob), place=tenant_id.bytes + place) if key else None
    except SealBroken as error:
        raise KeyUnavailable("A sealed row does not open: it was changed outside the product.") from error


class Tokens(dict[str, int]):
    """The keyed tokens of one kind, each made when it is first asked for: words repeat in a call."""

    def __init__(self, secret: bytes, kind: str) -> None:
        super().__init__()
        self._secret, self._kind = secret, kind

    def __missing__(self, text: str) -> int:
        made = self[text] = keyed_token(self._secret, self._kind, text)
        return made


@dataclass(frozen=True)
class TokenMaker:
    """Keyed tokens of one tenant, by which sealed content is matched without being opened."""

    key: DataKey
    _kinds: dict[str, Tokens] = field(default_factory=dict, repr=False, compare=False)

    def tokens(self, kind: str) -> Tokens:
        """All tokens of one kind, to look many up in."""
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = Tokens(self.key.secret, kind)
        return found

    def token(self, kind: str, text: str) -> int:
        return self.tokens(kind)[text]

    def hash(self, text: str) -> bytes:
        return keyed_hash(self.key.secret, text)


def token_maker(tenant_id: UUID) -> TokenMaker:
    """Return the maker of the tenant's keyed tokens. Raises KeyUnavailable."""
    return TokenMaker(key=key_store().key_for(tenant_id, TOKENS))


def credential_hash(secret: str) -> bytes:
    """Keyed hash of an API key or a sign-in token. High-entropy secrets need no slow hash: this costs microseconds."""
    return keyed_hash(_credential_key(), secret)


def _credential_key() -> bytes:
    return installation_secret(CREDENTIALS)


@lru_cache(maxsize=4)
def installation_secret(purpose: str) -> bytes:
    """32 bytes for a purpose: derived from the first master key, also after a rotation. Raises KeyUnavailable."""
    stored = key_store().find(INSTALLATION, purpose)
    return stored.secret if stored else derive(settings.MASTER_KEY, purpose)


def installation_secrets_store() -> None:
    """Store what is derived from the master key, before that is rotated: API keys and second factors stay valid."""
    for purpose in (CREDENTIALS, SECOND_FACTORS):
        key_store().key_for(INSTALLATION, purpose, make_secret=partial(bytes, installation_secret(purpose)))
