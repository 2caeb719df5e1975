"""Rules of webhooks: the available events, the signature of a delivery, and the pauses between deliveries."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from governance.vocabulary import Verb

AREAS = (
    "memory",
    "namespace",
    "conversation",
    "turn",
    "job",
    "review",
    "subject",
    "hold",
    "policy",
    "quota",
    "retention",
    "member",
    "invitation",
    "apikey",
    "grant",
    "persona",
    "pack",
    "pack_version",
    "publication",
    "subscription",
)
NO_CHANGES = frozenset(
    {"read", "listed", "searched", "versions_read", "exported", "indexed", "signed_in", "signed_out", "refused"}
)
TEST_EVENT = "webhook.test"
PREFIX = "whsec_"  # of a secret, as in Standard Webhooks 1.0
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(hours=1)
RETRIED_FOR = timedelta(days=1)


def event_names() -> list[str]:
    """Return the events that a webhook can subscribe to: all changes, no reads."""
    verbs = (str(verb) for verb in Verb)
    return sorted(
        verb for verb in verbs if verb.partition(".")[0] in AREAS and verb.partition(".")[2] not in NO_CHANGES
    )


def event_choices() -> list[str]:
    """Return the events, and areas of events as in `memory.*`."""
    names = event_names()
    return sorted({*names, *(f"{name.partition('.')[0]}.*" for name in names)})


def expand_events(events: Iterable[str]) -> list[str]:
    """Return the names of the events, with each area replaced by its events."""
    wanted = set(events)
    return [name for name in event_names() if name in wanted or f"{name.partition('.')[0]}.*" in wanted]


def new_secret() -> str:
    """Return 256 random bits as `whsec_` and base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def body_of(
    *, event_id: UUID, event: str, at: datetime, object_type: str, ids: Sequence[UUID], version: int | None
) -> bytes:
    """Return the JSON body of a delivery: ids, and no content."""
    data: dict[str, Any] = {"object": object_type, "ids": [str(id) for id in ids]}
    if version is not None:
        data["version"] = version
    moment = at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"id": str(event_id), "type": event, "at": moment, "data": data}).encode()


def sign_headers(*, event_id: UUID, moment: int, body: bytes, keys: Iterable[str]) -> Mapping[str, str]:
    """Return the headers of a delivery, with one signature for each secret that is valid.

    A signature is the HMAC-SHA256 of `<id>.<unix time>.<body>` (Standard Webhooks 1.0).
    """
    signed = f"{event_id}.{moment}.".encode() + body
    digests = (hmac.digest(base64.b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256) for key in keys)
    return {
        "Content-Type": "application/json",
        "webhook-id": str(event_id),
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests),
    }


def pause_after(failures: int) -> timedelta:
    """Return the pause after this many consecutive failures: 5 s, 10 s, 20 s … at most an hour."""
    return min(FIRST_PAUSE * (1 << min(failures - 1, 12)), LONGEST_PAUSE)
