"""Days are the speaker's where language is read, and the reader's where memories are found and shown."""

import pytest

from tests.factories import World
from tests.mem0.test_rights import sent
from tests.vault.api.contract import Contract, contract, fields_at_fault

NEW_YORK = {"x_memory_timezone": "America/New_York"}
EVENING = "2026-05-02T20:00:00-05:00"  # already the next day in UTC


@pytest.fixture
def alice(world: World) -> Contract:
    """Editor in acme."""
    return contract(world, "alice")


@pytest.mark.parametrize("field", ["event_time", "timestamp", "mem0"])
def test_yesterday_is_the_day_before_the_speakers(world: World, alice: Contract, field: str) -> None:
    """hermes-agent issue 46424 and oh-my-pi issue 2363: the offset was lost before language was read."""
    message = {"role": "user", "content": "Good evening! I bought a canoe yesterday."}
    if field == "mem0":
        sent(world.alice.key.text, "POST", "/v3/memories/add/", {"messages": [message], "timestamp": EVENING})
    elif field == "timestamp":
        alice.post("memories/", {"messages": [{**message, "timestamp": EVENING}]})
    else:
        alice.post("memories/", {"messages": [message], "event_time": EVENING})
    (found,) = [hit for hit in alice.search("canoe") if hit["parents"]]
    assert (found["event_time"][:10], found["said_at"]) == ("2026-05-01", "2026-05-03T01:00:00Z")


def test_dates_and_times_are_those_of_the_readers_zone(alice: Contract) -> None:
    message = {"role": "user", "content": "I bought a canoe.", "timestamp": "2026-05-03T01:00:00Z"}
    stored = alice.post("memories/", {"messages": [message]}, **NEW_YORK).json["results"][0]
    assert stored["said_at"] == "2026-05-02T21:00:00-04:00"
    for day, is_there, in_zone in (
        ("2026-05-02", True, True),
        ("2026-05-03", False, True),
        ("2026-05-03", True, False),
    ):
        filters = {"said_at": {"gte": day}, "NOT": {"said_at": {"gte": f"{day[:-1]}{int(day[-1]) + 1}"}}}
        reply = alice.post("memories/search/", {"query": "canoe", "filters": filters}, **(NEW_YORK if in_zone else {}))
        assert [hit["id"] for hit in reply.json["results"]] == ([stored["id"]] if is_there else []), (day, in_zone)
    assert alice.get("memories/").json["results"][0]["said_at"] == "2026-05-03T01:00:00Z"


def test_unknown_zone_is_refused(alice: Contract) -> None:
    reply = alice.post("memories/search/", {"query": "canoe"}, x_memory_timezone="Mars/Olympus")
    assert fields_at_fault(reply) == {"X-Memory-Timezone"}
