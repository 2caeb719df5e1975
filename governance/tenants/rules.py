"""Credentials as text: their creation and parsing. Pure but for randomness."""

import secrets
from dataclasses import dataclass, field

KEY_BRAND = "mos"


@dataclass(frozen=True)
class Credential:
    """An API key `mos_<prefix>_<secret>`: the prefix finds the row, the whole text is hashed."""

    prefix: str
    text: str = field(repr=False)


def credential_new() -> Credential:
    return credential_new_secret(secrets.token_hex(6))


def credential_new_secret(prefix: str) -> Credential:
    """Return a credential with this prefix and a new secret."""
    return Credential(prefix=prefix, text=f"{KEY_BRAND}_{prefix}_{secrets.token_urlsafe(32).replace('_', '-')}")


def credential_parse(text: str) -> Credential | None:
    """Return the parts of a presented key, or None if it has another format."""
    parts = text.split("_")
    if len(parts) != 3 or parts[0] != KEY_BRAND or not parts[1] or len(text) > 200:
        return None
    return Credential(prefix=parts[1], text=text)


def link_token_new() -> str:
    return secrets.token_urlsafe(32)
