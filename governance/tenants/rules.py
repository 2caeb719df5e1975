"""Credentials as text: how they are made and read. Pure but for randomness."""

import secrets
from dataclasses import dataclass, field

KEY_BRAND = "mos"


@dataclass(frozen=True)
class Credential:
    """`mos_<prefix>_<secret>`: the prefix finds the row, the whole text is hashed."""

    prefix: str
    text: str = field(repr=False)


def credential_new() -> Credential:
    return credential_new_secret(secrets.token_hex(6))


def credential_new_secret(prefix: str) -> Credential:
    """Another secret for the key that `prefix` finds."""
    return Credential(prefix=prefix, text=f"{KEY_BRAND}_{prefix}_{secrets.token_urlsafe(32).replace('_', '-')}")


def credential_parse(text: str) -> Credential | None:
    """The parts of a presented key, or None when it cannot be one."""
    parts = text.split("_")
    if len(parts) != 3 or parts[0] != KEY_BRAND or not parts[1] or len(text) > 200:
        return None
    return Credential(prefix=parts[1], text=text)


def link_token_new() -> str:
    return secrets.token_urlsafe(32)
