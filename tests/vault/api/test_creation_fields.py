"""Fields that can be set when a memory is stored, and dates in the place of times."""

from tests.factories import World
from tests.vault.api.contract import contract, fields_at_fault


def test_what_can_be_changed_can_be_given_and_read(world: World) -> None:
    alice = contract(world, "alice")
    stored = alice.add("Ana runs.", priority=0.7, layer="short_term", speaker="Ana", namespace="/team")
    assert (stored["priority"], stored["layer"], stored["speaker"]) == (0.7, "short_term", "Ana")
    assert stored["access_level"] == "shared"
    assert alice.add("Mine.")["access_level"] == "private"
    address = f"memories/{stored['id']}/"
    olivia = contract(world, "olivia")
    assert olivia.patch(address, {"access_level": "read_only"}, if_match='"1"').json["access_level"] == "read_only"
    assert alice.get(address).json["access_level"] == "read_only"
    assert [hit["content"] for hit in alice.search("runs", layers=["short_term"])] == ["Ana runs."]


def test_messages_have_their_own_speaker_and_layer(world: World) -> None:
    alice = contract(world, "alice")
    body = {"messages": [{"role": "user", "content": "I run."}], "speaker": "Ana", "layer": "long_term"}
    assert fields_at_fault(alice.post("memories/", body)) == {"layer", "speaker"}


def test_a_date_stands_for_its_first_moment(world: World) -> None:
    alice = contract(world, "alice")
    stored = alice.add("Ana runs.", event_time="2026-05-01", valid_from="2026-05-02", expires_at="2099-01-01")
    assert stored["event_time"] == "2026-05-01T00:00:00Z"
    assert stored["valid_from"] == "2026-05-02T00:00:00Z"
    assert stored["expires_at"] == "2099-01-01T00:00:00Z"
    zone = {"x_memory_timezone": "Asia/Tokyo"}
    reply = alice.post(
        "memories/", {"content": "Bo runs.", "event_time": "2026-05-01", "valid_to": "2026-05-02"}, **zone
    )
    local = reply.json["results"][0]
    assert (local["event_time"], local["valid_to"]) == ("2026-05-01T09:00:00+09:00", "2026-05-02T00:00:00+09:00")
    changed = alice.patch(f"memories/{stored['id']}/", {"event_time": "2026-06-01"}, if_match='"1"', **zone)
    assert changed.json["event_time"] == "2026-06-01T09:00:00+09:00"
    found = alice.search("runs", filters={"event_time": {"gte": "2026-05-31"}})
    assert [hit["content"] for hit in found] == ["Ana runs."]


def test_a_conversation_recalls_goals_until_that_is_turned_off(world: World) -> None:
    alice = contract(world, "alice")
    begun = alice.post("conversations/", {"title": "Plans"}).json
    assert begun["raises_goals"] is True
    address = f"conversations/{begun['id']}/"
    assert alice.patch(address, {"raises_goals": False}).json["raises_goals"] is False
    assert alice.get(address).json["raises_goals"] is False
    assert fields_at_fault(alice.patch(address, {"raises_goals": "no"})) == {"raises_goals"}
    assert contract(world, "bob").patch(address, {"raises_goals": True}).status == 404
