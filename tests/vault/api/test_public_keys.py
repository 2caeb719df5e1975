"""Public keys in answers: every one with the same id and the same two forms."""

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from tests.factories import World
from tests.harness.cases import each_case


@each_case(
    ("path", "member", "historic"),
    [
        ("audit/public-key/", "", {"public_key": "hex"}),
        ("provenance/key/", "", {"public_key": "pem"}),
        ("exports/key/", "", {"public_key": "hex", "signing_key": None}),
        ("exports/key/", "signing", {}),
    ],
)
def test_public_key_has_one_id_and_two_forms(
    world: World, path: str, member: str, historic: dict[str, str | None]
) -> None:
    answer = world.client("olivia").get(path).json
    key: dict[str, Any] = answer[member] if member else answer
    loaded = load_pem_public_key(key["pem"].encode())
    assert isinstance(loaded, Ed25519PublicKey | X25519PublicKey)
    assert key["algorithm"].lower() in type(loaded).__module__ + type(loaded).__name__.lower()
    assert loaded.public_bytes_raw().hex() == key["hex"]
    assert hashlib.sha256(bytes.fromhex(key["hex"])).hexdigest()[:16] == key["key_id"]
    assert all(answer[name] == (key[form] if form else answer["signing"]["hex"]) for name, form in historic.items())
