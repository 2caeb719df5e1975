"""Packs made over REST, as a publisher makes them."""

from typing import Any

from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs

TEXTS = ("The heron nests by the mill.", "The heron fishes at dawn.", "The heron sleeps on one leg.")


def memories_of(client: Contract, *texts: str, **fields: Any) -> list[str]:
    return [client.add(text, namespace="/birds", **fields)["id"] for text in texts]


def pack_of(client: Contract, name: str = "herons", **fields: Any) -> str:
    reply = client.post("packs/", {"name": name, "title": name.title(), **fields})
    assert reply.status == 201, reply
    found: str = reply.json["id"]
    return found


def build_version(client: Contract, pack: str, ids: list[str], version: str = "1.0.0", **fields: Any) -> dict[str, Any]:
    """The version once its job has run."""
    reply = client.post(f"packs/{pack}/versions/", {"version": version, "ids": ids, **fields})
    assert reply.status == 202, reply
    run_jobs()
    found: dict[str, Any] = client.get(f"packs/{pack}/versions/{version}/").json
    return found


def publish_version(client: Contract, version: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"pack_version": version["id"], "visibility": "installation", **fields}
    reply = client.post("publications/", body)
    assert reply.status == 201, reply
    found: dict[str, Any] = reply.json
    return found


def offer_pack(client: Contract, *texts: str, name: str = "herons", version: str = "1.0.0", **terms: Any) -> str:
    """The id of a publication for all, of new memories."""
    pack = pack_of(client, name)
    made = publish_version(client, build_version(client, pack, memories_of(client, *texts), version), terms=terms)
    assert made["state"] == "published"
    found: str = made["id"]
    return found


def subscribe(client: Contract, publication: str, **fields: Any) -> dict[str, Any]:
    """The subscription once its pack is installed."""
    reply = client.post("subscriptions/", {"publication": publication, **fields})
    assert reply.status == 202, reply
    run_jobs()
    found: dict[str, Any] = client.get(f"subscriptions/{reply.json['subscription']['id']}/").json
    return found
