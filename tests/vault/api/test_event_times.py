"""The time at which something was said, and that of the event that it tells of: two fields, shown apart."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.outbox import run_jobs

SAID = "2025-11-02T10:00:00Z"


def store(world: World, **body: Any) -> dict[str, Any]:
    reply = world.client("alice").post("memories/", body)
    assert reply.status == 201, reply
    last: dict[str, Any] = reply.json["results"][-1] if "results" in reply.json else reply.json
    return last


def words(client: Client, address: str) -> str:
    """The words of a page, without its marks."""
    return " ".join(re.sub(r"<[^>]+>", " ", client.get(address).content.decode()).split())


@each_case(
    ("text", "happens"),
    [
        ("I start at Lindholm on 7 February.", "2026-02-07T00:00:00Z"),
        ("The roofer comes on Monday.", "2025-11-03T00:00:00Z"),
        ("I ran the half marathon in Lund on 12 October.", "2025-10-12T00:00:00Z"),
        ("我2月7号开始在林霍尔姆上班。", "2026-02-07T00:00:00Z"),
        ("周一修屋顶的人来。", "2025-11-03T00:00:00Z"),
    ],
)
@pytest.mark.parametrize("lead", ["", "Hi there! ", "你好！"])
def test_a_message_keeps_both_times(world: World, text: str, happens: str, lead: str) -> None:
    message = {"role": "user", "content": lead + text, "timestamp": SAID}
    stored = store(world, messages=[message], session_id="s", namespace="/team")
    assert (stored["content"], stored["said_at"], stored["event_time"]) == (text, SAID, happens)


def test_a_bare_statement_gets_the_same_unless_its_client_gives_the_time(world: World) -> None:
    ahead = timezone.now() + timedelta(days=40)
    text = f"I start at Lindholm on {ahead:%d %B %Y}."
    stored = store(world, content=text)
    assert stored["event_time"] == f"{ahead:%Y-%m-%d}T00:00:00Z"
    assert stored["said_at"] is not None
    given = store(world, content=f"{text} ", event_time=SAID)
    assert (given["event_time"], given["said_at"]) == (SAID, None)
    longer = store(world, content=f"{text} The office is in Malmö, next to the old shipyard.")
    assert (longer["event_time"], longer["said_at"]) == (None, None)


def test_pages_and_answers_show_both_times_apart(world: World) -> None:
    message = {"role": "user", "content": "I start at Lindholm on 7 February.", "timestamp": SAID}
    stored = store(world, messages=[message], session_id="s")
    run_jobs()
    alice = signed_in(world.alice)
    page = words(alice, f"/memories/{stored['id']}/")
    assert "Said 2 Nov 2025, 10:00 · happened 7 Feb" in page
    assert "happened 7 Feb" in words(alice, "/memories/")
    address = alice.post("/chat/", {"content": "When do I start at Lindholm?"})["Location"].partition("#")[0]
    answer = alice.get(address).content.decode()
    assert "(you said, 2 November 2025 · happens 7 February 2026)" in answer


def test_the_latest_statement_is_the_newest(world: World) -> None:
    for said, text in (
        ("2025-11-02T10:00:00Z", "My lease ends on 30 September 2027."),
        ("2025-12-01T10:00:00Z", "My lease ends on 31 March 2026."),
    ):
        store(world, messages=[{"role": "user", "content": text, "timestamp": said}], session_id=said[:7])
    run_jobs()
    alice = signed_in(world.alice)
    address = alice.post("/chat/", {"content": "When does my lease end?"})["Location"].partition("#")[0]
    answer = alice.get(address).content.decode()
    later, earlier = (answer.find(f"My lease ends on {day}") for day in ("31 March 2026", "30 September 2027"))
    assert later >= 0
    assert earlier < 0 or later < earlier


def test_an_edit_of_the_text_moves_its_event_unless_a_client_gave_the_time(world: World) -> None:
    alice = world.client("alice")
    message = {"role": "user", "content": "I start at Lindholm on 7 February.", "timestamp": SAID}
    stored = store(world, messages=[message])
    address = f"memories/{stored['id']}/"
    changed = alice.patch(address, {"content": "I start at Lindholm on 9 March."}, if_match='"1"').json
    assert changed["event_time"] == "2026-03-09T00:00:00Z"
    reworded = alice.patch(address, {"content": "On 9 March I start at Lindholm."}, if_match='"2"').json
    assert reworded["event_time"] == "2026-03-09T00:00:00Z"
    given = alice.patch(address, {"event_time": "2026-04-01T08:00:00Z"}, if_match='"3"').json
    kept = alice.patch(address, {"content": "On 10 March I start at Lindholm."}, if_match='"4"').json
    assert kept["event_time"] == given["event_time"] == "2026-04-01T08:00:00Z"


def test_a_statement_of_the_chat_is_quoted_with_its_event(world: World) -> None:
    alice, ahead = signed_in(world.alice), timezone.now() + timedelta(days=40)
    statement = f"I start at Lindholm on {ahead.day} {ahead:%B %Y}."
    address = alice.post("/chat/", {"content": statement})["Location"].partition("#")[0]
    run_jobs()
    alice.post(f"{address}turns/", {"content": "When do I start at Lindholm?"})
    assert f"· happens {ahead.day} {ahead:%B %Y})" in alice.get(address).content.decode()


def test_an_event_of_a_month_is_shown_as_the_month(world: World) -> None:
    message = {"role": "user", "content": "Anna moved to Lisbon in March.", "timestamp": SAID}
    stored = store(world, messages=[message], session_id="s")
    assert stored["event_time"] == "2025-03-01T00:00:00Z"
    run_jobs()
    alice = signed_in(world.alice)
    assert "· happened March 2025" in words(alice, f"/memories/{stored['id']}/")
    address = alice.post("/chat/", {"content": "When did Anna move to Lisbon?"})["Location"].partition("#")[0]
    assert "(you said, 2 November 2025 · happened March 2025)" in alice.get(address).content.decode()
