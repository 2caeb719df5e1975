"""Browser sessions whose rows are useless without the cookie: the key is stored as a hash, the data sealed with the
key.

A reader of the table can neither use a session nor learn who is signed in.
"""

import hashlib
from base64 import b64decode, b64encode
from typing import Any
from uuid import UUID

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from governance.keys.rules import DataKey, SealBroken, derive, seal, unseal

PLACE = b"session"


class SessionStore(DatabaseStore):
    """Django's database sessions, with hashed keys and sealed data."""

    def encode(self, session_dict: dict[str, Any]) -> str:
        text = super().encode(session_dict)
        return b64encode(seal(_key(self.session_key or ""), text.encode(), place=PLACE)).decode()

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Return the session's data; empty if they were sealed with another key."""
        try:
            text = unseal(_key(self.session_key or ""), b64decode(session_data), place=PLACE)
        except (SealBroken, ValueError):
            return {}
        return super().decode(text.decode())

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        row = super().create_model_instance(data)
        row.session_key = _hash(row.session_key)
        return row

    def exists(self, session_key: str) -> bool:
        return super().exists(_hash(session_key))

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(_hash(key))

    def _get_session_from_db(self) -> Session | None:
        found = Session.objects.filter(
            session_key=_hash(self.session_key or ""), expire_date__gt=timezone.now()
        ).first()
        if found is None:
            self._session_key = None
        return found


def _hash(session_key: str) -> str:
    """Return a hash of 40 characters, as the column has; a session key is random enough for a plain hash."""
    return hashlib.sha256(session_key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _key(session_key: str) -> DataKey:
    return DataKey(id=UUID(int=0), secret=derive(session_key.encode("utf-8", "surrogatepass"), "memos session"))
