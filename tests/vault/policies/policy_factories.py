"""Policies made through the API, and what they did to a memory."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from governance.actor import Actor
from governance.database import acting
from tests.factories import ApiClient
from tests.vault.api.contract import Contract
from vault.models import Cube

DAY = 24 * 3600


def create_policy(client: ApiClient, kind: str, document: dict[str, Any], *, name: str = "one") -> str:
    """A new policy of this client's tenant; its id."""
    reply = client.post("policies/", {"kind": kind, "name": name, "document": document})
    assert reply.status == 201, reply
    policy_id: str = reply.json["id"]
    return policy_id


def change_policy(client: Contract, policy_id: str, **fields: Any) -> None:
    version = client.get(f"policies/{policy_id}/").headers["ETag"]
    reply = client.patch(f"policies/{policy_id}/", fields, if_match=version)
    assert reply.status == 200, reply


def simulate_policy(client: Contract, kind: str, document: dict[str, Any], **fields: Any) -> dict[tuple[str, str], Any]:
    """Return the result of simulating a policy: (effect, about) → (count, ids)."""
    reply = client.post("policies/simulate/", {"kind": kind, "document": document, **fields})
    assert reply.status == 200, reply
    return {
        (effect["effect"], effect["about"]): (effect["count"], set(effect["sample_ids"]))
        for effect in reply.json["effects"]
    }


def make_retention(memory: dict[str, Any]) -> timedelta | None:
    """Return the lifetime of a memory by its own fields, to the minute."""
    if memory["expires_at"] is None:
        return None
    exact = datetime.fromisoformat(memory["expires_at"]) - datetime.fromisoformat(memory["created_at"])
    return timedelta(minutes=round(exact / timedelta(minutes=1)))


def age_memory(actor: Actor, memory_id: str, **age: float) -> None:
    """Make a memory older than it is."""
    with acting(actor):
        row = Cube.objects.filter(id=UUID(memory_id))
        born = row.get().created_at
        row.update(created_at=born - timedelta(**age))
