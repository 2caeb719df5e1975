"""Hashes of versions, and lengths of texts in tokens. Pure."""

import hashlib
import json

CANONICAL = json.JSONEncoder(sort_keys=True, default=str)


def version_hash(*, previous: bytes | None, sealed: bytes, clear: dict[str, object]) -> bytes:
    """Return SHA-256 over the predecessor's hash, the sealed words and the clear fields: a chain of versions."""
    canonical = CANONICAL.encode(clear).encode()
    return hashlib.sha256((previous or b"") + hashlib.sha256(sealed).digest() + canonical).digest()


def approximate_tokens(content: str) -> int:
    """Estimate the tokens of a text without a tokenizer: 4 Latin characters or 1 CJK character each, at least 1."""
    if content.isascii():
        return max(1, (len(content) + 3) // 4)
    wide = sum(1 for character in content if ord(character) >= 0x2E80)
    return max(1, wide + (len(content) - wide + 3) // 4)
