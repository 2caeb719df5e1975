"""Public keys in responses: each with its id, in hex and as PEM."""

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from rest_framework import serializers

from governance.api.schema import Schema
from governance.keys.signing_keys import key_id_of


class PublicKeyFormsSchema(Schema):
    algorithm = serializers.ChoiceField(choices=["Ed25519", "X25519"])
    key_id = serializers.CharField(help_text="The first 16 hex digits of the SHA-256 of the key.")
    hex = serializers.CharField(help_text="The 32 bytes of the key, as 64 hex digits.")
    pem = serializers.CharField(help_text="SubjectPublicKeyInfo, RFC 8410.")


def public_key_json(raw: bytes, *, kind: type[Ed25519PublicKey] | type[X25519PublicKey] = Ed25519PublicKey) -> Any:
    """Return the JSON of a public key. raw: its 32 bytes."""
    pem = kind.from_public_bytes(raw).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    algorithm = kind.__name__.removesuffix("PublicKey")
    return {"algorithm": algorithm, "key_id": key_id_of(raw), "hex": raw.hex(), "pem": pem.decode()}
