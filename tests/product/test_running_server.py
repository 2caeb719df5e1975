"""The routes of MemOS on a running product, whose worker deletes what they ask to delete."""

import httpx
import pytest

from tests.harness.product import RunningServer

pytestmark = pytest.mark.long


def test_deleted_user_has_no_memories(running_server: RunningServer) -> None:
    headers = {"Authorization": f"Token {running_server.first_run['api_key']}"}
    with httpx.Client(base_url=f"{running_server.base_url}/product", headers=headers, timeout=60) as client:

        def count(user: str) -> int:
            reply = client.post("/get_memory", json={"user_id": user}).json()
            return sum(cube["total_nodes"] for cube in reply["data"]["text_mem"])

        def messages(user: str) -> int:
            bearer = {"Authorization": f"Bearer {running_server.first_run['api_key']}"}
            asked = {"persona": user, "semantic_type": "dialogue"}
            address = f"{running_server.base_url}/api/v1/memories/"
            count: int = httpx.get(address, params=asked, headers=bearer, timeout=60).json()["count"]
            return count

        for user in ("gina", "hugo"):
            client.post("/add", json={"user_id": user, "messages": f"{user} lives in Porto."}).raise_for_status()
            client.post("/add", json={"user_id": user, "messages": "Hello there!"}).raise_for_status()
        reply = client.post("/delete_memory", json={"user_id": "gina"})
        assert (reply.status_code, reply.json()["data"]["success"]) == (200, True)
        assert (count("gina"), count("hugo")) == (0, 1)
        assert (messages("gina"), messages("hugo")) == (0, 1)
