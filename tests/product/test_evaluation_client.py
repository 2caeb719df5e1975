"""The clients of MemOS's evaluation, unchanged: what its scripts for LoCoMo and PrefEval do with their answers."""

from typing import Any

import pytest

from tests.harness.product import RunningServer
from tests.product.evaluation_client import MemosApiClient, MemosApiOnlineClient

pytestmark = pytest.mark.long
SAID_AT = "2023-05-08T13:56:00+00:00"


@pytest.fixture
def clients(running_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.setenv("MEMOS_URL", running_server.base_url)
    monkeypatch.setenv("MEMOS_ONLINE_URL", f"{running_server.base_url}/product")
    monkeypatch.setenv("MEMOS_KEY", f"Token {running_server.first_run['api_key']}")
    kinds: list[Any] = [MemosApiClient, MemosApiOnlineClient]
    return kinds[0](), kinds[1]()


def read_memories(found: dict[str, Any]) -> list[str]:
    """The memories as locomo_search.py reads them."""
    return [memory["memory"] for memory in found["text_mem"][0]["memories"]]


def test_clients_of_the_evaluation_add_and_search(clients: tuple[Any, Any]) -> None:
    server, online = clients
    user = "locomo_exp_user_0_speaker_a_Default"  # of locomo_ingestion.py, with a version of its own
    said = [
        {"role": "user", "content": "Caroline: I adopted a heron.", "chat_time": SAID_AT},
        {"role": "assistant", "content": "Melanie: Lovely!", "chat_time": SAID_AT},
        {"role": "user", "content": "I prefer tea to coffee.", "chat_time": SAID_AT},
    ]
    assert read_memories(server.search("Which bird?", user, 5)) == []
    assert server.add(said, user, f"{user}_session_1", batch_size=2)
    assert any("heron" in text for text in read_memories(server.search("Which bird did she adopt?", user, 5)))
    server.add(said[:1], "pref_eval_0", None, batch_size=2)  # PrefEval has no conversation
    online.add(said, f"{user}_online", f"{user}_session_1")
    found = online.search("What does she like to drink?", f"{user}_online", 5)
    assert "I prefer tea to coffee." in found["pref_string"]
    assert "Follow them" in found["pref_string"]
    assert online.search("Which bird?", "newcomer", 5)["pref_string"].endswith("Implicit Preference:")
