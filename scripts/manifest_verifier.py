#!/usr/bin/env python3
"""Check a signed manifest, by itself: needs Python and the package `cryptography`, and nothing of this product.

    manifest_verifier.py ANSWER.json PUBLIC_KEY.pem

ANSWER.json: an answer of the API with its `manifest`, or the manifest alone. Besides the signature, every content in
the answer is compared with its digest in the manifest. One JSON line on stdout. Exit code: 0 valid, 1 not, 2 unusable.
"""

import base64
import binascii
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

FORMAT = "memos-manifest/1"


def signed_bytes(manifest: dict[str, Any]) -> bytes:
    """The format's name and a line feed, then all but the signature: names sorted, no white space, ASCII."""
    unsigned = {name: value for name, value in manifest.items() if name != "signature"}
    return f"{FORMAT}\n{json.dumps(unsigned, sort_keys=True, separators=(',', ':'), ensure_ascii=True)}".encode()


def faults(answer: Any, key: Ed25519PublicKey) -> list[str]:
    """Return the reasons against the answer; none: it is what was signed."""
    manifest = answer.get("manifest", answer) if isinstance(answer, dict) else None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        return ["there is no manifest of this format"]
    key_id = hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]
    if manifest.get("key_id") != key_id:
        return [f"signed with the key {manifest.get('key_id')}, not {key_id}"]
    try:
        key.verify(base64.b64decode(manifest["signature"], validate=True), signed_bytes(manifest))
    except (InvalidSignature, KeyError, TypeError, binascii.Error, ValueError):
        return ["the signature is not that of this manifest"]
    return [] if manifest is answer else list(_contents_at_fault(answer, manifest["items"]))


def _contents_at_fault(answer: dict[str, Any], items: list[dict[str, Any]]) -> Iterator[str]:
    """Every memory of the answer must be named, in its version, with the digest of the content that it has here."""
    named = {item["memory_id"]: item for item in items}
    for memory in _memories(answer):
        item = named.get(memory["id"])
        if item is None:
            yield f"the memory {memory['id']} is not in the manifest"
        elif item["version"] != memory["version"]:
            yield f"the memory {memory['id']} is in version {memory['version']}, the manifest names {item['version']}"
        elif item["content_sha256"] != hashlib.sha256(memory["content"].encode()).hexdigest():
            yield f"the content of the memory {memory['id']} is not the one that was signed for"


def _memories(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for holder in [answer, *answer.get("results", [])]:
        if isinstance(holder, dict) and {"id", "content", "version"} <= holder.keys():
            yield holder


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        answer = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        key = load_pem_public_key(Path(arguments[1]).read_bytes())
    except (OSError, ValueError) as error:
        print(f"manifest_verifier: {error}", file=sys.stderr)
        return 2
    if not isinstance(key, Ed25519PublicKey):
        print("manifest_verifier: not an Ed25519 key", file=sys.stderr)
        return 2
    found = faults(answer, key)
    print(json.dumps({"valid": not found, "faults": found}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
