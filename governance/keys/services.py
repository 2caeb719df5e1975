"""Sealing and opening of a tenant's data. Callers check permissions first: these functions check none."""

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import connection

from governance.errors import KeyUnavailable
from governance.keys.moving import RelocatableKeyStore
from governance.keys.places import place_at
from governance.keys.registry import DatabaseRegistry
from governance.keys.rules import DataKey, SealBroken, derive, key_id_of, keyed_hash, keyed_token, seal, unseal
from governance.keys.store import INSTALLATION, KeyStore
from governance.keys.tables import TOKENS

GENERAL = "general"
CREDENTIALS = "memos credentials"
SECOND_FACTORS = "memos second factors"


@lru_cache(maxsize=1)
def key_store() -> KeyStore:
    """Return the key store of this process; a new kind of place (a vault service) is chosen in `place_at`."""
    place = place_at(settings.KEY_STORE_URL or settings.KEY_STORE_PATH)
    return RelocatableKeyStore(place, settings.MASTER_KEY, DatabaseRegistry(_connect))


def rotating_key_store() -> RelocatableKeyStore:
    """Return the key store of this process if its keys can be rotated and moved. Raises KeyUnavailable otherwise."""
    store = key_store()
    if not isinstance(store, RelocatableKeyStore):
        raise KeyUnavailable("This key store cannot rotate or move keys.")
    return store


def _connect() -> psycopg.Connection[Any]:
    return psycopg.connect(**{**connection.get_connection_params(), "connect_timeout": 5})


def member_scope(member_id: UUID) -> str:
    return f"member:{member_id}"


def subject_scope(subject_id: UUID) -> str:
    return f"subject:{subject_id}"


def seal_for(*, tenant_id: UUID, scope: str, place: bytes, plaintext: bytes) -> bytes:
    """Return the plaintext sealed with the key of `scope`. Raises KeyUnavailable."""
    return seal(key_store().key_for(tenant_id, scope), plaintext, place=tenant_id.bytes + place)


def open_sealed(*, tenant_id: UUID, place: bytes, blob: bytes | memoryview) -> bytes | None:
    """Return the plaintext, or None if its key was destroyed. Raises KeyUnavailable, also for a changed blob."""
    try:
        key = key_store().key_by_id(tenant_id, key_id_of(bytes(blob)))
        return unseal(key, bytes(blob), place=tenant_id.bytes + place) if key else None
    except SealBroken as error:
        raise KeyUnavailable("A sealed row does not open: it was changed outside the product.") from error


class Tokens(dict[str, int]):
    """The keyed tokens of one kind, computed on first look-up and cached, since words repeat in a call."""

    def __init__(self, secret: bytes, kind: str) -> None:
        super().__init__()
        self._secret, self._kind = secret, kind

    def __missing__(self, text: str) -> int:
        made = self[text] = keyed_token(self._secret, self._kind, text)
        return made


@dataclass(frozen=True)
class TokenMaker:
    """Makes the keyed tokens of one tenant, which match sealed content without opening it."""

    key: DataKey
    _kinds: dict[str, Tokens] = field(default_factory=dict, repr=False, compare=False)

    def tokens(self, kind: str) -> Tokens:
        """Return the tokens of one kind, for many look-ups."""
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
    """Return the keyed hash of an API key or a sign-in token; random secrets need no slow password hash."""
    return keyed_hash(_credential_key(), secret)


def _credential_key() -> bytes:
    return installation_secret(CREDENTIALS)


@lru_cache(maxsize=4)
def installation_secret(purpose: str) -> bytes:
    """Return 32 bytes for a purpose, derived from the first master key even after a rotation. Raises KeyUnavailable."""
    stored = key_store().find(INSTALLATION, purpose)
    return stored.secret if stored else derive(settings.MASTER_KEY, purpose)


def installation_secrets_store() -> None:
    """Store the secrets derived from the master key before its rotation: API keys and second factors stay valid."""
    for purpose in (CREDENTIALS, SECOND_FACTORS):
        key_store().key_for(INSTALLATION, purpose, make_secret=partial(bytes, installation_secret(purpose)))
